//! How losses are found and repaired.

use crate::net::*;
use bufferscope_scenario::Congestion;
use bufferscope_sim::tcp::{Config, State};

fn reno() -> Config {
    Config { congestion: Congestion::Reno, rmem_default_bytes: 64 << 20, rmem_max_bytes: 64 << 20, ..Config::default() }
}

/// Drops the given packets of the client. Number 0 is the SYN, 1 the handshake's acknowledgement, 2 the first data.
fn losing(numbers: &'static [usize]) -> Net {
    Net::new(&reno(), 50 * MS).faults(|n, _| if numbers.contains(&n) { Action::Drop } else { Action::Deliver })
}

fn retransmissions(net: &Net) -> Vec<u64> {
    net.pipes[CLIENT].sent.iter().filter(|p| p.again).map(|p| p.sent_ns / MS).collect()
}

#[test]
fn one_loss_is_repaired_one_round_trip_later() {
    // The fifth of the first ten, sent at 100 ms; the acknowledgements of the three after it are back at 200 ms.
    let mut net = losing(&[6]).upload(500_000);
    net.run_to_end(10 * SECOND);
    assert_eq!(retransmissions(&net), [200]);
    assert_eq!(net.ends[SERVER].received_bytes(), 500_000);
}

#[test]
fn several_losses_are_repaired_in_one_round_trip() {
    // Of the 40 packets of the third round (numbers 32 to 71, after SYN, ACK, 10 and 20).
    let mut net = losing(&[40, 43, 44, 50, 55, 60]).upload(500_000);
    net.run_while(|net| net.sample().state != State::Recovery);
    let begin_ns = net.now_ns;
    net.run_to_end(10 * SECOND);
    let times = retransmissions(&net);
    assert_eq!(times.len(), 6, "{times:?}");
    assert!(times.iter().all(|&ms| ms * MS <= begin_ns + 100 * MS), "{times:?} from {begin_ns}");
    assert_eq!(net.sample().retransmits, 6);
}

#[test]
fn a_lost_retransmission_is_found_without_a_timeout() {
    // RACK: segments sent after the retransmission have been delivered, so it is lost.
    let mut seen = 0;
    let mut net = Net::new(&reno(), 50 * MS)
        .faults(move |n, p| {
            seen += usize::from(p.again);
            if n == 40 || (p.again && seen == 1) { Action::Drop } else { Action::Deliver }
        })
        .upload(500_000);
    let mut states = vec![];
    net.run_while(|net| {
        states.push(net.sample().state);
        !net.ends[CLIENT].is_closed()
    });
    assert!(!states.contains(&State::Loss));
    let times = retransmissions(&net);
    assert_eq!(times.len(), 2);
    assert!((100..=130).contains(&(times[1] - times[0])), "{times:?}");
}

#[test]
fn the_loss_of_the_last_segments_is_probed_after_two_round_trips() {
    // 10 packets, of which the last two are lost. Their predecessors' acknowledgements arrive at 200 ms and set the
    // probe to 200 + 2 * 100 + 2 = 402 ms; the probe's answer is back at 502 ms and shows the loss of the ninth.
    let mut net = losing(&[10, 11]).upload(10 * MSS);
    net.run_to_end(10 * SECOND);
    let times = retransmissions(&net);
    assert_eq!(times[0], 402);
    assert_eq!(times[1], 502);
    assert_eq!(net.ends[SERVER].received_bytes(), 10 * MSS);
    assert!(net.now_ns < SECOND);
}

#[test]
fn a_probe_that_repairs_the_only_loss_still_counts_as_congestion() {
    // The last of ten is lost and repaired by the probe. Whether it was lost shows only when more is acknowledged and
    // no duplicate was reported.
    let mut net = losing(&[11]);
    net.act(CLIENT, |end, now_ns, out| {
        end.connect(now_ns, out);
        end.offer(now_ns, 10 * MSS, out);
    });
    // This is before the idle time reaches a timeout, after which the window would restart.
    net.run_until(600 * MS);
    assert_eq!(net.ends[SERVER].received_bytes(), 10 * MSS);
    assert_eq!((retransmissions(&net).len(), net.sample().ssthresh_bytes), (1, None));
    assert_eq!(net.cwnd_packets(), 20);
    net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, MSS, out));
    assert_eq!(net.cwnd_packets(), 20);
    net.run_until(2 * SECOND);
    assert_eq!(net.sample().ssthresh_bytes, Some(10 * MSS));
}

#[test]
fn a_probe_of_something_that_had_arrived_is_no_congestion() {
    // The last segment arrives, but its acknowledgement is lost, so the receiver reports the probe as a duplicate.
    let mut net = Net::new(&reno(), 50 * MS);
    net = net.faults_back(|_, p| {
        if p.segment.ack == 1 + 10 * MSS && p.sent_ns < 300 * MS { Action::Drop } else { Action::Deliver }
    });
    net.act(CLIENT, |end, now_ns, out| {
        end.connect(now_ns, out);
        end.offer(now_ns, 10 * MSS, out);
    });
    net.run_until(SECOND);
    net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, MSS, out));
    net.run_until(2 * SECOND);
    assert_eq!(retransmissions(&net).len(), 1);
    assert_eq!((net.sample().ssthresh_bytes, net.sample().state), (None, State::Open));
}

#[test]
fn the_timeout_doubles_while_nothing_comes_back() {
    // Everything from the third data packet on is lost for 10 s.
    let mut net = Net::new(&reno(), 50 * MS);
    net = net.faults(|n, p| if n >= 30 && p.sent_ns < 10 * SECOND { Action::Drop } else { Action::Deliver }).stream();
    net.run_until(20 * SECOND);
    let times = retransmissions(&net);
    // The probe repeats nothing (it sends new data), so retransmissions are timeouts: RTO = 100 + 200 ms, then doubled.
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).take_while(|&gap| gap > 250).collect();
    assert!(gaps.len() >= 4, "{times:?}");
    assert!(gaps.windows(2).all(|pair| pair[1] == 2 * pair[0]), "{gaps:?}");
    assert_eq!(gaps[0], 600);
}

#[test]
fn the_time_until_a_retransmission_is_not_taken_for_a_round_trip() {
    // The first of ten is lost, and so are the probe and all acknowledgements: the retransmission at 602 ms is answered
    // for all ten at 702 ms. They were sent at 100 ms, but the round trip is what the timestamp says (Karn's rule).
    let mut net = Net::new(&reno(), 50 * MS)
        .faults(|n, p| if n == 2 || (p.again && p.sent_ns < 600 * MS) { Action::Drop } else { Action::Deliver })
        .faults_back(|_, p| if (120 * MS..600 * MS).contains(&p.sent_ns) { Action::Drop } else { Action::Deliver })
        .upload(10 * MSS);
    net.run_while(|net| net.ends[CLIENT].acked_bytes() == 0);
    assert_eq!(net.now_ns / MS, 702);
    assert_eq!(net.sample().srtt_ns, Some(100 * MS));
}

#[test]
fn after_a_timeout_the_window_starts_from_one_and_grows_to_half() {
    let mut net = Net::new(&reno(), 50 * MS);
    net = net
        .faults(|_, p| if (450 * MS..SECOND).contains(&p.sent_ns) { Action::Drop } else { Action::Deliver })
        .stream();
    let mut before = 0;
    net.run_while(|net| {
        if net.sample().state != State::Loss {
            before = net.cwnd_packets();
        }
        net.sample().state != State::Loss
    });
    assert_eq!(net.cwnd_packets(), 1);
    assert_eq!(net.sample().ssthresh_bytes.unwrap() / MSS, before / 2);
    assert!(net.sample().lost > 0);
    net.run_while(|net| net.sample().state == State::Loss);
    assert!(net.cwnd_packets() >= before / 4);
    net.run_until(3 * SECOND);
    assert_eq!(net.sample().lost, 0);
}

#[test]
fn a_retransmission_lost_after_a_timeout_is_congestion_again() {
    // As above. Of the later retransmissions, the 40th is lost: recovery follows, not another timeout.
    let mut repeated = 0;
    let mut net = Net::new(&reno(), 50 * MS).stream();
    net = net.faults(move |_, p| {
        repeated += usize::from(p.again && p.sent_ns >= SECOND);
        let fortieth = p.again && p.sent_ns >= SECOND && repeated == 40;
        if fortieth || (450 * MS..SECOND).contains(&p.sent_ns) { Action::Drop } else { Action::Deliver }
    });
    let mut states = vec![];
    net.run_while(|net| {
        let state = net.sample().state;
        if states.last() != Some(&state) {
            states.push(state);
        }
        net.now_ns < 5 * SECOND
    });
    assert!(states.ends_with(&[State::Loss, State::Recovery, State::Open]), "{states:?}");
}

#[test]
fn a_little_reordering_is_no_loss() {
    // One packet is overtaken by two others. Two selective acknowledgements are fewer than three.
    let mut net = Net::new(&reno(), 50 * MS).bottleneck(10_000_000, 1000);
    net = net.faults(|n, _| if n == 40 { Action::Late(3 * MS) } else { Action::Deliver }).upload(500_000);
    net.run_to_end(10 * SECOND);
    assert_eq!(net.sample().retransmits, 0);
    assert_eq!(net.sample().ssthresh_bytes, None);
}

#[test]
fn once_reordering_was_seen_a_quarter_round_trip_of_it_is_tolerated() {
    // One packet is overtaken by two others, which is recognised as reordering. From then on every 50th is 15 ms late,
    // so that 12 overtake it: far more than three, but the reordering window is 100 / 4 = 25 ms.
    let late = |n: usize| match n {
        40 => Action::Late(3 * MS),
        n if n > 100 && n % 50 == 0 => Action::Late(15 * MS),
        _ => Action::Deliver,
    };
    let mut net =
        Net::new(&reno(), 50 * MS).bottleneck(10_000_000, 10_000).faults(move |n, _| late(n)).upload(2_000_000);
    net.run_to_end(60 * SECOND);
    assert_eq!(net.sample().retransmits, 0);
}

#[test]
fn a_closed_window_is_probed_with_doubling_gaps() {
    use bufferscope_sim::Ecn;
    use bufferscope_sim::tcp::{Endpoint, Role};
    let mut client = Endpoint::new(&reno(), Role::Client);
    let mut server = Endpoint::new(&reno(), Role::Server);
    let (mut out, mut back) = (vec![], vec![]);
    client.connect(0, &mut out);
    server.on_segment(0, &out.pop().unwrap().segment, Ecn::NotEct, &mut back);
    let syn_ack = back.pop().unwrap().segment;
    client.on_segment(100 * MS, &syn_ack, Ecn::NotEct, &mut out);
    out.clear();
    // The peer closes its window before anything is sent.
    let mut closed = syn_ack;
    closed.flags = bufferscope_sim::tcp::Flags::ACK;
    (closed.seq, closed.window_bytes) = (1, 0);
    client.on_segment(100 * MS, &closed, Ecn::NotEct, &mut out);
    client.offer(100 * MS, 100_000, &mut out);
    assert!(out.is_empty());
    // RTO = 100 + 200 ms, doubled with every probe.
    let mut at_ns = 100 * MS;
    for gap_ms in [300, 600, 1200, 2400] {
        assert_eq!(client.deadline(), Some(at_ns + gap_ms * MS));
        at_ns += gap_ms * MS;
        client.on_timer(at_ns, &mut out);
        let probe = out.pop().unwrap().segment;
        assert_eq!((probe.seq, probe.len), (0, 0));
        // The peer answers, still closed.
        client.on_segment(at_ns, &closed, Ecn::NotEct, &mut out);
    }
    // The window opens by less than a segment. Nothing leaves until the next probe, which fills the window.
    let narrow = bufferscope_sim::tcp::Segment { window_bytes: 1000, ..closed };
    client.on_segment(at_ns, &narrow, Ecn::NotEct, &mut out);
    assert!(out.is_empty());
    at_ns = client.deadline().unwrap();
    client.on_timer(at_ns, &mut out);
    let part = out.pop().unwrap().segment;
    assert_eq!((part.seq, part.len), (1, 1000));
    // The window opens wide, and the rest of the initial window leaves at once.
    let open = bufferscope_sim::tcp::Segment { window_bytes: 20_000, ..closed };
    client.on_segment(at_ns, &open, Ecn::NotEct, &mut out);
    assert_eq!(out.len(), 9);
}
