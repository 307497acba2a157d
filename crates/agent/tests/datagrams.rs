//! Traffic over UDP on this machine's kernel. What it lacks, a test can't judge; those say so and pass.

mod common;

use bufferscope_records::Table;
use common::{Report, has_shaper, run, scenario, was_disturbed};
use serde_json::json;

/// 10 Mbit/s and 10 ms each way, 50 packets of queue.
fn succeeded(traffic: &str) -> Report {
    let toml = format!(
        r#"
        title = "Datagrams"
        duration = "4s"
        link = [
          {{ name = "access", ends = ["h1", "r1"], delay = "5ms" }},
          {{ name = "bottleneck", ends = ["r1", "h2"], rate = "10mbit", delay = "5ms", queue = {{ qdisc = "pfifo", limit = "50p" }} }},
        ]
        traffic = [{traffic}]
        "#
    );
    let report = run(&scenario(&toml), json!({}));
    report.summary();
    report
}

const CALL: &str = r#"{ name = "call", kind = "voip", from = "h1", to = "h2", dscp = "ef" }"#;
const FLOOD: &str = r#"{ name = "flood", kind = "udp", from = "h1", to = "h2", rate = "20mbit" }"#;

fn last(report: &Report, flow: &str, column: &str) -> i64 {
    *report.of(Table::Flows, "flow", flow, column).last().unwrap()
}

#[test]
fn a_rate_below_the_paths_arrives_whole() {
    if !has_shaper() {
        return;
    }
    // 250 datagrams of 1000 bytes a second from each of two flows, and 100 in a second in a quarter of the time.
    let report = succeeded(
        r#"{ name = "udp", kind = "udp", from = "h1", to = "h2", rate = "2mbit", size = 1000, flows = 2 },
           { name = "bursts", kind = "udp", from = "h1", to = "h2", rate = "3.2mbit", size = 1000, on = "250ms", off = "750ms" }"#,
    );
    for (flow, datagrams) in [("udp/1", 1000), ("udp/2", 1000), ("bursts/1", 400)] {
        // What is under way at the end are the 10 ms of the path, and a few more if the machine was busy.
        let (received, lost) = (last(&report, flow, "delivered_bytes") / 1000, last(&report, flow, "lost"));
        assert!((datagrams - 5..=datagrams).contains(&received) || was_disturbed(&report), "{flow}: {received}");
        assert!(lost == 0, "{flow}: {lost} lost");
    }
    assert!(report.integers(Table::Flows, "cwnd_bytes").iter().all(Option::is_none), "UDP has no window");
    let most = report.of(Table::Queues, "port", "r1>h2", "packets").into_iter().max().unwrap();
    assert!(most <= 10 || was_disturbed(&report), "{most} packets queued");
}

#[test]
fn a_flood_fills_the_queue_and_the_receivers_account_is_the_queues() {
    if !has_shaper() {
        return;
    }
    let report = succeeded(FLOOD);
    let queued = report.of(Table::Queues, "port", "r1>h2", "packets");
    let full = queued.iter().filter(|&&packets| packets >= 48).count();
    assert!(full * 10 > queued.len() * 8 || was_disturbed(&report), "{full} of {} samples", queued.len());
    let dropped = *report.of(Table::Queues, "port", "r1>h2", "dropped").last().unwrap();
    let lost = last(&report, "flood/1", "lost");
    // What the queue dropped last has not been missed yet: at most the path's delay, and the queue's, of the flood.
    assert!(lost <= dropped && dropped - lost < 200, "{lost} lost, {dropped} dropped");
    let received = last(&report, "flood/1", "delivered_bytes") / 1448;
    // 1490 bytes on the wire each, at 10 Mbit/s for 4 s less 10 ms: 3347.
    assert!((3300..=3360).contains(&received) || was_disturbed(&report), "{received}");
    let under_way = last(&report, "flood/1", "inflight_bytes") / 1448;
    let sent = received + lost + under_way;
    assert!(
        (6890..=6907).contains(&sent) || was_disturbed(&report),
        "20 Mbit/s for 4 s are 6906 datagrams, sent: {sent}"
    );
}

#[test]
fn a_call_has_its_delay_each_way_and_a_row_for_each_packet() {
    if !has_shaper() {
        return;
    }
    let report = succeeded(CALL);
    for stream in ["call/1", "call/2"] {
        let seq = report.of(Table::Probes, "probe", stream, "seq");
        assert_eq!(seq, (0..200).collect::<Vec<_>>(), "{stream}");
        let mut delays = report.of(Table::Probes, "probe", stream, "owd_up_ns");
        delays.sort_unstable();
        // 10 ms of propagation and 0.17 ms of transmission; a millisecond is for the machine.
        assert!(delays[0] >= 10_000_000, "{stream}: {} ns", delays[0]);
        assert!(delays[100] < 11_000_000 || was_disturbed(&report), "{stream}: {} ns", delays[100]);
    }
    assert!(report.integers(Table::Probes, "rtt_ns").iter().all(Option::is_none), "nobody answers");
}

#[test]
fn a_call_over_a_full_queue_loses_packets_which_have_rows() {
    if !has_shaper() {
        return;
    }
    let report = succeeded(&format!("{CALL}, {FLOOD}"));
    let rows = report.texts(Table::Probes, "probe").into_iter().zip(report.integers(Table::Probes, "owd_up_ns"));
    let (outward, back): (Vec<_>, Vec<_>) = rows.partition(|(probe, _)| probe == "call/1");
    let lost = outward.iter().filter(|(_, owd)| owd.is_none()).count();
    assert_eq!((outward.len(), back.len()), (200, 200));
    assert!((20..180).contains(&lost), "{lost} of 200 lost");
    assert!(back.iter().all(|(_, owd)| owd.is_some()), "the way back is free");
    // A full queue is 50 x 1490 x 8 / 10 Mbit/s = 59.6 ms, on top of 10.
    let longest = outward.iter().filter_map(|(_, owd)| *owd).max().unwrap();
    assert!((60_000_000..80_000_000).contains(&longest) || was_disturbed(&report), "{longest} ns");
}

#[test]
fn look_ups_take_a_round_trip_and_are_asked_again() {
    if !has_shaper() {
        return;
    }
    // The round trip takes 20.1 ms: with patience for 15 ms each is asked twice, with 5 ms it has failed.
    let dns = |name: &str, timeout: &str| {
        format!(
            r#"{{ name = "{name}", kind = "dns", from = "h2", to = "h1", interval = "100ms", timeout = "{timeout}", stop = "3s" }}"#
        )
    };
    let report = succeeded(&[dns("patient", "5s"), dns("hasty", "15ms"), dns("rash", "5ms")].join(", "));
    let started = report.integers(Table::Transfers, "started_ns").into_iter().map(Option::unwrap);
    let finished = report.integers(Table::Transfers, "finished_ns");
    let rows: Vec<_> = report.texts(Table::Transfers, "traffic").into_iter().zip(started.zip(finished)).collect();
    for (name, succeeds) in [("patient", true), ("hasty", true), ("rash", false)] {
        let own: Vec<_> = rows.iter().filter(|(traffic, _)| traffic == name).collect();
        assert_eq!(own.len(), 30, "{name}");
        let mut took_ns: Vec<i64> =
            own.iter().filter_map(|(_, (started, finished))| Some((*finished)? - started)).collect();
        assert_eq!(took_ns.len(), if succeeds { 30 } else { 0 }, "{name}");
        took_ns.sort_unstable();
        if succeeds {
            // Two milliseconds are for the machine, which need not be quick every time.
            assert!(took_ns[0] >= 20_000_000, "{name}: {} ns", took_ns[0]);
            assert!(took_ns[15] < 22_000_000 || was_disturbed(&report), "{name}: {} ns", took_ns[15]);
        }
    }
}
