//! Hybrid slow start (Ha and Rhee, "Taming the elephants: new TCP slow start", 2011), as in the kernel's `tcp_cubic.c`.
//!
//! Slow start ends when either the train of acknowledgements of one round is half as long as the path is (so the pipe is
//! full) or the round-trip time of a round's first packets has risen (so a queue builds up).
//!
//! Departs: the kernel allows an acknowledgement train up to 1 ms for segmentation offload, less above about 2 Gbit/s; here
//! it is always 1 ms.

use super::RttSample;
use super::slow_start::SlowStart;

/// Below this window neither sign means anything.
const LOW_WINDOW_PACKETS: u32 = 16;
/// Acknowledgements closer together than this belong to one train.
const TRAIN_GAP_NS: u64 = 2_000_000;
/// What segmentation offload may add to a train's length.
const OFFLOAD_NS: u64 = 1_000_000;
/// Samples of a round that make its round-trip time known.
const MIN_SAMPLES: u32 = 8;
/// Bounds of the rise that counts: an eighth of the smallest round-trip time, but within these.
const RISE_NS: (u64, u64) = (4_000_000, 16_000_000);

/// What was seen in the current round.
#[derive(Debug, Default)]
pub(crate) struct HyStart {
    round: Option<Round>,
    found: bool,
}

/// One round trip, from the first acknowledgement after `end` was reached.
#[derive(Debug)]
struct Round {
    start_ns: u64,
    last_ack_ns: u64,
    end: u64,
    min_rtt_ns: u64,
    samples: u32,
}

impl SlowStart for HyStart {
    fn is_over(&mut self, sample: &RttSample, min_rtt_ns: u64, cwnd: u32) -> bool {
        if self.found {
            return false;
        }
        let round = match &mut self.round {
            Some(round) if sample.una <= round.end => round,
            finished => finished.insert(Round::begin(sample)),
        };
        if cwnd < LOW_WINDOW_PACKETS {
            return false;
        }
        self.found = round.train_is_long(sample, min_rtt_ns) | round.delay_has_risen(sample, min_rtt_ns);
        self.found
    }

    fn on_timeout(&mut self, sample: &RttSample) {
        *self = Self { round: Some(Round::begin(sample)), found: false };
    }
}

impl Round {
    fn begin(sample: &RttSample) -> Self {
        let now = sample.now_ns;
        Self { start_ns: now, last_ack_ns: now, end: sample.nxt, min_rtt_ns: u64::MAX, samples: 0 }
    }

    /// Half of the round-trip time: the kernel halves because nothing paces the packets (a pacer spreads them over it).
    fn train_is_long(&mut self, sample: &RttSample, min_rtt_ns: u64) -> bool {
        if sample.now_ns - self.last_ack_ns > TRAIN_GAP_NS {
            return false;
        }
        self.last_ack_ns = sample.now_ns;
        sample.now_ns - self.start_ns > (min_rtt_ns + OFFLOAD_NS) / 2
    }

    fn delay_has_risen(&mut self, sample: &RttSample, min_rtt_ns: u64) -> bool {
        self.min_rtt_ns = self.min_rtt_ns.min(sample.rtt_ns);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        let rise_ns = (min_rtt_ns / 8).clamp(RISE_NS.0, RISE_NS.1);
        self.min_rtt_ns > min_rtt_ns + rise_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn sample(now_ms: u64, rtt_ms: u64, una: u64, nxt: u64) -> RttSample {
        RttSample { now_ns: now_ms * MS, rtt_ns: rtt_ms * MS, una, nxt }
    }

    /// Acknowledgements every 10 ms, too far apart for a train; `true` for the one that ends slow start.
    fn verdicts(rtt_ms: u64, min_rtt_ms: u64, count: u64) -> Vec<bool> {
        let mut hystart = HyStart::default();
        (0..count).map(|i| hystart.is_over(&sample(10 * i, rtt_ms, 1, 100), min_rtt_ms * MS, 20)).collect()
    }

    #[test]
    fn a_rise_of_an_eighth_ends_slow_start_at_the_ninth_sample() {
        // 80 ms / 8 = 10 ms: 90 ms is not more than 80 + 10, 91 ms is. Eight samples are gathered, the ninth decides.
        assert!(!verdicts(90, 80, 20).contains(&true));
        assert_eq!(verdicts(91, 80, 10), [[false; 8].as_slice(), &[true, false]].concat());
    }

    #[test]
    fn the_rise_that_counts_is_between_4_and_16_ms() {
        // 8 ms / 8 = 1 ms counts as 4; 400 ms / 8 = 50 ms counts as 16.
        assert!(!verdicts(12, 8, 10).contains(&true));
        assert!(verdicts(13, 8, 10).contains(&true));
        assert!(!verdicts(416, 400, 10).contains(&true));
        assert!(verdicts(417, 400, 10).contains(&true));
    }

    #[test]
    fn a_train_longer_than_half_the_path_ends_slow_start() {
        // (19 ms + 1 ms) / 2 = 10 ms of acknowledgements 1 ms apart: the one at 11 ms is the first beyond it.
        let mut hystart = HyStart::default();
        let over: Vec<u64> = (0..20).filter(|&ms| hystart.is_over(&sample(ms, 19, 1, 100), 19 * MS, 20)).collect();
        assert_eq!(over, [11]);
    }

    #[test]
    fn a_gap_breaks_the_train() {
        let mut hystart = HyStart::default();
        let times = [0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12];
        assert!(!times.iter().any(|&ms| hystart.is_over(&sample(ms, 19, 1, 100), 19 * MS, 20)));
    }

    #[test]
    fn small_windows_are_left_alone() {
        let mut hystart = HyStart::default();
        assert!(!(0..20).any(|ms| hystart.is_over(&sample(ms, 100, 1, 100), 19 * MS, 15)));
    }

    #[test]
    fn each_round_starts_afresh() {
        // Four samples in each round, all slow: none reaches the ninth.
        let mut hystart = HyStart::default();
        for round in 0..10 {
            let (una, nxt) = (100 * round + 1, 100 * round + 100);
            assert!(!(0..4).any(|i| hystart.is_over(&sample(100 * round + 10 * i, 50, una, nxt), 20 * MS, 20)));
        }
    }
}
