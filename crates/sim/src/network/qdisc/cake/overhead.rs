//! How long a packet is on the link, as the shaper counts (`cake_calc_overhead`).

use bufferscope_scenario::LinkLayer;
use bufferscope_scenario::sizes::ETHERNET_HEADER_BYTES;

use crate::network::pool::{PacketId, Pool};
use crate::network::segmentation::sum_of_segments;

/// Length of a packet of several segments: the sum of those of the segments (`cake_overhead`).
#[inline]
pub(super) fn adjusted_bytes(packet: PacketId, layer: &LinkLayer, pool: &Pool) -> u32 {
    let header = pool.header(packet);
    if header.load.frames() == 1 {
        return of_frame(header.frame_bytes, layer);
    }
    sum_of_segments(header.frame_bytes, header.load.frames(), pool.body(packet), |bytes| of_frame(bytes, layer))
}

#[inline]
fn of_frame(frame_bytes: u32, layer: &LinkLayer) -> u32 {
    let counted = if layer.raw { frame_bytes as i32 } else { frame_bytes as i32 - ETHERNET_HEADER_BYTES as i32 };
    layer.cells.link_bytes((counted + i32::from(layer.overhead_bytes)).max(i32::from(layer.mpu_bytes)) as u32)
}

#[cfg(test)]
mod tests {
    use bufferscope_scenario::Cells;

    use super::*;

    fn layer(raw: bool, overhead_bytes: i16, cells: Cells, mpu_bytes: u16) -> LinkLayer {
        LinkLayer { raw, overhead_bytes, cells, mpu_bytes }
    }

    #[test]
    fn raw_counts_the_ethernet_header_and_overhead_does_not() {
        assert_eq!(of_frame(1514, &layer(true, 0, Cells::None, 0)), 1514);
        assert_eq!(of_frame(1514, &layer(true, 4, Cells::None, 0)), 1518);
        assert_eq!(of_frame(1514, &layer(false, 0, Cells::None, 0)), 1500);
        assert_eq!(of_frame(1514, &layer(false, 38, Cells::None, 84)), 1538);
        assert_eq!(of_frame(1514, &layer(false, -20, Cells::None, 0)), 1480);
        assert_eq!(of_frame(66, &layer(false, 18, Cells::None, 64)), 70);
        assert_eq!(of_frame(54, &layer(false, 18, Cells::None, 64)), 64);
    }

    /// An acknowledgement of 40 bytes of IP over PPPoE and LLC takes two cells, a full packet 33 (1540 / 48 = 32.1).
    #[test]
    fn cells_are_whole() {
        let atm = layer(false, 40, Cells::Atm, 0);
        assert_eq!([54, 22, 70, 71, 1514].map(|bytes| of_frame(bytes, &atm)), [106, 53, 106, 159, 1749]);
        let ptm = layer(false, 30, Cells::Ptm, 0);
        assert_eq!([1514, 48, 49].map(|bytes| of_frame(bytes, &ptm)), [1530 + 24, 64 + 1, 65 + 2]);
    }

    /// Fewer bytes than nothing count as the shortest packet.
    #[test]
    fn a_negative_length_is_that_of_the_shortest_packet() {
        assert_eq!(of_frame(54, &layer(false, -64, Cells::None, 0)), 0);
        assert_eq!(of_frame(54, &layer(false, -64, Cells::Atm, 10)), 53);
    }
}
