//! Reductions of the window that turn out to be unfounded.

use crate::net::*;
use bufferscope_scenario::Congestion;
use bufferscope_sim::tcp::{Config, State};

const RENO: Config = Config {
    congestion: Congestion::Reno,
    rmem_default_bytes: 64 << 20,
    rmem_max_bytes: 64 << 20,
    slow_start_after_idle: false,
    ..Config::DEFAULT
};

/// States that the client goes through until the given time.
fn states(net: &mut Net, until_ns: u64) -> Vec<State> {
    let mut states = vec![];
    net.run_while(|net| {
        let state = net.sample().state;
        if states.last() != Some(&state) {
            states.push(state);
        }
        net.now_ns < until_ns
    });
    states
}

#[test]
fn a_fast_retransmit_of_a_packet_that_was_only_late_is_undone() {
    // Packet 50 arrives 60 ms late. The acknowledgements of its successors cause a retransmission, and its first
    // acknowledgement echoes the timestamp of the original.
    let mut net =
        Net::new(&RENO, 50 * MS).faults(|n, _| if n == 50 { Action::Late(60 * MS) } else { Action::Deliver }).stream();
    let mut before = 0;
    net.run_while(|net| {
        if net.sample().state < State::Recovery {
            before = net.cwnd_packets();
        }
        net.sample().state < State::Recovery
    });
    assert_eq!(net.sample().ssthresh_bytes, Some(before / 2 * MSS));
    net.run_while(|net| net.sample().state == State::Recovery);
    // The window is restored, and the threshold is unset again.
    assert_eq!((net.sample().state, net.sample().ssthresh_bytes), (State::Open, None));
    assert!(net.cwnd_packets() >= before, "{} after {before}", net.cwnd_packets());
    assert_eq!(net.sample().retransmits, 1);
}

#[test]
fn a_delay_that_outlasts_the_timeout_is_no_loss() {
    // The path delivers nothing from 395 to 1000 ms: packets sent meanwhile arrive at the end of that time, in order.
    // The timeout fires, and is undone when the originals' acknowledgements come in. Only the head is retransmitted.
    let still = 395 * MS..SECOND;
    let late = move |_: usize, p: &Packet| {
        if still.contains(&p.sent_ns) { Action::Late(still.end - p.sent_ns) } else { Action::Deliver }
    };
    let mut net = Net::new(&RENO, 50 * MS).faults(late).stream();
    net.run_until(399 * MS);
    let before = net.cwnd_packets();
    let seen = states(&mut net, 2 * SECOND);
    assert!(seen.contains(&State::Loss), "{seen:?}");
    assert_eq!(net.sample().state, State::Open);
    assert!(net.cwnd_packets() >= before, "{} after {before}", net.cwnd_packets());
    assert!(net.sample().retransmits <= 3, "{}", net.sample().retransmits);
}

#[test]
fn a_real_loss_is_not_undone() {
    let mut net = Net::new(&RENO, 50 * MS).faults(|n, _| if n == 50 { Action::Drop } else { Action::Deliver }).stream();
    net.run_while(|net| net.sample().state < State::Recovery);
    let ssthresh = net.sample().ssthresh_bytes.unwrap();
    net.run_while(|net| net.sample().state == State::Recovery);
    assert_eq!((net.sample().cwnd_bytes, net.sample().ssthresh_bytes), (ssthresh, Some(ssthresh)));
}

#[test]
fn with_reordering_the_window_for_it_grows_until_nothing_is_sent_again() {
    // Every 20th packet is 40 ms late on a path of 100 ms: more than the quarter round trip that RACK begins with. Once
    // duplicates have been reported it waits longer.
    let late =
        |n: usize, _: &Packet| if n > 40 && n.is_multiple_of(20) { Action::Late(40 * MS) } else { Action::Deliver };
    // The receive window keeps the queue from overflowing.
    let config = Config { rmem_default_bytes: 500_000, rmem_max_bytes: 500_000, ..RENO };
    let mut net = Net::new(&config, 50 * MS).bottleneck(10_000_000, 1000).faults(late).stream();
    net.run_until(10 * SECOND);
    let early = net.sample().retransmits;
    assert!(early > 0);
    net.run_until(20 * SECOND);
    assert_eq!(net.sample().retransmits, early);
}
