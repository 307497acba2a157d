//! The records of one small run, for a reviewer to read. A change here affects every run.

use std::fmt::Write;

use crate::common::{BULK, PING, dumbbell, numbers, numbers_where, optional, run, words};
use bufferscope_records::{MemorySink, Table};

#[test]
fn a_short_transfer_through_a_shallow_queue() {
    // 100 kB over 2 Mbit/s with 20 ms of base RTT: the pipe holds 5 kB and the queue ten packets, so slow start overruns it.
    let bottleneck = "rate = '2mbit'\nqueue = { qdisc = 'pfifo', limit = '10p' }";
    let traffic = format!("{BULK}bytes = '100000b'\ncongestion = 'reno'\n{PING}");
    let scenario = dumbbell("800ms", &format!("{bottleneck}\n[[host]]\nname = 'h1'"), &traffic);
    let sink = run(&scenario, 1).output;
    insta::assert_snapshot!(format!("{}\n{}\n{}\n{}", samples(&sink), drops(&sink), probes(&sink), transfers(&sink)));
}

/// Every second sample of the flow and of the queue.
fn samples(sink: &MemorySink) -> String {
    let flow = |column| numbers(sink, Table::Flows, column);
    let (times, cwnd, inflight, delivered) =
        (flow("t_ns"), flow("cwnd_bytes"), flow("inflight_bytes"), flow("delivered_bytes"));
    let (retransmits, states) = (flow("retransmits"), words(sink, Table::Flows, "state"));
    let queue_times = numbers_where(sink, Table::Queues, "t_ns", ("port", "r1>h2"));
    let packets = numbers_where(sink, Table::Queues, "packets", ("port", "r1>h2"));
    let mut text = String::from("    ms   cwnd inflight delivered retransmits state    | queue\n");
    for i in (0..times.len()).step_by(2) {
        let queued = packets[queue_times.iter().position(|&t| t == times[i]).expect("both are sampled together")];
        let (ms, cwnd, inflight) = (ms(times[i]), cwnd[i] / 1448, inflight[i] / 1448);
        let (delivered, retransmits, state) = (delivered[i], retransmits[i], &states[i]);
        writeln!(text, "{ms:>6} {cwnd:>6} {inflight:>8} {delivered:>9} {retransmits:>11} {state:<8} | {queued:>5}")
            .unwrap();
    }
    text
}

fn drops(sink: &MemorySink) -> String {
    let rows = numbers(sink, Table::Drops, "t_ns").into_iter().zip(words(sink, Table::Drops, "flow"));
    let mut text = String::from("    ms   dropped packet of\n");
    rows.for_each(|(t, flow)| writeln!(text, "{:>6}   {flow}", ms(t)).unwrap());
    text
}

fn probes(sink: &MemorySink) -> String {
    let rows = numbers(sink, Table::Probes, "sent_ns").into_iter().zip(optional(sink, Table::Probes, "rtt_ns"));
    let mut text = String::from("    ms   rtt of the ping\n");
    rows.for_each(|(t, rtt)| writeln!(text, "{:>6}   {}", ms(t), rtt.map_or("lost".to_owned(), ms)).unwrap());
    text
}

fn transfers(sink: &MemorySink) -> String {
    let finished = optional(sink, Table::Transfers, "finished_ns");
    format!("    ms   transfer finished\n{:>6}\n", finished[0].map_or("never".to_owned(), ms))
}

fn ms(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e6)
}
