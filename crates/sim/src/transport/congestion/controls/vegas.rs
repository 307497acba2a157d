//! Vegas (Brakmo and Peterson, *TCP Vegas: end to end congestion avoidance on a global internet*, 1995), as implemented
//! in the kernel's `tcp_vegas.c`.
//!
//! Once per round trip, Vegas compares the window with the amount that would be in flight without any queue: window *
//! base RTT / RTT. The difference is the number of packets that the connection itself keeps queued, and Vegas holds it
//! between two and four. As in the kernel, slow start doubles the window every round trip (in the paper, every other
//! one), and losses are detected and handled as in Reno.

use super::reno::Reno;
use crate::transport::congestion::{Ack, Acked, Context, Control, Event, Window};
use crate::transport::congestion::{Settings, State};

/// Fewest packets to keep queued (`alpha`).
const ALPHA: u64 = 2;
/// Most packets to keep queued (`beta`).
const BETA: u64 = 4;
/// More queued packets than this end slow start (`gamma`).
const GAMMA: u64 = 1;
/// With fewer measurements than this, all of a round may come from delayed acknowledgements.
const ENOUGH_SAMPLES: u32 = 3;
/// Smallest window.
const MIN_CWND: u32 = 2;

/// The state of Vegas.
#[derive(Debug, Default)]
pub(crate) struct Vegas {
    /// Smallest round-trip time since the connection was last idle: the path without a queue (`baseRTT`).
    base_us: Option<u64>,
    round: Round,
    /// Nothing is lost or out of order, so measurements are trusted (`doing_vegas_now`).
    enabled: bool,
}

/// The measurements since the window was last adjusted.
#[derive(Debug, Default)]
struct Round {
    /// The round ends when more than this is acknowledged (`beg_snd_nxt`).
    end: u64,
    /// Smallest round-trip time (`minRTT`), which shows the queue at its shortest.
    min_us: Option<u64>,
    /// Measurements (`cntRTT`).
    samples: u32,
}

impl Control for Vegas {
    fn new(_settings: &Settings) -> Self {
        Self::default()
    }

    fn init(&mut self, _window: &mut Window, context: &Context) {
        self.base_us = None;
        self.enable(context);
    }

    fn on_acked(&mut self, _window: &mut Window, _context: &Context, acked: &Acked) {
        let Some(rtt_ns) = acked.rtt_ns else { return };
        // Plus one, so that it is never zero.
        let rtt_us = rtt_ns / 1000 + 1;
        self.base_us = Some(self.base_us.map_or(rtt_us, |base_us| base_us.min(rtt_us)));
        self.round.min_us = Some(self.round.min_us.map_or(rtt_us, |min_us| min_us.min(rtt_us)));
        self.round.samples += 1;
    }

    fn on_ack(&mut self, window: &mut Window, context: &Context, ack: &Ack) {
        if !self.enabled {
            Reno.on_ack(window, context, ack);
        } else if context.acked_bytes > self.round.end {
            match (self.base_us, self.round.min_us) {
                (Some(base_us), Some(rtt_us)) if self.round.samples >= ENOUGH_SAMPLES => {
                    adjust(window, base_us, rtt_us, ack.acked);
                }
                _ => Reno.on_ack(window, context, ack),
            }
            self.round = Round { end: context.sent_bytes, ..Round::default() };
        } else if window.in_slow_start() {
            window.slow_start(ack.acked);
        }
    }

    fn ssthresh(&mut self, window: &mut Window, _context: &Context) -> u32 {
        window.half()
    }

    fn on_state(&mut self, _window: &mut Window, context: &Context, state: State) {
        self.enabled = false;
        if state == State::Open {
            self.enable(context);
        }
    }

    /// After an idle time the path may have changed.
    fn on_event(&mut self, window: &mut Window, context: &Context, event: Event) {
        if matches!(event, Event::TxStart | Event::Restart) {
            self.init(window, context);
        }
    }
}

impl Vegas {
    /// Measures from the next data sent on.
    fn enable(&mut self, context: &Context) {
        self.enabled = true;
        self.round = Round { end: context.sent_bytes, ..Round::default() };
    }
}

/// The window for the next round, after one whose smallest round-trip time was `rtt_us`.
fn adjust(window: &mut Window, base_us: u64, rtt_us: u64, acked: u32) {
    let cwnd = u64::from(window.cwnd);
    // What the connection keeps queued: the paper's Diff, (expected - actual rate) * base RTT.
    let queued = cwnd * (rtt_us - base_us) / base_us;
    if window.in_slow_start() {
        if queued > GAMMA {
            // What fits without a queue, plus one for what the division rounds off.
            let fitting = cwnd * base_us / rtt_us + 1;
            window.cwnd = cwnd.min(fitting) as u32;
            window.ssthresh = window.ssthresh.min(window.cwnd);
        } else {
            window.slow_start(acked);
        }
    } else if queued > BETA {
        window.cwnd -= 1;
        window.ssthresh = window.ssthresh.min(window.cwnd);
    } else if queued < ALPHA {
        window.cwnd += 1;
    }
    window.cwnd = window.cwnd.max(MIN_CWND);
    window.ssthresh = window.current_ssthresh(false);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Runs a round trip in which every packet of the window is acknowledged separately, after `rtt_ms`.
    fn round(vegas: &mut Vegas, window: &mut Window, acked_bytes: &mut u64, rtt_ms: u64) {
        let sent = *acked_bytes + u64::from(window.cwnd);
        while *acked_bytes < sent {
            *acked_bytes += 1;
            // The kernel's measurements are a microsecond longer; here they should be round numbers.
            let acked = Acked {
                packets: 1,
                rtt_ns: Some(rtt_ms * MS - 1000),
                one_way_ms: None,
                ce_packets: 0,
                predicted: false,
            };
            let context = Context { acked_bytes: *acked_bytes, sent_bytes: sent, ..Context::EMPTY };
            vegas.on_acked(window, &context, &acked);
            vegas.on_ack(window, &context, &Ack::of(1));
        }
    }

    /// A connection above its threshold that knows a base round-trip time of 100 ms.
    fn avoiding(cwnd: u32) -> (Vegas, Window, u64) {
        let (mut vegas, mut window, mut acked_bytes) = (Vegas::default(), Window::new(cwnd), 1);
        vegas.init(&mut window, &Context { sent_bytes: 1, ..Context::EMPTY });
        window.ssthresh = 2;
        vegas.base_us = Some(100_000);
        round(&mut vegas, &mut window, &mut acked_bytes, 100);
        window.cwnd = cwnd;
        (vegas, window, acked_bytes)
    }

    /// The window after a round with this smallest round-trip time, from a window of 40 above its threshold; 100 ms
    /// without a queue.
    fn after(rtt_ms: u64) -> u32 {
        let mut window = Window { ssthresh: 20, ..Window::new(40) };
        adjust(&mut window, 100_000, rtt_ms * 1000, 1);
        window.cwnd
    }

    #[test]
    fn two_to_four_packets_are_kept_queued() {
        // Queued = 40 * (RTT - 100) / 100, whole packets: 104 ms 1.6, 105 ms 2, 112 ms 4.8, 113 ms 5.2.
        assert_eq!([104, 105, 112, 113].map(after), [41, 40, 40, 39]);
    }

    #[test]
    fn one_more_packet_a_round_while_nothing_is_queued() {
        let (mut vegas, mut window, mut acked_bytes) = avoiding(40);
        for grown in 1..=10 {
            round(&mut vegas, &mut window, &mut acked_bytes, 100);
            round(&mut vegas, &mut window, &mut acked_bytes, 100);
            assert!(window.cwnd >= 40 + grown, "{}", window.cwnd);
        }
        assert!(window.cwnd <= 60, "at most one a round: {}", window.cwnd);
    }

    #[test]
    fn slow_start_ends_with_more_than_one_packet_queued() {
        let mut window = Window::new(20);
        // 20 * 9 / 100 = 1.8 queued: one whole packet, so it continues (two acknowledged).
        adjust(&mut window, 100_000, 109_000, 2);
        assert_eq!(window.cwnd, 22);
        // 22 * 10 / 100 = 2.2: it ends. 22 * 100 / 110 = 20 packets fit, and one more.
        adjust(&mut window, 100_000, 110_000, 2);
        assert_eq!((window.cwnd, window.in_slow_start()), (21, false));
    }

    #[test]
    fn the_threshold_follows_the_window_so_that_what_was_reached_is_not_slow_started_again() {
        // At least three quarters of the window: 100 / 2 + 100 / 4, here of 101.
        let mut window = Window { ssthresh: 10, ..Window::new(100) };
        adjust(&mut window, 100_000, 100_000, 1);
        assert_eq!((window.cwnd, window.ssthresh), (101, 75));
    }

    #[test]
    fn two_measurements_a_round_are_too_few() {
        // A window of 2 acknowledged at once: the round trip of 200 ms would mean two packets queued, but it is not
        // trusted.
        let (mut vegas, mut window, acked_bytes) = avoiding(2);
        let context = |acked_bytes: u64| Context { acked_bytes, sent_bytes: acked_bytes + 2, ..Context::EMPTY };
        for n in 1..=3 {
            let acked = Acked { packets: 2, rtt_ns: Some(500 * MS), one_way_ms: None, ce_packets: 0, predicted: false };
            vegas.on_acked(&mut window, &context(acked_bytes + 2 * n), &acked);
            vegas.on_ack(&mut window, &context(acked_bytes + 2 * n), &Ack::of(2));
        }
        // Reno instead: three windows acknowledged.
        assert_eq!(window.cwnd, 4);
    }

    #[test]
    fn while_something_is_amiss_it_is_reno() {
        let (mut vegas, mut window, mut acked_bytes) = avoiding(10);
        vegas.on_state(&mut window, &Context::EMPTY, State::Disorder);
        // 10 packets acknowledged with twice the round-trip time, ten queued: it grows by one nevertheless.
        round(&mut vegas, &mut window, &mut acked_bytes, 200);
        assert_eq!(window.cwnd, 11);
    }

    #[test]
    fn an_idle_time_forgets_the_base() {
        let (mut vegas, mut window, _) = avoiding(10);
        vegas.on_event(&mut window, &Context::EMPTY, Event::TxStart);
        assert_eq!(vegas.base_us, None);
    }
}
