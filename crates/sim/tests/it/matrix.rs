//! The results and windows of every congestion control with every queue, for a reviewer to read. When the transport
//! changes, they show which controls are affected.

use std::fmt::Write;

use crate::common::{PING, SECOND, dumbbell, numbers, optional, run};
use bufferscope_records::{MemorySink, Table};
use bufferscope_scenario::Congestion;

const MSS: u64 = 1448;
const SECONDS: u64 = 20;
/// Name and keys. 100 packets are 121 ms at 10 Mbit/s, 1000 are 1.2 s; the path has 20 ms of its own.
const QUEUES: [(&str, &str); 6] = [
    ("pfifo 20", "qdisc = 'pfifo', limit = '20p'"),
    ("pfifo 100", "qdisc = 'pfifo', limit = '100p'"),
    ("pfifo 1000", "qdisc = 'pfifo', limit = '1000p'"),
    (
        "red",
        "qdisc = 'red', limit = '400kb', min = '30kb', max = '90kb', avpkt = '1500b', probability = 0.1, \
      bandwidth = '10mbit'",
    ),
    ("codel", "qdisc = 'codel'"),
    ("codel ecn", "qdisc = 'codel', ecn = true"),
];

/// One flow, which uses ECN if the queue does, and a ping through that queue.
fn alone(congestion: Congestion, queue: &str) -> MemorySink {
    let window = if congestion == Congestion::Window { "window = '40p'" } else { "" };
    let ecn = queue.contains("ecn = true");
    let bulk = format!(
        "[[traffic]]\nname = 'bulk'\nkind = 'tcp'\nfrom = 'h1'\nto = 'h2'\necn = {ecn}\ncongestion = '{}'\n{window}\n",
        congestion.name()
    );
    let traffic = format!("{bulk}{PING}interval = '50ms'\n");
    let bottleneck = format!("rate = '10mbit'\nqueue = {{ {queue} }}");
    run(&dumbbell(&format!("{SECONDS}s"), &bottleneck, &traffic), 1).output
}

#[test]
fn every_congestion_control_over_every_queue() {
    let mut text = String::from("control    queue       Mbit/s   RTT p50   p95 (ms)   retransmits\n");
    for &congestion in Congestion::ALL {
        for (name, keys) in QUEUES {
            let sink = alone(congestion, keys);
            let last = |column| *numbers(&sink, Table::Flows, column).last().expect("the flow was sampled");
            let goodput = last("delivered_bytes") as f64 * 8.0 / SECONDS as f64 / 1e6;
            let [median, p95] = [50, 95].map(|percent| rtt_ms(&sink, percent));
            let (control, retransmits) = (congestion.name(), last("retransmits"));
            writeln!(text, "{control:<10} {name:<10} {goodput:>7.2} {median:>9} {p95:>10} {retransmits:>13}").unwrap();
        }
        text.push('\n');
    }
    insta::assert_snapshot!(text);
}

#[test]
fn every_congestion_controls_window_round_by_round() {
    let mut text = String::from("Windows in packets, one a smoothed round trip, over pfifo 100\n");
    for &congestion in Congestion::ALL {
        let rounds = windows(&alone(congestion, QUEUES[1].1));
        writeln!(text, "\n{}", congestion.name()).unwrap();
        for line in rounds.chunks(20) {
            let words: Vec<String> = line.iter().map(|cwnd| format!("{cwnd:>4}")).collect();
            writeln!(text, "{}", words.concat()).unwrap();
        }
    }
    insta::assert_snapshot!(text);
}

/// A percentile (nearest rank) over all pings. Lost pings count as longer than any other.
fn rtt_ms(sink: &MemorySink, percent: usize) -> String {
    let mut rtts = optional(sink, Table::Probes, "rtt_ns");
    rtts.sort_by_key(|rtt| rtt.unwrap_or(u64::MAX));
    match rtts[(rtts.len() * percent).div_ceil(100) - 1] {
        Some(rtt_ns) => format!("{:.1}", rtt_ns as f64 / 1e6),
        None => "lost".to_owned(),
    }
}

/// The window at each end of a round of 80, from the first sample on.
fn windows(sink: &MemorySink) -> Vec<u64> {
    let column = |name| numbers(sink, Table::Flows, name);
    let (times, windows) = (column("t_ns"), column("cwnd_bytes"));
    let srtts = optional(sink, Table::Flows, "srtt_ns");
    let mut rounds = Vec::new();
    let mut next_ns = 0;
    for ((t_ns, cwnd), srtt_ns) in times.into_iter().zip(windows).zip(srtts) {
        if t_ns >= next_ns && rounds.len() < 80 {
            rounds.push(cwnd / MSS);
            next_ns = t_ns + srtt_ns.unwrap_or(SECOND / 50);
        }
    }
    rounds
}
