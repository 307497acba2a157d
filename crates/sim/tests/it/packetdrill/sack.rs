//! The scoreboard: which packets count as lost after selective acknowledgements.

use super::script::{DEFAULTS, Script};
use bufferscope_sim::tcp::State;

fn ten_out() -> Script {
    let mut t = Script::accept(&DEFAULTS, 100);
    t.window = 1024 * 128;
    t.ack(1).write(10_000).sends(1..10_001);
    t
}

fn assert_clean(t: &Script) {
    let info = t.info();
    assert_eq!((info.state, info.inflight_bytes, info.lost), (State::Open, 0, 0));
}

#[test]
fn packets_arriving_in_the_order_2_6_8_3_9() {
    // google: sack/sack-shift-sacked-2-6-8-3-9-nofack
    let mut t = ten_out();
    t.after(100).sack(1, &[2001..3001]);
    t.after(1).sack(1, &[2001..3001, 6001..7001]).sends_nothing();
    t.after(1).sack(1, &[2001..3001, 6001..7001, 8001..9001]).sends(1..1001);
    assert_eq!((t.state(), t.info().lost), (State::Recovery, 6));
    t.after(7).sack(1, &[2001..4001, 6001..7001, 8001..9001]).sends(1001..2001);
    // From the packet at 3001 to the end of the one at 8001.
    assert_eq!((t.info().lost, t.info().reordering), (5, 6));
    t.after(10).sack(1, &[2001..4001, 6001..7001, 8001..10_001]);
    assert_eq!(t.info().lost, 5);
    t.ignores_sent = true;
    t.after(83).sack(1001, &[2001..4001, 6001..7001, 8001..10_001]);
    assert_eq!(t.info().lost, 4);
    t.after(17).sack(4001, &[6001..7001, 8001..10_001]);
    assert_eq!(t.info().lost, 3);
    t.after(10).sack(7001, &[8001..10_001]);
    t.after(100).ack(10_001);
    assert_clean(&t);
}

#[test]
fn packets_arriving_in_the_order_7_3_4_8_9() {
    // google: sack/sack-shift-sacked-7-3-4-8-9-fack
    let mut t = ten_out();
    t.after(100).sack(1, &[7001..8001]).sends_nothing();
    // The reordering timer: 25 ms and two jiffies.
    assert_eq!(t.after(27).sends(1..1001), 227);
    assert_eq!((t.state(), t.info().lost, t.info().reordering), (State::Recovery, 7, 3));
    t.after(2).sack(1, &[3001..4001, 7001..8001]).sends(1001..2001);
    assert_eq!((t.info().lost, t.info().reordering), (6, 5));
    t.after(2).sack(1, &[3001..5001, 7001..8001]).sends(2001..3001);
    assert_eq!(t.info().lost, 5);
    t.after(2).sack(1, &[3001..5001, 7001..9001]).ignores_sent = true;
    t.after(2).sack(1, &[3001..5001, 7001..10_001]);
    t.after(100).ack(10_001);
    assert_clean(&t);
}

#[test]
fn packets_arriving_in_the_order_7_5_6_8_9() {
    // google: sack/sack-shift-sacked-7-5-6-8-9-fack
    let mut t = ten_out();
    t.after(100).sack(1, &[7001..8001]).sends_nothing();
    t.after(27).sends(1..1001);
    assert_eq!((t.state(), t.info().lost, t.info().reordering), (State::Recovery, 7, 3));
    t.sack(1, &[5001..6001, 7001..8001]).sends(1001..2001);
    assert_eq!((t.info().lost, t.info().reordering), (6, 3));
    t.sack(1, &[5001..8001]).sends(2001..3001);
    assert_eq!(t.info().lost, 5);
    t.sack(1, &[5001..9001]).sends(3001..4001);
    t.sack(1, &[5001..10_001]).sends(4001..5001);
    t.after(100).ack(10_001);
    assert_clean(&t);
}

#[test]
fn reordering_is_remembered_and_delays_loss_detection() {
    // google: cubic/cubic-rack-reo-timeout-retrans-failed-incoming-data, up to where its local queue overflows.
    let mut t = Script::accept(&DEFAULTS, 20);
    t.window = 320 * 128;
    t.ack(1).write(10_000).sends(1..10_001);
    t.after(20).sack(1, &[9001..10_001]);
    t.sack(1, &[3001..4001, 9001..10_001]);
    t.ack(10_001).sends_nothing();
    assert_eq!((t.info().reordering, t.cwnd()), (10, 19));
    t.after(25).write(2000).sends(10_001..12_001);
    t.after(20).sack(10_001, &[11_001..12_001]).sends_nothing();
    assert_eq!((t.state(), t.cwnd()), (State::Disorder, 19));
    t.after(20);
    assert_eq!((t.state(), t.info().lost), (State::Recovery, 1));
    t.sends(10_001..11_001);
}
