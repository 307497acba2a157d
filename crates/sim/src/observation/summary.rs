//! The totals of a run, besides its records.

use std::collections::BTreeMap;

use bufferscope_scenario::Scenario;
use serde::Serialize;

use crate::Change;
use crate::network::port::Port;
use crate::network::wifi::Radio;
use crate::network::{Account, Flow};

/// The totals of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary<Output> {
    /// Events handled.
    pub events: u64,
    /// Packets fully sent on a link. A packet counts once for every link that it took.
    pub hops: u64,
    /// The time when the run was over: the scenario's duration, or when the last probe was answered or given up.
    pub ended_ns: u64,
    /// Packets by port, in the order of the scenario's links, forward first.
    pub ports: Vec<PortPackets>,
    /// Packets by flow, in the order of the scenario's traffic.
    pub flows: Vec<FlowPackets>,
    /// Warnings for the user, one sentence each.
    pub warnings: Vec<String>,
    /// What was changed during the run, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// The output of the records' sink.
    #[serde(skip)]
    pub output: Output,
}

/// Where the packets that entered a port are: `arrived = dropped + queued + sent` and
/// `sent = in_ring + in_flight + delivered`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PortPackets {
    /// `r1>h2`.
    pub port: String,
    /// Passed to the port.
    pub arrived: u64,
    /// Dropped by its queueing discipline, on arrival or later, or lost on the wire.
    pub dropped: u64,
    /// Still queued at the end of the run.
    pub queued: u64,
    /// Taken from the queue by the wire, or by the ring, and not lost on the wire.
    pub sent: u64,
    /// Waiting in the ring, or in the driver of a port on the air, at the end of the run.
    pub in_ring: u64,
    /// On the wire or propagating at the end of the run.
    pub in_flight: u64,
    /// Arrived at the other end of the link.
    pub delivered: u64,
    /// Marked with Congestion Experienced.
    pub marked: u64,
}

/// Where the packets of a flow are, both directions together: `sent = delivered + dropped + under_way`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowPackets {
    /// For example `bulk/1`. The pages of a `web` entry share one account, which has the name of the entry.
    pub flow: String,
    /// Sent by its two hosts.
    pub sent: u64,
    /// Received by its two hosts.
    pub delivered: u64,
    /// Dropped on the way.
    pub dropped: u64,
    /// In a port at the end of the run, counted individually there.
    pub under_way: u64,
}

/// The accounts of flows, in the order of the traffic.
#[derive(Debug, Default)]
pub(crate) struct Accounts(BTreeMap<Account, FlowPackets>);

impl Accounts {
    pub(crate) fn add(&mut self, flow: &Flow, under_way: u64) {
        let empty = FlowPackets { flow: String::new(), sent: 0, delivered: 0, dropped: 0, under_way: 0 };
        let total = self.0.entry(flow.account).or_insert(empty);
        total.sent += flow.sent;
        total.delivered += flow.delivered;
        total.dropped += flow.dropped;
        total.under_way += under_way;
    }

    pub(crate) fn into_flows(self, scenario: &Scenario) -> Vec<FlowPackets> {
        let named = |(account, packets): (Account, FlowPackets)| {
            let traffic = &scenario.traffic[account.traffic as usize].name;
            let flow = account.number.map_or_else(|| traffic.clone(), |number| format!("{traffic}/{number}"));
            FlowPackets { flow, ..packets }
        };
        self.0.into_iter().map(named).collect()
    }
}

pub(crate) fn ports(scenario: &Scenario, ports: &[Port]) -> Vec<PortPackets> {
    let counts = |(port, name): (&Port, String)| {
        let (link, queue) = (&port.link, port.queue.as_ref());
        let queue_counts = queue.map(|queue| queue.counts).unwrap_or_default();
        if let Some(radio) = &port.radio {
            return radio_packets(name, port, radio);
        }
        PortPackets {
            port: name,
            arrived: queue.map_or(link.accepted() + link.lost(), |queue| queue.counts.arrived),
            dropped: queue_counts.dropped + link.lost(),
            queued: queue.map_or(0, |queue| queue.backlog().packets),
            sent: queue.map_or(link.accepted(), |queue| queue.counts.left - link.lost()),
            in_ring: port.ring.as_ref().map_or(0, |ring| ring.waiting().packets().into()),
            in_flight: link.in_flight(),
            delivered: link.delivered(),
            marked: queue_counts.marked,
        }
    };
    ports.iter().zip(scenario.port_names()).map(counts).collect()
}

/// The packets of a port on the air. Those that its queue has passed to another port's driver are counted there.
fn radio_packets(port: String, Port { queue, link, .. }: &Port, radio: &Radio) -> PortPackets {
    let queue_counts = queue.as_ref().map(|queue| queue.counts).unwrap_or_default();
    let queued = queue.as_ref().map_or(0, |queue| queue.backlog().packets);
    let arrived = match queue {
        Some(_) => queue_counts.arrived - radio.counts.entered_elsewhere,
        None => radio.counts.entered,
    };
    PortPackets {
        port,
        arrived,
        dropped: queue_counts.dropped + radio.counts.dropped + link.lost(),
        queued,
        sent: radio.backlog().packets + link.accepted(),
        in_ring: radio.backlog().packets,
        in_flight: link.in_flight(),
        delivered: link.delivered(),
        marked: queue_counts.marked,
    }
}

pub(crate) fn warnings(scenario: &Scenario, ports: &[Port]) -> Vec<String> {
    let warning = |(port, name): (&Port, String)| {
        let warning = port.queue.as_ref()?.warning()?;
        Some(format!("{name}: {warning}"))
    };
    ports.iter().zip(scenario.port_names()).filter_map(warning).collect()
}
