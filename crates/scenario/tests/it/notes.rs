//! The notes that users get about files that can be used, but may not mean what they say.

use crate::common::{LAB, lab_unswept, lab_with, set};
use bufferscope_scenario::{Experiment, RateSchedule};

const EXPLANATION: &str = "is 8 Mbit/s: in tc's units bps is bytes per second; write \"1mbit\" for 1 Mbit/s";

#[track_caller]
fn load(text: &str, overrides: &[String]) -> Experiment {
    Experiment::parse(text, "lab.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_rate_in_bits_needs_no_note() {
    assert!(load(&LAB, &[]).notes().is_empty());
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
    let changed = load(&LAB, &set(["link.bottleneck.rate=1mbps"]));
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

/// The notes of a line of 2 Mbit/s with these keys, without their hints.
fn of_line(keys: &str) -> Vec<String> {
    let text = format!(
        r#"
        title = "A line"
        duration = "1s"
        link = [{{ name = "line", ends = ["a", "b"], rate = "2mbit", {keys} }}]
        traffic = [{{ name = "t", kind = "tcp", from = "a", to = "b" }}]
        "#
    );
    let notes = load(&text, &[]).notes();
    notes.into_iter().map(|note| note.split(", which").next().unwrap_or_default().to_owned()).collect()
}

const CAKE: &str = r#"qdisc = "cake", bandwidth = "2mbit""#;

/// 1500 bytes over PPPoE and LLC are 33 cells, or 1749 bytes. Of these, cake takes 14 off and adds 40: 37 cells.
#[test]
fn an_overhead_of_the_link_beside_one_of_cake_is_noted() {
    let twice = "cake counts 1961 bytes for an IP packet of 1500 bytes";
    let queue = format!(r#"queue = {{ {CAKE}, framing = "pppoe-llcsnap" }}"#);
    let both = ["forward", "reverse"].map(|direction| format!("link.line.{direction}.queue: {twice}"));
    assert_eq!(of_line(&format!(r#"overhead = "pppoe-llcsnap", {queue}"#)), both);
    assert_eq!(of_line(&format!(r#"forward.overhead = "pppoe-llcsnap", {queue}"#)), both[..1]);
    assert_eq!(of_line(&format!(r#"overhead = "pppoe-llcsnap", reverse.{queue}"#)), both[1..]);
    let word =
        format!(r#"forward = {{ overhead = "pppoe-llcsnap", queue = {{ {CAKE}, overhead = "pppoe-llcsnap" }} }}"#);
    assert_eq!(of_line(&word), both[..1]);
}

#[test]
fn it_is_noted_for_inner_disciplines_cells_shortest_packets_and_netem() {
    let noted = |queue: &str, overhead: &str| {
        let notes = of_line(&format!("forward = {{ overhead = {overhead}, queue = {{ {queue} }} }}"));
        assert_eq!(notes.len(), 1, "{queue}, {overhead}");
    };
    let docsis = r#""docsis""#;
    noted(&format!("{CAKE}, overhead = 18"), docsis);
    noted(&format!("{CAKE}, raw = true, overhead = 4"), docsis);
    noted(&format!(r#"{CAKE}, atm = "ptm""#), docsis);
    noted(&format!("{CAKE}, mpu = 84"), docsis);
    noted(&format!("{CAKE}, overhead = 18"), "0");
    noted(&format!(r#"qdisc = "prio", inner = [{{ {CAKE}, overhead = 18 }}, {{ qdisc = "pfifo" }}]"#), docsis);
    let class = format!(r#"one = {{ rate = "2mbit", inner = {{ {CAKE}, overhead = 18 }} }}"#);
    noted(&format!(r#"qdisc = "htb", default = "one", class = {{ {class} }}"#), docsis);
    noted(r#"qdisc = "netem", rate = "2mbit", packetoverhead = 4"#, docsis);
    noted(r#"qdisc = "netem", rate = "2mbit", cellsize = 48, celloverhead = 5"#, docsis);
}

#[test]
fn one_overhead_alone_needs_no_note_and_neither_do_equal_lengths() {
    let silent = |keys: &str| assert_eq!(of_line(keys), Vec::<String>::new(), "{keys}");
    silent(&format!(r#"overhead = "pppoe-llcsnap", queue = {{ {CAKE} }}"#));
    silent(&format!(r#"queue = {{ {CAKE}, framing = "pppoe-llcsnap" }}"#));
    silent(&format!(r#"overhead = "docsis", queue = {{ {CAKE}, framing = "raw" }}"#));
    // 14 bytes off and 14 on are the link's own lengths.
    silent(&format!(r#"overhead = "docsis", queue = {{ {CAKE}, overhead = 14 }}"#));
    silent(r#"overhead = "docsis", queue = { qdisc = "cake", overhead = 18 }"#);
    silent(r#"overhead = "docsis", queue = { qdisc = "netem", rate = "2mbit" }"#);
    silent(r#"overhead = "docsis", queue = { qdisc = "tbf", rate = "1mbit", burst = "5kb", limit = "150kb" }"#);
}
