//! CHOKe and SFQ in whole runs: how they share a link between a flow that answers to drops and one that does not.

use std::collections::BTreeMap;

use crate::common::*;
use bufferscope_records::{MemorySink, Table};

/// A TCP flow and datagrams at 8 Mbit/s over 10 Mbit/s, for 30 s.
fn contended(queue: &str) -> MemorySink {
    let flood = "[[traffic]]\nname = 'flood'\nkind = 'udp'\nfrom = 'h1'\nto = 'h2'\nrate = '8mbit'\nsize = 1472\n";
    let traffic = format!("{BULK}\n{flood}{PING}interval = '50ms'\n");
    run(&dumbbell("30s", &format!("rate = '10mbit'\nqueue = {{ {queue} }}"), &traffic), 1).output
}

/// What the TCP flow has of the link, in per cent of 10 Mbit/s.
fn share_of_tcp(sink: &MemorySink) -> u64 {
    let bytes = numbers_where(sink, Table::Flows, "delivered_bytes", ("flow", "bulk/1"));
    bytes.last().expect("samples") * 8 * 100 / (10_000_000 * 30)
}

/// The median round-trip time of the pings in microseconds; the path has 20 ms.
fn median_rtt_us(sink: &MemorySink) -> u64 {
    let mut rtts: Vec<u64> = optional(sink, Table::Probes, "rtt_ns").into_iter().flatten().collect();
    rtts.sort_unstable();
    rtts[rtts.len() / 2] / 1000
}

#[test]
fn sfq_shares_the_link_evenly_and_lets_a_ping_pass() {
    let sink = contended("qdisc = 'sfq'");
    // Half of the link is 47.8 % of it in payload. The flood leaves no more.
    assert!((40..50).contains(&share_of_tcp(&sink)), "{} %", share_of_tcp(&sink));
    // The ping waits for a packet of each flow at most, 2.4 ms, and for the one on the wire.
    assert!((20_000..24_000).contains(&median_rtt_us(&sink)), "{} us", median_rtt_us(&sink));
    // A plain queue leaves TCP what the flood does not take.
    let plain = contended("qdisc = 'pfifo', limit = '127p'");
    assert!(share_of_tcp(&plain) < 25, "{} %", share_of_tcp(&plain));
    assert!(median_rtt_us(&plain) > 60_000, "{} us", median_rtt_us(&plain));
}

#[test]
fn choke_holds_an_unresponsive_flow_down_more_than_red() {
    let keys = "min = '20p', max = '60p', avpkt = 1500";
    let choke = contended(&format!("qdisc = 'choke', limit = '400p', bandwidth = '10mbit', {keys}"));
    let red = contended("qdisc = 'red', limit = '600kb', min = '30kb', max = '90kb', avpkt = 1500");
    assert!(share_of_tcp(&choke) > share_of_tcp(&red), "{} and {} %", share_of_tcp(&choke), share_of_tcp(&red));
    let reasons = words(&choke, Table::Drops, "reason");
    assert!(reasons.iter().filter(|reason| *reason == "choke_matched").count() > 100);
}

/// The flows of each flow queue in each sample of the bottleneck.
fn shared_queues(sink: &MemorySink) -> Vec<Vec<String>> {
    let of = |column| numbers(sink, Table::FlowQueues, column);
    let rows = words(sink, Table::FlowQueues, "port").into_iter().zip(words(sink, Table::FlowQueues, "flow"));
    let mut flows: BTreeMap<(u64, u64), Vec<String>> = BTreeMap::new();
    for ((port, flow), place) in rows.zip(of("t_ns").into_iter().zip(of("queue"))) {
        if port == "r1>h2" {
            flows.entry(place).or_default().push(flow);
        }
    }
    flows.into_values().collect()
}

#[test]
fn the_flows_of_a_flow_queue_are_sampled() {
    for queue in ["qdisc = 'fq_codel'", "qdisc = 'fq_pie'", "qdisc = 'sfq'", "qdisc = 'cake'", "qdisc = 'fq'"] {
        let apart = shared_queues(&contended(queue));
        assert!(apart.len() > 300, "{queue}: {} samples", apart.len());
        assert!(apart.iter().all(|flows| flows.len() == 1), "{queue}: every flow has a queue of its own");
        assert!(apart.iter().any(|flows| flows[0] == "bulk/1") && apart.iter().any(|flows| flows[0] == "flood/1"));
    }
    for queue in [
        "qdisc = 'fq_codel', flows = 1",
        "qdisc = 'tbf', rate = '9mbit', burst = '20kb', limit = '1mb', inner = { qdisc = 'fq_codel', flows = 1 }",
    ] {
        let together = shared_queues(&contended(queue));
        let both = together.iter().filter(|flows| flows.contains(&"bulk/1".to_owned()) && flows.len() > 1).count();
        assert!(both > 100, "{queue}: {both} samples with both flows in one queue");
    }
}

#[test]
fn all_pings_between_two_hosts_share_a_queue() {
    let flood = "[[traffic]]\nname = 'flood'\nkind = 'udp'\nfrom = 'h1'\nto = 'h2'\nrate = '12mbit'\nsize = 1472\n";
    let pings = ["one", "two"].map(|name| {
        format!("[[traffic]]\nname = '{name}'\nkind = 'ping'\nfrom = 'h1'\nto = 'h2'\ninterval = '2ms'\nsize = 1400\n")
    });
    let link = "rate = '10mbit'\nqueue = { qdisc = 'fq_codel' }";
    let queues = shared_queues(&run(&dumbbell("3s", link, &format!("{flood}{}", pings.concat())), 1).output);
    let (of_pings, others): (Vec<_>, Vec<_>) =
        queues.iter().partition(|flows| flows.iter().any(|flow| flow.starts_with("one") || flow.starts_with("two")));
    assert!(others.iter().all(|flows| flows.len() == 1));
    let shared = of_pings.iter().filter(|flows| flows.len() == 2).count();
    // Both send as much. So nearly always the queue has packets of both, and there is no second queue with pings.
    assert!(shared * 10 > of_pings.len() * 9 && shared > 20, "{shared} of {}", of_pings.len());
}

#[test]
fn a_discipline_without_flow_queues_has_no_samples_of_them() {
    assert!(numbers(&contended("qdisc = 'codel'"), Table::FlowQueues, "t_ns").is_empty());
}
