//! DualPI2 in whole runs: the properties that RFC 9332 requires. Scalable and classic flows share a link, and each
//! keeps its own delay.

use crate::common::*;
use bufferscope_records::{MemorySink, Table};

const RATE_MBIT: u64 = 40;

/// Flows over 40 Mbit/s and 40 ms, for 100 s.
fn over(queue: &str, traffic: &str) -> MemorySink {
    let bottleneck = format!("rate = '{RATE_MBIT}mbit'\nqueue = {{ {queue} }}");
    run(&dumbbell_of("15ms", "100s", &bottleneck, traffic), 1).output
}

fn flow(name: &str, keys: &str) -> String {
    format!("[[traffic]]\nname = '{name}'\nkind = 'tcp'\nfrom = 'h1'\nto = 'h2'\n{keys}\n")
}

/// Per mille of the link's rate for payload that a flow had after 20 s.
fn share(sink: &MemorySink, flow: &str) -> u64 {
    let full_bits_per_ms = RATE_MBIT * 1000 * 1448 / 1514;
    payload_bps(sink, flow, 20 * SECOND) / full_bits_per_ms
}

/// The smoothed round-trip times of a flow after 20 s, sorted, in microseconds.
fn round_trips_us(sink: &MemorySink, flow: &str) -> Vec<u64> {
    let row = ("flow", flow);
    let times = numbers_where(sink, Table::Flows, "t_ns", row);
    let srtts = numbers_where(sink, Table::Flows, "srtt_ns", row);
    let late = times.into_iter().zip(srtts).filter(|(t_ns, _)| *t_ns >= 20 * SECOND);
    let mut srtts: Vec<u64> = late.map(|(_, srtt_ns)| srtt_ns / 1000).collect();
    srtts.sort_unstable();
    srtts
}

/// RFC 9332, section 2.1 and appendix A: with a coupling factor of 2, the windows of scalable and of classic flows are
/// about equal, so the rates are as the inverse round-trip times, 41 and 55 ms: 1.3 to 1. A single classic flow makes the
/// probability swing, and while it recovers, the scalable flow gets no marks: 1.8 to 2.6 to 1, which depends on when the
/// flows start. The delay of scalable flows is that of the step threshold, 1 ms, and of bursts, while that of the others
/// is near the target of 15 ms.
#[test]
fn scalable_and_classic_flows_share_the_link_and_each_has_its_own_delay() {
    for (flows, most) in [(1, 3.0), (5, 1.8)] {
        for classic in ["congestion = 'cubic'", "congestion = 'reno'", "congestion = 'reno'\necn = true"] {
            let flows_of = |name, keys: &str| flow(name, &format!("{keys}\nflows = {flows}"));
            let sink = over("qdisc = 'dualpi2'", &(flows_of("l", "congestion = 'prague'") + &flows_of("c", classic)));
            let sum = |name| (1..=flows).map(|number| share(&sink, &format!("{name}/{number}"))).sum::<u64>();
            let (scalable, other) = (sum("l"), sum("c"));
            let medians = ["l/1", "c/1"].map(|flow| {
                let srtts = round_trips_us(&sink, flow);
                srtts[srtts.len() / 2]
            });
            let ratio = scalable as f64 / other as f64;
            assert!(scalable + other > 970, "{flows} {classic}: {scalable} + {other}");
            assert!((0.8..most).contains(&ratio), "{flows} {classic}: {scalable} and {other}");
            assert!((40_000..44_000).contains(&medians[0]), "{flows} {classic}: {medians:?}");
            assert!((50_000..62_000).contains(&medians[1]), "{flows} {classic}: {medians:?}");
        }
    }
}

/// In one queue that marks both alike, scalable flows leave little to classic ones (section 1.1).
#[test]
fn without_the_coupling_the_scalable_flow_takes_the_link() {
    let traffic = flow("l", "congestion = 'prague'") + &flow("c", "congestion = 'cubic'\necn = true");
    let sink = over("qdisc = 'codel', ecn = true", &traffic);
    let (scalable, other) = (share(&sink, "l/1"), share(&sink, "c/1"));
    assert!(scalable > 3 * other, "{scalable} and {other}");
}

/// The time that the pings wait, which are in the C queue, converges to the target.
#[test]
fn the_delay_of_classic_flows_converges_to_the_target() {
    let median_us = |keys: &str| {
        let traffic = format!("{BULK}flows = 4\n{PING}interval = '50ms'\n");
        median_wait_us(&over(&format!("qdisc = 'dualpi2'{keys}"), &traffic), 40 * MS, 400)
    };
    let (default, short) = (median_us(""), median_us(", target = '5ms'"));
    assert!((11_000..19_000).contains(&default), "{default}");
    assert!((3_000..7_500).contains(&short), "{short}");
}

#[test]
fn scalable_flows_are_marked_and_classic_ones_dropped() {
    let reasons = |keys: &str| reasons_after(&over("qdisc = 'dualpi2'", &flow("bulk", keys)), 20 * SECOND);
    assert_eq!(reasons("congestion = 'prague'"), ["step_mark"]);
    assert_eq!(reasons("congestion = 'cubic'\nflows = 3"), ["dualpi2"]);
    assert_eq!(reasons("congestion = 'cubic'\necn = true\nflows = 3"), ["dualpi2_mark"]);
}

/// A host's own port gets packets of 16 segments.
#[test]
fn large_packets_are_split_unless_they_are_to_stay_whole() {
    let largest = |keys: &str| {
        let text = format!(
            r#"
            title = "Segmentation offload"
            duration = "5s"
            sojourns = "packets"
            tcp = {{ gso_max_segs = 16 }}
            [[link]]
            name = "line"
            ends = ["h1", "h2"]
            rate = "10mbit"
            delay = "10ms"
            queue = {{ qdisc = "dualpi2"{keys} }}
            {BULK}
            congestion = "prague"
            pacing = false
            "#
        );
        numbers(&run(&scenario(&text), 1).output, Table::Drops, "bytes").into_iter().max().unwrap()
    };
    assert_eq!(largest(""), 1514);
    assert!(largest(", split_gso = false") > 1514);
}
