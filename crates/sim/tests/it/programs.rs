//! Programs that decide when to send, in the whole simulator: flows that begin one after another, files, applications,
//! pages with objects, and swarms.

use crate::common::{BULK, MS, SECOND, dumbbell, numbers, numbers_where, optional, run, words};
use bufferscope_records::{MemorySink, Table};

/// Payload and frame of a full segment: 1448 of 1500 + 14 bytes.
const PAYLOAD: u64 = 1448;
const FRAME: u64 = 1514;
const DEEP: &str = "rate = '10mbit'\nqueue = { qdisc = 'pfifo', limit = '200p' }";

/// The amount that a flow had delivered at a given time.
fn delivered(sink: &MemorySink, flow: &str, at_ns: u64) -> u64 {
    let times = numbers_where(sink, Table::Flows, "t_ns", ("flow", flow));
    let bytes = numbers_where(sink, Table::Flows, "delivered_bytes", ("flow", flow));
    times.into_iter().zip(bytes).take_while(|(t_ns, _)| *t_ns <= at_ns).last().map_or(0, |row| row.1)
}

#[test]
fn staggered_flows_begin_one_after_the_other() {
    let sink = run(&dumbbell("5s", DEEP, &format!("{BULK}flows = 4\nstagger = '1s'\nstart = '500ms'")), 1).output;
    for (flow, start_ns) in [("bulk/1", 500 * MS), ("bulk/2", 1500 * MS), ("bulk/3", 2500 * MS), ("bulk/4", 3500 * MS)]
    {
        let first = numbers_where(&sink, Table::Flows, "t_ns", ("flow", flow))[0];
        // They begin up to a millisecond late. Their first sample follows the handshake, which waits in the queue of
        // the others.
        assert!((start_ns + 20 * MS..=start_ns + 300 * MS).contains(&first), "{flow} at {first}");
    }
}

#[test]
fn a_flow_makes_its_transfers_one_after_the_other_over_new_connections() {
    let summary = run(&dumbbell("20s", DEEP, &format!("{BULK}flows = 2\nbytes = '500kb'\ntransfers = 3")), 1);
    let sink = &summary.output;
    assert_eq!(numbers(sink, Table::Transfers, "bytes"), [500 << 10; 6]);
    let mut flows = words(sink, Table::Transfers, "flow");
    flows.sort();
    assert_eq!(flows, (1..=6).map(|n| format!("bulk/{n}")).collect::<Vec<_>>());
    let (mut started, mut finished) =
        (numbers(sink, Table::Transfers, "started_ns"), numbers(sink, Table::Transfers, "finished_ns"));
    started.sort_unstable();
    finished.sort_unstable();
    assert!(started[1] < MS, "two at once: {started:?}");
    // The next begins when the sender learns that the receiver has closed too: half a round trip of 20 ms later, and
    // what is queued of the other's packets does not hold up an acknowledgement.
    for (next, end) in started[2..].iter().zip(&finished) {
        assert!((10 * MS..15 * MS).contains(&(next - end)), "{started:?} {finished:?}");
    }
    // 3 MB take 2.57 s on the wire. Two flows share it all the time, except at the end of the last one.
    assert!((2500 * MS..4000 * MS).contains(finished.last().unwrap()), "{finished:?}");
    assert_eq!(summary.flows.len(), 1, "transfers share an account: {:?}", summary.flows);
}

#[test]
fn no_transfer_begins_after_the_stop_and_the_one_under_way_goes_on() {
    let sink = run(&dumbbell("10s", DEEP, &format!("{BULK}bytes = '1mb'\ntransfers = 100\nstop = '1s'")), 1).output;
    let finished = optional(&sink, Table::Transfers, "finished_ns");
    let started = numbers(&sink, Table::Transfers, "started_ns");
    assert!(started.iter().all(|&at| at < SECOND), "{started:?}");
    assert!(finished.iter().all(Option::is_some) && finished.last().unwrap().unwrap() > SECOND, "{finished:?}");
}

#[test]
fn a_transfer_that_the_end_cuts_off_has_no_end() {
    let sink = run(&dumbbell("2s", DEEP, &format!("{BULK}bytes = '1mb'\ntransfers = 100")), 1).output;
    let finished = optional(&sink, Table::Transfers, "finished_ns");
    assert_eq!(finished.iter().filter(|end| end.is_none()).count(), 1, "{finished:?}");
    assert_eq!(finished.last(), Some(&None));
}

#[test]
fn an_application_with_a_rate_sends_that_much() {
    let sink = run(&dumbbell("10s", DEEP, &format!("{BULK}rate = '4mbit'")), 1).output;
    // From 1 s to 9 s, 4 MB; a beat of 5000 bytes more or less, as samples and beats don't coincide.
    let gained = delivered(&sink, "bulk/1", 9 * SECOND) - delivered(&sink, "bulk/1", SECOND);
    assert!(gained.abs_diff(4_000_000) <= 5000, "{gained} bytes");
    let queued = numbers_where(&sink, Table::Queues, "packets", ("port", "r1>h2"));
    assert!(queued[100..].iter().all(|&packets| packets <= 4), "a beat is 4 packets: {:?}", queued[100..].iter().max());
    let sent = numbers_where(&sink, Table::Queues, "sent_packets", ("port", "r1>h2"));
    assert!((396..=404).contains(&(sent[200] - sent[100])), "100 beats, the last packet of each not full");
    assert!(words(&sink, Table::Drops, "reason").is_empty());
}

#[test]
fn what_the_network_does_not_take_of_a_rate_waits_with_the_application() {
    // 20 Mbit/s for 1 s of every 4 are half of what the wire carries: each burst takes 2.1 s.
    let bursts = format!("{BULK}rate = '20mbit'\non = '1s'\noff = '3s'");
    let sink = run(&dumbbell("12s", DEEP, &bursts), 1).output;
    for (burst, end_s) in [(1, 4), (2, 8), (3, 12)] {
        assert_eq!(delivered(&sink, "bulk/1", end_s * SECOND - MS), burst * 2_500_000);
    }
}

#[test]
fn a_file_at_a_rate_arrives_when_it_is_written() {
    let sink =
        run(&dumbbell("10s", DEEP, &format!("{BULK}rate = '4mbit'\nbytes = '1000000b'\ntransfers = 2")), 1).output;
    let (started, finished) =
        (numbers(&sink, Table::Transfers, "started_ns"), numbers(&sink, Table::Transfers, "finished_ns"));
    assert_eq!(started.len(), 2);
    for (start, end) in started.iter().zip(finished) {
        // The last of 200 beats is written after 1.99 s; it needs 15 ms.
        assert!((1990 * MS..2020 * MS).contains(&(end - start)), "{} ns", end - start);
    }
}

#[test]
fn a_source_that_is_off_is_silent_and_starts_slowly_again() {
    let sink = run(&dumbbell("12s", DEEP, &format!("{BULK}on = '2s'\noff = '2s'")), 1).output;
    let sent = numbers_where(&sink, Table::Queues, "sent_bytes", ("port", "r1>h2"));
    let rate =
        |from_ms: usize, to_ms: usize| (sent[to_ms / 10] - sent[from_ms / 10]) * 8_000 / (to_ms - from_ms) as u64;
    for burst in [0, 4000, 8000] {
        assert!(
            rate(burst + 1000, burst + 2000) > 9_900_000,
            "full while it is on: {}",
            rate(burst + 1000, burst + 2000)
        );
        // The packets in the queue need up to 200 x 1.2 ms.
        assert_eq!(rate(burst + 2400, burst + 3900), 0);
    }
    // RFC 5681, section 4.1: after a silence longer than the retransmission timeout, the window begins again at its
    // initial size.
    let times = numbers_where(&sink, Table::Flows, "t_ns", ("flow", "bulk/1"));
    let windows = numbers_where(&sink, Table::Flows, "cwnd_bytes", ("flow", "bulk/1"));
    let window = |at_ns| windows[times.iter().position(|&t_ns| t_ns >= at_ns).unwrap()];
    assert!(window(3990 * MS) > 100 * PAYLOAD);
    assert!(window(4010 * MS) <= 10 * PAYLOAD, "{}", window(4010 * MS));
    assert_eq!(words(&sink, Table::Transfers, "flow").len(), 0);
}

#[test]
fn exponential_bursts_differ_by_flow_and_seed() {
    let bursts = format!("{BULK}flows = 2\non = '200ms'\noff = '200ms'\nperiods = 'exponential'");
    let at = |seed| {
        let sink = run(&dumbbell("10s", "rate = '50mbit'", &bursts), seed).output;
        ["bulk/1", "bulk/2"].map(|flow| delivered(&sink, flow, 10 * SECOND))
    };
    let (first, second) = (at(1), at(2));
    assert_ne!(first[0], first[1]);
    assert_ne!(first, second);
    assert_eq!(first, at(1));
}

const PAGES: &str = r#"
    [[traffic]]
    name = "web"
    kind = "web"
    from = "h1"
    to = "h2"
    interval = "2s"
    bytes = "20000b"
    objects = 12
    object_bytes = "10000b"
"#;

#[test]
fn a_page_with_objects_comes_over_six_connections_that_are_used_again() {
    let summary = run(&dumbbell("10s", "rate = '100mbit'", PAGES), 1);
    let sink = &summary.output;
    assert_eq!(numbers(sink, Table::Transfers, "bytes"), [140_000; 5]);
    assert_eq!(words(sink, Table::Transfers, "flow"), ["web/1", "web/7", "web/13", "web/19", "web/25"]);
    for (start, end) in
        numbers(sink, Table::Transfers, "started_ns").into_iter().zip(numbers(sink, Table::Transfers, "finished_ns"))
    {
        // Round trips of 20 ms: handshake, document (14 packets in two), then two or three objects in a row on each
        // connection; the new ones need a handshake first. That is five to seven, and 12 ms of wire.
        assert!((110 * MS..160 * MS).contains(&(end - start)), "{} ns", end - start);
    }
    let total: u64 = (1..=6).map(|n| delivered(sink, &format!("web/{n}"), 2 * SECOND)).sum();
    assert_eq!(total, 140_000, "all objects once");
    assert!(summary.flows.iter().all(|flow| flow.under_way == 0));
    let sampled_last = numbers_where(sink, Table::Flows, "t_ns", ("flow", "web/6")).into_iter().max();
    assert!(sampled_last < Some(SECOND), "connections are closed with their page: {sampled_last:?}");
}

#[test]
fn one_connection_for_all_objects_takes_a_round_trip_for_each() {
    let sink = run(&dumbbell("2s", "rate = '100mbit'", &format!("{PAGES}connections = 1")), 1).output;
    let took = numbers(&sink, Table::Transfers, "finished_ns")[0] - numbers(&sink, Table::Transfers, "started_ns")[0];
    // Handshake, two for the document, twelve for the objects (7 packets fit the window), 20 ms each; and 12 ms of
    // wire.
    assert!((300 * MS..330 * MS).contains(&took), "{took} ns");
    assert_eq!(words(&sink, Table::Flows, "flow").into_iter().collect::<std::collections::BTreeSet<_>>().len(), 1);
}

#[test]
fn a_page_that_does_not_arrive_is_unfinished() {
    let sink = run(&dumbbell("4s", "rate = '100kbit'", PAGES), 1).output;
    assert_eq!(optional(&sink, Table::Transfers, "finished_ns"), [None, None]);
}

const SWARM: &str = r#"
    [[traffic]]
    name = "swarm"
    kind = "bittorrent"
    from = "h1"
    to = "h2"
    congestion = "cubic"
"#;

/// A swarm's run. It is sampled rarely because such runs are long.
fn run_swarm(duration: &str, keys: &str) -> MemorySink {
    let scenario = dumbbell(duration, DEEP, &format!("{SWARM}{keys}"));
    run(&bufferscope_scenario::Scenario { sample_interval_ns: 200 * MS, ..scenario }, 1).output
}

/// How many of ten peers have received data between two times.
fn served(sink: &MemorySink, from_s: u64, to_s: u64) -> usize {
    let gained = |n| {
        delivered(sink, &format!("swarm/{n}"), to_s * SECOND) - delivered(sink, &format!("swarm/{n}"), from_s * SECOND)
    };
    (1..=10).filter(|&n| gained(n) > 20 * PAYLOAD).count()
}

#[test]
fn a_seed_serves_four_peers_at_a_time_and_the_others_in_turn() {
    let sink = run_swarm("150s", "");
    for round_s in (0..150).step_by(10) {
        // From two seconds on: what was unchoked before has emptied its queue by then.
        assert_eq!(served(&sink, round_s + 2, round_s + 10 - 1), 4, "from {round_s} s on");
    }
    // Four to begin with, and a new one every thirty seconds.
    assert!(served(&sink, 0, 150) >= 6, "{}", served(&sink, 0, 150));
    let total: u64 = (1..=10).map(|n| delivered(&sink, &format!("swarm/{n}"), 150 * SECOND)).sum();
    let most = 150 * 10_000_000 / 8 * PAYLOAD / FRAME;
    assert!((most * 95 / 100..=most).contains(&total), "{total} of {most} bytes");
}

#[test]
fn a_seed_that_stops_closes_all_connections() {
    let sink = run_swarm("20s", "peers = 6\nunchoked = 2\nstop = '12s'");
    let sampled_last = numbers(&sink, Table::Flows, "t_ns").into_iter().max().unwrap();
    assert!((12 * SECOND..14 * SECOND).contains(&sampled_last), "{sampled_last}");
}
