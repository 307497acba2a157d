//! `pie`: proportional integral controller enhanced. Drops arriving packets at random, with a probability that a timer
//! adapts to the queueing delay.
//!
//! Source: RFC 8033, as implemented in Linux (`include/net/pie.h`, `net/sched/sch_pie.c`). Linux differs from the RFC's
//! pseudocode, and this file follows Linux:
//! - times are in ticks of 64 ns, and probabilities are integers of 56 bits; the probability is scaled down in smaller
//!   steps where it is small;
//! - the delay is that of the packet that left last, unless the rate at which the queue drains is estimated;
//! - the timer counts jiffies: an update every 15 ms is one every 20 ms with 250 jiffies a second;
//! - the accumulated probability keeps drops apart, and forces one at last (the RFC's section 5.4, with other bounds).
//!
//! Departs: the length of a packet of several segments has the headers of each, where the kernel counts one.

use bufferscope_programs::Uniform;
use bufferscope_scenario::sizes::{ETHERNET_HEADER_BYTES, FRAME_BYTES};
use bufferscope_scenario::{self as scenario, Reason};

use super::{Dequeued, Discipline, Fates, Place, drop_surplus};
use crate::network::pool::{Backlog, Fifo, PacketId, Pool};
use crate::network::xmit::Xmit;
use crate::random::{Random, Stream};
use crate::timers::Timers;

/// A point or span of time in units of 64 ns (`psched_time_t`).
type Ticks = u64;

const TICKS_PER_SECOND: Ticks = ticks(1_000_000_000);
/// A burst of this length passes unharmed.
const BURST_ALLOWANCE: Ticks = ticks(150_000_000);
/// A longer delay raises the probability by another 2 %.
const LONG_DELAY: Ticks = ticks(250_000_000);

/// When a new discipline's probability is updated first (`pie_init`).
const FIRST_UPDATE_NS: u64 = 500_000_000;

/// Certainty, as a probability (`MAX_PROB`).
const CERTAIN: u64 = u64::MAX >> 8;

/// While this many bytes wait, the rate at which the queue drains can be measured (`QUEUE_THRESHOLD`).
const MEASURED_BYTES: u32 = 1 << 14;
/// Fraction bits of the rate (`PIE_SCALE`).
const RATE_SHIFT: u32 = 8;

#[derive(Debug)]
pub(crate) struct Pie {
    queue: Fifo,
    limit_packets: u32,
    ecn: bool,
    bytemode: bool,
    /// Boxed to keep the discipline small.
    controller: Box<Controller>,
    random: Random,
    timers: Timers,
    tupdate_ns: u64,
    /// When the timer is due.
    due_ns: u64,
}

/// What adapts the probability (`struct pie_vars`, and the parameters that it reads).
#[derive(Debug)]
struct Controller {
    target: Ticks,
    alpha: u64,
    beta: u64,
    probability: u64,
    /// The sum of the probabilities with which packets were spared since the last drop.
    accumulated: u64,
    delay: Ticks,
    /// The delay at the last update.
    last_delay: Ticks,
    /// What is left of the burst allowance.
    burst: Ticks,
    /// When a packet last left; with a rate estimate, when the present measurement began.
    left_at: Option<Ticks>,
    estimate: Option<Estimate>,
}

/// The rate at which the queue drains.
#[derive(Debug, Default)]
struct Estimate {
    /// Bytes that have left since the present measurement began.
    bytes: Option<u32>,
    /// The average, in bytes per tick with eight fraction bits; 0 before the first measurement.
    rate: u32,
}

impl Discipline for Pie {
    type Parameters = scenario::Pie;

    const KEEPS_TIME: bool = true;

    fn new(parameters: &scenario::Pie, place: Place) -> Result<Self, String> {
        let mut random = Random::new(place.seed, Stream::Qdisc(place.port));
        let timers = Timers::of_node(place.node, place.seed);
        // If the network was built with it, the kernel's timer has been running since then, so its phase is arbitrary.
        let after_ns = if place.now_ns == 0 { random.below(parameters.tupdate_ns) } else { FIRST_UPDATE_NS };
        let due_ns = timers.expiry_ns(place.now_ns, after_ns);
        Ok(Self {
            queue: Fifo::new(),
            limit_packets: parameters.limit_packets,
            ecn: parameters.ecn,
            bytemode: parameters.bytemode,
            controller: Box::new(Controller::new(parameters)),
            random,
            timers,
            tupdate_ns: parameters.tupdate_ns,
            due_ns,
        })
    }

    fn enqueue(&mut self, packet: PacketId, _now_ns: u64, pool: &mut Pool, fates: &mut Fates) -> Xmit {
        let reason = if self.queue.packets() >= self.limit_packets {
            Reason::OVERLIMIT
        } else if !self.drops_early(pool.header(packet).ip_bytes + ETHERNET_HEADER_BYTES)
            || self.mark(packet, pool, fates)
        {
            self.queue.push(packet, pool);
            return Xmit::Queued;
        } else {
            Reason::PIE
        };
        self.controller.accumulated = 0;
        fates.drop(packet, reason);
        Xmit::Dropped
    }

    fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, _fates: &mut Fates) -> Dequeued {
        let Some(packet) = self.queue.pop(pool) else { return Dequeued::Nothing };
        let header = pool.header(packet);
        let bytes = header.ip_bytes + ETHERNET_HEADER_BYTES;
        let delay = ticks(now_ns) - ticks(header.at_ns);
        self.controller.on_departure(ticks(now_ns), delay, bytes, self.queue.bytes() as u32);
        Dequeued::Packet(packet)
    }

    /// `pie_change`: the probability and the timer stay, and packets over a lowered limit are dropped from the head.
    fn change(&mut self, to: Self, pool: &Pool, fates: &mut Fates) {
        self.limit_packets = to.limit_packets;
        self.ecn = to.ecn;
        self.bytemode = to.bytemode;
        self.tupdate_ns = to.tupdate_ns;
        self.controller.change(*to.controller);
        drop_surplus(self.limit_packets, &mut self.queue, pool, fates);
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.queue.iter(pool).for_each(visit);
    }

    fn timer(&self) -> Option<u64> {
        Some(self.due_ns)
    }

    fn on_timer(&mut self, now_ns: u64, _pool: &mut Pool, _fates: &mut Fates) {
        self.controller.update(self.queue.bytes() as u32);
        self.due_ns = self.timers.expiry_ns(now_ns, self.tupdate_ns);
    }
}

impl Pie {
    /// Is the arriving packet to be dropped, or marked (`pie_drop_early`)?
    fn drops_early(&mut self, bytes: u32) -> bool {
        let controller = &mut *self.controller;
        let is_short = controller.delay < controller.target / 2 && controller.probability < CERTAIN / 5;
        if controller.burst > 0 || is_short || self.queue.bytes() < 2 * u64::from(FRAME_BYTES) {
            return false;
        }
        let probability = if self.bytemode && bytes <= FRAME_BYTES {
            u64::from(bytes).wrapping_mul(controller.probability / u64::from(FRAME_BYTES))
        } else {
            controller.probability
        };
        controller.accumulated = if probability == 0 { 0 } else { controller.accumulated.wrapping_add(probability) };
        if controller.accumulated < CERTAIN / 100 * 85 {
            return false;
        }
        if controller.accumulated >= CERTAIN / 2 * 17 {
            return true;
        }
        let drops = self.random.bits() >> 8 < probability;
        if drops {
            controller.accumulated = 0;
        }
        drops
    }

    fn mark(&self, packet: PacketId, pool: &mut Pool, fates: &mut Fates) -> bool {
        self.ecn && self.controller.probability <= CERTAIN / 10 && fates.mark(packet, Reason::PIE_MARK, pool)
    }
}

impl Controller {
    fn new(parameters: &scenario::Pie) -> Self {
        let weight = |sixteenths: u32| (u64::from(sixteenths) * (CERTAIN / TICKS_PER_SECOND)) >> 4;
        Self {
            target: ticks(parameters.target_ns / 1000 * 1000),
            alpha: weight(parameters.alpha),
            beta: weight(parameters.beta),
            probability: 0,
            accumulated: 0,
            delay: 0,
            last_delay: 0,
            burst: BURST_ALLOWANCE,
            left_at: None,
            estimate: parameters.dq_rate_estimator.then(Estimate::default),
        }
    }

    /// Takes over the parameters of `to`.
    fn change(&mut self, to: Self) {
        (self.target, self.alpha, self.beta) = (to.target, to.alpha, to.beta);
        if self.estimate.is_some() != to.estimate.is_some() {
            self.estimate = to.estimate;
        }
    }

    /// A packet of so many bytes leaves after `delay`; `backlog` bytes stay (`pie_process_dequeue`).
    fn on_departure(&mut self, now: Ticks, delay: Ticks, bytes: u32, backlog: u32) {
        let passed = if self.estimate.is_some() {
            self.measure(now, bytes, backlog)
        } else {
            self.delay = if backlog == 0 { 0 } else { delay };
            self.left_at.replace(now).map_or(0, |before| (now - before) as u32)
        };
        self.burst = self.burst.saturating_sub(passed.into());
    }

    /// Measures the rate at which the queue drains. Returns how long a measurement took that ends now.
    fn measure(&mut self, now: Ticks, bytes: u32, backlog: u32) -> u32 {
        let Some(Estimate { bytes: measured, rate }) = &mut self.estimate else { return 0 };
        if backlog >= MEASURED_BYTES && measured.is_none() {
            self.left_at = Some(now);
            *measured = Some(0);
        }
        let (Some(sum), Some(began)) = (measured.as_mut(), self.left_at) else { return 0 };
        *sum += bytes;
        let passed = (now - began) as u32;
        if *sum < MEASURED_BYTES || passed == 0 {
            return 0;
        }
        let newest = (*sum << RATE_SHIFT) / passed;
        *rate = if *rate == 0 { newest } else { *rate - (*rate >> 3) + (newest >> 3) };
        if backlog < MEASURED_BYTES {
            *measured = None;
        } else {
            *measured = Some(0);
            self.left_at = Some(now);
        }
        passed
    }

    /// Adapts the probability to the delay, with `backlog` bytes waiting (`pie_calculate_probability`).
    fn update(&mut self, backlog: u32) {
        let (delay, last_delay) = match &self.estimate {
            None => (self.delay, self.last_delay),
            Some(estimate) => {
                self.last_delay = self.delay;
                ((backlog << RATE_SHIFT).checked_div(estimate.rate).unwrap_or(0).into(), self.delay)
            }
        };
        let shift = self.shift();
        // As in the kernel, differences are those of unsigned numbers, and their sum is read as a signed one.
        let above_target = (self.alpha >> shift).wrapping_mul(delay.wrapping_sub(self.target));
        let growth = (self.beta >> shift).wrapping_mul(delay.wrapping_sub(last_delay));
        let mut change = above_target.wrapping_add(growth) as i64;
        if change > (CERTAIN / 50) as i64 && self.probability >= CERTAIN / 10 {
            change = (CERTAIN / 100 * 2) as i64;
        }
        if delay > LONG_DELAY {
            change = change.wrapping_add((CERTAIN / 50) as i64);
        }
        let changed = self.probability.checked_add_signed(change);
        self.probability = changed.unwrap_or(if change > 0 { CERTAIN } else { 0 });
        let (overflowed, is_known) = (changed.is_none() && change > 0, delay > 0 || backlog == 0);
        if delay == 0 && last_delay == 0 && is_known && !overflowed {
            self.probability -= self.probability / 64;
        }
        self.delay = delay;
        let is_short = |delay: Ticks| delay < self.target / 2;
        let is_measured = self.estimate.as_ref().is_none_or(|estimate| estimate.rate > 0);
        if is_short(self.delay) && is_short(self.last_delay) && self.probability == 0 && is_measured {
            self.start_afresh();
        }
        if self.estimate.is_none() {
            self.last_delay = delay;
        }
    }

    /// By how much the weights are scaled down where the probability is small.
    fn shift(&self) -> u32 {
        if self.probability >= CERTAIN / 10 {
            return 0;
        }
        let steps = (2..=6).take_while(|power| self.probability < CERTAIN / 10_u64.pow(*power)).count() as u32;
        1 + 2 * steps
    }

    /// There is no congestion: the next burst passes unharmed again (`pie_vars_init`).
    fn start_afresh(&mut self) {
        self.burst = BURST_ALLOWANCE;
        self.left_at = None;
        self.accumulated = 0;
        if let Some(estimate) = &mut self.estimate {
            *estimate = Estimate::default();
        }
    }
}

/// A time as the kernel's packet schedulers count it (`PSCHED_NS2TICKS`).
const fn ticks(ns: u64) -> Ticks {
    ns >> 6
}

#[cfg(test)]
#[path = "pie_tests.rs"]
mod tests;
