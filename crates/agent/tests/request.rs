//! A request that was damaged in transit is refused, or still makes sense. It never crashes the agent.

mod common;

use bufferscope_agent::Request;
use bufferscope_agent::shell::ShellRequest;
use bufferscope_plan::{Clock, DelayBy, Kernel, Plan};
use bufferscope_records::frame::PROTOCOL;
use common::scenario;
use proptest::prelude::*;
use serde_json::json;

const LAB: &str = r#"
title = "Two links"
duration = "10s"
link = [
  { name = "access", ends = ["h1", "r1"], delay = "5ms" },
  { name = "bottleneck", ends = ["r1", "h2"], rate = [["0s", "10mbit"], ["5s", "1mbit"]], queue = { qdisc = "codel" } },
]
traffic = [
  { name = "bulk", kind = "tcp", from = "h1", to = "h2" },
  { name = "ping", kind = "ping", from = "h1", to = "h2" },
]
"#;

/// Does everything that a request causes before anything is built.
fn follow(text: &[u8]) {
    if let Ok(request) = Request::read(text) {
        let guest = Kernel { clock: Clock::Virtual, ..Kernel::USUAL };
        for kernel in [Kernel::USUAL, Kernel { delay_by: DelayBy::Relay, ..Kernel::USUAL }, guest] {
            let _ = Plan::new(&request.scenario, kernel).map(|plan| plan.hosts(&request.scenario));
        }
    }
    let _ = serde_json::from_slice::<ShellRequest>(text);
}

fn requests() -> [Vec<u8>; 2] {
    let scenario = scenario(LAB);
    let run = json!({ "protocol": PROTOCOL, "scenario": scenario, "seed": 1, "options": { "delay": "relay" } });
    let shell = json!({ "on": "h1", "network": { "build": { "scenario": scenario, "with": [{ "on": "h2", "command": "true" }] } } });
    [run.to_string().into_bytes(), shell.to_string().into_bytes()]
}

#[test]
fn a_whole_request_is_read_and_one_cut_anywhere_is_not() {
    let [run, shell] = requests();
    assert!(Request::read(&run).is_ok());
    assert!(serde_json::from_slice::<ShellRequest>(&shell).is_ok());
    for length in 0..run.len() {
        assert!(Request::read(&run[..length]).is_err(), "cut at {length}");
    }
}

#[test]
fn a_request_of_another_version_is_refused_with_its_version() {
    for (request, cause) in [
        (json!({ "protocol": PROTOCOL + 1, "of": "tomorrow" }), format!("has version {}", PROTOCOL + 1)),
        (json!({ "scenario": scenario(LAB), "seed": 1 }), "states no version".to_owned()),
    ] {
        let error = Request::read(request.to_string().as_bytes()).unwrap_err().to_string();
        assert!(error.contains("different builds") && error.contains(&cause), "{error}");
    }
}

proptest! {
    #[test]
    fn a_changed_byte_is_refused_or_planned(which in 0_usize..2, at: prop::sample::Index, value in b' '..=b'~') {
        let mut text = requests()[which].clone();
        let at = at.index(text.len());
        text[at] = value;
        follow(&text);
    }

    #[test]
    fn a_changed_number_is_refused_or_planned(which: prop::sample::Index, number in "-?[0-9]{1,25}(e[0-9]{1,3})?") {
        let text = String::from_utf8(requests()[0].clone()).unwrap();
        let starts: Vec<usize> = text.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at).collect();
        let start = starts[which.index(starts.len())];
        let end = start + text[start..].find(|c: char| !c.is_ascii_digit()).unwrap();
        follow(format!("{}{number}{}", &text[..start], &text[end..]).as_bytes());
    }

    #[test]
    fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Request::read(&bytes).is_err());
        prop_assert!(serde_json::from_slice::<ShellRequest>(&bytes).is_err());
    }
}
