//! Westwood+ (Mascolo et al., *TCP Westwood: bandwidth estimation for enhanced transport over wireless links*, 2001;
//! Grieco and Mascolo 2004), as implemented in the kernel's `tcp_westwood.c`.
//!
//! Westwood+ grows like Reno and measures the rate at which acknowledgements arrive. After a loss, it continues with
//! the window that fills the path without a queue, bandwidth * smallest RTT, instead of half the window. So a loss that
//! no queue caused costs little.
//!
//! Both factors are in the kernel's clock ticks, and thus as coarse as in the kernel: a round-trip time is rounded up
//! to a tick, by up to 20 % on a path of 20 ms.
//!
//! Departs: an acknowledgement that arrives while nothing is outstanding does not count as a segment.

use super::reno::Reno;
use crate::transport::congestion::Settings;
use crate::transport::congestion::{Ack, Acked, Context, Control, Event, MIN_SSTHRESH_PACKETS, Window};

/// The clock's tick: the default of the kernel's configuration, and Debian's (`CONFIG_HZ=250`).
const TICK_NS: u64 = 4_000_000;
const TICKS_PER_S: u64 = 1_000_000_000 / TICK_NS;
/// Shortest time over which the bandwidth is measured (`TCP_WESTWOOD_RTT_MIN`: 50 ms, `HZ / 20` in whole ticks).
const SHORTEST_TICKS: u64 = TICKS_PER_S / 20;
/// Round-trip time before the first measurement (`TCP_WESTWOOD_INIT_RTT`).
const INITIAL_RTT_TICKS: u64 = 20 * TICKS_PER_S;

/// The state of Westwood.
#[derive(Debug)]
pub(crate) struct Westwood {
    bandwidth: Bandwidth,
    arrivals: Arrivals,
    /// The last round-trip time.
    rtt_ticks: u64,
    min_rtt_ticks: u64,
    /// The smallest round-trip time restarts with the next acknowledgement: after a timeout the path may have changed.
    forget_min: bool,
}

/// The bandwidth in bytes a tick, smoothed twice.
#[derive(Debug, Default)]
struct Bandwidth {
    /// Smoothed once (`bw_ns_est`).
    once: u64,
    /// Smoothed twice (`bw_est`).
    twice: u64,
}

/// The data that arrived at the peer since the bandwidth was last measured.
#[derive(Debug, Default)]
struct Arrivals {
    since_ticks: u64,
    /// Payload (`bk`).
    bytes: u64,
    /// The last cumulative acknowledgement; `None` before the first.
    acked_bytes: Option<u64>,
    /// Payload counted for duplicate acknowledgements, which a later cumulative one covers again (`accounted`).
    accounted: u64,
}

impl Control for Westwood {
    fn new(_settings: &Settings) -> Self {
        Self {
            bandwidth: Bandwidth::default(),
            arrivals: Arrivals::default(),
            rtt_ticks: INITIAL_RTT_TICKS,
            min_rtt_ticks: INITIAL_RTT_TICKS,
            forget_min: true,
        }
    }

    fn init(&mut self, _window: &mut Window, context: &Context) {
        self.arrivals.since_ticks = context.now_ns / TICK_NS;
    }

    /// The kernel measures the bandwidth before it takes in the round-trip time of the acknowledgement, so it uses the
    /// previous one.
    fn on_acked(&mut self, _window: &mut Window, context: &Context, acked: &Acked) {
        self.measure_bandwidth(context, acked.predicted);
        self.min_rtt_ticks = if self.forget_min { self.rtt_ticks } else { self.min_rtt_ticks.min(self.rtt_ticks) };
        self.forget_min = false;
        if let Some(rtt_ns) = acked.rtt_ns.filter(|&ns| ns > 0) {
            self.rtt_ticks = rtt_ns.div_ceil(TICK_NS);
        }
    }

    fn on_ack(&mut self, window: &mut Window, context: &Context, ack: &Ack) {
        Reno.on_ack(window, context, ack);
    }

    /// While the window is being reduced; what counts is its final value.
    fn ssthresh(&mut self, window: &mut Window, _context: &Context) -> u32 {
        window.half()
    }

    fn on_event(&mut self, window: &mut Window, context: &Context, event: Event) {
        match event {
            Event::ReductionComplete => {
                window.ssthresh = self.fitting_packets(context);
                window.cwnd = window.ssthresh;
            }
            Event::Timeout => {
                window.ssthresh = self.fitting_packets(context);
                self.forget_min = true;
            }
            Event::TxStart | Event::Restart => {}
        }
    }
}

impl Westwood {
    fn measure_bandwidth(&mut self, context: &Context, predicted: bool) {
        let now_ticks = context.now_ns / TICK_NS;
        let passed_ticks = now_ticks - self.arrivals.since_ticks;
        if passed_ticks > self.rtt_ticks.max(SHORTEST_TICKS) {
            self.bandwidth.add(self.arrivals.bytes / passed_ticks);
            self.arrivals.bytes = 0;
            self.arrivals.since_ticks = now_ticks;
        }
        self.arrivals.count(context.acked_bytes, u64::from(context.mss_bytes), predicted);
    }

    /// Packets in flight without a queue.
    fn fitting_packets(&self, context: &Context) -> u32 {
        let packets = self.bandwidth.twice * self.min_rtt_ticks / u64::from(context.mss_bytes);
        u32::try_from(packets).unwrap_or(u32::MAX).max(MIN_SSTHRESH_PACKETS)
    }
}

impl Bandwidth {
    fn add(&mut self, sample: u64) {
        if (self.once, self.twice) == (0, 0) {
            *self = Self { once: sample, twice: sample };
        } else {
            self.once = smoothed(self.once, sample);
            self.twice = smoothed(self.twice, self.once);
        }
    }
}

impl Arrivals {
    /// An acknowledgement shows that something arrived: what it newly covers or, if that is nothing, one segment. What has
    /// been counted for duplicates does not count again, except on the kernel's fast path (`westwood_fast_bw`). Most
    /// acknowledgements that fill a hole take that.
    fn count(&mut self, acked_bytes: u64, mss_bytes: u64, predicted: bool) {
        // The first one only sets the starting point.
        let covered = acked_bytes - self.acked_bytes.unwrap_or(acked_bytes);
        self.acked_bytes = Some(acked_bytes);
        self.bytes += if covered == 0 {
            self.accounted += mss_bytes;
            mss_bytes
        } else if predicted || covered <= mss_bytes {
            covered
        } else if self.accounted >= covered {
            self.accounted -= covered;
            mss_bytes
        } else {
            covered - std::mem::take(&mut self.accounted)
        };
    }
}

/// A low-pass filter: seven eighths of the old, one of the new.
fn smoothed(old: u64, new: u64) -> u64 {
    (7 * old + new) / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const MSS: u64 = 1448;

    /// Acknowledgements of one segment each at `per_s` a second, with round trips of `rtt_ms`, from `from_ms` to
    /// `until_ms`.
    fn stream(westwood: &mut Westwood, context: &mut Context, per_s: u64, rtt_ms: u64, from_ms: u64, until_ms: u64) {
        let count = (until_ms - from_ms) * per_s / 1000;
        for n in 1..=count {
            context.now_ns = from_ms * MS + n * 1_000_000_000 / per_s;
            context.acked_bytes += MSS;
            let acked =
                Acked { packets: 1, rtt_ns: Some(rtt_ms * MS), one_way_ms: None, ce_packets: 0, predicted: false };
            westwood.on_acked(&mut Window::new(10), context, &acked);
        }
    }

    #[test]
    fn the_threshold_is_bandwidth_times_smallest_round_trip_time() {
        // 1000 segments a second and 40 ms, ten ticks: 40 segments. (1448 bytes a ms are 5792 a tick; 5792 * 10 / 1448
        // = 40.)
        let (mut westwood, mut context) = (Westwood::new(&Settings::DEFAULT), Context::EMPTY);
        stream(&mut westwood, &mut context, 1000, 40, 0, 10_000);
        // A queue makes the round trip longer, not the threshold larger.
        stream(&mut westwood, &mut context, 1000, 120, 10_000, 20_000);
        let mut window = Window { ssthresh: 60, ..Window::new(60) };
        westwood.on_event(&mut window, &context, Event::ReductionComplete);
        // A measurement may be off by one segment: 1 of the 30 in 124 ms or 1 of the 13 in 52 ms, smoothed twice.
        assert!((39..=40).contains(&window.cwnd), "{}", window.cwnd);
        assert_eq!(window.ssthresh, window.cwnd);
    }

    #[test]
    fn a_round_trip_time_counts_in_ticks_begun() {
        // 21 ms are 5.25 ticks, so 6: 1000 segments a second * 24 ms.
        let (mut westwood, mut context) = (Westwood::new(&Settings::DEFAULT), Context::EMPTY);
        stream(&mut westwood, &mut context, 1000, 21, 0, 10_000);
        assert!((23..=24).contains(&westwood.fitting_packets(&context)), "{}", westwood.fitting_packets(&context));
    }

    #[test]
    fn the_estimate_is_smoothed_twice() {
        let mut bandwidth = Bandwidth::default();
        bandwidth.add(8000);
        assert_eq!((bandwidth.once, bandwidth.twice), (8000, 8000));
        // 7/8 * 8000 + 1/8 * 16000 = 9000; 7/8 * 8000 + 1/8 * 9000 = 8125.
        bandwidth.add(16_000);
        assert_eq!((bandwidth.once, bandwidth.twice), (9000, 8125));
        // 7/8 * 9000 + 1/8 * 16000 = 9875; 7/8 * 8125 + 1/8 * 9875 = 8343.75.
        bandwidth.add(16_000);
        assert_eq!((bandwidth.once, bandwidth.twice), (9875, 8343));
    }

    #[test]
    fn the_bandwidth_is_measured_over_a_round_trip_but_at_least_50_ms() {
        let (mut westwood, mut context) = (Westwood::new(&Settings::DEFAULT), Context::EMPTY);
        // The first acknowledgement brings the round-trip time: 20 ms. More than 50 ms, that is 13 ticks, end at 52 ms.
        stream(&mut westwood, &mut context, 1000, 20, 0, 51);
        assert_eq!(westwood.bandwidth.twice, 0);
        stream(&mut westwood, &mut context, 1000, 20, 51, 52);
        // 51 segments in 13 ticks.
        assert_eq!(westwood.bandwidth.twice, 51 * MSS / 13);
    }

    #[test]
    fn duplicates_count_as_a_segment_each_and_what_covers_them_does_not_count_again() {
        let mut arrivals = Arrivals { acked_bytes: Some(1), ..Arrivals::default() };
        (0..5).for_each(|_| arrivals.count(1, MSS, false));
        assert_eq!(arrivals.bytes, 5 * MSS);
        // The hole is filled: six segments are acknowledged at once; five of them were already known to have arrived.
        arrivals.count(1 + 6 * MSS, MSS, false);
        assert_eq!((arrivals.bytes, arrivals.accounted), (6 * MSS, 0));
        // A delayed acknowledgement of two is two.
        arrivals.count(1 + 8 * MSS, MSS, false);
        assert_eq!(arrivals.bytes, 8 * MSS);
    }

    #[test]
    fn on_the_fast_path_what_was_counted_for_duplicates_counts_again() {
        let mut arrivals = Arrivals { acked_bytes: Some(1), ..Arrivals::default() };
        (0..5).for_each(|_| arrivals.count(1, MSS, false));
        arrivals.count(1 + 6 * MSS, MSS, true);
        assert_eq!((arrivals.bytes, arrivals.accounted), (11 * MSS, 5 * MSS));
    }

    #[test]
    fn a_partial_acknowledgement_takes_back_no_more_than_it_covers() {
        let mut arrivals = Arrivals { acked_bytes: Some(1), ..Arrivals::default() };
        (0..5).for_each(|_| arrivals.count(1, MSS, false));
        // Three of the five: counted, but for the segment whose arrival brought it about.
        arrivals.count(1 + 3 * MSS, MSS, false);
        assert_eq!((arrivals.bytes, arrivals.accounted), (6 * MSS, 2 * MSS));
    }

    #[test]
    fn after_a_timeout_the_smallest_round_trip_time_begins_anew() {
        let (mut westwood, mut context) = (Westwood::new(&Settings::DEFAULT), Context::EMPTY);
        stream(&mut westwood, &mut context, 1000, 20, 0, 5000);
        let mut window = Window::new(100);
        westwood.on_event(&mut window, &context, Event::Timeout);
        assert!((19..=20).contains(&window.ssthresh), "{}", window.ssthresh);
        assert_eq!(window.cwnd, 100, "the sender sets it");
        // The route changed: 80 ms, which the second acknowledgement sees as the last round trip.
        stream(&mut westwood, &mut context, 1000, 80, 5000, 10_000);
        assert_eq!(westwood.min_rtt_ticks, 5, "the first one still is of before");
        westwood.on_event(&mut window, &context, Event::Timeout);
        stream(&mut westwood, &mut context, 1000, 80, 10_000, 15_000);
        assert_eq!(westwood.min_rtt_ticks, 20);
    }
}
