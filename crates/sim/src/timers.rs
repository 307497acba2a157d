//! How precise a host's timers are (the kernel's `kernel/time/timer.c`).
//!
//! Linux counts in jiffies, 4 ms each with Debian's `CONFIG_HZ=250`. It sorts timers into a wheel whose buckets become
//! coarser with distance: 4 ms up to 252 ms, 32 ms up to 2 s, 256 ms up to 16 s, and so on. No timer expires early, so
//! each may be late by up to one bucket. For example, a SYN is retransmitted after 1.000 to 1.032 s. As a result,
//! retransmissions drift out of the rhythm in which the originals were lost.
//!
//! Timers that use the kernel's high-resolution clock are exact here: pacing, and the compression of acknowledgements.

use bufferscope_programs::Uniform;
use bufferscope_scenario::NodeIndex;

use crate::random::{Random, Stream};

/// One jiffy (`1 / CONFIG_HZ`).
const TICK_NS: u64 = 4_000_000;
/// The number of buckets of the finest level that a new timer may use (`LVL_START(1)`).
const FINEST: u64 = 63;
/// How much coarser each level is than the one before, as a shift (`LVL_CLK_SHIFT`).
const LEVEL_SHIFT: u32 = 3;
const LEVELS: u32 = 8;

/// How precise a host's timers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timers {
    /// Exact to the nanosecond, unlike in any kernel. This makes everything else easier to reason about.
    Exact,
    /// In jiffies, the first of which began `age_ns` before time 0.
    Jiffies {
        /// How long the host's clock has been ticking at time 0.
        age_ns: u64,
    },
}

/// The earlier of two times, either of which may be unset.
#[inline]
pub(crate) fn earlier(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

impl Timers {
    /// Ages below this give different results, and larger ages repeat them, for timers of up to 16 s.
    const AGES_NS: u64 = TICK_NS << (2 * LEVEL_SHIFT);

    /// The timers of a node. Each node's clock has its own phase, because real hosts are not switched on at the same
    /// moment.
    pub(crate) fn of_node(node: NodeIndex, seed: u64) -> Self {
        let mut random = Random::new(seed, Stream::Clock(node.into()));
        Self::Jiffies { age_ns: random.below(Self::AGES_NS) }
    }

    /// A timeout as the kernel stores it, rounded up to whole jiffies.
    #[inline]
    pub(crate) fn timeout_ns(self, timeout_ns: u64) -> u64 {
        match self {
            Self::Exact => timeout_ns,
            Self::Jiffies { .. } => timeout_ns.div_ceil(TICK_NS) * TICK_NS,
        }
    }

    /// The time on the host's jiffies clock, counted from when that clock began (`tcp_jiffies32`).
    #[inline]
    pub(crate) fn clock_ns(self, now_ns: u64) -> u64 {
        match self {
            Self::Exact => now_ns,
            Self::Jiffies { age_ns } => (now_ns + age_ns) / TICK_NS * TICK_NS,
        }
    }

    /// When a timer that is set now expires (`calc_wheel_index`).
    #[inline]
    pub(crate) fn expiry_ns(self, now_ns: u64, timeout_ns: u64) -> u64 {
        let Self::Jiffies { age_ns } = self else { return now_ns + timeout_ns };
        let ticks = timeout_ns.div_ceil(TICK_NS);
        let level = (1..LEVELS).take_while(|level| ticks >= FINEST << (LEVEL_SHIFT * (level - 1))).count() as u32;
        let expires = (now_ns + age_ns) / TICK_NS + ticks;
        let bucket = (expires >> (LEVEL_SHIFT * level)) + 1;
        (bucket << (LEVEL_SHIFT * level)) * TICK_NS - age_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const YOUNG: Timers = Timers::Jiffies { age_ns: 0 };

    #[test]
    fn the_clock_of_jiffies_shows_the_last_tick() {
        let shown = [3, 4, 7, 8].map(|ms| YOUNG.clock_ns(ms * MS) / MS);
        assert_eq!(shown, [0, 4, 4, 8]);
        // A clock that began 1 ms before time 0 ticks 1 ms earlier.
        assert_eq!(Timers::Jiffies { age_ns: MS }.clock_ns(3 * MS), 4 * MS);
    }

    #[test]
    fn a_short_timer_is_up_to_one_jiffy_late() {
        // 40 ms are 10 jiffies, counted from the current one. An eleventh makes sure that the timer is not early.
        assert_eq!(YOUNG.expiry_ns(0, 40 * MS), 44 * MS);
        assert_eq!(YOUNG.expiry_ns(4 * MS - 1, 40 * MS), 44 * MS);
        assert_eq!(YOUNG.expiry_ns(4 * MS, 40 * MS), 48 * MS);
        // 41 ms are 11 jiffies.
        assert_eq!(YOUNG.expiry_ns(0, 41 * MS), 48 * MS);
        assert_eq!(YOUNG.timeout_ns(41 * MS), 44 * MS);
    }

    #[test]
    fn a_timer_of_a_second_goes_off_on_a_multiple_of_32_ms() {
        // 250 jiffies are more than 63, so buckets have 8 jiffies. 250 / 8 = 31 with a remainder: bucket 32, at 256
        // jiffies.
        assert_eq!(YOUNG.expiry_ns(0, 1000 * MS), 1024 * MS);
        // 256 / 8 = 32: bucket 33.
        assert_eq!(YOUNG.expiry_ns(24 * MS, 1000 * MS), 1056 * MS);
        // A clock that is 3 jiffies older reaches the bucket 12 ms earlier.
        assert_eq!(Timers::Jiffies { age_ns: 12 * MS }.expiry_ns(0, 1000 * MS), 1012 * MS);
    }

    #[test]
    fn levels_begin_at_63_504_and_4032_jiffies() {
        for (ticks, bucket) in [(62, 1), (63, 8), (503, 8), (504, 64), (4031, 64), (4032, 512)] {
            let timeout_ns = ticks * TICK_NS;
            let expiry_ns = YOUNG.expiry_ns(0, timeout_ns);
            assert_eq!(expiry_ns % (bucket * TICK_NS), 0, "{ticks} jiffies");
            assert!(expiry_ns > timeout_ns && expiry_ns <= timeout_ns + bucket * TICK_NS, "{ticks} jiffies");
        }
    }

    #[test]
    fn the_longest_timeout_has_a_bucket_too() {
        assert!(YOUNG.expiry_ns(u64::MAX >> 8, 120_000 * MS) > (u64::MAX >> 8) + 120_000 * MS);
    }

    #[test]
    fn exact_timers_fire_when_they_are_set_to() {
        assert_eq!(Timers::Exact.expiry_ns(3, 39), 42);
        assert_eq!(Timers::Exact.timeout_ns(39), 39);
    }
}
