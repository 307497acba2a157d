//! Traffic over UDP: rates, queues and delays computed by hand, and how losses are recorded.

use crate::common::{MS, SECOND, dumbbell, numbers, numbers_where, optional, run, words};
use bufferscope_records::{MemorySink, Table};

/// A host notices a packet within 10 us, a sleeping sender wakes within 50 us.
const HOST_LATENCY: u64 = 10_000;
/// A payload of 1448 bytes, with IP, UDP and Ethernet headers.
const FRAME: u64 = 1490;

fn udp(keys: &str) -> String {
    format!("[[traffic]]\nname = 'udp'\nkind = 'udp'\nfrom = 'h1'\nto = 'h2'\n{keys}\n")
}

fn last(sink: &MemorySink, table: Table, column: &str) -> u64 {
    *numbers(sink, table, column).last().unwrap()
}

#[test]
fn a_constant_rate_arrives_as_it_was_sent() {
    // 5.792 Mbit/s are 500 datagrams of 1448 bytes a second: one every 2 ms, 5000 in 10 s.
    let summary = run(&dumbbell("10s", "rate = '10mbit'", &udp("rate = '5.792mbit'")), 1);
    let sink = &summary.output;
    assert_eq!(summary.flows[0].sent, 5000);
    assert_eq!(summary.flows[0].dropped, 0);
    let delivered = numbers(sink, Table::Flows, "delivered_bytes");
    let times = numbers(sink, Table::Flows, "t_ns");
    for (&t_ns, &bytes) in times.iter().zip(&delivered) {
        // 10 ms of propagation, 1.192 ms on the wire, up to 2 ms until the first is sent, and the slack of timer and
        // host.
        let (fewest, most) =
            (t_ns.saturating_sub(13_300_000) / (2 * MS), t_ns.saturating_sub(11_192_000) / (2 * MS) + 1);
        assert!((fewest..=most).contains(&(bytes / 1448)), "{bytes} bytes at {t_ns}");
    }
    assert_eq!(last(sink, Table::Flows, "lost"), 0);
    assert!(optional(sink, Table::Flows, "cwnd_bytes").iter().all(Option::is_none), "UDP has no window");
    assert!(optional(sink, Table::Flows, "retransmits").iter().all(Option::is_none));
    let queued = numbers_where(sink, Table::Queues, "packets", ("port", "r1>h2"));
    assert!(queued.iter().all(|&packets| packets == 0), "a rate below the wire's never queues");
}

#[test]
fn a_flood_fills_the_queue_and_loses_what_does_not_fit() {
    let text = "rate = '10mbit'\nqueue = { qdisc = 'pfifo', limit = '50p' }";
    let summary = run(&dumbbell("20s", text, &udp("rate = '20mbit'")), 1);
    let sink = &summary.output;
    let queued = numbers_where(sink, Table::Queues, "packets", ("port", "r1>h2"));
    assert!(queued.iter().skip(20).all(|&packets| (49..=50).contains(&packets)), "{queued:?}");
    let (times, delivered) = (numbers(sink, Table::Flows, "t_ns"), numbers(sink, Table::Flows, "delivered_bytes"));
    let from = times.iter().position(|&t_ns| t_ns >= SECOND).unwrap();
    let mbit =
        (delivered.last().unwrap() - delivered[from]) as f64 * 8e3 / (times.last().unwrap() - times[from]) as f64;
    let share = 10.0 * 1448.0 / FRAME as f64;
    assert!((mbit / share - 1.0).abs() < 1e-3, "{mbit} of {share} Mbit/s");
    // The receiver's account: every datagram sent has arrived, is missing, or was sent after the last one to arrive.
    let (received, lost) = (delivered.last().unwrap() / 1448, last(sink, Table::Flows, "lost"));
    let under_way = last(sink, Table::Flows, "inflight_bytes") / 1448;
    assert_eq!(received + lost + under_way, summary.flows[0].sent);
    // One every 579.2 us, the first within a millisecond.
    let most = (20 * SECOND).div_ceil(579_200);
    assert!((most - 2..=most).contains(&summary.flows[0].sent), "a sender that nothing slows down");
    let ratio = lost as f64 / (lost + received) as f64;
    assert!((ratio - (1.0 - share / 20.0)).abs() < 2e-3, "{ratio}");
}

/// Poisson arrivals at a wire that serves each packet in the same time S are an M/D/1 queue: the mean time of waiting
/// is rho S / (2 (1 - rho)) (Pollaczek and Khinchine).
#[test]
fn poisson_traffic_waits_as_long_as_queueing_theory_says() {
    let service_ms = FRAME as f64 * 8.0 / 10_000.0;
    for (load, tolerance) in [(0.5, 0.03), (0.8, 0.06)] {
        let rate_bit = (load * 10e6 * 1448.0 / FRAME as f64).round() as u64;
        let traffic = udp(&format!("rate = '{rate_bit}bit'\npattern = 'poisson'"));
        let summary =
            run(&dumbbell("400s", "rate = '10mbit'\nqueue = { qdisc = 'pfifo', limit = '100000p' }", &traffic), 1);
        let sink = &summary.output;
        let waits = numbers_where(sink, Table::Sojourns, "sojourn_ns", ("port", "r1>h2"));
        let packets = numbers_where(sink, Table::Sojourns, "packets", ("port", "r1>h2"));
        let total: u64 = packets.iter().sum();
        let mean_ms =
            waits.iter().zip(&packets).map(|(ns, n)| *ns as f64 * *n as f64).sum::<f64>() / total as f64 / 1e6;
        let expected_ms = load * service_ms / (2.0 * (1.0 - load));
        assert!((mean_ms / expected_ms - 1.0).abs() < tolerance, "load {load}: {mean_ms} instead of {expected_ms} ms");
    }
}

#[test]
fn a_flow_that_is_on_and_off_sends_only_while_it_is_on() {
    // 1000 datagrams a second for 200 ms of every second.
    let traffic = udp("rate = '8mbit'\nsize = 1000\non = '200ms'\noff = '800ms'\nflows = 2");
    let summary = run(&dumbbell("10s", "rate = '100mbit'", &traffic), 1);
    assert_eq!(summary.flows.iter().map(|flow| flow.sent).collect::<Vec<_>>(), [2000, 2000]);
    let times = numbers_where(&summary.output, Table::Flows, "t_ns", ("flow", "udp/2"));
    let delivered = numbers_where(&summary.output, Table::Flows, "delivered_bytes", ("flow", "udp/2"));
    for pair in times.iter().zip(&delivered).collect::<Vec<_>>().windows(2) {
        let [(before, had), (t_ns, has)] = pair else { panic!("two") };
        // 10 ms of propagation, up to 1 ms of jitter.
        let (since_on, grew) = (*before % SECOND, has > had);
        if (220 * MS..1000 * MS).contains(&since_on) {
            assert!(!grew, "something arrived between {before} and {t_ns}");
        } else if (20 * MS..190 * MS).contains(&since_on) {
            assert!(grew, "nothing arrived between {before} and {t_ns}");
        }
    }
}

#[test]
fn flows_of_one_rate_do_not_leave_together() {
    let traffic = udp("rate = '1mbit'\nflows = 20");
    let scenario = dumbbell("2s", "rate = '100mbit'\nqueue = { qdisc = 'pfifo', limit = '100p' }", &traffic);
    let sink = run(&scenario, 1).output;
    let firsts: std::collections::BTreeSet<String> = words(&sink, Table::Flows, "flow").into_iter().collect();
    assert_eq!(firsts.len(), 20);
    let most = numbers_where(&sink, Table::Sojourns, "sojourn_ns", ("port", "r1>h2")).into_iter().max().unwrap();
    // If all were sent at once, the last would wait for 19 frames, 2.26 ms.
    assert!(most < 2 * MS, "{most}");
    assert_ne!(
        run(&scenario, 2).output.batches(Table::Sojourns),
        sink.batches(Table::Sojourns),
        "another seed is another run"
    );
}

const CALL: &str = "[[traffic]]\nname = 'call'\nkind = 'voip'\nfrom = 'h1'\nto = 'h2'\n";

#[test]
fn a_call_takes_the_time_worked_out_by_hand_each_way() {
    let scenario = dumbbell("10s", "rate = '1mbit'\nreverse = { rate = '2mbit', delay = '30ms' }", CALL);
    let sink = run(&scenario, 1).output;
    // 200 bytes of IP packet and 14 of Ethernet: 1.712 ms at 1 Mbit/s, 0.856 ms at 2.
    for (stream, least_ns) in [("call/1", 10 * MS + 1_712_000), ("call/2", 35 * MS + 856_000)] {
        let owd = numbers_where(&sink, Table::Probes, "owd_up_ns", ("probe", stream));
        assert_eq!(owd.len(), 500, "50 packets a second");
        assert!(owd.iter().all(|owd| (least_ns..least_ns + HOST_LATENCY).contains(owd)), "{stream}: {owd:?}");
        assert_eq!(numbers_where(&sink, Table::Probes, "seq", ("probe", stream)), (0..500).collect::<Vec<_>>());
        let sent = numbers_where(&sink, Table::Probes, "sent_ns", ("probe", stream));
        let gaps = sent.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.into_iter().all(|gap| gap.abs_diff(20 * MS) < 50_000), "{stream}: every 20 ms");
    }
    assert!(optional(&sink, Table::Probes, "rtt_ns").iter().all(Option::is_none), "packets are not answered");
    assert_eq!(
        run(&dumbbell("10s", "rate = '1mbit'", &format!("{CALL}both_ways = false")), 1).output.rows(Table::Probes),
        500
    );
}

#[test]
fn a_game_sends_a_packet_each_way_at_each_tick() {
    let game = "[[traffic]]\nname = 'game'\nkind = 'game'\nfrom = 'h1'\nto = 'h2'\n";
    let sink = run(&dumbbell("10s", "rate = '1mbit'\nreverse = { rate = '2mbit', delay = '30ms' }", game), 1).output;
    // 40 bytes of payload and 42 of headers: 0.656 ms at 1 Mbit/s. 128 and 42: 0.68 ms at 2 Mbit/s.
    for (stream, least_ns) in [("game/1", 10 * MS + 656_000), ("game/2", 35 * MS + 680_000)] {
        let owd = numbers_where(&sink, Table::Probes, "owd_up_ns", ("probe", stream));
        assert_eq!(owd.len(), 640, "64 packets a second");
        assert!(owd.iter().all(|owd| (least_ns..least_ns + HOST_LATENCY).contains(owd)), "{stream}: {owd:?}");
        let sent = numbers_where(&sink, Table::Probes, "sent_ns", ("probe", stream));
        let gaps = sent.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(gaps.into_iter().all(|gap| gap.abs_diff(15_625_000) < 50_000), "{stream}: every 15.625 ms");
    }
}

#[test]
fn packets_of_a_call_that_are_dropped_have_rows_without_delay() {
    let text = "rate = '1mbit'\nqueue = { qdisc = 'pfifo', limit = '5p' }";
    let summary = run(&dumbbell("10s", text, &format!("{CALL}{}", udp("rate = '2mbit'"))), 1);
    let rows = words(&summary.output, Table::Probes, "probe").into_iter().zip(optional(
        &summary.output,
        Table::Probes,
        "owd_up_ns",
    ));
    let delays: Vec<Option<u64>> = rows.filter(|(probe, _)| probe == "call/1").map(|(_, owd)| owd).collect();
    let lost = delays.iter().filter(|owd| owd.is_none()).count();
    assert_eq!(delays.len(), 500);
    assert!((100..400).contains(&lost), "half of everything is dropped, but {lost} of 500 packets");
    assert!(summary.ended_ns < 11 * SECOND, "a drop is known at once");
}

#[test]
fn the_run_awaits_the_packets_of_a_call_but_not_for_ever() {
    // The queue holds 200 packets of 214 bytes and its wire sends one in 1.7 s: most are on their way for longer than
    // 60 s.
    let text = "rate = '1kbit'\nqueue = { qdisc = 'pfifo', limit = '200p' }";
    let summary = run(&dumbbell("4s", text, &format!("{CALL}both_ways = false")), 1);
    let delays = optional(&summary.output, Table::Probes, "owd_up_ns");
    assert_eq!(delays.len(), 200);
    assert!(delays.iter().flatten().all(|&owd| owd <= 60 * SECOND));
    assert!((20..60).contains(&delays.iter().flatten().count()), "a packet in 1.7 s");
    assert!((60 * SECOND..65 * SECOND).contains(&summary.ended_ns), "{}", summary.ended_ns);
}

fn dns(keys: &str) -> String {
    format!("[[traffic]]\nname = 'dns'\nkind = 'dns'\nfrom = 'h2'\nto = 'h1'\ninterval = '100ms'\n{keys}\n")
}

#[test]
fn a_look_up_takes_a_round_trip() {
    let summary = run(&dumbbell("10s", "rate = '1mbit'", &dns("")), 1);
    let sink = &summary.output;
    // 44 and 108 bytes of payload with 42 of headers: 0.688 and 1.2 ms on the wire, and 20 ms of propagation.
    let least = 20 * MS + 688_000 + 1_200_000;
    let times =
        numbers(sink, Table::Transfers, "started_ns").into_iter().zip(numbers(sink, Table::Transfers, "finished_ns"));
    for (n, (started, finished)) in (0..).zip(times) {
        assert!((n * 100 * MS..n * 100 * MS + MS).contains(&started), "{started}");
        assert!((least..least + 2 * HOST_LATENCY).contains(&(finished - started)), "{}", finished - started);
    }
    assert_eq!(words(sink, Table::Transfers, "flow"), vec!["dns/1"; 100]);
    assert_eq!(numbers(sink, Table::Transfers, "bytes"), vec![108; 100]);
    assert_eq!(summary.flows[0].sent, 200, "a question and an answer each");
}

#[test]
fn a_question_is_asked_again_and_the_first_answer_counts() {
    // The round trip takes 21.9 ms: the second question is on its way when the answer to the first comes.
    let summary = run(&dumbbell("10s", "rate = '1mbit'", &dns("timeout = '15ms'\nattempts = 2")), 1);
    assert_eq!(summary.flows[0].sent, 400);
    let finished = optional(&summary.output, Table::Transfers, "finished_ns");
    assert_eq!(finished.len(), 100);
    assert!(finished.iter().all(Option::is_some));
}

#[test]
fn a_look_up_without_an_answer_in_time_has_failed() {
    let summary = run(&dumbbell("10s", "rate = '1mbit'", &dns("timeout = '10ms'\nattempts = 2")), 1);
    assert_eq!(summary.flows[0].sent, 400, "the server answers in any case");
    assert_eq!(optional(&summary.output, Table::Transfers, "finished_ns"), vec![None; 100]);
}

/// glibc asks a server a second time after five seconds, and gives up after ten (resolv.conf(5)).
#[test]
fn a_lost_question_costs_five_seconds() {
    // A flood from 0 to 2 s keeps a queue of one packet full. The questions go through the same queue.
    let flood = udp("rate = '10mbit'\nstop = '2s'");
    let dns = dns("").replace("from = 'h2'\nto = 'h1'", "from = 'h2'\nto = 'h1'\nstop = '3s'");
    let text = "rate = '1mbit'\nqueue = { qdisc = 'pfifo', limit = '1p' }";
    let summary = run(&dumbbell("20s", text, &format!("{flood}{dns}")), 1);
    let started = numbers(&summary.output, Table::Transfers, "started_ns");
    let finished = numbers(&summary.output, Table::Transfers, "finished_ns");
    let (mut at_once, mut second) = (0, 0);
    for (started, finished) in started.into_iter().zip(finished) {
        match finished - started {
            took if took < 100 * MS => at_once += 1,
            took => {
                assert!((5 * SECOND..5 * SECOND + 100 * MS).contains(&took), "{took}");
                assert!(started < 2 * SECOND + 15 * MS, "only while the flood is in the way");
                second += 1;
            }
        }
    }
    assert_eq!(at_once + second, 30);
    assert!(second >= 10, "{second} of the 20 questions during the flood were lost");
}
