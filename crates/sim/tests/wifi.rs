//! Wi-Fi: the table of "Ending the Anomaly" (Høiland-Jørgensen et al., USENIX ATC 2017), and what must hold on any channel.

mod common;

use bufferscope_records::{MemorySink, Table};
use bufferscope_scenario::Scenario;
use common::{SECOND, numbers, optional, run, scenario, words};

/// A server, an access point, two stations at 144.4 Mbit/s and one at 7.2 Mbit/s, as in the paper.
fn network(duration: &str, queueing: &str, traffic: &str) -> Scenario {
    let station = |name: &str, rate: &str| {
        format!("[[link]]\nname = \"{name}\"\nends = [\"ap\", \"{name}\"]\nrate = \"{rate}\"\n")
    };
    scenario(&format!(
        r#"
        title = "Wi-Fi"
        duration = "{duration}"
        [[wifi]]
        name = "wlan"
        access_point = "ap"
        links = ["fast1", "fast2", "slow"]
        {queueing}
        [[link]]
        name = "wire"
        ends = ["server", "ap"]
        rate = "1gbit"
        delay = "1ms"
        {}{}{}
        {traffic}
        "#,
        station("fast1", "144.4mbit"),
        station("fast2", "144.4mbit"),
        station("slow", "7.2mbit"),
    ))
}

/// UDP to all three stations, more than the channel can carry.
fn floods() -> String {
    ["fast1", "fast2", "slow"]
        .map(|to| format!("[[traffic]]\nname = \"to_{to}\"\nkind = \"udp\"\nfrom = \"server\"\nto = \"{to}\"\nrate = \"100mbit\"\n"))
        .concat()
}

/// What the access point sent to a station in the second half of the run.
#[derive(Debug)]
struct Sent {
    airtime_share: f64,
    aggregate_packets: f64,
    mbit: f64,
}

fn sent(sink: &MemorySink, end_ns: u64) -> [Sent; 3] {
    let (ports, layers) = (words(sink, Table::Queues, "port"), words(sink, Table::Queues, "layer"));
    let times = numbers(sink, Table::Queues, "t_ns");
    let column = |name| optional(sink, Table::Queues, name);
    let columns = ["sent_packets", "airtime_ns", "transmissions"].map(column);
    let gain = |station: &str| {
        let at = |t_ns: u64| {
            let port = format!("ap>{station}");
            let row = (0..times.len()).find(|&row| times[row] == t_ns && layers[row] == "ring" && ports[row] == port);
            columns.each_ref().map(|column| column[row.expect("a sample")].expect("a count"))
        };
        let (before, after) = (at(end_ns / 2), at(end_ns));
        [0, 1, 2].map(|i| (after[i] - before[i]) as f64)
    };
    let gains = ["fast1", "fast2", "slow"].map(gain);
    let airtime: f64 = gains.iter().map(|gain| gain[1]).sum();
    gains.map(|[packets, airtime_ns, transmissions]| Sent {
        airtime_share: airtime_ns / airtime,
        aggregate_packets: packets / transmissions,
        mbit: packets * 1500.0 * 8.0 / (end_ns as f64 / 2.0) * 1e3,
    })
}

#[test]
fn explore() {
    for queueing in [
        "queueing = { kind = 'fifo', size = '123p' }",
        "queueing = { kind = 'fifo', queue = { qdisc = 'fq_codel' } }",
        "queueing = { kind = 'mac80211', airtime_fairness = false }",
        "",
    ] {
        let start = std::time::Instant::now();
        let summary = run(&network("10s", queueing, &floods()), 1);
        println!("{queueing}: {:?} events {}", start.elapsed(), summary.events);
        for s in sent(&summary.output, 10 * SECOND) {
            println!("  {s:?}");
        }
    }
}
