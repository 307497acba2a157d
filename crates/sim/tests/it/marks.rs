//! Congestion controls that count marks, with a queue that marks at a threshold, in the whole simulator.

use crate::common::{SECOND, dumbbell, numbers, numbers_where, payload_bps, run, words};
use bufferscope_records::{MemorySink, Table};

/// 10 Mbit/s, frames of 1514 bytes of which 1448 are payload, 20 ms: 16.5 packets are in flight without a queue.
const FULL_BITS_PER_S: u64 = 10_000_000 * 1448 / 1514;

/// CoDel that only marks, namely packets that have waited longer than 5 ms, which is 4.1 packets.
const THRESHOLD: &str = "rate = '10mbit'\nqueue = { qdisc = 'codel', limit = '1000p', target = '1s', interval = '1s', ce_threshold = '5ms' }";

fn flow(name: &str, congestion: &str, keys: &str) -> String {
    format!("[[traffic]]\nname = '{name}'\nkind = 'tcp'\nfrom = 'h1'\nto = 'h2'\ncongestion = '{congestion}'\n{keys}\n")
}

/// One run of 60 s.
fn over(bottleneck: &str, flows: &[String]) -> MemorySink {
    run(&dumbbell("60s", bottleneck, &flows.concat()), 1).output
}

/// The queue's length in packets after 10 s: 5th percentile, median, 95th percentile.
fn queue(sink: &MemorySink) -> [u64; 3] {
    let times = numbers_where(sink, Table::Queues, "t_ns", ("port", "r1>h2"));
    let packets = numbers_where(sink, Table::Queues, "packets", ("port", "r1>h2"));
    let mut late: Vec<u64> =
        times.into_iter().zip(packets).filter(|row| row.0 >= 10 * SECOND).map(|row| row.1).collect();
    late.sort_unstable();
    [5, 50, 95].map(|percent| late[(late.len() - 1) * percent / 100])
}

/// Per cent of the path's payload that a flow carried after 10 s.
fn share(sink: &MemorySink, flow: &str) -> u64 {
    payload_bps(sink, flow, 10 * SECOND) * 100 / FULL_BITS_PER_S
}

#[test]
fn dctcp_keeps_the_queue_at_the_threshold_and_the_path_full() {
    let sink = over(THRESHOLD, &[flow("a", "dctcp", "")]);
    // Alizadeh et al., equations 7 to 10: the window is W = 16.5 + 4.1 = 20.6 at the threshold; the queue rises to one
    // packet above it and falls by sqrt(W / 2) = 3.2: from 5 to 2 packets. Sampling and delayed acknowledgements add
    // one.
    let [low, median, high] = queue(&sink);
    assert!(low <= 3 && (2..=5).contains(&median) && (4..=7).contains(&high), "{low} {median} {high}");
    assert!(share(&sink, "a/1") >= 99, "{}", share(&sink, "a/1"));
    assert_eq!(numbers(&sink, Table::Flows, "retransmits").last(), Some(&0));
    assert!(words(&sink, Table::Drops, "reason").iter().all(|reason| reason != "overlimit"));
}

#[test]
fn reno_halves_for_the_same_marks() {
    // The window falls from 21.6 packets to 10.8, and the path holds 16.5. Below 16.5, the path is partly idle.
    let [low, ..] = queue(&over(THRESHOLD, &[flow("a", "reno", "ecn = true")]));
    assert_eq!(low, 0);
    let reno = share(&over(THRESHOLD, &[flow("a", "reno", "ecn = true")]), "a/1");
    assert!(reno < 97, "{reno}");
}

#[test]
fn dctcp_flows_share() {
    let sink = over(THRESHOLD, &[flow("a", "dctcp", ""), flow("b", "dctcp", "")]);
    let shares = ["a/1", "b/1"].map(|flow| share(&sink, flow));
    assert!(shares.iter().all(|share| (40..=60).contains(share)), "{shares:?}");
    assert!(shares.iter().sum::<u64>() >= 98);
}

#[test]
fn dctcp_takes_losses_as_reno_does() {
    // Without marks it behaves like Reno: the queue of a pfifo fills, and is halved when it overflows.
    let bottleneck = "rate = '10mbit'\nqueue = { qdisc = 'pfifo', limit = '50p' }";
    let [dctcp, reno] = ["dctcp", "reno"].map(|name| over(bottleneck, &[flow("a", name, "")]));
    let (dctcp, reno) = (queue(&dctcp), queue(&reno));
    assert!(dctcp.iter().zip(reno).all(|(one, other)| one.abs_diff(other) <= 3), "{dctcp:?} {reno:?}");
}

#[test]
fn prague_keeps_the_queue_at_the_threshold_and_the_path_full() {
    let sink = over(THRESHOLD, &[flow("a", "prague", "")]);
    // The pacing rate is the window divided by the smoothed round trip. The smoothed round trip follows a shrinking
    // queue with a lag of some round trips. For that long, the rate is below that of the path, so the queue is
    // sometimes empty.
    let [_, median, high] = queue(&sink);
    assert!((2..=5).contains(&median) && (4..=6).contains(&high), "{median} {high}");
    assert!(share(&sink, "a/1") >= 98, "{}", share(&sink, "a/1"));
    assert_eq!(numbers(&sink, Table::Flows, "retransmits").last(), Some(&0));
}

#[test]
fn prague_flows_share() {
    let sink = over(THRESHOLD, &[flow("a", "prague", ""), flow("b", "prague", "")]);
    let shares = ["a/1", "b/1"].map(|flow| share(&sink, flow));
    assert!(shares.iter().all(|share| (40..=60).contains(share)), "{shares:?}");
    // Windows of ten packets vary more, and the queue is empty more often.
    assert!(shares.iter().sum::<u64>() >= 95, "{shares:?}");
}

#[test]
fn prague_takes_losses_as_reno_does() {
    // The pfifo does not mark. 50 packets in the queue and 17 on the path are halved to 33, so the path is never idle.
    let sink = over("rate = '10mbit'\nqueue = { qdisc = 'pfifo', limit = '50p' }", &[flow("a", "prague", "")]);
    let [low, _, high] = queue(&sink);
    assert!((10..=22).contains(&low) && high >= 45, "{low} {high}");
    assert!(share(&sink, "a/1") >= 98, "{}", share(&sink, "a/1"));
}
