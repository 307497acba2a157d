//! Compares the estimate of a run's memory with the memory that the run takes.
//!
//! Each case is measured in a process of its own, because a case could reuse memory that an earlier one has freed.

use std::fs;
use std::ops::ControlFlow;
use std::process::Command;

use bufferscope_records::{ParquetSink, Recorder};
use bufferscope_scenario::{Experiment, Scenario};

/// The part of the estimate that does not depend on the scenario.
const BASE: u64 = 32 << 20;

fn scenario(seconds: u64, link: &str, traffic: &str) -> Scenario {
    let text = format!(
        r#"
        title = "Large in one respect"
        duration = "{seconds}s"
        sample = "{seconds}s"
        link = [{{ name = "line", ends = ["h1", "h2"], {link} }}]
        traffic = [{{ name = "much", from = "h1", to = "h2", {traffic} }}]
        "#
    );
    let experiment = Experiment::parse(&text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    experiment.points()[0].scenario.clone()
}

/// By how much the largest resident set of a run exceeds what the process has before it, in bytes.
fn peak_growth(scenario: &Scenario) -> u64 {
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmHWM");
    let directory = tempfile::tempdir().unwrap();
    let recorder = Recorder::new(ParquetSink::create(directory.path()).unwrap());
    bufferscope_sim::run(scenario, 1, recorder, &mut |_| ControlFlow::Continue(())).unwrap();
    status("VmHWM") - before
}

fn status(key: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(key)).unwrap();
    1024 * line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
}

/// Cases that are each large in one respect: that respect, the duration in seconds, the link and the traffic.
const CASES: [(&str, u64, &str, &str); 5] = [
    (
        "a deep queue",
        8,
        "delay = '1ms', rate = '10mbit', queue = { qdisc = 'pfifo', limit = '1000000p' }",
        "kind = 'udp', rate = '1gbit'",
    ),
    (
        "a deep queue above a faster link",
        8,
        "delay = '1ms', rate = '10gbit', queue = { qdisc = 'tbf', rate = '10mbit', burst = '10kb', limit = '1gb' }",
        "kind = 'udp', rate = '1gbit'",
    ),
    ("a long fat pipe", 1, "delay = '500ms', rate = '10gbit'", "kind = 'udp', rate = '8gbit'"),
    ("windows without a bottleneck", 2, "delay = '50ms'", "kind = 'tcp', flows = 320"),
    ("pages that pile up", 8, "delay = '10ms', rate = '10mbit'", "kind = 'web', interval = '400us', bytes = '20kb'"),
];

#[test]
#[ignore = "a part of the test below, which calls it"]
fn the_growth_of_a_case() {
    let Ok(case) = std::env::var("CASE") else { return };
    let (_, seconds, link, traffic) = CASES[case.parse::<usize>().unwrap()];
    println!("\ngrowth {}", peak_growth(&scenario(seconds, link, traffic)));
}

/// The memory that a case takes, measured by starting this program again.
fn growth_of(case: usize) -> u64 {
    let mut again = Command::new(std::env::current_exe().unwrap());
    again
        .args(["--exact", "--ignored", "--nocapture", "footprint::the_growth_of_a_case"])
        .env("CASE", case.to_string());
    let output = String::from_utf8(again.output().unwrap().stdout).unwrap();
    let line = output.lines().find_map(|line| line.strip_prefix("growth ")).unwrap_or_else(|| panic!("{output}"));
    line.parse().unwrap()
}

#[test]
fn the_estimate_is_an_upper_bound_and_not_a_wild_one() {
    for (case, (what, seconds, link, traffic)) in CASES.into_iter().enumerate() {
        let said = bufferscope_sim::footprint(&scenario(seconds, link, traffic)).unwrap().memory_bytes;
        let took = growth_of(case);
        println!("{what}: said {} MB, took {} MB", said >> 20, took >> 20);
        assert!(took > BASE, "{what} takes {took} bytes, too little to show anything");
        assert!(took < said, "{what}: said {said} bytes, took {took}");
        assert!(said - BASE < 3 * took, "{what}: said {said} bytes, took {took}");
    }
}

#[test]
fn a_long_history_needs_no_more_than_a_short_one() {
    let files = |transfers| {
        scenario(
            86_400,
            "delay = '1ms', rate = '100mbit'",
            &format!("kind = 'tcp', bytes = '20kb', transfers = {transfers}"),
        )
    };
    let said = |transfers| bufferscope_sim::footprint(&files(transfers)).unwrap();
    assert_eq!(said(2).memory_bytes, said(1_000_000).memory_bytes);
    assert_eq!(said(1_000_000).rows - said(2).rows, 999_998, "each connection has its last sample");
}
