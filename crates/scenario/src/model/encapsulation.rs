//! The overhead of a link layer: how long a packet is on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_default;
use crate::qdisc::Cells;
use crate::sizes::{ETHERNET_HEADER_BYTES, MTU_BYTES};

/// A full packet, and acknowledgements with and without timestamps.
const SAMPLE_BYTES: [u32; 3] = [MTU_BYTES, 52, 40];

/// The length of IP packets on a link, as both the wire and the queue count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Encapsulation {
    /// Bytes that the link layer adds to each IP packet (14 for the Ethernet header, as Linux' tc counts it).
    pub overhead_bytes: u32,
    /// The shortest packet, overhead included.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mpu_bytes: u32,
    /// The cells in which the link carries the result.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cells: Cells,
}

impl Encapsulation {
    /// A link layer that only adds bytes.
    pub fn adding(overhead_bytes: u32) -> Self {
        Self { overhead_bytes, ..Self::default() }
    }

    /// Whether a packet of several segments has the same length, however it is split.
    #[inline]
    pub fn only_adds(&self) -> bool {
        self.mpu_bytes == 0 && self.cells == Cells::None
    }

    /// A note for the user if a discipline at this link counts other lengths than the link has, because both have an
    /// overhead of their own. `counted` is how many bytes it counts for a frame.
    pub(crate) fn counted_otherwise(&self, discipline: &str, counted: impl Fn(u32) -> u64) -> Option<String> {
        if *self == Self::adding(ETHERNET_HEADER_BYTES) {
            return None;
        }
        let lengths = SAMPLE_BYTES.map(|ip_bytes| (ip_bytes, self.frame_bytes(ip_bytes)));
        let (ip_bytes, link_bytes) = lengths.into_iter().find(|(_, bytes)| counted(*bytes) != u64::from(*bytes))?;
        Some(format!(
            "{discipline} counts {} bytes for an IP packet of {ip_bytes} bytes, which has {link_bytes} bytes on this \
             link: the link's overhead and that of {discipline} both apply. If this link is the line itself, leave \
             out the overhead of {discipline}; if {discipline} is in front of a modem, give the overhead to the \
             modem's link",
            counted(link_bytes),
        ))
    }

    /// The length of an IP packet on the link.
    #[inline]
    pub fn frame_bytes(&self, ip_bytes: u32) -> u32 {
        self.cells.link_bytes((ip_bytes + self.overhead_bytes).max(self.mpu_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lengths of an acknowledgement of 40 bytes, of one with timestamps, and of a full packet.
    fn lengths(overhead_bytes: u32, mpu_bytes: u32, cells: Cells) -> [u32; 3] {
        let link = Encapsulation { overhead_bytes, mpu_bytes, cells };
        [40, 52, 1500].map(|bytes| link.frame_bytes(bytes))
    }

    #[test]
    fn the_shortest_packet_includes_the_overhead() {
        assert_eq!(lengths(14, 0, Cells::None), [54, 66, 1514]);
        assert_eq!(lengths(18, 64, Cells::None), [64, 70, 1518], "DOCSIS");
        assert_eq!(lengths(38, 84, Cells::None), [84, 90, 1538], "Ethernet with preamble and gap");
    }

    /// 1540 bytes of PPPoE over LLC are 32.1 cells, and 92 are 1.9. 1530 bytes need 24 bytes of PTM's synchronisation.
    #[test]
    fn cells_are_whole() {
        assert_eq!(lengths(40, 0, Cells::Atm), [2 * 53, 2 * 53, 33 * 53]);
        assert_eq!(lengths(30, 0, Cells::Ptm), [70 + 2, 82 + 2, 1530 + 24]);
        assert_eq!(lengths(8, 97, Cells::Atm), [3 * 53, 3 * 53, 32 * 53], "cells carry the shortest packet");
    }
}
