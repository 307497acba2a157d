//! What a link layer makes of the length of a packet.

use serde::{Deserialize, Serialize};

use super::is_default;
use crate::qdisc::Cells;

/// How long IP packets are on a link. Wire and queue both count them so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
