//! LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus-06): LEDBAT that shares fairly with other LEDBAT++ flows, and does not
//! mistake its own queue for the path.
//!
//! The numbers are sections of the draft. Slow start grows the window by `GAIN` packets for each packet acknowledged;
//! the first slow start ends at three quarters of the target (4.1). Below the target, the window grows by `GAIN`
//! packets per round trip, where `GAIN` is smaller on shorter paths (4.2). Above the target, it shrinks each round trip
//! in proportion to the queue's excess, by at most half of the window (4.3). Slowdowns let the queue drain: the window
//! is two packets for two round trips, and then slow start returns it to its previous size. The first slowdown comes
//! two round trips after the first slow start; later ones are spaced so that they take a tenth of the time (4.4). The
//! delay is that of the round trip (4.5), with RFC 6817's filters.
//!
//! Departs: a loss during a slowdown halves both the window and the one to return to (the draft leaves this open); a
//! loss reduces the window packet by packet, as in all controls here.

use crate::transport::congestion::Settings;
use crate::transport::congestion::helpers::queueing_delay::QueueingDelay;
use crate::transport::congestion::{Ack, Acked, Context, Control, MIN_SSTHRESH_PACKETS, Report, Window};

/// Packets of the initial window (section 4.1), of a slowdown (4.4), and the fewest there are.
const MIN_CWND: u32 = 2;
/// The most by which growth is slowed on short paths (section 4.2).
const MAX_DIVISOR: u64 = 16;
/// Round trips from the end of the first slow start to the first slowdown; also how long a slowdown keeps its smallest
/// window.
const SLOWDOWN_ROUND_TRIPS: u64 = 2;
/// Time between two slowdowns, as a multiple of the duration of the last one.
const SLOWDOWN_SPACING: u64 = 9;
/// Resolution of the stored fractions of a packet.
const FRACTIONS: i64 = 1 << 16;
const NS_PER_US: u64 = 1000;

/// The state of LEDBAT++.
#[derive(Debug)]
pub(crate) struct LedbatPlusPlus {
    target_ns: u64,
    delay: QueueingDelay,
    /// Fractions of packets by which the window is still to change.
    credit: i64,
    slowdown: Slowdown,
    /// The window to return to after a slowdown.
    resume: u32,
}

/// Where the connection is between two slowdowns (section 4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slowdown {
    /// Still in the first slow start.
    NotYet,
    /// The next slowdown begins at this time.
    At(u64),
    /// A slowdown began at `since_ns`; the window stays at its smallest until `until_ns`.
    Frozen { since_ns: u64, until_ns: u64 },
    /// A slowdown began at `since_ns`; the window grows back.
    Returning { since_ns: u64 },
}

impl Control for LedbatPlusPlus {
    fn new(settings: &Settings) -> Self {
        Self {
            target_ns: settings.target_ns.max(NS_PER_US),
            delay: QueueingDelay::new(),
            credit: 0,
            slowdown: Slowdown::NotYet,
            resume: MIN_CWND,
        }
    }

    fn init(&mut self, window: &mut Window, _context: &Context) {
        window.cwnd = window.cwnd.min(MIN_CWND);
    }

    fn on_acked(&mut self, _window: &mut Window, context: &Context, acked: &Acked) {
        if let Some(rtt_ns) = acked.rtt_ns {
            self.delay.add(context.now_ns, i64::try_from(rtt_ns).unwrap_or(i64::MAX));
        }
    }

    fn on_ack(&mut self, window: &mut Window, context: &Context, ack: &Ack) {
        let srtt_ns = context.srtt_ns.unwrap_or(0);
        let Some(queueing_ns) = self.delay.now_ns(context.now_ns, srtt_ns) else { return };
        if self.slowdown == Slowdown::NotYet && queueing_ns > self.target_ns / 4 * 3 {
            window.ssthresh = window.ssthresh.min(window.cwnd);
        }
        self.keep_slowdowns(window, context.now_ns, srtt_ns);
        if matches!(self.slowdown, Slowdown::Frozen { .. }) {
            return;
        }
        let change = if window.in_slow_start() {
            i64::from(ack.acked) * FRACTIONS / self.divisor()
        } else {
            self.change(window.cwnd, queueing_ns, ack.acked)
        };
        if change < 0 || context.cwnd_limited {
            self.apply(window, change);
        }
    }

    fn ssthresh(&mut self, window: &mut Window, _context: &Context) -> u32 {
        self.resume = (self.resume / 2).max(MIN_SSTHRESH_PACKETS);
        window.half()
    }

    fn report(&self) -> Report {
        Report::of_phase(match self.slowdown {
            Slowdown::NotYet => "initial_slow_start",
            Slowdown::At(_) => "between_slowdowns",
            Slowdown::Frozen { .. } => "slowdown",
            Slowdown::Returning { .. } => "slowdown_return",
        })
    }
}

impl LedbatPlusPlus {
    /// 1 / GAIN = min(16, ceil(2 target / base)) (section 4.2).
    fn divisor(&self) -> i64 {
        let base_ns = self.delay.base_ns().and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0).max(1);
        (2 * self.target_ns).div_ceil(base_ns).min(MAX_DIVISOR) as i64
    }

    /// Fractions of packets by which the window changes per window acknowledged (section 4.3): GAIN below the target,
    /// and max(GAIN - window (delay / target - 1), - window / 2) above it.
    fn change(&self, cwnd: u32, queueing_ns: u64, acked: u32) -> i64 {
        let acked = i64::from(acked);
        let growth = acked * FRACTIONS / (self.divisor() * i64::from(cwnd));
        // In microseconds, so that no product overflows.
        let excess_us = (queueing_ns.saturating_sub(self.target_ns) / NS_PER_US).min(u64::from(u32::MAX)) as i64;
        let target_us = (self.target_ns / NS_PER_US) as i64;
        let excess = excess_us.saturating_mul(FRACTIONS) / target_us;
        (growth - excess.saturating_mul(acked)).max(-acked * FRACTIONS / 2)
    }

    fn apply(&mut self, window: &mut Window, change: i64) {
        self.credit += change;
        let packets = self.credit / FRACTIONS;
        self.credit -= packets * FRACTIONS;
        let slow_start = window.in_slow_start();
        // Slow start ends at the threshold.
        let most = if slow_start { window.ssthresh } else { u32::MAX };
        let cwnd = i64::from(window.cwnd) + packets;
        window.cwnd = cwnd.clamp(MIN_CWND.into(), most.max(MIN_CWND).into()) as u32;
        if !slow_start {
            // A window that shrinks because of the delay must not re-enter slow start.
            window.ssthresh = window.ssthresh.min(window.cwnd);
        }
    }

    /// Begins slowdowns, and ends them (section 4.4).
    fn keep_slowdowns(&mut self, window: &mut Window, now_ns: u64, srtt_ns: u64) {
        if matches!(self.slowdown, Slowdown::Frozen { .. } | Slowdown::Returning { .. }) {
            // A loss has lowered the threshold.
            window.ssthresh = self.resume;
        }
        let slow_start = window.in_slow_start();
        self.slowdown = match self.slowdown {
            Slowdown::NotYet if !slow_start => Slowdown::At(now_ns + SLOWDOWN_ROUND_TRIPS * srtt_ns),
            Slowdown::At(at_ns) if at_ns <= now_ns && !slow_start => {
                self.resume = window.cwnd;
                self.credit = 0;
                (window.ssthresh, window.cwnd) = (window.cwnd, MIN_CWND);
                Slowdown::Frozen { since_ns: now_ns, until_ns: now_ns + SLOWDOWN_ROUND_TRIPS * srtt_ns }
            }
            Slowdown::Frozen { since_ns, until_ns } if until_ns <= now_ns => Slowdown::Returning { since_ns },
            Slowdown::Returning { since_ns } if !slow_start => {
                Slowdown::At(now_ns + SLOWDOWN_SPACING * (now_ns - since_ns))
            }
            unchanged => unchanged,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const TARGET_MS: u64 = 60;

    /// A control that has measured a path of `base_ms` without a queue.
    fn ledbat(base_ms: u64) -> LedbatPlusPlus {
        let mut ledbat = LedbatPlusPlus::new(&Settings { target_ns: TARGET_MS * MS, ..Settings::DEFAULT });
        ledbat.delay.add(0, (base_ms * MS) as i64);
        ledbat
    }

    /// Acknowledges a window packet by packet, with a queue of `queue_ms` on a path of 20 ms.
    fn round(ledbat: &mut LedbatPlusPlus, window: &mut Window, now_ms: u64, queue_ms: u64) -> u32 {
        let rtt_ns = (20 + queue_ms) * MS;
        let context = Context { now_ns: now_ms * MS, srtt_ns: Some(rtt_ns), cwnd_limited: true, ..Context::EMPTY };
        for _ in 0..window.cwnd {
            let acked = Acked { packets: 1, rtt_ns: Some(rtt_ns), one_way_ms: None, ce_packets: 0, predicted: false };
            ledbat.on_acked(window, &context, &acked);
            ledbat.on_ack(window, &context, &Ack::of(1));
        }
        window.cwnd
    }

    /// The state after the first slow start, long before the next slowdown.
    fn avoiding(cwnd: u32) -> (LedbatPlusPlus, Window) {
        let ledbat = LedbatPlusPlus { slowdown: Slowdown::At(u64::MAX), ..ledbat(20) };
        (ledbat, Window { ssthresh: 2, ..Window::new(cwnd) })
    }

    #[test]
    fn the_shorter_the_path_the_slower_the_growth() {
        // ceil(120 / base), at most 16.
        let divisors = [1, 7, 8, 20, 59, 60, 119, 120, 300].map(|base_ms| ledbat(base_ms).divisor());
        assert_eq!(divisors, [16, 16, 15, 6, 3, 2, 2, 1, 1]);
    }

    #[test]
    fn below_the_target_the_window_grows_by_the_gain_a_round_trip() {
        // 20 ms: GAIN is 1/6, whatever the queue: 12 round trips bring two packets (and rounding takes a little off).
        for queue_ms in [0, 30, 60] {
            let (mut ledbat, mut window) = avoiding(50);
            (0..13).for_each(|n| {
                round(&mut ledbat, &mut window, 1000 + 100 * n, queue_ms);
            });
            assert_eq!(window.cwnd, 52, "{queue_ms} ms of queue");
        }
    }

    #[test]
    fn above_the_target_it_shrinks_in_proportion_but_not_below_half() {
        // 100 packets, 10 % above: 100 (66 / 60 - 1) = 10 packets less a round trip, and GAIN more; ten times the
        // target: half.
        let (ledbat, _) = avoiding(100);
        let round_trip = |queue_ms: u64| ledbat.change(100, queue_ms * MS, 100) as f64 / FRACTIONS as f64;
        assert!((round_trip(66) - (1.0 / 6.0 - 10.0)).abs() < 0.01, "{}", round_trip(66));
        assert_eq!(round_trip(600), -50.0);
        assert_eq!(round_trip(u64::from(u32::MAX)), -50.0);
    }

    #[test]
    fn a_window_that_shrinks_from_where_slow_start_ended_goes_on_shrinking() {
        let (mut ledbat, mut window) = avoiding(100);
        window.ssthresh = 100;
        let windows: Vec<u32> = (0..4).map(|n| round(&mut ledbat, &mut window, 1000 + 200 * n, 66)).collect();
        assert!(windows.iter().zip([91, 83, 76, 70]).all(|(cwnd, most)| *cwnd <= most), "{windows:?}");
        assert!(!window.in_slow_start());
    }

    #[test]
    fn never_below_two_packets() {
        let (mut ledbat, mut window) = avoiding(5);
        (0..10).for_each(|n| {
            round(&mut ledbat, &mut window, 1000 + 100 * n, 600);
        });
        assert_eq!(window.cwnd, 2);
    }

    #[test]
    fn slow_start_grows_by_the_gain_for_each_packet() {
        // GAIN = 1/6: seven sixths a round trip. Over ten: 12 (7/6)^10 = 56, less what rounding to whole packets holds
        // back.
        let (mut ledbat, mut window) = (ledbat(20), Window::new(12));
        (0..10).for_each(|n| {
            round(&mut ledbat, &mut window, 20 * n, 0);
        });
        assert!((52..=56).contains(&window.cwnd), "{}", window.cwnd);
        // The window does not grow unless it is fully used.
        let cwnd = window.cwnd;
        let unused = Context { srtt_ns: Some(20 * MS), cwnd_limited: false, ..Context::EMPTY };
        ledbat.on_ack(&mut window, &unused, &Ack::of(100));
        assert_eq!(window.cwnd, cwnd);
    }

    #[test]
    fn the_first_slow_start_ends_at_three_quarters_of_the_target() {
        let (mut ledbat, mut window) = (ledbat(20), Window::new(30));
        round(&mut ledbat, &mut window, 100, 45);
        assert!(window.in_slow_start());
        round(&mut ledbat, &mut window, 200, 46);
        assert!(!window.in_slow_start());
        // Two round trips of 66 ms later the first slowdown begins.
        assert_eq!(ledbat.slowdown, Slowdown::At((200 + 2 * 66) * MS));
    }

    #[test]
    fn slowdowns_take_a_tenth_of_the_time() {
        let mut ledbat = LedbatPlusPlus { slowdown: Slowdown::At(1000 * MS), ..ledbat(20) };
        let mut window = Window { ssthresh: 2, ..Window::new(40) };
        let mut at_ms = 1000;
        round(&mut ledbat, &mut window, at_ms, 0);
        assert_eq!((window.cwnd, window.ssthresh), (2, 40));
        assert_eq!(ledbat.slowdown, Slowdown::Frozen { since_ns: 1000 * MS, until_ns: 1040 * MS });
        // Frozen for two round trips, then slow start back to 40.
        assert_eq!(round(&mut ledbat, &mut window, 1039, 0), 2);
        while !matches!(ledbat.slowdown, Slowdown::At(_)) {
            at_ms += 20;
            round(&mut ledbat, &mut window, at_ms, 0);
        }
        assert_eq!(window.cwnd, 40);
        assert_eq!(ledbat.slowdown, Slowdown::At((at_ms + 9 * (at_ms - 1000)) * MS));
    }

    #[test]
    fn a_loss_during_a_slowdown_halves_what_there_is_to_return_to() {
        let (mut ledbat, mut window) = avoiding(40);
        ledbat.slowdown = Slowdown::At(0);
        round(&mut ledbat, &mut window, 1000, 0);
        window.ssthresh = ledbat.ssthresh(&mut window, &Context::EMPTY);
        assert_eq!(window.ssthresh, 2);
        round(&mut ledbat, &mut window, 1100, 0);
        assert_eq!(window.ssthresh, 20);
        assert!(window.in_slow_start());
    }

    #[test]
    fn the_first_window_is_two_packets() {
        let mut window = Window::new(10);
        ledbat(20).init(&mut window, &Context::EMPTY);
        assert_eq!(window.cwnd, 2);
    }
}
