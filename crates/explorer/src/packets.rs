//! What happened to the packets of the ports that the page watches.

use std::sync::{Arc, Mutex, MutexGuard};

use bufferscope_scenario::{PortIndex, Scenario, TrafficKind, WifiQueueing};
use bufferscope_sim::{Hook, Sighting, Tap};
use serde_json::json;

use crate::columns::Columns;

/// Events of a port that are logged at most: 60 s of a line of about 20 Mbit/s, in 10 MB.
const MOST_EVENTS: u32 = 1 << 19;
/// Ports that are watched at most.
const MOST_PORTS: usize = 16;
/// The ECN field of a packet that is marked (RFC 3168).
const CE: u8 = 0b11;
/// There is no packet in this slot.
const NONE: u32 = u32::MAX;

/// What can happen to a packet at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    /// It arrives at the queueing discipline.
    Enqueue = 0,
    /// It leaves the discipline for the ring, or for the driver of a port on the air.
    Ring = 1,
    /// Its transmission begins. On the air: it has ended.
    Transmit = 2,
    /// It arrives at the other end of the link.
    Arrived = 3,
    /// It is dropped, or lost on the wire.
    Dropped = 4,
    /// It is seen marked for the first time, directly before the event at which that is.
    Marked = 5,
    /// It leaves the discipline for the driver of another port, which has the same interface.
    Elsewhere = 6,
}

/// An event of a packet.
#[derive(Clone, Copy, Debug)]
struct Event {
    t_ns: u64,
    kind: Kind,
    packet: u32,
    flow: u16,
    bytes: u32,
}

/// The log of one port.
#[derive(Debug)]
struct Log {
    port: PortIndex,
    name: String,
    /// The packets at this port by the simulator's slot: the number that it has here, and whether it has been seen with CE.
    present: Vec<(u32, bool)>,
    /// Packets so far.
    packets: u32,
    /// Events so far.
    logged: u32,
    full_since_ns: Option<u64>,
    /// The page does not know yet that it is full.
    is_news: bool,
    events: Vec<Event>,
}

/// The logs of all watched ports. A clone has the same logs.
#[derive(Clone, Debug)]
pub(crate) struct Packets(Arc<Mutex<Logs>>);

#[derive(Debug)]
struct Logs {
    logs: Vec<Log>,
    from_ns: u64,
    until_ns: u64,
    flows: Flows,
    /// Ports whose packets wait in the queue of another port: they leave that one unseen.
    joined: Vec<PortIndex>,
}

/// The numbers of the flows.
#[derive(Clone, Debug)]
pub(crate) struct Flows {
    /// Of each entry of traffic: the number of its first flow, and how many it has.
    entries: Vec<(u16, u16)>,
    /// All flows.
    pub(crate) names: Vec<String>,
}

impl Flows {
    /// Flows that can have numbers of their own. What is more shares numbers.
    const MOST: usize = 4096;

    /// The flows of a run: each flow of `tcp`, `udp` and `bittorrent` has a number, all other traffic one for each entry.
    /// The scenarios are the first one, and what changes make of it: they may add traffic and flows.
    pub(crate) fn new(scenarios: &[&Scenario]) -> Self {
        let mut flows = Self { entries: Vec::new(), names: Vec::new() };
        let last = scenarios.iter().max_by_key(|scenario| scenario.traffic.len());
        for (index, traffic) in last.into_iter().flat_map(|scenario| scenario.traffic.iter().enumerate()) {
            let counts = scenarios.iter().filter_map(|scenario| scenario.traffic.get(index));
            let count = counts.map(|traffic| count(&traffic.kind)).max().unwrap_or(1);
            let own = (count as usize).min(Self::MOST.saturating_sub(flows.names.len())).max(1);
            flows.entries.push((flows.names.len() as u16, own as u16));
            match traffic.kind.flows().is_some() {
                true => flows.names.extend((1..=own).map(|number| format!("{}/{number}", traffic.name))),
                false => flows.names.push(traffic.name.clone()),
            }
        }
        flows
    }

    fn number(&self, traffic: u32, flow: Option<u32>) -> u16 {
        let (first, count) = self.entries.get(traffic as usize).copied().unwrap_or((0, 1));
        first + (flow.unwrap_or(1).saturating_sub(1) % u32::from(count)) as u16
    }
}

/// The number of flows of a kind of traffic at a time.
pub(crate) fn count(kind: &TrafficKind) -> u32 {
    kind.flows().unwrap_or(1)
}

/// The number of flows that a scenario has at a time, besides probes, calls and pages.
pub(crate) fn flows(scenario: &Scenario) -> u64 {
    scenario.traffic.iter().filter_map(|traffic| traffic.kind.flows()).map(u64::from).sum()
}

/// Each port whose packets wait in the queue of another port, and that one: on the air, an access point may have one queue
/// for all stations.
pub(crate) fn joined(scenario: &Scenario) -> impl Iterator<Item = (PortIndex, PortIndex)> {
    let shared = scenario.wifi.iter().filter(|wifi| matches!(wifi.queueing, WifiQueueing::Fifo { .. }));
    shared.flat_map(|wifi| {
        let mut ports = wifi.stations.iter().map(|station| {
            let is_forward = scenario.links[usize::from(station.link)].ends[0] == wifi.access_point;
            2 * PortIndex::from(station.link) + PortIndex::from(!is_forward)
        });
        let first = ports.next();
        ports.filter_map(move |port| Some((port, first?)))
    })
}

impl Packets {
    /// Logs for the ports of these names.
    pub(crate) fn new(scenario: &Scenario, watch: &[String], times: (u64, u64), flows: Flows) -> Self {
        let named = (0..).zip(scenario.port_names()).filter(|(_, name)| watch.contains(name));
        let log = |(port, name)| Log {
            port,
            name,
            present: Vec::new(),
            packets: 0,
            logged: 0,
            full_since_ns: None,
            is_news: false,
            events: Vec::new(),
        };
        let logs = named.take(MOST_PORTS).map(log).collect();
        let joined = joined(scenario).map(|(port, _)| port).collect();
        Self(Arc::new(Mutex::new(Logs { logs, from_ns: times.0, until_ns: times.1, flows, joined })))
    }

    /// Whether no port is watched.
    pub(crate) fn is_empty(&self) -> bool {
        self.logs().logs.is_empty()
    }

    /// Gives away what happened since the last call.
    pub(crate) fn drain(&self, columns: &mut Columns) {
        for log in &mut self.logs().logs {
            log.drain(columns);
        }
    }

    fn logs(&self) -> MutexGuard<'_, Logs> {
        self.0.lock().expect("no panic while it is locked")
    }
}

impl Tap for Packets {
    fn wants(&self, port: PortIndex, hook: Hook) -> bool {
        let logs = self.logs();
        logs.logs.iter().any(|log| log.port == port) || (hook == Hook::Ring && logs.joined.contains(&port))
    }

    fn see(&mut self, sighting: &Sighting) {
        let logs = &mut *self.logs();
        let flow = logs.flows.number(sighting.traffic, sighting.flow);
        let is_wanted = (logs.from_ns..logs.until_ns).contains(&sighting.t_ns);
        for log in &mut logs.logs {
            if log.port == sighting.port {
                log.see(sighting, flow, is_wanted);
            } else if sighting.hook == Hook::Ring && logs.joined.contains(&sighting.port) {
                log.lose(sighting, flow, is_wanted);
            }
        }
    }
}

impl Log {
    /// A packet is seen at another port. If it was here, it is no longer.
    fn lose(&mut self, sighting: &Sighting, flow: u16, is_wanted: bool) {
        let Some(present) = self.present.get_mut(sighting.slot as usize) else { return };
        let (packet, _) = std::mem::replace(present, (NONE, false));
        if packet != NONE && is_wanted {
            self.log(Event { t_ns: sighting.t_ns, kind: Kind::Elsewhere, packet, flow, bytes: sighting.ip_bytes });
        }
    }

    fn see(&mut self, sighting: &Sighting, flow: u16, is_wanted: bool) {
        let slot = sighting.slot as usize;
        if slot >= self.present.len() {
            self.present.resize(slot + 1, (NONE, false));
        }
        let has_ce = sighting.traffic_class & 0b11 == CE;
        let (kind, is_new, is_gone) = match sighting.hook {
            Hook::Qdisc => (Kind::Enqueue, true, false),
            Hook::Ring => (Kind::Ring, false, false),
            Hook::Wire => (Kind::Transmit, false, false),
            Hook::Arrived => (Kind::Arrived, false, true),
            Hook::Dropped => (Kind::Dropped, false, true),
        };
        // The segments of a packet that a queue has split are seen for the first time when they leave it.
        if is_new || self.present[slot].0 == NONE {
            self.present[slot] = (self.packets, has_ce);
            self.packets = self.packets.wrapping_add(1);
        }
        let (packet, had_ce) = std::mem::replace(&mut self.present[slot], (NONE, false));
        if !is_gone {
            self.present[slot] = (packet, had_ce || has_ce);
        }
        if !is_wanted {
            return;
        }
        let event = Event { t_ns: sighting.t_ns, kind, packet, flow, bytes: sighting.ip_bytes };
        if has_ce && !had_ce && kind != Kind::Dropped {
            self.log(Event { kind: Kind::Marked, ..event });
        }
        self.log(event);
    }

    fn log(&mut self, event: Event) {
        if self.logged < MOST_EVENTS {
            self.logged += 1;
            self.events.push(event);
        } else if self.full_since_ns.is_none() {
            self.full_since_ns = Some(event.t_ns);
            self.is_news = true;
        }
    }

    fn drain(&mut self, columns: &mut Columns) {
        if self.events.is_empty() && !self.is_news {
            return;
        }
        let name = self.name.as_str();
        columns.f64(["packets", name, "t_ns"], self.events.iter().map(|event| event.t_ns as f64));
        columns.u8(["packets", name, "kind"], self.events.iter().map(|event| event.kind as u8));
        columns.u32(["packets", name, "packet"], self.events.iter().map(|event| event.packet));
        columns.u16(["packets", name, "flow"], self.events.iter().map(|event| event.flow));
        columns.u32(["packets", name, "bytes"], self.events.iter().map(|event| event.bytes));
        if let Some(t_ns) = self.full_since_ns {
            columns.set(["packets", name, "truncated_at_ns"], json!(t_ns));
            self.is_news = false;
        }
        self.events.clear();
    }
}
