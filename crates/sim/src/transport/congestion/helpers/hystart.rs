//! Hybrid slow start (Ha and Rhee, "Taming the elephants: new TCP slow start", 2011), as in the kernel's `tcp_cubic.c`.
//!
//! Either of two signs ends slow start. First, the train of acknowledgements of one round is half as long as the path,
//! so the pipe is full. Second, the round-trip time of a round's first packets has risen, so a queue is building up.
//!
use crate::transport::congestion::rate_of_window;
use crate::transport::congestion::{Context, SlowStartSign, Window};

/// Below this window, neither sign counts.
const LOW_WINDOW_PACKETS: u32 = 16;
/// Acknowledgements closer together than this belong to one train.
const TRAIN_GAP_NS: u64 = 2_000_000;
/// The most that segmentation offload may add to a train's length, and the most bytes whose sending time it allows for
/// (`hystart_ack_delay`: four segments of the largest size).
const OFFLOAD_NS: u64 = 1_000_000;
const OFFLOAD_BYTES: u64 = 4 * 65_536;
/// A round's round-trip time is known after this many samples.
const MIN_SAMPLES: u32 = 8;
/// Bounds of the rise that counts. The rise is an eighth of the smallest round-trip time, clamped to these bounds.
const RISE_NS: (u64, u64) = (4_000_000, 16_000_000);

/// State of the current round.
#[derive(Debug, Default)]
pub(crate) struct HyStart {
    round: Round,
    found: Option<SlowStartSign>,
}

/// One round trip, from the first acknowledgement after `end` was reached.
#[derive(Debug, Default)]
struct Round {
    start_ns: u64,
    last_ack_ns: u64,
    end: u64,
    /// Smallest round-trip time of the round's samples; `None` before the first.
    min_rtt_ns: Option<u64>,
    samples: u32,
}

impl HyStart {
    /// Slow start begins (again).
    pub(crate) fn restart(&mut self, context: &Context) {
        *self = Self { round: Round::begin(context), found: None };
    }

    /// Whether slow start should end, now that a round-trip time of `rtt_ns` was measured.
    pub(crate) fn is_over(&mut self, window: &Window, context: &Context, rtt_ns: u64, min_rtt_ns: u64) -> bool {
        if self.found.is_some() {
            return false;
        }
        // At every window, as since Linux 6.14 (`hystart_update`). Otherwise the first round that counts would begin
        // halfway through.
        if context.acked_bytes > self.round.end {
            self.round = Round::begin(context);
        }
        if window.cwnd < LOW_WINDOW_PACKETS {
            return false;
        }
        let train = self.round.train_is_long(context, || train_limit_ns(window, context, min_rtt_ns));
        let delay = self.round.delay_has_risen(rtt_ns, min_rtt_ns);
        self.found = train.then_some(SlowStartSign::AckTrain).or_else(|| delay.then_some(SlowStartSign::DelayIncrease));
        self.found.is_some()
    }

    /// The sign that ended slow start.
    pub(crate) fn sign(&self) -> Option<SlowStartSign> {
        self.found
    }
}

/// How long a train may be: the path's length plus the time that offload adds. Without pacing, half of that (a pacer
/// spreads packets over the round trip).
fn train_limit_ns(window: &Window, context: &Context, min_rtt_ns: u64) -> u64 {
    let rate = if context.paced { window.pacing_bytes_per_s } else { rate_of_window(window, context) };
    let offload_ns = (OFFLOAD_BYTES * 1_000_000_000).checked_div(rate).map_or(0, |ns| ns.min(OFFLOAD_NS));
    (min_rtt_ns + offload_ns) >> u32::from(!context.paced)
}

impl Round {
    fn begin(context: &Context) -> Self {
        let now_ns = context.now_ns;
        Self { start_ns: now_ns, last_ack_ns: now_ns, end: context.sent_bytes, min_rtt_ns: None, samples: 0 }
    }

    fn train_is_long(&mut self, context: &Context, limit_ns: impl FnOnce() -> u64) -> bool {
        if context.now_ns - self.last_ack_ns > TRAIN_GAP_NS {
            return false;
        }
        self.last_ack_ns = context.now_ns;
        context.now_ns - self.start_ns > limit_ns()
    }

    fn delay_has_risen(&mut self, rtt_ns: u64, min_rtt_ns: u64) -> bool {
        let round_ns = self.min_rtt_ns.map_or(rtt_ns, |min| min.min(rtt_ns));
        self.min_rtt_ns = Some(round_ns);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        let rise_ns = (min_rtt_ns / 8).clamp(RISE_NS.0, RISE_NS.1);
        round_ns > min_rtt_ns + rise_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// An acknowledgement, after which `acked_bytes` of `sent_bytes` are acknowledged.
    fn at(now_ms: u64, acked_bytes: u64, sent_bytes: u64) -> Context {
        Context { now_ns: now_ms * MS, acked_bytes, sent_bytes, srtt_ns: Some(100 * MS), ..Context::EMPTY }
    }

    fn begun() -> HyStart {
        let mut hystart = HyStart::default();
        hystart.restart(&at(0, 1, 100));
        hystart
    }

    /// Acknowledgements every 10 ms, too far apart for a train; `true` for the one that ends slow start.
    fn verdicts(rtt_ms: u64, min_rtt_ms: u64, count: u64) -> Vec<bool> {
        let mut hystart = begun();
        let window = Window::new(20);
        (0..count).map(|i| hystart.is_over(&window, &at(10 * i, 1, 100), rtt_ms * MS, min_rtt_ms * MS)).collect()
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
        // (19 ms + 1 ms) / 2 = 10 ms of acknowledgements 1 ms apart: the one at 11 ms is the first beyond it. The
        // offload's share is the full 1 ms, as 20 packets in 100 ms are 290 kB/s, at which 256 KiB take longer.
        let (mut hystart, window) = (begun(), Window::new(20));
        let over: Vec<u64> =
            (0..20).filter(|&ms| hystart.is_over(&window, &at(ms, 1, 100), 19 * MS, 19 * MS)).collect();
        assert_eq!(over, [11]);
    }

    #[test]
    fn a_paced_train_may_be_as_long_as_the_path() {
        let (mut hystart, window) = (begun(), Window { pacing_bytes_per_s: 1_000_000, ..Window::new(20) });
        let paced = |ms| Context { paced: true, ..at(ms, 1, 100) };
        let over: Vec<u64> = (0..30).filter(|&ms| hystart.is_over(&window, &paced(ms), 19 * MS, 19 * MS)).collect();
        assert_eq!(over, [21]);
    }

    #[test]
    fn a_gap_breaks_the_train() {
        let (mut hystart, window) = (begun(), Window::new(20));
        let times = [0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12];
        assert!(!times.iter().any(|&ms| hystart.is_over(&window, &at(ms, 1, 100), 19 * MS, 19 * MS)));
    }

    #[test]
    fn small_windows_are_left_alone() {
        let (mut hystart, window) = (begun(), Window::new(15));
        assert!(!(0..20).any(|ms| hystart.is_over(&window, &at(ms, 1, 100), 100 * MS, 19 * MS)));
    }

    #[test]
    fn rounds_are_distinguished_while_the_window_is_still_small() {
        // `hystart_update`, from an initial window of 10 on: each acknowledgement lets two packets leave, and the
        // round-trip time has risen. The first round's ten packets leave the window at 20, so the second round, from
        // the 11th on, is the first of which eight samples are gathered: the 19th acknowledgement decides. Counted from
        // where the window is 16 it would be the 15th.
        let mut hystart = HyStart::default();
        hystart.restart(&at(0, 1, 1));
        let over = (1..=30).find(|&ack: &u64| {
            let window = Window::new(9 + ack as u32);
            hystart.is_over(&window, &at(10 * ack, 1 + ack, 9 + 2 * ack), 60 * MS, 40 * MS)
        });
        assert_eq!(over, Some(19));
    }

    #[test]
    fn each_round_starts_afresh() {
        // Four samples in each round, all slow: none reaches the ninth.
        let (mut hystart, window) = (begun(), Window::new(20));
        for round in 0..10 {
            let (acked, sent) = (100 * round + 1, 100 * round + 100);
            let now_ms = |i: u64| 100 * round + 10 * i;
            assert!(!(0..4).any(|i| hystart.is_over(&window, &at(now_ms(i), acked, sent), 50 * MS, 20 * MS)));
        }
    }
}
