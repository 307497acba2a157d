//! A token bucket in whole runs: a port whose queue passes packets on more slowly than the link could send them.

use crate::common::*;
use bufferscope_records::{MemorySink, Table};

const FRAME: u64 = 1514;
/// Three of them.
const BUCKET: u64 = 3 * FRAME;
/// 10 Mbit/s carry 1448 bytes of payload in each frame of 1514.
const GOODPUT: f64 = 10e6 * 1448.0 / 1514.0;

fn goodput(sink: &MemorySink, seconds: u64) -> f64 {
    let delivered = numbers_where(sink, Table::Flows, "delivered_bytes", ("flow", "bulk/1"));
    *delivered.last().unwrap() as f64 * 8.0 / seconds as f64
}

#[test]
fn a_bucket_is_the_bottleneck_of_a_faster_link() {
    let queue = "queue = { qdisc = 'tbf', rate = '10mbit', burst = '3028b', limit = '30280b' }";
    let bottleneck = format!("rate = '100mbit'\n{queue}");
    let sink = run(&dumbbell("20s", &bottleneck, &format!("{BULK}{PING}")), 1).output;
    let goodput = goodput(&sink, 20);
    assert!((0.9 * GOODPUT..=GOODPUT).contains(&goodput), "{goodput}");
    // A full queue of 20 frames lasts 24.2 ms at the bucket's rate, and 2.4 ms at the link's. The path has 20 ms.
    let longest = optional(&sink, Table::Probes, "rtt_ns").into_iter().flatten().max().unwrap();
    assert!((42 * MS..46 * MS).contains(&longest), "{longest}");
    let bytes = numbers_where(&sink, Table::Queues, "bytes", ("port", "r1>h2"));
    assert_eq!(bytes.into_iter().max().unwrap().div_ceil(FRAME), 20);
}

#[test]
fn after_an_idle_time_a_burst_passes_at_the_links_rate() {
    // A page of 50 kB every 400 ms fits the bucket, which fills up again in 40 ms.
    let page = |burst: &str| {
        let queue = format!("queue = {{ qdisc = 'tbf', rate = '10mbit', burst = '{burst}', limit = '200kb' }}");
        let sink = run(&dumbbell("10s", &format!("rate = '100mbit'\n{queue}"), WEB), 1).output;
        let started = numbers(&sink, Table::Transfers, "started_ns");
        let finished = optional(&sink, Table::Transfers, "finished_ns");
        started.into_iter().zip(finished).filter_map(|(started, finished)| Some(finished? - started)).min().unwrap()
    };
    // 50 kB are 35 segments: flights of 10, 20 and 5. The first two hide in their round trips. The last lasts 6.1 ms at
    // 10 Mbit/s and 0.6 ms at 100 Mbit/s, and its first segment waits for what is left of the flight before.
    let (large, small) = (page("60000b"), page("3028b"));
    assert!((large + 5 * MS..large + 8 * MS).contains(&small), "{small} and {large} ns");
}

/// The host's own port, where packets of 16 segments do not fit the bucket.
fn offloaded(limit: &str) -> MemorySink {
    let scenario = scenario(&format!(
        r#"
        title = "Segmentation offload above a small bucket"
        duration = "10s"
        sojourns = "packets"
        tcp = {{ gso_max_segs = 16 }}
        [[link]]
        name = "line"
        ends = ["h1", "h2"]
        rate = "100mbit"
        delay = "10ms"
        queue = {{ qdisc = "tbf", rate = "10mbit", burst = "{BUCKET}b", limit = "{limit}" }}
        {BULK}
        "#
    ));
    run(&scenario, 1).output
}

#[test]
fn packets_of_several_segments_are_segmented_and_the_host_learns_when_all_have_left() {
    let sink = offloaded("200kb");
    assert!(numbers(&sink, Table::Drops, "bytes").is_empty());
    let bytes = numbers_where(&sink, Table::Queues, "bytes", ("port", "h1>h2"));
    assert!(bytes.iter().any(|&bytes| bytes > 0) && bytes.iter().all(|bytes| bytes % FRAME < 100), "whole frames wait");
    // Small queues keep the host's queue short, so that it never fills; the link is busy all the same.
    let goodput = goodput(&sink, 10);
    assert!((0.97 * GOODPUT..=GOODPUT).contains(&goodput), "{goodput}");
}

#[test]
fn a_packet_of_which_only_some_segments_have_room_does_not_hold_the_host_up() {
    // Two frames have room.
    let sink = offloaded("3028b");
    let dropped = numbers(&sink, Table::Drops, "bytes");
    assert!(dropped.contains(&FRAME) && dropped.iter().all(|&bytes| bytes <= BUCKET), "{dropped:?}");
    assert!(goodput(&sink, 10) > 1e6, "{}", goodput(&sink, 10));
}
