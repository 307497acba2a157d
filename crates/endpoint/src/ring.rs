//! The size of a driver's transmit ring.

use std::io;

use crate::ethtool::Ethtool;

/// `ETHTOOL_GRINGPARAM` and `ETHTOOL_SRINGPARAM`.
const READ: u32 = 0x10;
const SET: u32 = 0x11;
/// Words of `struct ethtool_ringparam`: the command, four maximum sizes, and four current sizes. The last of these is
/// the size of the transmit ring.
const WORDS: usize = 9;
const SENDING: usize = 8;

/// The size of the transmit ring of a device in the calling thread's namespace, in packets. Some drivers do not
/// report it.
pub fn packets(ethtool: &Ethtool, device: &str) -> io::Result<u32> {
    Ok(read(ethtool, device)?[SENDING])
}

fn read(ethtool: &Ethtool, device: &str) -> io::Result<[u32; WORDS]> {
    let mut words = [0; WORDS];
    words[0] = READ;
    ethtool.call(device, words)
}

/// Sets the size of the transmit ring of a device in the calling thread's namespace, and verifies it.
pub fn resize(device: &str, size: u32) -> io::Result<()> {
    let ethtool = Ethtool::open()?;
    let mut words = read(&ethtool, device)?;
    if words[SENDING] != size {
        words[0] = SET;
        words[SENDING] = size;
        ethtool.call(device, words)?;
    }
    match packets(&ethtool, device)? {
        set if set == size => Ok(()),
        set => Err(io::Error::other(format!("the ring of {device} stays at {set} instead of {size}"))),
    }
}
