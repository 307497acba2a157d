//! The filter of acknowledgements: when a segment arrives, a pure acknowledgement of the same connection that waits in the
//! queue may be dropped, because the segment acknowledges more (`cake_ack_filter`).
//!
//! Two acknowledgements must be replaceable, of which the first is dropped; the aggressive filter also drops the only
//! one if it is next to the segment. What gives the sender more information than the segment is kept: selective
//! acknowledgements, timestamps, and the flags of ECN, classic or accurate.

use crate::network::packet::{Body, TcpPacket};
use crate::network::pool::{Fifo, PacketId, Pool};
use crate::network::segment::{Flags, Segment};

/// An acknowledgement that could be dropped.
struct Candidate {
    previous: Option<PacketId>,
    /// Whether it is the last packet that was examined.
    is_last: bool,
    echo: (bool, bool),
}

/// Removes the acknowledgement that the last packet of the queue replaces.
pub(super) fn take_replaced(queue: &mut Fifo, newest: PacketId, aggressive: bool, pool: &mut Pool) -> Option<PacketId> {
    let previous = find(queue, newest, aggressive, pool)?;
    queue.take_after(previous, pool)
}

/// The packet before the one to be dropped, which is `None` if that is the first.
fn find(queue: &Fifo, newest: PacketId, aggressive: bool, pool: &Pool) -> Option<Option<PacketId>> {
    let trigger = tcp(newest, pool)?;
    if !trigger.segment.flags.ack() || trigger.segment.flags.syn() {
        return None;
    }
    let mut candidate: Option<Candidate> = None;
    let (mut found, mut previous) = (0, None);
    for packet in queue.iter(pool).take_while(|packet| *packet != newest) {
        let before = previous.replace(packet);
        if let Some(candidate) = &mut candidate {
            candidate.is_last = false;
        }
        let Some(waiting) = tcp(packet, pool).filter(|waiting| is_same_way(waiting, trigger)) else { continue };
        let echo = echo(waiting.segment.flags);
        if candidate.as_ref().is_some_and(|candidate| candidate.echo != echo) {
            candidate = None;
            found -= 1;
        }
        if !is_replaced(&waiting.segment, &trigger.segment) {
            continue;
        }
        if candidate.is_none() {
            candidate = Some(Candidate { previous: before, is_last: true, echo });
        }
        found += 1;
        if found > 1 {
            break;
        }
    }
    let candidate = candidate?;
    let only_one = aggressive && candidate.is_last && candidate.echo == echo(trigger.segment.flags);
    (found > 1 || only_one).then_some(candidate.previous)
}

fn tcp(packet: PacketId, pool: &Pool) -> Option<&TcpPacket> {
    match pool.body(packet) {
        Body::Tcp(tcp) => Some(tcp),
        Body::Echo(_) | Body::Datagram(_) => None,
    }
}

fn is_same_way(a: &TcpPacket, b: &TcpPacket) -> bool {
    a.connection == b.connection && a.to == b.to
}

/// The flags of ECN that must not change from one acknowledgement to the next.
fn echo(flags: Flags) -> (bool, bool) {
    (flags.ece(), flags.cwr())
}

/// Whether `waiting` carries no information that `newest` does not carry.
fn is_replaced(waiting: &Segment, newest: &Segment) -> bool {
    let flags = waiting.flags;
    let is_plain = flags.ack() && !flags.syn() && !flags.fin() && !flags.psh() && !flags.contains(Flags::AE);
    let is_older = !is_after(waiting.ts_val, newest.ts_val) && !is_after(waiting.ts_ecr, newest.ts_ecr);
    if !is_plain || !is_older || waiting.len > 0 || waiting.ack > newest.ack {
        return false;
    }
    match compare_sacks(waiting, newest) {
        Sacks::Fewer => false,
        Sacks::Equal => waiting.ack != newest.ack,
        Sacks::More => true,
    }
}

/// How the selective acknowledgements of the newer segment compare with those of the older.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sacks {
    /// The older has some that the newer has not, or reports a duplicate.
    Fewer,
    Equal,
    /// The newer covers those of the older, and more bytes.
    More,
}

/// `cake_tcph_sack_compare`.
fn compare_sacks(older: &Segment, newer: &Segment) -> Sacks {
    match (older.sack.is_empty(), newer.sack.is_empty()) {
        (true, true) => return Sacks::Equal,
        (false, true) => return Sacks::Fewer,
        (true, false) => return Sacks::More,
        (false, false) => {}
    }
    let covers = |start, end| newer.sack.iter(newer.ack).any(|block| block.start <= start && block.end >= end);
    if older.sack.iter(older.ack).any(|block| block.start < older.ack || !covers(block.start, block.end)) {
        return Sacks::Fewer;
    }
    let bytes =
        |segment: &Segment| -> u64 { segment.sack.iter(segment.ack).map(|block| block.end - block.start).sum() };
    if bytes(newer) > bytes(older) { Sacks::More } else { Sacks::Equal }
}

/// Whether `a` is later than `b`, on a clock that wraps.
fn is_after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

#[cfg(test)]
mod tests;
