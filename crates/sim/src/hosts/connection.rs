//! One TCP connection: two endpoints, and the applications behind them.

use bufferscope_programs::{Ask, Awaited, ConnectionEvents, Requests};
use bufferscope_records::Name;
use bufferscope_scenario::NodeIndex;

use crate::network::packet::{Role, TcpPacket};
use crate::network::traffic_class::Ecn;
use crate::network::{Account, Labels, Network};
use crate::observation::state_log::{FlowId, LoggedFlow, StateLog};
use crate::tcp::{self, AddressPair, Egress, Ending, Endpoint, Sample, Thresholds};

/// The parameters of a connection.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) id: Id,
    /// Name of the flow.
    pub(crate) name: Name,
    pub(crate) account: Account,
    pub(crate) labels: Labels,
    /// The end that sends the data under test.
    pub(crate) sender: Role,
    /// Payload bytes that the other end expects.
    pub(crate) expects: Option<u64>,
    /// Client, then server.
    pub(crate) nodes: [NodeIndex; 2],
    pub(crate) configs: [tcp::Config; 2],
    /// Whether each of the two hosts remembers slow-start thresholds.
    pub(crate) remember: [bool; 2],
}

/// How programs identify a connection: by its entry of traffic and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    pub(crate) traffic: u32,
    pub(crate) number: u32,
}

impl From<Id> for FlowId {
    fn from(Id { traffic, number }: Id) -> Self {
        Self { traffic, number }
    }
}

/// A connection, from the client's SYN on.
#[derive(Debug)]
pub(crate) struct Connection {
    id: Id,
    /// Client, then server.
    ends: [End; 2],
    name: Name,
    account: Account,
    sender: Role,
    /// The data that the receiver under test still expects.
    awaited: Awaited,
    /// The requests that the server will receive.
    requests: Requests,
    /// Whether the programs have been notified that the connection is established, and that it is closed.
    reported_established: bool,
    reported_closed: bool,
    /// The sender has been sampled once after it closed.
    sampled_closed: bool,
}

#[derive(Debug)]
struct End {
    endpoint: Endpoint,
    node: NodeIndex,
    /// Row of the other end's node in the routing table.
    peer: u16,
    /// The application has announced that it will send no more data.
    finished: bool,
    /// The host has yet to remember how the connection ended.
    to_remember: bool,
}

impl Connection {
    pub(crate) fn new(opening: &Opening, net: &Network, thresholds: &Thresholds) -> Self {
        let end = |role: Role, tcp_role| {
            let (node, peer) = (opening.nodes[role as usize], net.routes.row(opening.nodes[role.other() as usize]));
            let mut config = opening.configs[role as usize].clone();
            let to_remember = opening.remember[role as usize];
            if to_remember {
                config.ssthresh_packets = thresholds.of((node, peer));
            }
            End { endpoint: Endpoint::new(&config, tcp_role), node, peer, finished: false, to_remember }
        };
        Self {
            id: opening.id,
            ends: [end(Role::Client, tcp::Role::Client), end(Role::Server, tcp::Role::Server)],
            name: opening.name,
            account: opening.account,
            sender: opening.sender,
            awaited: Awaited::new(opening.expects),
            requests: Requests::default(),
            reported_established: false,
            reported_closed: false,
            sampled_closed: false,
        }
    }

    /// The client writes this many bytes; `u64::MAX` is unlimited.
    pub(crate) fn write(&mut self, now_ns: u64, bytes: u64, out: &mut dyn Egress) {
        self.endpoint(Role::Client).offer(now_ns, bytes, out);
    }

    /// The client stops writing.
    pub(crate) fn close(&mut self, now_ns: u64, out: &mut dyn Egress) {
        self.ends[Role::Client as usize].finish(now_ns, out);
    }

    /// The client makes a request.
    pub(crate) fn ask(&mut self, now_ns: u64, ask: Ask, out: &mut dyn Egress) {
        self.awaited.ask(ask);
        self.requests.ask(ask);
        self.write(now_ns, ask.request_bytes, out);
    }

    /// A segment has arrived. The application at that end immediately reads the data that is now in order.
    pub(crate) fn receive(
        &mut self,
        packet: &TcpPacket,
        ecn: Ecn,
        now_ns: u64,
        out: &mut dyn Egress,
    ) -> Option<(Id, ConnectionEvents)> {
        let role = packet.to;
        let end = &mut self.ends[role as usize];
        end.endpoint.on_segment(now_ns, &packet.segment, ecn, out);
        let received = end.endpoint.received_bytes();
        let arrived = role != self.sender && self.awaited.has_arrived(received);
        let mut events = ConnectionEvents { established: false, arrived, closed: false };
        let closes = end.endpoint.peer_finished();
        match role {
            Role::Client => {
                events.established = !self.reported_established && end.endpoint.is_established();
                events.closed = closes && !self.reported_closed;
                self.reported_established |= events.established;
                self.reported_closed |= events.closed;
            }
            Role::Server => {
                while let Some(ask) = self.requests.take_asked(received) {
                    end.answer(now_ns, ask, out);
                }
            }
        }
        if closes && !end.finished {
            end.finish(now_ns, out);
        }
        events.is_any().then_some((self.id, events))
    }

    /// How the connection ended at one end. Returned only once, and only if that end's host remembers such things.
    #[inline]
    pub(crate) fn take_ending(&mut self, role: Role) -> Option<(AddressPair, Ending)> {
        let end = &mut self.ends[role as usize];
        let has_ended = end.to_remember && end.endpoint.is_closed();
        end.to_remember &= !has_ended;
        has_ended.then(|| ((end.node, end.peer), end.endpoint.ending()))
    }

    /// The state of the data sender. `None` before its handshake is complete, and again once it was sampled after
    /// closing.
    pub(crate) fn sample(&mut self, now_ns: u64) -> Option<Sample> {
        let sender = &self.ends[self.sender as usize].endpoint;
        let sampled_closed = std::mem::replace(&mut self.sampled_closed, sender.is_closed());
        (sender.is_established() && !sampled_closed).then(|| sender.sample(now_ns))
    }

    /// The state of the data sender. `None` before its handshake is complete, and after it closed.
    pub(crate) fn state(&self, now_ns: u64) -> Option<Sample> {
        let sender = &self.ends[self.sender as usize].endpoint;
        (sender.is_established() && !sender.is_closed()).then(|| sender.sample(now_ns))
    }

    /// Lets the data sender note what changes, if the log wants it.
    #[cold]
    pub(crate) fn begin_log(&mut self, now_ns: u64, opening: &Opening, log: &mut dyn StateLog) {
        let of_client = self.sender == Role::Client;
        let (host, config) = (opening.nodes[self.sender as usize], &opening.configs[self.sender as usize]);
        if log.open(now_ns, &LoggedFlow { id: self.id.into(), of_client, host, config }) {
            self.endpoint(self.sender).keep_journal();
        }
    }

    /// Logs what has changed at this end, if it sends the data.
    #[cold]
    pub(crate) fn log(&mut self, now_ns: u64, role: Role, log: &mut dyn StateLog) {
        if role == self.sender {
            let id = self.id.into();
            self.endpoint(role).take_transitions(now_ns, &mut |transition| log.log(now_ns, id, transition));
        }
    }

    /// Payload bytes of the data sender that were acknowledged.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.ends[self.sender as usize].endpoint.acked_bytes()
    }

    pub(crate) fn id(&self) -> Id {
        self.id
    }

    pub(crate) fn name(&self) -> Name {
        self.name
    }

    /// The account in which the connection's packets are counted.
    pub(crate) fn account(&self) -> Account {
        self.account
    }

    pub(crate) fn endpoint(&mut self, role: Role) -> &mut Endpoint {
        &mut self.ends[role as usize].endpoint
    }

    /// The node of an end, and the row of the node it sends to.
    pub(crate) fn path(&self, role: Role) -> (NodeIndex, u16) {
        let end = &self.ends[role as usize];
        (end.node, end.peer)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.ends.iter().all(|end| end.endpoint.is_closed())
    }
}

impl End {
    fn answer(&mut self, now_ns: u64, ask: Ask, out: &mut dyn Egress) {
        self.endpoint.offer(now_ns, ask.response_bytes, out);
        if ask.last {
            self.finish(now_ns, out);
        }
    }

    fn finish(&mut self, now_ns: u64, out: &mut dyn Egress) {
        self.finished = true;
        self.endpoint.finish_sending(now_ns, out);
    }
}
