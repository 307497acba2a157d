//! The state in the text format of Prometheus (version 0.0.4), with its conventions for names: base units, `_total` for
//! counters, and for the process the names that its client libraries use.

use std::fmt::Write;

use super::{State, Status};

/// The media type of the format.
pub const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The state as metrics.
pub fn metrics(status: &Status) -> String {
    let Status { tests, monitors, limits, process, bytes, .. } = status;
    let mut text = Text::default();
    text.family("bufferscope_build_info", "gauge", "The version of the server.");
    text.sample("bufferscope_build_info", &[("version", &status.version)], 1.0);
    text.family("bufferscope_tests_total", "counter", "Tests that have ended, by how they ended.");
    for (outcome, count) in [("done", tests.done), ("limited", tests.limited), ("failed", tests.failed)] {
        text.sample("bufferscope_tests_total", &[("outcome", outcome)], count as f64);
    }
    text.family("bufferscope_refused_total", "counter", "Clients and connections that were turned away.");
    for (reason, count) in &status.refused {
        text.sample("bufferscope_refused_total", &[("reason", reason)], *count as f64);
    }
    text.family("bufferscope_load_bytes_total", "counter", "Load of all tests, as the server sees it.");
    for (direction, count) in [("sent", bytes.sent), ("received", bytes.received)] {
        text.sample("bufferscope_load_bytes_total", &[("direction", direction)], count as f64);
    }
    text.one("bufferscope_monitor_sessions_total", "counter", "Sessions of monitors.", monitors.sessions as f64);
    let gauges = [
        ("bufferscope_tests_running", "Tests that run.", tests.running as f64),
        ("bufferscope_tests_waiting", "Clients that wait for their test.", tests.waiting as f64),
        (
            "bufferscope_tests_of_old_process",
            "Tests that run or wait in the process that this one replaced.",
            tests.of_old_process as f64,
        ),
        ("bufferscope_monitors_connected", "Monitors that are connected.", monitors.connected as f64),
        (
            "bufferscope_unproven_connections",
            "Connections that have not shown a token.",
            status.unproven_connections as f64,
        ),
        (
            "bufferscope_ending",
            "Whether the server takes no new clients and ends with its last test.",
            f64::from(u8::from(status.state != State::Serving)),
        ),
        ("bufferscope_tests_running_limit", "Tests at the same time.", limits.tests as f64),
        ("bufferscope_tests_waiting_limit", "Clients that may wait for their test.", limits.waiting as f64),
        ("bufferscope_monitors_connected_limit", "Monitors at the same time.", limits.monitors as f64),
    ];
    for (name, help, value) in gauges {
        text.one(name, "gauge", help, value);
    }
    if let Some(bps) = limits.rate_bps {
        let help = "Bytes per second that the server sends at most, all tests together.";
        text.one("bufferscope_sending_limit_bytes_per_second", "gauge", help, bps as f64 / 8.0);
    }
    text.one("process_cpu_seconds_total", "counter", "Processor time in seconds.", process.cpu_s);
    let gauges = [
        ("process_start_time_seconds", "When the process started, in seconds since 1970.", status.started_s),
        ("process_resident_memory_bytes", "Resident memory in bytes.", process.resident_bytes as f64),
        ("process_threads", "Threads.", process.threads as f64),
        ("process_open_fds", "Open descriptors.", process.descriptors as f64),
    ];
    for (name, help, value) in gauges {
        text.one(name, "gauge", help, value);
    }
    text.0
}

#[derive(Default)]
struct Text(String);

impl Text {
    /// The head of a family; its samples must follow.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<_> = labels.iter().map(|(label, text)| format!("{label}=\"{}\"", escaped(text))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    /// A family of one sample.
    fn one(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn metrics_have_the_numbers_of_the_state() {
        let text = metrics(&example());
        for line in [
            "bufferscope_build_info{version=\"0.1.0\"} 1",
            "bufferscope_tests_total{outcome=\"done\"} 210",
            "bufferscope_refused_total{reason=\"hourly_limit\"} 2",
            "bufferscope_load_bytes_total{direction=\"sent\"} 120000000000",
            "bufferscope_tests_waiting 3",
            "bufferscope_sending_limit_bytes_per_second 62500000",
            "process_start_time_seconds 1700000000.5",
            "# TYPE process_cpu_seconds_total counter",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}:\n{text}");
        }
    }

    #[test]
    fn every_family_is_described_once_before_its_samples() {
        let text = metrics(&example());
        let mut described = Vec::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let name = rest.split(' ').next().unwrap();
                assert!(!described.contains(&name), "{name} twice");
                described.push(name);
            } else if !line.starts_with('#') {
                let name = line.split(['{', ' ']).next().unwrap();
                assert_eq!(described.last(), Some(&name), "{line}");
            }
        }
    }

    #[test]
    fn labels_are_escaped() {
        assert_eq!(escaped("a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
    }
}
