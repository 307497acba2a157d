//! Queues with a limit.

use bufferscope_scenario::Reason;

use crate::network::pool::{Fifo, PacketId, Pool};
use crate::network::qdisc::QdiscEvents;
use crate::network::xmit::Xmit;

/// Queues an arriving packet if it fits, and drops it otherwise.
#[inline]
pub(crate) fn tail_drop(
    fits: bool,
    packet: PacketId,
    queue: &mut Fifo,
    pool: &mut Pool,
    events: &mut QdiscEvents,
) -> Xmit {
    if fits {
        queue.push(packet, pool);
        Xmit::Queued
    } else {
        events.drop(packet, Reason::OVERLIMIT);
        Xmit::Dropped
    }
}

/// Drops what is over a limit that was lowered, from the head.
pub(crate) fn drop_surplus(limit_packets: u32, queue: &mut Fifo, pool: &Pool, events: &mut QdiscEvents) {
    while queue.packets() > limit_packets
        && let Some(packet) = queue.pop(pool)
    {
        events.drop(packet, Reason::OVERLIMIT);
    }
}
