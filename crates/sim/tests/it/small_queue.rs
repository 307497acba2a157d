//! TCP small queues in whole runs: how much a connection puts into its own host's queue. Other queues are not affected.

use crate::common::*;
use bufferscope_records::{MemorySink, Table};

/// Payload of a full segment.
const MSS: u64 = 1448;
/// What the kernel charges for one.
const CHARGE: u64 = 1280 + MSS;

/// One link from host to host, its queue at the sending host.
fn own_port(rate: &str, flows: u32) -> MemorySink {
    let scenario = scenario(&format!(
        r#"
        title = "The host's own port"
        duration = "10s"
        [[link]]
        name = "line"
        ends = ["h1", "h2"]
        rate = "{rate}"
        delay = "10ms"
        queue = {{ qdisc = "pfifo", limit = "1000p" }}
        {BULK}
        flows = {flows}
        "#
    ));
    run(&scenario, 1).output
}

/// Queue lengths at a port, after the first second.
fn lengths(sink: &MemorySink, port: &str) -> Vec<u64> {
    let times = numbers_where(sink, Table::Queues, "t_ns", ("port", port));
    let packets = numbers_where(sink, Table::Queues, "packets", ("port", port));
    times.into_iter().zip(packets).filter(|row| row.0 > SECOND).map(|row| row.1).collect()
}

fn delivered(sink: &MemorySink) -> u64 {
    (1..=4)
        .map(|n| numbers_where(sink, Table::Flows, "delivered_bytes", ("flow", &format!("bulk/{n}"))))
        .filter_map(|delivered| delivered.last().copied())
        .sum()
}

#[test]
fn two_packets_of_each_connection_are_queued_in_a_slow_port() {
    // 1.2 times 10 Mbit/s for 1/1024 s are 1465 bytes, less than two packets are charged for.
    for flows in [1, 4] {
        let sink = own_port("10mbit", flows);
        let longest = lengths(&sink, "h1>h2").into_iter().max().unwrap();
        assert!((2..=3).contains(&(longest / u64::from(flows))), "{longest} packets of {flows} flows");
        assert!(numbers(&sink, Table::Drops, "bytes").is_empty());
        // And yet the link is busy: 10 Mbit/s * 1448/1514 for 10 s are 11.95 MB.
        assert!(delivered(&sink) > 11_700_000, "{} bytes", delivered(&sink));
    }
}

#[test]
fn a_millisecond_at_the_pacing_rate_is_queued_in_a_fast_port() {
    let sink = own_port("200mbit", 1);
    // In congestion avoidance, the rate is 1.2 windows per round trip. The window no longer grows, because it is not
    // the limit.
    let cwnd = *numbers(&sink, Table::Flows, "cwnd_bytes").last().unwrap();
    let srtt_ns = optional(&sink, Table::Flows, "srtt_ns").into_iter().flatten().last().unwrap();
    let limit_bytes = cwnd * 12 / 10 * SECOND / srtt_ns / 1024;
    let limit = limit_bytes.div_ceil(CHARGE);
    assert!(limit > 5, "more than the least");
    let lengths = lengths(&sink, "h1>h2");
    let mean = lengths.iter().sum::<u64>() as f64 / lengths.len() as f64;
    assert!((mean - limit as f64).abs() < 1.0, "{mean} packets on average, at most {limit}");
}

#[test]
fn the_queue_of_a_router_fills_as_before() {
    let bottleneck = r#"
        rate = "10mbit"
        queue = { qdisc = "pfifo", limit = "100p" }
    "#;
    let sink = run(&dumbbell("10s", bottleneck, BULK), 1).output;
    assert_eq!(lengths(&sink, "r1>h2").into_iter().max(), Some(100));
}
