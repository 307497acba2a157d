//! The shaper: a clock that says when the next packet may leave, and advances by the duration of each packet. There is
//! no bucket: if the discipline is empty and the clock lags behind, it is set to the current time when a packet
//! arrives.

/// A rate as the kernel computes with it: a length times `factor >> shift` is a time in nanoseconds (`cake_set_rate`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rate {
    factor: u64,
    shift: u32,
}

/// Significant bits of a rate.
const RATE_BITS: u32 = 34;
/// In bytes per second.
const LEAST_RATE: u64 = 64;

impl Rate {
    /// Of this many bytes per second; 0: unlimited.
    pub(super) fn new(bytes_per_second: u64) -> Self {
        if bytes_per_second == 0 {
            return Self::default();
        }
        let (mut factor, mut shift) = ((1_000_000_000 << RATE_BITS) / bytes_per_second.max(LEAST_RATE), RATE_BITS);
        while factor >> RATE_BITS > 0 {
            factor >>= 1;
            shift -= 1;
        }
        Self { factor, shift }
    }

    #[inline]
    pub(super) fn is_unlimited(self) -> bool {
        self.factor == 0
    }

    /// How long this many bytes take.
    #[inline]
    pub(super) fn duration_ns(self, bytes: u32) -> u64 {
        u64::from(bytes).wrapping_mul(self.factor) >> self.shift
    }
}

/// The clock of the whole discipline.
#[derive(Debug)]
pub(super) struct Shaper {
    pub(super) rate: Rate,
    /// When the next packet may leave.
    next_ns: u64,
    /// When it may leave whatever was dropped: dropped packets advance only the other clock. While they keep that clock
    /// ahead of an empty discipline, this one lags behind the current time and lets a burst pass, as in the kernel.
    failsafe_ns: u64,
}

impl Shaper {
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, next_ns: 0, failsafe_ns: 0 }
    }

    /// A packet arrives at the empty discipline.
    #[inline]
    pub(super) fn wake(&mut self, now_ns: u64) {
        if self.next_ns < now_ns {
            (self.next_ns, self.failsafe_ns) = (now_ns, now_ns);
        }
    }

    /// When the next packet may leave, if that is later than now.
    #[inline]
    pub(super) fn not_before(&self, now_ns: u64) -> Option<u64> {
        let next_ns = self.next_ns.min(self.failsafe_ns);
        (next_ns > now_ns).then_some(next_ns)
    }

    /// A packet leaves or, with `dropped`, counts as sent.
    #[inline]
    pub(super) fn advance(&mut self, bytes: u32, dropped: bool) {
        let duration_ns = self.rate.duration_ns(bytes);
        self.next_ns += duration_ns;
        if !dropped {
            self.failsafe_ns += duration_ns + (duration_ns >> 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 MB/s: 1000 ns a byte. 10^9 << 34 / 10^6 has 44 bits, so ten are shifted out.
    #[test]
    fn a_length_is_a_time_as_in_the_kernel() {
        let rate = Rate::new(1_000_000);
        assert_eq!(rate, Rate { factor: 1000 << 24, shift: 24 });
        assert_eq!(rate.duration_ns(1514), 1_514_000);
        // 10^9 << 34 / 1.25 * 10^9 is less than 2^34: nothing is shifted out. 1514 * 0.8 = 1211.2.
        let fast = Rate::new(1_250_000_000);
        assert_eq!(fast, Rate { factor: 13_743_895_347, shift: 34 });
        assert_eq!(fast.duration_ns(1514), 1211);
        assert_eq!(Rate::new(1), Rate::new(64), "the kernel's lowest rate");
        assert_eq!(Rate::new(0).duration_ns(1514), 0);
        assert!(Rate::new(0).is_unlimited() && !fast.is_unlimited());
    }

    #[test]
    fn the_clock_runs_ahead_of_packets_and_does_not_lag_behind_an_empty_queue() {
        let mut shaper = Shaper::new(Rate::new(1_000_000));
        shaper.wake(5000);
        assert_eq!(shaper.not_before(5000), None);
        shaper.advance(1000, false);
        assert_eq!(shaper.not_before(5000), Some(1_005_000));
        assert_eq!(shaper.not_before(1_005_000), None);
        // Late by 95,000: the next may leave 95,000 earlier than a whole packet later.
        shaper.advance(1000, false);
        assert_eq!(shaper.not_before(1_100_000), Some(2_005_000));
        shaper.wake(1_200_000);
        assert_eq!(shaper.not_before(1_200_000), Some(2_005_000), "it is still ahead");
        shaper.wake(9_000_000);
        shaper.advance(1000, false);
        assert_eq!(shaper.not_before(9_000_000), Some(10_000_000), "no credit for idle times");
    }

    /// Of three packets, two are dropped and one leaves: the clock is three packets ahead, the other one and a half.
    #[test]
    fn dropped_packets_delay_the_next_by_half_a_packet_at_most() {
        let mut shaper = Shaper::new(Rate::new(1_000_000));
        shaper.wake(1);
        shaper.advance(1000, true);
        assert_eq!(shaper.not_before(1), None, "nothing has left yet");
        shaper.advance(1000, true);
        shaper.advance(1000, false);
        assert_eq!(shaper.not_before(1), Some(1_500_001));
    }
}
