//! When a packet is believed lost.

use super::script::{DEFAULTS, Script};
use bufferscope_sim::tcp::{Config, State};

#[test]
fn three_packets_beyond_a_hole_repair_it_at_once() {
    // google: fast_retransmit/fr-4pkt-sack
    let mut t = Script::accept(&Config { mss_bytes: 1460, ..DEFAULTS }, 100);
    t.write(5840).sends(1..5841);
    t.after(100).sack(1, &[1461..2921]);
    t.sack(1, &[1461..4381]).sends_nothing();
    t.sack(1, &[1461..5841]).sends(1..1461);
    t.after(100).ack(5841);
    t.after(100).close().sends(5841..5842);
}

#[test]
fn a_single_packet_beyond_three_lost_ones_has_them_repaired_after_a_quarter_round_trip() {
    // google: fast_retransmit/fr-4pkt-fack-last-mss: 25 ms and two jiffies, which the script's tolerance takes for 40
    // ms.
    let mut t = Script::accept(&DEFAULTS, 100);
    t.write(4000).sends(1..4001);
    t.after(100).sack(1, &[3001..4001]).sends_nothing();
    t.after(26).sends_nothing();
    t.after(14).sends(1..1001);
}

#[test]
fn one_byte_of_a_packet_does_not_acknowledge_it() {
    // google: fast_retransmit/fr-4pkt-fack-last-byte
    let mut t = Script::accept(&DEFAULTS, 100);
    t.write(4000).sends(1..4001);
    t.after(100).sack(1, &[4000..4001]).sends_nothing();
    // The tail loss probe comes 2 RTT + 2 ms after the packets were sent, the timeout RTT + 200 ms after that.
    assert_eq!(t.after(110).sends(3001..4001), 302);
    assert_eq!(t.after(310).sends(1..1001), 602);
    t.after(480).sack(1001, &[4000..4001]).sends(1001..3001);
    t.after(100).sack(3001, &[4000..4001]).sends(3001..4001);
    t.after(100).ack(4001);
    t.close().sends(4001..4002);
}

#[test]
fn the_first_two_duplicates_send_new_packets() {
    // google: limited_transmit/limited-transmit-sack (RFC 3042)
    let mut t = Script::accept(&DEFAULTS, 100);
    t.window = 320 * 128;
    t.ack(1).write(15_000).sends(1..10_001);
    t.after(110).sack(1, &[1001..2001]).sends(10_001..11_001);
    t.after(10).sack(1, &[1001..3001]).sends(11_001..12_001);
    // This turns out to be reordering, not loss.
    t.after(10).ack(3001).sends(12_001..14_001);
    t.after(20).ack(5001).sends(14_001..15_001);
    for ack in [7001, 9001, 11_001, 13_001, 15_001] {
        t.after(20).ack(ack);
    }
    assert_eq!((t.state(), t.info().retransmits), (State::Open, 0));
    t.after(170).close().sends(15_001..15_002);
}

#[test]
fn of_two_packets_the_first_is_repaired_after_a_quarter_round_trip() {
    // ligurio: early_retransmit/early-retransmit
    let mut t = Script::accept(&Config { mss_bytes: 1460, ..DEFAULTS }, 100);
    t.write(2920).sends(1..2921);
    t.after(100).sack(1, &[1461..2921]).sends_nothing();
    t.after(24).sends_nothing();
    t.after(4).sends(1..1461);
    t.after(72).ack(2921);
    t.after(75).close().sends(2921..2922);
}
