//! The wire of a port: computes how long a frame takes at the current rate.

use std::hint::select_unpredictable;

use bufferscope_scenario::{RateSchedule, RateStep};

const NS_PER_S: u64 = 1_000_000_000;
const BITS_PER_BYTE: u64 = 8;

/// Serialises one frame at a time.
///
/// The rate at which a frame's first bit is sent applies to the whole frame. If the rate changes meanwhile, the new
/// rate applies from the next frame on.
///
/// Times are whole nanoseconds, rounded up for a frame that finds the wire idle. Frames sent back to back carry over
/// the rounding error, so that over a busy period the wire sends exactly at its rate and never faster.
#[derive(Debug)]
pub(crate) struct Wire {
    steps: Vec<RateStep>,
    /// The step of the rate schedule that applied when the last frame began.
    current: usize,
    /// When the last bit of the last frame is, or was, sent.
    free_at_ns: u64,
    /// The rounding error so far in this busy period, in units of 1/rate ns.
    credit: u64,
}

impl Wire {
    pub(crate) fn new(schedule: &RateSchedule) -> Self {
        Self { steps: schedule.steps().to_vec(), current: 0, free_at_ns: 0, credit: 0 }
    }

    /// Replaces the rate. The frame on the wire is finished at its own rate.
    pub(crate) fn set_rate(&mut self, schedule: &RateSchedule) {
        (self.steps, self.current, self.credit) = (schedule.steps().to_vec(), 0, 0);
    }

    /// The time from which the wire can accept another frame.
    #[inline]
    pub(crate) fn free_at(&self) -> u64 {
        self.free_at_ns
    }

    /// Sends a frame; the wire must be free. Returns when the last bit is sent.
    #[inline]
    pub(crate) fn send(&mut self, now_ns: u64, bytes: u32) -> u64 {
        debug_assert!(now_ns >= self.free_at_ns, "a wire sends one frame at a time");
        let changed = self.advance(now_ns);
        let credit = select_unpredictable(changed | (now_ns > self.free_at_ns), 0, self.credit);
        let rate = self.steps[self.current].bits_per_second;
        let owed = u64::from(bytes) * BITS_PER_BYTE * NS_PER_S;
        let duration_ns = owed.saturating_sub(credit).div_ceil(rate);
        self.credit = duration_ns * rate + credit - owed;
        self.free_at_ns = now_ns + duration_ns;
        self.free_at_ns
    }

    /// Moves to the rate step that applies at `now_ns`; returns whether the step has changed.
    #[inline]
    fn advance(&mut self, now_ns: u64) -> bool {
        let before = self.current;
        while self.steps.get(self.current + 1).is_some_and(|next| next.from_ns <= now_ns) {
            self.current += 1;
        }
        self.current != before
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MBIT: u64 = 1_000_000;

    fn wire(bits_per_second: u64) -> Wire {
        Wire::new(&RateSchedule::constant(bits_per_second).unwrap())
    }

    fn steps(steps: &[(u64, u64)]) -> Wire {
        let steps = steps.iter().map(|&(from_ns, bits_per_second)| RateStep { from_ns, bits_per_second }).collect();
        Wire::new(&RateSchedule::new(steps).unwrap())
    }

    #[test]
    fn a_full_frame_takes_1211200_ns_at_10_mbit() {
        // 1514 bytes are 12112 bits.
        let mut wire = wire(10 * MBIT);
        assert_eq!(wire.send(5, 1514), 1_211_205);
        assert_eq!(wire.send(1_211_205, 1514), 2_422_405);
    }

    #[test]
    fn rounding_is_handed_on_within_a_busy_period_and_ends_with_it() {
        // 1 byte at 7 Mbit/s takes 1142.86 ns. The ends: 1143, 2286, 3429, 4572, 5715, 6858, and 8000 after seven
        // bytes.
        let mut wire = wire(7 * MBIT);
        let ends: Vec<u64> = (0..7).map(|_| wire.send(wire.free_at(), 1)).collect();
        assert_eq!(ends, [1143, 2286, 3429, 4572, 5715, 6858, 8000]);
        assert_eq!(wire.send(8000, 1), 9143);
        assert_eq!(wire.send(10_000, 1), 11_143, "the wire was idle: rounded up afresh");
    }

    #[test]
    fn a_change_of_rate_applies_to_the_frame_that_is_sent_next() {
        let mut wire = steps(&[(0, 100 * MBIT), (100_000, 10 * MBIT), (5_000_000, 100 * MBIT)]);
        // The frame takes 121.12 us at 100 Mbit/s; it begins before the change and ends after it.
        assert_eq!(wire.send(0, 1514), 121_120);
        assert_eq!(wire.send(121_120, 1514), 121_120 + 1_211_200);
        assert_eq!(wire.send(5_000_000, 1514), 5_121_120, "a step holds from its first nanosecond on");
    }

    #[test]
    fn a_replaced_rate_applies_to_the_frame_that_is_sent_next() {
        // 12112 bits take 1730285.7 ns at 7 Mbit/s. The rounding error is counted at that rate, so it ends with it.
        let mut wire = wire(7 * MBIT);
        assert_eq!(wire.send(0, 1514), 1_730_286);
        wire.set_rate(&RateSchedule::constant(10 * MBIT).unwrap());
        assert_eq!(wire.free_at(), 1_730_286, "the frame on the wire is not affected");
        assert_eq!(wire.send(1_730_286, 1514), 1_730_286 + 1_211_200);
    }

    proptest! {
        #[test]
        fn a_busy_wire_sends_exactly_at_its_rate(
            rate in 1_000_u64..400_000_000_000,
            frames in prop::collection::vec(1_u32..65_536, 1..50),
        ) {
            let mut wire = wire(rate);
            let mut bits = 0_u128;
            for bytes in frames {
                bits += u128::from(bytes) * 8;
                let end_ns = wire.send(wire.free_at(), bytes);
                prop_assert_eq!(u128::from(end_ns), (bits * 1_000_000_000).div_ceil(u128::from(rate)));
            }
        }
    }
}
