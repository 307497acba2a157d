//! Bulk flows and pages over the whole simulator.

use crate::common::{BULK, MS, SECOND, dumbbell, numbers, numbers_where, optional, run, words};
use bufferscope_records::Table;

/// Payload and frame of a full segment: 1448 of 1500 + 14 bytes.
const PAYLOAD: u64 = 1448;
const FRAME: u64 = 1514;

fn last(values: &[u64]) -> u64 {
    *values.last().expect("there are samples")
}

#[test]
fn a_bulk_flow_carries_the_payload_that_the_wire_has_room_for() {
    // 10 Mbit/s of frames are 9.564 Mbit/s of payload. Slow start and the FIFO's first losses cost a little.
    let scenario = dumbbell("20s", "rate = '10mbit'\nqueue = { qdisc = 'pfifo', limit = '100p' }", BULK);
    let sink = run(&scenario, 1).output;
    let delivered = numbers(&sink, Table::Flows, "delivered_bytes");
    assert!(delivered.is_sorted());
    let bits = last(&delivered) * 8;
    let most = 20 * 10_000_000 * PAYLOAD / FRAME;
    assert!((most * 96 / 100..=most).contains(&bits), "{bits} of at most {most}");
}

#[test]
fn a_queue_is_never_above_its_limit_and_a_full_one_drops() {
    let scenario = dumbbell("20s", "rate = '10mbit'\nqueue = { qdisc = 'pfifo', limit = '50p' }", BULK);
    let summary = run(&scenario, 1);
    let packets = numbers_where(&summary.output, Table::Queues, "packets", ("port", "r1>h2"));
    assert_eq!(packets.iter().max(), Some(&50), "the sawtooth reaches the limit and stays there");
    let reasons = words(&summary.output, Table::Drops, "reason");
    assert!(reasons.iter().all(|reason| reason == "overlimit"), "{reasons:?}");
    let dropped = summary.ports.iter().map(|port| port.dropped).sum::<u64>();
    assert!(dropped > 0);
    assert_eq!(reasons.len() as u64, dropped, "a row for every drop");
    assert_eq!(words(&summary.output, Table::Drops, "flow"), vec!["bulk/1"; reasons.len()]);
}

#[test]
fn samples_are_on_the_grid_from_zero_to_the_duration() {
    let scenario = dumbbell("1005ms", "rate = '10mbit'", BULK);
    let sink = run(&scenario, 1).output;
    let mut expected: Vec<u64> = (0..=100).map(|n| n * 10 * MS).collect();
    expected.push(1005 * MS);
    assert_eq!(numbers_where(&sink, Table::Queues, "t_ns", ("port", "r1>h2")), expected);
    assert_eq!(numbers_where(&sink, Table::Queues, "t_ns", ("port", "h2>r1")), expected);
    assert!(!words(&sink, Table::Queues, "port").contains(&"h1>r1".to_owned()), "a port without rate has no queue");
}

#[test]
fn the_last_queue_sample_and_the_sojourns_count_the_same_packets() {
    let scenario = dumbbell("10s", "rate = '10mbit'\nqueue = { qdisc = 'codel' }", BULK);
    let sink = run(&scenario, 1).output;
    let sent = last(&numbers_where(&sink, Table::Queues, "sent_packets", ("port", "r1>h2")));
    let sojourns = numbers_where(&sink, Table::Sojourns, "packets", ("port", "r1>h2"));
    assert_eq!(sojourns.iter().sum::<u64>(), sent);
    let seconds = numbers(&sink, Table::Sojourns, "t_ns");
    assert!(seconds.iter().all(|t_ns| t_ns % SECOND == 0 && *t_ns < 10 * SECOND));
}

#[test]
fn every_packet_has_its_sojourn_if_asked_for() {
    let scenario =
        dumbbell("5s", "rate = '10mbit'", &format!("{BULK}\n[[link]]\nname='x'\nends=['h2','x']\ndelay='1ms'"));
    let detailed =
        bufferscope_scenario::Scenario { sojourns: bufferscope_scenario::SojournDetail::Packets, ..scenario.clone() };
    let (sink, summarised) = (run(&detailed, 1).output, run(&scenario, 1).output);
    let packets = numbers_where(&sink, Table::Sojourns, "packets", ("port", "r1>h2"));
    let in_histograms = numbers_where(&summarised, Table::Sojourns, "packets", ("port", "r1>h2"));
    assert_eq!(packets.len() as u64, in_histograms.iter().sum::<u64>());
    // 1000 packets take 1.2112 ms each; no packet waits longer.
    let longest = numbers_where(&sink, Table::Sojourns, "sojourn_ns", ("port", "r1>h2")).into_iter().max().unwrap();
    assert!(longest <= 1_211_200_000, "{longest}");
}

#[test]
fn a_change_of_rate_shows_in_what_is_sent() {
    // 10 Mbit/s for 10 s, then 1 Mbit/s for 10 s: 82.6 or 825.6 frames a second.
    let scenario = dumbbell("20s", "rate = [['0s', '10mbit'], ['10s', '1mbit']]", BULK);
    let sink = run(&scenario, 1).output;
    let sent = numbers_where(&sink, Table::Queues, "sent_bytes", ("port", "r1>h2"));
    let rate = |from: usize, to: usize| (sent[to] - sent[from]) * 8 / ((to - from) as u64 / 100);
    assert!((9_900_000..=10_020_000).contains(&rate(500, 1000)), "{}", rate(500, 1000));
    assert!((990_000..=1_002_000).contains(&rate(1200, 2000)), "{}", rate(1200, 2000));
}

#[test]
fn a_transfer_of_known_size_is_recorded_and_its_connection_closes() {
    // 1 MB at 10 Mbit/s takes 0.837 s of wire and a few round trips of slow start.
    let scenario = dumbbell("10s", "rate = '10mbit'", &format!("{BULK}bytes = '1000000b'\nflows = 2"));
    let summary = run(&scenario, 1);
    let sink = &summary.output;
    assert_eq!(words(sink, Table::Transfers, "traffic"), ["bulk", "bulk"]);
    assert_eq!(numbers(sink, Table::Transfers, "bytes"), [1_000_000, 1_000_000]);
    for (start, end) in
        numbers(sink, Table::Transfers, "started_ns").into_iter().zip(numbers(sink, Table::Transfers, "finished_ns"))
    {
        assert!(start < MS, "started at {start}");
        assert!((1000 * MS..3000 * MS).contains(&end), "finished at {end}");
    }
    assert_eq!(last(&numbers_where(sink, Table::Flows, "delivered_bytes", ("flow", "bulk/1"))), 1_000_000);
    let sampled_last = last(&numbers(sink, Table::Flows, "t_ns"));
    assert!(sampled_last < 4 * SECOND, "a closed connection is not sampled: {sampled_last}");
    assert!(summary.flows.iter().all(|flow| flow.under_way == 0));
}

#[test]
fn a_flow_that_is_stopped_sends_what_it_had_sent_and_closes() {
    let scenario = dumbbell(
        "10s",
        "rate = '10mbit'\nqueue = { qdisc = 'pfifo', limit = '100p' }",
        &format!("{BULK}start = '1s'\nstop = '4s'"),
    );
    let sink = run(&scenario, 1).output;
    let sent = numbers_where(&sink, Table::Queues, "sent_bytes", ("port", "r1>h2"));
    assert_eq!(sent[100], 0, "nothing before the start");
    assert!(sent[400] > 3_000_000);
    // At most a full queue and a full path of packets are left: 100 frames and 25 kB.
    assert!(sent[1000] - sent[400] < 400_000, "{} bytes after the stop", sent[1000] - sent[400]);
    assert!(last(&numbers(&sink, Table::Flows, "t_ns")) < 6 * SECOND);
}

#[test]
fn traffic_without_flows_leaves_the_others_as_they_are_alone() {
    let rival = BULK.replace("bulk", "rival");
    let with = run(&dumbbell("5s", "rate = '10mbit'", &format!("{BULK}{rival}flows = 0\nstop = '3s'")), 1);
    let alone = run(&dumbbell("5s", "rate = '10mbit'", BULK), 1);
    assert_eq!(with.hops, alone.hops);
    assert_eq!(with.flows, alone.flows);
    let none = run(&dumbbell("1s", "rate = '10mbit'", &format!("{BULK}flows = 0")), 1);
    assert_eq!((none.hops, none.output.rows(Table::Flows)), (0, 0));
}

const WEB: &str = r#"
    [[traffic]]
    name = "web"
    kind = "web"
    from = "h1"
    to = "h2"
    interval = "500ms"
    bytes = "100000b"
"#;

#[test]
fn pages_are_fetched_at_their_interval_over_connections_of_their_own() {
    let summary = run(&dumbbell("10s", "rate = '10mbit'", WEB), 1);
    let sink = &summary.output;
    let flows = words(sink, Table::Transfers, "flow");
    assert_eq!(flows, (1..=20).map(|n| format!("web/{n}")).collect::<Vec<_>>());
    let started = numbers(sink, Table::Transfers, "started_ns");
    assert!((0..).step_by(500).zip(&started).all(|(ms, &at)| (ms * MS..(ms + 1) * MS).contains(&at)), "{started:?}");
    // Handshake and request, then three round trips of 20 ms (10, 20 and 40 segments of the 70), and 84 ms of wire:
    // between 100 and 200 ms on an empty path.
    for (start, end) in started.into_iter().zip(numbers(sink, Table::Transfers, "finished_ns")) {
        assert!((100 * MS..200 * MS).contains(&(end - start)), "{} ns", end - start);
    }
    assert_eq!(summary.flows.len(), 1, "the pages share an account: {:?}", summary.flows);
    assert_eq!(summary.flows[0].flow, "web");
}

#[test]
fn a_page_that_is_not_finished_at_the_duration_has_no_end() {
    let summary = run(&dumbbell("10s", "rate = '100kbit'", WEB), 1);
    let finished = optional(&summary.output, Table::Transfers, "finished_ns");
    assert_eq!(finished.len(), 20);
    assert!(finished.contains(&None), "100 kB need 8 s at 100 kbit/s, and there are twenty of them");
    assert!(finished.iter().flatten().all(|&end| end <= 10 * SECOND));
}

#[test]
fn closed_connections_are_not_sampled() {
    // 1000 pages, of which a handful is open at a time.
    let web = WEB.replace("500ms", "20ms").replace("100000b", "1000b");
    let summary = run(&dumbbell("20s", "rate = '100mbit'", &web), 1);
    assert_eq!(summary.output.rows(Table::Transfers), 1000);
    let sampled = numbers(&summary.output, Table::Flows, "t_ns");
    let at_once = |t_ns: u64| sampled.iter().filter(|&&at| at == t_ns).count();
    assert!((1..20).contains(&at_once(19 * SECOND)), "{} connections exist at 19 s", at_once(19 * SECOND));
}

#[test]
fn paced_flows_leave_at_the_hosts_share_of_a_window_a_round_trip() {
    let bulk = format!(
        "{BULK}\npacing = true\n[[host]]\nname = 'h1'\ntcp = {{ pacing_ss_ratio = 300, pacing_ca_ratio = 150 }}"
    );
    let scenario = dumbbell("5s", "rate = '10mbit'\nqueue = { qdisc = 'pfifo', limit = '100p' }", &bulk);
    let sink = run(&scenario, 1).output;
    let column = |name| optional(&sink, Table::Flows, name);
    let rows = column("cwnd_bytes").into_iter().zip(column("srtt_ns")).zip(column("pacing_bps"));
    let shares: Vec<u64> =
        rows.filter_map(|((cwnd, srtt), pacing)| Some(pacing? * srtt? / (cwnd? * 8 * SECOND / 100))).collect();
    // In slow start three windows, later one and a half. The rate follows each acknowledgement, so it is exact but for
    // rounding, except while more is out than a window that was just reduced.
    assert!(shares.iter().take(5).all(|share| (299..=300).contains(share)), "{shares:?}");
    let settled = shares.iter().filter(|&share| (149..=150).contains(share)).count();
    assert!(settled * 10 > shares.len() * 6, "{shares:?}");
    let unpaced = run(&dumbbell("1s", "rate = '10mbit'", BULK), 1).output;
    assert!(optional(&unpaced, Table::Flows, "pacing_bps").iter().all(Option::is_none));
}

#[test]
fn a_syn_that_finds_no_room_is_sent_again_as_its_host_is_set() {
    // The first datagram is on the wire for 12 s, and another is queued. All other packets are dropped.
    let syns = |timeouts: u32| {
        let traffic = format!(
            "
            [[host]]
            name = 'h1'
            tcp.syn_linear_timeouts = {timeouts}
            [[traffic]]
            name = 'filler'
            kind = 'udp'
            from = 'h1'
            to = 'h2'
            rate = '100kbit'
            stop = '300ms'
            [[traffic]]
            name = 'late'
            kind = 'tcp'
            from = 'h1'
            to = 'h2'
            start = '500ms'
            "
        );
        let full = "rate = '1kbit'\nqueue = { qdisc = 'pfifo', limit = '1p' }";
        let sink = run(&dumbbell("10s", full, &traffic), 1).output;
        let dropped: Vec<u64> = numbers_where(&sink, Table::Drops, "t_ns", ("flow", "late/1"));
        dropped.into_iter().map(|t_ns| t_ns / (100 * MS)).collect::<Vec<_>>()
    };
    // Tenths of a second; timers of a second are some hundredths late, those of four up to a quarter.
    assert_eq!(syns(0), [5, 15, 35, 77]);
    assert_eq!(syns(4), [5, 15, 25, 35, 45, 56, 76]);
}

#[test]
fn a_connection_begins_with_the_threshold_that_the_last_one_left_if_its_host_remembers() {
    // The first transfer overflows the queue; the second has the path to itself.
    let thresholds = |remembers: bool| {
        let traffic = format!(
            "
            [[host]]
            name = 'h1'
            tcp.remember_ssthresh = {remembers}
            [[traffic]]
            name = 'first'
            kind = 'tcp'
            from = 'h1'
            to = 'h2'
            congestion = 'reno'
            bytes = '1mb'
            [[traffic]]
            name = 'second'
            kind = 'tcp'
            from = 'h1'
            to = 'h2'
            congestion = 'reno'
            bytes = '10kb'
            start = '5s'
            "
        );
        let sink =
            run(&dumbbell("6s", "rate = '10mbit'\nqueue = { qdisc = 'pfifo', limit = '10p' }", &traffic), 1).output;
        let thresholds = optional(&sink, Table::Flows, "ssthresh_bytes");
        let rows: Vec<(String, Option<u64>)> = words(&sink, Table::Flows, "flow").into_iter().zip(thresholds).collect();
        let of = |flow: &str| rows.iter().filter(|row| row.0 == flow).map(|row| row.1).collect::<Vec<_>>();
        (of("first/1").pop().flatten(), of("second/1")[0])
    };
    let (left, found) = thresholds(true);
    assert!(left.is_some() && found >= left, "{left:?} was left, {found:?} was found");
    assert_eq!(thresholds(false), (left, None));
}

#[test]
fn a_connection_is_sampled_from_when_its_sender_has_shaken_hands() {
    // The round trip takes 20 ms. For the client, the handshake is complete after one round trip; for the server, after
    // one and a half.
    let first_ms = |from_client: bool| {
        let [from, to] = if from_client { ["h1", "h2"] } else { ["h2", "h1"] };
        let kind = if from_client { "kind = 'tcp'" } else { "kind = 'web'\nbytes = '30kb'" };
        let traffic = format!("[[traffic]]\nname = 'data'\n{kind}\nfrom = '{from}'\nto = '{to}'\nstart = '1s'");
        let sink = run(&dumbbell("2s", "rate = '10mbit'", &traffic), 1).output;
        numbers_where(&sink, Table::Flows, "t_ns", ("flow", "data/1"))[0] / MS
    };
    // Beginnings are up to a millisecond late, and samples are taken every 10 ms.
    assert_eq!(first_ms(true), 1030);
    assert_eq!(first_ms(false), 1040);
}
