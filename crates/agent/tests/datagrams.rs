//! Traffic over UDP on this machine's kernel. A test that needs something that the kernel lacks says so and passes.

mod common;

use bufferscope_records::Table;
use common::{Doubts, Report, dumbbell, has_shaper, judge, scenario};

/// 10 Mbit/s and 10 ms each way, 50 packets of queue.
fn judged(traffic: &str, judgement: impl Fn(&Report, &mut Doubts)) {
    judge(&scenario(&dumbbell("4s", 50, traffic)), judgement);
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
    // Two flows each send 250 datagrams of 1000 bytes per second. Another sends 100 per second, all of them within a
    // quarter of each second.
    let traffic = r#"{ name = "udp", kind = "udp", from = "h1", to = "h2", rate = "2mbit", size = 1000, flows = 2 },
        { name = "bursts", kind = "udp", from = "h1", to = "h2", rate = "3.2mbit", size = 1000, on = "250ms", off = "750ms" }"#;
    judged(traffic, |report, doubts| {
        for (flow, datagrams) in [("udp/1", 1000), ("udp/2", 1000), ("bursts/1", 400)] {
            // At the end, the datagrams of the path's 10 ms are still under way, and a few more if the machine was
            // busy.
            let (received, lost) = (last(report, flow, "delivered_bytes") / 1000, last(report, flow, "lost"));
            assert!(received + lost <= datagrams, "{flow}: {received} received, {lost} lost");
            doubts.unless(received >= datagrams - 5, format!("{flow}: {received} of {datagrams}"));
            // If the machine is held up for long, it sends what is due in one burst, which may be too large for the
            // queue.
            doubts.unless(lost == 0, format!("{flow}: {lost} lost"));
        }
        assert!(report.integers(Table::Flows, "cwnd_bytes").iter().all(Option::is_none), "UDP has no window");
        let most = report.of(Table::Queues, "port", "r1>h2", "packets").into_iter().max().unwrap();
        doubts.unless(most <= 10, format!("{most} packets queued"));
    });
}

#[test]
fn a_flood_fills_the_queue_and_the_receivers_account_is_the_queues() {
    if !has_shaper() {
        return;
    }
    judged(FLOOD, |report, doubts| {
        let queued = report.of(Table::Queues, "port", "r1>h2", "packets");
        let full = queued.iter().filter(|&&packets| packets >= 48).count();
        doubts.unless(full * 10 > queued.len() * 8, format!("full in {full} of {} samples", queued.len()));
        let dropped = *report.of(Table::Queues, "port", "r1>h2", "dropped").last().unwrap();
        let lost = last(report, "flood/1", "lost");
        // The receiver has not noticed the last drops yet: at most those during the delay of the path and the queue.
        doubts.unless(lost <= dropped && dropped - lost < 200, format!("{lost} lost, {dropped} dropped"));
        let received = last(report, "flood/1", "delivered_bytes") / 1448;
        // 1490 bytes on the wire each, at 10 Mbit/s for 4 s less 10 ms: 3347.
        doubts.unless((3300..=3360).contains(&received), format!("{received} received"));
        let sent = received + lost + last(report, "flood/1", "inflight_bytes") / 1448;
        assert!(sent <= 6907, "20 Mbit/s for 4 s are 6906 datagrams, sent: {sent}");
        doubts.unless(sent >= 6890, format!("20 Mbit/s for 4 s are 6906 datagrams, sent: {sent}"));
    });
}

#[test]
fn a_call_has_its_delay_each_way_and_a_row_for_each_packet() {
    if !has_shaper() {
        return;
    }
    judged(CALL, |report, doubts| {
        for stream in ["call/1", "call/2"] {
            let seq = report.of(Table::Probes, "probe", stream, "seq");
            assert_eq!(seq, (0..200).collect::<Vec<_>>(), "{stream}");
            let mut delays = report.of(Table::Probes, "probe", stream, "owd_up_ns");
            delays.sort_unstable();
            // 10 ms of propagation and 0.17 ms of transmission; a millisecond is allowed for the machine.
            assert!(delays[0] >= 10_000_000, "{stream}: {} ns", delays[0]);
            doubts.unless(delays[100] < 11_000_000, format!("{stream}: {} ns", delays[100]));
        }
        assert!(report.integers(Table::Probes, "rtt_ns").iter().all(Option::is_none), "there are no answers");
    });
}

#[test]
fn a_game_has_a_row_for_each_tick_of_each_end() {
    if !has_shaper() {
        return;
    }
    judged(r#"{ name = "game", kind = "game", from = "h1", to = "h2" }"#, |report, doubts| {
        for stream in ["game/1", "game/2"] {
            let seq = report.of(Table::Probes, "probe", stream, "seq");
            assert_eq!(seq, (0..256).collect::<Vec<_>>(), "{stream}: 64 a second for 4 s");
            let mut delays = report.of(Table::Probes, "probe", stream, "owd_up_ns");
            delays.sort_unstable();
            // 10 ms of propagation, and at most 0.14 ms of transmission; a millisecond is allowed for the machine.
            assert!(delays[0] >= 10_000_000, "{stream}: {} ns", delays[0]);
            doubts.unless(delays[128] < 11_000_000, format!("{stream}: {} ns", delays[128]));
        }
    });
}

#[test]
fn a_call_over_a_full_queue_loses_packets_which_have_rows() {
    if !has_shaper() {
        return;
    }
    judged(&format!("{CALL}, {FLOOD}"), |report, doubts| {
        let rows = report.texts(Table::Probes, "probe").into_iter().zip(report.integers(Table::Probes, "owd_up_ns"));
        let (outward, back): (Vec<_>, Vec<_>) = rows.partition(|(probe, _)| probe == "call/1");
        assert_eq!((outward.len(), back.len()), (200, 200));
        // Half of the packets that arrive at the queue are dropped.
        let lost = outward.iter().filter(|(_, owd)| owd.is_none()).count();
        doubts.unless((20..180).contains(&lost), format!("{lost} of 200 lost"));
        doubts.unless(back.iter().all(|(_, owd)| owd.is_some()), "the way back is free");
        // A full queue adds 50 x 1490 x 8 / 10 Mbit/s = 59.6 ms to the 10 ms. One packet in ten may meet a shaper that
        // a busy machine woke late. That is too little for a warning.
        let mut delays: Vec<i64> = outward.iter().filter_map(|(_, owd)| *owd).collect();
        delays.sort_unstable();
        let long = delays[delays.len() * 9 / 10];
        doubts.unless((60_000_000..80_000_000).contains(&long), format!("nine of ten took at most {long} ns"));
    });
}

#[test]
fn look_ups_take_a_round_trip_and_are_asked_again() {
    if !has_shaper() {
        return;
    }
    // The round trip takes 20.1 ms. With a timeout of 15 ms each question is asked twice; with 5 ms the look-up fails.
    let dns = |name: &str, timeout: &str| {
        format!(
            r#"{{ name = "{name}", kind = "dns", from = "h2", to = "h1", interval = "100ms", timeout = "{timeout}", stop = "3s" }}"#
        )
    };
    judged(&[dns("patient", "5s"), dns("hasty", "15ms"), dns("rash", "5ms")].join(", "), |report, doubts| {
        let started = report.integers(Table::Transfers, "started_ns").into_iter().map(Option::unwrap);
        let took = started.zip(report.integers(Table::Transfers, "finished_ns"));
        let took = took.map(|(started_ns, finished_ns)| Some(finished_ns? - started_ns));
        let rows: Vec<_> = report.texts(Table::Transfers, "traffic").into_iter().zip(took).collect();
        for (name, timeout_ns, succeeds) in
            [("patient", 5_000_000_000, true), ("hasty", 15_000_000, true), ("rash", 5_000_000, false)]
        {
            let own: Vec<_> = rows.iter().filter(|(traffic, _)| traffic == name).collect();
            assert_eq!(own.len(), 30, "{name}");
            let mut took_ns: Vec<i64> = own.iter().filter_map(|(_, took_ns)| *took_ns).collect();
            took_ns.sort_unstable();
            // However busy the machine is, a look-up takes at least the time of the path. One that takes longer than
            // both timeouts has failed.
            assert!(
                took_ns.iter().all(|took_ns| (20_000_000..=2 * timeout_ns).contains(took_ns)),
                "{name}: {took_ns:?}"
            );
            if succeeds {
                doubts.unless(took_ns.len() == 30, format!("{name}: {} of 30 succeeded", took_ns.len()));
                // Two milliseconds are allowed for the machine, which need not be quick every time.
                let median_ns = took_ns[took_ns.len() / 2];
                doubts.unless(median_ns < 22_000_000, format!("{name}: {median_ns} ns"));
            }
        }
    });
}
