//! Offloads of a device. If any of these is on, one packet in a queue may be several packets on the wire, or be
//! completed later. They are left on only if an experiment is about that.

use std::io;

use bufferscope_endpoint::ethtool::Ethtool;

/// An offload, with its name in `ethtool` and the commands that read and set it.
struct Offload {
    name: &'static str,
    read: u32,
    set: u32,
    /// Whether it serves to segment large packets.
    segmentation: bool,
}

/// Checksums first: without them and scatter-gather the kernel cannot segment late. A checksum must be complete when
/// the relay carries the packet past the kernel.
const OFFLOADS: [Offload; 5] = [
    Offload { name: "tx", read: 0x16, set: 0x17, segmentation: true },
    Offload { name: "sg", read: 0x18, set: 0x19, segmentation: true },
    Offload { name: "tso", read: 0x1e, set: 0x1f, segmentation: true },
    Offload { name: "gso", read: 0x23, set: 0x24, segmentation: true },
    Offload { name: "gro", read: 0x2b, set: 0x2c, segmentation: false },
];

/// Turns off every offload of a device in the calling thread's namespace, and verifies the result. With
/// `but_segmentation`, the offloads for segmentation stay as they are.
pub(crate) fn turn_off(device: &str, but_segmentation: bool) -> io::Result<()> {
    let ethtool = Ethtool::open()?;
    for offload in OFFLOADS.iter().filter(|offload| !(but_segmentation && offload.segmentation)) {
        // An offload that is off because it depends on another may refuse to be set; only the final state counts.
        let set = ethtool.call(device, [offload.set, 0]);
        if ethtool.call(device, [offload.read, 0])?[1] != 0 {
            let why = set.err().map_or(String::new(), |error| format!(": {error}"));
            return Err(io::Error::other(format!("offload `{}` of {device} stays on{why}", offload.name)));
        }
    }
    Ok(())
}
