//! The commands that build a network, as a reviewer reads them.

mod common;

use bufferscope_agent::plan::{DelayBy, Plan, PlanError};
use common::scenario;

fn script(toml: &str, delay_by: DelayBy) -> String {
    Plan::new(&scenario(toml), delay_by).unwrap().script().to_string()
}

fn error(toml: &str) -> PlanError {
    Plan::new(&scenario(toml), DelayBy::Netem).unwrap_err()
}

/// The network of the UCAS lab: a delay on both links, a rate on the second.
const LAB: &str = r#"
title = "Two links"
duration = "60s"
link = [
  { name = "access", ends = ["h1", "r1"], delay = "5ms" },
  { name = "bottleneck", ends = ["r1", "h2"], rate = "10mbit", delay = "5ms", queue = { qdisc = "pfifo", limit = "100p" } },
]
traffic = [{ name = "bulk", kind = "tcp", from = "h1", to = "h2", congestion = "reno" }]
"#;

#[test]
fn the_lab_with_delays_by_the_kernel() {
    insta::assert_snapshot!(script(LAB, DelayBy::Netem));
}

#[test]
fn the_lab_with_delays_by_the_relay_differs_in_the_delay_namespaces_only() {
    let (netem, relay) = (script(LAB, DelayBy::Netem), script(LAB, DelayBy::Relay));
    let only_netem: Vec<&str> = netem.lines().filter(|line| !relay.contains(line)).collect();
    insta::assert_snapshot!(only_netem.join("\n"));
    assert!(relay.lines().all(|line| netem.contains(line)));
}

/// Each direction its own rate, queue and delay; ADSL's overhead; a rate that changes; names that can't be devices'.
#[test]
fn directions_overheads_schedules_and_names() {
    let toml = r#"
        title = "Asymmetric"
        duration = "60s"
        traffic = [{ name = "bulk", kind = "tcp", from = "a-very-long-host-name", to = "server" }]
        [[link]]
        name = "dsl"
        ends = ["a-very-long-host-name", "server"]
        overhead = "40b"
        forward = { rate = "1mbit", delay = "1500us", queue = { qdisc = "codel", target = "15ms", interval = "150ms", ecn = true } }
        reverse = { rate = [["0s", "100mbit"], ["10s", "10mbit"], ["20.5s", "1gbit"]], queue = { qdisc = "red", limit = "1000000b", avpkt = "1000b" } }
        [[host]]
        name = "server"
        tcp = { initial_window = 20, rmem_max = "1mb" }
    "#;
    insta::assert_snapshot!(script(toml, DelayBy::Netem));
}

/// A ring of four routers: from h1 to h2 both ways round are equally long, and the link named first wins.
#[test]
fn among_equally_short_ways_the_first_link_wins() {
    let toml = r#"
        title = "Ring"
        duration = "1s"
        link = [
          { name = "h1-a", ends = ["h1", "a"] }, { name = "a-b", ends = ["a", "b"] }, { name = "a-c", ends = ["a", "c"] },
          { name = "b-d", ends = ["b", "d"] }, { name = "c-d", ends = ["c", "d"] }, { name = "d-h2", ends = ["d", "h2"] },
        ]
        traffic = [{ name = "bulk", kind = "tcp", from = "h1", to = "h2" }]
    "#;
    let script = script(toml, DelayBy::Netem);
    let routes: Vec<&str> = script.lines().filter(|line| line.contains(" route add ")).collect();
    insta::assert_snapshot!(routes.join("\n"));
}

#[test]
fn what_linux_cannot_hold_is_refused_by_name() {
    let toml =
        LAB.replace(r#"queue = { qdisc = "pfifo", limit = "100p" }"#, r#"queue = { qdisc = "bfifo", limit = "5gb" }"#);
    let expected = "r1>h2: limit 5368709120 is more than Linux' sch_fifo can hold (4294967295)";
    assert!(error(&toml).to_string().starts_with(expected), "{}", error(&toml));
}

#[test]
fn times_finer_than_codel_counts_are_refused() {
    let toml = LAB.replace(r#"qdisc = "pfifo", limit = "100p""#, r#"qdisc = "codel", target = "1500ns""#);
    assert!(error(&toml).to_string().contains("target of 1500ns is not a whole number of microseconds"));
}

#[test]
fn a_scenario_with_dangling_indices_is_refused() {
    let mut broken = scenario(LAB);
    broken.traffic[0].to = 7;
    assert_eq!(
        Plan::new(&broken, DelayBy::Netem).unwrap_err(),
        PlanError::Malformed("traffic `bulk` is not between two nodes".into())
    );
}
