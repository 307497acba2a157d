//! Segmentation of packets that segmentation offload made large (the kernel's `skb_gso_segment`).
//!
//! Departs: with classic ECN, the kernel keeps CWR only in the first segment.

use super::packet::{Body, Load};
use super::pool::{PacketId, Pool};

/// Splits the first segment off a packet of several. Returns it as a packet of its own; `None` if only one is left.
///
/// The packet keeps its place in the sender's account of its own queue: the kernel, too, charges the last segment for
/// all (`tcp_gso_segment`).
pub(crate) fn split_off_first(packet: PacketId, overhead_bytes: u32, pool: &mut Pool) -> Option<PacketId> {
    let Body::Tcp(mut rest) = *pool.body(packet) else { return None };
    if rest.segment.frames() == 1 {
        return None;
    }
    let mut first = rest;
    first.segment = rest.segment.split_off_first();
    first.segments_before = 0;
    rest.segments_before += 1;
    let mut header = *pool.header(packet);
    header.ip_bytes = first.segment.ip_bytes();
    header.frame_bytes = header.ip_bytes + overhead_bytes;
    header.load = Load::of(1);
    let first = pool.insert(header, Body::Tcp(first));
    let header = pool.header_mut(packet);
    header.ip_bytes = rest.segment.ip_bytes();
    header.frame_bytes = header.ip_bytes + overhead_bytes * rest.segment.frames();
    header.load = Load::of(rest.segment.frames());
    *pool.body_mut(packet) = Body::Tcp(rest);
    Some(first)
}
