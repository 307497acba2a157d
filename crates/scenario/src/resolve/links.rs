//! Links and their ports.

use std::collections::HashMap;

use super::nodes::Nodes;
use super::{overhead, ring, varying, wire};
use crate::error::{Problem, Problems};
use crate::file::{Link as LinkTable, Moment, PortSettings, Rate, RateSetting};
use crate::files::Traces;
use crate::link::{boost, stacked};
use crate::model::{Link, NodeIndex, Port, RateSchedule, RateStep};
use crate::path::join;
use crate::qdisc::{PacketLimit, Pfifo, Qdisc, TXQUEUELEN};
use crate::units::{RATE, TIME};

/// Most links in a scenario.
const MOST_LINKS: usize = 10_000;

pub(super) fn resolve(
    tables: &[LinkTable],
    nodes: &Nodes<'_>,
    traces: &Traces<'_>,
    problems: &mut Problems,
) -> Vec<Link> {
    if tables.len() > MOST_LINKS {
        let found = format!("{} links", tables.len());
        problems.add(|| Problem::new("link", found, format!("at most {MOST_LINKS}")));
    }
    check_ends(tables, problems);
    tables.iter().filter_map(|table| link(table, nodes, traces, problems)).collect()
}

fn check_ends(tables: &[LinkTable], problems: &mut Problems) {
    let mut seen = HashMap::new();
    for table in tables {
        let [a, b] = &table.ends;
        let path = || join(&join("link", table.name.as_str()), "ends");
        if a == b {
            problems.add(|| Problem::new(path(), format!("a link from \"{a}\" to itself"), "two different nodes"));
        }
        if let Some(first) = seen.insert((a.min(b), a.max(b)), &table.name) {
            let found = format!("a second link between \"{a}\" and \"{b}\" (the first is {first})");
            problems.add(|| Problem::new(path(), found, "one link between two nodes"));
        }
    }
}

fn link(table: &LinkTable, nodes: &Nodes<'_>, traces: &Traces<'_>, problems: &mut Problems) -> Option<Link> {
    let path = join("link", table.name.as_str());
    let [a, b] = &table.ends;
    let ends = [nodes.find(a, || path.clone(), problems)?, nodes.find(b, || path.clone(), problems)?];
    let ports = [("forward", &table.forward), ("reverse", &table.reverse)];
    if table.rate.is_none() && ports.iter().all(|(_, own)| own.rate.is_none()) {
        let LinkTable { queue, ring, boost, stacked, txqueuelen, .. } = table;
        let has = [queue.is_some(), ring.is_some(), boost.is_some(), stacked.is_some(), txqueuelen.is_some()];
        check_needs_rate(has, &path, problems);
    }
    let [forward, reverse] = ports.map(|(direction, own)| port(table, own, (&path, direction), traces, problems));
    Some(Link { name: table.name.to_string(), ends, forward: forward?, reverse: reverse? })
}

/// A direction's own settings take precedence over those of the link.
fn port(
    table: &LinkTable,
    own: &PortSettings,
    (link, direction): (&str, &str),
    traces: &Traces<'_>,
    problems: &mut Problems,
) -> Option<Port> {
    let own_path = join(link, direction);
    let (rate, rate_path) = match &own.rate {
        Some(rate) => (Some(rate), own_path.as_str()),
        None => (table.rate.as_ref(), link),
    };
    if rate.is_none() {
        let PortSettings { queue, ring, boost, stacked, txqueuelen, .. } = own;
        let has = [queue.is_some(), ring.is_some(), boost.is_some(), stacked.is_some(), txqueuelen.is_some()];
        check_needs_rate(has, &own_path, problems);
    }
    let (queue, queue_path) = match &own.queue {
        Some(queue) => (Some(queue), join(&own_path, "queue")),
        None => (table.queue.as_ref(), join(link, "queue")),
    };
    let (rate, variation) = match rate {
        Some(RateSetting::Varying(varying)) => {
            let variation = varying::resolve(varying, &join(rate_path, "rate"), traces, problems)?;
            (RateSchedule::constant(variation.mean_bps()), Some(variation))
        }
        Some(RateSetting::Constant(rate)) => (RateSchedule::constant(rate.get()), None),
        Some(RateSetting::Schedule(steps)) => (Some(schedule(steps, &join(rate_path, "rate"), problems)?), None),
        None => (None, None),
    };
    let is_constant = variation.is_none() && rate.as_ref().is_some_and(|rate| rate.steps().len() == 1);
    let boost = match (&rate, &own.boost, &table.boost) {
        (Some(rate), Some(boost), _) => {
            Some(boost::resolve(boost, rate.at(0), is_constant, &join(&own_path, "boost"), problems)?)
        }
        (Some(rate), None, Some(boost)) => {
            Some(boost::resolve(boost, rate.at(0), is_constant, &join(link, "boost"), problems)?)
        }
        _ => None,
    };
    let (stacked, stacked_path) = match &own.stacked {
        Some(stacked) => (Some(stacked), join(&own_path, "stacked")),
        None => (table.stacked.as_ref(), join(link, "stacked")),
    };
    let stacked = match stacked.filter(|_| rate.is_some()) {
        Some(stacked) => Some(stacked::resolve(stacked, &stacked_path, problems)?),
        None => None,
    };
    let (ring, ring_path) = match &own.ring {
        Some(ring) => (Some(ring), join(&own_path, "ring")),
        None => (table.ring.as_ref(), join(link, "ring")),
    };
    let delay_ns = own.delay.unwrap_or(table.delay).get();
    let faults = match (&own.wire, &table.wire) {
        (Some(keys), _) => Some(wire::resolve(keys, delay_ns, &join(&own_path, "wire"), problems)?),
        (None, Some(keys)) => Some(wire::resolve(keys, delay_ns, &join(link, "wire"), problems)?),
        (None, None) => None,
    };
    let txqueuelen = own.txqueuelen.or(table.txqueuelen).map_or(TXQUEUELEN, PacketLimit::get_u32);
    let encapsulation = match &own.overhead {
        Some(own) => overhead::resolve(own, &join(&own_path, "overhead"), problems)?,
        None => overhead::resolve(&table.overhead, &join(link, "overhead"), problems)?,
    };
    Some(Port {
        stacked,
        faults,
        ring: ring.filter(|_| rate.is_some()).and_then(|ring| ring::resolve(ring, &ring_path, problems)),
        rate,
        variation,
        boost,
        delay_ns,
        encapsulation,
        queue: match queue {
            Some(queue) => Qdisc::of_port(queue, txqueuelen, &queue_path, problems)?,
            None => Qdisc::Pfifo(Pfifo { limit_packets: txqueuelen }),
        },
    })
}

/// A link's port that sends from a node at one of its ends.
pub(super) fn port_of(link: &mut Link, node: NodeIndex) -> &mut Port {
    if link.ends[0] == node { &mut link.forward } else { &mut link.reverse }
}

/// Refuses a queue, ring, boost or stacked interface without a rate: the rate was probably forgotten.
fn check_needs_rate(has: [bool; 5], path: &str, problems: &mut Problems) {
    let parts = [
        ("queue", "queue"),
        ("ring", "ring"),
        ("boost", "boost"),
        ("stacked", "stacked interface"),
        ("txqueuelen", "txqueuelen"),
    ];
    for (key, what) in parts.into_iter().zip(has).filter_map(|(part, has)| has.then_some(part)) {
        let found = format!("a {what} on a link without a rate, where packets never queue");
        let hint = format!("set a rate, or remove the {what}");
        problems.add(|| Problem::new(join(path, key), found, format!("a {what} only together with a rate")).hint(hint));
    }
}

fn schedule(steps: &[(Moment, Rate)], path: &str, problems: &mut Problems) -> Option<RateSchedule> {
    let step = |(from, rate): &(Moment, Rate)| RateStep { from_ns: from.get(), bits_per_second: rate.get() };
    let steps: Vec<RateStep> = steps.iter().map(step).collect();
    if let Some(first) = steps.first().filter(|first| first.from_ns != 0) {
        let (time, rate) = (TIME.display(first.from_ns), RATE.display(first.bits_per_second));
        let problem = || Problem::new(path, format!("a first step at {time}"), "a first step at 0s");
        problems.add(|| problem().hint(format!("set the rate that applies before {rate}")));
    }
    for (i, pair) in steps.windows(2).enumerate() {
        if let [before, after] = pair
            && after.from_ns <= before.from_ns
        {
            let found = format!("{} after {}", TIME.display(after.from_ns), TIME.display(before.from_ns));
            problems.add(|| Problem::new(format!("{path}[{}]", i + 2), found, "steps in order of time"));
        }
    }
    RateSchedule::new(steps)
}
