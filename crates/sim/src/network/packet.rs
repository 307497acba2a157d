//! Packets: each has a small header, which every hop reads, and a body, which only the two hosts read.

use bufferscope_programs::scramble;
use bufferscope_scenario::NodeIndex;
use bufferscope_scenario::sizes::MSS_BYTES;

use super::segment::Segment;
use super::traffic_class::TrafficClass;

/// The part of a packet that hops need. The body is stored elsewhere, so that a queue of headers fits into the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    /// In a queue, the time when the packet was enqueued. On a delay line, the time when it reaches the other end.
    pub(crate) at_ns: u64,
    /// Size of the IP packet.
    pub(crate) ip_bytes: u32,
    /// Size on the current link: the IP packet and the link's overhead.
    pub(crate) frame_bytes: u32,
    /// Index of the flow in the network's accounts.
    pub(crate) flow: u32,
    /// The packet's `skb_get_hash` in Linux. Flows have different ones, except by chance. A TCP socket may take
    /// another one, which changes all but the [`TUPLE_BITS`](Self::TUPLE_BITS).
    pub(crate) hash: u32,
    /// The node that sent it.
    pub(crate) source: NodeIndex,
    /// Its destination: a row of the routing table.
    pub(crate) destination: u16,
    /// The server's port: the destination port of packets to the server, the source port of those from it; 0 for ICMP.
    pub(crate) port: u16,
    pub(crate) class: TrafficClass,
    pub(crate) load: Load,
}

impl Header {
    /// The bits of [`hash`](Self::hash) that represent the addresses, ports and protocol, and never change.
    pub(crate) const TUPLE_BITS: u32 = 0xffff;

    /// Hash of the addresses, ports and protocol, for a discipline that looks into the packet.
    #[inline]
    pub(crate) fn tuple_hash(&self) -> u32 {
        self.hash & Self::TUPLE_BITS
    }

    /// The hash for a discipline that takes the lowest bits of it, of which a rehash must change some.
    #[inline]
    pub(crate) fn low_hash(&self) -> u32 {
        self.hash.rotate_left(16)
    }

    /// The hash of a flow that takes another one.
    pub(crate) fn rehash(hash: u32) -> u32 {
        (scramble(hash.into()) as u32 & !Self::TUPLE_BITS) | (hash & Self::TUPLE_BITS)
    }
}

/// Three values in one byte, to keep the header small. One is the number of frames, each with its own headers, into which
/// the packet is eventually split; it is 1 without segmentation offload. The others are flags. One says that the packet
/// is in the queue of its own host and that its sender waits for it to leave, the other that its checksum is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load(u8);

impl Load {
    const AWAITED: u8 = 0x80;
    const CORRUPT: u8 = 0x40;

    /// A load of this many frames, at least one.
    #[inline]
    pub(crate) fn of(frames: u32) -> Self {
        debug_assert!((1..u32::from(Self::CORRUPT)).contains(&frames), "{frames} frames");
        Self(frames as u8)
    }

    #[inline]
    pub(crate) fn frames(self) -> u32 {
        u32::from(self.0 & !(Self::AWAITED | Self::CORRUPT))
    }

    /// The packet was damaged on its way, and its destination will discard it.
    #[inline]
    pub(crate) fn set_corrupt(&mut self) {
        self.0 |= Self::CORRUPT;
    }

    #[inline]
    pub(crate) fn is_corrupt(self) -> bool {
        self.0 & Self::CORRUPT != 0
    }

    /// The sender waits for the packet to leave the queue.
    #[inline]
    pub(crate) fn set_awaited(&mut self) {
        self.0 |= Self::AWAITED;
    }

    /// Returns whether the sender waits for the packet to leave, and clears the flag.
    #[inline]
    pub(crate) fn take_awaited(&mut self) -> bool {
        let awaited = self.0 & Self::AWAITED != 0;
        self.0 &= !Self::AWAITED;
        awaited
    }
}

/// The part of a packet that only the hosts need.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    Tcp(TcpPacket),
    Echo(Echo),
    Datagram(Datagram),
}

impl Body {
    /// The end of the connection that it goes to. What is not TCP has only one.
    #[inline]
    pub(crate) fn receiver_role(&self) -> Role {
        match self {
            Self::Tcp(tcp) => tcp.to,
            Self::Echo(_) | Self::Datagram(_) => Role::Server,
        }
    }
}

/// A segment on its way to one end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpPacket {
    pub(crate) connection: u32,
    pub(crate) to: Role,
    /// The number of full segments that a queue has split off in front of this one.
    pub(crate) segments_before: u8,
    pub(crate) segment: Segment,
}

impl TcpPacket {
    /// Payload of the packet as its host sent it.
    pub(crate) fn sent_len(&self) -> u32 {
        self.segment.len + u32::from(self.segments_before) * MSS_BYTES
    }
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The end that connects.
    Client,
    /// The end that accepts.
    Server,
}

impl Role {
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
    /// Index of the entry of traffic that sent the request.
    pub(crate) ping: u32,
    pub(crate) seq: u64,
    pub(crate) kind: EchoKind,
}

impl Echo {
    pub(crate) fn is_reply(self) -> bool {
        self.kind == EchoKind::Reply
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EchoKind {
    Request,
    Reply,
}

/// A UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// Index of the entry of traffic that it belongs to.
    pub(crate) traffic: u32,
    /// Index of the flow within the entry.
    pub(crate) stream: u32,
    pub(crate) seq: u64,
    pub(crate) direction: Direction,
}

/// The two directions of an entry of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From `from` to `to`.
    Forward,
    /// From `to` to `from`.
    Reverse,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue of headers is what the simulator reads most.
    #[test]
    fn two_headers_fit_into_a_cache_line() {
        assert_eq!(size_of::<Header>(), 32);
    }

    #[test]
    fn another_hash_differs_in_all_but_the_bits_of_the_addresses() {
        let (mut hash, mut seen) = (0xdead_beef, std::collections::HashSet::new());
        for _ in 0..100 {
            assert!(seen.insert(hash), "{hash:x}");
            assert_eq!(hash & 0xffff, 0xbeef);
            hash = Header::rehash(hash);
        }
    }
}
