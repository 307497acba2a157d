//! Tests of BBRv3's phases, one acknowledgement at a time, including those of the draft's appendix (section 10). The
//! expected windows and rates are derived from the draft's equations.

mod bounds;

use super::{Bbr3, Control, Phase};
use crate::transport::congestion::Event;
use crate::transport::congestion::State;
use crate::transport::congestion::helpers::bandwidth::{Bandwidth, Gain};
use crate::transport::congestion::testing::{self, MS, RTT_NS};

type Run = testing::Run<Bbr3>;

/// Gain of the pacing rate over the bandwidth, in 256ths.
fn pacing_gain(run: &Run) -> u32 {
    run.control.phase.pacing_gain().times(256)
}

/// Packets over a round trip, as a bandwidth.
fn per_round(packets: u64) -> Bandwidth {
    Bandwidth::of(packets, RTT_NS).unwrap().next_up()
}

/// The state after startup and drain on a path of 1 packet per millisecond, that is 20 packets per round trip.
fn cruising() -> Run {
    let mut run = Run::begin();
    (0..5).for_each(|_| run.round(20));
    run.context.in_flight = 20;
    run.round(20);
    run.round(20);
    assert_eq!(run.control.phase, Phase::Cruise);
    run
}

/// Rounds of this many packets until startup is over.
fn until_full(run: &mut Run, packets: u32) {
    while !run.control.full.is_reached() {
        run.round(packets);
    }
}

/// The same, until the next probe.
fn looking_up() -> Run {
    let mut run = cruising();
    until(&mut run, Phase::Up);
    run
}

/// Rounds of 20 packets until a phase begins; returns how many.
fn until(run: &mut Run, phase: Phase) -> u32 {
    let rounds = (1..100).find(|_| {
        run.round(20);
        run.control.phase == phase
    });
    rounds.unwrap_or_else(|| panic!("{phase:?} never began"))
}

#[test]
fn startup_ends_after_three_rounds_of_less_than_a_quarter_more() {
    let mut run = Run::begin();
    // 2.77 * 256 = 709.1, rounded up.
    assert_eq!((run.control.phase, pacing_gain(&run)), (Phase::Startup, 710));
    // 20 and 26 exceed 10 and 20 by more than a quarter; 32, 30 and 31 do not.
    for packets in [10, 20, 26, 32, 30] {
        run.round(packets);
        assert_eq!(run.control.phase, Phase::Startup);
    }
    run.context.in_flight = 100;
    run.round(31);
    assert_eq!((run.control.phase, pacing_gain(&run)), (Phase::Drain, 128));
    assert!(run.window.ssthresh < 100, "to be seen from outside");
}

#[test]
fn the_window_doubles_each_round_of_startup() {
    let mut run = Run::begin();
    for (packets, cwnd) in [(10, 20), (20, 40), (40, 80)] {
        run.round(packets);
        assert_eq!(run.window.cwnd, cwnd);
    }
}

#[test]
fn startup_does_not_end_while_the_application_is_the_limit() {
    let mut run = Run::begin();
    run.round(20);
    run.app_limited = true;
    (0..20).for_each(|_| run.round(5));
    assert_eq!(run.control.phase, Phase::Startup);
    assert_eq!(run.control.bandwidth(), per_round(20));
}

/// A round of recovery in startup: `losses` acknowledgements that each show one packet lost of 100 in flight.
fn startup_with(losses: u32, lost_each: u32) -> Run {
    let mut run = Run::begin();
    [10, 20, 40].iter().for_each(|&packets| run.round(packets));
    run.context.in_flight = 100;
    run.app_limited = true;
    run.lose(100, 1);
    run.enter(State::Recovery);
    for _ in 0..losses {
        run.acknowledge_early(5, 5 * MS);
        (0..lost_each).for_each(|_| run.lose(100, 1));
    }
    run.acknowledge(70, 0, RTT_NS);
    run
}

#[test]
fn startup_ends_when_a_round_of_recovery_loses_more_than_two_per_cent_in_six_acknowledgements() {
    // 5/256 of 100 is 1: more than that is too much. It does not matter that the application is the limit.
    let run = startup_with(5, 2);
    assert_eq!(run.control.phase, Phase::Drain);
    // The bound is what was delivered in that round, 70, or the bandwidth-delay product if larger: 70.001, rounded up.
    assert_eq!(run.control.long.in_flight, 71);
    assert_eq!(startup_with(4, 2).control.phase, Phase::Startup);
    assert_eq!(startup_with(5, 1).control.phase, Phase::Startup);
}

/// In the first round of draining.
fn draining() -> Run {
    let mut run = Run::begin();
    (0..3).for_each(|_| run.round(20));
    run.context.in_flight = 60;
    run.round(20);
    assert_eq!(run.control.phase, Phase::Drain);
    run
}

#[test]
fn draining_ends_when_no_more_is_in_flight_than_the_path_holds() {
    // 20 packets; the 6 for bursts fit below that. (The bandwidth is rounded up: 20.001, so 21.)
    let mut run = draining();
    run.context.in_flight = 22;
    run.round(20);
    assert_eq!(run.control.phase, Phase::Drain);
    run.context.in_flight = 21;
    run.round(20);
    // Nor is more needed to leave the next phase, which drains what probing has queued.
    assert_eq!((run.control.phase, pacing_gain(&run)), (Phase::Cruise, 256));
}

#[test]
fn draining_ends_after_three_rounds_in_any_case() {
    let mut run = draining();
    for _ in 0..3 {
        run.round(18);
        assert_eq!(run.control.phase, Phase::Drain);
    }
    run.round(18);
    assert_eq!(run.control.phase, Phase::Down);
}

#[test]
fn more_is_looked_for_after_as_many_rounds_as_reno_would_take() {
    // 21 round trips (the bandwidth-delay product), counted from 0 or 1, with one for filling the pipe.
    let mut counts: Vec<u32> = (0..20)
        .map(|seed| {
            let mut run = Run::with_seed(seed);
            (0..5).for_each(|_| run.round(20));
            run.context.in_flight = 20;
            until(&mut run, Phase::Down);
            until(&mut run, Phase::Refill)
        })
        .collect();
    counts.sort_unstable();
    counts.dedup();
    assert_eq!(counts, [20, 21]);
}

#[test]
fn on_long_paths_more_is_looked_for_after_two_to_three_seconds() {
    let waits: Vec<u64> = (0..100)
        .map(|seed| {
            // 200 packets a round trip of 100 ms.
            let mut run = Run::with_seed(seed);
            run.rtt_ns = 100 * MS;
            run.control.path.min_rtt_ns = None;
            run.control.dip = Default::default();
            run.control.dip.begin(&super::Context { min_rtt_ns: Some(100 * MS), ..run.context });
            run.context.in_flight = 200;
            until_full(&mut run, 200);
            let began_ns = run.context.now_ns;
            while run.control.phase != Phase::Refill {
                run.round(200);
            }
            (run.context.now_ns - began_ns) / MS
        })
        .collect();
    // The first acknowledgement after the wait; one arrives every 100 ms.
    assert!(waits.iter().all(|ms| (2100..=3000).contains(ms)), "{waits:?}");
    assert_eq!((waits.iter().min(), waits.iter().max()), (Some(&2100), Some(&3000)));
}

#[test]
fn a_cycle_fills_the_pipe_for_a_round_then_sends_a_quarter_more_until_that_delivers_no_more() {
    let mut run = cruising();
    assert_eq!(pacing_gain(&run), 256);
    until(&mut run, Phase::Refill);
    assert_eq!(pacing_gain(&run), 256);
    assert_eq!(until(&mut run, Phase::Up), 1);
    assert_eq!((pacing_gain(&run), run.control.phase.cwnd_gain().times(256)), (320, 576));
    // The three rounds without growth follow the round that they are compared with.
    assert_eq!(until(&mut run, Phase::Down), 3);
    assert_eq!(until(&mut run, Phase::Cruise), 1);
}

#[test]
fn it_looks_on_for_as_long_as_there_is_more_or_the_application_is_the_limit() {
    let mut run = looking_up();
    [26, 33, 42, 53].iter().for_each(|&packets| run.round(packets));
    run.app_limited = true;
    (0..10).for_each(|_| run.round(10));
    assert_eq!(run.control.phase, Phase::Up);
}

#[test]
fn down_lasts_until_the_queue_is_gone_and_headroom_free() {
    let mut run = looking_up();
    until(&mut run, Phase::Down);
    run.context.in_flight = 22;
    run.round(20);
    assert_eq!(run.control.phase, Phase::Down);
    // With a bound of 20, 20 * 38/256 = 2 are to be left free.
    run.control.long.in_flight = 20;
    for (in_flight, phase) in [(19, Phase::Down), (18, Phase::Cruise)] {
        run.context.in_flight = in_flight;
        run.acknowledge(1, 0, MS);
        assert_eq!(run.control.phase, phase);
    }
}

#[test]
fn down_ends_after_the_wait_in_any_case() {
    let mut run = looking_up();
    until(&mut run, Phase::Down);
    run.context.in_flight = 40;
    let rounds = until(&mut run, Phase::Refill);
    assert!((19..=21).contains(&rounds), "{rounds}: without cruising");
}

#[test]
fn the_bandwidth_is_the_largest_of_two_cycles() {
    let mut run = cruising();
    run.round(25);
    for _ in 0..2 {
        assert_eq!(run.control.bandwidth(), per_round(25));
        until(&mut run, Phase::Up);
        until(&mut run, Phase::Down);
        run.round(20);
    }
    assert_eq!(run.control.bandwidth(), per_round(20));
}

#[test]
fn what_the_application_limits_is_no_bandwidth_unless_it_is_more() {
    let mut run = cruising();
    run.app_limited = true;
    until(&mut run, Phase::Refill);
    run.round(5);
    assert_eq!((run.control.phase, run.control.bandwidth()), (Phase::Up, per_round(20)));
    run.round(30);
    assert_eq!(run.control.bandwidth(), per_round(30));
}

#[test]
fn the_window_is_twice_the_product_and_what_arrives_bunched() {
    let mut run = cruising();
    // 20 packets each 20 ms, all at once, are all excess: 2 * 20.001 rounded up and 20.
    assert_eq!(run.window.cwnd, 61);
    // After ten rounds without bunches there is only the packet that is being acknowledged: 41 and 1.
    run.acknowledge(1, 0, 50 * MS);
    (0..11).for_each(|_| run.acknowledge(1, 0, MS));
    assert_eq!(run.window.cwnd, 42);
}

/// Runs round trips of 25 ms for this long: the queue never empties, and no probe begins.
fn with_queue(run: &mut Run, ms: u64) {
    run.rtt_ns = 25 * MS;
    let until_ns = run.context.now_ns + ms * MS;
    while run.context.now_ns + run.rtt_ns <= until_ns {
        run.round(25);
    }
}

#[test]
fn after_five_seconds_without_a_shorter_round_trip_half_is_in_flight_for_200_ms() {
    let mut run = cruising();
    let began_ns = run.context.now_ns;
    with_queue(&mut run, 5_000 - (began_ns - RTT_NS) / MS);
    assert_ne!(run.control.phase, Phase::ProbeRtt);
    run.control.short.in_flight = 30;
    run.round(25);
    // Half of 25 a round trip of 25 ms times 20 ms, 10.0003, rounded up.
    assert_eq!((run.control.phase, run.window.cwnd), (Phase::ProbeRtt, 11));
    assert!(run.window.mark_app_limited, "what is delivered now says nothing about the path");
    // The 200 ms begin once no more than those are in flight.
    run.app_limited = true;
    run.round(25);
    run.context.in_flight = 11;
    run.rtt_ns = RTT_NS;
    run.round(11);
    let since_ns = run.context.now_ns;
    while run.control.phase == Phase::ProbeRtt {
        assert_eq!(run.window.cwnd, 11);
        run.round(11);
    }
    assert_eq!((run.context.now_ns - since_ns) / MS, 220, "the first acknowledgement after 200 ms");
    // The pipe is not full, so there is nothing to drain; the bounds set by losses are lifted.
    assert_eq!((run.control.phase, run.control.short.in_flight), (Phase::Cruise, u32::MAX));
    assert_eq!(run.control.path.min_rtt_ns, Some(RTT_NS));
    assert!(run.window.cwnd > 40, "{}", run.window.cwnd);
}

#[test]
fn a_longer_round_trip_is_believed_after_ten_seconds() {
    let mut run = cruising();
    with_queue(&mut run, 9_800);
    assert_eq!(run.control.path.min_rtt_ns, Some(RTT_NS));
    with_queue(&mut run, 500);
    assert_eq!(run.control.path.min_rtt_ns, Some(25 * MS));
}

#[test]
fn an_idle_time_has_emptied_the_pipe_already() {
    let mut run = cruising();
    run.context.now_ns += 6_000 * MS;
    (run.context.in_flight, run.context.app_limited) = (0, true);
    run.control.on_event(&mut run.window, &run.context, Event::TxStart);
    // Packets leave at the bandwidth itself: 16778 * 1448 * 0.99 * 10^6 / 2^24.
    assert_eq!(run.window.pacing_bytes_per_s, 1_433_586);
    run.round(1);
    assert_ne!(run.control.phase, Phase::ProbeRtt);
    run.round(1);
    assert_ne!(run.control.phase, Phase::ProbeRtt);
}

#[test]
fn a_look_at_the_round_trip_during_startup_returns_to_it() {
    let mut run = Run::begin();
    run.app_limited = true;
    run.rtt_ns = 21 * MS;
    while run.control.phase == Phase::Startup {
        run.round(10);
    }
    assert_eq!(run.control.phase, Phase::ProbeRtt);
    run.context.in_flight = 4;
    (0..14).for_each(|_| run.round(4));
    assert_eq!(run.control.phase, Phase::Startup);
}

#[test]
fn the_gains_are_those_of_the_drafts_table() {
    let of = |phase: Phase| (phase.pacing_gain(), phase.cwnd_gain());
    let (one, two) = (Gain::ONE, Gain::of(2, 1));
    assert_eq!(of(Phase::Drain), (Gain::of(50, 100), two));
    assert_eq!(of(Phase::Down), (Gain::of(90, 100), two));
    assert_eq!(of(Phase::Cruise), (one, two));
    assert_eq!(of(Phase::Refill), (one, two));
    assert_eq!(of(Phase::Up), (Gain::of(125, 100), Gain::of(225, 100)));
    assert_eq!(of(Phase::ProbeRtt), (one, Gain::of(50, 100)));
}
