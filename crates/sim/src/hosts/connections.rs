//! The TCP connections: runs their timers and passes their segments to and from the network.

use std::ops::Range;

use bufferscope_programs::ConnectionEvents;
use bufferscope_records::{FlowRow, FlowState, Name};
use bufferscope_scenario::NodeIndex;

use super::connection::{Connection, Id, Opening};
use crate::network::packet::{Body, Role, TcpPacket};
use crate::network::traffic_class::Ecn;
use crate::network::xmit::Xmit;
use crate::network::{Network, Outbound};
use crate::observation::recording::AnyRecording;
use crate::observation::state_log::StateLog;
use crate::observation::summary::Accounts;
use crate::tcp::{Egress, Outgoing, Sample, State, Thresholds};
use crate::timer_slots::TimerSlots;

/// All connections. A closed connection is forgotten once its last packet has left the network; its slot in the table
/// is then reused. So the memory that a run needs grows with the connections that exist at the same time, not with
/// their total.
#[derive(Debug)]
pub(crate) struct Connections {
    table: Vec<Option<Connection>>,
    free: Vec<u32>,
    /// Slots of the connections to check for forgetting after the current event; may contain duplicates.
    closed: Vec<u32>,
    /// Totals of the packets of forgotten connections.
    forgotten: Accounts,
    /// What the hosts remember of connections that have ended.
    thresholds: Thresholds,
    slots: TimerSlots,
    /// The flow of the connection in each slot. A slot keeps its flow, so these ascend.
    flows: Vec<u32>,
    /// Sees what changes in the data senders.
    log: Option<Box<dyn StateLog>>,
}

impl Connections {
    pub(crate) fn new(slots: TimerSlots) -> Self {
        Self {
            table: Vec::new(),
            free: Vec::new(),
            closed: Vec::new(),
            forgotten: Accounts::default(),
            thresholds: Thresholds::default(),
            slots,
            flows: Vec::new(),
            log: None,
        }
    }

    /// From now on, connections that are opened are logged.
    pub(crate) fn set_log(&mut self, log: Box<dyn StateLog>) {
        self.log = Some(log);
    }

    /// Sets the slots of the events, which have moved.
    pub(crate) fn set_slots(&mut self, slots: TimerSlots) {
        self.slots = slots;
    }

    /// Opens a connection: the client's SYN is sent now. Returns its slot in the table.
    pub(crate) fn open(&mut self, opening: &Opening, net: &mut Network, recording: &mut AnyRecording<'_>) -> u32 {
        let mut connection = Connection::new(opening, net, &self.thresholds);
        if let Some(log) = &mut self.log {
            connection.begin_log(net.now(), opening, &mut **log);
        }
        let account = connection.account();
        let flow = net.flow(connection.name(), account, [account.traffic, opening.id.number], opening.labels);
        let index = match self.free.pop() {
            Some(index) => {
                net.flows[self.flows[index as usize] as usize] = flow;
                self.table[index as usize] = Some(connection);
                index
            }
            None => {
                self.flows.push(net.flows.len() as u32);
                net.flows.push(flow);
                self.table.push(Some(connection));
                self.table.len() as u32 - 1
            }
        };
        if let Some(tapped) = &mut net.tapped {
            tapped.open(index);
        }
        let connect = |connection: &mut Connection, now_ns, out: &mut dyn Egress| {
            connection.endpoint(Role::Client).connect(now_ns, out);
        };
        self.act(index, connect, net, recording);
        index
    }

    /// The connection with this id, unless it has been forgotten.
    pub(crate) fn find(&mut self, index: u32, id: Id) -> Option<&mut Connection> {
        self.table[index as usize].as_mut().filter(|connection| connection.id() == id)
    }

    /// The client's application does something with its connection.
    pub(crate) fn act(
        &mut self,
        index: u32,
        act: impl FnOnce(&mut Connection, u64, &mut dyn Egress),
        net: &mut Network,
        recording: &mut AnyRecording<'_>,
    ) {
        self.run(index, Role::Client, act, net, recording);
    }

    /// A segment has arrived at one end. Returns the events for the programs.
    pub(crate) fn receive(
        &mut self,
        packet: &TcpPacket,
        ecn: Ecn,
        net: &mut Network,
        recording: &mut AnyRecording<'_>,
    ) -> Option<(Id, ConnectionEvents)> {
        let receive = |connection: &mut Connection, now_ns, out: &mut dyn Egress| {
            let events = connection.receive(packet, ecn, now_ns, out);
            (events, connection.take_ending(packet.to))
        };
        let (events, ending) = self.run(packet.connection, packet.to, receive, net, recording);
        if let Some((pair, ending)) = ending {
            self.thresholds.learn(pair, ending);
        }
        events
    }

    /// A segment has left the queue of its own host.
    pub(crate) fn depart(&mut self, packet: &TcpPacket, net: &mut Network, recording: &mut AnyRecording<'_>) {
        let role = packet.to.other();
        let depart = |connection: &mut Connection, now_ns, _: &mut dyn Egress| {
            connection.endpoint(role).on_left_host(now_ns, packet.sent_len());
        };
        self.run(packet.connection, role, depart, net, recording);
    }

    /// The timer of one end fires. It may fire too early: the timer is not moved when its deadline is postponed.
    pub(crate) fn timer(&mut self, index: u32, role: Role, net: &mut Network, recording: &mut AnyRecording<'_>) {
        let expire = |connection: &mut Connection, now_ns, out: &mut dyn Egress| {
            let endpoint = connection.endpoint(role);
            if endpoint.deadline().is_some_and(|deadline_ns| deadline_ns <= now_ns) {
                endpoint.on_timer(now_ns, out);
            }
        };
        self.run(index, role, expire, net, recording);
    }

    /// Samples the data senders in the given slots; a closed sender is sampled one last time. Returns how many were
    /// sampled.
    pub(crate) fn sample(&mut self, table: Range<usize>, now_ns: u64, recording: &mut AnyRecording<'_>) -> u64 {
        let end = table.end.min(self.table.len());
        let connections = self.table[table.start..end].iter_mut().flatten();
        connections.map(|connection| u64::from(record(connection, now_ns, recording))).sum()
    }

    /// The state of the data senders whose connections are established and not closed.
    pub(crate) fn rows(&self, now_ns: u64) -> impl Iterator<Item = FlowRow> {
        let connections = self.table.iter().flatten();
        connections.filter_map(move |connection| Some(flow_row(now_ns, connection.name(), &connection.state(now_ns)?)))
    }

    /// Whether any connection may be forgotten.
    #[inline]
    pub(crate) fn any_closed(&self) -> bool {
        !self.closed.is_empty()
    }

    /// Forgets the connections that are closed and have no packet left in the network. Their last samples can no longer
    /// change, so they are recorded now, with the time of the next sample of flows (if there is one).
    #[cold]
    pub(crate) fn forget_closed(
        &mut self,
        next_sample_ns: Option<u64>,
        net: &mut Network,
        recording: &mut AnyRecording<'_>,
    ) {
        while let Some(index) = self.closed.pop() {
            let flow = net.flows[self.flows[index as usize] as usize];
            let entry = &mut self.table[index as usize];
            let Some(mut connection) = entry.take_if(|c| c.is_closed() && flow.is_gone()) else { continue };
            if let Some(at_ns) = next_sample_ns {
                net.work += u64::from(record(&mut connection, at_ns, recording));
            }
            for role in [Role::Client, Role::Server] {
                net.events.cancel(self.slots.endpoint(index, role));
            }
            self.forgotten.add(&flow, 0);
            self.free.push(index);
        }
    }

    /// The last packets of these flows were dropped, so closed connections among them may be forgotten.
    pub(crate) fn note_emptied(&mut self, flows: impl Iterator<Item = u32>) {
        let slots = &self.flows;
        self.closed.extend(flows.filter_map(|flow| Some(slots.binary_search(&flow).ok()? as u32)));
    }

    /// The accounts of all flows so far, including those of other traffic.
    pub(crate) fn into_accounts(self, net: &Network) -> Accounts {
        let mut accounts = self.forgotten;
        let is_live = |index| self.flows.binary_search(&index).map_or(true, |slot| self.table[slot].is_some());
        for (index, (flow, under_way)) in (0..).zip(net.flows.iter().zip(net.count_under_way())) {
            if is_live(index) {
                accounts.add(flow, under_way);
            }
        }
        accounts
    }

    /// The number of slots, whether in use or free.
    pub(crate) fn slots(&self) -> usize {
        self.table.len()
    }

    /// Lets one end of a connection act, and updates its timer.
    #[inline]
    fn run<T>(
        &mut self,
        index: u32,
        role: Role,
        act: impl FnOnce(&mut Connection, u64, &mut dyn Egress) -> T,
        net: &mut Network,
        recording: &mut AnyRecording<'_>,
    ) -> T {
        let connection = live(&mut self.table, index);
        let now_ns = net.now();
        let (from, destination) = connection.path(role);
        let (to, flow) = (role.other(), self.flows[index as usize]);
        let result =
            act(connection, now_ns, &mut Outlet { connection: index, to, flow, from, destination, net, recording });
        if let Some(log) = &mut self.log {
            connection.log(now_ns, role, &mut **log);
        }
        if let Some(deadline_ns) = connection.endpoint(role).deadline() {
            let slot = self.slots.endpoint(index, role);
            if net.events.scheduled_at(slot).is_none_or(|at_ns| deadline_ns < at_ns) {
                net.events.schedule(slot, deadline_ns.max(now_ns));
            }
        }
        if connection.endpoint(role).is_closed() {
            self.closed.push(index);
        }
        result
    }
}

/// Sends the segments of one end of a connection into the network.
struct Outlet<'a> {
    connection: u32,
    to: Role,
    flow: u32,
    from: NodeIndex,
    destination: u16,
    net: &'a mut Network,
    recording: &'a mut AnyRecording<'a>,
}

impl Egress for Outlet<'_> {
    #[inline]
    fn send(&mut self, outgoing: &Outgoing) -> Xmit {
        let segment = outgoing.segment;
        let packet = Outbound {
            from: self.from,
            destination: self.destination,
            flow: self.flow,
            ip_bytes: segment.ip_bytes(),
            frames: segment.frames(),
            ecn: outgoing.ecn,
            awaited: segment.is_charged(),
            body: Body::Tcp(TcpPacket { connection: self.connection, to: self.to, segments_before: 0, segment }),
        };
        self.net.send(&packet, self.recording)
    }

    fn is_empty(&self) -> bool {
        self.net.has_empty_queue(self.from, self.destination)
    }

    fn rehash(&mut self) {
        self.net.rehash(self.flow, self.to);
    }
}

fn live(table: &mut [Option<Connection>], index: u32) -> &mut Connection {
    table[index as usize].as_mut().expect("a connection stays while a packet or a timer of its own is under way")
}

/// Records the state of a connection's data sender, if there is any.
fn record(connection: &mut Connection, t_ns: u64, recording: &mut AnyRecording<'_>) -> bool {
    let sample = connection.sample(t_ns);
    if let Some(sample) = &sample {
        recording.recorder.flow(flow_row(t_ns, connection.name(), sample));
    }
    sample.is_some()
}

fn flow_row(t_ns: u64, flow: Name, sample: &Sample) -> FlowRow {
    FlowRow {
        t_ns,
        flow,
        cwnd_bytes: Some(sample.cwnd_bytes),
        ssthresh_bytes: sample.ssthresh_bytes,
        inflight_bytes: sample.inflight_bytes,
        srtt_ns: sample.srtt_ns,
        min_rtt_ns: sample.min_rtt_ns,
        rwnd_bytes: Some(sample.rwnd_bytes),
        pacing_bps: sample.pacing_bps,
        delivery_rate_bps: sample.delivery_rate_bps,
        app_limited: Some(sample.app_limited),
        delivered_bytes: sample.delivered_bytes,
        delivered_packets: sample.delivered,
        delivered_ce_packets: Some(sample.delivered_ce),
        retransmits: Some(sample.retransmits),
        lost: sample.lost,
        reordering: Some(sample.reordering.into()),
        notsent_bytes: Some(sample.notsent_bytes),
        busy_ns: Some(sample.busy_ns),
        rwnd_limited_ns: Some(sample.rwnd_limited_ns),
        sndbuf_limited_ns: Some(sample.sndbuf_limited_ns),
        state: Some(match sample.state {
            State::Open => FlowState::Open,
            State::Disorder => FlowState::Disorder,
            State::Cwr => FlowState::Cwr,
            State::Recovery => FlowState::Recovery,
            State::Loss => FlowState::Loss,
        }),
    }
}
