//! How connections begin and end.

use crate::net::*;
use bufferscope_scenario::Congestion;
use bufferscope_sim::Ecn;
use bufferscope_sim::tcp::{Config, Flags, State, Timers};

/// When an end sent its SYN or SYN-ACK, in whole seconds.
fn syns(net: &Net, end: usize) -> Vec<u64> {
    net.pipes[end].sent.iter().filter(|p| p.segment.flags.syn()).map(|p| p.sent_ns / SECOND).collect()
}

#[test]
fn a_transfer_opens_sends_everything_and_closes_both_ends() {
    let mut net = Net::new(&Config::default(), 10 * MS).upload(1_000_000);
    net.run_to_end(10 * SECOND);
    assert_eq!(net.ends[SERVER].received_bytes(), 1_000_000);
    assert_eq!(net.ends[CLIENT].acked_bytes(), 1_000_000);
    assert!(net.ends[CLIENT].is_closed() && net.ends[SERVER].is_closed());
    assert_eq!(net.sample().retransmits, 0);
}

#[test]
fn data_leaves_one_round_trip_after_the_syn() {
    let mut net = Net::new(&Config::default(), 10 * MS).upload(100);
    net.run_to_end(10 * SECOND);
    let sent: Vec<_> =
        net.pipes[CLIENT].sent.iter().map(|p| (p.sent_ns / MS, p.segment.flags, p.segment.len)).collect();
    // SYN; 20 ms later the ACK of the SYN-ACK and the data, FIN included; the ACK of the server's FIN.
    let expected =
        [(0, Flags::SYN, 0), (20, Flags::ACK, 0), (20, Flags::ACK | Flags::PSH | Flags::FIN, 100), (40, Flags::ACK, 0)];
    assert_eq!(sent, expected);
}

#[test]
fn the_handshake_measures_the_round_trip() {
    let mut net = Net::new(&Config::default(), 15 * MS).stream();
    net.run_until(30 * MS);
    assert_eq!(net.sample().srtt_ns, Some(30 * MS));
}

#[test]
fn a_lost_syn_is_repeated_after_1_2_and_4_seconds() {
    let mut net =
        Net::new(&Config::default(), 10 * MS).faults(|n, _| if n < 3 { Action::Drop } else { Action::Deliver });
    net = net.upload(1000);
    net.run_to_end(60 * SECOND);
    assert_eq!(syns(&net, CLIENT), [0, 1, 3, 7]);
    assert_eq!(net.ends[SERVER].received_bytes(), 1000);
}

#[test]
fn linear_timeouts_are_the_syns_not_the_syn_acks() {
    let config = Config { syn_linear_timeouts: 2, ..Config::default() };
    let mut net = Net::new(&config, 10 * MS).faults(|n, _| if n < 5 { Action::Drop } else { Action::Deliver });
    net = net.upload(1000);
    net.run_to_end(60 * SECOND);
    assert_eq!(syns(&net, CLIENT), [0, 1, 2, 3, 5, 9]);
    assert_eq!(net.ends[SERVER].received_bytes(), 1000);

    // Only the client's first segment arrives. The server retransmits by itself.
    let mut net = Net::new(&config, 10 * MS).faults(|n, _| if n == 0 { Action::Deliver } else { Action::Drop });
    net = net.faults_back(|_, _| Action::Drop).upload(1000);
    net.run_until(20 * SECOND);
    assert_eq!(syns(&net, SERVER), [0, 1, 3, 7, 15]);
}

#[test]
fn after_two_lost_syns_the_window_starts_from_one_packet() {
    // The kernel tolerates the first loss (RFC 5681, section 3.1, would not).
    for (lost, initial) in [(0, 10), (1, 10), (2, 1)] {
        let mut net = Net::new(&Config::default(), 10 * MS);
        net = net.faults(move |n, _| if n < lost { Action::Drop } else { Action::Deliver }).stream();
        net.run_while(|net| net.data_sent().next().is_none());
        assert_eq!(net.data_sent().count(), initial, "after {lost} lost SYNs");
    }
}

/// A stream with ECN whose first `lost` segments are lost, once its first data is on the way.
fn stream_after_lost_syns(config: &Config, lost: usize) -> Net {
    let mut net = Net::new(config, 10 * MS);
    net = net.faults(move |n, _| if n < lost { Action::Drop } else { Action::Deliver }).stream();
    net.run_while(|net| net.data_sent().next().is_none());
    net
}

#[test]
fn a_repeated_syn_does_not_ask_for_ecn() {
    // RFC 3168, section 6.1.1.1; the kernel's `tcp_ecn_clear_syn`. With accurate ECN from the second on (RFC 9768,
    // section 3.1.4.1).
    let classic = Config { ecn: true, ..Config::default() };
    let dctcp = Config { congestion: Congestion::Dctcp, ..Config::default() };
    let accurate = Config { accurate_ecn: true, ..classic };
    let prague = Config { congestion: Congestion::Prague, ..Config::default() };
    let (ask, ask_accurately) = (Flags::CWR | Flags::ECE, Flags::AE | Flags::CWR | Flags::ECE);
    for (config, asked) in [
        (classic, [ask, Flags::NONE, Flags::NONE]),
        (dctcp, [ask, Flags::NONE, Flags::NONE]),
        (accurate, [ask_accurately, ask_accurately, Flags::NONE]),
        (prague, [ask_accurately, ask_accurately, Flags::NONE]),
    ] {
        for lost in 0..3 {
            let net = stream_after_lost_syns(&config, lost);
            let congestion = config.congestion;
            let flags: Vec<_> =
                net.pipes[CLIENT].sent.iter().map(|p| p.segment.flags).filter(|flags| flags.syn()).collect();
            let expected: Vec<_> = asked[..=lost].iter().map(|&asked| Flags::SYN | asked).collect();
            assert_eq!(flags, expected, "{congestion:?}");
            let uses_ecn = net.data_sent().all(|p| p.ecn != Ecn::NotEct);
            assert_eq!(uses_ecn, asked[lost] != Flags::NONE, "{congestion:?} after {lost} lost SYNs");
        }
    }
}

#[test]
fn a_lost_syn_ack_leaves_ecn_as_the_first_syn_asked_for_it() {
    let config = Config { ecn: true, ..Config::default() };
    let mut net = Net::new(&config, 10 * MS);
    net = net.faults_back(|n, _| if n == 0 { Action::Drop } else { Action::Deliver }).stream();
    net.run_while(|net| net.data_sent().next().is_none());
    let asked: Vec<_> = net.pipes[CLIENT].sent.iter().map(|p| p.segment.flags).filter(|flags| flags.syn()).collect();
    assert_eq!(asked, [Flags::SYN | Flags::CWR | Flags::ECE, Flags::SYN]);
    assert!(net.data_sent().all(|p| p.ecn == Ecn::Ect0));
}

#[test]
fn dctcp_without_ecn_is_reno() {
    // The sender's own queue drops a packet, which is no loss to recover from: DCTCP would reduce the window by half of
    // alpha, which has vanished without marks; Reno halves it.
    let config = Config { congestion: Congestion::Dctcp, ssthresh_packets: 20, ..Config::default() };
    let mut net = Net::new(&config, 10 * MS).own_host();
    net = net.faults(|n, p| match n {
        0 => Action::Drop,
        _ if p.sent_ns >= 5 * SECOND && p.sent_ns < 5 * SECOND + MS => Action::Congest,
        _ => Action::Deliver,
    });
    net = net.stream();
    net.run_until(5 * SECOND - MS);
    let mut before = 0;
    net.run_while(|net| {
        let goes_on = net.sample().state != State::Cwr;
        if goes_on {
            before = net.cwnd_packets();
        }
        goes_on
    });
    // The acknowledgement that let the packet leave may have added one to the window.
    let halves = [before / 2, before.div_ceil(2)].map(|packets| Some(packets * MSS));
    assert!(halves.contains(&net.sample().ssthresh_bytes), "{:?} after {before} packets", net.sample().ssthresh_bytes);
}

#[test]
fn a_lost_syn_ack_costs_a_second() {
    let mut net = Net::new(&Config::default(), 10 * MS);
    net = net.faults_back(|n, _| if n == 0 { Action::Drop } else { Action::Deliver }).upload(1000);
    net.run_to_end(60 * SECOND);
    // The client's SYN is repeated 1 s after the first, and answered; that puts off the server's own timer.
    let first = net.data_sent().next().unwrap().sent_ns;
    assert_eq!(first, SECOND + 20 * MS);
    let syn_acks = net.pipes[SERVER].sent.iter().filter(|p| p.segment.flags.syn()).map(|p| p.sent_ns / MS);
    assert_eq!(syn_acks.collect::<Vec<_>>(), [10, 1010]);
    assert_eq!(net.ends[SERVER].received_bytes(), 1000);
}

#[test]
fn hosts_whose_clocks_tick_together_repeat_syn_and_syn_ack_together() {
    // Both are due in the bucket that ends 256 jiffies of 4 ms after time 0; the SYN arrives 10 ms after the SYN-ACK
    // has left and is answered too. A SYN-ACK sent three times means two losses to the server, as far as it knows: it
    // begins with one packet.
    let config = Config { timers: Timers::Jiffies { age_ns: 0 }, ..Config::default() };
    let mut net = Net::new(&config, 10 * MS).faults_back(|n, _| if n == 0 { Action::Drop } else { Action::Deliver });
    net.act(CLIENT, |end, now_ns, out| end.connect(now_ns, out));
    net.act(SERVER, |end, now_ns, out| end.offer(now_ns, 100_000, out));
    net.run_until(1046 * MS);
    let sent: Vec<_> = net.pipes[SERVER].sent.iter().map(|p| (p.sent_ns / MS, p.segment.flags.syn())).collect();
    assert_eq!(sent, [(10, true), (1024, true), (1034, true), (1044, false)]);
}

#[test]
fn a_lost_handshake_acknowledgement_is_made_up_for_by_data() {
    let mut net = Net::new(&Config::default(), 10 * MS);
    net = net.faults(|n, _| if n == 1 { Action::Drop } else { Action::Deliver }).upload(1000);
    net.run_to_end(60 * SECOND);
    assert_eq!(net.ends[SERVER].received_bytes(), 1000);
    assert!(net.now_ns < SECOND);
}

#[test]
fn a_lost_fin_is_sent_again() {
    let mut net = Net::new(&Config::default(), 10 * MS);
    net.act(CLIENT, |end, now_ns, out| end.connect(now_ns, out));
    net.run_until(SECOND);
    let number = net.pipes[CLIENT].sent.len();
    net = net.faults(move |n, _| if n == number { Action::Drop } else { Action::Deliver });
    net.act(CLIENT, |end, now_ns, out| end.finish_sending(now_ns, out));
    net.run_to_end(60 * SECOND);
    let fins: Vec<_> =
        net.pipes[CLIENT].sent.iter().filter(|p| p.segment.flags.fin()).map(|p| p.sent_ns / MS).collect();
    // A lone segment is probed after min(2 SRTT + 200 ms = 240, RTO = 20 + 200) = 220 ms.
    assert_eq!(fins, [1000, 1220]);
    assert!(net.ends[CLIENT].is_closed() && net.ends[SERVER].is_closed());
}

#[test]
fn a_lost_last_acknowledgement_is_given_again_by_a_closed_endpoint() {
    let mut net = Net::new(&Config::default(), 10 * MS).upload(100);
    // SYN, ACK, data with FIN, and then the acknowledgement of the server's FIN.
    net = net.faults(|n, _| if n == 3 { Action::Drop } else { Action::Deliver });
    net.run_to_end(60 * SECOND);
    let fins = net.pipes[SERVER].sent.iter().filter(|p| p.segment.flags.fin()).count();
    assert_eq!(fins, 2);
    assert!(net.ends[CLIENT].is_closed() && net.ends[SERVER].is_closed());
}

#[test]
fn stopping_sends_a_fin_after_what_was_handed_over() {
    let mut net = Net::new(&Config::default(), 10 * MS).bottleneck(10_000_000, 100).stream();
    net.run_until(SECOND);
    let sent_before = net.data_sent().map(|p| p.segment.end()).max().unwrap() - 1;
    let unsent = net.ends[CLIENT].sample(net.now_ns).notsent_bytes;
    assert!(unsent > 0);
    net.act(CLIENT, |end, now_ns, out| {
        end.hold();
        end.finish_sending(now_ns, out);
    });
    net.run_to_end(60 * SECOND);
    assert_eq!(net.ends[SERVER].received_bytes(), sent_before + unsent);
    assert!(net.ends[CLIENT].is_closed() && net.ends[SERVER].is_closed());
}

#[test]
fn nothing_can_be_offered_after_finishing() {
    let mut net = Net::new(&Config::default(), 10 * MS).upload(1000);
    net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, 1000, out));
    net.run_until(25 * MS);
    net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, 1000, out));
    net.run_to_end(SECOND);
    assert_eq!(net.ends[SERVER].received_bytes(), 1000);
}

#[test]
fn a_request_is_answered_over_the_same_connection() {
    let mut net = Net::new(&Config::default(), 10 * MS);
    net.act(CLIENT, |end, now_ns, out| {
        end.connect(now_ns, out);
        end.offer(now_ns, 200, out);
    });
    net.run_while(|net| net.ends[SERVER].received_bytes() < 200);
    assert_eq!(net.now_ns, 30 * MS);
    net.act(SERVER, |end, now_ns, out| {
        end.offer(now_ns, 14_480, out);
        end.finish_sending(now_ns, out);
    });
    net.run_while(|net| !net.ends[CLIENT].peer_finished());
    // Ten segments are one initial window and arrive together.
    assert_eq!(net.now_ns, 40 * MS);
    assert_eq!(net.ends[CLIENT].received_bytes(), 14_480);
    net.act(CLIENT, |end, now_ns, out| end.finish_sending(now_ns, out));
    net.run_to_end(SECOND);
    assert!(net.ends[CLIENT].is_closed() && net.ends[SERVER].is_closed());
}

#[test]
fn the_last_fin_is_acknowledged_at_once() {
    // The client has finished before; whatever is left over after pairs of segments, its last acknowledgement is not
    // delayed.
    let fixed = Config { rmem_default_bytes: 100_000, rmem_max_bytes: 100_000, ..Config::default() };
    for segments in [60, 61] {
        let mut net = Net::new(&fixed, 10 * MS);
        net.act(CLIENT, |end, now_ns, out| end.connect(now_ns, out));
        net.act(SERVER, |end, now_ns, out| end.offer(now_ns, segments * MSS + 100, out));
        net.run_until(30 * MS);
        net.act(CLIENT, |end, now_ns, out| end.finish_sending(now_ns, out));
        net.run_to_end(SECOND);
        let fin_ns = net.pipes[SERVER].delivered.iter().rfind(|(_, segment)| segment.flags.fin()).unwrap().0;
        assert_eq!(net.pipes[CLIENT].sent.last().unwrap().sent_ns, fin_ns);
    }
}

#[test]
fn a_small_write_waits_while_another_is_in_flight() {
    // Nagle's rule in Minshall's variant: 100 bytes leave at once, and the next 100 when these are acknowledged.
    let mut net = Net::new(&Config::default(), 10 * MS);
    net.act(CLIENT, |end, now_ns, out| end.connect(now_ns, out));
    net.run_until(SECOND);
    net.act(CLIENT, |end, now_ns, out| {
        end.offer(now_ns, 100, out);
        end.offer(now_ns, 100, out);
    });
    net.run_until(2 * SECOND);
    let sent: Vec<_> = net.data_sent().map(|p| (p.sent_ns / MS, p.segment.len)).collect();
    assert_eq!(sent, [(1000, 100), (1020, 100)]);
}

#[test]
fn small_writes_leave_at_once_where_no_delay_is_wanted() {
    let mut net = Net::new(&Config { no_delay: true, ..Config::default() }, 10 * MS);
    net.act(CLIENT, |end, now_ns, out| end.connect(now_ns, out));
    net.run_until(SECOND);
    net.act(CLIENT, |end, now_ns, out| {
        end.offer(now_ns, 100, out);
        end.offer(now_ns, 100, out);
    });
    let sent: Vec<_> = net.data_sent().map(|p| (p.sent_ns / MS, p.segment.len)).collect();
    assert_eq!(sent, [(1000, 100), (1000, 100)]);
}
