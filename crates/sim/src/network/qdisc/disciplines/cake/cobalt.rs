//! COBALT: CoDel and BLUE in parallel, one of each per queue (`cobalt_*` of `net/sched/sch_cake.c`).
//!
//! It differs from RFC 8289: the interval is both the delay of the first signal and the scale of the later ones, the
//! count falls again step by step while the queue is short, and dropping ends only when the state has decayed to rest.
//! A new queue has no interval yet (its `1 / sqrt(count)` is 0), so its first signal comes with the second packet that
//! is late. BLUE rises when the buffer overflows, and falls when the queue is found empty. It drops and never marks.
//!
//! Times are nanoseconds with a sign, as in the kernel. Fractions have 32 bits.

use bufferscope_programs::Uniform;

use crate::random::Random;

/// Before the start of any run. In the kernel these times are 0, and the clock has been running since the start.
const LONG_AGO_NS: i64 = -(1 << 50);

/// The parameters that depend on the rate of a tin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Parameters {
    pub(super) interval_ns: u64,
    pub(super) target_ns: u64,
    /// How long a full frame lasts at the rate; 0 without a rate.
    pub(super) mtu_ns: u64,
}

/// By how much BLUE raises its probability: 1/256.
const RISE: u32 = 1 << 24;
/// By how much BLUE lowers its probability: 1/4096.
const FALL: u32 = 1 << 20;

/// The state of a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cobalt {
    /// How often CoDel has signalled, less what has decayed.
    pub(super) count: u32,
    /// `1 / sqrt(count)`.
    inverse_sqrt: u32,
    /// When the next signal is due; without a count, until when the queue is active.
    pub(super) drop_next_ns: i64,
    /// When BLUE's probability last changed.
    blue_at_ns: i64,
    /// BLUE's probability.
    pub(super) probability: u32,
    dropping: bool,
}

/// What is to be done with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) drop: bool,
    /// CoDel has a signal, which is a mark if the packet can carry one.
    pub(super) marked: bool,
}

impl Cobalt {
    pub(super) const fn new() -> Self {
        Self {
            count: 0,
            inverse_sqrt: 0,
            drop_next_ns: LONG_AGO_NS,
            blue_at_ns: LONG_AGO_NS,
            probability: 0,
            dropping: false,
        }
    }

    /// Whether the state has decayed to rest.
    #[inline]
    pub(super) fn is_at_rest(&self, now_ns: i64) -> bool {
        self.probability == 0 && self.count == 0 && now_ns >= self.drop_next_ns
    }

    /// The first packet of the queue was dropped because the buffer overflows (`cobalt_queue_full`).
    pub(super) fn on_overflow(&mut self, parameters: &Parameters, now_ns: i64) {
        if self.may_adapt(parameters, now_ns) {
            self.probability = self.probability.saturating_add(RISE);
            self.blue_at_ns = now_ns;
        }
        self.dropping = true;
        self.drop_next_ns = now_ns;
        self.count = self.count.max(1);
    }

    /// The queue was to be served, and is empty (`cobalt_queue_empty`).
    pub(super) fn on_empty(&mut self, parameters: &Parameters, now_ns: i64) {
        if self.probability > 0 && self.may_adapt(parameters, now_ns) {
            self.probability = self.probability.saturating_sub(FALL);
            self.blue_at_ns = now_ns;
        }
        self.dropping = false;
        if self.count > 0 && now_ns >= self.drop_next_ns {
            self.step(self.count - 1, parameters);
        }
    }

    /// A packet leaves the queue after `sojourn_ns` (`cobalt_should_drop`). With `bulk_flows`, the delay may be as long
    /// as two full frames of each of them take. `is_capable` says whether it can be marked.
    #[inline]
    pub(super) fn judge(
        &mut self,
        parameters: &Parameters,
        now_ns: i64,
        sojourn_ns: u64,
        bulk_flows: u64,
        is_capable: bool,
        random: &mut Random,
    ) -> Verdict {
        let mut late_ns = now_ns - self.drop_next_ns;
        let mut is_due = self.count > 0 && late_ns >= 0;
        let mtu_ns = parameters.mtu_ns;
        let is_over = sojourn_ns > parameters.target_ns
            && sojourn_ns > mtu_ns.wrapping_mul(bulk_flows).wrapping_mul(2)
            && sojourn_ns > mtu_ns * 4;
        if is_over {
            if !self.dropping {
                self.dropping = true;
                self.drop_next_ns = now_ns + self.gap_ns(parameters);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        let mut verdict = Verdict { drop: false, marked: false };
        if is_due && self.dropping {
            verdict = Verdict { drop: !is_capable, marked: is_capable };
            self.step(self.count.saturating_add(1), parameters);
            late_ns = now_ns - self.drop_next_ns;
        } else {
            while is_due {
                self.step(self.count - 1, parameters);
                late_ns = now_ns - self.drop_next_ns;
                is_due = self.count > 0 && late_ns >= 0;
            }
        }
        if self.probability > 0 {
            verdict.drop |= ((random.bits() >> 32) as u32) < self.probability;
        }
        if self.count == 0 {
            self.drop_next_ns = now_ns + parameters.interval_ns as i64;
        } else if late_ns > 0 && !verdict.drop {
            self.drop_next_ns = now_ns;
        }
        verdict
    }

    /// Changes the count, and sets the time of the next signal by it.
    fn step(&mut self, count: u32, parameters: &Parameters) {
        self.count = count;
        self.inverse_sqrt = match INVERSE_SQRTS.get(count as usize) {
            Some(inverse_sqrt) => *inverse_sqrt,
            None => newton_step(self.inverse_sqrt, count),
        };
        self.drop_next_ns += self.gap_ns(parameters);
    }

    /// `interval / sqrt(count)` (`cobalt_control`). The kernel takes the lower 32 bits of the interval.
    fn gap_ns(&self, parameters: &Parameters) -> i64 {
        let interval_ns = u64::from(parameters.interval_ns as u32);
        ((interval_ns * u64::from(self.inverse_sqrt)) >> 32) as i64
    }

    /// Whether BLUE's probability was unchanged for a target's time.
    fn may_adapt(&self, parameters: &Parameters, now_ns: i64) -> bool {
        (now_ns - self.blue_at_ns) as u64 > parameters.target_ns
    }
}

/// One step of Newton's method: `y (3 - count y^2) / 2` (`cobalt_newton_step`). As in the kernel, a negative difference
/// wraps.
const fn newton_step(y: u32, count: u32) -> u32 {
    let y_squared = (y as u64 * y as u64) >> 32;
    let bracket = (3_u64 << 32).wrapping_sub(count as u64 * y_squared) >> 2;
    (bracket.wrapping_mul(y as u64) >> (32 - 2 + 1)) as u32
}

/// For small counts, for which a single step is not precise (`cobalt_cache_init`).
const INVERSE_SQRTS: [u32; 16] = {
    let mut cache = [u32::MAX; 16];
    let mut y = u32::MAX;
    let mut count = 1;
    while count < cache.len() {
        let mut step = 0;
        while step < 4 {
            y = newton_step(y, count as u32);
            step += 1;
        }
        cache[count] = y;
        count += 1;
    }
    cache
};

#[cfg(test)]
mod tests;
