//! Tests of Prague, one acknowledgement at a time.

use super::*;

const MS: u64 = 1_000_000;

/// A connection as seen by its control.
struct Run {
    prague: Prague,
    window: Window,
    context: Context,
    rtt_ns: u64,
}

impl Run {
    /// In congestion avoidance with this window.
    fn with(cwnd: u32, rtt_ms: u64) -> Self {
        let context = Context { now_ns: rtt_ms * MS, srtt_ns: Some(rtt_ms * MS), ..Context::EMPTY };
        let window = Window { ssthresh: cwnd, ..Window::new(cwnd) };
        let mut run = Self { prague: Prague::new(&Settings::DEFAULT), window, context, rtt_ns: rtt_ms * MS };
        run.prague.init(&mut run.window, &run.context);
        run
    }

    /// `packets` are acknowledged at once, `marked` of them marked.
    fn acknowledge(&mut self, packets: u32, marked: u32) {
        self.context.delivered += u64::from(packets);
        self.context.delivered_ce += u64::from(marked);
        let acked = Acked { packets, rtt_ns: None, one_way_ms: None, ce_packets: marked, predicted: false };
        self.prague.on_acked(&mut self.window, &self.context, &acked);
        self.prague.on_ack(&mut self.window, &self.context, &Ack::of(packets));
    }

    /// A round trip: a window is acknowledged packet by packet, the first `marked` of them marked. What was sent in the
    /// round before ends with the last.
    fn round(&mut self, marked: u32) {
        let cwnd = self.window.cwnd;
        for n in 0..cwnd {
            if n + 1 == cwnd {
                self.context.now_ns += self.rtt_ns;
                self.context.acked_bytes = self.context.sent_bytes;
                self.context.sent_bytes += u64::from(cwnd) * 1448;
            }
            self.acknowledge(1, u32::from(n < marked));
        }
    }

    fn enter(&mut self, state: State) {
        self.prague.on_state(&mut self.window, &self.context, state);
        self.context.state = state;
    }

    /// Alpha in 1/1024.
    fn alpha(&self) -> u64 {
        self.prague.alpha_16 >> (GAIN_SHIFT + 10)
    }

    /// The target in 1/1024 packets.
    fn target(&self) -> u64 {
        self.prague.target >> 10
    }
}

#[test]
fn alpha_stays_one_until_the_first_mark_and_then_averages() {
    let mut run = Run::with(100, 50);
    (0..3).for_each(|_| run.round(0));
    assert_eq!(run.alpha(), 1024);
    // The first round with marks counts them: 15/16 + 103 * 1/4 / 103 / 16, then nothing: 15/16 of it.
    let cwnd = run.window.cwnd;
    run.round(cwnd / 4);
    let share = f64::from(cwnd / 4) / f64::from(cwnd);
    let first = 15.0 / 16.0 + share / 16.0;
    assert!((run.alpha() as f64 - 1024.0 * first).abs() < 2.0, "{}", run.alpha());
    run.round(0);
    assert!((run.alpha() as f64 - 1024.0 * first * 15.0 / 16.0).abs() < 2.0, "{}", run.alpha());
}

#[test]
fn alpha_settles_at_the_share_of_marks_without_loss_to_rounding() {
    // One packet of 1000: DCTCP's alpha in 1/1024 would be 0. 2^20 / 1000 = 1048 units of 2^-20.
    let mut run = Run::with(1000, 50);
    for _ in 0..300 {
        run.prague.target = packets(1000);
        run.window.cwnd = 1000;
        run.round(1);
    }
    let alpha = run.prague.alpha_16 >> GAIN_SHIFT;
    assert!((1040..=1060).contains(&alpha), "{alpha}");
}

#[test]
fn marks_cut_the_window_by_half_of_alpha_packet_by_packet() {
    let mut run = Run::with(100, 50);
    run.prague.alpha_16 = (ONE << GAIN_SHIFT) / 4;
    run.enter(State::Cwr);
    // 100 * (1 - 1/8) = 87.5, at least as many whole packets: 88.
    assert_eq!((run.target(), run.window.ssthresh, run.window.cwnd), (87 * 1024 + 512, 88, 100));
    (0..12).for_each(|_| run.acknowledge(1, 1));
    assert_eq!(run.window.cwnd, 88);
    run.acknowledge(1, 1);
    assert_eq!(run.window.cwnd, 88);
}

#[test]
fn a_window_without_marks_adds_one_packet_and_marked_packets_do_not_count() {
    let mut run = Run::with(100, 50);
    run.round(0);
    assert!(run.target().abs_diff(101 * 1024) <= 11, "{}", run.target());
    // Half of it is marked: half a packet.
    let before = run.target();
    run.round(50);
    assert!((run.target() - before).abs_diff(512) <= 11, "{}", run.target() - before);
}

#[test]
fn it_grows_in_the_round_of_a_reduction_too() {
    let mut run = Run::with(100, 50);
    run.enter(State::Cwr);
    assert_eq!(run.target(), 50 * 1024);
    (0..50).for_each(|_| run.acknowledge(1, 0));
    // The first adds 1/50, the others, above 50, 1/51 each: 50.981.
    assert_eq!(run.target(), 52_204);
}

/// At the lowest pace, the window is never full. If that stopped the growth, the pace would stay the lowest.
#[test]
fn it_grows_in_a_window_that_is_not_full_unless_the_application_lacks_data() {
    let mut run = Run::with(2, 40);
    run.context.cwnd_limited = false;
    run.context.app_limited = true;
    run.acknowledge(1, 0);
    assert_eq!(run.target(), 2 * 1024);
    run.context.app_limited = false;
    run.acknowledge(1, 0);
    assert_eq!(run.target(), 2 * 1024 + 512);
}

#[test]
fn after_500_rounds_a_short_round_trip_is_no_advantage() {
    let mut run = Run::with(100, 5);
    run.round(0);
    assert!(run.target() > 100 * 1024 + 1000, "young flows grow by one packet per round trip");
    run.prague.age = TRANSITION_ROUNDS;
    run.prague.begin_round(&run.window, &run.context);
    // (5/25)^2 = 1/25 of a packet per round trip: 1/5 of a packet in 25 ms, as much for its rate as 1 packet at 25 ms.
    assert_eq!(run.prague.increase, ONE.div_ceil(25));
    // Longer round trips are left alone.
    let mut run = Run::with(100, 40);
    run.prague.age = TRANSITION_ROUNDS;
    run.prague.begin_round(&run.window, &run.context);
    assert_eq!(run.prague.increase, ONE);
}

#[test]
fn old_flows_with_short_round_trips_reduce_and_average_once_in_25_ms() {
    let mut run = Run::with(100, 5);
    (run.prague.age, run.prague.saw_mark) = (TRANSITION_ROUNDS, true);
    run.prague.alpha_at_ns = run.context.now_ns;
    // 4 round trips are 20 ms: alpha stays; after the fifth it has lost a sixteenth.
    (0..4).for_each(|_| run.round(0));
    assert_eq!(run.alpha(), 1024);
    run.round(0);
    assert_eq!(run.alpha(), 960);
    run.prague.alpha_16 = ONE << GAIN_SHIFT;
    run.prague.target = packets(100);
    run.enter(State::Cwr);
    run.enter(State::Open);
    run.context.now_ns += 24 * MS;
    run.enter(State::Cwr);
    run.enter(State::Open);
    assert_eq!(run.target(), 50 * 1024);
    run.context.now_ns += MS;
    run.enter(State::Cwr);
    assert_eq!(run.target(), 25 * 1024);
}

#[test]
fn a_loss_halves_and_undoing_brings_everything_back() {
    let mut run = Run::with(100, 50);
    run.prague.alpha_16 = 0;
    run.enter(State::Recovery);
    assert_eq!((run.target(), run.window.ssthresh), (50 * 1024, 50));
    // Nothing grows during loss recovery.
    (0..60).for_each(|_| run.acknowledge(1, 0));
    assert_eq!((run.target(), run.window.cwnd), (50 * 1024, 50));
    let cwnd = run.prague.undo(&mut run.window, &run.context);
    assert_eq!((cwnd, run.target()), (100, 100 * 1024));
    run.enter(State::Open);
    run.prague.on_event(&mut run.window, &run.context, Event::Timeout);
    assert_eq!(run.target(), 50 * 1024);
}

#[test]
fn slow_start_doubles_and_ends_with_the_first_mark() {
    let mut run = Run::with(10, 50);
    run.window.ssthresh = u32::MAX;
    run.round(0);
    assert_eq!((run.window.cwnd, run.target()), (20, 20 * 1024));
    run.acknowledge(1, 1);
    run.enter(State::Cwr);
    assert_eq!((run.target(), run.window.ssthresh), (10 * 1024, 10));
    (0..10).for_each(|_| run.acknowledge(1, 0));
    assert_eq!(run.window.cwnd, 11);
}

#[test]
fn the_pace_is_the_target_a_round_trip_and_twice_that_in_slow_start() {
    // 100 packets of 1500 bytes in 50 ms.
    assert_eq!(Run::with(100, 50).window.pacing_bytes_per_s, 3_000_000);
    let mut run = Run::with(100, 50);
    run.window.ssthresh = u32::MAX;
    run.prague.pace(&mut run.window, &run.context);
    assert_eq!(run.window.pacing_bytes_per_s, 6_000_000);
    // Below two packets the window stays, and the pace continues to fall: half a packet in 50 ms.
    run.prague.target = ONE / 2;
    (run.window.cwnd, run.window.ssthresh) = (2, 2);
    run.prague.pace(&mut run.window, &run.context);
    assert_eq!(run.window.pacing_bytes_per_s, 15_000);
}
