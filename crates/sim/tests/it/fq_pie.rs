//! FQ-PIE in whole runs: each flow has a queue and a delay of its own.

use crate::common::*;
use bufferscope_records::{MemorySink, Table};

/// Payload that 10 Mbit/s carry in frames of 1514 bytes.
const GOODPUT: f64 = 10e6 * 1448.0 / 1514.0;

/// Traffic over 10 Mbit/s and 20 ms, for 30 s.
fn under(queue: &str, traffic: &str) -> MemorySink {
    run(&dumbbell("30s", &format!("rate = '10mbit'\nqueue = {{ {queue} }}"), traffic), 1).output
}

/// Bits of payload per second that a flow had over the whole run.
fn goodput(sink: &MemorySink, flow: &str) -> f64 {
    *numbers_where(sink, Table::Flows, "delivered_bytes", ("flow", flow)).last().unwrap() as f64 * 8.0 / 30.0
}

/// The median time that pings spent in the queue after the first five seconds, in microseconds.
fn wait_us(sink: &MemorySink) -> u64 {
    median_wait_us(sink, 20 * MS, 100)
}

/// Four flows and a ping: the ping is a new flow each time, and waits for the frame in transmission and for those of other
/// new flows. A frame lasts 1.2 ms.
#[test]
fn a_sparse_flow_hardly_waits_while_bulk_flows_share_equally() {
    let sink = under("qdisc = 'fq_pie'", &format!("{BULK}flows = 4\n{PING}interval = '50ms'\n"));
    let wait = wait_us(&sink);
    assert!(wait < 2_500, "{wait} us");
    let shares: Vec<f64> = (1..=4).map(|flow| goodput(&sink, &format!("bulk/{flow}")) / GOODPUT).collect();
    assert!(shares.iter().all(|share| (0.22..0.28).contains(share)), "{shares:?}");
    assert!(shares.iter().sum::<f64>() > 0.95, "{shares:?}");
}

/// All flows share one queue: then it is PIE.
#[test]
fn one_queue_is_pie() {
    let waits = |queue: &str| wait_us(&under(queue, &format!("{BULK}flows = 4\n{PING}interval = '50ms'\n")));
    let (shared, pie) = (waits("qdisc = 'fq_pie', flows = 1"), waits("qdisc = 'pie'"));
    assert!((10_000..20_000).contains(&shared), "{shared} us");
    assert!(shared.abs_diff(pie) < 3_000, "{shared} and {pie} us");
}

/// Twice the link's rate over UDP: the flow over TCP has half of the link all the same.
#[test]
fn a_flow_that_does_not_respond_harms_itself() {
    let blast = "[[traffic]]\nname = 'blast'\nkind = 'udp'\nfrom = 'h1'\nto = 'h2'\nrate = '20mbit'\n";
    let sink = under("qdisc = 'fq_pie'", &format!("{BULK}{blast}"));
    let share = goodput(&sink, "bulk/1") / GOODPUT;
    assert!((0.42..0.55).contains(&share), "{share}");
    let flows = words(&sink, Table::Drops, "flow");
    let blasted = flows.iter().filter(|flow| *flow == "blast/1").count();
    assert!(blasted * 10 > flows.len() * 9, "{blasted} of {}", flows.len());
}

#[test]
fn capable_flows_are_marked_and_others_dropped() {
    let reasons =
        |flows: &str| reasons_after(&under("qdisc = 'fq_pie', ecn = true", &format!("{BULK}{flows}\n")), 5 * SECOND);
    assert_eq!(reasons("flows = 2\necn = true"), ["pie_mark"]);
    assert_eq!(reasons("flows = 2"), ["pie"]);
}
