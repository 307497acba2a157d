//! `netem`: delays, loses, duplicates, corrupts and reorders packets.
//!
//! Source: Linux `net/sched/sch_netem.c` as of 6.1. Probabilities are fractions of 32 bits; a correlated number is a
//! weighted mean of a random number and the previous one. Packets leave in the order of the times that they are given,
//! those of the same time in the order of their arrival. A delayed packet no longer counts for its socket
//! (`skb_orphan_partial`), so TCP small queues do not hold back the packets after it.
//!
//! A duplicate enters the discipline of the port anew, before the packet that it is a copy of (as of 6.1.107; before, it
//! did so even where that packet was then dropped at the limit), and is not duplicated again. Packets in the inner
//! discipline do not count against the limit.
//!
//! Corruption flips one bit of a frame. A packet of several segments is segmented then (`netem_segment`): the first is
//! corrupted, and the others enter the discipline anew, as if they had just arrived. A duplicate is made before that.
//!
//! Departs: random numbers come from the run's seed. A packet's time in the queue is counted anew from when it enters
//! the inner discipline. In the kernel, a discipline around netem is not notified of the packets queued in netem's own
//! inner one. A corrupted packet crosses the rest of its path, and its destination discards it because of its checksum;
//! in the kernel, the next node discards it if the bit is in the Ethernet or IP header. The bit may be anywhere in the
//! frame; in the kernel, it is in the linear part of the `sk_buff`. That is all of a packet of which the sender keeps a
//! copy, but only the headers of a segment that was split off, which is left unharmed more often: by 6 hits of 66
//! instead of 1514.
//!
//! Later kernels take a number that equals a bound in the chain of four states for the next case (here, as in 6.1, it
//! changes nothing), which happens once in 2^32 packets.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use bufferscope_programs::Uniform;
use bufferscope_scenario::sizes::ETHERNET_HEADER_BYTES;
use bufferscope_scenario::{self as scenario, Encapsulation, Reason};

pub(in crate::network) use self::settings::Settings;
use crate::network::pool::{Backlog, PacketId, Pool};
use crate::network::qdisc::{Attachment, Dequeued, Discipline, Qdisc, QdiscEvents, inside};
use crate::network::segmentation::split_off_first;
use crate::network::xmit::Xmit;
use crate::random::{Random, Stream};

mod drawing;
mod loss;
mod settings;
mod slot;
mod tables;

/// The bytes of a frame with the address of the station that sent it, which the receiver does not look at.
const ETHERNET_SOURCE: std::ops::Range<u64> = 6..12;

#[derive(Debug)]
pub(crate) struct Netem {
    /// Boxed to keep the discipline small.
    settings: Box<Settings>,
    random: Random,
    /// Reordered packets, which leave before all others, the last one first.
    first: Vec<Waiting>,
    /// Packets in the order of their times.
    in_order: VecDeque<Waiting>,
    /// Packets that arrived after packets with later times.
    between: BinaryHeap<Waiting>,
    arrived: u64,
    /// The backlog of delayed packets.
    delayed: Backlog,
    inner: Option<Box<Qdisc>>,
    /// What the link adds to each packet.
    link: Encapsulation,
}

/// A packet and when it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    at_ns: u64,
    /// Keeps those of one time in order.
    number: u64,
    packet: PacketId,
}

impl Discipline for Netem {
    type Parameters = scenario::Netem;

    const KEEPS_TIME: bool = true;

    fn new(parameters: &scenario::Netem, attachment: Attachment) -> Result<Self, String> {
        let mut random = Random::new(attachment.seed, Stream::Qdisc(attachment.port));
        let cells = parameters.rate.map_or(1, |rate| i64::from(rate.cell_bytes) + i64::from(rate.cell_overhead_bytes));
        if parameters.rate.is_some_and(|rate| rate.cell_bytes > 0) && cells <= 0 {
            return Err("netem: cells of no size".to_owned());
        }
        Ok(Self {
            settings: Box::new(Settings::new(parameters, attachment.now_ns, &mut random)),
            random,
            first: Vec::new(),
            in_order: VecDeque::new(),
            between: BinaryHeap::new(),
            arrived: 0,
            delayed: Backlog::default(),
            inner: match &parameters.inner {
                Some(inner) => Some(Box::new(Qdisc::new(inner, attachment.inner(0))?)),
                None => None,
            },
            link: attachment.encapsulation,
        })
    }

    fn enqueue(&mut self, packet: PacketId, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        self.accept(packet, true, now_ns, pool, events)
    }

    fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Dequeued {
        loop {
            if let Some(first) = self.first.pop() {
                self.forget(first, pool);
                return Dequeued::Packet(first.packet);
            }
            let mut answer = Dequeued::Nothing;
            if let Some((is_between, next)) = self.next() {
                let Self { settings, random, .. } = self;
                let slot_ns = settings.slot.as_mut().map_or(0, |slot| slot.begins_ns(next.at_ns, now_ns, random));
                let from_ns = next.at_ns.max(slot_ns);
                if from_ns <= now_ns {
                    if is_between {
                        self.between.pop()
                    } else {
                        self.in_order.pop_front()
                    };
                    let frame_bytes = self.forget(next, pool);
                    let Self { settings, random, inner, .. } = self;
                    if let Some(slot) = &mut settings.slot {
                        slot.take(frame_bytes, now_ns, random);
                    }
                    let Some(inner) = inner else { return Dequeued::Packet(next.packet) };
                    inner.enqueue(next.packet, now_ns, pool, events);
                    continue;
                }
                answer = Dequeued::NotBefore(from_ns);
            }
            return match self.inner.as_mut().map_or(Dequeued::Nothing, |inner| inner.dequeue(now_ns, pool, events)) {
                Dequeued::Packet(packet) => Dequeued::Packet(packet),
                later => answer.or_before(later),
            };
        }
    }

    fn backlog(&self) -> Backlog {
        [self.delayed, self.inner.as_ref().map_or_else(Backlog::default, |inner| inner.backlog())].into_iter().sum()
    }

    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        let all = self.first.iter().chain(&self.in_order).chain(&self.between);
        all.for_each(|waiting| visit(waiting.packet));
        self.inner.iter().for_each(|inner| inner.each_packet(pool, visit));
    }

    fn each_in_flow_queues(&self, pool: &Pool, visit: &mut dyn FnMut(u64, PacketId)) {
        if let Some(inner) = &self.inner {
            inner.each_in_flow_queues(pool, &mut |queue, packet| visit(inside(0, queue), packet));
        }
    }

    /// `netem_change`: packets keep their times. Packets over a lowered limit stay.
    fn change(&mut self, to: Self, pool: &Pool, events: &mut QdiscEvents) {
        self.settings = to.settings;
        match (&mut self.inner, to.inner) {
            (Some(inner), Some(to)) => inner.change(*to, pool, events),
            (inner, to) => {
                inner
                    .iter()
                    .for_each(|inner| inner.each_packet(pool, &mut |packet| events.drop(packet, Reason::PURGED)));
                *inner = to;
            }
        }
    }

    fn idle_since(&mut self, at_ns: u64) {
        self.inner.iter_mut().for_each(|inner| inner.idle_since(at_ns));
    }

    fn timer(&self) -> Option<u64> {
        self.inner.as_ref().and_then(|inner| inner.timer())
    }

    fn on_timer(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) {
        self.inner.iter_mut().for_each(|inner| inner.on_timer(now_ns, pool, events));
    }

    fn warning(&self) -> Option<String> {
        self.inner.as_ref().and_then(|inner| inner.warning())
    }
}

impl Netem {
    /// The sender is not notified of a loss. If a packet is both duplicated and lost, one of the two remains.
    fn accept(
        &mut self,
        packet: PacketId,
        may_double: bool,
        now_ns: u64,
        pool: &mut Pool,
        events: &mut QdiscEvents,
    ) -> Xmit {
        let Self { settings, random, .. } = self;
        let duplicate = settings.duplicate.as_mut().filter(|_| may_double);
        let mut is_doubled = duplicate.is_some_and(|(part, correlated)| *part >= correlated.next(random));
        if settings.loss.as_mut().is_some_and(|chain| chain.loses(random)) {
            let is_marked = settings.ecn && events.mark(packet, Reason::NETEM_MARK, pool);
            if !is_marked && !std::mem::take(&mut is_doubled) {
                events.drop(packet, Reason::NETEM_LOSS);
                return Xmit::Orphaned;
            }
        }
        let is_corrupt = settings.corrupt.as_mut().is_some_and(|(part, correlated)| *part >= correlated.next(random));
        if self.delayed.packets >= settings.limit_packets {
            events.drop(packet, Reason::OVERLIMIT);
            return Xmit::Dropped;
        }
        if is_doubled {
            let copy = events.copy(packet, pool);
            self.accept(copy, false, now_ns, pool, events);
        }
        if !is_corrupt {
            return self.delay(packet, now_ns, pool);
        }
        let Some(first) = split_off_first(packet, &self.link, pool) else {
            self.flip_bit(packet, pool);
            return self.delay(packet, now_ns, pool);
        };
        events.split(first);
        self.flip_bit(first, pool);
        let xmit = self.delay(first, now_ns, pool);
        while let Some(next) = split_off_first(packet, &self.link, pool) {
            events.split(next);
            self.accept(next, may_double, now_ns, pool, events);
        }
        self.accept(packet, may_double, now_ns, pool, events);
        xmit
    }

    /// Flips one bit of a packet's frame. The receiver's checksum detects every change except one of the source
    /// address.
    fn flip_bit(&mut self, packet: PacketId, pool: &mut Pool) {
        let header = pool.header_mut(packet);
        let byte = self.random.below(u64::from(ETHERNET_HEADER_BYTES + header.ip_bytes));
        if !ETHERNET_SOURCE.contains(&byte) {
            header.load.set_corrupt();
        }
    }

    /// Delays a packet, or reorders it to the front. Returns whether it still counts for its socket.
    fn delay(&mut self, packet: PacketId, now_ns: u64, pool: &Pool) -> Xmit {
        let Self { settings, random, .. } = self;
        let frame_bytes = pool.header(packet).frame_bytes;
        self.delayed.packets += 1;
        self.delayed.bytes += u64::from(frame_bytes);
        self.arrived += 1;
        let mut waiting = Waiting { at_ns: now_ns, number: self.arrived, packet };
        if settings.reorder.as_mut().is_some_and(|reorder| reorder.goes_first(random)) {
            self.first.push(waiting);
        } else {
            let last_ns = self.in_order.back().into_iter().chain(self.first.first()).map(|last| last.at_ns).max();
            waiting.at_ns = settings.time_to_send(now_ns, frame_bytes, last_ns, random);
            if self.in_order.back().is_some_and(|last| waiting.at_ns < last.at_ns) {
                self.between.push(waiting);
            } else {
                self.in_order.push_back(waiting);
            }
        }
        let is_orphan = settings.delay_ns > 0 || settings.jitter_ns > 0 || settings.rate.is_some();
        if is_orphan { Xmit::Orphaned } else { Xmit::Queued }
    }

    /// The first of the delayed packets, and whether it arrived after packets with later times. Among packets with the
    /// same time, the kernel prefers those that did not.
    fn next(&self) -> Option<(bool, Waiting)> {
        let (between, in_order) = (self.between.peek(), self.in_order.front());
        match (between, in_order) {
            (Some(between), Some(in_order)) if between.at_ns >= in_order.at_ns => Some((false, *in_order)),
            (Some(between), _) => Some((true, *between)),
            (None, in_order) => Some((false, *in_order?)),
        }
    }

    /// Removes a packet from the delayed ones. Returns its size.
    fn forget(&mut self, waiting: Waiting, pool: &Pool) -> u32 {
        let frame_bytes = pool.header(waiting.packet).frame_bytes;
        self.delayed.packets -= 1;
        self.delayed.bytes -= u64::from(frame_bytes);
        frame_bytes
    }
}

impl Ord for Waiting {
    /// The greatest leaves first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at_ns, other.number).cmp(&(self.at_ns, self.number))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests;
