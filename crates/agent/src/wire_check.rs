//! Checks that the bottleneck is where the scenario has it. While a port has a standing queue, it must send at its
//! rate. If it sends less, something else is the limit (the machine's CPU); if it sends more, the shaper does not work.

use bufferscope_scenario::{RateStep, Shaper, sizes};

use crate::warnings::Warnings;

/// The check needs this much busy time, so that one packet more or less does not matter.
const LEAST_BUSY_NS: u64 = 500_000_000;
/// How far the rate may be off. HTB's burst and rounding explain as much.
const TOLERANCE: f64 = 0.02;
/// A queue of two packets cannot run empty between two packets of one flow.
const STANDING_PACKETS: u64 = 2;
/// Two small packets can: what is queued must take the time of two large ones.
const STANDING_BYTES: u64 = STANDING_PACKETS * FRAME_BYTES;
/// Between samples further apart, a queue as short as that may have been empty for a while.
const SHORT_NS: u64 = 10_000_000;
/// The largest frame of one segment.
const FRAME_BYTES: u64 = sizes::FRAME_BYTES as u64;

/// Compares a port's rate with what it sends while it is busy.
#[derive(Clone, Debug)]
pub(crate) struct WireCheck {
    steps: Vec<RateStep>,
    /// How far the port may be ahead of its rate or behind it: the largest packet (of several segments if hosts use
    /// segmentation offload), or the burst of its queueing discipline.
    slack_bits: u64,
    last: Option<Seen>,
    /// Whether there was a standing queue during the last interval.
    standing: bool,
    /// Number of times that a standing queue has formed.
    spells: u64,
    busy_ns: u64,
    sent_bits: u64,
    owed_bits: f64,
}

/// What a sample saw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) t_ns: u64,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) sent_bytes: u64,
}

impl Seen {
    /// Whether the port has enough to send until more arrives.
    fn is_standing(self) -> bool {
        self.packets >= STANDING_PACKETS && self.bytes >= STANDING_BYTES
    }
}

impl WireCheck {
    /// A check of a port with these rates, or with the rate of its shaper if that is lower. Packets have up to
    /// `segments` segments.
    pub(crate) fn new(steps: &[RateStep], segments: u32, shaper: Option<Shaper>) -> Self {
        let (most_bps, burst_bytes) = shaper.map_or((u64::MAX, 0), |shaper| (shaper.rate_bps, shaper.burst_bytes));
        let limited = |step: &RateStep| RateStep { bits_per_second: step.bits_per_second.min(most_bps), ..*step };
        Self {
            steps: steps.iter().map(limited).collect(),
            slack_bits: 8 * (u64::from(segments) * FRAME_BYTES).max(burst_bytes),
            last: None,
            standing: false,
            spells: 0,
            busy_ns: 0,
            sent_bits: 0,
            owed_bits: 0.0,
        }
    }

    /// A sample was taken.
    pub(crate) fn see(&mut self, now: Seen) {
        let Some(last) = self.last.replace(now) else { return };
        let (before, after) = (self.step(last.t_ns), self.step(now.t_ns));
        let interval_ns = now.t_ns.saturating_sub(last.t_ns);
        let unseen_ns = interval_ns.saturating_sub(SHORT_NS);
        let is_full = last.bytes as f64 * 8.0 >= before.bits_per_second as f64 * unseen_ns as f64 / 1e9;
        let counts = last.is_standing() && is_full && now.is_standing() && before == after;
        self.spells += u64::from(counts && !self.standing);
        self.standing = counts;
        if counts {
            self.busy_ns += interval_ns;
            self.sent_bits += now.sent_bytes.saturating_sub(last.sent_bytes) * 8;
            self.owed_bits += before.bits_per_second as f64 * interval_ns as f64 / 1e9;
        }
    }

    /// Warns if the port did not keep its rate. A shaper passes on whole packets, so it may be one packet ahead or
    /// behind each time that a standing queue forms; a token bucket may be a bucket ahead.
    pub(crate) fn conclude(&self, port: &str, warnings: &mut Warnings) {
        let share = self.sent_bits as f64 / self.owed_bits;
        let tolerated_bits = TOLERANCE * self.owed_bits + (self.spells * self.slack_bits) as f64;
        if self.busy_ns < LEAST_BUSY_NS || (self.sent_bits as f64 - self.owed_bits).abs() <= tolerated_bits {
            return;
        }
        let (percent, busy_s) = (share * 100.0, self.busy_ns as f64 / 1e9);
        let cause = if share < 1.0 { "the machine was too slow" } else { "its shaper let too many packets pass" };
        warnings
            .add(format!("{port} sent at {percent:.1} % of its rate in {busy_s:.1} s with a standing queue: {cause}"));
    }

    /// The current step; a schedule begins at 0.
    fn step(&self, t_ns: u64) -> RateStep {
        let later = self.steps.partition_point(|step| step.from_ns <= t_ns);
        self.steps[later.saturating_sub(1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample of a queue of full packets.
    fn full(t_ns: u64, packets: u64, sent_bytes: u64) -> Seen {
        Seen { t_ns, packets, bytes: packets * FRAME_BYTES, sent_bytes }
    }

    #[test]
    fn two_small_packets_are_no_standing_queue() {
        let small = Seen { t_ns: 0, packets: 2, bytes: 200, sent_bytes: 0 };
        assert!(!small.is_standing() && full(0, 2, 0).is_standing() && !full(0, 1, 0).is_standing());
    }

    /// The warnings about a port that sends this share of its rate while this many packets wait, in 2 s.
    fn warned(share: f64, packets: u64) -> Vec<String> {
        warned_each(10_000_000, share, packets)
    }

    /// The same with other times between the samples. 10 Mbit/s is 1.25 bytes in a microsecond.
    fn warned_each(interval_ns: u64, share: f64, packets: u64) -> Vec<String> {
        let mut check = WireCheck::new(&[RateStep { from_ns: 0, bits_per_second: 10_000_000 }], 1, None);
        for t_ns in (0..2_000_000_000).step_by(interval_ns as usize) {
            let sent_bytes = (t_ns as f64 / 1000.0 * 1.25 * share) as u64;
            check.see(full(t_ns, packets, sent_bytes));
        }
        let mut warnings = Warnings::default();
        check.conclude("r1>h2", &mut warnings);
        warnings.into_texts()
    }

    /// At 10 Mbit/s, a queue of 20 packets is sent in 24 ms, and one of 80 in 97 ms.
    #[test]
    fn between_samples_far_apart_a_short_queue_may_have_been_empty() {
        let warned = |packets: u64| warned_each(100_000_000, 0.8, packets).len();
        assert_eq!((warned(20), warned(80)), (0, 1));
    }

    #[test]
    fn a_busy_port_that_keeps_its_rate_is_right() {
        assert!(warned(1.01, 20).is_empty());
    }

    #[test]
    fn a_busy_port_that_is_slow_or_fast_causes_a_warning() {
        let slow = "r1>h2 sent at 90.0 % of its rate in 2.0 s with a standing queue: the machine was too slow";
        assert_eq!(warned(0.9, 20), [slow]);
        assert!(warned(1.1, 20)[0].contains("let too many packets pass"));
    }

    /// Bursts of two packets of 45 segments at 100 Mbit/s. The first packet leaves at once, ahead of the rate.
    #[test]
    fn a_port_that_hands_on_large_packets_may_be_one_ahead_for_each_standing_queue() {
        let conclude = |segments| {
            let mut check = WireCheck::new(&[RateStep { from_ns: 0, bits_per_second: 100_000_000 }], segments, None);
            for burst in 0..100 {
                let (t_ns, sent_bytes) = (burst * 30_000_000, burst * (125_000 + 45 * FRAME_BYTES));
                let later_bytes = sent_bytes + 125_000 + 45 * FRAME_BYTES;
                check.see(full(t_ns, 2, sent_bytes));
                check.see(full(t_ns + 10_000_000, 2, later_bytes));
                check.see(full(t_ns + 20_000_000, 0, later_bytes));
            }
            let mut warnings = Warnings::default();
            check.conclude("h1>r1", &mut warnings);
            warnings.into_texts().len()
        };
        assert_eq!((conclude(45), conclude(1)), (0, 1));
    }

    /// A bucket of 25,000 bytes at 1 Mbit/s, 1250 bytes in 10 ms, on a link of 10 Mbit/s. It is full at first.
    #[test]
    fn a_port_whose_queue_is_a_token_bucket_keeps_the_buckets_rate() {
        let conclude = |shaper| {
            let mut check = WireCheck::new(&[RateStep { from_ns: 0, bits_per_second: 10_000_000 }], 1, shaper);
            for sample in 0..200 {
                let sent_bytes = (12_500 * sample).min(25_000) + 1250 * sample;
                check.see(full(sample * 10_000_000, 9, sent_bytes));
            }
            let mut warnings = Warnings::default();
            check.conclude("r1>h2", &mut warnings);
            warnings.into_texts().len()
        };
        let shaper = |burst_bytes| Some(Shaper { rate_bps: 1_000_000, burst_bytes });
        assert_eq!((conclude(shaper(25_000)), conclude(shaper(1600)), conclude(None)), (0, 1, 1));
    }

    #[test]
    fn a_port_without_a_queue_owes_nothing() {
        assert!(warned(0.1, 0).is_empty());
    }

    #[test]
    fn intervals_with_a_change_of_rate_are_left_out() {
        let step = |from_ns, bits_per_second| RateStep { from_ns, bits_per_second };
        let mut check = WireCheck::new(&[step(0, 10_000_000), step(15_000_000, 1_000_000)], 1, None);
        for sample in 0..4 {
            check.see(full(sample * 10_000_000, 9, 0));
        }
        assert_eq!((check.busy_ns, check.owed_bits), (20_000_000, 100_000.0 + 10_000.0));
    }
}
