//! Early detection by the average of a queue, which `red`, `choke` and `sfq` share.
//!
//! Source: Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance" (1993), and Floyd, Gummadi
//! and Shenker, "Adaptive RED" (2001), as implemented in Linux' `include/net/red.h`, with the constants that `tc`
//! computes ([`Curve`]):
//! - every arriving packet updates the average with the queue that it finds; the average is a fixed-point number with
//!   `Wlog` fraction bits;
//! - while the average is between `min` and `max`, one uniform random number decides how many packets pass until the
//!   next drop, so that drops are spaced evenly and not clustered;
//! - from `max` on, every packet is dropped; there is no "gentle" part;
//! - the first packet after an idle time ages the average by a table and adds nothing to it.

use bufferscope_scenario::{Curve, IdleTable};

use crate::random::Random;

/// A hundredth as a fraction of 32 bits.
const PER_CENT: u32 = 42_949_673;
/// The range of an adapted probability.
const LEAST: u32 = PER_CENT;
const MOST: u32 = 50 * PER_CENT;

/// The constants (`struct red_parms`).
#[derive(Debug)]
pub(crate) struct RedCore {
    /// Thresholds of the average, as fixed-point numbers.
    pub(crate) min: u64,
    pub(crate) max: u64,
    /// The newest queue weighs `2^-weight_log`.
    pub(crate) weight_log: u32,
    /// The inverse slope of the marking probability: `2^32 P / (max - min)`.
    per_unit: u32,
    /// The highest probability below `max`, as a fraction of 32 bits.
    probability: u32,
    span: u32,
}

/// The state of one queue (`struct red_vars`).
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The average, with `weight_log` fraction bits.
    pub(crate) average: u64,
    /// Packets since the last drop; `None` while the average is not between the thresholds.
    pub(crate) since_drop: Option<u64>,
    /// A random number, uniform in `[0, (max - min) / P)`.
    next_drop: u64,
}

/// The idle time of a queue, and the table by which its average decays.
#[derive(Debug)]
pub(crate) struct Idle {
    /// Boxed to keep disciplines small.
    table: Box<IdleTable>,
    /// Since when the queue has been empty and the wire free.
    since_ns: Option<u64>,
}

/// The decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    RedCore,
    Forced,
}

impl RedCore {
    /// `red_set_parms`.
    pub(crate) fn new(curve: Curve) -> Self {
        let span = curve.max.saturating_sub(curve.min).max(1) as u32;
        Self {
            min: curve.min << curve.shift,
            max: curve.max << curve.shift,
            weight_log: curve.shift,
            per_unit: (curve.probability / span).max(1),
            probability: curve.probability,
            span,
        }
    }

    /// Updates the average of a queue that was not idle with the length that an arriving packet finds.
    #[inline]
    pub(crate) fn update(&self, watch: &mut Watch, length: u64) {
        watch.average = watch.average - (watch.average >> self.weight_log) + length;
    }

    /// `red_action`.
    #[inline]
    pub(crate) fn verdict(&self, watch: &mut Watch, random: &mut Random) -> Verdict {
        if watch.average < self.min {
            watch.since_drop = None;
            Verdict::Pass
        } else if watch.average >= self.max {
            watch.since_drop = None;
            Verdict::Forced
        } else if self.is_next(watch, random) {
            Verdict::RedCore
        } else {
            Verdict::Pass
        }
    }

    /// Whether this packet is to be dropped or marked, with the average between the thresholds.
    pub(crate) fn is_next(&self, watch: &mut Watch, random: &mut Random) -> bool {
        let Some(since_drop) = &mut watch.since_drop else {
            watch.since_drop = Some(0);
            watch.next_drop = self.draw(random);
            return false;
        };
        *since_drop += 1;
        let excess = (watch.average - self.min) >> self.weight_log;
        if excess * *since_drop < watch.next_drop {
            return false;
        }
        *since_drop = 0;
        watch.next_drop = self.draw(random);
        true
    }

    fn draw(&self, random: &mut Random) -> u64 {
        u64::from(random.next_u32() / self.per_unit)
    }

    /// The highest probability below `max`, as a fraction of 32 bits.
    #[cfg(test)]
    pub(crate) fn probability(&self) -> u32 {
        self.probability
    }

    /// The warning that `tc` would give.
    pub(crate) fn warning(&self, name: &str) -> Option<String> {
        let weight_log = self.weight_log;
        (weight_log >= 10).then(|| {
            format!("{name}: `burst` seems too large: the average follows the queue with a weight of 1/2^{weight_log}")
        })
    }

    /// Adapts the probability to an average, so that the average stays in the middle fifth between the thresholds
    /// (`red_adaptative_algo`).
    pub(crate) fn adapt(&mut self, average: u64) {
        let (average, min) = (average >> self.weight_log, self.min >> self.weight_log);
        let fifth = u64::from(self.span / 5);
        if average > min + 3 * fifth && self.probability <= MOST {
            self.probability += LEAST.min(self.probability / 4);
        } else if average < min + 2 * fifth && self.probability >= LEAST {
            self.probability = self.probability / 10 * 9;
        }
        // Unlike at the start, the quotient is rounded. The kernel's sum has 32 bits.
        self.per_unit = (self.probability.wrapping_add(self.span / 2) / self.span).max(1);
    }
}

impl Idle {
    /// A queue that has been idle since `since_ns`.
    pub(crate) fn new(table: IdleTable, since_ns: u64) -> Self {
        Self { table: Box::new(table), since_ns: Some(since_ns) }
    }

    /// The queue has been idle since that time.
    pub(crate) fn begin(&mut self, at_ns: u64) {
        self.since_ns.get_or_insert(at_ns);
    }

    /// The queue is not idle.
    pub(crate) fn interrupt(&mut self) {
        self.since_ns = None;
    }

    /// A packet arrives and finds a queue of this length: updates the average.
    #[inline]
    pub(crate) fn end(&mut self, early: &RedCore, watch: &mut Watch, length: u64, now_ns: u64) {
        match self.since_ns.take() {
            None => early.update(watch, length),
            Some(since_ns) => watch.average = self.table.aged(watch.average, (now_ns - since_ns) / 1000),
        }
    }

    /// The average as it would be if a packet arrived in the idle time.
    pub(crate) fn aged(&self, average: u64, now_ns: u64) -> u64 {
        self.since_ns.map_or(average, |since_ns| self.table.aged(average, (now_ns - since_ns) / 1000))
    }
}

#[cfg(test)]
mod tests;
