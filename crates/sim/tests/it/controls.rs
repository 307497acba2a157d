//! The effects of congestion controls on a queue and on one another, in the whole simulator.

use crate::common::{MS, SECOND, dumbbell, numbers, numbers_where, optional, payload_bps, run, words};
use bufferscope_records::{MemorySink, Table};
use bufferscope_scenario::Scenario;

/// Payload and frame of a full segment: 1448 of 1500 + 14 bytes.
const PAYLOAD: u64 = 1448;
const FRAME: u64 = 1514;
/// Bottleneck of these tests.
const RATE: u64 = 10_000_000;
/// Time that a full frame takes on the bottleneck: 1.2112 ms.
const FRAME_NS: u64 = FRAME * 8 * SECOND / RATE;
/// Round trip of a full segment and its acknowledgement without a queue: 20 ms of links, the segment's and the
/// acknowledgement's (52 + 14 bytes) time on the wire, and up to 10 us in each host.
const BASE_RTT_NS: u64 = 20 * MS + FRAME_NS + 66 * 8 * SECOND / RATE + 10_000;

/// The name of a control's traffic.
fn name_of(congestion: &str) -> String {
    congestion.replace('+', "p")
}

/// Bulk traffic from h1 to h2, with one flow per entry, named after its control; `keys` are TOML lines.
fn bulk(entries: &[(&str, &str)]) -> String {
    let entry = |&(congestion, keys): &(&str, &str)| {
        format!(
            "[[traffic]]\nname = '{}'\nkind = 'tcp'\nfrom = 'h1'\nto = 'h2'\n\
             congestion = '{congestion}'\n{keys}\n",
            name_of(congestion)
        )
    };
    entries.iter().map(entry).collect()
}

fn through(queue: &str, seconds: u64, entries: &[(&str, &str)]) -> Scenario {
    dumbbell(&format!("{seconds}s"), &format!("rate = '10mbit'\nqueue = {{ {queue} }}"), &bulk(entries))
}

/// Mean of a column of a table's rows, from a time on.
fn mean_from(sink: &MemorySink, table: Table, column: &str, row: (&str, &str), from_ns: u64) -> f64 {
    let times = numbers_where(sink, table, "t_ns", row);
    let values = numbers_where(sink, table, column, row);
    let late: Vec<u64> = times.into_iter().zip(values).filter(|(t_ns, _)| *t_ns >= from_ns).map(|(_, v)| v).collect();
    late.iter().sum::<u64>() as f64 / late.len() as f64
}

/// Mean backlog in front of the bottleneck.
fn mean_queue(sink: &MemorySink, from_ns: u64) -> f64 {
    mean_from(sink, Table::Queues, "packets", ("port", "r1>h2"), from_ns)
}

/// Bits a second of payload that a control's flow delivers, from a time on.
fn goodput(sink: &MemorySink, congestion: &str, from_ns: u64) -> u64 {
    payload_bps(sink, &format!("{}/1", name_of(congestion)), from_ns)
}

/// Payload that the bottleneck can carry.
const FULL: u64 = RATE * PAYLOAD / FRAME;

#[test]
fn vegas_alone_keeps_two_to_four_packets_queued() {
    let sink = run(&through("qdisc = 'pfifo', limit = '100p'", 60, &[("vegas", "")]), 1).output;
    let queue = mean_queue(&sink, 10 * SECOND);
    // One of the packets that it counts is on the wire. It uses the smallest delay of a round, so the mean may be one
    // above.
    assert!((1.0..=5.0).contains(&queue), "{queue}");
    assert!(goodput(&sink, "vegas", 10 * SECOND) > FULL * 99 / 100);
    assert_eq!(words(&sink, Table::Drops, "reason").len(), 0);
}

#[test]
fn vegas_starves_beside_cubic_in_a_deep_buffer() {
    let entries = [("vegas", ""), ("cubic", "start = '10s'")];
    let sink = run(&through("qdisc = 'pfifo', limit = '500p'", 90, &entries), 1).output;
    let (vegas, cubic) = (goodput(&sink, "vegas", 40 * SECOND), goodput(&sink, "cubic", 40 * SECOND));
    assert!(vegas < cubic / 10, "{vegas} {cubic}");
}

#[test]
fn ledbat_alone_holds_its_target() {
    for target_ms in [100, 25] {
        let target = format!("target = '{target_ms}ms'");
        let sink = run(&through("qdisc = 'pfifo', limit = '1000p'", 120, &[("ledbat", &target)]), 1).output;
        let delay_ms = mean_queue(&sink, 60 * SECOND) * FRAME_NS as f64 / MS as f64;
        // Clocks of 1 ms, two of them, and packets of 1.2 ms.
        assert!((delay_ms - f64::from(target_ms)).abs() < 4.0, "{delay_ms} for {target_ms}");
        assert!(goodput(&sink, "ledbat", 60 * SECOND) > FULL * 99 / 100);
    }
}

#[test]
fn ledbat_gives_way_to_cubic() {
    let entries = [("ledbat", ""), ("cubic", "start = '60s'")];
    let sink = run(&through("qdisc = 'pfifo', limit = '500p'", 150, &entries), 1).output;
    let (ledbat, cubic) = (goodput(&sink, "ledbat", 90 * SECOND), goodput(&sink, "cubic", 90 * SECOND));
    assert!(ledbat < cubic / 20, "{ledbat} {cubic}");
}

#[test]
fn ledbat_plus_plus_alone_stays_at_its_target_and_lets_the_queue_drain() {
    let sink = run(&through("qdisc = 'pfifo', limit = '1000p'", 120, &[("ledbat++", "")]), 1).output;
    let delay_ms = mean_queue(&sink, 30 * SECOND) * FRAME_NS as f64 / MS as f64;
    assert!((30.0..=60.0).contains(&delay_ms), "{delay_ms}");
    let times = numbers_where(&sink, Table::Queues, "t_ns", ("port", "r1>h2"));
    let packets = numbers_where(&sink, Table::Queues, "packets", ("port", "r1>h2"));
    let empty = times.iter().zip(&packets).filter(|&(&t_ns, &packets)| t_ns > 30 * SECOND && packets == 0).count();
    assert!(empty > 10, "{empty} samples without a queue");
    // Slowdowns take a tenth of the time at most.
    assert!(goodput(&sink, "ledbat++", 30 * SECOND) > FULL * 90 / 100);
}

#[test]
fn of_two_ledbat_flows_the_latecomer_takes_all_and_of_two_ledbat_plus_plus_flows_half() {
    let late_share = |congestion: &str| {
        let traffic = ["early", "late"].map(|name| {
            let start = if name == "early" { "0s" } else { "30s" };
            format!(
                "[[traffic]]\nname = '{name}'\nkind = 'tcp'\nfrom = 'h1'\nto = 'h2'\nstart = '{start}'\n\
                 congestion = '{congestion}'\n"
            )
        });
        let bottleneck = "rate = '10mbit'\nqueue = { qdisc = 'pfifo', limit = '1000p' }";
        let sink = run(&dumbbell("240s", bottleneck, &traffic.concat()), 1).output;
        let [early, late] = ["early", "late"].map(|name| goodput(&sink, name, 120 * SECOND) as f64);
        late / (early + late)
    };
    // LEDBAT's second flow mistakes the first flow's queue for the path (draft-irtf-iccrg-ledbat-plus-plus-06, section
    // 3.1).
    assert!(late_share("ledbat") > 0.8, "{}", late_share("ledbat"));
    assert!((0.35..=0.65).contains(&late_share("ledbat++")), "{}", late_share("ledbat++"));
}

#[test]
fn ledbat_plus_plus_gives_way_to_cubic() {
    let entries = [("ledbat++", ""), ("cubic", "start = '60s'")];
    let sink = run(&through("qdisc = 'pfifo', limit = '500p'", 150, &entries), 1).output;
    let (ledbat, cubic) = (goodput(&sink, "ledbat++", 90 * SECOND), goodput(&sink, "cubic", 90 * SECOND));
    assert!(ledbat < cubic / 20, "{ledbat} {cubic}");
}

#[test]
fn a_fixed_window_carries_a_window_a_round_trip_up_to_the_rate_and_queues_the_rest() {
    for packets in [4, 8, 16, 24, 40, 80] {
        let window = format!("window = '{packets}p'");
        let sink = run(&through("qdisc = 'pfifo', limit = '100p'", 30, &[("window", &window)]), 1).output;
        // Throughput: a window a round trip, or the rate. Every second packet is acknowledged, for which the first has
        // to wait; and the last of what was written at once, so that in a window of four one packet may have to wait
        // for the next round.
        let most = (packets * PAYLOAD * 8 * SECOND / (BASE_RTT_NS + FRAME_NS)).min(FULL);
        let carried = goodput(&sink, "window", 10 * SECOND);
        assert!((most * 95 / 100..=most * 1001 / 1000).contains(&carried), "{packets}: {carried} of {most}");
        // Queue: the window, less the packets on the path, and less the packet on the wire, which belongs to neither.
        let path = BASE_RTT_NS as f64 / FRAME_NS as f64;
        let expected = (packets as f64 - path).max(0.0);
        let queue = mean_queue(&sink, 10 * SECOND);
        assert!((queue - expected).abs() < 1.5, "{packets}: {queue} for {expected}");
        // Delay: the time that the queue takes to empty. Where nothing queues, the time for which a left-over packet
        // waits.
        let srtt_ms = optional(&sink, Table::Flows, "srtt_ns").last().unwrap().unwrap() as f64 / MS as f64;
        let expected_ms = (BASE_RTT_NS as f64 + expected * FRAME_NS as f64) / MS as f64;
        assert!(
            (srtt_ms - expected_ms).abs() < if expected == 0.0 { 4.0 } else { 2.0 },
            "{packets}: {srtt_ms} for {expected_ms}"
        );
        assert_eq!(numbers(&sink, Table::Flows, "cwnd_bytes").last(), Some(&(packets * PAYLOAD)));
    }
}
