//! `sfq`: stochastic fairness queueing. Flows are hashed to queues, which take turns; when there is no room, a packet
//! of the longest queue is dropped. A timer may change the hash, so that flows do not share a queue for long.
//!
//! Source: McKenney, "Stochastic Fairness Queueing" (1990), as implemented in Linux (`net/sched/sch_sfq.c`):
//! - a queue sends until it has used up its allotment, which may become negative, and gets a quantum more when its next
//!   turn comes. A queue that becomes active has its first turn after all others;
//! - the limit concerns all queues together. The packet dropped for it may be of another flow than the one that arrives;
//!   the sender is notified (as of congestion) only if it is of the same queue. The limit of one queue, `depth`, and
//!   its RED drop arriving packets, or with `headdrop` the oldest one of that queue;
//! - each queue has an average of its own for RED, which begins with the queue and does not age;
//! - after a perturbation, all packets are sorted anew, slot by slot. Packets for which a queue has no room are
//!   dropped.
//!
//! The allotment counts bytes, as since Linux 6.14, and in the long-term series since the summer of 2025. Before, it
//! counted units of 8 bytes, rounded up.
//!
//! Departures: flows are those of [`Header`](crate::network::packet::Header), whose hash is mixed by other arithmetic
//! than SipHash. Linux does not count what it drops after a perturbation, and may be late to perturb the hash of an idle
//! host. It refuses to change an sfq; here, a new one replaces it.

use bufferscope_programs::{Uniform, scramble};
use bufferscope_scenario::{self as scenario, Reason};

use crate::network::pool::{Backlog, Fifo, PacketId, Pool};
use crate::network::qdisc::shared::red_core::{RedCore, Verdict, Watch};
use crate::network::qdisc::{Attachment, Dequeued, Discipline, QdiscEvents};
use crate::network::xmit::Xmit;
use crate::random::{Random, Stream};
use crate::timers::Timers;

mod slots;

use slots::{Index, Slots};

#[derive(Debug)]
pub(crate) struct Sfq {
    /// Boxed, like other parts, to keep the discipline small.
    slots: Box<Slots>,
    backlog: Backlog,
    limit_packets: u32,
    depth_packets: u32,
    quantum_bytes: u32,
    hash_mask: u16,
    headdrop: bool,
    /// Changes the hash.
    salt: u32,
    red: Option<Box<Red>>,
    random: Random,
    perturbation: Option<Box<Perturbation>>,
}

/// Random early detection in each queue.
#[derive(Debug)]
struct Red {
    early: RedCore,
    ecn: bool,
    harddrop: bool,
}

#[derive(Debug)]
struct Perturbation {
    timers: Timers,
    period_ns: u64,
    due_ns: u64,
}

impl Discipline for Sfq {
    type Parameters = scenario::Sfq;

    fn keeps_time(parameters: &scenario::Sfq) -> bool {
        parameters.perturb_s.is_some()
    }

    fn new(parameters: &scenario::Sfq, attachment: Attachment) -> Result<Self, String> {
        let red = parameters.red.as_ref().map(Red::new).transpose()?;
        let mut random = Random::new(attachment.seed, Stream::Qdisc(attachment.port));
        let salt = random.next_u32();
        let perturbation = parameters.perturb_s.map(|period_s| Perturbation::new(period_s, attachment, &mut random));
        // More are never in use, and those freed last are used again first.
        let slots = parameters.flows.min(parameters.limit_packets + 1);
        Ok(Self {
            slots: Box::new(Slots::new(slots, parameters.divisor)),
            backlog: Backlog::default(),
            limit_packets: parameters.limit_packets,
            depth_packets: parameters.depth_packets,
            quantum_bytes: parameters.quantum_bytes,
            hash_mask: (parameters.divisor - 1) as u16,
            headdrop: parameters.headdrop,
            salt,
            red: red.map(Box::new),
            random,
            perturbation: perturbation.map(Box::new),
        })
    }

    fn enqueue(&mut self, packet: PacketId, _now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        let hash = self.hash(packet, pool);
        let index = if let Some(index) = self.slots.find(hash) {
            let early = self.detects(index, packet, pool, events);
            let full = || self.slots.get(index).queue.packets() >= self.depth_packets;
            if let Some(reason) = early.or_else(|| full().then_some(Reason::OVERLIMIT)) {
                return self.refuse(index, packet, reason, pool, events);
            }
            index
        } else if let Some(index) = self.slots.claim(hash) {
            self.slots.get_mut(index).watch = Watch::default();
            index
        } else {
            events.drop(packet, Reason::OVERLIMIT);
            return Xmit::Dropped;
        };
        let before = self.slots.get(index).queue.back();
        self.push(index, packet, pool);
        if self.backlog.packets <= self.limit_packets.into() {
            return Xmit::Queued;
        }
        match self.drop_from_longest((index, before), pool, events) {
            Some((dropped, _)) if dropped == packet => Xmit::Congested,
            Some((_, from)) if from == index => Xmit::Displacing,
            _ => Xmit::Queued,
        }
    }

    fn dequeue(&mut self, _now_ns: u64, pool: &mut Pool, _events: &mut QdiscEvents) -> Dequeued {
        let Some(index) = self.spend_turns() else { return Dequeued::Nothing };
        let Some(packet) = self.pop(index, pool) else { return Dequeued::Nothing };
        let slot = self.slots.get_mut(index);
        slot.allot -= pool.header(packet).frame_bytes as i32;
        if slot.queue.is_empty() {
            self.slots.leave();
        }
        Dequeued::Packet(packet)
    }

    /// Linux refuses it ("Change operation not supported by specified qdisc"); so this is what a user has to do instead.
    fn change(&mut self, to: Self, pool: &Pool, events: &mut QdiscEvents) {
        self.slots.iter().for_each(|slot| events.purge(&slot.queue, pool));
        *self = to;
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        for slot in self.slots.iter() {
            slot.queue.iter(pool).for_each(&mut *visit);
        }
    }

    fn each_in_flow_queues(&self, pool: &Pool, visit: &mut dyn FnMut(u64, PacketId)) {
        let slots = self.slots.iter();
        slots.for_each(|slot| slot.queue.iter(pool).for_each(|packet| visit(u64::from(slot.hash) + 1, packet)));
    }

    fn timer(&self) -> Option<u64> {
        self.perturbation.as_ref().map(|perturbation| perturbation.due_ns)
    }

    fn on_timer(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) {
        self.salt = self.random.next_u32();
        if self.backlog.packets > 0 {
            self.rehash(pool, events);
        }
        if let Some(perturbation) = &mut self.perturbation {
            perturbation.due_ns = perturbation.timers.expiry_ns(now_ns, perturbation.period_ns);
        }
    }

    fn warning(&self) -> Option<String> {
        self.red.as_ref().and_then(|red| red.early.warning("sfq"))
    }
}

impl Sfq {
    fn hash(&self, packet: PacketId, pool: &Pool) -> u16 {
        self.mixed(pool.header(packet).tuple_hash())
    }

    /// The hash value of flows with this hash, until the next perturbation.
    #[inline]
    fn mixed(&self, hash: u32) -> u16 {
        scramble(u64::from(hash) << 32 | u64::from(self.salt)) as u16 & self.hash_mask
    }

    /// Whether RED requires a packet to be dropped. Marks one instead if it may: with `headdrop` the oldest packet of
    /// the queue, or else the arriving one.
    fn detects(&mut self, index: Index, packet: PacketId, pool: &mut Pool, events: &mut QdiscEvents) -> Option<Reason> {
        let Red { early, ecn, harddrop } = self.red.as_deref()?;
        let slot = self.slots.get_mut(index);
        early.update(&mut slot.watch, slot.queue.bytes());
        let (reason, marks) = match early.verdict(&mut slot.watch, &mut self.random) {
            Verdict::Pass => return None,
            Verdict::RedCore => (Reason::RED_EARLY, *ecn),
            Verdict::Forced => (Reason::RED_FORCED, *ecn && !harddrop),
        };
        let oldest = slot.queue.front().filter(|_| self.headdrop);
        let is_marked =
            marks && oldest.into_iter().chain([packet]).any(|each| events.mark(each, Reason::RED_MARK, pool));
        (!is_marked).then_some(reason)
    }

    /// Drops the arriving packet, or with `headdrop` the oldest of its queue; the queue's length does not change.
    fn refuse(
        &mut self,
        index: Index,
        packet: PacketId,
        reason: Reason,
        pool: &mut Pool,
        events: &mut QdiscEvents,
    ) -> Xmit {
        let queue = &mut self.slots.get_mut(index).queue;
        let Some(oldest) = queue.front().filter(|_| self.headdrop) else {
            events.drop(packet, reason);
            return Xmit::Dropped;
        };
        let bytes = queue.bytes();
        queue.pop(pool);
        queue.push(packet, pool);
        self.backlog.bytes = self.backlog.bytes - bytes + queue.bytes();
        events.drop(oldest, reason);
        Xmit::Displacing
    }

    fn push(&mut self, index: Index, packet: PacketId, pool: &mut Pool) {
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(pool.header(packet).frame_bytes);
        self.slots.get_mut(index).queue.push(packet, pool);
        self.slots.lengthened(index, self.quantum_bytes);
    }

    /// Takes the oldest packet out of a queue.
    fn pop(&mut self, index: Index, pool: &Pool) -> Option<PacketId> {
        let packet = self.slots.get_mut(index).queue.pop(pool)?;
        self.slots.shortened(index);
        self.forget(packet, pool);
        Some(packet)
    }

    /// A packet has left.
    fn forget(&mut self, packet: PacketId, pool: &Pool) {
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(pool.header(packet).frame_bytes);
    }

    /// Drops a packet of the longest queue. If all have one packet, it is that of the queue whose turn it is
    /// (`sfq_drop`). Returns the packet and the queue.
    ///
    /// Mostly that is the packet that has just entered the queue `newest.0`, behind `newest.1`: it is found without a
    /// walk through the queue, which would double the time that a flood takes.
    fn drop_from_longest(
        &mut self,
        newest: (Index, Option<PacketId>),
        pool: &mut Pool,
        events: &mut QdiscEvents,
    ) -> Option<(PacketId, Index)> {
        let (length, longest) = self.slots.longest();
        let index = if length > 1 { longest? } else { self.slots.in_turn()? };
        let queue = &mut self.slots.get_mut(index).queue;
        let packet = match (self.headdrop, newest) {
            (true, _) => queue.pop(pool),
            (false, (entered, before)) if entered == index => queue.take_after(before, pool),
            (false, _) => queue.pop_back(pool),
        }?;
        let is_empty = queue.is_empty();
        self.slots.shortened(index);
        if is_empty {
            self.slots.leave();
        }
        self.forget(packet, pool);
        events.drop(packet, Reason::OVERLIMIT);
        Some((packet, index))
    }

    /// The queue whose turn it is, after those that have used up their allotments.
    fn spend_turns(&mut self) -> Option<Index> {
        loop {
            let index = self.slots.in_turn()?;
            let slot = self.slots.get_mut(index);
            if slot.allot > 0 {
                return Some(index);
            }
            slot.allot += self.quantum_bytes as i32;
            self.slots.pass_on();
        }
    }

    /// Sorts all packets into queues anew (`sfq_rehash`).
    fn rehash(&mut self, pool: &mut Pool, events: &mut QdiscEvents) {
        let mut all = Fifo::new();
        for index in self.slots.indices() {
            if self.slots.get(index).queue.is_empty() {
                continue;
            }
            while let Some(packet) = self.pop(index, pool) {
                all.push(packet, pool);
            }
            self.slots.get_mut(index).watch = Watch::default();
        }
        self.slots.leave_all();
        while let Some(packet) = all.pop(pool) {
            let hash = self.hash(packet, pool);
            let found = self.slots.find(hash).or_else(|| self.slots.claim(hash));
            let Some(index) = found.filter(|&index| self.slots.get(index).queue.packets() < self.depth_packets) else {
                events.drop(packet, Reason::OVERLIMIT);
                continue;
            };
            if let Some(red) = &self.red {
                let slot = self.slots.get_mut(index);
                red.early.update(&mut slot.watch, slot.queue.bytes());
            }
            self.push(index, packet, pool);
        }
    }
}

impl Red {
    fn new(parameters: &scenario::FlowRed) -> Result<Self, String> {
        let curve = parameters.curve().map_err(|error| format!("sfq: {error}"))?;
        Ok(Self { early: RedCore::new(curve), ecn: parameters.ecn, harddrop: parameters.harddrop })
    }
}

impl Perturbation {
    /// If the network was built with the discipline, its timer has been running since then, so its phase is arbitrary.
    fn new(period_s: u32, attachment: Attachment, random: &mut Random) -> Self {
        let timers = Timers::of_node(attachment.node, attachment.seed);
        let period_ns = u64::from(period_s) * 1_000_000_000;
        let after_ns = if attachment.now_ns == 0 { random.below(period_ns) } else { period_ns };
        Self { timers, period_ns, due_ns: timers.expiry_ns(attachment.now_ns, after_ns) }
    }
}

#[cfg(test)]
mod tests;
