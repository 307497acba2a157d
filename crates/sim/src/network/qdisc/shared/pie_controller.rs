//! The controller of `pie` and of each flow of `fq_pie`: it adapts a probability to a queue's delay, and decides with it
//! about arriving packets.
//!
//! Source: RFC 8033, as implemented in Linux (`include/net/pie.h`, `net/sched/sch_pie.c`). Linux differs from the RFC's
//! pseudocode, and this file follows Linux:
//! - times are in ticks of 64 ns, and probabilities are integers of 56 bits; the probability is scaled down in smaller
//!   steps where it is small;
//! - the delay is that of the packet that left last, unless the rate at which the queue drains is estimated;
//! - the accumulated probability keeps drops apart, and forces one at last (the RFC's section 5.4, with other bounds).
//!
//! Departs: the length of a packet of several segments has the headers of each, where the kernel counts one.

use bufferscope_programs::Uniform;
use bufferscope_scenario::sizes::{ETHERNET_HEADER_BYTES, FRAME_BYTES};

use crate::network::packet::Header;
use crate::random::Random;
use crate::timers::Timers;

/// A point or span of time in units of 64 ns (`psched_time_t`).
pub(crate) type Ticks = u64;

const TICKS_PER_SECOND: Ticks = ticks(1_000_000_000);
/// A burst of this length passes unharmed.
const BURST_ALLOWANCE: Ticks = ticks(150_000_000);
/// A longer delay raises the probability by another 2 %.
const LONG_DELAY: Ticks = ticks(250_000_000);

/// When a new discipline's probability is updated first (`pie_init`, `fq_pie_init`).
const FIRST_UPDATE_NS: u64 = 500_000_000;

/// Certainty, as a probability (`MAX_PROB`).
pub(crate) const CERTAIN: u64 = u64::MAX >> 8;

/// While this many bytes wait, the rate at which the queue drains can be measured (`QUEUE_THRESHOLD`).
const MEASURED_BYTES: u32 = 1 << 14;
/// Fraction bits of the rate (`PIE_SCALE`).
const RATE_SHIFT: u32 = 8;

/// The parameters of the controller (`struct pie_params`).
#[derive(Debug)]
pub(crate) struct Law {
    pub(crate) target: Ticks,
    pub(crate) alpha: u64,
    pub(crate) beta: u64,
    /// Drop small packets less often.
    bytemode: bool,
    /// Compute the delay from the rate at which the queue drains.
    estimates: bool,
}

/// The controller of one queue (`struct pie_vars`).
#[derive(Debug)]
pub(crate) struct Controller {
    pub(crate) probability: u64,
    /// The sum of the probabilities with which packets were spared since the last drop.
    pub(crate) accumulated: u64,
    pub(crate) delay: Ticks,
    /// The delay at the last update.
    pub(crate) last_delay: Ticks,
    /// What is left of the burst allowance.
    pub(crate) burst: Ticks,
    /// When a packet last left; with a rate estimate, when the current measurement began.
    pub(crate) left_at: Option<Ticks>,
    pub(crate) estimate: Estimate,
}

/// The rate at which the queue drains.
#[derive(Debug, Default)]
pub(crate) struct Estimate {
    /// Bytes that have left since the present measurement began.
    bytes: Option<u32>,
    /// The average, in bytes per tick with eight fraction bits; 0 before the first measurement.
    pub(crate) rate: u32,
}

/// When the timer of a discipline that is attached now is due first. If the network was built with it, the kernel's timer
/// has been running since then, so its phase is arbitrary.
pub(crate) fn first_update_ns(now_ns: u64, tupdate_ns: u64, timers: Timers, random: &mut Random) -> u64 {
    timers.expiry_ns(now_ns, if now_ns == 0 { random.below(tupdate_ns) } else { FIRST_UPDATE_NS })
}

/// The length of a packet as the kernel's controller counts it.
pub(crate) fn bytes_of(header: &Header) -> u32 {
    header.ip_bytes + ETHERNET_HEADER_BYTES
}

impl Law {
    /// With weights in 16ths.
    pub(crate) fn new(target_ns: u64, weights: [u32; 2], bytemode: bool, estimates: bool) -> Self {
        let weight = |sixteenths: u32| (u64::from(sixteenths) * (CERTAIN / TICKS_PER_SECOND)) >> 4;
        let [alpha, beta] = weights.map(weight);
        Self { target: ticks(target_ns / 1000 * 1000), alpha, beta, bytemode, estimates }
    }
}

impl Controller {
    pub(crate) fn new() -> Self {
        Self {
            probability: 0,
            accumulated: 0,
            delay: 0,
            last_delay: 0,
            burst: BURST_ALLOWANCE,
            left_at: None,
            estimate: Estimate::default(),
        }
    }

    /// An arriving packet was dropped, for any reason.
    pub(crate) fn on_drop(&mut self) {
        self.accumulated = 0;
    }

    /// Whether an arriving packet is to be dropped, or marked, with `backlog` bytes queued (`pie_drop_early`).
    pub(crate) fn drops_early(&mut self, bytes: u32, backlog: u64, law: &Law, random: &mut Random) -> bool {
        let is_short = self.delay < law.target / 2 && self.probability < CERTAIN / 5;
        if self.burst > 0 || is_short || backlog < 2 * u64::from(FRAME_BYTES) {
            return false;
        }
        let probability = if law.bytemode && bytes <= FRAME_BYTES {
            u64::from(bytes).wrapping_mul(self.probability / u64::from(FRAME_BYTES))
        } else {
            self.probability
        };
        self.accumulated = if probability == 0 { 0 } else { self.accumulated.wrapping_add(probability) };
        if self.accumulated < CERTAIN / 100 * 85 {
            return false;
        }
        if self.accumulated >= CERTAIN / 2 * 17 {
            return true;
        }
        let drops = random.bits() >> 8 < probability;
        if drops {
            self.accumulated = 0;
        }
        drops
    }

    /// A packet of this many bytes leaves after `delay`; `backlog` bytes stay (`pie_process_dequeue`).
    pub(crate) fn on_departure(&mut self, now: Ticks, delay: Ticks, bytes: u32, backlog: u32, law: &Law) {
        let passed = if law.estimates {
            self.measure(now, bytes, backlog)
        } else {
            self.delay = if backlog == 0 { 0 } else { delay };
            self.left_at.replace(now).map_or(0, |before| (now - before) as u32)
        };
        self.burst = self.burst.saturating_sub(passed.into());
    }

    /// Measures the rate at which the queue drains. Returns the duration of a measurement that ends now.
    fn measure(&mut self, now: Ticks, bytes: u32, backlog: u32) -> u32 {
        let Estimate { bytes: measured, rate } = &mut self.estimate;
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
    pub(crate) fn update(&mut self, backlog: u32, law: &Law) {
        let (delay, last_delay) = if law.estimates {
            self.last_delay = self.delay;
            ((backlog << RATE_SHIFT).checked_div(self.estimate.rate).unwrap_or(0).into(), self.delay)
        } else {
            (self.delay, self.last_delay)
        };
        let shift = self.shift();
        // As in the kernel, differences are those of unsigned numbers, and their sum is read as a signed one.
        let above_target = (law.alpha >> shift).wrapping_mul(delay.wrapping_sub(law.target));
        let growth = (law.beta >> shift).wrapping_mul(delay.wrapping_sub(last_delay));
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
        let is_short = |delay: Ticks| delay < law.target / 2;
        let is_measured = !law.estimates || self.estimate.rate > 0;
        if is_short(self.delay) && is_short(self.last_delay) && self.probability == 0 && is_measured {
            self.start_afresh();
        }
        if !law.estimates {
            self.last_delay = delay;
        }
    }

    /// The shift by which the weights are scaled down at small probabilities.
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
        self.estimate = Estimate::default();
    }
}

/// A time as the kernel's packet schedulers count it (`PSCHED_NS2TICKS`).
pub(crate) const fn ticks(ns: u64) -> Ticks {
    ns >> 6
}

#[cfg(test)]
mod tests;
