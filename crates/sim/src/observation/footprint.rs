//! Estimates, before a run begins, how much memory it will need.
//!
//! A run streams its rows and forgets traffic that is over. So its memory depends on how many connections, packets and
//! ports can exist at one time, and the scenario bounds each of these. Packets are bounded by the limits of the queues,
//! the capacity of the links, and the windows of the senders. Connections are bounded by how many the traffic has at a
//! time. The bounds are computed separately and added, so the estimate is more likely too large than too small. Its
//! constants are the sizes of the data structures.

use std::collections::BTreeMap;
use std::mem::size_of;

use bufferscope_scenario::sizes::MTU_BYTES;
use bufferscope_scenario::{Demand, Limit, NodeIndex, Port as PortParameters, Scenario, Table, Traffic};
use serde::Serialize;

use crate::SimError;
use crate::hosts::connection::Connection;
use crate::network::Flow;
use crate::network::packet::{Body, Header};
use crate::network::port::Port;
use crate::network::routes::{PortIndex, Routes, Step};
use crate::tcp;

/// A packet in the pool: header, body and link.
const PACKET_BYTES: u64 = (size_of::<Header>() + size_of::<Body>() + size_of::<u32>()) as u64;
/// A connection with its flow, its two timers (each takes four keys in the tree of events if the tree has just grown),
/// and the allocations of its programs and first segments.
const CONNECTION_BYTES: u64 = (size_of::<Connection>() + size_of::<Flow>() + 2 * 4 * size_of::<u128>()) as u64 + 1024;
/// A layer of a port in which packets queue. The histogram of its sojourn times takes a few octaves of 4 KiB each.
const PORT_BYTES: u64 = size_of::<Port>() as u64 + 40 * 1024;
/// Memory that every run needs: buffers for rows that are not written yet.
const BASE_BYTES: u64 = 32 << 20;
/// A full-size packet on the wire, and its payload.
const PACKET_BITS: u64 = MTU_BYTES as u64 * 8;
const SECOND_NS: u64 = 1_000_000_000;
/// A reader stores a cell of a column in nine bytes (including its share of the bitmap of nulls), and a second copy
/// while it computes.
const CELL_BYTES: u64 = 2 * 9;
/// Columns of the tables `flows` and `queues`; text columns count twice.
const FLOW_CELLS: u64 = 26;
const QUEUE_CELLS: u64 = 15;

/// The resources that a run will need: a rough estimate, more likely too large than too small.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Footprint {
    /// Memory while it runs.
    pub memory_bytes: u64,
    /// The name of the entry of traffic that takes most of the memory; `None` if none dominates.
    pub largest: Option<String>,
    /// Rows of the tables `flows` and `queues`.
    pub rows: u64,
    /// Memory needed to read these tables and compute with them.
    pub reading_bytes: u64,
}

/// Estimates the resources that a run of the scenario will need.
///
/// # Errors
/// Fails for traffic between nodes that no path joins, like [`run`](crate::run).
pub fn footprint(scenario: &Scenario) -> Result<Footprint, SimError> {
    let ports: Vec<&PortParameters> = scenario.ports().collect();
    let routes = Routes::new(scenario)?;
    let loads: Vec<Load> = scenario
        .traffic
        .iter()
        .map(|traffic| Load::new(scenario, traffic, path(scenario, &routes, traffic), &ports))
        .collect();
    let standing = standing(&loads, &ports);
    let parts: Vec<u64> = loads.iter().map(|load| load.memory_bytes(&standing)).collect();
    let with_rate = ports.iter().filter(|port| port.rate.is_some()).count() as u64;
    let radios = scenario.wifi.iter().map(|wifi| 2 * wifi.stations.len()).sum::<usize>();
    let besides = |port: &&PortParameters| u64::from(port.ring.is_some()) + u64::from(port.stacked.is_some());
    let layers = with_rate + ports.iter().map(besides).sum::<u64>() + radios as u64;
    let memory_bytes = parts.iter().fold(BASE_BYTES + layers * PORT_BYTES, |sum, part| sum.saturating_add(*part));
    let largest = parts.iter().zip(&scenario.traffic).max_by_key(|(part, _)| **part);
    let samples = |table| scenario.sampled_every_ns(table).map(|interval_ns| scenario.duration_ns / interval_ns + 1);
    let flow_rows = samples(Table::Flows)
        .map_or(0, |samples| loads.iter().map(|load| samples * load.sampled + load.begun).sum::<u64>());
    let queue_rows = samples(Table::Queues).map_or(0, |samples| samples * layers);
    Ok(Footprint {
        memory_bytes,
        largest: largest.filter(|(part, _)| **part > memory_bytes / 2).map(|(_, traffic)| traffic.name.clone()),
        rows: flow_rows + queue_rows,
        reading_bytes: (flow_rows * FLOW_CELLS + queue_rows * QUEUE_CELLS) * CELL_BYTES,
    })
}

/// The ports on the path of the data of an entry of traffic, from its source to its destination.
fn path(scenario: &Scenario, routes: &Routes, traffic: &Traffic) -> Vec<PortIndex> {
    let row = routes.row(traffic.to);
    let mut ports = Vec::new();
    let mut node: NodeIndex = traffic.from;
    while let Step::Forward(port) = routes.step(row, node) {
        ports.push(port);
        let link = &scenario.links[port as usize / 2];
        node = link.ends[1 - port as usize % 2];
    }
    ports
}

/// The connections and packets that an entry of traffic can have at one time.
#[derive(Debug)]
struct Load {
    path: Vec<PortIndex>,
    /// Connections at a time; the connections of these that send; all connections of the run.
    connections: u64,
    senders: u64,
    begun: u64,
    /// Number of flows in every sample.
    sampled: u64,
    /// Packets that it can have in the network if only its own windows or its rate limit it.
    demand: u64,
    /// Bits per second that it offers to the network.
    bits_per_second: u64,
    packet_bits: u64,
    /// Its sender remembers each packet.
    is_tcp: bool,
}

impl Load {
    fn new(scenario: &Scenario, traffic: &Traffic, path: Vec<PortIndex>, ports: &[&PortParameters]) -> Self {
        let path_properties = PathProperties::new(&path, ports);
        let lasts_ns = traffic.stop_ns.saturating_sub(traffic.start_ns);
        let load = Self {
            path,
            connections: 0,
            senders: 0,
            begun: 0,
            sampled: 0,
            demand: 0,
            // Twice the capacity of the path, because a window grows that fast.
            bits_per_second: path_properties.fastest_bps.saturating_mul(2),
            packet_bits: PACKET_BITS,
            is_tcp: true,
        };
        let window = |bytes: Option<u64>| {
            let [from, to] = [traffic.from, traffic.to].map(|node| &scenario.nodes[usize::from(node)].tcp);
            let most_bytes = from.wmem_max_bytes.min(to.rmem_max_bytes).min(bytes.unwrap_or(u64::MAX));
            let initial = u64::from(from.initial_window_packets);
            let doublings = lasts_ns / path_properties.round_trip_ns;
            let grown = initial.checked_shl(doublings.min(40) as u32).unwrap_or(u64::MAX);
            most_bytes.div_ceil(u64::from(tcp::Config::DEFAULT.mss_bytes)).min(grown.max(initial))
        };
        let sampled = traffic.kind.flows().unwrap_or(0).into();
        match traffic.kind.demand(lasts_ns) {
            Demand::Connections { at_a_time: connections, senders, begun, window_packets, bytes } => {
                let window = window_packets.map_or_else(|| window(bytes), u64::from);
                Self { connections, senders, begun, sampled, demand: senders * window, ..load }
            }
            Demand::Pages { interval_ns, bytes, connection_bytes, connections: each } => {
                let pages = lasts_ns.div_ceil(interval_ns);
                let at_a_time = path_properties.pages_at_a_time(8 * bytes, interval_ns, pages);
                let connections = at_a_time.saturating_mul(each);
                let demand = connections.saturating_mul(window(Some(connection_bytes)));
                let (senders, sampled) = (connections, connections);
                Self { connections, senders, begun: pages * each, sampled, demand, ..load }
            }
            Demand::Datagrams { streams, rate_bps, payload_bytes, lasts_ns } => {
                let packet_bits = 8 * (u64::from(payload_bytes) + 28);
                let bits_per_second = rate_bps / u64::from(payload_bytes.max(1)) * (packet_bits / 8);
                let demand = per_second(bits_per_second, lasts_ns) / packet_bits + streams;
                Self { sampled, demand, bits_per_second, packet_bits, is_tcp: false, ..load }
            }
            Demand::Little => Self { is_tcp: false, bits_per_second: 0, ..load },
        }
    }

    fn memory_bytes(&self, standing: &BTreeMap<PortIndex, u64>) -> u64 {
        let here: u64 = self.path.iter().filter_map(|port| standing.get(port)).sum();
        let packets = self.demand.min(here);
        // A sender remembers segments in flight, and lost segments until they are retransmitted. Acknowledgements
        // return.
        let remembered = if self.is_tcp { self.demand.min(2 * here + 10 * self.senders) } else { 0 };
        let acks = if self.is_tcp { packets / 2 } else { 0 };
        let bytes =
            [(packets + acks, PACKET_BYTES), (remembered, tcp::SENT_BYTES), (self.connections, CONNECTION_BYTES)];
        bytes.into_iter().fold(0_u64, |sum, (count, each)| sum.saturating_add(count.saturating_mul(each)))
    }
}

/// The load on one port.
#[derive(Debug)]
struct Inflow {
    /// Packets, and the size of the smallest of them.
    demand: u64,
    packet_bits: u64,
    bits_per_second: u64,
}

/// Packets that can be in each port, or on its wire, with this load.
fn standing(loads: &[Load], ports: &[&PortParameters]) -> BTreeMap<PortIndex, u64> {
    let mut inflows: BTreeMap<PortIndex, Inflow> = BTreeMap::new();
    for (load, port) in loads.iter().flat_map(|load| load.path.iter().map(move |port| (load, *port))) {
        let nothing = Inflow { demand: 0, packet_bits: PACKET_BITS, bits_per_second: 0 };
        let inflow = inflows.entry(port).or_insert(nothing);
        inflow.demand = inflow.demand.saturating_add(load.demand);
        inflow.packet_bits = inflow.packet_bits.min(load.packet_bits);
        inflow.bits_per_second = inflow.bits_per_second.saturating_add(load.bits_per_second);
    }
    inflows.into_iter().map(|(port, inflow)| (port, inflow.standing(ports[port as usize]))).collect()
}

impl Inflow {
    fn standing(&self, port: &PortParameters) -> u64 {
        let bps = port.fastest_bps().unwrap_or(self.bits_per_second);
        let propagating = per_second(bps, port.delay_ns) / self.packet_bits;
        // Traffic that arrives no faster than it leaves does not queue.
        let queues = port.rate.is_some() && self.bits_per_second > port.slowest_bps();
        let in_ring = port.ring.map_or(0, |ring| ring.room_packets().into());
        let queued = if queues { port.limit_packets(self.packet_bits / 8).saturating_add(in_ring) } else { 0 };
        self.demand.min(propagating.saturating_add(queued))
    }
}

/// The properties of a path.
#[derive(Debug)]
struct PathProperties {
    /// The highest and the lowest rate of its ports; `u64::MAX` if no port has a rate.
    fastest_bps: u64,
    slowest_bps: u64,
    round_trip_ns: u64,
}

impl PathProperties {
    fn new(path: &[PortIndex], ports: &[&PortParameters]) -> Self {
        let ports = || path.iter().map(|port| ports[*port as usize]);
        Self {
            fastest_bps: ports().filter_map(|port| port.fastest_bps()).max().unwrap_or(u64::MAX),
            slowest_bps: ports()
                .filter(|port| port.rate.is_some())
                .map(|port| port.slowest_bps())
                .min()
                .unwrap_or(u64::MAX),
            round_trip_ns: (2 * ports().map(|port| port.delay_ns).sum::<u64>()).max(1000),
        }
    }

    /// Pages in progress at one time. There are only a few if half of the path's rate carries them. Otherwise they pile
    /// up.
    fn pages_at_a_time(&self, page_bits: u64, interval_ns: u64, pages: u64) -> u64 {
        let carried_bits = per_second(self.slowest_bps / 2, interval_ns);
        if page_bits > carried_bits {
            let share = carried_bits as f64 / page_bits as f64;
            return (pages as f64 * (1.0 - share)).ceil() as u64;
        }
        // Some twenty round trips: handshake, slow start, a loss, and closing.
        (1 + 20 * self.round_trip_ns / interval_ns + page_bits / carried_bits).min(pages)
    }
}

/// The bounds of a port, as far as they matter here.
trait Bounds {
    fn slowest_bps(&self) -> u64;
    fn limit_packets(&self, packet_bytes: u64) -> u64;
}

impl Bounds for PortParameters {
    fn slowest_bps(&self) -> u64 {
        let steps = self.rate.iter().flat_map(|rate| rate.steps()).map(|step| step.bits_per_second);
        steps.chain(self.queue.shaper().map(|shaper| shaper.rate_bps)).min().unwrap_or(u64::MAX)
    }

    fn limit_packets(&self, packet_bytes: u64) -> u64 {
        match self.queue.limit() {
            Limit::Packets(packets) => packets,
            Limit::Bytes(bytes) => bytes / packet_bytes,
        }
    }
}

/// How many events happen in a time span, at `per_second`.
fn per_second(per_second: u64, ns: u64) -> u64 {
    u64::try_from(u128::from(per_second) * u128::from(ns) / u128::from(SECOND_NS)).unwrap_or(u64::MAX)
}
