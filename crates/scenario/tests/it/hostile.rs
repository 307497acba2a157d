//! Malicious files: each is refused quickly and with a few short lines.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::common::{LAB, lab_unswept, lab_with};
use bufferscope_scenario::Experiment;

/// Loads and expects a refusal that contains `expected`. This takes far less than the time allowed, which is long
/// because the machine may be busy with something else.
#[track_caller]
fn refused(bytes: &[u8], expected: &str) {
    let start = Instant::now();
    let error = Experiment::from_bytes(bytes, "evil.toml", &[]).expect_err(expected).to_string();
    assert!(start.elapsed() < Duration::from_secs(5), "took {:?}", start.elapsed());
    assert!(error.contains(expected), "{error}");
    let is_sound =
        |line: &str| line.starts_with("evil.toml: ") && line.len() < 1000 && !line.contains(char::is_control);
    assert!(error.split('\n').all(is_sound) && error.split('\n').count() <= 51, "{error}");
}

#[test]
fn nothing() {
    refused(b"", "found an empty file; allowed: an experiment in TOML; `bufferscope list`");
    refused(b" \n\t\n# only a comment\n", "found an empty file");
    refused(b"\xef\xbb\xbf", "found an empty file");
}

#[test]
fn binary_data() {
    refused(b"\x7fELF\x02\x01\x01\0\0\0", "found binary data (a NUL at byte 7)");
    refused(b"\x89PNG\r\n\x1a\n", "found binary data (no UTF-8 at byte 0)");
    refused(&[b"title = \"".as_slice(), &[0xff; 100]].concat(), "no UTF-8 at byte 9");
    refused(&LAB.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(), "found binary data");
}

#[test]
fn a_file_too_large() {
    let comment = format!("{}#{}", *LAB, "x".repeat(1 << 20));
    refused(comment.as_bytes(), "allowed: at most 1048576 bytes");
    assert!(Experiment::parse(&comment, "evil.toml", &[]).is_err());
}

#[test]
fn tables_too_deep() {
    for depth in [100, 1_000, 300_000] {
        refused(format!("a = {}", "[".repeat(depth)).as_bytes(), "invalid TOML");
        refused(format!("a = {}1{}", "[".repeat(depth), "]".repeat(depth)).as_bytes(), "invalid TOML");
        refused(format!("a = {}", "{a=".repeat(depth)).as_bytes(), "invalid TOML");
        refused(format!("{}a = 1", "a.".repeat(depth)).as_bytes(), "invalid TOML");
        refused(format!("[{}a]", "a.".repeat(depth)).as_bytes(), "invalid TOML");
    }
}

/// Disciplines hold others, a few deep. Where the file goes on, the parser gives up.
#[test]
fn disciplines_inside_each_other() {
    let nested = |levels: usize| {
        let outer = "{ qdisc = \"tbf\", rate = \"1mbit\", burst = \"5kb\", limit = \"50kb\", inner = ".repeat(levels);
        lab_with(
            "\"10mbit\"",
            &format!("\"10mbit\"\nreverse.queue = {outer}{{ qdisc = \"pfifo\" }}{}", " }".repeat(levels)),
        )
    };
    assert!(Experiment::from_bytes(nested(3).as_bytes(), "good.toml", &[]).is_ok());
    refused(
        nested(4).as_bytes(),
        "link.bottleneck.reverse.queue: found 5 disciplines inside each other; allowed: at most 4",
    );
    refused(nested(30).as_bytes(), "31 disciplines inside each other");
    refused(nested(1000).as_bytes(), "cannot recurse further");
}

/// The parser allows some nesting, which the checker must survive too.
#[test]
fn tables_as_deep_as_they_may_be() {
    let deep = format!("{}1{}", "[".repeat(70), "]".repeat(70));
    refused(lab_with("\"10mbit\"", &deep).as_bytes(), "link.bottleneck.rate");
    refused(
        lab_with("[\"50p\", \"100p\", \"200p\"]", &format!("{{ a = {deep} }}")).as_bytes(),
        "queue.limit: found an array",
    );
}

#[test]
fn keys_without_end() {
    let keys = (0..80_000).fold(String::new(), |mut text, i| {
        let _ = writeln!(text, "key{i} = 1");
        text
    });
    refused(keys.as_bytes(), "evil.toml: and 79954 more problems");
    refused(format!("{} = 1", "k".repeat(1_000_000)).as_bytes(), "kkk...: found an unknown key");
    refused("a = 1\n".repeat(150_000).as_bytes(), "line 2, column 1: found invalid TOML (duplicate key)");
    refused("=\n".repeat(400_000).as_bytes(), "line 1, column 1: found invalid TOML");
}

#[test]
fn a_sweep_with_a_billion_points() {
    let values: Vec<String> = (1..=1000).map(|limit| format!("\"{limit}p\"")).collect();
    let axis = |key: &str| format!("\"{key}\" = [{}]\n", values.join(","));
    let axes = axis("link.bottleneck.queue.limit") + &axis("traffic.bulk.flows") + &axis("link.access.queue.limit");
    refused((lab_unswept() + "[sweep]\n" + &axes).as_bytes(), "sweep: found 1000000000 points; allowed: at most 10000");
}

#[test]
fn a_sweep_with_more_points_than_can_be_counted() {
    let axes: String = (0..64).map(|i| format!("\"link.x{i}.rate\" = [\"1mbit\", \"2mbit\"]\n")).collect();
    refused((lab_unswept() + "[sweep]\n" + &axes).as_bytes(), "sweep: found more points than can be counted");
}

#[test]
fn a_large_set_up_times_many_points() {
    let limits: Vec<String> = (1..=10_000).map(|limit| format!("\"{limit}p\"")).collect();
    let steps: Vec<String> = (0..1000).map(|second| format!("[\"{second}s\", \"1mbit\"]")).collect();
    let sweep = format!("[sweep]\n\"link.bottleneck.queue.limit\" = [{}]\n", limits.join(","));
    let schedule = format!("[{}]", steps.join(","));
    let in_file = lab_unswept().replace("\"10mbit\"", &schedule) + &sweep;
    refused(in_file.as_bytes(), "sweep: found 10000 points of a set-up of 30");
    let in_sweep = lab_unswept() + &sweep + "\"link.bottleneck.rate\" = { wild = " + &schedule + " }\n";
    refused(in_sweep.as_bytes(), "sweep: found 10000 points of a set-up of 30");
    let set = format!("link.bottleneck.rate={schedule}");
    let error = Experiment::parse(&(lab_unswept() + &sweep), "lab.toml", &[set]).unwrap_err().to_string();
    assert!(error.contains("sweep: found 10000 points of a set-up of 30"), "{error}");
}

#[test]
fn a_network_too_large() {
    let links = (0..5_000).fold(lab_unswept(), |mut text, i| {
        let _ = write!(text, "[[link]]\nname = \"l{i}\"\nends = [\"n{i}\", \"n{}\"]\n", i + 1);
        text
    });
    refused(links.as_bytes(), "link: found 5004 nodes; allowed: at most 1000 nodes");
}

#[test]
fn messages_stay_short_and_on_one_line_whatever_they_quote() {
    refused(lab_with("\"10mbit\"", &format!("\"{}\"", "1".repeat(100_000))).as_bytes(), "found \"1111");
    refused(lab_with("\"10mbit\"", &format!("\"{}mbits\"", "1".repeat(100_000))).as_bytes(), "found \"1111");
    refused(lab_with("\"10mbit\"", "\"\\n\\r\\u0007\\u001b[31m\"").as_bytes(), "\\u{1b}[31m");
}
