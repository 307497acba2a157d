//! How the congestion window grows and shrinks.

use crate::net::*;
use bufferscope_scenario::Congestion;
use bufferscope_sim::tcp::{Config, State};

const RENO: Config = Config { congestion: Congestion::Reno, ..WIDE };

/// A receive window that is never the limit.
const WIDE: Config = Config { rmem_default_bytes: 64 << 20, rmem_max_bytes: 64 << 20, ..Config::DEFAULT };

#[test]
fn slow_start_doubles_every_round_trip() {
    let mut net = Net::new(&RENO, 50 * MS).stream();
    // Data leaves at 100 ms; its acknowledgements are in at 200, 300, ...: 10 packets, 20, 40, 80. Each packet
    // acknowledged adds one, however few acknowledgements the receiver sends; 40 ms later the last delayed one is in,
    // too.
    let windows: Vec<u64> = (0..4)
        .map(|round| {
            net.run_until((199 + 100 * round) * MS);
            net.cwnd_packets()
        })
        .collect();
    assert_eq!(windows, [10, 20, 40, 80]);
}

#[test]
fn reno_adds_one_packet_a_round_trip() {
    // One lost packet halves a window of 40 to 20. From then on, it grows by one packet per round trip.
    let mut net = Net::new(&RENO, 50 * MS).faults(|n, _| if n == 50 { Action::Drop } else { Action::Deliver }).stream();
    net.run_while(|net| net.sample().state != State::Recovery);
    net.run_while(|net| net.sample().state == State::Recovery);
    let start = net.cwnd_packets();
    assert_eq!(net.sample().ssthresh_bytes, Some(start * MSS));
    let begin_ns = net.now_ns;
    for rounds in [5, 10, 20] {
        net.run_until(begin_ns + rounds * 100 * MS);
        let grown = net.cwnd_packets() - start;
        // Delayed acknowledgements may hold back the last increment.
        assert!((rounds - 1..=rounds).contains(&grown), "{grown} after {rounds}");
    }
}

/// With one packet in `k` lost, evenly, the window W swings between W/2 and W by one packet per round trip, so that a
/// swing takes W/2 round trips and carries 3/8 W^2 packets, which are `k`. Its mean is 3/4 W = sqrt(3/2 k): a throughput of
/// sqrt(3/2) / (RTT sqrt(p)) (Mathis, Semke, Mahdavi and Ott, "The macroscopic behavior of the TCP congestion avoidance
/// algorithm", 1997, equation 3; the kernel counts packets, so that delayed acknowledgements change nothing).
#[test]
fn renos_throughput_falls_with_the_square_root_of_the_share_lost() {
    for k in [100, 400, 1600, 6400] {
        let mut lost_from = 0;
        let mut net = Net::new(&RENO, 50 * MS).faults(move |_, packet| {
            let number = packet.segment.seq / MSS;
            let is_lost = packet.segment.len > 0 && number % k == k - 1 && number > lost_from;
            if is_lost {
                lost_from = number;
            }
            if is_lost { Action::Drop } else { Action::Deliver }
        });
        net = net.stream();
        net.run_until(50 * SECOND);
        let before = net.ends[SERVER].received_bytes();
        net.run_until(250 * SECOND);
        let packets_a_round = (net.ends[SERVER].received_bytes() - before) as f64 / MSS as f64 / 2000.0;
        let expected = (1.5 * k as f64).sqrt();
        // A round trip passes until a loss is seen, and one in recovery: up to two more than the W/2 = 2/3 * 3/4 W of
        // the swing, in which the window does not grow.
        let least = expected * (1.0 - 2.0 / (expected * 2.0 / 3.0 + 2.0));
        assert!((least..expected).contains(&packets_a_round), "1 in {k}: {packets_a_round:.1} of {expected:.1}");
    }
}

/// The window before and the threshold after the loss of one packet.
fn reduction(config: &Config) -> (u64, u64) {
    let mut net =
        Net::new(config, 50 * MS).faults(|n, _| if n == 150 { Action::Drop } else { Action::Deliver }).stream();
    let mut before = 0;
    net.run_while(|net| {
        if net.sample().state < State::Recovery {
            before = net.cwnd_packets();
        }
        net.sample().state != State::Recovery
    });
    (before, net.sample().ssthresh_bytes.unwrap() / MSS)
}

#[test]
fn a_loss_halves_renos_window_and_takes_three_tenths_of_cubics() {
    let (before, after) = reduction(&RENO);
    assert!(before > 50);
    assert_eq!(after, before / 2);
    let (before, after) = reduction(&WIDE);
    assert!(before > 50);
    assert_eq!(after, before * 717 / 1024);
}

#[test]
fn during_recovery_the_window_falls_in_proportion() {
    // PRR: ssthresh packets are sent while prior_cwnd are delivered, so the window is reached smoothly, not at once.
    let mut net =
        Net::new(&RENO, 50 * MS).faults(|n, _| if n == 150 { Action::Drop } else { Action::Deliver }).stream();
    let mut windows = vec![];
    net.run_while(|net| net.sample().state != State::Recovery);
    let (begin_ns, ssthresh) = (net.now_ns, net.sample().ssthresh_bytes.unwrap() / MSS);
    net.run_while(|net| {
        windows.push(net.cwnd_packets());
        net.sample().state == State::Recovery
    });
    assert!(windows.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{windows:?}");
    assert!(windows[0] > ssthresh && *windows.last().unwrap() == ssthresh, "{windows:?}");
    // Repaired within one round trip.
    assert!(net.now_ns - begin_ns <= 101 * MS);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    // 2 packets every 200 ms over a path of 100 ms, so never more than 2 are in flight.
    let mut net = Net::new(&RENO, 50 * MS);
    net.act(CLIENT, |end, now_ns, out| end.connect(now_ns, out));
    for i in 1..50 {
        net.run_until(i * 200 * MS);
        net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, 2 * MSS, out));
    }
    assert_eq!(net.cwnd_packets(), 10);
}

#[test]
fn hystart_leaves_slow_start_before_the_queue_overflows() {
    // 100 Mbit/s, 40 ms: the pipe holds 333 packets, the queue 1000. Plain slow start overflows it; HyStart stops near
    // 333.
    let run = |config: &Config| {
        let mut net = Net::new(config, 20 * MS).bottleneck(100_000_000, 1000).stream();
        net.run_until(2 * SECOND);
        (net.pipes[CLIENT].overflowed, net.sample().ssthresh_bytes.map(|bytes| bytes / MSS))
    };
    let (overflowed, ssthresh) = run(&WIDE);
    assert_eq!(overflowed, 0);
    assert!((150..=500).contains(&ssthresh.unwrap()), "{ssthresh:?}");
    assert!(run(&RENO).0 > 0);
}

#[test]
fn both_fill_a_bottleneck_with_a_buffer_of_one_pipe() {
    // 10 Mbit/s, 40 ms: 33 packets in the pipe, 33 in the queue: Reno's halved window still fills the pipe. Payload is
    // 1448 of each 1500 bytes: 9.65 Mbit/s; from 5 s to 35 s at least 97 % of it.
    for config in [&RENO, &WIDE] {
        let mut net = Net::new(config, 20 * MS).bottleneck(10_000_000, 33).stream();
        net.run_until(5 * SECOND);
        let begin = net.ends[SERVER].received_bytes();
        net.run_until(35 * SECOND);
        let rate = (net.ends[SERVER].received_bytes() - begin) * 8 / 30;
        assert!((9_360_000..=9_654_000).contains(&rate), "{:?}: {rate}", config.congestion);
    }
}

#[test]
fn renos_sawtooth_runs_between_half_and_all_of_pipe_and_queue() {
    // Pipe 33 + queue 33 + one on the wire = 67 packets at most before one is dropped; then 33.
    let mut net = Net::new(&RENO, 20 * MS).bottleneck(10_000_000, 33).stream();
    net.run_until(10 * SECOND);
    let mut windows = vec![];
    for ms in 10_000..40_000 {
        net.run_until(ms * MS);
        windows.push(net.cwnd_packets());
    }
    let (low, high) = (windows.iter().min().unwrap(), windows.iter().max().unwrap());
    assert!((32..=35).contains(low), "{low}");
    assert!((66..=69).contains(high), "{high}");
}

#[test]
fn an_ecn_mark_reduces_once_a_round_trip_and_nothing_is_lost() {
    let ecn = Config { ecn: true, ..RENO };
    // All packets between the 100th and the 120th are marked: one congestion, not twenty.
    let mut net =
        Net::new(&ecn, 50 * MS).faults(|n, _| if (100..120).contains(&n) { Action::Mark } else { Action::Deliver });
    net = net.stream();
    let mut before = 0;
    net.run_while(|net| {
        if net.sample().state != State::Cwr {
            before = net.cwnd_packets();
        }
        net.sample().state != State::Cwr
    });
    let begin_ns = net.now_ns;
    net.run_while(|net| net.sample().state == State::Cwr);
    assert_eq!(net.cwnd_packets(), before / 2);
    assert!(net.now_ns - begin_ns <= 150 * MS, "{}", net.now_ns - begin_ns);
    net.run_until(2 * SECOND);
    assert!(net.cwnd_packets() >= before / 2);
    assert_eq!(net.sample().retransmits, 0);
    // The next data segment announced the reduction, once.
    let cwr = net.data_sent().filter(|p| p.segment.flags.cwr()).count();
    assert_eq!(cwr, 1);
}

#[test]
fn accurate_ecn_counts_every_mark() {
    let accurate = Config { accurate_ecn: true, ..RENO };
    let mark = |n: usize, p: &Packet| {
        if p.segment.len > 0 && (100..120).contains(&n) { Action::Mark } else { Action::Deliver }
    };
    let mut net = Net::new(&accurate, 50 * MS).faults(mark).stream();
    net.run_while(|net| net.sample().state != State::Cwr);
    net.run_while(|net| net.sample().state == State::Cwr);
    net.run_until(net.now_ns + SECOND);
    assert_eq!((net.sample().delivered_ce, net.sample().retransmits), (20, 0));
}

#[test]
fn without_agreement_nothing_is_ecn_capable() {
    use bufferscope_sim::Ecn;
    let ecn = Config { ecn: true, ..RENO };
    for (client, server, capable) in [(&ecn, &ecn, true), (&ecn, &RENO, false), (&RENO, &ecn, false)] {
        let mut net = Net::between(client, server, 10 * MS).upload(100_000);
        net.run_to_end(SECOND * 10);
        assert!(net.data_sent().all(|p| (p.ecn == Ecn::Ect0) == capable));
        // Pure acknowledgements are never ECN-capable (RFC 3168, section 6.1.4).
        assert!(net.acks_sent().all(|p| p.ecn == Ecn::NotEct));
    }
}

#[test]
fn marks_again_in_the_next_round_trip_reduce_again() {
    let ecn = Config { ecn: true, ..RENO };
    let mut net = Net::new(&ecn, 50 * MS).faults(|n, _| if n >= 100 { Action::Mark } else { Action::Deliver }).stream();
    net.run_until(5 * SECOND);
    assert!(net.cwnd_packets() <= 3, "{}", net.cwnd_packets());
    assert!(net.data_sent().filter(|p| p.segment.flags.cwr()).count() >= 5);
}

#[test]
fn what_is_in_the_hosts_own_queue_is_not_retransmitted() {
    // At 10 kbit/s, a segment takes 1.2 s on the wire and waits in the queue for longer. The timeout is far shorter,
    // since it comes from the handshake, so it expires all the time. (`net` checks that nothing is retransmitted too
    // early.)
    let mut net = Net::new(&Config::default(), 10 * MS).bottleneck(10_000, 100).own_host().upload(20 * MSS);
    net.run_to_end(200 * SECOND);
    assert_eq!(net.ends[SERVER].received_bytes(), 20 * MSS);
    // Retransmissions that were sent while the original was on the wire, which the host can't know.
    let again = net.data_sent().filter(|packet| packet.again).count();
    assert!(again <= 2, "{again}");
}

#[test]
fn a_window_that_a_slow_application_does_not_use_stays_while_it_is_answered() {
    let mut net = Net::new(&RENO, 10 * MS);
    net.act(CLIENT, |end, now_ns, out| end.connect(now_ns, out));
    net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, 70 * MSS, out));
    net.run_until(200 * MS);
    let grown = net.cwnd_packets();
    assert_eq!(grown, 80);
    // Five packets every 50 ms, for a dozen timeouts of 220 ms.
    while net.now_ns < 3 * SECOND {
        net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, 5 * MSS, out));
        net.run_until(net.now_ns + 50 * MS);
    }
    assert_eq!(net.cwnd_packets(), grown);
    // After a timeout without an answer, the window shrinks halfway to the ten packets that were out at first: (80 +
    // 10) / 2.
    net = net.faults_back(|_, _| Action::Drop);
    let mut shrunk = grown;
    while shrunk == grown && net.now_ns < 4 * SECOND {
        net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, MSS, out));
        net.run_until(net.now_ns + 30 * MS);
        shrunk = net.cwnd_packets();
    }
    assert_eq!(shrunk, 45);
}
