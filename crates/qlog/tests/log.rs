//! The log of whole runs: what the files contain, checked against the definitions of the drafts.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use bufferscope_qlog::{Log, Outcome};
use bufferscope_records::{MemorySink, Recorder, Table};
use bufferscope_scenario::{Experiment, Scenario};
use bufferscope_sim::{Simulation, StateLog, Summary};
use serde_json::Value;

const LINE: &str = r#"
title = "Two flows and pages over a slow line"
duration = "8s"
link = [
    { name = "access", ends = ["h1", "r1"], rate = "100mbit", delay = "1ms" },
    { name = "line", ends = ["r1", "h2"], rate = "10mbit", delay = "10ms", queue = { qdisc = "pfifo", limit = "50p" } },
]
traffic = [
    { name = "bulk", kind = "tcp", from = "h1", to = "h2", flows = 2, congestion = "cubic" },
    { name = "bbr", kind = "tcp", from = "h2", to = "h1", congestion = "bbr" },
    { name = "pages", kind = "web", from = "h1", to = "h2", interval = "1s", bytes = "30000b" },
    { name = "ping", kind = "ping", from = "h1", to = "h2" },
]
"#;

fn scenario() -> Scenario {
    let experiment = Experiment::parse(LINE, "line.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
    experiment.points()[0].scenario.clone()
}

fn run(log: Option<Box<dyn StateLog>>) -> Summary<MemorySink> {
    let simulation = Simulation::new(scenario(), 1, Recorder::new(MemorySink::default())).unwrap();
    let simulation = match log {
        Some(log) => simulation.logged(log),
        None => simulation,
    };
    simulation.finish(&mut |_| ControlFlow::Continue(())).unwrap()
}

fn logged(directory: &Path, chosen: &[&str]) -> (Summary<MemorySink>, Outcome) {
    let chosen: Vec<String> = chosen.iter().map(|name| (*name).to_owned()).collect();
    let log = Log::begin(&scenario(), directory, ("a run", "a test"), &chosen);
    let summary = run(Some(Box::new(log.clone())));
    (summary, log.finish().unwrap())
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The records of a file (RFC 7464: each is a JSON text between a record separator and a line feed).
fn records(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    let mut parts = text.split('\u{1e}');
    assert_eq!(parts.next(), Some(""), "a separator begins the file");
    parts
        .map(|part| {
            assert!(part.ends_with('\n') && part.matches('\n').count() == 1, "{part}");
            serde_json::from_str(part).unwrap_or_else(|error| panic!("{error}: {part}"))
        })
        .collect()
}

/// The type of a field, in the words of CDDL.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Uint,
    Float,
    Bool,
}

use Kind::{Bool, Float, Text, Uint};

/// A field of an event, and whether it is always there.
type Field = (&'static str, Kind, bool);

const OLD: Field = ("old", Text, true);
const NEW: Field = ("new", Text, true);
const CWND: Field = ("congestion_window", Uint, true);
const SSTHRESH: Field = ("ssthresh", Uint, false);
const OLD_CWND: Field = ("old_congestion_window", Uint, true);
const OLD_SSTHRESH: Field = ("old_ssthresh", Uint, false);

/// The events with their fields: those of draft-ietf-quic-qlog-quic-events-04 with what we add to them, and our own.
const EVENTS: &[(&str, &[Field])] = &[
    ("connectivity:connection_state_updated", &[OLD, NEW]),
    (
        "recovery:parameters_set",
        &[
            ("reordering_threshold", Uint, false),
            ("timer_granularity", Uint, true),
            ("max_datagram_size", Uint, false),
            ("initial_congestion_window", Uint, false),
            ("congestion_control", Text, true),
        ],
    ),
    (
        "recovery:metrics_updated",
        &[
            ("min_rtt", Float, false),
            ("smoothed_rtt", Float, false),
            ("bytes_in_flight", Uint, false),
            ("pacing_rate", Uint, false),
            CWND,
            SSTHRESH,
        ],
    ),
    ("recovery:congestion_state_updated", &[OLD, NEW, ("trigger", Text, true), OLD_CWND, OLD_SSTHRESH, CWND, SSTHRESH]),
    (
        "recovery:loss_timer_updated",
        &[("timer_type", Text, true), ("event_type", Text, true), ("backoff", Uint, true), ("timeout", Float, false)],
    ),
    ("recovery:packet_lost", &[("trigger", Text, true), ("packets", Uint, true)]),
    ("tcp:tail_loss_probe_sent", &[("new_data", Bool, true)]),
    ("tcp:reduction_undone", &[("trigger", Text, true), OLD_CWND, OLD_SSTHRESH, CWND, SSTHRESH]),
    ("tcp:slow_start_ended", &[("trigger", Text, true), CWND, SSTHRESH]),
    ("tcp:slow_start_began", &[CWND, SSTHRESH]),
    ("tcp:idle_restart", &[("idle_time", Float, true), OLD_CWND, OLD_SSTHRESH, CWND, SSTHRESH]),
    ("tcp:unused_window_reduced", &[OLD_CWND, OLD_SSTHRESH, CWND, SSTHRESH]),
    ("tcp:congestion_control_phase_updated", &[("old", Text, false), NEW]),
    ("tcp:cubic_epoch_started", &[("w_max", Uint, true), ("k", Float, true), ("origin_point", Uint, true)]),
    ("tcp:sender_limit_updated", &[OLD, NEW]),
];

/// Checks the data of an event against its definition.
fn check_data(name: &str, data: &Value) {
    let (_, fields) = EVENTS.iter().find(|(event, _)| *event == name).unwrap_or_else(|| panic!("unknown: {name}"));
    let data = data.as_object().unwrap();
    for (field, value) in data {
        let (_, kind, _) =
            fields.iter().find(|(known, ..)| known == field).unwrap_or_else(|| panic!("{name}: {field}"));
        let fits = match kind {
            Text => value.is_string(),
            Uint => value.is_u64(),
            Float => value.is_f64(),
            Bool => value.is_boolean(),
        };
        assert!(fits, "{name}: {field}: {value}");
        assert_eq!(*field, field.to_lowercase(), "section 5.3 of the main schema");
    }
    for (field, _, required) in *fields {
        assert!(!required || data.contains_key(*field), "{name}: no {field}: {data:?}");
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no {pointer} in {value}"))
}

/// Checks a file against draft-ietf-quic-qlog-main-schema-05: its header (sections 3 and 5.3), and the time, name and
/// data of each event (section 3.4). Returns the events.
fn check_file(file: &Path) -> Vec<Value> {
    let mut records = records(file).into_iter();
    let header = records.next().expect("a header");
    assert_eq!((text(&header, "/qlog_version"), text(&header, "/qlog_format")), ("0.3", "JSON-SEQ"));
    assert!(["client", "server", "network", "unknown"].contains(&text(&header, "/trace/vantage_point/type")));
    assert_eq!(header.pointer("/trace/common_fields/protocol_type"), Some(&serde_json::json!(["TCP"])));
    assert_eq!(text(&header, "/trace/common_fields/time_format"), "relative");
    assert_eq!(header.pointer("/trace/common_fields/reference_time").and_then(Value::as_u64), Some(0));
    let events: Vec<Value> = records.collect();
    let mut before = 0.0;
    for event in &events {
        let at = event["time"].as_f64().unwrap();
        assert!(at >= before, "{at} after {before}");
        before = at;
        check_data(text(event, "/name"), &event["data"]);
    }
    events
}

#[test]
fn every_file_is_qlog() {
    let directory = tempfile::tempdir().unwrap();
    let (_, outcome) = logged(directory.path(), &[]);
    let names = names(directory.path());
    assert!(names.len() > 5 && names.contains(&"bulk-1.sqlog".to_owned()), "{names:?}");
    assert_eq!(outcome.opened.len(), names.len());
    let mut seen: Vec<String> = Vec::new();
    for name in &names {
        let events = check_file(&directory.path().join(name));
        assert_eq!(events[0]["name"], "recovery:parameters_set");
        assert_eq!(
            (events[1]["name"].as_str(), events[1]["data"]["new"].as_str().is_some()),
            (Some("connectivity:connection_state_updated"), true)
        );
        seen.extend(events.iter().map(|event| text(event, "/name").to_owned()));
    }
    for event in [
        "recovery:congestion_state_updated",
        "recovery:packet_lost",
        "recovery:metrics_updated",
        "tcp:slow_start_ended",
        "tcp:cubic_epoch_started",
        "tcp:congestion_control_phase_updated",
    ] {
        assert!(seen.iter().any(|name| name == event), "no {event}");
    }
}

#[test]
fn a_log_is_of_the_end_that_sends_the_data() {
    let directory = tempfile::tempdir().unwrap();
    logged(directory.path(), &[]);
    let vantage = |name: &str| records(&directory.path().join(name))[0]["trace"]["vantage_point"].clone();
    assert_eq!(vantage("bulk-1.sqlog"), serde_json::json!({ "name": "h1", "type": "client" }));
    assert_eq!(vantage("bbr-1.sqlog"), serde_json::json!({ "name": "h2", "type": "client" }));
    assert_eq!(vantage("pages-1.sqlog"), serde_json::json!({ "name": "h1", "type": "server" }));
}

#[test]
fn the_states_join_up() {
    let directory = tempfile::tempdir().unwrap();
    logged(directory.path(), &["bulk/1"]);
    let mut state = "open".to_owned();
    let mut changes = 0;
    for event in check_file(&directory.path().join("bulk-1.sqlog")) {
        if event["name"] == "recovery:congestion_state_updated" {
            assert_eq!(text(&event, "/data/old"), state);
            state = text(&event, "/data/new").to_owned();
            changes += 1;
        }
    }
    assert!(changes > 3, "{changes}");
}

#[test]
fn only_the_chosen_connections_are_logged() {
    let directory = tempfile::tempdir().unwrap();
    let (_, outcome) = logged(directory.path(), &["bulk/2", "bulk/3"]);
    assert_eq!(names(directory.path()), ["bulk-2.sqlog"]);
    assert_eq!(outcome.missing, ["bulk/3"]);
    assert!(outcome.opened.contains(&"bbr/1".to_owned()));
}

#[test]
fn a_log_does_not_change_the_records() {
    let directory = tempfile::tempdir().unwrap();
    let (with, without) = (logged(directory.path(), &[]).0, run(None));
    for table in Table::ALL {
        assert_eq!(with.output.batches(table), without.output.batches(table), "{table}");
    }
    assert_eq!((with.events, with.hops, with.flows), (without.events, without.hops, without.flows));
}

#[test]
fn a_directory_that_cannot_be_written_is_reported() {
    let log = Log::begin(&scenario(), Path::new("/nowhere/at/all"), ("a run", "a test"), &[]);
    run(Some(Box::new(log.clone())));
    assert_eq!(log.finish().unwrap_err().kind(), std::io::ErrorKind::NotFound);
}
