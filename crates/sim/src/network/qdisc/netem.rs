//! `netem`: delays, loses, duplicates and reorders packets.
//!
//! Source: Linux `net/sched/sch_netem.c` as of 6.1. Probabilities are fractions of 32 bits; a correlated number is a
//! weighted mean of a random one and the one before. Packets leave in the order of the times that they are given, those
//! of the same time in the order of their arrival. A packet that is delayed no longer counts as one of its socket's
//! (`skb_orphan_partial`), so its host's small queues do not hold back what follows it.
//!
//! A duplicate enters the discipline of the port anew, before the packet that it is a copy of (as of 6.1.107; before, it
//! did so even where that packet was then dropped at the limit), and is not duplicated again. Packets in the inner
//! discipline do not count against the limit.
//!
//! Departs: random numbers come from the run's seed. Corruption is left out. A packet's time in the queue is counted anew
//! from when it enters the inner discipline. In the kernel, a discipline around netem is not told of the packets that wait
//! in netem's own inner one.
//!
//! Later kernels take a number that equals a bound in the chain of four states for the next case (here, as in 6.1, it
//! changes nothing), which happens once in 2^32 packets.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use bufferscope_scenario::{self as scenario, Loss, NetemRate, NetemSlot, Reason, SlotDelay};

use super::{Dequeued, Discipline, Fates, Place, Qdisc};
use crate::network::pool::{Backlog, PacketId, Pool};
use crate::network::xmit::Xmit;
use crate::random::{Random, Stream};

#[path = "netem_tables.rs"]
mod tables;

/// `NETEM_DIST_SCALE`: the tables' unit of a standard deviation.
const SCALE: i64 = 8192;
const NS_PER_S: u64 = 1_000_000_000;

#[derive(Debug)]
pub(crate) struct Netem {
    /// Boxed to keep the discipline small.
    settings: Box<Settings>,
    random: Random,
    /// Packets that go first: the last one before the others.
    first: Vec<Waiting>,
    /// Packets in the order of their times.
    in_order: VecDeque<Waiting>,
    /// Packets that came when later ones were already there.
    between: BinaryHeap<Waiting>,
    arrived: u64,
    /// What is delayed.
    delayed: Backlog,
    inner: Option<Box<Qdisc>>,
}

/// A packet and when it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    at_ns: u64,
    /// Keeps those of one time in order.
    number: u64,
    packet: PacketId,
}

/// The parameters, and what the kernel begins anew with them.
#[derive(Debug)]
struct Settings {
    limit_packets: u64,
    delay_ns: i64,
    jitter_ns: i64,
    delay: Correlated,
    table: Option<&'static [i16]>,
    loss: Option<Chain>,
    ecn: bool,
    duplicate: Option<(u32, Correlated)>,
    reorder: Option<Reorder>,
    rate: Option<NetemRate>,
    slot: Option<Slot>,
}

/// When packets may leave, and how many more (`struct slotstate`).
#[derive(Debug)]
struct Slot {
    parameters: NetemSlot,
    next_ns: u64,
    packets_left: i64,
    bytes_left: i64,
}

#[derive(Debug)]
struct Reorder {
    probability: u32,
    correlated: Correlated,
    gap: u32,
    /// Packets since the last that went first.
    counter: u32,
}

/// Numbers of which each depends on the one before (`struct crndstate`).
#[derive(Clone, Copy, Debug)]
struct Correlated {
    rho: u32,
    last: u32,
}

/// What decides whether a packet is lost.
#[derive(Clone, Copy, Debug)]
enum Chain {
    Random(u32, Correlated),
    /// The state, and p13, p31, p32, p23, p14.
    State(State, [u32; 5]),
    /// Whether the state is bad, and p, r, h, 1-k.
    Gemodel(bool, [u32; 4]),
}

/// The states of the chain of four, 1 to 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    PassedInGap,
    PassedInBurst,
    LostInBurst,
    LostInGap,
}

impl Discipline for Netem {
    type Parameters = scenario::Netem;

    const KEEPS_TIME: bool = true;

    fn new(parameters: &scenario::Netem, place: Place) -> Result<Self, String> {
        let mut random = Random::new(place.seed, Stream::Qdisc(place.port));
        let cells = parameters.rate.map_or(1, |rate| i64::from(rate.cell_bytes) + i64::from(rate.cell_overhead_bytes));
        if parameters.rate.is_some_and(|rate| rate.cell_bytes > 0) && cells <= 0 {
            return Err("netem: cells of no size".to_owned());
        }
        Ok(Self {
            settings: Box::new(Settings::new(parameters, place.now_ns, &mut random)),
            random,
            first: Vec::new(),
            in_order: VecDeque::new(),
            between: BinaryHeap::new(),
            arrived: 0,
            delayed: Backlog::default(),
            inner: match &parameters.inner {
                Some(inner) => Some(Box::new(Qdisc::new(inner, place.inner(0))?)),
                None => None,
            },
        })
    }

    fn enqueue(&mut self, packet: PacketId, now_ns: u64, pool: &mut Pool, fates: &mut Fates) -> Xmit {
        let Self { settings, random, .. } = self;
        let duplicate = settings.duplicate.as_mut();
        let is_doubled = duplicate.is_some_and(|(probability, correlated)| *probability >= correlated.next(random));
        self.enqueue_with_copy(packet, is_doubled, now_ns, pool, fates)
    }

    fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, fates: &mut Fates) -> Dequeued {
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
                    inner.enqueue(next.packet, now_ns, pool, fates);
                    continue;
                }
                answer = Dequeued::NotBefore(from_ns);
            }
            return match self.inner.as_mut().map_or(Dequeued::Nothing, |inner| inner.dequeue(now_ns, pool, fates)) {
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

    /// `netem_change`: packets keep their times. More packets than a lowered limit stay.
    fn change(&mut self, to: Self, pool: &Pool, fates: &mut Fates) {
        self.settings = to.settings;
        match (&mut self.inner, to.inner) {
            (Some(inner), Some(to)) => inner.change(*to, pool, fates),
            (inner, to) => {
                inner
                    .iter()
                    .for_each(|inner| inner.each_packet(pool, &mut |packet| fates.drop(packet, Reason::PURGED)));
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

    fn on_timer(&mut self, now_ns: u64, pool: &mut Pool, fates: &mut Fates) {
        self.inner.iter_mut().for_each(|inner| inner.on_timer(now_ns, pool, fates));
    }

    fn warning(&self) -> Option<String> {
        self.inner.as_ref().and_then(|inner| inner.warning())
    }
}

impl Netem {
    /// The sender is not told of a loss. Of a packet and its copy, a loss takes one.
    fn enqueue_with_copy(
        &mut self,
        packet: PacketId,
        mut is_doubled: bool,
        now_ns: u64,
        pool: &mut Pool,
        fates: &mut Fates,
    ) -> Xmit {
        let Self { settings, random, .. } = self;
        if settings.loss.as_mut().is_some_and(|chain| chain.loses(random)) {
            let is_marked = settings.ecn && fates.mark(packet, Reason::NETEM_MARK, pool);
            if !is_marked && !std::mem::take(&mut is_doubled) {
                fates.drop(packet, Reason::NETEM_LOSS);
                return Xmit::Left;
            }
        }
        if self.delayed.packets >= settings.limit_packets {
            fates.drop(packet, Reason::OVERLIMIT);
            return Xmit::Dropped;
        }
        if is_doubled {
            let copy = fates.copy(packet, pool);
            self.enqueue_with_copy(copy, false, now_ns, pool, fates);
        }
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
        if is_orphan { Xmit::Left } else { Xmit::Queued }
    }

    /// The first of the delayed packets, and whether it came when later ones were already there. Of the same time, the
    /// kernel prefers those that did not.
    fn next(&self) -> Option<(bool, Waiting)> {
        let (between, in_order) = (self.between.peek(), self.in_order.front());
        match (between, in_order) {
            (Some(between), Some(in_order)) if between.at_ns >= in_order.at_ns => Some((false, *in_order)),
            (Some(between), _) => Some((true, *between)),
            (None, in_order) => Some((false, *in_order?)),
        }
    }

    /// A packet is no longer delayed. Returns its size.
    fn forget(&mut self, waiting: Waiting, pool: &Pool) -> u32 {
        let frame_bytes = pool.header(waiting.packet).frame_bytes;
        self.delayed.packets -= 1;
        self.delayed.bytes -= u64::from(frame_bytes);
        frame_bytes
    }
}

impl Settings {
    fn new(parameters: &scenario::Netem, now_ns: u64, random: &mut Random) -> Self {
        let loss = parameters.loss.map(|loss| match loss {
            Loss::Random([probability, rho]) => Chain::Random(fraction(probability), Correlated::new(rho, random)),
            Loss::State(parts) => Chain::State(State::PassedInGap, parts.map(fraction)),
            Loss::Gemodel([p, r, bad, good]) => {
                Chain::Gemodel(false, [fraction(p), fraction(r), u32::MAX - fraction(bad), fraction(good)])
            }
        });
        let reorder = parameters.reorder.map(|reorder| Reorder {
            probability: fraction(reorder.probability),
            correlated: Correlated::new(reorder.correlation, random),
            gap: reorder.gap,
            counter: 0,
        });
        Self {
            limit_packets: parameters.limit_packets.into(),
            delay_ns: parameters.delay_ns as i64,
            jitter_ns: parameters.jitter_ns.min(i32::MAX as u64) as i64,
            delay: Correlated::new(parameters.correlation, random),
            table: tables::of(parameters.distribution),
            loss,
            ecn: parameters.ecn,
            duplicate: parameters
                .duplicate
                .map(|[probability, rho]| (fraction(probability), Correlated::new(rho, random))),
            reorder,
            rate: parameters.rate,
            slot: parameters.slot.map(|parameters| Slot::new(parameters, now_ns)),
        }
    }

    /// When a packet leaves that arrives now. At a rate, it comes after the one that leaves last.
    fn time_to_send(&mut self, now_ns: u64, frame_bytes: u32, last_ns: Option<u64>, random: &mut Random) -> u64 {
        let mut delay_ns = self.drawn_delay_ns(random);
        let mut from_ns = now_ns;
        if let Some(rate) = &self.rate {
            if let Some(last_ns) = last_ns {
                delay_ns = (delay_ns - (last_ns as i64 - now_ns as i64)).max(0);
                from_ns = last_ns;
            }
            delay_ns += duration_ns(rate, frame_bytes) as i64;
        }
        from_ns.saturating_add_signed(delay_ns)
    }

    fn drawn_delay_ns(&mut self, random: &mut Random) -> i64 {
        if self.jitter_ns == 0 {
            return self.delay_ns;
        }
        deviating(self.delay_ns, self.jitter_ns, self.table, self.delay.next(random))
    }
}

/// The mean and a deviation, which a number chooses (`tabledist`).
fn deviating(mean: i64, sigma: i64, table: Option<&[i16]>, drawn: u32) -> i64 {
    let Some(table) = table else {
        return i64::from(drawn) % (2 * sigma) + mean - sigma;
    };
    let deviation = i64::from(table[drawn as usize % table.len()]);
    let fine = (sigma % SCALE) * deviation;
    let rounded = if fine >= 0 { fine + SCALE / 2 } else { fine - SCALE / 2 };
    rounded / SCALE + (sigma / SCALE) * deviation + mean
}

impl Slot {
    /// The first begins at once.
    fn new(parameters: NetemSlot, now_ns: u64) -> Self {
        let mut slot = Self { parameters, next_ns: now_ns, packets_left: 0, bytes_left: 0 };
        slot.fill();
        slot
    }

    /// When the slot begins in which a packet may leave that is delayed until `at_ns`.
    fn begins_ns(&mut self, at_ns: u64, now_ns: u64, random: &mut Random) -> u64 {
        if self.next_ns < at_ns {
            self.advance(now_ns, random);
        }
        self.next_ns
    }

    /// A packet leaves.
    fn take(&mut self, frame_bytes: u32, now_ns: u64, random: &mut Random) {
        self.packets_left -= 1;
        self.bytes_left -= i64::from(frame_bytes);
        if self.packets_left <= 0 || self.bytes_left <= 0 {
            self.advance(now_ns, random);
        }
    }

    /// `get_slot_next`.
    fn advance(&mut self, now_ns: u64, random: &mut Random) {
        let drawn = random.next_u32();
        let delay_ns = match self.parameters.delay {
            SlotDelay::Between([min, max]) => min as i64 + ((i64::from(drawn) * (max as i64 - min as i64)) >> 32),
            SlotDelay::Distributed(distribution, [mean, sigma]) => {
                deviating(mean as i64, (sigma as i64).max(1), tables::of(distribution), drawn)
            }
        };
        self.next_ns = now_ns.saturating_add_signed(delay_ns);
        self.fill();
    }

    fn fill(&mut self) {
        let most = |limit: Option<u32>| limit.map_or(i64::from(i32::MAX), i64::from);
        (self.packets_left, self.bytes_left) = (most(self.parameters.packets), most(self.parameters.bytes));
    }
}

impl Reorder {
    fn goes_first(&mut self, random: &mut Random) -> bool {
        let is_delayed = self.counter < self.gap - 1 || self.probability < self.correlated.next(random);
        self.counter = if is_delayed { self.counter.saturating_add(1) } else { 0 };
        !is_delayed
    }
}

impl Chain {
    /// Is the next packet lost (`loss_event`)?
    fn loses(&mut self, random: &mut Random) -> bool {
        match self {
            Self::Random(probability, correlated) => *probability > 0 && *probability >= correlated.next(random),
            Self::State(state, parts) => {
                let (next, is_lost) = state.next(random.next_u32(), parts);
                *state = next;
                is_lost
            }
            Self::Gemodel(is_bad, [p, r, h, good_loss]) => {
                // The loss is that of the state before the step.
                let was_bad = *is_bad;
                if random.next_u32() < if was_bad { *r } else { *p } {
                    *is_bad = !was_bad;
                }
                let drawn = random.next_u32();
                if was_bad { drawn > *h } else { drawn < *good_loss }
            }
        }
    }
}

impl State {
    /// The next state, and whether the packet is lost (`loss_4state`).
    fn next(self, drawn: u32, [p13, p31, p32, p23, p14]: &[u32; 5]) -> (Self, bool) {
        match self {
            Self::PassedInGap => {
                let second = p13.wrapping_add(*p14);
                if drawn < *p14 {
                    (Self::LostInGap, true)
                } else if *p14 < drawn && drawn < second {
                    (Self::LostInBurst, true)
                } else {
                    (Self::PassedInGap, false)
                }
            }
            Self::PassedInBurst if drawn < *p23 => (Self::LostInBurst, true),
            Self::PassedInBurst => (Self::PassedInBurst, false),
            Self::LostInBurst => {
                let second = p31.wrapping_add(*p32);
                if drawn < *p32 {
                    (Self::PassedInBurst, false)
                } else if *p32 < drawn && drawn < second {
                    (Self::PassedInGap, false)
                } else {
                    (Self::LostInBurst, second < drawn)
                }
            }
            Self::LostInGap => (Self::PassedInGap, false),
        }
    }
}

impl Correlated {
    fn new(rho: f64, random: &mut Random) -> Self {
        Self { rho: fraction(rho), last: random.next_u32() }
    }

    /// `get_crandom`.
    fn next(&mut self, random: &mut Random) -> u32 {
        let value = u64::from(random.next_u32());
        if self.rho == 0 {
            return value as u32;
        }
        let rho = u64::from(self.rho) + 1;
        let mixed = value.wrapping_mul((1 << 32) - rho).wrapping_add(u64::from(self.last) * rho);
        self.last = (mixed >> 32) as u32;
        self.last
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

/// A probability as `tc` passes it to the kernel.
fn fraction(part: f64) -> u32 {
    (part * f64::from(u32::MAX)).round_ties_even() as u32
}

/// How long a packet takes at a rate (`packet_time_ns`).
fn duration_ns(rate: &NetemRate, frame_bytes: u32) -> u64 {
    let mut bytes = (i64::from(frame_bytes) + i64::from(rate.packet_overhead_bytes)).max(0) as u64;
    if rate.cell_bytes > 0 {
        let cell_bytes = (i64::from(rate.cell_bytes) + i64::from(rate.cell_overhead_bytes)).max(1) as u64;
        bytes = bytes.div_ceil(rate.cell_bytes.into()) * cell_bytes;
    }
    bytes * NS_PER_S / (rate.rate_bps / 8).max(1)
}

#[cfg(test)]
#[path = "netem_tests.rs"]
mod tests;
