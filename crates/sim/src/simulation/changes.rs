//! Changes to a running simulation.
//!
//! A change is the difference between two scenarios: the one requested before, and the one requested now. Both are
//! complete, so every value was checked together with all others.

use std::ops::ControlFlow;

use bufferscope_records::Sink;
use bufferscope_scenario::{Link, Port, Scenario, Traffic, TrafficKind};
use serde::Serialize;

use super::Simulation;
use crate::SimError;
use crate::hosts::streams::World;
use crate::network::qdisc;
use crate::network::qdisc::Qdisc;
use crate::network::routes::PortIndex;

/// A change that was made during a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// When it took effect: before everything else that happens at that time.
    pub t_ns: u64,
    /// What was changed, as the caller put it, such as `link.bottleneck.rate=2mbit`.
    pub set: Vec<String>,
}

const OF_LINKS: &str = "of links, rate, delay and queue can change";
const OF_TRAFFIC: &str = "of traffic, stop can change, and flows of tcp without bytes";
const OF_ALL: &str = "rate, delay and queue of links can change, and stop and flows of traffic; traffic can be added";

impl<S: Sink> Simulation<S> {
    /// Changes the network and the traffic to those of `to` from now on, as `tc` would on Linux. `set` says what was
    /// changed, for the [`Summary`].
    ///
    /// - A rate applies to the next frame; the one on the wire is finished at its own rate. A schedule's times count
    ///   from the start of the run.
    /// - A delay applies to the next packet. No packet overtakes an earlier one.
    /// - If parameters of a queue's discipline change, the discipline decides what happens to the queued packets.
    ///   Another discipline begins empty: the queued packets are dropped.
    /// - New traffic begins now, or at its start if that is later.
    /// - Traffic can stop earlier than planned, and a TCP traffic of endless flows can have more flows, or fewer: then
    ///   the newest end.
    ///
    /// # Errors
    /// [`SimError::Fixed`] for a difference that a running network can't undergo, and what [`Simulation::new`] would
    /// refuse. Then nothing was changed.
    pub fn change(&mut self, to: Scenario, set: Vec<String>) -> Result<(), SimError> {
        self.check_running()?;
        let now_ns = self.now_ns();
        check(&self.asked, &to, now_ns)?;
        let queues = self.changed_queues(&to)?;
        let adds_traffic = to.traffic.len() > self.asked.traffic.len();
        if adds_traffic {
            self.net.routes = self.net.routes.clone().extended(&to)?;
        }
        self.change_ports(&to, queues);
        self.change_traffic(&to);
        self.settle(&mut |_| ControlFlow::Continue(())).map_err(|stop| self.stop(stop))?;
        if adds_traffic {
            self.add_traffic(&to);
        }
        *self.asked = to;
        self.changes.push(Change { t_ns: now_ns, set });
        Ok(())
    }

    /// The queueing disciplines that differ, with their ports.
    fn changed_queues(&self, to: &Scenario) -> Result<Vec<(PortIndex, Qdisc)>, SimError> {
        let pairs = (0..).zip(ports_of(&self.asked).zip(ports_of(to)));
        let changed = pairs.filter(|(_, (from, to))| from.queue != to.queue);
        changed.map(|(port, _)| Ok((port, qdisc(to, port, self.seed, self.now_ns())?))).collect()
    }

    fn change_ports(&mut self, to: &Scenario, queues: Vec<(PortIndex, Qdisc)>) {
        let now_ns = self.now_ns();
        for (index, link) in to.links.iter().enumerate() {
            let (asked, now) = (&self.asked.links[index], &mut self.scenario.links[index]);
            let sides =
                [(&asked.forward, &link.forward, &mut now.forward), (&asked.reverse, &link.reverse, &mut now.reverse)];
            for (side, (from, to, now)) in sides.into_iter().enumerate() {
                let port = &mut self.net.ports[2 * index + side];
                if let (true, Some(rate), Some(before)) = (from.rate != to.rate, &to.rate, &mut now.rate) {
                    before.follow(rate, now_ns);
                    port.link.set_rate(rate, now_ns);
                }
                now.delay_ns = to.delay_ns;
                now.queue = to.queue.clone();
                port.link.set_delay(to.delay_ns);
            }
        }
        self.set_slots();
        self.net.set_pacing(to);
        for (port, queue) in queues {
            self.net.change_queue(port, queue, &mut self.recording);
        }
    }

    fn change_traffic(&mut self, to: &Scenario) {
        let Self { sources, connections, net, recording, .. } = self;
        for (index, (from, to)) in (0..).zip(self.asked.traffic.iter().zip(&to.traffic)) {
            if from.stop_ns != to.stop_ns {
                sources.bring_stop_forward(index, to.stop_ns, net);
            }
            if let (before, Some(flows)) = (flows(&from.kind), flows(&to.kind))
                && before != Some(flows)
            {
                sources.set_flows(index, flows, &mut World { connections, net, recording });
            }
        }
        for (now, to) in self.scenario.traffic.iter_mut().zip(&to.traffic) {
            now.stop_ns = to.stop_ns;
            now.kind.clone_from(&to.kind);
        }
    }

    fn add_traffic(&mut self, to: &Scenario) {
        let (now_ns, before) = (self.now_ns(), self.scenario.traffic.len());
        let added = to.traffic[before..].iter();
        self.scenario
            .traffic
            .extend(added.map(|traffic| Traffic { start_ns: traffic.start_ns.max(now_ns), ..traffic.clone() }));
        self.set_slots();
        self.sources.add(&self.scenario, self.seed, self.slots, &mut self.net, &mut self.recording);
    }

    /// Moves the events to slots that suffice for the current scenario.
    fn set_slots(&mut self) {
        self.slots = self.slots.changed(&self.scenario);
        self.net.set_slots(self.slots);
        self.connections.set_slots(self.slots);
    }
}

/// The ports' parameters, in the order of their indices.
fn ports_of(scenario: &Scenario) -> impl Iterator<Item = &Port> {
    scenario.links.iter().flat_map(|link| [&link.forward, &link.reverse])
}

/// Refuses differences between two scenarios that a network can't undergo at `now_ns`.
fn check(from: &Scenario, to: &Scenario, now_ns: u64) -> Result<(), SimError> {
    let whole = [
        ("duration", from.duration_ns != to.duration_ns),
        ("warmup", from.warmup_ns != to.warmup_ns),
        ("sample", (from.sample_interval_ns, from.flows_interval_ns) != (to.sample_interval_ns, to.flows_interval_ns)),
        ("record", from.record != to.record),
        ("sojourns", from.sojourns != to.sojourns),
        ("link", names(from).ne(names(to)) || from.links.len() != to.links.len()),
        ("wifi", from.wifi != to.wifi),
        ("host", from.nodes != to.nodes),
        ("traffic", from.traffic.len() > to.traffic.len()),
    ];
    refuse(&whole, "", OF_ALL)?;
    from.links.iter().zip(&to.links).try_for_each(|(from, to)| check_link(from, to))?;
    from.traffic.iter().zip(&to.traffic).try_for_each(|(from, to)| check_traffic(from, to, now_ns))?;
    let too_late = to.traffic[from.traffic.len()..].iter().find(|added| added.stop_ns <= now_ns);
    too_late.map_or(Ok(()), |added| {
        refuse(&[("stop", true)], &format!("traffic.{}.", added.entry()), "traffic that is added now must stop later")
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
            ("overhead", from.encapsulation != to.encapsulation),
            ("ring", from.ring != to.ring),
            ("boost", from.boost != to.boost),
            ("wire", from.faults != to.faults),
            ("rate", from.variation != to.variation),
            ("stacked", from.stacked != to.stacked),
        ];
        let hint = if parts[0].1 { "a link with a rate keeps one, and one without gets none" } else { OF_LINKS };
        refuse(&parts, &prefix, hint)?;
    }
    Ok(())
}

fn check_traffic(from: &Traffic, to: &Traffic, now_ns: u64) -> Result<(), SimError> {
    let prefix = format!("traffic.{}.", from.entry());
    let parts = [
        ("name", from.name != to.name),
        ("from", from.from != to.from),
        ("to", from.to != to.to),
        ("start", from.start_ns != to.start_ns),
        ("dscp", from.dscp != to.dscp),
        ("port", from.port != to.port),
        ("kind", std::mem::discriminant(&from.kind) != std::mem::discriminant(&to.kind)),
    ];
    refuse(&parts, &prefix, OF_TRAFFIC)?;
    if kind_with_flows_of(&from.kind, &to.kind) != to.kind || flows(&from.kind) != flows(&to.kind) && !is_endless(from)
    {
        return Err(SimError::Fixed { key: prefix.trim_end_matches('.').to_owned(), hint: OF_TRAFFIC });
    }
    let is_over = from.stop_ns <= now_ns;
    refuse(&[("stop", from != to && is_over)], &prefix, "this entry of traffic has stopped")?;
    let is_possible = (now_ns..=from.stop_ns).contains(&to.stop_ns) || from.stop_ns == to.stop_ns;
    refuse(&[("stop", !is_possible)], &prefix, "it can come earlier than planned, but not before now")
}

/// The number of flows, where it can change.
fn flows(kind: &TrafficKind) -> Option<u32> {
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
