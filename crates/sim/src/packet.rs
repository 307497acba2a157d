//! What travels: a small header that every hop reads, and a body that only the two hosts read.

use crate::tcp;
use crate::traffic_class::TrafficClass;

/// The ECN field of the IP header (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// The transport does not understand ECN.
    NotEct,
    /// ECN-capable transport (0).
    Ect0,
    /// ECN-capable transport (1).
    Ect1,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// Whether a queue may mark the packet instead of dropping it.
    pub(crate) fn is_capable(self) -> bool {
        self != Self::NotEct
    }
}

/// What a hop needs to know of a packet. The body is stored elsewhere, so that a queue of headers stays in the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    /// In a queue: when it was enqueued. On a delay line: when it reaches the other end.
    pub(crate) at_ns: u64,
    /// Size of the IP packet.
    pub(crate) ip_bytes: u32,
    /// Size on the current link: the IP packet and the link's overhead.
    pub(crate) frame_bytes: u32,
    /// Index of the flow in the network's accounts.
    pub(crate) flow: u32,
    /// Its destination: a row of the routing table.
    pub(crate) destination: u16,
    pub(crate) class: TrafficClass,
    pub(crate) load: Load,
}

/// Two things in one byte, to keep the header small. The number of frames that the packet is eventually split into,
/// each with headers of its own: 1, unless segmentation offload is on. And whether it is in the queue of its own host,
/// where its sender waits for it to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load(u8);

impl Load {
    const AWAITED: u8 = 0x80;

    /// This many frames, at least one.
    #[inline]
    pub(crate) fn of(frames: u32) -> Self {
        debug_assert!((1..u32::from(Self::AWAITED)).contains(&frames), "{frames} frames");
        Self(frames as u8)
    }

    #[inline]
    pub(crate) fn frames(self) -> u32 {
        u32::from(self.0 & !Self::AWAITED)
    }

    /// If `awaited`, the sender waits for it to leave.
    #[inline]
    pub(crate) fn set_awaited(&mut self, awaited: bool) {
        self.0 = self.0 & !Self::AWAITED | if awaited { Self::AWAITED } else { 0 };
    }

    /// Did the sender wait for it? Clears the flag.
    #[inline]
    pub(crate) fn take_awaited(&mut self) -> bool {
        let awaited = self.0 & Self::AWAITED != 0;
        self.0 &= !Self::AWAITED;
        awaited
    }
}

/// What the hosts need to know of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    Tcp(TcpPacket),
    Echo(Echo),
    Datagram(Datagram),
}

/// A segment on its way to one end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpPacket {
    pub(crate) connection: u32,
    pub(crate) to: Side,
    pub(crate) segment: tcp::Segment,
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The one that connects.
    Client,
    /// The one that accepts.
    Server,
}

impl Side {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// An ICMP echo message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Echo {
    /// Index of the traffic that sent the request.
    pub(crate) ping: u32,
    pub(crate) seq: u64,
    pub(crate) kind: EchoKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EchoKind {
    Request,
    Reply,
}

/// A datagram of UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// Index of the traffic it belongs to.
    pub(crate) traffic: u32,
    /// Which of the traffic's flows.
    pub(crate) stream: u32,
    pub(crate) seq: u64,
    pub(crate) way: Way,
}

/// The two directions of a traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From `from` to `to`.
    Out,
    /// From `to` to `from`.
    Back,
}
