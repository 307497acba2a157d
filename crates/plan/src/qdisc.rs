//! A queueing discipline as arguments of `tc qdisc add`.

use std::collections::BTreeSet;

use bufferscope_scenario::{Codel, Qdisc, Red, Scenario};

use super::{PlanError, units};

/// The queueing disciplines that a scenario's ports take, the shaper included; the propagation delay is not among them.
pub fn needed(scenario: &Scenario) -> BTreeSet<&'static str> {
    let ports = scenario.links.iter().flat_map(|link| [&link.forward, &link.reverse]);
    let rated = ports.filter(|port| port.rate.is_some());
    rated.flat_map(|port| [Some(kind(&port.queue)), port.ring.is_none().then_some("htb")]).flatten().collect()
}

/// The kernel's module that has a queueing discipline.
pub fn module(kind: &str) -> String {
    format!("sch_{}", if kind.ends_with("fifo") { "fifo" } else { kind })
}

/// Its name in Linux.
fn kind(qdisc: &Qdisc) -> &'static str {
    match qdisc {
        Qdisc::Pfifo(_) => "pfifo",
        Qdisc::Bfifo(_) => "bfifo",
        Qdisc::Red(_) => "red",
        Qdisc::Codel(_) => "codel",
    }
}

/// Its name and parameters; `port` is for errors.
pub(super) fn arguments(qdisc: &Qdisc, port: &str) -> Result<String, PlanError> {
    Ok(match qdisc {
        Qdisc::Pfifo(pfifo) => format!("pfifo limit {}", pfifo.limit_packets),
        Qdisc::Bfifo(bfifo) => format!("bfifo limit {}", within_u32(bfifo.limit_bytes, "limit", "sch_fifo", port)?),
        Qdisc::Red(red) => red_arguments(red, port)?,
        Qdisc::Codel(codel) => codel_arguments(codel, port)?,
    })
}

fn red_arguments(red: &Red, port: &str) -> Result<String, PlanError> {
    let bytes = |what, value| within_u32(value, what, "sch_red", port);
    Ok(format!(
        "red limit {} min {} max {} avpkt {} burst {} probability {} bandwidth {}{}",
        bytes("limit", red.limit_bytes)?,
        bytes("min", red.min_bytes)?,
        bytes("max", red.max_bytes)?,
        red.avpkt_bytes,
        red.burst_packets,
        red.probability,
        units::rate(red.bandwidth_bps),
        if red.ecn { " ecn" } else { "" },
    ))
}

fn codel_arguments(codel: &Codel, port: &str) -> Result<String, PlanError> {
    let time = |what, value_ns: u64| match value_ns % 1000 {
        0 => Ok(units::time(value_ns)),
        _ => Err(PlanError::TooFine { place: port.to_owned(), what, value_ns }),
    };
    let ce_threshold = match codel.ce_threshold_ns {
        Some(ns) => format!(" ce_threshold {}", time("ce_threshold", ns)?),
        None => String::new(),
    };
    Ok(format!(
        "codel limit {} target {} interval {}{ce_threshold} {}",
        codel.limit_packets,
        time("target", codel.target_ns)?,
        time("interval", codel.interval_ns)?,
        if codel.ecn { "ecn" } else { "noecn" },
    ))
}

fn within_u32(value: u64, what: &'static str, holder: &'static str, port: &str) -> Result<u64, PlanError> {
    let most = u64::from(u32::MAX);
    if value > most {
        return Err(PlanError::TooLarge { place: port.to_owned(), what, value, holder, most });
    }
    Ok(value)
}
