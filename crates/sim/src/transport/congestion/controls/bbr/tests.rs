//! Tests of BBR's phases, one acknowledgement at a time. The expected windows and rates are derived from the equations
//! of `tcp_bbr.c`.

use super::{Bbr, Phase};
use crate::transport::congestion::helpers::bandwidth::{Bandwidth, Gain};
use crate::transport::congestion::testing::{self, MS, RTT_NS};
use crate::transport::congestion::{Control, Event, UNPACED};
use crate::transport::congestion::{Settings, State};

type Run = testing::Run<Bbr>;

/// The state after startup and drain on a path of 1 packet per millisecond, that is 20 packets per round trip.
fn steady() -> Run {
    let mut run = Run::begin();
    (0..5).for_each(|_| run.round(20));
    run.context.in_flight = 20;
    run.round(20);
    run
}

/// Gain of the pacing rate over the bandwidth, in 256ths.
fn pacing_gain(run: &Run) -> u32 {
    run.control.pacing_gain.times(256)
}

#[test]
fn the_first_rate_is_high_gain_times_the_initial_window_a_round_trip() {
    // 10 packets in 20 ms: 500 a second, 8388 units; 8388 * 1448 * 739/256 * 0.99 * 10^6 / 2^24 = 2068934 B/s.
    let run = Run::begin();
    assert_eq!(run.window.pacing_bytes_per_s, 2_068_934);
    assert_ne!(run.window.pacing_bytes_per_s, UNPACED);
    assert_eq!(pacing_gain(&run), 739);
}

#[test]
fn startup_doubles_until_the_pipe_is_full_and_then_drains() {
    let mut run = Run::begin();
    // A window of 10 comes back, then 20, then 40, from a path that delivers 40 a round trip.
    for (delivered, cwnd) in [(10, 20), (20, 40), (40, 80)] {
        run.round(delivered);
        assert_eq!((run.control.phase, run.window.cwnd), (Phase::Startup, cwnd));
    }
    let before = run.window.pacing_bytes_per_s;
    run.context.in_flight = 80;
    run.round(40);
    run.round(40);
    assert_eq!(run.control.phase, Phase::Startup);
    // The rate only rises until the pipe is full; the third round without growth ends the phase.
    assert_eq!(run.window.pacing_bytes_per_s, before);
    run.round(40);
    assert_eq!(run.control.phase, Phase::Drain);
    // 256 * 1000 / 2885 = 88.
    assert_eq!(pacing_gain(&run), 88);
    assert!(run.window.pacing_bytes_per_s < before / 8 + 1);
    // The threshold shows the bandwidth-delay product, 40, and room for 3 bursts: at 8.28 MB/s (40 packets in 20 ms
    // times 2.887 times 0.99) a burst is 8086 bytes, 5 packets. 55, made even.
    assert_eq!(run.window.ssthresh, 56);
}

#[test]
fn draining_ends_when_no_more_is_in_flight_than_the_path_holds() {
    let mut run = Run::begin();
    (0..3).for_each(|_| run.round(20));
    run.context.in_flight = 60;
    run.round(20);
    assert_eq!(run.control.phase, Phase::Drain);
    // 20 packets and 3 bursts of 2.
    run.context.in_flight = 27;
    run.round(20);
    assert_eq!(run.control.phase, Phase::Drain);
    run.context.in_flight = 26;
    run.round(20);
    assert_eq!(run.control.phase, Phase::ProbeBw);
}

#[test]
fn rounds_that_the_application_limits_do_not_fill_the_pipe() {
    let mut run = Run::begin();
    run.round(20);
    run.app_limited = true;
    (0..10).for_each(|_| run.round(5));
    assert_eq!(run.control.phase, Phase::Startup);
    // However many losses there are, they do not lower the bandwidth of 20 packets in 20 ms; but they may raise it.
    assert_eq!(run.control.bandwidth(), Bandwidth::of(20, RTT_NS).unwrap());
    run.round(30);
    assert_eq!(run.control.bandwidth(), Bandwidth::of(30, RTT_NS).unwrap());
}

#[test]
fn a_cycle_has_eight_parts_of_a_round_trip() {
    let mut run = steady();
    assert_eq!(run.control.phase, Phase::ProbeBw);
    // What is in flight follows from the pacing: 1.25 times 20 and the budget while probing.
    let mut gains = vec![];
    for _ in 0..24 {
        run.context.in_flight = if run.control.cycle.is_probing() { 40 } else { 27 };
        run.acknowledge(21, 0, RTT_NS + 1);
        gains.push(pacing_gain(&run));
    }
    let start = gains.iter().position(|&gain| gain == 320).unwrap();
    assert_eq!(gains[start..start + 9], [320, 192, 256, 256, 256, 256, 256, 256, 320]);
}

#[test]
fn a_cycle_begins_at_random_but_never_with_the_slow_part_and_always_the_same_for_a_seed() {
    let beginnings = |seed| {
        let mut run = steady();
        run.control.random = Bbr::new(&Settings { seed, ..Settings::DEFAULT }).random;
        std::array::from_fn::<_, 200, _>(|_| {
            run.control.enter_probe_bw(&run.context);
            (run.control.cycle.is_probing(), run.control.cycle.pacing_gain())
        })
    };
    assert_eq!(beginnings(7), beginnings(7));
    assert_ne!(beginnings(7), beginnings(8));
    let drawn = beginnings(7);
    assert!(drawn.iter().all(|&(_, gain)| gain >= Gain::ONE));
    // One of seven begins by probing: 200/7 = 29, 10 more or less being two standard deviations.
    let probing = drawn.iter().filter(|(probes, _)| *probes).count();
    assert!((19..=39).contains(&probing), "{probing}");
}

/// In the part of the cycle that probes.
fn probing() -> Run {
    let mut run = steady();
    run.context.in_flight = 27;
    while pacing_gain(&run) != 320 {
        run.acknowledge(20, 0, RTT_NS + 1);
    }
    run
}

#[test]
fn the_window_is_twice_the_product_of_bandwidth_and_round_trip_and_room_for_bursts() {
    let mut run = probing();
    // Acknowledgements fall behind once, which ends the bunches of 20. Then there is one each millisecond, which is one
    // more than expected, and another one by rounding (16777/2^24 packets in 1 µs are 0.99998 in 1 ms).
    run.context.in_flight = 20;
    run.acknowledge(1, 0, 50 * MS);
    for _ in 0..400 {
        run.acknowledge(1, 0, MS);
    }
    let budget = if run.control.cycle.is_probing() { 2 } else { 0 };
    // 2 * 20 + 2 + 3 * 2, and 2 more while probing.
    assert_eq!(run.window.cwnd, 48 + budget);
}

#[test]
fn probing_goes_on_until_a_quarter_more_is_in_flight() {
    // 1.25 * 20 = 25, and 3 bursts of 2 packets: 31, even: 32, and 2 more while probing: 34. The burst that leaves next
    // counts as in flight.
    let mut run = probing();
    run.context.in_flight = 31;
    (0..5).for_each(|_| run.acknowledge(20, 0, RTT_NS + 1));
    assert_eq!(pacing_gain(&run), 320);
    run.context.in_flight = 32;
    run.acknowledge(20, 0, RTT_NS + 1);
    assert_eq!(pacing_gain(&run), 192);
}

#[test]
fn losses_end_probing_after_a_round_trip() {
    let mut run = probing();
    run.context.in_flight = 25;
    run.acknowledge(1, 1, MS);
    assert_eq!(pacing_gain(&run), 320);
    run.acknowledge(20, 1, RTT_NS);
    assert_eq!(pacing_gain(&run), 192);
}

#[test]
fn the_slow_part_ends_as_soon_as_the_queue_is_gone() {
    let mut run = probing();
    run.context.in_flight = 40;
    run.acknowledge(20, 0, RTT_NS + 1);
    assert_eq!(pacing_gain(&run), 192);
    run.acknowledge(1, 0, MS);
    assert_eq!(pacing_gain(&run), 192);
    run.context.in_flight = 26;
    run.acknowledge(1, 0, MS);
    assert_eq!(pacing_gain(&run), 256);
}

#[test]
fn the_bandwidth_is_the_largest_of_ten_rounds() {
    let mut run = steady();
    run.round(25);
    for _ in 0..10 {
        run.round(20);
        assert_eq!(run.control.bandwidth(), Bandwidth::of(25, RTT_NS).unwrap());
    }
    run.round(20);
    assert_eq!(run.control.bandwidth(), Bandwidth::of(20, RTT_NS).unwrap());
}

/// Runs this many round trips of 25 ms: the queue never empties.
fn with_queue(run: &mut Run, rounds: u32) {
    run.rtt_ns = 25 * MS;
    run.context.in_flight = 25;
    (0..rounds).for_each(|_| run.round(25));
}

#[test]
fn after_ten_seconds_without_a_shorter_round_trip_the_pipe_is_emptied_for_200_ms() {
    let mut run = steady();
    let began_ns = run.context.now_ns;
    // No round trip was shorter than the handshake's: 10 s after it at 20 ms.
    with_queue(&mut run, (10_000 + 20 - began_ns as u32 / MS as u32) / 25);
    assert_eq!(run.control.phase, Phase::ProbeBw);
    run.round(25);
    assert_eq!((run.control.phase, run.window.cwnd), (Phase::ProbeRtt, 4));
    assert!(run.window.mark_app_limited, "what is delivered now says nothing about the path");
    // The 200 ms begin once no more than 4 are in flight; then the round trip is the path's again.
    run.context.in_flight = 4;
    run.app_limited = true;
    run.round(4);
    let since_ns = run.context.now_ns;
    run.rtt_ns = RTT_NS;
    while run.control.phase == Phase::ProbeRtt {
        assert_eq!(run.window.cwnd, 4);
        run.round(4);
    }
    assert_eq!((run.context.now_ns - since_ns) / MS, 220, "the first acknowledgement after 200 ms");
    assert_eq!(run.control.phase, Phase::ProbeBw);
    assert_eq!(run.control.path.min_rtt_ns, Some(RTT_NS));
    // The window is at its target at once: twice 1 packet a millisecond for 20 ms, 3 bursts of 2, and 4 for the bunches
    // of 4.
    assert_eq!(run.control.bandwidth(), Bandwidth::of(25, 25 * MS).unwrap());
    let budget = if run.control.cycle.is_probing() { 2 } else { 0 };
    assert_eq!(run.window.cwnd, 50 + budget);
}

#[test]
fn an_idle_time_has_emptied_the_pipe_already() {
    let mut run = steady();
    with_queue(&mut run, 300);
    // 5 s without anything to send, then one packet.
    run.context = crate::transport::congestion::Context {
        now_ns: run.context.now_ns + 5_000 * MS,
        in_flight: 0,
        app_limited: true,
        ..run.context
    };
    run.control.on_event(&mut run.window, &run.context, Event::TxStart);
    // Packets leave at the bandwidth itself: 1000 a second times 1448 bytes, less 1 %.
    assert_eq!(run.window.pacing_bytes_per_s, 1_433_501);
    run.round(1);
    assert_eq!(run.control.phase, Phase::ProbeBw);
    assert_eq!(run.control.path.min_rtt_ns, Some(25 * MS), "the old one is forgotten all the same");
}

#[test]
fn the_first_round_of_a_recovery_conserves_packets_and_its_end_restores_the_window() {
    let mut run = steady();
    let cwnd = run.window.cwnd;
    run.context.in_flight = 30;
    run.enter(State::Recovery);
    // As many packets may be sent as are delivered: 30 in flight after 2 were acknowledged.
    run.acknowledge(2, 3, MS);
    assert_eq!(run.window.cwnd, 32);
    // The rest of the round is the same: what was sent before it began is delivered.
    run.context.in_flight = 31;
    run.acknowledge_early(3, MS);
    assert_eq!(run.window.cwnd, 34);
    // From the next round on the window grows as usual, by what was delivered, minus what was lost.
    run.acknowledge(6, 0, MS);
    assert_eq!(run.window.cwnd, 40);
    run.acknowledge(1, 6, MS);
    assert_eq!(run.window.cwnd, 40 - 6 + 1);
    run.enter(State::Open);
    run.acknowledge(1, 0, MS);
    assert_eq!(run.window.cwnd, cwnd + 1);
}

#[test]
fn after_a_timeout_the_window_comes_back() {
    let mut run = steady();
    let cwnd = run.window.cwnd;
    run.enter(State::Loss);
    run.context.in_flight = 0;
    run.window.cwnd = 1;
    run.round(1);
    // One acknowledged, one more, but four at least.
    assert_eq!(run.window.cwnd, 4);
    run.enter(State::Open);
    run.round(4);
    assert!(run.window.cwnd.abs_diff(cwnd) <= 2, "{} after {cwnd}", run.window.cwnd);
}

#[test]
fn undoing_a_recovery_looks_for_the_full_pipe_anew() {
    let mut run = Run::begin();
    (0..3).for_each(|_| run.round(20));
    let cwnd = run.window.cwnd;
    assert_eq!(run.control.undo(&mut run.window, &run.context), cwnd);
    // Two rounds without growth had been counted: two more do not end startup, four do (the first sets the mark).
    (0..3).for_each(|_| run.round(20));
    assert_eq!(run.control.phase, Phase::Startup);
    run.round(20);
    assert_ne!(run.control.phase, Phase::Startup);
}

/// Rounds of 20 packets of which `lost` are lost.
fn policed(run: &mut Run, rounds: u32, delivered: u32, lost: u32) {
    for _ in 0..rounds {
        run.acknowledge(delivered, lost, RTT_NS);
    }
}

#[test]
fn two_intervals_that_lose_a_fifth_and_deliver_the_same_are_a_policer() {
    let mut run = steady();
    // Each takes 4 rounds, the first counted from the first loss. 4 of 20 are 51/256 lost.
    policed(&mut run, 4 + 3, 20, 4);
    assert_eq!(run.control.policer.bandwidth(), None);
    policed(&mut run, 1, 20, 4);
    // 20 packets in 20 ms; the average over both intervals.
    let rate = run.control.policer.bandwidth().expect("policed");
    assert!(rate.abs_diff(Bandwidth::of(20, RTT_NS).unwrap()).raw() <= 1, "{rate:?}");
    run.context.in_flight = 20;
    // There is no probing for 48 rounds, then the cycle starts over.
    let gains: Vec<u32> = (0..48)
        .map(|_| {
            policed(&mut run, 1, 25, 0);
            pacing_gain(&run)
        })
        .collect();
    assert_eq!(gains[..47], [256; 47]);
    assert_eq!(run.control.policer.bandwidth(), None);
}

#[test]
fn few_losses_or_changing_rates_are_no_policer() {
    // 3 of 20 are 38/256.
    let mut run = steady();
    policed(&mut run, 40, 20, 3);
    assert_eq!(run.control.policer.bandwidth(), None);
    // 20 and 30 packets a round differ by more than an eighth.
    let mut run = steady();
    for n in 0..10 {
        policed(&mut run, 4, if n % 2 == 0 { 20 } else { 30 }, 10);
    }
    assert_eq!(run.control.policer.bandwidth(), None);
}

#[test]
fn what_arrives_bunched_makes_the_window_larger() {
    let mut run = steady();
    run.context.in_flight = 20;
    // 20 packets each 20 ms, all at once, are all excess, and one more by rounding (19.9997 are expected, which is 19).
    (0..10).for_each(|_| run.round(20));
    let budget = if run.control.cycle.is_probing() { 2 } else { 0 };
    // 2 * 20 + 21 + 3 * 2, made even.
    assert_eq!(run.window.cwnd, 68 + budget);
}
