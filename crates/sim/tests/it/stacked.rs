//! Interfaces on top of others, such as those of VLANs, in whole runs.

use crate::common::*;
use bufferscope_records::{MemorySink, Table};

/// A bulk flow and a ping through a bottleneck whose interface has 50 packets of room, with this on top of it.
fn under(stacked: &str) -> MemorySink {
    let bottleneck = format!(
        r#"
        [link.forward]
        rate = "10mbit"
        queue = {{ qdisc = "pfifo", limit = "50p" }}
        {stacked}
        "#
    );
    run(&dumbbell("10s", &bottleneck, &format!("{BULK}{PING}")), 1).output
}

fn packets(sink: &MemorySink, layer: &str) -> Vec<u64> {
    numbers_of_layer(sink, Table::Queues, "packets", ("r1>h2", layer)).into_iter().flatten().collect()
}

#[test]
fn the_size_of_a_stacked_queue_does_not_matter() {
    let alone = under("");
    for limit in ["1p", "80p", "4096p"] {
        let sink = under(&format!(r#"stacked.queue = {{ qdisc = "pfifo", limit = "{limit}" }}"#));
        assert!(packets(&sink, "stacked").into_iter().all(|packets| packets == 0), "{limit}");
        assert_eq!(packets(&sink, "qdisc").into_iter().max(), Some(50), "{limit}");
        for table in [Table::Probes, Table::Flows, Table::Drops, Table::Sojourns] {
            assert_eq!(sink.batches(table), alone.batches(table), "{limit}: {table}");
        }
    }
}

#[test]
fn codel_on_top_of_another_queue_finds_no_delay() {
    let sink = under(r#"stacked.queue = { qdisc = "codel" }"#);
    assert_eq!(reasons_after(&sink, 0), ["overlimit"], "only the queue below drops");
    let [below, on_top] = ["qdisc", "stacked"].map(|layer| {
        let column = |name| numbers_of_layer(&sink, Table::Queues, name, ("r1>h2", layer)).last().copied().flatten();
        (column("sent_packets"), column("dropped"))
    });
    assert_eq!(on_top.1, Some(0));
    let left = packets(&sink, "qdisc").last().copied();
    assert_eq!(on_top.0, Some(below.0.unwrap() + below.1.unwrap() + left.unwrap()));
}

/// How many segments a host resends, and how many packets its interface drops, whose queue of 10 packets is much too short.
fn own_interface(stacked: &str) -> (u64, u64) {
    let text = format!(
        r#"
        title = "The host's own interface"
        duration = "10s"
        [[link]]
        name = "line"
        ends = ["h1", "h2"]
        delay = "20ms"
        forward = {{ rate = "10mbit", queue = {{ qdisc = "pfifo", limit = "10p" }}{stacked} }}
        {BULK}
        flows = 8
        "#
    );
    let sink = run(&scenario(&text), 1).output;
    let resent = (1..=8).filter_map(|flow| {
        numbers_where(&sink, Table::Flows, "retransmits", ("flow", &format!("bulk/{flow}"))).last().copied()
    });
    (resent.sum(), numbers(&sink, Table::Drops, "t_ns").len() as u64)
}

#[test]
fn a_host_is_not_notified_of_drops_below_a_stacked_queue() {
    // What its own queue has no room for, TCP has not sent. What is dropped below a queue that took it is lost.
    let (resent, dropped) = own_interface("");
    assert!(dropped > 50 && resent < dropped / 4, "{resent} of {dropped}");
    let (resent, dropped) = own_interface(r#", stacked = { queue = { qdisc = "pfifo", limit = "1000p" } }"#);
    assert!(dropped > 50 && resent > dropped / 2, "{resent} of {dropped}");
}
