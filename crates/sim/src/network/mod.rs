//! Ports, routes and the packets in them: everything between two hosts.
//!
//! [`packet`] defines packets, [`segment`] the TCP segments that they carry, and [`traffic_class`] the DSCP and ECN
//! fields that queues read. [`truesize`] knows the memory that a packet takes in Linux. [`pool`] stores packets. A
//! [`port`] is a pipeline of a queueing discipline ([`qdisc`]), maybe a driver's [`ring`], and a [`link`], or shares a
//! channel ([`wifi`]); [`xmit`] has the results that it reports to the sending host. [`routes`] has each packet's next
//! port. A [`flow`] has an account of its packets; [`bookkeeping`] updates it after a queue's decisions. [`samples`] are
//! rows of the records, and a [`tap`] sees every packet.

mod bookkeeping;
mod flow;
pub(crate) mod link;
pub(crate) mod packet;
pub(crate) mod pool;
pub(crate) mod port;
pub(crate) mod qdisc;
pub(crate) mod ring;
pub(crate) mod routes;
mod samples;
pub(crate) mod segment;
mod segmentation;
pub(crate) mod tap;
pub(crate) mod traffic_class;
pub(crate) mod truesize;
pub(crate) mod wifi;
pub(crate) mod xmit;

use bufferscope_programs::Uniform;
use bufferscope_records::Name;
use bufferscope_scenario::{self as scenario, NodeIndex, Scenario};

pub(crate) use self::flow::{Account, Flow, Labels};
use self::packet::{Body, Header, Load, Role, TcpPacket};
use self::pool::{PacketId, Pool};
use self::port::{Below, Port};
use self::qdisc::layer::QdiscLayer;
use self::qdisc::{Attachment, Dequeued, Qdisc, QdiscEvents};
use self::routes::{PortIndex, Routes, Step};
use self::tap::{Hook, Tapped};
use self::traffic_class::{Ecn, TrafficClass};
use self::wifi::Medium;
use self::xmit::Xmit;
use crate::SimError;
use crate::event_queue::EventQueue;
use crate::observation::recording::AnyRecording;
use crate::random::{Random, Stream};
use crate::timer_slots::TimerSlots;
use crate::timers::Timers;

/// The longest time between a packet's arrival at a host and its arrival at the transport: interrupt, softirq,
/// scheduling.
///
/// The time is uniform between 0 and this value, and packets stay in order. Idle Linux hosts take a few microseconds.
/// Besides being realistic, this prevents flows from moving in lockstep, as they would with infinitely precise clocks
/// (Floyd and Jacobson, "On traffic phase effects in packet-switched gateways", 1992).
const HOST_LATENCY_NS: u64 = 10_000;

/// The network between the hosts.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) events: EventQueue,
    pub(crate) pool: Pool,
    pub(crate) ports: Vec<Port>,
    pub(crate) routes: Routes,
    /// The channels that ports share; `None` while one is in use.
    media: Vec<Option<Box<Medium>>>,
    /// The accounts of flows, by index. An index means the same flow as long as a packet of it may exist.
    pub(crate) flows: Vec<Flow>,
    /// Echo messages and datagrams dropped since this was last checked.
    pub(crate) lost: Vec<Body>,
    /// Segments that left their own host's queue, or were dropped in it, since this was last checked.
    pub(crate) departures: Vec<TcpPacket>,
    /// Packets fully sent on a link.
    pub(crate) hops: u64,
    /// Work done since progress was last reported: events, rows, and packets sent, delivered, dropped or marked.
    pub(crate) work: u64,
    /// Whether a packet was ever duplicated. From then on, the drop of one does not mean that its contents are lost.
    has_copies: bool,
    /// Flows whose last packet in the network was dropped since this was last checked.
    pub(crate) emptied: Vec<u32>,
    slots: TimerSlots,
    qdisc_events: QdiscEvents,
    /// Packets that were lost on the wires of these ports, and of which no account was taken yet.
    lost_on_wires: Vec<(PortIndex, PacketId)>,
    hosts: Random,
    seed: u64,
    /// The nodes of which a port's queue paces connections.
    pacing: Vec<bool>,
    /// The tap, if there is one.
    pub(crate) tapped: Option<Box<Tapped>>,
}

/// A packet as a host creates it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outbound {
    /// The host.
    pub(crate) from: NodeIndex,
    /// Row of the destination in the routing table.
    pub(crate) destination: u16,
    pub(crate) flow: u32,
    /// Total size and number of the IP packets that this packet is split into.
    pub(crate) ip_bytes: u32,
    pub(crate) frames: u32,
    pub(crate) ecn: Ecn,
    /// Whether the sender waits for it: if it has to queue at the host's port, it is added to `departures` when it
    /// leaves.
    pub(crate) awaited: bool,
    pub(crate) body: Body,
}

impl Network {
    pub(crate) fn new(scenario: &Scenario, seed: u64, slots: TimerSlots) -> Result<Self, SimError> {
        let mut ports = Vec::with_capacity(2 * scenario.links.len());
        for (index, link) in (0..).step_by(2).zip(&scenario.links) {
            for ((port, index), (from, to)) in
                link.ports().into_iter().zip(index..).zip([(0, 1), (1, 0)].map(|(a, b)| (link.ends[a], link.ends[b])))
            {
                let random = Random::new(seed, Stream::Link(index));
                let (queue, stacked) = (qdisc(scenario, index, seed, 0)?, stacked(scenario, index, seed)?);
                ports.push(Port::new(port, to, queue, stacked, Timers::of_node(from, seed), random));
            }
        }
        let mut routes = Routes::new(scenario)?;
        let media = wifi::media(scenario, seed, &mut ports, &mut routes);
        let mut network = Self {
            events: EventQueue::new(slots.ports(), slots.fixed()),
            pool: Pool::new(),
            ports,
            routes,
            media,
            flows: Vec::new(),
            lost: Vec::new(),
            departures: Vec::new(),
            hops: 0,
            work: 0,
            has_copies: false,
            emptied: Vec::new(),
            slots,
            qdisc_events: QdiscEvents::default(),
            lost_on_wires: Vec::new(),
            hosts: Random::new(seed, Stream::Hosts),
            seed,
            pacing: pacing(scenario),
            tapped: None,
        };
        (0..network.ports.len() as PortIndex).for_each(|port| network.schedule_timer(port));
        Ok(network)
    }

    /// Updates which nodes pace connections, after the queues have become those of this scenario.
    pub(crate) fn set_pacing(&mut self, scenario: &Scenario) {
        self.pacing = pacing(scenario);
    }

    /// Whether a queue at one of the node's ports paces the connections that begin there.
    pub(crate) fn is_pacing(&self, node: NodeIndex) -> bool {
        self.pacing[usize::from(node)]
    }

    /// The current time.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.events.now()
    }

    /// The account of a new flow. Its hash is that of the flow with this number of this entry of traffic.
    pub(crate) fn flow(&self, name: Name, account: Account, [traffic, number]: [u32; 2], labels: Labels) -> Flow {
        let hash = Random::new(self.seed, Stream::Hash { traffic, number }).next_u32();
        Flow { name, account, labels, hashes: [hash; 2], sent: 0, delivered: 0, dropped: 0, held: 0 }
    }

    /// The packets of a flow to one end have another hash from now on.
    pub(crate) fn rehash(&mut self, flow: u32, to: Role) {
        let hash = &mut self.flows[flow as usize].hashes[to as usize];
        *hash = Header::rehash(*hash);
    }

    /// A host sends a packet. Returns what the host's port did with it.
    pub(crate) fn send(&mut self, packet: &Outbound, recording: &mut AnyRecording<'_>) -> Xmit {
        let flow = &mut self.flows[packet.flow as usize];
        flow.sent += 1;
        self.work += 1;
        let header = Header {
            at_ns: 0,
            ip_bytes: packet.ip_bytes,
            frame_bytes: packet.ip_bytes,
            flow: packet.flow,
            hash: flow.hashes[packet.body.receiver_role() as usize],
            source: packet.from,
            destination: packet.destination,
            port: flow.labels.port,
            class: TrafficClass::new(flow.labels.dscp, packet.ecn),
            load: Load::of(packet.frames),
        };
        let id = self.pool.insert(header, packet.body);
        match self.routes.step(packet.destination, packet.from) {
            Step::Forward(port) => {
                let xmit = self.forward(id, port, recording);
                if packet.awaited && xmit.is_queued() {
                    if self.is_sending(id, port) {
                        self.await_freeing(id, port);
                    } else {
                        self.pool.header_mut(id).load.set_awaited();
                    }
                }
                xmit
            }
            Step::Deliver => unreachable!("the two ends of an entry of traffic are different nodes"),
        }
    }

    /// Whether no packet waits in the queue of a host's port towards a destination.
    pub(crate) fn has_empty_queue(&self, from: NodeIndex, destination: u16) -> bool {
        match self.routes.step(destination, from) {
            Step::Forward(port) => self.ports[port as usize].has_empty_queue(),
            Step::Deliver => true,
        }
    }

    /// Passes a packet to a port. Returns what the port did with it.
    #[inline]
    pub(crate) fn forward(&mut self, packet: PacketId, port: PortIndex, recording: &mut AnyRecording<'_>) -> Xmit {
        let now_ns = self.now();
        let below = self.ports[port as usize].below(now_ns);
        if below != Below::Wire {
            self.show(packet, port, Hook::Qdisc);
        }
        if below == Below::IdleLink
            && let Some(end_ns) = self.ports[port as usize].bypass(packet, now_ns, &mut self.pool)
        {
            recording.sojourn(port, now_ns, 0);
            self.propagate(packet, port, end_ns);
            self.settle_qdisc_events(port, recording);
            return Xmit::Left;
        }
        let xmit = self.ports[port as usize].accept(packet, below, now_ns, &mut self.pool, &mut self.qdisc_events);
        let sent = match below {
            Below::Wire => {
                self.propagate(packet, port, now_ns);
                None
            }
            Below::IdleLink => self.send_next(port, recording),
            Below::BusyLink => {
                self.await_link(port);
                None
            }
            // A packet in the ring still belongs to its sender.
            Below::Ring => {
                self.fill_ring(port, recording);
                None
            }
        };
        // A packet may also have been split, its last part dropped, and the others queued.
        let left = sent == Some(packet) || self.qdisc_events.has_dropped(packet);
        self.settle_qdisc_events(port, recording);
        if below == Below::BusyLink && self.ports[port as usize].radio.is_some() {
            self.radio_has_packets(port, recording);
        }
        if left { xmit.if_left() } else { xmit }
    }

    /// The link of a port is no longer stopped: packets are waiting for it, or a ring has to know.
    pub(crate) fn link_restarts(&mut self, port: PortIndex, recording: &mut AnyRecording<'_>) {
        if self.ports[port as usize].ring.is_some() {
            self.device_acts(port, recording);
            self.settle_qdisc_events(port, recording);
            return;
        }
        self.send_next(port, recording);
        self.settle_qdisc_events(port, recording);
    }

    /// A port's queue may have a packet for the layer below again, after it answered *not before now*.
    pub(crate) fn queue_is_due(&mut self, port: PortIndex, recording: &mut AnyRecording<'_>) {
        let now_ns = self.now();
        if self.ports[port as usize].ring.is_some() {
            self.fill_ring(port, recording);
        } else if self.ports[port as usize].is_ready(now_ns) {
            self.send_next(port, recording);
        }
        self.settle_qdisc_events(port, recording);
        self.radio_has_packets(port, recording);
    }

    /// The timer of a port's queue is due.
    pub(crate) fn timer_is_due(&mut self, port: PortIndex, recording: &mut AnyRecording<'_>) {
        let now_ns = self.now();
        let queue = self.ports[port as usize].queue.as_mut().expect("only queues have timers");
        queue.on_timer(now_ns, &mut self.pool, &mut self.qdisc_events);
        self.schedule_timer(port);
        self.settle_qdisc_events(port, recording);
    }

    /// Schedules the timer of a queue that has one. It fires before all other events of that time except samples, so it
    /// does not matter when it was scheduled.
    fn schedule_timer(&mut self, port: PortIndex) {
        if let Some(at_ns) = self.ports[port as usize].queue.as_ref().and_then(QdiscLayer::timer) {
            self.events.schedule_first(self.slots.timer(port), at_ns);
        }
    }

    /// Passes the next packet of a port's queue to its link, which is not stopped. Returns the packet, if there is one.
    #[inline]
    fn send_next(&mut self, port: PortIndex, recording: &mut AnyRecording<'_>) -> Option<PacketId> {
        let now_ns = self.now();
        match self.ports[port as usize].send_next(now_ns, &mut self.pool, &mut self.qdisc_events) {
            Dequeued::Packet(sent) => {
                self.note_departure(sent.packet);
                recording.sojourn(port, now_ns, sent.sojourn_ns);
                self.propagate(sent.packet, port, sent.end_ns);
                self.await_link(port);
                Some(sent.packet)
            }
            Dequeued::Nothing => None,
            Dequeued::NotBefore(at_ns) => {
                self.events.schedule(self.slots.queue(port), at_ns);
                None
            }
        }
    }

    /// Schedules the restart of a port's link if packets are waiting for it.
    #[inline(always)]
    fn await_link(&mut self, port: PortIndex) {
        let now_ns = self.now();
        if let Some(at_ns) = self.ports[port as usize].await_link(now_ns) {
            self.events.schedule(self.slots.link(port), at_ns);
        }
    }

    /// Puts a packet whose last bit is sent at `end_ns` on a port's delay line. (Here and below, a call would make a run
    /// with one flow 3 % slower.)
    #[inline(always)]
    fn propagate(&mut self, packet: PacketId, port: PortIndex, end_ns: u64) {
        self.show(packet, port, Hook::Wire);
        let Port { link, to, .. } = &mut self.ports[port as usize];
        let latency_ns = match self.routes.step(self.pool.header(packet).destination, *to) {
            Step::Deliver => self.hosts.below(HOST_LATENCY_NS),
            Step::Forward(_) => 0,
        };
        if link.is_faulty() {
            self.propagate_or_lose(packet, port, end_ns, latency_ns);
        } else if let Some(at_ns) = link.propagate(packet, end_ns, latency_ns, &mut self.pool) {
            self.events.schedule(self.slots.line(port), at_ns);
        }
    }

    /// The same for a link on which packets are lost, or overtake one another.
    #[cold]
    fn propagate_or_lose(&mut self, packet: PacketId, port: PortIndex, end_ns: u64, latency_ns: u64) {
        let mut first = None;
        let link = &mut self.ports[port as usize].link;
        if !link.propagate_or_lose(packet, end_ns, latency_ns, &mut first) {
            self.lost_on_wires.push((port, packet));
        }
        if let Some(at_ns) = first {
            self.events.schedule(self.slots.line(port), at_ns);
        }
    }

    /// Takes a packet that arrives now off a port's delay line, and says what the node there does with it. If no packet
    /// has arrived, schedules the line's next event.
    #[inline]
    pub(crate) fn next_arrival(&mut self, port: PortIndex) -> Option<(PacketId, Step)> {
        let now_ns = self.now();
        let Port { link, to, .. } = &mut self.ports[port as usize];
        let Some(packet) = link.arrival(now_ns, &self.pool) else {
            if let Some(at_ns) = link.next_arrival(&self.pool) {
                self.events.schedule(self.slots.line(port), at_ns);
            }
            return None;
        };
        let step = self.routes.step(self.pool.header(packet).destination, *to);
        self.hops += 1;
        self.work += 1;
        self.show(packet, port, Hook::Arrived);
        Some((packet, step))
    }

    /// The packet has reached its destination: frees it and returns its contents; `None` if its checksum is wrong.
    #[inline]
    pub(crate) fn deliver(&mut self, packet: PacketId) -> Option<(Body, Ecn)> {
        let header = *self.pool.header(packet);
        self.flows[header.flow as usize].delivered += 1;
        if header.load.is_corrupt() {
            self.discard(packet);
            return None;
        }
        self.pool.remove(packet);
        Some((*self.pool.body(packet), header.class.ecn()))
    }

    /// Changes the queueing discipline of a port, or its parameters. At time 0, the result is the same as if the
    /// network had been built with it.
    pub(crate) fn change_queue(&mut self, port: PortIndex, to: Qdisc, recording: &mut AnyRecording<'_>) {
        let now_ns = self.now();
        if let Some(queue) = &mut self.ports[port as usize].queue {
            if now_ns == 0 {
                queue.begin_with(to);
            } else {
                queue.change(to, &self.pool, &mut self.qdisc_events);
            }
            if self.slots.queues_keep_time() {
                self.events.cancel(self.slots.timer(port));
                self.schedule_timer(port);
            }
        }
        self.settle_qdisc_events(port, recording);
    }

    /// Puts the events into the slots of another layout.
    pub(crate) fn set_slots(&mut self, slots: TimerSlots) {
        let before = std::mem::replace(&mut self.slots, slots);
        let slot = |slot| slots.slot(before.target(slot));
        self.events = self.events.renumbered(slots.ports(), slots.fixed(), slot);
    }

    /// The number of each flow's packets in the network, counted by looking at every packet.
    pub(crate) fn count_under_way(&self) -> Vec<u64> {
        let mut under_way = vec![0; self.flows.len()];
        for packet in self.ports.iter().flat_map(|port| port.packets(&self.pool)) {
            under_way[self.pool.header(packet).flow as usize] += 1;
        }
        under_way
    }
}

/// Whether a queue at one of a node's ports paces connections (in Linux, when it sees their first packet).
fn pacing(scenario: &Scenario) -> Vec<bool> {
    let mut pacing = vec![false; scenario.nodes.len()];
    for link in &scenario.links {
        for (node, port) in link.ends.into_iter().zip([&link.forward, &link.reverse]) {
            pacing[usize::from(node)] |= port.rate.is_some() && port.queue.paces();
        }
    }
    pacing
}

/// The queueing discipline of a port, empty, as it is attached at `now_ns`.
pub(crate) fn qdisc(scenario: &Scenario, index: PortIndex, seed: u64, now_ns: u64) -> Result<Qdisc, SimError> {
    let (port, attachment) = attachment(scenario, index, seed, now_ns);
    Qdisc::new(&port.queue, attachment).map_err(|reason| refused(scenario, index, reason))
}

/// The discipline of the interface on top of a port's, if there is one.
fn stacked(scenario: &Scenario, index: PortIndex, seed: u64) -> Result<Option<Qdisc>, SimError> {
    let (port, attachment) = attachment(scenario, index, seed, 0);
    let qdisc = port.stacked.as_ref().map(|parameters| Qdisc::new(parameters, attachment.on_top()));
    qdisc.transpose().map_err(|reason| refused(scenario, index, reason))
}

fn attachment(scenario: &Scenario, index: PortIndex, seed: u64, now_ns: u64) -> (&scenario::Port, Attachment) {
    let (link, side) = (&scenario.links[index as usize / 2], index as usize % 2);
    let port = link.ports()[side];
    (port, Attachment { port: index, node: link.ends[side], encapsulation: port.encapsulation, seed, now_ns })
}

fn refused(scenario: &Scenario, index: PortIndex, reason: String) -> SimError {
    let names = scenario.links[index as usize / 2].port_names(&scenario.nodes);
    SimError::Qdisc { port: names[index as usize % 2].clone(), reason }
}
