//! A tap: sees each packet at the hooks of the ports that it asks for, as a capture does.
//!
//! A simulation without a tap pays one test of a pointer per hook. A tap cannot affect the run.

use std::fmt::Debug;

use bufferscope_scenario::{NodeIndex, PortIndex};

use super::Network;
use super::packet::{Body, Direction, Role};
use super::pool::PacketId;
use super::routes::Step;
use super::segment::Segment;

/// Receives packets, in order of time.
pub trait Tap: Debug + Send {
    /// Whether packets at this hook of this port are passed to [`see`](Self::see).
    fn wants(&self, port: PortIndex, hook: Hook) -> bool;

    /// A packet passes a hook.
    fn see(&mut self, sighting: &Sighting);
}

/// A point of a port at which a tap sees packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// It arrives at the queueing discipline, which may drop it now or later.
    Qdisc,
    /// It has left the discipline for the driver's ring, or for the driver of a port on the air.
    Ring,
    /// Its transmission begins. On the air: its transmission has ended, and it has arrived.
    Wire,
    /// It arrives at the other end of the link.
    Arrived,
    /// It is dropped by the discipline or the driver, or lost on the wire.
    Dropped,
}

/// A packet at a hook.
#[derive(Clone, Copy, Debug)]
pub struct Sighting {
    /// The time since the run began.
    pub t_ns: u64,
    /// The port.
    pub port: PortIndex,
    /// The hook of the port.
    pub hook: Hook,
    /// Where the simulator keeps the packet: the same at all hooks from its sender to its receiver. When it is gone,
    /// another packet may be kept there.
    pub slot: u32,
    /// Index of the entry of traffic that it belongs to.
    pub traffic: u32,
    /// The number of its flow among those of the entry, from 1; `None` if the [summary](crate::Summary) counts them
    /// together.
    pub flow: Option<u32>,
    /// Why it was dropped, as the records say it. `None` at other hooks than [`Hook::Dropped`].
    pub reason: Option<&'static str>,
    /// The host that sent it.
    pub source: NodeIndex,
    /// The host that it is sent to.
    pub destination: NodeIndex,
    /// How many routers have forwarded it.
    pub forwarded: u32,
    /// DSCP and ECN, as on the wire.
    pub traffic_class: u8,
    /// Its checksum is wrong.
    pub is_corrupt: bool,
    /// Length of the IP packet. For a packet of several segments, the sum of the lengths that these will have.
    pub ip_bytes: u32,
    /// The server's port; 0 for ICMP.
    pub server_port: u16,
    /// What it carries.
    pub contents: Contents,
}

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
pub enum Contents {
    /// A TCP segment.
    Segment {
        /// The connection: the number of connections that were opened before.
        connection: u64,
        /// Whether it goes from the client to the server.
        to_server: bool,
        /// The segment.
        segment: Segment,
    },
    /// An ICMP echo message.
    Echo {
        /// Index of the entry of traffic.
        traffic: u32,
        /// Number of the request, from 0.
        seq: u64,
        /// Whether it is a reply.
        is_reply: bool,
    },
    /// A UDP datagram.
    Datagram {
        /// Index of the entry of traffic.
        traffic: u32,
        /// Index of the flow within the entry.
        stream: u32,
        /// Number of the datagram, from 0.
        seq: u64,
        /// Whether it goes from the client to the server.
        to_server: bool,
    },
}

/// A tap on a network, and what it has to know of the connections.
#[derive(Debug)]
pub(crate) struct Tapped {
    tap: Box<dyn Tap>,
    /// The number of the connection in each slot.
    connections: Vec<u64>,
    opened: u64,
}

impl Tapped {
    pub(crate) fn new(tap: Box<dyn Tap>) -> Self {
        Self { tap, connections: Vec::new(), opened: 0 }
    }

    /// A connection is opened in this slot, which another one may have used before.
    #[cold]
    pub(crate) fn open(&mut self, slot: u32) {
        let slot = slot as usize;
        if slot >= self.connections.len() {
            self.connections.resize(slot + 1, 0);
        }
        self.connections[slot] = self.opened;
        self.opened += 1;
    }
}

impl Network {
    /// Shows a packet to the tap, if there is one.
    #[inline(always)]
    pub(crate) fn show(&mut self, packet: PacketId, port: PortIndex, hook: Hook) {
        if self.tapped.is_some() {
            self.show_to_tap(packet, port, hook, None);
        }
    }

    /// Shows a packet that was dropped to the tap, if there is one.
    pub(crate) fn show_drop(&mut self, packet: PacketId, port: PortIndex, reason: &'static str) {
        if self.tapped.is_some() {
            self.show_to_tap(packet, port, Hook::Dropped, Some(reason));
        }
    }

    #[cold]
    fn show_to_tap(&mut self, packet: PacketId, port: PortIndex, hook: Hook, reason: Option<&'static str>) {
        let Some(mut tapped) = self.tapped.take() else { return };
        if tapped.tap.wants(port, hook) {
            let sighting = self.sighting(packet, port, hook, reason, &tapped.connections);
            tapped.tap.see(&sighting);
        }
        self.tapped = Some(tapped);
    }

    fn sighting(
        &self,
        packet: PacketId,
        port: PortIndex,
        hook: Hook,
        reason: Option<&'static str>,
        connections: &[u64],
    ) -> Sighting {
        let header = self.pool.header(packet);
        let account = self.flows[header.flow as usize].account;
        let contents = match *self.pool.body(packet) {
            Body::Tcp(tcp) => Contents::Segment {
                connection: connections[tcp.connection as usize],
                to_server: tcp.to == Role::Server,
                segment: tcp.segment,
            },
            Body::Echo(echo) => Contents::Echo { traffic: echo.ping, seq: echo.seq, is_reply: echo.is_reply() },
            Body::Datagram(datagram) => Contents::Datagram {
                traffic: datagram.traffic,
                stream: datagram.stream,
                seq: datagram.seq,
                to_server: datagram.direction == Direction::Forward,
            },
        };
        Sighting {
            t_ns: self.now(),
            port,
            hook,
            slot: packet.slot(),
            traffic: account.traffic,
            flow: account.number,
            reason,
            source: header.source,
            destination: self.routes.destination(header.destination),
            forwarded: self.forwarded(header.source, header.destination, port),
            traffic_class: header.class.byte(),
            is_corrupt: header.load.is_corrupt(),
            ip_bytes: header.ip_bytes,
            server_port: header.port,
            contents,
        }
    }

    /// The number of routers that a packet has passed when it is in a port.
    fn forwarded(&self, source: NodeIndex, destination: u16, port: PortIndex) -> u32 {
        let sender = self.ports[port as usize ^ 1].to;
        let (mut node, mut hops) = (source, 0);
        while node != sender {
            match self.routes.step(destination, node) {
                // A port on the air may be entered through another one of the same node.
                Step::Forward(_) => {
                    let Step::Forward(next) = self.routes.behind(destination, node) else { break };
                    node = self.ports[next as usize].to;
                    hops += 1;
                }
                Step::Deliver => break,
            }
        }
        hops
    }
}
