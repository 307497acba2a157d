//! How the window grows, and when it does not.

use super::script::{DEFAULTS, Script};
use bufferscope_sim::tcp::Config;

#[test]
fn a_packet_acknowledged_sends_two() {
    // google: slow_start/slow-start-ack-per-1pkt
    let mut t = Script::accept(&DEFAULTS, 100);
    t.write(30_000).sends(1..10_001);
    for (n, ms) in [105, 0, 5, 0, 5, 0, 5, 0, 5, 0].into_iter().enumerate() {
        let n = n as u64;
        t.after(ms).ack(1001 + 1000 * n);
        t.sends(10_001 + 2000 * n..12_001 + 2000 * n);
    }
    assert_eq!(t.cwnd(), 20);
}

#[test]
fn two_packets_acknowledged_send_four() {
    // google: slow_start/slow-start-ack-per-2pkt
    let mut t = Script::accept(&DEFAULTS, 100);
    t.write(30_000).sends(1..10_001);
    for (n, ms) in [105, 5, 5, 5, 5].into_iter().enumerate() {
        let n = n as u64;
        t.after(ms).ack(2001 + 2000 * n);
        t.sends(10_001 + 4000 * n..14_001 + 4000 * n);
    }
    assert_eq!(t.cwnd(), 20);
}

#[test]
fn a_stretch_acknowledgement_of_four_sends_eight() {
    // google: slow_start/slow-start-ack-per-4pkt
    let mut t = Script::accept(&DEFAULTS, 100);
    t.write(30_000).sends(1..10_001);
    t.after(110).ack(4001).sends(10_001..18_001);
    t.after(10).ack(8001).sends(18_001..26_001);
    t.after(5).ack(10_001).sends(26_001..30_001);
    assert_eq!(t.cwnd(), 20);
}

#[test]
fn half_a_window_in_flight_does_not_grow_it() {
    // google: slow_start/slow-start-ack-per-2pkt-send-5pkt
    let mut t = Script::accept(&DEFAULTS, 0);
    t.write(5000).sends(1..5001);
    for ack in [2001, 4001, 5001] {
        assert_eq!(t.ack(ack).cwnd(), 10);
    }
}

#[test]
fn more_than_half_a_window_in_flight_grows_it_to_twice_that() {
    // google: slow_start/slow-start-ack-per-2pkt-send-6pkt
    let mut t = Script::accept(&DEFAULTS, 0);
    t.write(6000).sends(1..6001);
    for ack in [2001, 4001, 6001] {
        assert_eq!(t.ack(ack).cwnd(), 12);
    }
}

#[test]
fn nine_packets_out_grow_the_window_to_eighteen() {
    // google: slow_start/slow-start-app-limited-9-packets-out
    let mut t = Script::accept(&DEFAULTS, 100);
    t.write(9000).sends(1..9001);
    t.after(100);
    for (ack, cwnd) in [(2001, 12), (4001, 14), (6001, 16), (8001, 18), (9001, 18)] {
        assert_eq!(t.after(5).ack(ack).cwnd(), cwnd);
    }
}

#[test]
fn a_window_that_is_just_used_up_doubles() {
    // google: slow_start/slow-start-app-limited
    let mut t = Script::accept(&DEFAULTS, 100);
    t.write(10_000).sends(1..10_001);
    t.after(100);
    for (ack, cwnd) in [(2001, 12), (4001, 14), (6001, 16), (8001, 18), (10_001, 20)] {
        assert_eq!(t.after(5).ack(ack).cwnd(), cwnd);
    }
}

/// 26 packets sent and acknowledged: cwnd 36.
fn grown_to_36() -> Script {
    let mut t = Script::accept(&Config { slow_start_after_idle: true, ..DEFAULTS }, 100);
    t.window = 511 * 128;
    t.ack(1).write(26_000).sends(1..10_001);
    t.after(100).ack(10_001).sends(10_001..26_001);
    assert_eq!(t.cwnd(), 20);
    t
}

#[test]
fn after_an_idle_time_the_window_restarts() {
    // google: slow_start/slow-start-after-idle
    let mut t = grown_to_36();
    assert_eq!(t.after(100).ack(26_001).cwnd(), 36);
    t.after(2000).write(20_000).sends(26_001..36_001);
    assert_eq!(t.cwnd(), 10);
}

#[test]
fn after_a_closed_window_the_window_restarts_too() {
    // google: slow_start/slow-start-after-win-update
    let mut t = grown_to_36();
    t.window = 0;
    assert_eq!(t.after(100).ack(26_001).cwnd(), 36);
    t.write(20_000).sends_nothing();
    // Probes of the closed window, after 300 ms (the timeout), 600 and 1200 more.
    for ms in [300, 600, 1200] {
        t.after(ms - 1).sends_nothing();
        let (_, probe) = t.after(1).next_sent();
        assert_eq!((probe.segment.seq, probe.segment.len), (26_000, 0));
        assert_eq!(t.cwnd(), 36);
    }
    t.window = 511 * 128;
    t.after(900).ack(26_001).sends(26_001..36_001);
    assert_eq!(t.cwnd(), 10);
}

#[test]
fn paced_packets_grow_the_window_all_the_same() {
    // google: slow_start/slow-start-fq-ack-per-2pkt. There, sch_fq paces pairs of packets; here, TCP itself single
    // ones.
    let mut t = Script::accept(&Config { pacing: true, mss_bytes: 1460, ..DEFAULTS }, 100);
    t.window = 500 * 128;
    t.ack(1).write(40_000).sends(1..14_601);
    t.after(105).ack(2921).ignores_sent = true;
    assert_eq!(t.cwnd(), 12);
    for (ms, ack, cwnd) in [(3, 5841, 14), (2, 8761, 16), (9, 11_681, 18), (1, 14_601, 20)] {
        assert_eq!(t.after(ms).ack(ack).cwnd(), cwnd);
    }
    // 40,000 bytes less the ten packets are 17.4 packets, at twice a window of 20 a round trip 2.6 ms apart at least.
    assert!(t.info().inflight_bytes < 20 * 1460);
}

#[test]
fn the_initial_window_is_ten_packets() {
    // ligurio: initial_window/iw10-base-case
    let mut t = Script::accept(&Config { mss_bytes: 1460, ..DEFAULTS }, 100);
    t.after(100).write(14_600).sends(1..14_601);
    t.after(100).ack(14_601).sends_nothing();
}

#[test]
fn a_response_shorter_than_the_initial_window_leaves_at_once() {
    // ligurio: initial_window/iw10-short-response
    let mut t = Script::accept(&Config { mss_bytes: 1460, ..DEFAULTS }, 100);
    t.write(7300).sends(1..7301);
    t.after(100).ack(7301);
    t.after(100).close().sends(7301..7302);
}
