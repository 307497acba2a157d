//! The state that a connection reports about itself, in the kernel's units.

use crate::net::*;
use bufferscope_scenario::Congestion;
use bufferscope_sim::tcp::Config;

const RENO: Config = Config { congestion: Congestion::Reno, ..Config::DEFAULT };

#[test]
fn the_handshake_counts_as_a_segment_delivered_and_a_fin_as_another() {
    let mut net = Net::new(&RENO, 10 * MS).upload(10 * MSS);
    net.run_until(25 * MS);
    assert_eq!(net.sample().delivered, 1, "as `ss -ti` shows of a connection that has sent nothing");
    net.run_to_end(10 * SECOND);
    // Ten segments, the last of which carries the FIN.
    assert_eq!(net.sample().delivered, 11);
}

#[test]
fn the_delivery_rate_is_the_bottlenecks() {
    let mut net = Net::new(&RENO, 10 * MS).bottleneck(10_000_000, 100).stream();
    net.run_until(5 * SECOND);
    // 1448 bytes of payload in every 1500.
    let expected = 10_000_000.0 * 1448.0 / 1500.0;
    let rate = net.sample().delivery_rate_bps.unwrap() as f64;
    assert!((rate / expected - 1.0).abs() < 0.02, "{rate} for {expected}");
    assert!(!net.sample().app_limited);
    // The handshake's segments take less time on the wire than full ones, 1.2 ms.
    let min_rtt_ns = net.sample().min_rtt_ns.unwrap();
    assert!((20 * MS..20 * MS + 100_000).contains(&min_rtt_ns), "{min_rtt_ns}");
}

#[test]
fn a_rate_that_the_application_limited_counts_only_if_it_is_greater() {
    let mut net = Net::new(&RENO, 10 * MS).bottleneck(10_000_000, 100);
    net.act(CLIENT, |end, now_ns, out| {
        end.connect(now_ns, out);
        end.offer(now_ns, 1000 * MSS, out);
    });
    net.run_until(5 * SECOND);
    let before = net.sample();
    // One segment a second.
    for _ in 0..5 {
        net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, MSS, out));
        net.run_until(net.now_ns + SECOND);
    }
    let after = net.sample();
    assert_eq!((after.delivered, after.delivery_rate_bps), (before.delivered + 5, before.delivery_rate_bps));
    // A connection that never delivered faster reports the rate that its application limits.
    let mut idle = Net::new(&RENO, 10 * MS).bottleneck(10_000_000, 100);
    idle.act(CLIENT, |end, now_ns, out| end.connect(now_ns, out));
    for _ in 0..5 {
        idle.act(CLIENT, |end, now_ns, out| end.offer(now_ns, MSS, out));
        idle.run_until(idle.now_ns + SECOND);
    }
    assert!(idle.sample().app_limited);
    // A segment a round trip of 20 ms and what a delayed acknowledgement adds.
    assert!(idle.sample().delivery_rate_bps.unwrap() <= 8 * MSS * 50);
}

#[test]
fn a_connection_is_busy_from_the_first_byte_to_the_last_acknowledgement() {
    let mut net = Net::new(&RENO, 10 * MS);
    net.act(CLIENT, |end, now_ns, out| end.connect(now_ns, out));
    net.run_until(SECOND);
    assert_eq!(net.sample().busy_ns, 0);
    for _ in 0..3 {
        // Two segments are acknowledged at once: a round trip.
        net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, 2 * MSS, out));
        net.run_until(net.now_ns + SECOND);
    }
    assert_eq!((net.sample().busy_ns, net.sample().rwnd_limited_ns), (3 * 20 * MS, 0));
}

#[test]
fn the_receivers_window_limits_where_it_is_smaller_than_the_path() {
    // 40,000 bytes of buffer, 20,000 of window, over 100 ms: the wire is idle most of the time.
    let small = Config { rmem_default_bytes: 40_000, rmem_max_bytes: 40_000, ..RENO };
    let mut net = Net::new(&small, 50 * MS).stream();
    net.run_until(10 * SECOND);
    let sample = net.sample();
    assert_eq!(sample.busy_ns, 10 * SECOND - 100 * MS, "since the handshake");
    assert!(sample.rwnd_limited_ns > 9 * SECOND, "{sample:?}");
    // With room for everything it never does.
    let mut net = Net::new(&RENO, 50 * MS).bottleneck(10_000_000, 20).stream();
    net.run_until(10 * SECOND);
    assert_eq!(net.sample().rwnd_limited_ns, 0);
}
