//! Probes: their times, computed by hand, and how lost probes are recorded.

use crate::common::{BULK, MS, PING, SECOND, dumbbell, numbers, optional, run, scenario};
use bufferscope_records::Table;

/// A host notices a packet within 10 us, and a ping passes two hosts.
const HOST_LATENCY: u64 = 10_000;

#[test]
fn a_single_packet_takes_the_time_worked_out_by_hand() {
    // 56 bytes of payload are an IP packet of 84 and a frame of 98 bytes, 784 bits.
    // h1>r1: 784 bits at 10 Mbit/s 78,400 ns, then 3 ms. r1>h2: at 1 Mbit/s 784,000 ns, then 7 ms.
    // Back, h2>r1 at 2 Mbit/s 392,000 ns and 7 ms, r1>h1 at 10 Mbit/s 78,400 ns and 3 ms.
    let scenario = scenario(
        r#"
        title = "Two links"
        duration = "10s"
        [[link]]
        name = "first"
        ends = ["h1", "r1"]
        rate = "10mbit"
        delay = "3ms"
        [[link]]
        name = "second"
        ends = ["r1", "h2"]
        rate = "1mbit"
        delay = "7ms"
        reverse = { rate = "2mbit" }
        [[traffic]]
        name = "ping"
        kind = "ping"
        from = "h1"
        to = "h2"
        interval = "1s"
        "#,
    );
    let sink = run(&scenario, 1).output;
    let up = 78_400 + 3 * MS + 784_000 + 7 * MS;
    let down = 392_000 + 7 * MS + 78_400 + 3 * MS;
    let rtts = numbers(&sink, Table::Probes, "rtt_ns");
    assert_eq!(rtts.len(), 10);
    for owd in numbers(&sink, Table::Probes, "owd_up_ns") {
        assert!((up..up + HOST_LATENCY).contains(&owd), "{owd} ns up");
    }
    for owd in numbers(&sink, Table::Probes, "owd_down_ns") {
        assert!((down..down + HOST_LATENCY).contains(&owd), "{owd} ns down");
    }
    for (rtt, owd) in rtts.iter().zip(numbers(&sink, Table::Probes, "owd_up_ns")) {
        assert!((up + down..up + down + 2 * HOST_LATENCY).contains(rtt), "{rtt} ns");
        assert!(owd < *rtt);
    }
}

#[test]
fn probes_are_sent_at_their_interval_within_the_timer_slack() {
    let scenario = dumbbell("5s", "rate = '10mbit'", PING);
    let sink = run(&scenario, 1).output;
    let sent = numbers(&sink, Table::Probes, "sent_ns");
    assert_eq!(sent.len(), 50);
    assert!((0..).step_by(100).zip(&sent).all(|(ms, &sent)| (ms * MS..ms * MS + 50_000).contains(&sent)), "{sent:?}");
    assert_eq!(numbers(&sink, Table::Probes, "seq"), (0..50).collect::<Vec<_>>());
}

#[test]
fn a_ping_of_iputils_loses_what_its_waits_are_late() {
    let probes = |delay: &str| {
        let link = format!("[[link]]\nname = 'line'\nends = ['h1', 'h2']\nrate = '10mbit'\ndelay = '{delay}'");
        let text = format!("title = 'A line'\nduration = '60s'\n{link}\n{PING}timing = 'iputils'\n");
        numbers(&run(&scenario(&text), 1).output, Table::Probes, "sent_ns")
    };
    // Each answer comes within a millisecond, so that the whole interval is waited for in ticks: 26 of 4 ms.
    let prompt = probes("0s");
    assert_eq!(prompt.len(), 577);
    assert!(prompt.windows(2).skip(1).all(|pair| pair[1] - pair[0] == 104 * MS), "{prompt:?}");
    // Each answer comes after 20 ms and some us, of which the program counts 20: it waits for 80 ms more, and at most
    // 80 us.
    let later = probes("10ms");
    let gaps: Vec<u64> = later.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| (100 * MS..100 * MS + 400_000).contains(gap)), "{gaps:?}");
    assert!((597..=599).contains(&later.len()), "{}", later.len());
}

#[test]
fn a_dropped_probe_has_a_row_without_rtt_and_does_not_hold_up_the_end() {
    // A queue of one packet, filled by a bulk flow: many probes find it full.
    let scenario =
        dumbbell("20s", "rate = '1mbit'\nqueue = { qdisc = 'pfifo', limit = '1p' }", &format!("{BULK}{PING}"));
    let summary = run(&scenario, 1);
    let rtts = optional(&summary.output, Table::Probes, "rtt_ns");
    assert_eq!(rtts.len(), 200, "every probe has a row");
    let lost = rtts.iter().filter(|rtt| rtt.is_none()).count();
    assert!(lost > 10, "{lost} lost");
    assert_eq!(numbers(&summary.output, Table::Probes, "seq"), (0..200).collect::<Vec<_>>(), "in order of sending");
    assert!(summary.ended_ns < 21 * SECOND, "a drop is known at once: no timeout of 60 s is waited for");
}

#[test]
fn a_late_answer_is_no_answer() {
    // Base RTT is 20 ms; the timeout 15 ms.
    let ping = format!("{PING}timeout = '15ms'");
    let summary = run(&dumbbell("1s", "rate = '10mbit'", &ping), 1);
    let rtts = optional(&summary.output, Table::Probes, "rtt_ns");
    assert_eq!(rtts, vec![None; 10]);
    assert!(optional(&summary.output, Table::Probes, "owd_up_ns").iter().all(Option::is_some), "requests did arrive");
}

#[test]
fn nothing_begins_while_the_run_lingers() {
    // The answers take 610 ms, during which six more requests would be due.
    let text = "rate = '10mbit'\nforward = { delay = '300ms' }\nreverse = { delay = '300ms' }";
    let mut scenario = dumbbell("1s", text, PING);
    scenario.traffic[0].stop_ns = 2 * SECOND;
    assert_eq!(run(&scenario, 1).output.rows(Table::Probes), 10);
}

#[test]
fn the_run_lingers_until_the_last_probe_is_answered() {
    // The last probe leaves at 900 ms and needs 2 * (300 + 5) ms.
    let text = "rate = '10mbit'\nforward = { delay = '300ms' }\nreverse = { delay = '300ms' }";
    let summary = run(&dumbbell("1s", text, PING), 1);
    assert!(optional(&summary.output, Table::Probes, "rtt_ns").iter().all(Option::is_some));
    assert!((1510 * MS..1512 * MS).contains(&summary.ended_ns), "ended at {}", summary.ended_ns);
    let last_sample = numbers(&summary.output, Table::Queues, "t_ns").into_iter().max();
    assert_eq!(last_sample, Some(SECOND), "sampling has stopped");
}
