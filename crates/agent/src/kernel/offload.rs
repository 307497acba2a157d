//! Offloads of a device: with any of these on, one packet of a queue may be several on the wire, or be finished later.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

/// `struct ethtool_value` of `include/uapi/linux/ethtool.h`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// An offload by `ethtool`'s name, with the commands that read and set it.
struct Offload {
    name: &'static str,
    read: u32,
    set: u32,
}

/// Checksums first: without them and scatter-gather the kernel can't segment late. A checksum must be complete when the
/// relay carries the packet past the kernel.
const OFFLOADS: [Offload; 5] = [
    Offload { name: "tx", read: 0x16, set: 0x17 },
    Offload { name: "sg", read: 0x18, set: 0x19 },
    Offload { name: "tso", read: 0x1e, set: 0x1f },
    Offload { name: "gso", read: 0x23, set: 0x24 },
    Offload { name: "gro", read: 0x2b, set: 0x2c },
];

/// Turns every offload of a device of the calling thread's namespace off, and makes sure that it is.
pub(crate) fn turn_off(device: &str) -> io::Result<()> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    for offload in &OFFLOADS {
        // What is off for want of another may refuse to be set; only what it is afterwards counts.
        let set = call(&socket, device, EthtoolValue { command: offload.set, data: 0 });
        if call(&socket, device, EthtoolValue { command: offload.read, data: 0 })? != 0 {
            let why = set.err().map_or(String::new(), |error| format!(": {error}"));
            return Err(io::Error::other(format!("offload `{}` of {device} stays on{why}", offload.name)));
        }
    }
    Ok(())
}

fn call(socket: &OwnedFd, device: &str, mut value: EthtoolValue) -> io::Result<u32> {
    // SAFETY: all-zero bytes are a valid ifreq; the name fits with its terminating zero; `value` outlives the call, which
    // writes no more than an ethtool_value.
    let done = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, &from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(device.as_bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request)
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(value.data) }
}
