//! Real runs on this machine's kernel. A test that needs something that the kernel lacks says so and passes.

mod common;

use bufferscope_records::Table;
use bufferscope_records::frame::PROTOCOL;
use common::{Report, capabilities, dumbbell, has_shaper, judge, run, scenario, skip, start};
use serde_json::json;

const PING: &str = r#"{ name = "ping", kind = "ping", from = "h1", to = "h2", interval = "50ms", timeout = "2s" }"#;
const BULK: &str = r#"{ name = "bulk", kind = "tcp", from = "h1", to = "h2", congestion = "reno" }"#;

/// Share of payload in the bytes that a port counts: 1448 of 1514.
const PAYLOAD_SHARE: f64 = 1448.0 / 1514.0;

/// 10 Mbit/s and 20 ms, 50 packets of queue.
fn with_traffic(traffic: &[&str]) -> String {
    dumbbell("6s", 50, &traffic.join(", "))
}

fn rtts_ms(report: &Report) -> Vec<f64> {
    let mut rtts: Vec<f64> =
        report.integers(Table::Probes, "rtt_ns").into_iter().flatten().map(|ns| ns as f64 / 1e6).collect();
    rtts.sort_by(f64::total_cmp);
    rtts
}

/// A run that only has to succeed: nothing is judged that requires a machine with time to spare.
fn succeeded(toml: &str) -> Report {
    let report = run(&scenario(toml), json!({}));
    report.summary();
    report
}

#[test]
fn an_idle_path_has_its_propagation_delay() {
    if !has_shaper() {
        return;
    }
    judge(&scenario(&with_traffic(&[PING])), |report, doubts| {
        let rtts = rtts_ms(report);
        assert_eq!(rtts.len(), 6 * 20, "every probe has a row and an answer");
        // 4 x 5 ms of propagation, 0.08 ms of transmission; a millisecond is allowed for the machine.
        let median = rtts[rtts.len() / 2];
        assert!(rtts[0] >= 20.0, "fastest: {} ms", rtts[0]);
        doubts.unless(median < 21.0, format!("median: {median} ms"));
    });
}

#[test]
fn each_way_is_timed_on_its_own() {
    if !has_shaper() {
        return;
    }
    let toml = with_traffic(&[PING]).replacen(r#"delay = "5ms""#, r#"forward = { delay = "25ms" }"#, 1);
    judge(&scenario(&toml), |report, doubts| {
        for (column, propagation_ms) in [("owd_up_ns", 30.0), ("owd_down_ns", 5.0)] {
            let fastest_ns = report.integers(Table::Probes, column).into_iter().flatten().min().unwrap();
            let fastest_ms = fastest_ns as f64 / 1e6;
            assert!(fastest_ms >= propagation_ms, "{column}: {fastest_ms} ms");
            doubts.unless(fastest_ms < propagation_ms + 1.0, format!("{column}: {fastest_ms} ms"));
        }
    });
}

/// Each ping passes two links there and back, and is seen at both ends of each.
#[test]
fn a_capture_has_what_leaves_and_what_arrives_in_order() {
    if !has_shaper() {
        return;
    }
    let report = run(&scenario(&with_traffic(&[PING])), json!({ "capture": true }));
    let summary = report.summary();
    assert!(report.packets.is_sorted_by_key(|(t_ns, ..)| t_ns));
    assert_eq!(summary["capture"], json!({ "packets": report.packets.len(), "missed": 0, "snap_bytes": 96 }));
    for interface in 0..8 {
        // At the very end, another ping may be sent.
        let during = report.packets.iter().filter(|(t_ns, ..)| *t_ns < 6_000_000_000);
        let there: Vec<_> = during.filter(|(_, at, ..)| *at == interface).collect();
        assert_eq!(there.len(), 6 * 20, "interface {interface}");
        // A ping of 64 bytes, behind 14 of Ethernet and 20 of IPv4.
        assert!(there.iter().all(|(_, _, length, stored)| (*length, *stored) == (98, 96)), "{:?}", there[0]);
    }
    let first = |interface: u32| report.packets.iter().find(|(_, at, ..)| *at == interface).unwrap().0;
    for port in 0..4 {
        assert!(first(2 * port + 1) >= first(2 * port) + 5_000_000, "port {port}: arrives before it has propagated");
    }
    assert!(succeeded(&with_traffic(&[PING])).packets.is_empty(), "none were requested");
}

#[test]
fn a_bulk_flow_fills_its_bottleneck_and_its_queue() {
    if !has_shaper() {
        return;
    }
    judge(&scenario(&with_traffic(&[PING, BULK])), |report, doubts| {
        let times = report.of(Table::Flows, "flow", "bulk/1", "t_ns");
        let delivered = report.of(Table::Flows, "flow", "bulk/1", "delivered_bytes");
        let from = times.iter().position(|&t| t > 2_000_000_000).unwrap();
        let last = times.len() - 1;
        let mbit = (delivered[last] - delivered[from]) as f64 * 8e3 / (times[last] - times[from]) as f64;
        let capacity = 10.0 * PAYLOAD_SHARE;
        // If the program is held up between reading the clock and reading the socket, it counts more data than had
        // arrived at that time.
        doubts.unless(mbit < capacity * 1.01, format!("{mbit} Mbit/s is more than the wire carries"));
        doubts.unless(mbit > capacity * 0.95, format!("{mbit} of {capacity} Mbit/s"));

        let queued = report.of(Table::Queues, "port", "r1>h2", "packets");
        let fullest = *queued.iter().max().unwrap();
        assert!(fullest <= 50, "{fullest} packets in a queue of 50");
        // There need not be a sample at the moment when the queue is full.
        doubts.unless(fullest >= 45, format!("found {fullest} at most"));
        let bytes = report.of(Table::Queues, "port", "r1>h2", "bytes");
        // The kernel reads the two counters one after the other, without the queue's lock, so a packet may arrive in
        // between. Packets of several segments would show in nearly every sample.
        let fuller = queued.iter().zip(bytes).filter(|(packets, bytes)| *bytes > *packets * 1514).count();
        assert!(
            fuller * 50 <= queued.len(),
            "{fuller} of {} samples have packets that are several in one",
            queued.len()
        );
        let dropped = *report.of(Table::Queues, "port", "r1>h2", "dropped").last().unwrap();
        assert!(dropped > 0, "Reno finds the limit by overrunning it");
        let reasons = report.texts(Table::Drops, "reason");
        assert_eq!(reasons.len() as i64, dropped, "each counted drop has its row");
        assert!(reasons.iter().all(|reason| reason == "overlimit"), "a fifo has no other: {reasons:?}");
        assert!(report.texts(Table::Drops, "observed").iter().all(|observed| observed == "counter"));
        assert!(report.integers(Table::Drops, "bytes").iter().all(Option::is_none), "a counter knows no size");
        // A full queue adds 50 x 1514 x 8 / 10 Mbit/s = 60.6 ms to the 20 ms.
        let longest = *rtts_ms(report).last().unwrap();
        doubts.unless((60.0..90.0).contains(&longest), format!("{longest} ms"));
    });
}

/// Whatever the machine does: samples may be late, but never more than requested.
#[test]
fn a_table_is_sampled_at_its_own_interval_if_it_is_recorded() {
    if !has_shaper() {
        return;
    }
    let toml = with_traffic(&[BULK]).replace("6s", "3s");
    let rows = |keys: &str| {
        let report = succeeded(&format!("{keys}\n{toml}"));
        [Table::Flows, Table::Queues, Table::Drops].map(|table| report.integers(table, "t_ns").len())
    };
    let [flows, queues, drops] = rows("sample = { flows = \"500ms\" }");
    // At 0.5, 1, ... 3 s, and when the connection closes; at 0 it is not established.
    assert!((1..=7).contains(&flows), "{flows} samples of flows");
    assert!(queues > 2 * 7 && drops > 0, "{queues} samples of two ports, {drops} drops");
    let [flows, queues, drops] = rows("record = [\"flows\", \"drops\"]");
    assert!(flows > 7 && queues == 0 && drops > 0, "{flows}, {queues}, {drops}");
    let [flows, queues, drops] = rows("record = [\"queues\"]");
    assert!(flows == 0 && queues > 2 * 7 && drops == 0, "{flows}, {queues}, {drops}");
}

#[test]
fn a_bounded_flow_and_pages_are_transferred_whole() {
    if !has_shaper() {
        return;
    }
    let bounded = r#"{ name = "file", kind = "tcp", from = "h1", to = "h2", flows = 2, bytes = "200kb" }"#;
    let web = r#"{ name = "web", kind = "web", from = "h1", to = "h2", interval = "1s", bytes = "50kb", start = "500ms", ecn = true }"#;
    judge(&scenario(&with_traffic(&[bounded, web])), |report, doubts| {
        let flows = report.texts(Table::Transfers, "flow");
        assert_eq!(flows.len(), 2 + 6, "{flows:?}");
        let started = report.integers(Table::Transfers, "started_ns");
        let finished = report.integers(Table::Transfers, "finished_ns");
        for (flow, (started, finished)) in flows.iter().zip(started.iter().zip(&finished)) {
            // At least three round trips: the handshake, and two for 50 kB with an initial window of 10.
            let took_ms = (finished.unwrap() - started.unwrap()) as f64 / 1e6;
            assert!(took_ms >= 60.0, "{flow} took {took_ms} ms");
            doubts.unless(took_ms < 2000.0, format!("{flow} took {took_ms} ms"));
        }
        let warnings = report.summary()["warnings"].to_string();
        assert!(!warnings.contains("negotiated"), "ECN for those that ask for it, and for no others: {warnings}");
        for flow in ["file/1", "file/2", "web/1"] {
            let delivered = *report.of(Table::Flows, "flow", flow, "delivered_bytes").iter().max().unwrap();
            let whole = if flow == "web/1" { 50 * 1024 } else { 200 * 1024 };
            assert!(delivered <= whole, "{flow}: {delivered} of {whole}: neither SYN nor FIN is payload");
            assert!(delivered > 0);
        }
    });
}

#[test]
fn traffic_without_flows_is_left_out() {
    if !has_shaper() {
        return;
    }
    let rival = BULK.replace("\"bulk\"", "\"rival\"").replace("congestion", r#"flows = 0, stop = "1s", congestion"#);
    let toml = with_traffic(&[BULK, &rival]).replace(r#"duration = "6s""#, r#"duration = "2s""#);
    let flows = succeeded(&toml).texts(Table::Flows, "flow");
    assert!(!flows.is_empty() && flows.iter().all(|flow| flow == "bulk/1"), "{flows:?}");
}

#[test]
fn a_rate_changes_when_the_scenario_says() {
    if !has_shaper() {
        return;
    }
    let toml = with_traffic(&[BULK]).replace(r#"rate = "10mbit""#, r#"rate = [["0s", "10mbit"], ["3s", "2mbit"]]"#);
    judge(&scenario(&toml), |report, doubts| {
        let times = report.of(Table::Queues, "port", "r1>h2", "t_ns");
        let sent = report.of(Table::Queues, "port", "r1>h2", "sent_bytes");
        let [from, rates] = ["t_ns", "rate_bps"].map(|column| report.of(Table::Capacity, "port", "r1>h2", column));
        assert_eq!((from[0], &rates[..]), (0, &[10_000_000, 2_000_000][..]));
        assert!(from[1] >= 3_000_000_000, "changed at {} ns", from[1]);
        doubts.unless(from[1] < 3_050_000_000, format!("changed at {} ns", from[1]));
        let at = |t_ns: i64| sent[times.iter().position(|&t| t >= t_ns).unwrap()];
        let mbit = |from_s: i64, to_s: i64| {
            (at(to_s * 1_000_000_000) - at(from_s * 1_000_000_000)) as f64 * 8e-6 / (to_s - from_s) as f64
        };
        let (before, after) = (mbit(1, 3), mbit(4, 5));
        doubts.unless((9.0..10.2).contains(&before), format!("{before} Mbit/s"));
        doubts.unless((1.9..2.1).contains(&after), format!("{after} Mbit/s"));
    });
}

/// At 1 kbit/s a ping takes 0.8 s. With a hundred pings per second, a queue of one packet has no room for a SYN, unless
/// the machine holds up the pings.
#[test]
fn a_connection_that_is_never_answered_causes_a_warning() {
    if !has_shaper() {
        return;
    }
    let flood = PING.replace("50ms", "10ms");
    let toml = with_traffic(&[&flood, &BULK.replace("congestion", r#"start = "500ms", congestion"#)]);
    judge(&scenario(&toml.replace("10mbit", "1kbit").replace("50p", "1p")), |report, doubts| {
        let warnings = report.summary()["warnings"].as_array().unwrap();
        let is_named = warnings.contains(&json!("a connection of `bulk` was never answered"));
        doubts.unless(is_named, format!("{warnings:?}"));
        let lost = report.integers(Table::Probes, "rtt_ns").into_iter().filter(Option::is_none).count();
        assert!(lost > 500, "{lost} of 600 probes lost: each has its row");
    });
}

#[test]
fn a_discipline_that_the_kernel_lacks_is_named() {
    let Some(found) = capabilities() else { return };
    if found["qdiscs"]["codel"] == true {
        return;
    }
    let toml = with_traffic(&[PING]).replace(r#"qdisc = "pfifo", limit = "50p""#, r#"qdisc = "codel""#);
    let error = run(&scenario(&toml), json!({})).end.unwrap_err();
    assert_eq!(error["kind"], "lacking");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("has no sch_codel; use --engine guest"), "{message}");
}

#[test]
fn scenarios_are_checked_without_being_run() {
    use std::io::Write;
    use std::process::{Output, Stdio};
    let ask = |question: String| -> Output {
        let mut child = common::program().arg("--check").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(question.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    if !has_shaper() {
        return;
    }
    let bulk = with_traffic(&[BULK]);
    let broken = bulk.replace(r#"qdisc = "pfifo", limit = "50p""#, r#"qdisc = "bfifo", limit = "5gb""#);
    let answer = ask(json!([scenario(&bulk), scenario(&broken)]).to_string());
    let refusals: Vec<Option<String>> = serde_json::from_slice(&answer.stdout).unwrap();
    assert_eq!(refusals[0], None);
    assert!(refusals[1].as_ref().unwrap().contains("more than Linux' sch_fifo can hold"), "{refusals:?}");
    assert!(!ask("nonsense".to_owned()).status.success());
}

#[test]
fn what_is_no_request_is_refused() {
    use std::io::{Read, Write};
    let no_scenario = json!({ "protocol": PROTOCOL, "scenario": {}, "seed": 1 }).to_string();
    for nonsense in ["", "{", "null", &no_scenario] {
        let mut child =
            common::program().stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(nonsense.as_bytes()).unwrap();
        let mut answer = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut answer).unwrap();
        assert!(!child.wait().unwrap().success());
        let message = common::read(&answer).end.unwrap_err()["message"].to_string();
        assert!(message.contains("not a request"), "{nonsense:?}: {message}");
    }
}

mod killed {
    use std::fs;
    use std::io::Read;
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use super::*;

    /// Every network namespace that a process is in or holds open.
    fn namespaces_of(process: &str) -> Vec<String> {
        let mut links: Vec<_> = vec![format!("/proc/{process}/ns/net").into()];
        let descriptors = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten();
        links.extend(descriptors.flatten().map(|entry| entry.path()));
        let targets = links.into_iter().filter_map(|link| fs::read_link(link).ok());
        targets.map(|target| target.display().to_string()).filter(|target| target.starts_with("net:[")).collect()
    }

    fn processes() -> Vec<String> {
        let names = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).collect()
    }

    fn devices() -> String {
        fs::read_to_string("/proc/net/dev").unwrap().lines().filter_map(|line| line.split(':').next()).collect()
    }

    #[test]
    fn leaves_nothing_behind() {
        if !has_shaper() {
            return;
        }
        let before = devices();
        let toml =
            with_traffic(&[PING, BULK]).replace(r#"rate = "10mbit""#, r#"rate = [["0s", "10mbit"], ["5s", "1mbit"]]"#);
        let mut child = start(&scenario(&toml), json!({}));
        // After the hello, which has 9 bytes, and the first progress frame, the network is up and traffic flows.
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 9 + 5]).unwrap();
        let own = namespaces_of("self");
        let held: Vec<String> =
            namespaces_of(&child.id().to_string()).into_iter().filter(|namespace| !own.contains(namespace)).collect();
        assert!(held.len() >= 5, "three nodes and two delays: {held:?}");

        child.kill().unwrap();
        child.wait().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let left: Vec<String> = processes()
                .into_iter()
                .filter(|process| namespaces_of(process).iter().any(|namespace| held.contains(namespace)))
                .collect();
            if left.is_empty() {
                break;
            }
            assert!(Instant::now() < deadline, "processes {left:?} still hold the network");
            sleep(Duration::from_millis(20));
        }
        assert_eq!(devices(), before);
    }
}

mod ordinary_user {
    use std::fs::Permissions;
    use std::io::{Read, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    /// The number of the user and group `nobody`.
    const NOBODY: u32 = 65_534;

    #[test]
    fn runs_in_a_user_namespace() {
        let Some(found) = capabilities().filter(|found| found["privilege"] == "root") else { return };
        if found["qdiscs"]["htb"] != true {
            return;
        }
        // Another user may not have access to the directory in which the test was built.
        let directory = tempfile::tempdir().unwrap();
        let copy = directory.path().join("agent");
        common::copy_agent(&copy);
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let mut child = Command::new(&copy)
            .uid(NOBODY)
            .gid(NOBODY)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let toml = with_traffic(&[PING, BULK]).replace(r#"duration = "6s""#, r#"duration = "1s""#);
        let request = json!({ "protocol": PROTOCOL, "scenario": scenario(&toml), "seed": 1 });
        child.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
        let mut bytes = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut bytes).unwrap();
        child.wait().unwrap();
        match common::read(&bytes).end {
            Ok(summary) => assert_eq!(summary["privilege"], "user-namespace"),
            Err(error) if error["kind"] == "privilege" => skip(error),
            Err(error) => panic!("{error}"),
        }
    }
}
