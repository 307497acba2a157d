//! Timeouts, when no acknowledgements arrive.

use super::script::{DEFAULTS, Script};
use bufferscope_sim::Ecn;
use bufferscope_sim::tcp::{Config, Flags, Role, State};

#[test]
fn a_syn_ack_is_repeated_after_a_second() {
    // ligurio: init_rto/init_rto_passive_open, with today's initial timeout of 1 s (RFC 6298).
    let mut t = Script::new(&DEFAULTS, Role::Server);
    t.inject(0, Flags::SYN, Ecn::NotEct, |syn| syn.seq = 0);
    t.expect_flags(Flags::SYN | Flags::ACK);
    t.after(999).sends_nothing();
    t.after(1).expect_flags(Flags::SYN | Flags::ACK);
}

#[test]
fn a_timeout_doubles_the_next() {
    // ligurio: rto/retransmission_timeout, with a handshake of 90 ms. Linux sends a tail loss probe before (2 RTT + 2
    // ms), and its timeout is RTT + 200 ms.
    let mut t = Script::accept(&DEFAULTS, 90);
    t.window = 65_535;
    t.ack(1).write(10_000).sends(1..10_001);
    t.after(90).ack(4001).sends_nothing();
    let probe = t.after(190).sends(9001..10_001);
    let first = t.after(300).sends(4001..5001);
    let second = t.after(1000).sends(4001..5001);
    let third = t.after(2000).sends(4001..5001);
    assert_eq!([first - probe, second - first, third - second], [290, 580, 1160]);
    assert_eq!((t.state(), t.cwnd()), (State::Loss, 1));
}

#[test]
fn after_a_timeout_the_rest_is_repaired_by_slow_start() {
    // ligurio: slow_start/slow-start. With F-RTO the second packet sent is new data if there is any. Here there is no
    // new data.
    let mut t = Script::accept(&DEFAULTS, 100);
    t.window = 65_535;
    t.ack(1).write(10_000).sends(1..10_001);
    t.after(202).sends(9001..10_001);
    t.after(300).sends(1..1001);
    assert_eq!((t.state(), t.cwnd(), t.ssthresh()), (State::Loss, 1, Some(7)));
    t.after(100).ack(1001).sends(1001..3001);
    t.after(100).ack(3001).sends(3001..7001);
    t.after(100).ack(7001).sends(7001..10_001);
    t.after(100).ack(10_001);
    assert_eq!((t.state(), t.cwnd()), (State::Open, 7));
}

/// Ten packets sent and nothing received: the probe at 302 ms, the timeout at 602 ms. More data waits.
fn timed_out() -> Script {
    let mut t = Script::accept(&DEFAULTS, 100);
    t.window = 65_535;
    t.ack(1).write(10_000).sends(1..10_001);
    t.after(202).sends(9001..10_001);
    t.after(300).sends(1..1001);
    t.write(10_000).sends_nothing();
    t
}

#[test]
fn f_rto_sends_new_data_and_finds_the_timeout_spurious() {
    // RFC 5682, section 3.1, steps 2.b and 3.b; kernel commit e33099f96d99 ("tcp: implement RFC5682 F-RTO").
    let mut t = timed_out();
    t.after(50).ack(1001).sends(10_001..12_001);
    assert_eq!(t.state(), State::Loss);
    // A segment that was never retransmitted is acknowledged, so nothing was lost.
    t.after(50).ack(5001).ignores_sent = true;
    assert_eq!((t.state(), t.ssthresh(), t.info().lost), (State::Open, None, 0));
    assert!(t.cwnd() >= 10, "{}", t.cwnd());
}

#[test]
fn f_rto_sends_new_data_and_finds_the_loss_real() {
    // RFC 5682, section 3.1, steps 2.b and 3.a; the same commit.
    let mut t = timed_out();
    t.after(50).ack(1001).sends(10_001..12_001);
    t.after(100).sack(1001, &[10_001..11_001]).sends(1001..2001);
    assert_eq!((t.state(), t.ssthresh()), (State::Loss, Some(7)));
}

#[test]
fn a_timeout_in_fast_recovery_is_not_suspected() {
    // RFC 5682, section 3.1, step 1; `tcp_enter_loss`.
    let mut t = Script::accept(&DEFAULTS, 100);
    t.write(10_000).sends(1..10_001);
    t.after(100).sack(1, &[1001..2001]);
    t.sack(1, &[1001..3001]);
    t.sack(1, &[1001..4001]).sends(1..1001);
    t.after(400).sends(1..1001);
    assert_eq!(t.state(), State::Loss);
    t.write(10_000).ignores_sent = true;
    // New data is not sent first; lost segments are.
    t.after(100).sack(4001, &[]).sends(4001..6001);
}

#[test]
fn a_probe_of_new_data_needs_no_retransmission() {
    // RFC 8985, section 7.3: new data where there is some, although the window is used up.
    let mut t = Script::accept(&DEFAULTS, 100);
    t.write(20_000).sends(1..10_001);
    assert_eq!(t.after(202).sends(10_001..11_001), 302);
    assert_eq!(t.info().retransmits, 0);
}

#[test]
fn a_probe_reported_as_a_duplicate_was_no_loss() {
    // RFC 8985, section 7.4.2.
    let mut t = Script::accept(&DEFAULTS, 100);
    t.write(10_000).sends(1..10_001);
    t.after(202).sends(9001..10_001);
    t.after(50).sack(10_001, &[9001..10_001]);
    t.write(1000).sends(10_001..11_001);
    t.after(100).ack(11_001);
    assert_eq!((t.state(), t.ssthresh()), (State::Open, None));
}

#[test]
fn a_probe_that_filled_a_hole_is_congestion() {
    // RFC 8985, section 7.4.2.
    let mut t = Script::accept(&DEFAULTS, 100);
    t.write(10_000).sends(1..10_001);
    t.after(100).ack(9001).sends_nothing();
    t.after(303).sends(9001..10_001);
    t.after(50).ack(10_001).write(1000).sends(10_001..11_001);
    assert_eq!((t.ssthresh(), t.cwnd()), (None, 20));
    t.after(100).ack(11_001);
    // 20 * 717 / 1024
    assert_eq!((t.state(), t.ssthresh()), (State::Open, Some(14)));
}

#[test]
fn a_closed_window_is_probed_until_it_opens() {
    // google: tcp_info/tcp-info-rwnd-limited
    let mut t = Script::new(&Config { ..DEFAULTS }, Role::Client);
    t.connect().expect_flags(Flags::SYN);
    t.window = 0;
    t.after(10).inject(1, Flags::SYN | Flags::ACK, Ecn::NotEct, |syn_ack| syn_ack.seq = 0);
    t.expect_flags(Flags::ACK);
    t.write(1000).sends_nothing();
    t.after(200);
    t.window = 2000;
    t.ack(1).sends(1..1001);
    // Less than a packet's room: it waits.
    t.window = 10;
    t.after(30).ack(1001).write(1000).sends_nothing();
    t.window = 2000;
    t.after(100).ack(1001).sends(1001..2001);
}
