//! The numbers of a test as plain text.

use std::fmt::Write;

use bufferscope_verdict::input::{Direction, PhaseKind, Protocol, Responsiveness};
use bufferscope_verdict::verdict::{Confidence, DirectionNumbers, PhaseVerdict, Spread};
use bufferscope_verdict::{Observations, Verdict};

/// What is written for a number that is not known.
const UNKNOWN: &str = "-";
/// Spaces between two columns.
const GAP: usize = 2;

/// The numbers of each phase and direction, how grades are given, and how responsiveness was measured.
pub(super) fn numbers(verdict: &Verdict, observed: &Observations) -> String {
    let parameters = &observed.parameters;
    let mut rows =
        vec![words(&["Round trip (ms)", "p50", "p95", "p99", "max", "added p95", "grade", "RPM (confidence)"])];
    rows.push([vec!["idle".to_owned()], spread(&verdict.idle.rtt), words(&[UNKNOWN; 3])].concat());
    rows.extend(verdict.phases.iter().map(phase));
    let mut text = aligned(&rows);
    let loaded: Vec<Vec<String>> = verdict.phases.iter().flat_map(directions).collect();
    if !loaded.is_empty() {
        let heads = [
            "Later one way (ms)",
            "p50",
            "p95",
            "p99",
            "max",
            "lost",
            "Mbit/s",
            "filled in (s)",
            "buffer (ms)",
            "buffer (kB)",
        ];
        text.push('\n');
        text.push_str(&aligned(&[vec![words(&heads)], loaded].concat()));
        text.push_str(&worst_cases(verdict));
        let _ = write!(text, "\nGrades by {}:\n ", verdict.grade_table.statistic);
        for (at, step) in verdict.grade_table.steps.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let _ = match step.below_ns {
                Some(ns) => write!(text, "{comma} {} below {} ms", step.grade.name(), ms(Some(ns))),
                None => write!(text, "{comma} {} otherwise", step.grade.name()),
            };
        }
        text.push('\n');
    }
    if let Some(used) = &parameters.responsiveness {
        text.push('\n');
        text.push_str(&responsiveness(verdict, used));
    }
    if parameters.protocol == Some(Protocol::Ndt7) {
        text.push('\n');
        text.push_str(&aligned(&ndt7(observed)));
        let _ = writeln!(text, "{NDT7}");
    }
    text
}

/// What floods have shown; empty without them.
fn worst_cases(verdict: &Verdict) -> String {
    if verdict.worst_cases.is_empty() {
        return String::new();
    }
    let rows = verdict.worst_cases.iter().map(|case| {
        let way = if case.direction == Direction::Down { "down" } else { "up" };
        let or_unknown = |found: Option<String>| found.unwrap_or_else(|| UNKNOWN.to_owned());
        vec![
            way.to_owned(),
            ms(Some(case.delay_ns)),
            or_unknown(case.bytes.map(|bytes| format!("{:.0}", bytes as f64 / 1e3))),
            or_unknown(case.rate_bps.map(|rate| significant(rate as f64 / 1e6))),
            format!("{:.1} %", 100.0 * case.loss),
            if case.full { "yes" } else { "no" }.to_owned(),
        ]
    });
    let heads = words(&["Worst case (flood)", "buffer (ms)", "buffer (kB)", "Mbit/s", "lost", "full"]);
    format!("\n{}", aligned(&std::iter::once(heads).chain(rows).collect::<Vec<_>>()))
}

/// What must be known of the delays of ndt7.
const NDT7: &str = "ndt7 uses one connection, and many of its servers send with BBR, which keeps queues short: these are numbers of goodput. \
                    A delay that does not rise here may rise with other programs.";

/// What `TCP_INFO` says of the load's connection: of a download the server's, of an upload this machine's.
fn ndt7(observed: &Observations) -> Vec<Vec<String>> {
    let mut rows = vec![words(&["RTT of the load (ms)", "min", "p50", "max"])];
    for phase in observed.phases.iter().filter(|phase| !phase.kind.loaded().is_empty()) {
        let mut trips: Vec<i64> = phase.flows.iter().map(|flow| flow.srtt_ns).filter(|ns| *ns > 0).collect();
        trips.sort_unstable();
        let least = phase.flows.iter().map(|flow| flow.min_rtt_ns).filter(|ns| *ns > 0).min();
        let known = [least, trips.get(trips.len() / 2).copied(), trips.last().copied()];
        rows.push([vec![name(phase.kind).to_owned()], known.map(ms).to_vec()].concat());
    }
    rows
}

/// The parts of responsiveness, and its parameters by their names in the draft.
fn responsiveness(verdict: &Verdict, used: &Responsiveness) -> String {
    let mut rows =
        vec![words(&["Round trips per minute", "RPM", "confidence", "new connections", "load's connections"])];
    let rate = |value: Option<f64>| value.map_or(UNKNOWN.to_owned(), |value| format!("{value:.0}"));
    for phase in &verdict.phases {
        let found = &phase.rpm;
        let confidence = found.confidence.map_or(UNKNOWN, confidence).to_owned();
        rows.push(vec![name(phase.kind).to_owned(), rate(found.rpm), confidence, rate(found.foreign), rate(found.own)]);
    }
    let mut text = aligned(&rows);
    for phase in &verdict.phases {
        if let Some(reason) = &phase.rpm.reason {
            let _ = writeln!(text, "No RPM of {}: {reason}", name(phase.kind));
        }
    }
    let _ = writeln!(
        text,
        "draft-ietf-ippm-responsiveness-09: MAD {}, ID {} s, TMP {} %, SDT {} %, INP {}, INC {}, MNP {}, MPS {}/s, PTC {} %",
        used.mad,
        used.id_ns as f64 / 1e9,
        used.tmp * 100.0,
        used.sdt * 100.0,
        used.inp,
        used.inc,
        used.mnp,
        used.mps,
        used.ptc * 100.0
    );
    text
}

fn confidence(found: Confidence) -> &'static str {
    match found {
        Confidence::High => "high",
        Confidence::Medium => "medium",
        Confidence::Low => "low",
    }
}

fn words(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn phase(phase: &PhaseVerdict) -> Vec<String> {
    let confidence = phase.rpm.confidence.map_or("unknown", confidence);
    let rpm = phase.rpm.rpm.map_or(UNKNOWN.to_owned(), |rpm| format!("{rpm:.0} ({confidence})"));
    let grade = phase.grade.map_or(UNKNOWN.to_owned(), |grade| grade.name().to_owned());
    let added = percentile(&phase.numbers.added, phase.numbers.added.p95_ns);
    [vec![name(phase.kind).to_owned()], spread(&phase.numbers.loaded), vec![added, grade, rpm]].concat()
}

/// The directions that are loaded, and those that are late all the same.
fn directions(phase: &PhaseVerdict) -> Vec<Vec<String>> {
    let shown = phase.numbers.directions.iter().filter(|numbers| numbers.loaded || numbers.rises);
    shown.map(|numbers| direction(phase.kind, numbers)).collect()
}

fn direction(kind: PhaseKind, numbers: &DirectionNumbers) -> Vec<String> {
    let way = if numbers.direction == Direction::Down { "down" } else { "up" };
    let or_unknown = |found: Option<String>| found.unwrap_or_else(|| UNKNOWN.to_owned());
    let buffer = numbers.buffer.as_ref();
    let rest = [
        numbers.loss.map(|loss| format!("{:.1} %", 100.0 * loss)),
        numbers.goodput.as_ref().map(|goodput| significant(goodput.mean_bps as f64 / 1e6)),
        numbers.fill_ns.map(|ns| format!("{:.1}", ns as f64 / 1e9)),
        buffer.map(|buffer| ms(Some(buffer.delay_ns))),
        buffer.and_then(|buffer| buffer.bytes).map(|bytes| format!("{:.0}", bytes as f64 / 1e3)),
    ];
    [vec![format!("{}, {way}", name(kind))], spread(&numbers.added), rest.map(or_unknown).to_vec()].concat()
}

fn name(kind: PhaseKind) -> &'static str {
    match kind {
        PhaseKind::Both => "both directions",
        PhaseKind::CoolDown => "cool-down",
        kind => kind.name(),
    }
}

fn spread(found: &Spread) -> Vec<String> {
    let percentiles = [found.p50_ns, found.p95_ns, found.p99_ns].map(|value| percentile(found, value));
    [percentiles.to_vec(), vec![ms(found.max_ns)]].concat()
}

/// A percentile that falls among the lost probes is longer than the longest delay that is known.
fn percentile(of: &Spread, value: Option<i64>) -> String {
    match value {
        None if of.censored => format!("> {}", ms(of.max_ns)),
        value => ms(value),
    }
}

/// A time in milliseconds, with a decimal if it is short.
fn ms(ns: Option<i64>) -> String {
    let Some(ns) = ns else { return UNKNOWN.to_owned() };
    let value = ns as f64 / 1e6;
    let value = if value.abs() < 0.05 { 0.0 } else { value };
    if value.abs() < 99.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// A rate with three digits.
fn significant(value: f64) -> String {
    match value {
        ..9.995 => format!("{value:.2}"),
        ..99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Columns of the width of their widest cell, the first one aligned to the left.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| match at {
            0 => format!("{cell:<width$}"),
            _ => format!("{:GAP$}{cell:>width$}", ""),
        });
        text.push_str(cells.collect::<String>().trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use bufferscope_verdict::input::{Echo, GoodputSample, Phase};

    use super::*;

    const MS: i64 = 1_000_000;

    /// Ten seconds idle at 12 ms, and ten of an upload of 8 Mbit/s behind a queue of 90 ms.
    fn observed() -> Observations {
        let phase = |kind: PhaseKind, start: i64, up_ms: i64| {
            let times = (0..500).map(|at| (start * 1000 + at * 20) * MS);
            let echoes = times.clone().map(|t_ns| Echo {
                t_ns,
                rtt_ns: Some((12 + up_ms) * MS),
                up_ns: Some((6 + up_ms) * MS),
                down_ns: Some(6 * MS),
                lost: None,
            });
            let counted = times.enumerate().filter(|_| up_ms > 0).map(|(at, t_ns)| GoodputSample {
                t_ns,
                direction: Direction::Up,
                bytes: at as u64 * 20_000,
            });
            Phase {
                kind,
                start_ns: start * 1000 * MS,
                end_ns: (start + 10) * 1000 * MS,
                echoes: echoes.collect(),
                goodput: counted.collect(),
                ..Phase::default()
            }
        };
        Observations {
            phases: vec![
                phase(PhaseKind::Idle, 0, 0),
                phase(PhaseKind::Upload, 10, 90),
                phase(PhaseKind::CoolDown, 20, 0),
            ],
            ..Observations::default()
        }
    }

    #[test]
    fn each_phase_and_each_loaded_direction_has_its_numbers() {
        let text = numbers(&bufferscope_verdict::judge(&observed()), &observed());
        let row = |begin: &str| {
            let line = text.lines().find(|line| line.starts_with(begin)).unwrap_or_else(|| panic!("{begin}: {text}"));
            line[begin.len()..].split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(row("idle "), "12.0 12.0 12.0 12.0 - - -");
        assert_eq!(row("upload "), "102 102 102 102 90.0 C -");
        // 90 ms of 8 Mbit/s are 90 kB, and headers.
        assert_eq!(row("upload, up "), "90.0 90.0 90.0 90.0 0.0 % 8.00 0.0 90.0 93");
        assert!(text.contains("A+ below 5.0 ms, A below 30.0 ms"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 120 || line.starts_with("Grades by ")), "{text}");
    }

    #[test]
    fn nothing_known_is_a_dash_and_no_number() {
        let text = numbers(&bufferscope_verdict::judge(&Observations::default()), &Observations::default());
        assert_eq!(
            text.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>(),
            ["idle", "-", "-", "-", "-", "-", "-", "-"]
        );
        let censored = Spread { count: 10, lost: 5, max_ns: Some(20 * MS), censored: true, ..Spread::default() };
        assert_eq!(spread(&censored), ["> 20.0", "> 20.0", "> 20.0", "20.0"]);
    }
}
