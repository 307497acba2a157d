//! How long a packet is on the link, as the shaper counts (`cake_calc_overhead`).

use bufferscope_scenario::LinkLayer;

use crate::network::pool::{PacketId, Pool};
use crate::network::segmentation::sum_of_segments;

/// Length of a packet of several segments: the sum of those of the segments (`cake_overhead`).
#[inline]
pub(super) fn adjusted_bytes(packet: PacketId, layer: &LinkLayer, pool: &Pool) -> u32 {
    let header = pool.header(packet);
    if header.load.frames() == 1 {
        return layer.counted_bytes(header.frame_bytes);
    }
    sum_of_segments(header.frame_bytes, header.load.frames(), pool.body(packet), |bytes| layer.counted_bytes(bytes))
}
