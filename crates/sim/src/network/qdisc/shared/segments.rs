//! Packets of several segments, in disciplines that accept one segment at a time.

use bufferscope_scenario::Encapsulation;

use crate::network::pool::{PacketId, Pool};
use crate::network::qdisc::QdiscEvents;
use crate::network::segmentation;
use crate::network::xmit::Xmit;

/// Enqueues the segments of a packet one by one. The packet itself becomes the last of them. If none of them is queued,
/// the sender gets the result of the last.
pub(crate) fn each_segment(
    packet: PacketId,
    link: &Encapsulation,
    pool: &mut Pool,
    events: &mut QdiscEvents,
    mut enqueue: impl FnMut(PacketId, &mut Pool, &mut QdiscEvents) -> Xmit,
) -> Xmit {
    let mut queued = false;
    while let Some(first) = segmentation::split_off_first(packet, link, pool) {
        events.split(first);
        queued |= enqueue(first, pool, events).is_queued();
    }
    let last = enqueue(packet, pool, events);
    if queued { Xmit::Queued } else { last }
}
