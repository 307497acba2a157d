//! When the receiver sends acknowledgements.

use crate::net::*;
use bufferscope_sim::tcp::Config;

/// A receive buffer that does not grow, so that no window update asks for an acknowledgement of its own.
fn fixed_window() -> Config {
    Config { rmem_default_bytes: 400_000, rmem_max_bytes: 400_000, ..Config::default() }
}

/// A connection that is past its quick acknowledgements: after 80 segments, one by one, the window of 200,000 bytes has
/// been opened (from 65,535 by two segments for each segment: 47). A pause of more than the timeout (220 ms) would
/// start them anew.
fn settled() -> Net {
    let mut net = Net::new(&fixed_window(), 10 * MS);
    net.act(CLIENT, |end, now_ns, out| end.connect(now_ns, out));
    for i in 0..80 {
        net.run_until(SECOND + 25 * i * MS);
        net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, MSS, out));
    }
    net.run_until(SECOND + 25 * 80 * MS + 75 * MS);
    net
}

/// Delays between a packet's arrival at the server and its acknowledgement, in the order of acknowledgements.
fn ack_times_after(net: &Net, from_ns: u64) -> Vec<u64> {
    net.acks_sent().filter(|p| p.sent_ns >= from_ns).map(|p| (p.sent_ns - from_ns) / MS).collect()
}

#[test]
fn a_segment_with_more_to_come_is_acknowledged_after_40_ms() {
    let mut net = settled();
    let (from_ns, number) = (net.now_ns, net.pipes[CLIENT].sent.len());
    // The second of two segments, which would trigger an acknowledgement, is lost.
    net = net.faults(move |n, _| if n == number + 1 { Action::Drop } else { Action::Deliver });
    net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, 2 * MSS, out));
    net.run_until(from_ns + 60 * MS);
    // 10 ms on the way and 40 ms of delay. Then comes the tail loss probe, which ends the write.
    assert_eq!(ack_times_after(&net, from_ns), [50, 52]);
}

#[test]
fn the_end_of_a_write_is_acknowledged_when_it_is_read() {
    let mut net = settled();
    let from_ns = net.now_ns;
    net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, MSS, out));
    net.run_until(5 * SECOND);
    assert_eq!(ack_times_after(&net, from_ns), [10]);
}

#[test]
fn who_answers_acknowledges_with_the_answer() {
    // After its first answer the server expects to answer again: the request's acknowledgement goes with it, 5 ms
    // later.
    let mut net = settled();
    for _ in 0..2 {
        let from_ns = net.now_ns;
        net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, 100, out));
        net.run_until(from_ns + 15 * MS);
        net.act(SERVER, |end, now_ns, out| end.offer(now_ns, 100, out));
        net.run_until(from_ns + 200 * MS);
    }
    let from_ns = net.now_ns - 200 * MS;
    let answers: Vec<_> = net.pipes[SERVER].sent.iter().filter(|p| p.sent_ns >= from_ns).collect();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!((answers[0].sent_ns - from_ns, answers[0].segment.len), (15 * MS, 100));
}

#[test]
fn every_second_segment_is_acknowledged_at_once() {
    let mut net = settled();
    let from_ns = net.now_ns;
    net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, 5 * MSS, out));
    net.run_until(5 * SECOND);
    // The fifth segment ends the write and is acknowledged when it is read.
    assert_eq!(ack_times_after(&net, from_ns), [10, 10, 10]);
}

#[test]
fn at_the_start_every_segment_is_acknowledged_at_once() {
    let mut net = Net::new(&fixed_window(), 10 * MS).upload(10 * MSS);
    net.run_to_end(SECOND);
    // Ten segments, of which the tenth carries the FIN, which the server answers with its own.
    let acks = net.acks_sent().filter(|p| p.sent_ns == 30 * MS && p.segment.ack > 1).count();
    assert!(acks >= 10, "{acks}");
}

#[test]
fn a_gap_is_reported_with_every_segment_that_follows() {
    let mut net = settled();
    let (from_ns, number) = (net.now_ns, net.pipes[CLIENT].sent.len());
    net = net.faults(move |n, _| if n == number { Action::Drop } else { Action::Deliver });
    net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, 3 * MSS, out));
    net.run_until(from_ns + 15 * MS);
    let sacks: Vec<_> = net
        .acks_sent()
        .filter(|p| p.sent_ns >= from_ns)
        .flat_map(|p| p.segment.sack.iter(p.segment.ack).map(move |b| (b.start - p.segment.ack, b.end - p.segment.ack)))
        .collect();
    assert_eq!(sacks, [(MSS, 2 * MSS), (MSS, 3 * MSS)]);
}

#[test]
fn filling_the_gap_is_acknowledged_at_once() {
    let mut net = settled();
    let (from_ns, number) = (net.now_ns, net.pipes[CLIENT].sent.len());
    net = net.faults(move |n, _| if n == number { Action::Late(7 * MS) } else { Action::Deliver });
    net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, 2 * MSS, out));
    net.run_until(from_ns + 20 * MS);
    assert_eq!(ack_times_after(&net, from_ns), [10, 17]);
}

#[test]
fn a_duplicate_is_reported_as_such() {
    let mut net = settled();
    let (from_ns, number) = (net.now_ns, net.pipes[CLIENT].sent.len());
    net = net.faults(move |n, _| if n == number { Action::Twice(5 * MS) } else { Action::Deliver });
    net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, MSS, out));
    net.run_until(from_ns + 20 * MS);
    let ack = net.acks_sent().last().unwrap();
    assert_eq!(ack.sent_ns - from_ns, 15 * MS);
    let blocks: Vec<_> =
        ack.segment.sack.iter(ack.segment.ack).map(|b| (ack.segment.ack - b.start, ack.segment.ack - b.end)).collect();
    assert_eq!(blocks, [(MSS, 0)]);
}
