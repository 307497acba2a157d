//! A test bench for one discipline, with numbered packets and explicit clock values; and segments for tests that need TCP.

use bufferscope_scenario::{self as scenario, Encapsulation, NodeIndex, Reason};

use super::{Attachment, Dequeued, Qdisc, QdiscEvent, QdiscEvents};
use crate::network::packet::{Body, Echo, EchoKind, Header, Load, Role, TcpPacket};
use crate::network::pool::{Backlog, PacketId, Pool};
use crate::network::segment::{Flags, SackBlocks, Segment};
use crate::network::traffic_class::{Ecn, TrafficClass};
use crate::network::xmit::Xmit;

pub(super) const MS: u64 = 1_000_000;
/// A full Ethernet frame as tc counts it: 1500 bytes of IP and 14 of header.
pub(super) const FRAME: u32 = 1514;
/// What the link adds to each packet.
pub(super) const OVERHEAD_BYTES: u32 = 14;

/// Packets dropped or marked, by number.
type EventsByNumber = Vec<(u64, Reason)>;

/// The header fields that identify a packet's flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    pub(super) hash: u32,
    pub(super) source: NodeIndex,
    /// Row of the destination in the routing table.
    pub(super) destination: u16,
}

pub(super) struct Bench {
    qdisc: Qdisc,
    pool: Pool,
    events: QdiscEvents,
    sent: u64,
}

impl Bench {
    pub(super) fn new(parameters: &scenario::Qdisc) -> Self {
        Self::attached(parameters, attachment(0))
    }

    /// The same at another place.
    pub(super) fn attached(parameters: &scenario::Qdisc, attachment: Attachment) -> Self {
        let qdisc = Qdisc::new(parameters, attachment).expect("Linux takes these parameters");
        Self { qdisc, pool: Pool::new(), events: QdiscEvents::default(), sent: 0 }
    }

    /// Changes the parameters, or the discipline. Returns the packets that were dropped.
    pub(super) fn change(&mut self, parameters: &scenario::Qdisc) -> EventsByNumber {
        self.qdisc.change(qdisc(parameters), &self.pool, &mut self.events);
        self.take_events()
    }

    /// Enqueues one packet. Returns the reason if it was dropped or marked.
    pub(super) fn enqueue(&mut self, now_ns: u64, frame_bytes: u32, ecn: Ecn) -> Option<Reason> {
        let number = self.sent;
        let (_, events) = self.arrive(now_ns, frame_bytes, TrafficClass::new(0, ecn));
        assert!(events.iter().all(|event| event.0 == number), "enqueueing decides about one packet");
        events.first().map(|event| event.1)
    }

    /// Enqueues one packet. Returns the result for its sender, and the packets that were dropped or marked.
    pub(super) fn arrive(&mut self, now_ns: u64, frame_bytes: u32, class: TrafficClass) -> (Xmit, EventsByNumber) {
        self.arrive_of(Flow::default(), now_ns, frame_bytes, class)
    }

    /// Enqueues one packet of a flow, as [`arrive`](Self::arrive).
    pub(super) fn arrive_of(
        &mut self,
        flow: Flow,
        now_ns: u64,
        frame_bytes: u32,
        class: TrafficClass,
    ) -> (Xmit, EventsByNumber) {
        let header = Header {
            at_ns: 0,
            ip_bytes: frame_bytes - OVERHEAD_BYTES,
            frame_bytes,
            flow: flow.hash,
            hash: flow.hash,
            source: flow.source,
            destination: flow.destination,
            port: 0,
            class,
            load: Load::of(1),
        };
        let body = Body::Echo(Echo { ping: 0, seq: self.sent, kind: EchoKind::Request });
        let id = self.pool.insert(header, body);
        self.sent += 1;
        let xmit = self.qdisc.enqueue(id, now_ns, &mut self.pool, &mut self.events);
        (xmit, self.take_events())
    }

    /// Dequeues one packet, if one may leave now. Returns its number and ECN field, and the packets that were dropped or
    /// marked.
    pub(super) fn dequeue(&mut self, now_ns: u64) -> (Option<(u64, Ecn)>, EventsByNumber) {
        let (passed, events) = self.dequeue_or_wait(now_ns);
        (passed.unwrap_or(None), events)
    }

    /// Dequeues one packet, as [`dequeue`](Self::dequeue), or returns as an error when one may leave at the earliest.
    pub(super) fn dequeue_or_wait(&mut self, now_ns: u64) -> (Result<Option<(u64, Ecn)>, u64>, EventsByNumber) {
        let packet = match self.qdisc.dequeue(now_ns, &mut self.pool, &mut self.events) {
            Dequeued::Packet(packet) => Some(packet),
            Dequeued::Nothing => None,
            Dequeued::NotBefore(at_ns) => return (Err(at_ns), self.take_events()),
        };
        let events = self.take_events();
        let passed = packet.map(|id| (self.number(id), self.pool.header(id).class.ecn()));
        if let Some(id) = packet {
            self.pool.remove(id);
        }
        (Ok(passed), events)
    }

    /// When the next packet may leave at the earliest, if it may not leave now.
    pub(super) fn not_before(&mut self, now_ns: u64) -> Option<u64> {
        match self.qdisc.dequeue(now_ns, &mut self.pool, &mut self.events) {
            Dequeued::NotBefore(at_ns) => Some(at_ns),
            Dequeued::Nothing => None,
            Dequeued::Packet(packet) => unreachable!("number {} leaves", self.number(packet)),
        }
    }

    /// The answer of the discipline, whatever it is. A packet must [leave](Self::leave) then.
    pub(super) fn answer(&mut self, now_ns: u64) -> Dequeued {
        self.qdisc.dequeue(now_ns, &mut self.pool, &mut self.events)
    }

    /// Frees a packet that the discipline has passed on. Returns its number.
    pub(super) fn leave(&mut self, packet: PacketId) -> u64 {
        self.pool.remove(packet);
        self.number(packet)
    }

    /// The traffic classes of the queued packets.
    pub(super) fn classes(&self) -> Vec<TrafficClass> {
        let mut classes = Vec::new();
        self.qdisc.each_packet(&self.pool, &mut |packet| classes.push(self.pool.header(packet).class));
        classes
    }

    /// The loads of the queued packets.
    pub(super) fn loads(&self) -> Vec<Load> {
        let mut loads = Vec::new();
        self.qdisc.each_packet(&self.pool, &mut |packet| loads.push(self.pool.header(packet).load));
        loads
    }

    pub(super) fn idle_since(&mut self, at_ns: u64) {
        self.qdisc.idle_since(at_ns);
    }

    pub(super) fn backlog(&self) -> (u64, u64) {
        let Backlog { packets, bytes } = self.qdisc.backlog();
        (packets, bytes)
    }

    /// Returns the packets that were dropped.
    pub(super) fn on_timer(&mut self, now_ns: u64) -> EventsByNumber {
        self.qdisc.on_timer(now_ns, &mut self.pool, &mut self.events);
        self.take_events()
    }

    pub(super) fn qdisc(&self) -> &Qdisc {
        &self.qdisc
    }

    pub(super) fn qdisc_mut(&mut self) -> &mut Qdisc {
        &mut self.qdisc
    }

    fn take_events(&mut self) -> EventsByNumber {
        let events = std::mem::take(&mut self.events.0);
        events
            .into_iter()
            .filter_map(|event| match event {
                QdiscEvent::Dropped(id, reason) => {
                    self.pool.remove(id);
                    Some((self.number(id), reason))
                }
                QdiscEvent::Marked(id, reason) => Some((self.number(id), reason)),
                QdiscEvent::Copied(_) => None,
                QdiscEvent::Split(_) => unreachable!("the bench makes echo packets"),
            })
            .collect()
    }

    fn number(&self, id: PacketId) -> u64 {
        match self.pool.body(id) {
            Body::Echo(echo) => echo.seq,
            Body::Tcp(_) | Body::Datagram(_) => unreachable!("the bench makes echo packets"),
        }
    }
}

fn qdisc(parameters: &scenario::Qdisc) -> Qdisc {
    Qdisc::new(parameters, attachment(0)).expect("Linux takes these parameters")
}

/// RED whose average exceeds `max` after a few packets. Then it drops every packet.
pub(in crate::network) fn strict_red() -> scenario::Qdisc {
    scenario::Qdisc::Red(scenario::Red {
        limit_bytes: 100_000,
        min_bytes: 2000,
        max_bytes: 4000,
        avpkt_bytes: 1000,
        burst_packets: 3,
        probability: 0.02,
        bandwidth_bps: 10_000_000,
        ecn: false,
        harddrop: false,
        nodrop: false,
        adaptive: false,
    })
}

/// The first port of the first node.
pub(super) fn attachment(now_ns: u64) -> Attachment {
    Attachment { port: 0, node: 0, encapsulation: Encapsulation::adding(OVERHEAD_BYTES), seed: 1, now_ns }
}

/// A segment of a connection to its server, or several that offload has left in one packet.
pub(super) fn segment(
    connection: u32,
    flow: Flow,
    class: TrafficClass,
    seq: u64,
    payload_bytes: u32,
) -> (Header, Body) {
    let segment = Segment {
        seq,
        ack: seq,
        len: payload_bytes,
        window_bytes: 1,
        ts_val: 0,
        ts_ecr: 0,
        sack: SackBlocks::NONE,
        flags: Flags::ACK,
    };
    let header = Header {
        at_ns: 0,
        ip_bytes: segment.ip_bytes(),
        frame_bytes: segment.ip_bytes() + OVERHEAD_BYTES * segment.frames(),
        flow: connection,
        hash: flow.hash,
        port: 0,
        source: flow.source,
        destination: flow.destination,
        class,
        load: Load::of(segment.frames()),
    };
    (header, Body::Tcp(TcpPacket { connection, to: Role::Server, segments_before: 0, segment }))
}
