//! `choke`: CHOKe, choose and keep or kill. While the average queue is long, it compares each arriving packet with a
//! random one in the queue, and drops both if they belong to the same flow; otherwise it acts as RED. A flow that has
//! more packets in the queue than others loses more, although nothing is stored about flows.
//!
//! Source: Pan, Prabhakar and Psounis, "CHOKe: A Stateless Active Queue Management Scheme for Approximating Fair
//! Bandwidth Allocation" (2000), as implemented in Linux (`net/sched/sch_choke.c`):
//! - packets are stored in a ring with a power of two of slots, in which a packet dropped from the middle leaves a
//!   hole. If three draws find holes, the head is compared;
//! - the queue is counted in packets. The average must exceed `min` for a comparison, and `max` for a forced drop;
//! - the average and the choice of packets are those of RED, in [`shared::red_core`](crate::network::qdisc::shared::red_core).
//!
//! Departures:
//! - flows are those of [`Header`](crate::network::packet::Header): the hash of addresses and ports, source and
//!   destination. Linux takes all pings between two hosts for one flow here;
//! - Linux loses track of its packets where holes fill the ring, because a full ring looks like an empty one. Here a
//!   packet that would fill it is dropped (`overlimit`);
//! - a packet that is marked and then finds no room counts only as dropped.

use bufferscope_scenario::{self as scenario, Averaging, Reason};

use crate::network::pool::{Backlog, PacketId, Pool};
use crate::network::qdisc::shared::red_core::{Idle, RedCore, Watch};
use crate::network::qdisc::{Attachment, Dequeued, Discipline, QdiscEvents};
use crate::network::xmit::Xmit;
use crate::random::{Random, Stream};

/// Maximum number of slots that are drawn to find a packet for the comparison.
const DRAWS: u32 = 3;

#[derive(Debug)]
pub(crate) struct Choke {
    ring: Ring,
    backlog: Backlog,
    limit_packets: u32,
    ecn: bool,
    early: RedCore,
    watch: Watch,
    idle: Idle,
    random: Random,
}

/// A queue from whose middle packets may be taken. Neither its first nor its only slot is a hole.
#[derive(Debug)]
struct Ring {
    /// A power of two of them, of which one stays free.
    slots: Box<[Option<PacketId>]>,
    head: u32,
    /// The first slot behind the queue.
    tail: u32,
}

impl Discipline for Choke {
    type Parameters = scenario::Choke;

    fn new(parameters: &scenario::Choke, attachment: Attachment) -> Result<Self, String> {
        let Averaging { curve, idle } = parameters.averaging().map_err(|error| format!("choke: {error}"))?;
        Ok(Self {
            ring: Ring::new(parameters.limit_packets),
            backlog: Backlog::default(),
            limit_packets: parameters.limit_packets,
            ecn: parameters.ecn,
            early: RedCore::new(curve),
            watch: Watch::default(),
            idle: Idle::new(idle, 0),
            random: Random::new(attachment.seed, Stream::Qdisc(attachment.port)),
        })
    }

    fn enqueue(&mut self, packet: PacketId, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        self.idle.end(&self.early, &mut self.watch, self.backlog.packets, now_ns);
        let mut marks = false;
        if self.watch.average <= self.early.min {
            self.watch.since_drop = None;
        } else {
            if let Some(slot) = self.match_of(packet, pool) {
                self.drop_at(slot, pool, events);
                events.drop(packet, Reason::CHOKE_MATCHED);
                return Xmit::Congested;
            }
            let reason = if self.watch.average > self.early.max {
                self.watch.since_drop = None;
                Some(Reason::RED_FORCED)
            } else {
                self.early.is_next(&mut self.watch, &mut self.random).then_some(Reason::RED_EARLY)
            };
            marks = reason.is_some() && self.ecn && pool.header(packet).class.ecn().is_capable();
            if let Some(reason) = reason.filter(|_| !marks) {
                events.drop(packet, reason);
                return Xmit::Congested;
            }
        }
        if self.backlog.packets >= self.limit_packets.into() || !self.ring.push(packet) {
            events.drop(packet, Reason::OVERLIMIT);
            return Xmit::Dropped;
        }
        if marks {
            events.mark(packet, Reason::RED_MARK, pool);
        }
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(pool.header(packet).frame_bytes);
        Xmit::Queued
    }

    fn dequeue(&mut self, _now_ns: u64, pool: &mut Pool, _events: &mut QdiscEvents) -> Dequeued {
        let Some(packet) = self.ring.take(self.ring.head) else { return Dequeued::Nothing };
        self.forget(packet, pool);
        Dequeued::Packet(packet)
    }

    fn idle_since(&mut self, at_ns: u64) {
        self.idle.begin(at_ns);
    }

    /// `choke_peek_head` does not begin the idle time.
    fn peeked_empty_since(&mut self, _at_ns: u64) {}

    /// `choke_change`: the average begins anew. Packets stay, as far as a smaller ring has slots for them.
    fn change(&mut self, to: Self, pool: &Pool, events: &mut QdiscEvents) {
        let Self { ring, random, .. } = std::mem::replace(self, to);
        self.random = random;
        if ring.slots.len() == self.ring.slots.len() {
            self.ring = ring;
        } else {
            for packet in ring.iter() {
                if !self.ring.push(packet) {
                    events.drop(packet, Reason::OVERLIMIT);
                }
            }
        }
        let bytes = self.ring.iter().map(|packet| u64::from(pool.header(packet).frame_bytes));
        self.backlog = bytes.map(|bytes| Backlog { packets: 1, bytes }).sum();
        if self.backlog.packets > 0 {
            self.idle.interrupt();
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn peek(&self) -> Option<PacketId> {
        self.ring.slots[self.ring.head as usize]
    }

    fn each_packet(&self, _pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.ring.iter().for_each(visit);
    }

    fn warning(&self) -> Option<String> {
        self.early.warning("choke")
    }
}

impl Choke {
    /// Draws a packet. Returns its slot if it belongs to the same flow.
    fn match_of(&mut self, packet: PacketId, pool: &Pool) -> Option<u32> {
        let slot = self.draw()?;
        let flow = |packet| {
            let header = pool.header(packet);
            (header.tuple_hash(), header.source, header.destination)
        };
        let drawn = self.ring.slots[slot as usize]?;
        (flow(drawn) == flow(packet)).then_some(slot)
    }

    /// A random slot with a packet, unless the queue is empty (`choke_peek_random`).
    fn draw(&mut self) -> Option<u32> {
        let length = self.ring.length();
        if length == 0 {
            return None;
        }
        let mut slots = (0..DRAWS).map(|_| {
            let number = (u64::from(self.random.next_u32()) * u64::from(length)) >> 32;
            self.ring.slot(number as u32)
        });
        let drawn = slots.find(|&slot| self.ring.slots[slot as usize].is_some());
        Some(drawn.unwrap_or(self.ring.head))
    }

    fn drop_at(&mut self, slot: u32, pool: &Pool, events: &mut QdiscEvents) {
        if let Some(packet) = self.ring.take(slot) {
            self.forget(packet, pool);
            events.drop(packet, Reason::CHOKE_MATCHED);
        }
    }

    /// A packet has left the ring.
    fn forget(&mut self, packet: PacketId, pool: &Pool) {
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(pool.header(packet).frame_bytes);
    }
}

impl Ring {
    fn new(limit_packets: u32) -> Self {
        let slots = vec![None; (limit_packets as usize + 1).next_power_of_two()];
        Self { slots: slots.into_boxed_slice(), head: 0, tail: 0 }
    }

    /// Number of slots from the head to the tail, holes among them.
    fn length(&self) -> u32 {
        self.wrapped(self.tail.wrapping_sub(self.head))
    }

    /// The slot this many positions behind the head.
    fn slot(&self, number: u32) -> u32 {
        self.wrapped(self.head.wrapping_add(number))
    }

    fn wrapped(&self, slot: u32) -> u32 {
        slot & (self.slots.len() as u32 - 1)
    }

    /// Returns whether there was room.
    fn push(&mut self, packet: PacketId) -> bool {
        let next = self.wrapped(self.tail + 1);
        if next == self.head {
            return false;
        }
        self.slots[self.tail as usize] = Some(packet);
        self.tail = next;
        true
    }

    /// Takes the packet at `slot`, which becomes a hole. Holes at the head are skipped.
    fn take(&mut self, slot: u32) -> Option<PacketId> {
        let packet = self.slots[slot as usize].take()?;
        while self.head != self.tail && self.slots[self.head as usize].is_none() {
            self.head = self.wrapped(self.head + 1);
        }
        Some(packet)
    }

    /// The packets, oldest first.
    fn iter(&self) -> impl Iterator<Item = PacketId> {
        (0..self.length()).filter_map(|number| self.slots[self.slot(number) as usize])
    }
}

#[cfg(test)]
mod tests;
