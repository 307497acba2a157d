//! Tests of how BBRv3 responds to losses and marks, and how it reverts its responses.

use super::super::short_term::BETA;
use super::super::{Bbr3, Control, Phase};
use super::{cruising, looking_up, until};
use crate::transport::congestion::State;
use crate::transport::congestion::helpers::bandwidth::Bandwidth;
use crate::transport::congestion::testing::{self, MS, RTT_NS};

type Run = testing::Run<Bbr3>;

/// A round trip that delivers `delivered` of 20 packets in flight and loses one.
fn lossy_round(run: &mut Run, delivered: u32) {
    run.lose(20, 1);
    run.round(delivered);
}

#[test]
fn losses_while_cruising_bound_bandwidth_and_window_by_what_was_delivered_or_seven_tenths() {
    let mut run = cruising();
    assert_eq!(run.window.cwnd, 61);
    // 18 were delivered, more than 0.7 of 20; and 180/256 of the window of 61 is left, 42.9.
    lossy_round(&mut run, 18);
    assert_eq!(run.control.bandwidth(), Bandwidth::of(20, RTT_NS).unwrap().next_up());
    // (The first loss began a round. The next acknowledgement ends it, and the larger of both counts: 20.)
    assert_eq!((run.control.short.in_flight, run.window.cwnd), (42, 42));
    lossy_round(&mut run, 18);
    assert_eq!(run.control.bandwidth(), Bandwidth::of(18, RTT_NS).unwrap().next_up());
    // 180/256 of 42 = 29.5; of 29 = 20.4; and then what was delivered is larger.
    for in_flight in [29, 20, 18, 18] {
        assert_eq!(run.window.cwnd, in_flight);
        lossy_round(&mut run, 18);
    }
    // The bandwidth never falls below what is delivered.
    assert_eq!(run.control.bandwidth(), Bandwidth::of(18, RTT_NS).unwrap().next_up());
    // With nothing delivered it falls by three tenths a round.
    let before = run.control.bandwidth();
    lossy_round(&mut run, 1);
    lossy_round(&mut run, 1);
    assert_eq!(run.control.bandwidth(), before.times(BETA));
}

#[test]
fn losses_count_once_a_round() {
    let mut run = cruising();
    run.lose(20, 1);
    run.acknowledge_early(5, MS);
    run.lose(20, 2);
    run.acknowledge_early(5, MS);
    assert_eq!(run.control.short.in_flight, u32::MAX, "the round is not over");
    let bound = BETA.times(run.window.cwnd);
    run.acknowledge(5, 1, MS);
    assert_eq!(run.control.short.in_flight, bound);
    run.acknowledge(5, 0, MS);
    assert_eq!(run.control.short.in_flight, bound);
}

#[test]
fn looking_for_more_lifts_those_bounds() {
    let mut run = cruising();
    lossy_round(&mut run, 10);
    lossy_round(&mut run, 10);
    assert!(run.control.bandwidth() < run.control.path.max_bandwidth());
    until(&mut run, Phase::Refill);
    assert_eq!(run.control.bandwidth(), run.control.path.max_bandwidth());
    // Losses do not set the bounds while it probes.
    lossy_round(&mut run, 10);
    assert_eq!((run.control.phase, run.control.short.in_flight), (Phase::Up, u32::MAX));
}

#[test]
fn more_than_two_per_cent_lost_while_looking_is_the_bound_from_then_on() {
    let mut run = looking_up();
    // One of 100 is not too much; the second one is: 98 before it, and (2 - 1) / 0.98 = 1 more.
    run.lose(100, 1);
    assert_eq!(run.control.phase, Phase::Up);
    run.lose(99, 2);
    assert_eq!((run.control.phase, run.control.long.in_flight), (Phase::Down, 99));
    // Only the first time: further losses of the same probe do not lower it.
    run.lose(50, 10);
    assert_eq!(run.control.long.in_flight, 99);
}

#[test]
fn the_bound_is_at_least_seven_tenths_of_the_path() {
    let mut run = looking_up();
    // 180/256 of the bandwidth-delay product of 21 is 14.8.
    run.lose(5, 3);
    assert_eq!(run.control.long.in_flight, 14);
}

#[test]
fn where_the_application_is_the_limit_losses_end_the_search_but_set_no_bound() {
    let mut run = looking_up();
    run.app_limited = true;
    run.lose(20, 2);
    assert_eq!((run.control.phase, run.control.long.in_flight), (Phase::Down, u32::MAX));
}

#[test]
fn the_bound_holds_while_looking_and_with_headroom_while_cruising() {
    let mut run = looking_up();
    run.control.long.in_flight = 30;
    run.round(20);
    assert_eq!(run.window.cwnd, 30);
    run.control.phase = Phase::Cruise;
    run.control.probe.rounds_since_up = 0;
    // 30 * 38/256 = 4.
    run.round(20);
    assert_eq!(run.window.cwnd, 26);
    // It never goes below 4 packets.
    run.context.in_flight = 2;
    run.control.long.in_flight = 2;
    run.round(1);
    assert_eq!(run.window.cwnd, 4);
}

#[test]
fn what_was_in_flight_without_harm_raises_the_bound() {
    let mut run = cruising();
    run.control.long.in_flight = 18;
    run.round(20);
    assert_eq!(run.control.long.in_flight, 20);
}

#[test]
fn a_bound_in_full_use_grows_by_one_two_and_four_packets_a_round() {
    let mut run = looking_up();
    run.control.long.in_flight = 30;
    run.context.window_full = true;
    run.acknowledge(1, 0, MS);
    let mut bounds = vec![run.control.long.in_flight];
    for _ in 0..3 {
        // A window's worth of acknowledgements a round.
        run.acknowledge(run.window.cwnd, 0, RTT_NS);
        bounds.push(run.control.long.in_flight);
    }
    let grown: Vec<u32> = bounds.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(grown.windows(2).all(|pair| pair[1] > pair[0]) && grown[0] <= 2, "{bounds:?}");
    assert_eq!(run.control.phase, Phase::Up, "for as long as the bound is the limit, the pipe is not full");
    run.context.window_full = false;
    let bound = run.control.long.in_flight;
    run.round(20);
    assert_eq!(run.control.long.in_flight, bound);
}

#[test]
fn after_a_search_that_lost_too_much_the_next_one_is_short_and_another_one_follows_at_once() {
    let mut run = looking_up();
    // 23 before the second one, of which 5/256 is less than one.
    run.lose(24, 2);
    assert_eq!((run.control.phase, run.control.long.in_flight), (Phase::Down, 23));
    until(&mut run, Phase::Up);
    // It stops where the last probe did, without waiting for losses.
    run.context.in_flight = 24;
    run.acknowledge(1, 0, MS);
    assert_eq!(run.control.phase, Phase::Down);
    // Its packets arrive without loss: a round later the next probe begins.
    run.context.in_flight = 20;
    run.round(20);
    assert_eq!(run.control.phase, Phase::Refill);
    assert_eq!(until(&mut run, Phase::Up), 1);
    run.context.in_flight = 24;
    run.acknowledge(1, 0, MS);
    assert_eq!(run.control.phase, Phase::Up);
}

#[test]
fn a_recovery_that_was_unfounded_is_taken_back() {
    let mut run = cruising();
    let (cwnd, bandwidth) = (run.window.cwnd, run.control.bandwidth());
    run.lose(20, 1);
    run.enter(State::Recovery);
    for _ in 0..3 {
        lossy_round(&mut run, 5);
    }
    assert!(run.window.cwnd < cwnd / 2 && run.control.bandwidth() < bandwidth);
    let window = run.control.undo(&mut run.window, &run.context);
    assert_eq!((window, run.control.bandwidth()), (cwnd, bandwidth));
    assert_eq!(run.control.short.in_flight, u32::MAX);
}

#[test]
fn a_search_that_unfounded_losses_ended_begins_again() {
    let mut run = looking_up();
    run.lose(24, 2);
    run.enter(State::Recovery);
    assert_eq!((run.control.phase, run.control.long.in_flight), (Phase::Down, 23));
    run.control.undo(&mut run.window, &run.context);
    assert_eq!((run.control.phase, run.control.long.in_flight), (Phase::Refill, u32::MAX));
}

#[test]
fn startup_that_unfounded_losses_ended_begins_again() {
    let mut run = Run::begin();
    [10, 20, 40].iter().for_each(|&packets| run.round(packets));
    run.context.in_flight = 100;
    run.lose(100, 1);
    run.enter(State::Recovery);
    for _ in 0..6 {
        run.acknowledge_early(5, 5 * MS);
        (0..2).for_each(|_| run.lose(100, 1));
    }
    run.acknowledge(40, 0, RTT_NS);
    assert_eq!(run.control.phase, Phase::Drain);
    run.control.undo(&mut run.window, &run.context);
    assert_eq!((run.control.phase, run.control.full.is_reached()), (Phase::Startup, false));
}

#[test]
fn after_a_timeout_the_window_comes_back_within_the_bounds() {
    let mut run = cruising();
    run.lose(20, 1);
    run.enter(State::Loss);
    run.window.cwnd = 1;
    // The bound is 0.7 of the window before the timeout, not of the one packet since.
    run.control.end_loss_round(&run.window, &run.context);
    assert_eq!(run.control.short.in_flight, 42);
    run.enter(State::Open);
    assert_eq!(run.window.cwnd, 61);
    run.acknowledge(1, 0, MS);
    assert_eq!(run.window.cwnd, 42);
}

#[test]
fn an_echo_of_congestion_is_one_loss() {
    let mut run = cruising();
    run.enter(State::Cwr);
    run.round(20);
    run.enter(State::Open);
    assert_eq!(run.control.short.in_flight, 42);
    // One packet of the 20 in flight while probing up is more than 2 %.
    let mut run = looking_up();
    run.enter(State::Cwr);
    assert_eq!(run.control.phase, Phase::Down);
    assert_eq!(run.control.long.in_flight, 21);
}

#[test]
fn startup_ends_after_two_rounds_of_which_half_is_marked() {
    let mut run = Run::begin();
    run.context.in_flight = 100;
    let mut marked_round = |packets: u32, marked: u64| {
        run.context.delivered_ce += marked;
        run.round(packets);
        run.control.phase
    };
    let phases = [(10, 5), (20, 9), (40, 20), (80, 40)].map(|(packets, marked)| marked_round(packets, marked));
    // The second round has less than half; those after it have.
    assert_eq!(phases, [Phase::Startup, Phase::Startup, Phase::Startup, Phase::Drain]);
}
