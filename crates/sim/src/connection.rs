//! One TCP connection: two endpoints, and the applications behind them.

use bufferscope_records::{Name, Sink, TransferRow};
use bufferscope_scenario::NodeIndex;

use crate::network::{Account, Network};
use crate::packet::{Ecn, Side, TcpPacket};
use crate::recording::Recording;
use crate::tcp::{self, Endpoint, Outbox, Role, Sample};

/// What is needed to open a connection.
#[derive(Debug)]
pub(crate) struct Opening {
    /// Name of the flow.
    pub(crate) name: Name,
    /// Name of the traffic it belongs to.
    pub(crate) traffic: Name,
    pub(crate) account: Account,
    /// Code point of all its packets.
    pub(crate) dscp: u8,
    pub(crate) job: Job,
    /// Client, then server.
    pub(crate) nodes: [NodeIndex; 2],
    pub(crate) configs: [tcp::Config; 2],
}

/// What the applications at the two ends do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Job {
    /// The client sends `bytes` and closes, or sends until told to stop.
    Bulk { bytes: Option<u64> },
    /// The client sends a request; the server, when it has it all, answers with `bytes` and closes.
    Page { request_bytes: u64, bytes: u64 },
}

/// A connection, from the client's SYN on.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Client, then server.
    ends: [End; 2],
    name: Name,
    traffic: Name,
    account: Account,
    job: Job,
    /// The object under way; `None` if there is none, and once it has arrived or been given up.
    transfer: Option<Transfer>,
    /// The sender has been sampled after it had closed.
    sampled_closed: bool,
}

#[derive(Debug)]
struct End {
    endpoint: Endpoint,
    node: NodeIndex,
    /// Row of the other end's node in the routing table.
    peer: u16,
    /// The application has said that it sends no more.
    finished: bool,
}

#[derive(Clone, Copy, Debug)]
struct Transfer {
    started_ns: u64,
    bytes: u64,
}

impl Connection {
    pub(crate) fn new(opening: &Opening, net: &Network) -> Self {
        let end = |side: Side, role| End {
            endpoint: Endpoint::new(&opening.configs[side as usize], role),
            node: opening.nodes[side as usize],
            peer: net.routes.row(opening.nodes[side.other() as usize]),
            finished: false,
        };
        Self {
            ends: [end(Side::Client, Role::Client), end(Side::Server, Role::Server)],
            name: opening.name,
            traffic: opening.traffic,
            account: opening.account,
            job: opening.job,
            sampled_closed: false,
            transfer: opening.job.object_bytes().map(|bytes| Transfer { started_ns: net.now(), bytes }),
        }
    }

    /// The client connects and says what it has to send.
    pub(crate) fn open(&mut self, now_ns: u64, out: &mut Outbox) {
        let client = &mut self.ends[Side::Client as usize];
        client.endpoint.connect(now_ns, out);
        match self.job {
            Job::Bulk { bytes: None } => client.endpoint.offer(now_ns, u64::MAX, out),
            Job::Bulk { bytes: Some(bytes) } => client.send_all(now_ns, bytes, out),
            Job::Page { request_bytes, .. } => client.endpoint.offer(now_ns, request_bytes, out),
        }
    }

    /// A segment has arrived; the application at that end sees at once what has come in order.
    pub(crate) fn receive<S: Sink>(
        &mut self,
        packet: &TcpPacket,
        ecn: Ecn,
        now_ns: u64,
        out: &mut Outbox,
        recording: &mut Recording<S>,
    ) {
        let side = packet.to;
        self.endpoint(side).on_segment(now_ns, &packet.segment, ecn, out);
        if side != self.sender() {
            self.note_arrival(now_ns, recording);
        }
        let end = &mut self.ends[side as usize];
        if end.finished {
            return;
        }
        match self.job {
            Job::Page { request_bytes, bytes } if side == Side::Server => {
                if end.endpoint.received_bytes() >= request_bytes {
                    end.send_all(now_ns, bytes, out);
                }
            }
            Job::Page { .. } | Job::Bulk { .. } => {
                if end.endpoint.peer_finished() {
                    end.finish(now_ns, out);
                }
            }
        }
    }

    /// Records the object if it has arrived whole.
    fn note_arrival<S: Sink>(&mut self, now_ns: u64, recording: &mut Recording<S>) {
        let receiver = &self.ends[self.sender().other() as usize].endpoint;
        let arrived = |transfer: &mut Transfer| receiver.received_bytes() >= transfer.bytes;
        if let Some(transfer) = self.transfer.take_if(arrived) {
            recording.recorder.transfer(self.transfer_row(transfer, Some(now_ns)));
        }
    }

    /// The row of the object under way, which will not be recorded any more.
    pub(crate) fn give_up_transfer(&mut self) -> Option<TransferRow> {
        let transfer = self.transfer.take()?;
        Some(self.transfer_row(transfer, None))
    }

    fn transfer_row(&self, transfer: Transfer, finished_ns: Option<u64>) -> TransferRow {
        let Transfer { started_ns, bytes } = transfer;
        TransferRow { traffic: self.traffic, flow: self.name, started_ns, finished_ns, bytes }
    }

    /// The state of the data sender; `None` once it has been seen closed.
    pub(crate) fn sample(&mut self) -> Option<Sample> {
        let sender = &self.ends[self.sender() as usize].endpoint;
        let sampled_closed = std::mem::replace(&mut self.sampled_closed, sender.is_closed());
        (!sampled_closed).then(|| sender.sample())
    }

    pub(crate) fn name(&self) -> Name {
        self.name
    }

    /// Under what its packets are counted.
    pub(crate) fn account(&self) -> Account {
        self.account
    }

    /// The end that sends the data that is of interest.
    pub(crate) fn sender(&self) -> Side {
        match self.job {
            Job::Bulk { .. } => Side::Client,
            Job::Page { .. } => Side::Server,
        }
    }

    pub(crate) fn endpoint(&mut self, side: Side) -> &mut Endpoint {
        &mut self.ends[side as usize].endpoint
    }

    /// The node of an end, and the row of the node it sends to.
    pub(crate) fn path(&self, side: Side) -> (NodeIndex, u16) {
        let end = &self.ends[side as usize];
        (end.node, end.peer)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.ends.iter().all(|end| end.endpoint.is_closed())
    }
}

impl End {
    fn send_all(&mut self, now_ns: u64, bytes: u64, out: &mut Outbox) {
        self.endpoint.offer(now_ns, bytes, out);
        self.finish(now_ns, out);
    }

    fn finish(&mut self, now_ns: u64, out: &mut Outbox) {
        self.finished = true;
        self.endpoint.finish_sending(now_ns, out);
    }
}

impl Job {
    /// Size of the object whose arrival is recorded.
    fn object_bytes(self) -> Option<u64> {
        match self {
            Self::Bulk { bytes } => bytes,
            Self::Page { bytes, .. } => Some(bytes),
        }
    }
}
