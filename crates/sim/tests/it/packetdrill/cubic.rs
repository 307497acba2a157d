//! CUBIC and HyStart.

use super::script::{DEFAULTS, Script};
use bufferscope_sim::tcp::Config;

/// Two packets arrive every 100 ms. With pacing, HyStart does not halve the length that it allows a train.
fn slow_path(bytes: u64) -> Script {
    let mut t = Script::accept(&Config { pacing: true, ..DEFAULTS }, 100);
    t.window = 514 * 1024;
    t.ack(1).write(bytes);
    t.ignores_sent = true;
    assert_eq!(t.cwnd(), 10);
    t
}

/// The window when everything before `ack` has been acknowledged, two packets every 100 ms.
fn acknowledged(t: &mut Script, acks: std::ops::Range<u64>) -> u64 {
    for pair in acks.start / 2000 + 1..=acks.end / 2000 {
        t.after(100).ack(2000 * pair + 1);
    }
    t.cwnd()
}

/// The script is for kernels in which a round begins where HyStart's window is reached, and leaves slow start at 48.
/// Since "fix incorrect HyStart round start detection" (Linux 6.14, 6.1.129), kernels leave it at 36. The kernel's test
/// robot saw this with both scripts.
#[test]
fn a_bulk_flow_at_166_kbit() {
    // google: cubic/cubic-bulk-166k
    let mut t = slow_path(400_000);
    let steps = [10_000, 20_000, 30_000, 38_000, 60_000, 80_000, 100_000, 120_000];
    let mut from = 0;
    let windows = steps.map(|to| {
        let cwnd = acknowledged(&mut t, from..to);
        from = to;
        cwnd
    });
    // HyStart ends slow start at 36.
    assert_eq!(windows, [20, 30, 36, 36, 37, 39, 45, 54]);
    // From here on the window grows by one packet for every two acknowledged: as fast as CUBIC ever does.
    for n in 1..=10 {
        assert_eq!(acknowledged(&mut t, from..from + 2000), 54 + n);
        from += 2000;
    }
    for n in 1..=12 {
        assert_eq!(acknowledged(&mut t, from..from + 20_000), 64 + 10 * n);
        from += 20_000;
    }
}

#[test]
fn idle_time_gives_no_credit() {
    // google: cubic/cubic-bulk-166k-idle-restart
    let mut t = slow_path(40_000);
    let mut from = 0;
    let mut grow = |t: &mut Script, to: u64| {
        let cwnd = acknowledged(t, from..to);
        from = to;
        cwnd
    };
    let windows = [10_000, 20_000, 30_000, 38_000].map(|to| grow(&mut t, to));
    assert_eq!(windows, [20, 30, 36, 36]);
    grow(&mut t, 40_000);
    t.after(4000).write(160_000);
    let windows = [60_000, 80_000, 100_000, 120_000].map(|to| grow(&mut t, to));
    assert_eq!(windows, [37, 38, 41, 48]);
}

/// Windows and threshold as pairs of packets are acknowledged 1 ms apart.
fn pairs(t: &mut Script, acks: impl IntoIterator<Item = u64>) -> Vec<(u64, Option<u64>)> {
    let mut pair = |ack| {
        t.ack(ack);
        let seen = (t.cwnd(), t.ssthresh());
        t.after(1);
        seen
    };
    acks.into_iter().map(&mut pair).collect()
}

#[test]
fn a_minimum_that_falls_late_in_a_round_does_not_end_slow_start() {
    // google: cubic/cubic-hystart-delay-min-rtt-jumps-downward
    let mut t = Script::accept(&DEFAULTS, 200);
    t.write(28_000).sends(1..10_001);
    t.after(200).ack(10_001).sends(10_001..28_001);
    t.after(180).write(2000).sends(28_001..30_001);
    t.after(20);
    // Nine round-trip times of 200 ms and a little more, then one of 29 ms.
    let seen = pairs(&mut t, (12_001..=30_001).step_by(2000));
    let expected: Vec<_> = (0..10).map(|n| (22 + 2 * n, None)).collect();
    assert_eq!(seen, expected);
}

#[test]
fn nine_slow_round_trips_in_a_round_end_slow_start() {
    // google: cubic/cubic-hystart-delay-rtt-jumps-upward
    let mut t = Script::accept(&DEFAULTS, 200);
    t.write(30_000).sends(1..10_001);
    t.after(200).ack(10_001).sends(10_001..30_001);
    t.after(240);
    let seen = pairs(&mut t, (12_001..=30_001).step_by(2000));
    let mut expected: Vec<_> = (0..8).map(|n| (22 + 2 * n, None)).collect();
    expected.extend([(36, Some(36)); 2]);
    assert_eq!(seen, expected);
}

#[test]
fn after_a_timeout_slow_start_then_one_packet_for_twenty() {
    // google: cubic/cubic-rto-ss-ca-cwnd-bump
    let mut t = Script::accept(&DEFAULTS, 100);
    t.write(1000).sends(1..1001);
    t.after(100).ack(1001).write(1000).sends(1001..2001);
    // The probe waits for a delayed acknowledgement: 2 RTT + 200 ms, but no longer than the timeout, 300 ms.
    assert_eq!(t.after(303).sends(1001..2001), 500);
    assert_eq!(t.after(303).sends(1001..2001), 800);
    t.after(94).ack(2001);
    assert_eq!((t.cwnd(), t.ssthresh()), (2, Some(7)));
    t.write(200_000).sends(2001..4001);
    t.after(100).ack(3001).sends(4001..6001);
    for (n, ms) in [2, 98, 2, 2].into_iter().enumerate() {
        let n = n as u64;
        t.after(ms).ack(4001 + 1000 * n).sends(6001 + 2000 * n..8001 + 2000 * n);
        assert_eq!(t.cwnd(), 4 + n);
    }
    // Congestion avoidance: each packet acknowledged sends one, until twenty have been.
    let gaps = [2, 98, 2, 2, 2, 2, 2, 2, 98, 3, 2, 2, 2, 2, 2];
    for (n, ms) in gaps.into_iter().enumerate() {
        let n = n as u64;
        t.after(ms).ack(8001 + 1000 * n).sends(14_001 + 1000 * n..15_001 + 1000 * n);
        assert_eq!(t.cwnd(), 7);
    }
    t.after(98).ack(23_001).sends(29_001..31_001);
    assert_eq!(t.cwnd(), 8);
}
