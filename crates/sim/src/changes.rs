//! Which parts of a scenario can change while it is simulated.
//!
//! A change is the difference between two scenarios: the one that was asked for so far, and the one that is asked for
//! now. Both are complete, so that every value was checked together with all others.

use bufferscope_scenario::{Link, Scenario, Traffic, TrafficKind};
use serde::Serialize;

use crate::SimError;

/// A change that was made during a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// When it took effect: before everything else that happens at that time.
    pub t_ns: u64,
    /// What was changed, in the words of whoever asked for it, such as `link.bottleneck.rate=2mbit`.
    pub set: Vec<String>,
}

const OF_LINKS: &str = "of links, rate, delay and queue can change";
const OF_TRAFFIC: &str = "of traffic, stop can change, and flows of tcp without bytes";
const OF_ALL: &str = "rate, delay and queue of links can change, and stop and flows of traffic; traffic can be added";

/// Refuses differences between two scenarios that a network can't undergo at `now_ns`.
pub(crate) fn check(from: &Scenario, to: &Scenario, now_ns: u64) -> Result<(), SimError> {
    let whole = [
        ("duration", from.duration_ns != to.duration_ns),
        ("warmup", from.warmup_ns != to.warmup_ns),
        ("sample", (from.sample_interval_ns, from.flows_interval_ns) != (to.sample_interval_ns, to.flows_interval_ns)),
        ("record", from.record != to.record),
        ("sojourns", from.sojourns != to.sojourns),
        ("link", names(from).ne(names(to)) || from.links.len() != to.links.len()),
        ("host", from.nodes != to.nodes),
        ("traffic", from.traffic.len() > to.traffic.len()),
    ];
    refuse(&whole, "", OF_ALL)?;
    from.links.iter().zip(&to.links).try_for_each(|(from, to)| check_link(from, to))?;
    from.traffic.iter().zip(&to.traffic).try_for_each(|(from, to)| check_traffic(from, to, now_ns))?;
    let too_late = to.traffic[from.traffic.len()..].iter().find(|added| added.stop_ns <= now_ns);
    too_late.map_or(Ok(()), |added| {
        refuse(&[("stop", true)], &format!("traffic.{}.", added.name), "what begins now must stop later")
    })
}

/// The nodes, in the order in which links name them.
fn names(scenario: &Scenario) -> impl Iterator<Item = &str> {
    scenario.nodes.iter().map(|node| node.name.as_str())
}

fn check_link(from: &Link, to: &Link) -> Result<(), SimError> {
    let prefix = format!("link.{}.", from.name);
    refuse(&[("name", from.name != to.name), ("ends", from.ends != to.ends)], &prefix, OF_LINKS)?;
    for (from, to) in [(&from.forward, &to.forward), (&from.reverse, &to.reverse)] {
        let parts = [
            ("rate", from.rate.is_some() != to.rate.is_some()),
            ("overhead", from.overhead_bytes != to.overhead_bytes),
            ("ring", from.ring != to.ring),
        ];
        let hint = if parts[0].1 { "a link with a rate keeps one, and one without gets none" } else { OF_LINKS };
        refuse(&parts, &prefix, hint)?;
    }
    Ok(())
}

fn check_traffic(from: &Traffic, to: &Traffic, now_ns: u64) -> Result<(), SimError> {
    let prefix = format!("traffic.{}.", from.name);
    let parts = [
        ("name", from.name != to.name),
        ("from", from.from != to.from),
        ("to", from.to != to.to),
        ("start", from.start_ns != to.start_ns),
        ("dscp", from.dscp != to.dscp),
        ("kind", std::mem::discriminant(&from.kind) != std::mem::discriminant(&to.kind)),
    ];
    refuse(&parts, &prefix, OF_TRAFFIC)?;
    if kind_with_flows_of(&from.kind, &to.kind) != to.kind || flows(&from.kind) != flows(&to.kind) && !is_endless(from)
    {
        return Err(SimError::Fixed { key: prefix.trim_end_matches('.').to_owned(), hint: OF_TRAFFIC });
    }
    let is_over = from.stop_ns <= now_ns;
    refuse(&[("stop", from != to && is_over)], &prefix, "this traffic is over")?;
    let is_possible = (now_ns..=from.stop_ns).contains(&to.stop_ns) || from.stop_ns == to.stop_ns;
    refuse(&[("stop", !is_possible)], &prefix, "it can come earlier than planned, but not before now")
}

/// The number of flows, where it can change.
pub(crate) fn flows(kind: &TrafficKind) -> Option<u32> {
    match kind {
        TrafficKind::Tcp(tcp) => Some(tcp.flows),
        _ => None,
    }
}

/// `from` with the flows of `to`.
fn kind_with_flows_of(from: &TrafficKind, to: &TrafficKind) -> TrafficKind {
    let mut kind = from.clone();
    if let (TrafficKind::Tcp(kind), TrafficKind::Tcp(to)) = (&mut kind, to) {
        kind.flows = to.flows;
    }
    kind
}

fn is_endless(traffic: &Traffic) -> bool {
    matches!(&traffic.kind, TrafficKind::Tcp(tcp) if tcp.bytes.is_none())
}

fn refuse(parts: &[(&str, bool)], prefix: &str, hint: &'static str) -> Result<(), SimError> {
    match parts.iter().find(|part| part.1) {
        Some((key, _)) => Err(SimError::Fixed { key: format!("{prefix}{key}"), hint }),
        None => Ok(()),
    }
}
