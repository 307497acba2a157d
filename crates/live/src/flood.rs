//! A flood: UDP packets whose rate grows beyond that of the path, so that its longest buffer fills until it drops.
//!
//! It shows the worst case of a buffer, which no congestion control would fill. A flood is short, at most twice as fast as
//! the load was, and goes only to or from a server that accepts it.

use crate::time::SECOND;
use crate::wire::probe::{FLOOD_BYTES, HEADER_BYTES};

/// Length of an IP packet of a flood.
pub const IP_BYTES: u64 = (FLOOD_BYTES + HEADER_BYTES) as u64;
/// No flood is longer.
pub const LONGEST_NS: u64 = 5 * SECOND;
/// The rate grows for this long, and then stays.
pub const RAMP_NS: u64 = 2 * SECOND;
/// The highest rate as a multiple of the measured goodput.
pub const TIMES_GOODPUT: f64 = 2.0;
/// It begins with this part of its highest rate: 80 % of the goodput.
const FIRST: f64 = 0.4;
/// Packets that are late by more than this time are left out: a burst would measure itself.
const LATE_NS: u64 = SECOND / 100;
/// At low rates, so many packets may be late.
const LATE_PACKETS: u64 = 4;

/// When the packets of a flood are due.
#[derive(Clone, Copy, Debug)]
pub struct Ramp {
    peak_bps: u64,
    sent: u64,
}

impl Ramp {
    /// Up to so many bits per second, those of IP and UDP headers included.
    pub fn to(peak_bps: u64) -> Self {
        Self { peak_bps, sent: 0 }
    }

    /// How many packets are due so long after the beginning.
    pub fn due(&mut self, elapsed_ns: u64) -> u64 {
        let due = self.total(elapsed_ns.min(LONGEST_NS));
        let most = (self.peak_bps / 8 * LATE_NS / SECOND / IP_BYTES).max(LATE_PACKETS);
        self.sent = self.sent.max(due.saturating_sub(most));
        due - self.sent.min(due)
    }

    /// A packet was sent.
    pub fn has_sent(&mut self) {
        self.sent += 1;
    }

    /// Packets that should have been sent by then: the integral of the rate.
    fn total(&self, elapsed_ns: u64) -> u64 {
        let (t, ramp) = (elapsed_ns as f64 / SECOND as f64, RAMP_NS as f64 / SECOND as f64);
        let growing = t.min(ramp);
        let peak = self.peak_bps as f64;
        let bits = peak * (FIRST * growing + (1.0 - FIRST) * growing * growing / (2.0 * ramp) + (t - growing));
        (bits / 8.0 / IP_BYTES as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MS;

    #[test]
    fn the_rate_grows_to_its_highest_and_ends_after_five_seconds() {
        let mut ramp = Ramp::to(20_000_000);
        let mut counts = [0; 7];
        for ms in 0..7000 {
            for _ in 0..ramp.due(ms * MS) {
                ramp.has_sent();
                counts[(ms / 1000) as usize] += 1;
            }
        }
        // 20 Mbit/s are 1785 packets of 1400 bytes a second. In the first two seconds the rate grows from 40 % of that.
        for (second, expected) in [(0, 0.55), (1, 0.85), (2, 1.0), (3, 1.0), (4, 1.0), (5, 0.0), (6, 0.0)] {
            let rate = f64::from(counts[second]) / 1785.7;
            assert!((rate - expected).abs() < 0.01, "second {second}: {rate}");
        }
    }

    #[test]
    fn packets_that_are_late_are_left_out() {
        let mut ramp = Ramp::to(20_000_000);
        assert_eq!(ramp.due(3000 * MS), 17, "10 ms at 20 Mbit/s");
        let mut slow = Ramp::to(500_000);
        assert_eq!(slow.due(3000 * MS), 4);
    }
}
