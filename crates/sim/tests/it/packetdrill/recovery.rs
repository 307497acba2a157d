//! Fast recovery: proportional rate reduction, and undoing it.

use super::script::{DEFAULTS, Script};
use bufferscope_sim::tcp::{Config, State};

/// A connection that has sent ten packets, the peer offering 320 units of 128 bytes.
fn ten_out(rtt_ms: u64, bytes: u64) -> Script {
    let mut t = Script::accept(&DEFAULTS, rtt_ms);
    t.window = 320 * 128;
    t.ack(1).write(bytes).sends(1..10_001);
    t
}

#[test]
fn with_the_threshold_in_flight_every_packet_delivered_sends_one() {
    // google: fast_recovery/prr-ss-10pkt-lost-1
    let mut t = ten_out(100, 10_000);
    t.after(110).sack(1, &[1001..2001]);
    t.after(10).sack(1, &[1001..3001]).sends_nothing();
    t.after(10).sack(1, &[1001..4001]).sends(1..1001);
    t.after(10);
    assert_eq!((t.state(), t.cwnd(), t.ssthresh()), (State::Recovery, 7, Some(7)));
    t.after(10).write(7000).sends_nothing();
    for (n, end) in [5001, 6001, 7001, 8001, 9001, 10_001].into_iter().enumerate() {
        let first = 10_001 + 1000 * n as u64;
        t.after(10).sack(1, &[1001..end]).sends(first..first + 1000);
    }
    t.after(20).ack(10_001).sends(16_001..17_001);
    t.after(10);
    assert_eq!((t.state(), t.cwnd(), t.ssthresh()), (State::Open, 7, Some(7)));
    for ack in [12_001, 14_001, 16_001, 17_001] {
        t.after(20).ack(ack);
    }
}

#[test]
fn two_bursts_of_losses_are_repaired_in_proportion() {
    // google: fast_recovery/prr-ss-30pkt-lost-1_4-11_16
    let mut t = ten_out(10, 20_000);
    t.after(10).sack(1, &[4001..5001]).sends(10_001..11_001);
    t.after(2).sack(1, &[4001..6001]).sends(11_001..12_001);
    // The third duplicate: recovery, a packet for each one delivered.
    let repaired = [(7001, 1..1001), (8001, 1001..2001), (9001, 2001..3001), (10_001, 3001..4001)];
    let new = [(11_001, 12_001..13_001), (12_001, 13_001..14_001)];
    for (end, sent) in repaired.into_iter().chain(new) {
        t.after(2).sack(1, &[4001..end]).sends(sent);
    }
    // SND.UNA advances and nothing more is lost: the window grows back towards the threshold.
    t.after(10).sack(1001, &[4001..12_001]).sends(14_001..16_001);
    t.after(2).sack(1001, &[2001..12_001]);
    t.sends(1001..2001);
    t.sends(16_001..17_001);
    // At the threshold: packet for packet again.
    t.after(2).sack(1001, &[2001..13_001]).sends(17_001..18_001);
    t.after(2).sack(1001, &[2001..14_001]).sends(18_001..19_001);
}

#[test]
fn after_four_losses_the_window_is_the_threshold() {
    // google: fast_recovery/prr-ss-30pkt-lost1_4
    let mut t = ten_out(10, 10_000);
    t.after(10).sack(1, &[4001..5001]);
    t.after(2).sack(1, &[4001..6001]).sends_nothing();
    for (end, first) in [(7001, 1), (8001, 1001), (9001, 2001), (10_001, 3001)] {
        t.sack(1, &[4001..end]).sends(first..first + 1000);
    }
    t.after(10);
    for ack in [1001, 2001, 3001] {
        t.sack(ack, &[4001..10_001]).sends_nothing();
    }
    t.ack(10_001);
    t.after(10).write(10_000).sends(10_001..17_001);
}

#[test]
fn an_acknowledgement_overtaken_by_others_still_reports_what_arrived() {
    // google: fast_recovery/prr-ss-ack-below-snd_una-cubic
    let mut t = ten_out(10, 10_000);
    t.after(10).sack(1, &[1001..2001]);
    t.sack(1, &[1001..3001]).sends_nothing();
    t.sack(1, &[1001..3001, 8001..9001]).sends(1..1001);
    t.after(12).sack(4001, &[8001..9001]).sends(4001..7001);
    t.write(10_000).sends_nothing();
    // It acknowledges less than is already acknowledged, but two more packets selectively, so two packets leave.
    t.after(2).sack(3001, &[5001..7001]);
    t.sends(7001..8001);
    t.sends(10_001..11_001);
}

#[test]
fn a_duplicate_report_of_the_only_retransmission_undoes_the_reduction() {
    // ligurio: undo/undo-fr-acks-dropped-then-dsack
    let mut t = ten_out(100, 10_000);
    t.after(100).sack(1, &[1001..2001]);
    t.sack(1, &[1001..3001]);
    t.sack(1, &[1001..4001]).sends(1..1001);
    assert_eq!(t.cwnd(), 7);
    // The acknowledgements of the others were lost; the last one reports the retransmission as a duplicate.
    t.after(100).sack(10_001, &[1..1001]);
    t.write(1000).sends(10_001..11_001);
    // Back to 10, from which the same acknowledgement grows it by the 7 packets it delivers and the duplicate. (The
    // script is older than that: 10.)
    assert_eq!((t.state(), t.cwnd(), t.ssthresh()), (State::Open, 18, None));
}

#[test]
fn disorder_leaves_the_window_alone() {
    // google: cwnd_moderation/cwnd-moderation-disorder-no-moderation
    let mut t = Script::accept(&DEFAULTS, 100);
    t.write(4000).sends(1..4001);
    t.after(100).sack(1, &[1001..2001]);
    assert_eq!((t.state(), t.cwnd()), (State::Disorder, 10));
}

#[test]
fn renos_recovery_also_uses_overtaken_acknowledgements() {
    // ligurio: fast_recovery/fast-recovery, with Linux' windows (threshold 5) where the script has FreeBSD's. (And a
    // handshake of 100 ms where it has one of 0, so that no tail loss probe comes in between, and duplicates 1 ms
    // apart.)
    let mut t = Script::accept(&Config { congestion: bufferscope_scenario::Congestion::Reno, ..DEFAULTS }, 100);
    t.window = 320 * 128;
    t.after(100).ack(1).write(10_000).sends(1..10_001);
    t.after(10).sack(1, &[1001..2001]);
    t.after(1).sack(1, &[1001..3001]);
    t.after(1).sack(1, &[1001..3001, 8001..9001]).sends(1..1001);
    assert_eq!((t.state(), t.ssthresh()), (State::Recovery, Some(5)));
    t.ignores_sent = true;
    t.after(10).sack(3001, &[8001..9001]);
    t.after(10).sack(3001, &[5001..7001]);
    t.after(10).ack(10_001);
    t.after(0).write(5000).sends(10_001..15_001);
    assert_eq!((t.state(), t.cwnd()), (State::Open, 5));
}
