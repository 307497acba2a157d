//! PIE in whole runs: the delay that it aims at, and what it drops or marks for that.

use crate::common::*;
use bufferscope_records::MemorySink;

/// Flows and a ping over 10 Mbit/s and 20 ms, for 30 s.
fn under(queue: &str, flows: &str) -> MemorySink {
    with(queue, &format!("{BULK}{flows}\n{PING}interval = '50ms'\n"))
}

fn with(queue: &str, traffic: &str) -> MemorySink {
    run(&dumbbell("30s", &format!("rate = '10mbit'\nqueue = {{ {queue} }}"), traffic), 1).output
}

/// The median time that packets spent in the queue after the first five seconds, in microseconds: that of the pings.
fn wait_us(sink: &MemorySink) -> u64 {
    median_wait_us(sink, 20 * MS, 100)
}

#[test]
fn the_delay_stays_near_the_target_where_a_plain_queue_fills() {
    for dq_rate_estimator in [false, true] {
        let queue = |target: &str| {
            let keys = format!("qdisc = 'pie', target = '{target}', dq_rate_estimator = {dq_rate_estimator}");
            wait_us(&under(&keys, "flows = 4"))
        };
        let (default, longer) = (queue("15ms"), queue("50ms"));
        assert!((10_000..20_000).contains(&default), "{default} us");
        assert!((40_000..60_000).contains(&longer), "{longer} us");
    }
    assert!(wait_us(&under("qdisc = 'pfifo'", "flows = 4")) > 500_000);
}

#[test]
fn capable_flows_are_marked_and_others_dropped() {
    let reasons = |flows: &str| {
        let sink = with("qdisc = 'pie', ecn = true", &format!("{BULK}{flows}\n"));
        reasons_after(&sink, 5 * SECOND)
    };
    assert_eq!(reasons("flows = 2\necn = true"), ["pie_mark"]);
    assert_eq!(reasons("flows = 2"), ["pie"]);
}
