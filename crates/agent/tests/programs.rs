//! Programs that decide themselves what to send and when, on this machine's kernel. A test that needs something that
//! the kernel lacks says so and passes.

mod common;

use std::collections::BTreeSet;

use bufferscope_records::Table;
use common::{Doubts, Report, dumbbell, has_shaper, judge, scenario};

/// Runs one entry of traffic beside a queue of 100 packets and checks the result, unless this kernel has no shaper.
fn judged(duration: &str, traffic: &str, judgement: impl Fn(&Report, &mut Doubts)) {
    if has_shaper() {
        let entry = format!("{{ from = \"h1\", to = \"h2\", {traffic} }}");
        judge(&scenario(&dumbbell(duration, 100, &entry)), judgement);
    }
}

fn flows(report: &Report) -> BTreeSet<String> {
    report.texts(Table::Flows, "flow").into_iter().collect()
}

/// Bytes that a flow had delivered by a given time.
fn delivered(report: &Report, flow: &str, at_ns: i64) -> i64 {
    let times = report.of(Table::Flows, "flow", flow, "t_ns");
    let bytes = report.of(Table::Flows, "flow", flow, "delivered_bytes");
    times.into_iter().zip(bytes).take_while(|(t_ns, _)| *t_ns <= at_ns).last().map_or(0, |row| row.1)
}

const MS: i64 = 1_000_000;

#[test]
fn staggered_flows_begin_one_after_the_other() {
    // The flows are short, so that no full queue drops a SYN.
    let traffic = r#"name = "bulk", kind = "tcp", flows = 3, stagger = "800ms", start = "200ms", bytes = "50kb""#;
    judged("3s", traffic, |report, doubts| {
        for (flow, start_ms) in [("bulk/1", 200), ("bulk/2", 1000), ("bulk/3", 1800)] {
            let first = report.of(Table::Flows, "flow", flow, "t_ns")[0];
            // The handshake takes 20 ms, and the next sample comes within 10 ms. The rest is allowed for a busy
            // machine.
            assert!(first >= start_ms * MS, "{flow} at {first}");
            doubts.unless(first < (start_ms + 400) * MS, format!("{flow} at {first}"));
        }
    });
}

#[test]
fn transfers_follow_one_another_over_new_connections() {
    let traffic = r#"name = "file", kind = "tcp", flows = 2, bytes = "100kb", transfers = 3"#;
    judged("5s", traffic, |report, _| {
        let names = report.texts(Table::Transfers, "flow").into_iter().collect::<BTreeSet<_>>();
        assert_eq!(names, (1..=6).map(|n| format!("file/{n}")).collect());
        let mut started: Vec<i64> = report.integers(Table::Transfers, "started_ns").into_iter().flatten().collect();
        let mut finished: Vec<i64> = report.integers(Table::Transfers, "finished_ns").into_iter().flatten().collect();
        started.sort_unstable();
        finished.sort_unstable();
        assert_eq!(finished.len(), 6, "all came to their end");
        for (next, end) in started[2..].iter().zip(&finished) {
            assert!(next > end, "{started:?} {finished:?}");
        }
        for n in 1..=6 {
            assert_eq!(delivered(report, &format!("file/{n}"), i64::MAX), 100 << 10, "file/{n}, in its last sample");
        }
    });
}

#[test]
fn an_application_writes_at_its_rate() {
    judged("4s", r#"name = "live", kind = "tcp", rate = "2mbit""#, |report, doubts| {
        // In two seconds there are 500,000 bytes. A beat has 2500, and the machine may be late by a few beats.
        let gained = delivered(report, "live/1", 3500 * MS) - delivered(report, "live/1", 1500 * MS);
        doubts.unless((gained - 500_000).abs() <= 10_000, format!("{gained} bytes"));
        let warnings = report.summary()["warnings"].to_string();
        assert!(!warnings.contains("for more data"), "who writes little is not short of data: {warnings}");
    });
}

#[test]
fn a_source_that_is_off_is_silent() {
    judged("4s", r#"name = "bursts", kind = "tcp", on = "500ms", off = "1500ms""#, |report, doubts| {
        let at = |ms| delivered(report, "bursts/1", ms * MS);
        // Half a second at 10 Mbit/s gives 598 kB of payload. Slow start makes it less, and the contents of the queue
        // and the socket make it more.
        doubts.unless((300_000..800_000).contains(&at(1900)), format!("{} in half a second", at(1900)));
        doubts.unless(at(1900) == at(1000), "not silent");
        doubts.unless(at(3000) > at(1900) + 300_000, format!("on again: {} after {}", at(3000), at(1900)));
        assert_eq!(flows(report).len(), 1, "over the same connection");
    });
}

#[test]
fn a_page_with_objects_comes_over_several_connections() {
    let traffic = r#"name = "web", kind = "web", interval = "2s", bytes = "10kb", objects = 8, object_bytes = "5kb", connections = 3"#;
    judged("4s", traffic, |report, doubts| {
        assert_eq!(report.texts(Table::Transfers, "flow"), ["web/1", "web/4"]);
        assert_eq!(report.integers(Table::Transfers, "bytes"), [Some(50 << 10); 2]);
        let finished = report.integers(Table::Transfers, "finished_ns");
        for (start, end) in report.integers(Table::Transfers, "started_ns").into_iter().zip(finished) {
            // Round trips of 20 ms: the handshake, the document, and three objects in a row or two after a handshake.
            // Transmission takes 45 ms.
            let took_ms = (end.unwrap() - start.unwrap()) / MS;
            assert!(took_ms >= 100, "{took_ms} ms");
            doubts.unless(took_ms < 400, format!("{took_ms} ms"));
        }
        let total: i64 = (1..=3).map(|n| delivered(report, &format!("web/{n}"), 1999 * MS)).sum();
        assert_eq!(total, 50 << 10, "every object once, to the last byte");
    });
}

#[test]
fn a_video_comes_in_segments_over_one_connection_until_its_buffer_is_full() {
    let traffic = r#"name = "film", kind = "video", segment = "500ms", rates = ["400kbit", "800kbit", "4mbit"], startup = "500ms", resume = "1s", buffer = "1500ms", stop = "4s""#;
    judged("5s", traffic, |report, doubts| {
        assert_eq!(flows(report).into_iter().collect::<Vec<_>>(), ["film/1"]);
        let (started, finished) =
            (report.integers(Table::Transfers, "started_ns"), report.integers(Table::Transfers, "finished_ns"));
        let segments: Vec<(i64, i64)> = started.into_iter().flatten().zip(finished.into_iter().flatten()).collect();
        assert!(segments.windows(2).all(|pair| pair[0].1 <= pair[1].0), "one at a time: {segments:?}");
        assert!(segments.iter().all(|(start, _)| *start < 4000 * MS), "{segments:?}");
        // 0.5 s of 0.8 Mbit/s, then of 4 Mbit/s: the path of 10 Mbit/s carries 250 kB in 0.21 s.
        let bytes: Vec<i64> = report.integers(Table::Transfers, "bytes").into_iter().flatten().collect();
        assert_eq!(bytes[0], 50_000);
        doubts.unless(bytes[1..].iter().all(|bytes| *bytes == 250_000), format!("{bytes:?}"));
        // The buffer is full after about 1.5 s; from then on there is one request each 0.5 s.
        let later: Vec<i64> = segments.iter().map(|(start, _)| *start).filter(|start| *start > 2000 * MS).collect();
        let gaps: Vec<i64> = later.windows(2).map(|pair| (pair[1] - pair[0]) / MS).collect();
        doubts.unless(gaps.len() >= 3 && gaps.iter().all(|ms| (480..520).contains(ms)), format!("{gaps:?} ms"));
        let total: i64 = bytes.iter().sum();
        assert_eq!(delivered(report, "film/1", i64::MAX), total, "every segment once");
    });
}

#[test]
fn a_seed_serves_a_few_of_its_peers_and_stops() {
    let traffic = r#"name = "swarm", kind = "bittorrent", peers = 6, unchoked = 2, congestion = "cubic", stop = "3s""#;
    judged("5s", traffic, |report, doubts| {
        assert_eq!(flows(report).len(), 6);
        let served = (1..=6).filter(|n| delivered(report, &format!("swarm/{n}"), 3000 * MS) > 100_000).count();
        doubts.unless(served == 2, format!("{served} of 6 peers were served"));
        let last = report.integers(Table::Flows, "t_ns").into_iter().flatten().max().unwrap();
        assert!(last >= 3000 * MS, "closed at {last}");
        doubts.unless(last < 4000 * MS, format!("closed at {last}"));
    });
}
