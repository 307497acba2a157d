//! The receiver's acknowledgements, and when they are sent.

use super::script::{DEFAULTS, Script};
use bufferscope_sim::tcp::Config;

#[test]
fn blocks_are_reported_latest_first_and_duplicates_before_them() {
    // kernel: tcp_dsack_mult.pkt
    let mut t = Script::accept(&DEFAULTS, 100);
    t.window = 1024 * 128;
    t.data(1001..2001).acks(1, &[1001..2001]);
    t.data(2001..3001).acks(1, &[1001..3001]);
    t.data(4001..5001).acks(1, &[4001..5001, 1001..3001]);
    t.data(7001..8001).acks(1, &[7001..8001, 4001..5001, 1001..3001]);
    t.data(1..6001).acks(6001, &[1001..3001, 7001..8001]);
    t.data(6001..8001).acks(8001, &[7001..8001]);
    t.data(1..1001).acks(8001, &[1..1001]);
}

#[test]
fn quick_acknowledgements_at_the_start() {
    // ligurio: receiver_rtt/rcv-rtt-with-timestamps-new, its first segments: each is acknowledged at once.
    let mut t = Script::accept(&Config { ..DEFAULTS }, 100);
    t.data(1..1001).acks(1001, &[]);
    t.data(1001..2001).acks(2001, &[]);
}
