//! The notes that users get about files that can be used, but may not mean what they say.

mod common;

use bufferscope_scenario::{Experiment, RateSchedule};
use common::{LAB, lab_unswept, lab_with, set};

const EXPLANATION: &str = "is 8 Mbit/s: in tc's units bps is bytes per second; write \"1mbit\" for 1 Mbit/s";

#[track_caller]
fn load(text: &str, overrides: &[String]) -> Experiment {
    Experiment::parse(text, "lab.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_rate_in_bits_needs_no_note() {
    assert!(load(LAB, &[]).notes().is_empty());
}

#[test]
fn a_rate_in_bytes_is_taken_as_tc_takes_it_and_noted() {
    let lab = load(&lab_with("\"10mbit\"", "\"1Mbps\""), &[]);
    assert_eq!(lab.notes(), [format!("link.bottleneck.rate: \"1Mbps\" {EXPLANATION}")], "once, at three points");
    assert!(lab.points().iter().all(|point| point.notes == lab.notes()));
    let rate = &lab.points()[0].scenario.links[1].forward.rate;
    assert_eq!(*rate, RateSchedule::constant(8_000_000));
}

#[test]
fn a_rate_in_bytes_is_noted_wherever_it_is() {
    let schedule = load(&lab_with("\"10mbit\"", "[[\"0s\", \"8mbit\"], [\"1s\", \"1mbps\"]]"), &[]);
    assert_eq!(schedule.notes(), [format!("link.bottleneck.rate[2][2]: \"1mbps\" {EXPLANATION}")]);
    let application = load(&lab_with("congestion = \"reno\"", "rate = \"1mbps\""), &[]);
    assert_eq!(application.notes(), [format!("traffic.bulk.rate: \"1mbps\" {EXPLANATION}")]);
    let changed = load(LAB, &set(["link.bottleneck.rate=1mbps"]));
    assert_eq!(changed.notes(), [format!("link.bottleneck.rate: \"1mbps\" {EXPLANATION}")]);
}

/// A note is about the value in effect.
#[test]
fn a_rate_that_is_overridden_needs_no_note() {
    let lab = load(&lab_with("\"10mbit\"", "\"1mbps\""), &set(["link.bottleneck.rate=8mbit"]));
    assert!(lab.notes().is_empty());
}

#[test]
fn of_a_sweep_each_point_has_the_notes_of_its_own_values() {
    let swept = lab_unswept() + "[sweep]\n\"link.bottleneck.rate\" = [\"8mbit\", \"1mbps\"]\n";
    let lab = load(&swept, &[]);
    let counts: Vec<usize> = lab.points().iter().map(|point| point.notes.len()).collect();
    assert_eq!((counts, lab.notes().len()), (vec![0, 1], 1));
}

#[test]
fn a_thousand_rates_in_bytes_make_a_few_lines() {
    let steps: Vec<String> = (0..1000).map(|second| format!("[\"{second}ms\", \"{}bps\"]", second + 1000)).collect();
    let lab = load(&lab_unswept().replace("\"10mbit\"", &format!("[{}]", steps.join(","))), &[]);
    let notes = lab.notes();
    assert_eq!((notes.len(), notes.last().map(String::as_str)), (11, Some("and more of the same kind")));
}
