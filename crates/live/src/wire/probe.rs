//! Probes: UDP packets of one size in both directions, so that a server never sends more than it received. Only the packets of a
//! flood are longer; a server sends them if its client has asked for them over the control connection, and it accepts that.
//!
//! All numbers are big-endian:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 4 | `BSP1` |
//! | 4 | 1 | kind ([`Kind`]) |
//! | 5 | 1 | the TTL with which the probe was sent; 0: the system's |
//! | 8 | 8 | session |
//! | 16 | 8 | sequence number, of the end that asks |
//! | 24 | 8 | when the request was sent, on the clock of the end that asks |
//! | 32 | 16 | cookie |
//! | 48 | 8 | when the request arrived, on the clock of the end that answers |
//! | 56 | 8 | when the answer was sent, on that clock |
//! | 64 | 8 | requests of this session that arrived so far |
//! | 72 | 8 | bytes of the load that the server has received so far |
//!
//! Times are nanoseconds of the real-time clock.

use super::SessionId;

/// Length of every packet.
pub const PACKET_BYTES: usize = 96;
/// Length of a flood's packets: with the headers of IPv4 and UDP 1400 bytes, which fit through most tunnels.
pub const FLOOD_BYTES: usize = 1372;
/// Length of the headers before it: IPv4 and UDP.
pub const HEADER_BYTES: usize = 28;
/// Proves that the sender receives what is sent to its address.
pub type Cookie = [u8; 16];

const MAGIC: [u8; 4] = *b"BSP1";

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The client asks for an answer.
    Request = 1,
    /// The server answers a request that carried a valid cookie.
    Reply = 2,
    /// The server answers one that did not: with a cookie, and nothing else.
    Offer = 3,
    /// The server's own probe, on its way to the client.
    Ladder = 4,
    /// The client answers it.
    LadderReply = 5,
    /// A packet of a flood ([`FLOOD_BYTES`]); or the client still wants the server's flood.
    Flood = 6,
}

impl Kind {
    fn parse(byte: u8) -> Option<Self> {
        [Self::Request, Self::Reply, Self::Offer, Self::Ladder, Self::LadderReply, Self::Flood]
            .into_iter()
            .find(|&kind| kind as u8 == byte)
    }
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// What it is for.
    pub kind: Kind,
    /// The TTL with which the request was sent; 0: the system's.
    pub ttl: u8,
    /// The session it belongs to.
    pub session: SessionId,
    /// Counts the packets of the end that asks.
    pub seq: u64,
    /// When the request was sent.
    pub asked_ns: u64,
    /// The sender's proof that it receives, or the new one.
    pub cookie: Cookie,
    /// When the request arrived.
    pub arrived_ns: u64,
    /// When the answer was sent.
    pub answered_ns: u64,
    /// Requests that arrived so far.
    pub requests: u64,
    /// Bytes of the load that the server has received so far.
    pub load_bytes: u64,
}

impl Packet {
    /// A request, with the rest zero.
    pub fn request(session: SessionId, seq: u64, ttl: u8, asked_ns: u64, cookie: Cookie) -> Self {
        Self {
            kind: Kind::Request,
            ttl,
            session,
            seq,
            asked_ns,
            cookie,
            arrived_ns: 0,
            answered_ns: 0,
            requests: 0,
            load_bytes: 0,
        }
    }

    /// A packet of a flood, or the client's request to go on with it; it is padded to its length when it is sent.
    pub fn flood(session: SessionId, seq: u64, cookie: Cookie) -> Self {
        Self { kind: Kind::Flood, ..Self::request(session, seq, 0, 0, cookie) }
    }

    /// Its bytes.
    pub fn bytes(&self) -> [u8; PACKET_BYTES] {
        let mut bytes = [0; PACKET_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = self.kind as u8;
        bytes[5] = self.ttl;
        bytes[32..48].copy_from_slice(&self.cookie);
        let numbers = [
            (8, self.session.0),
            (16, self.seq),
            (24, self.asked_ns),
            (48, self.arrived_ns),
            (56, self.answered_ns),
            (64, self.requests),
            (72, self.load_bytes),
        ];
        for (at, number) in numbers {
            bytes[at..at + 8].copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    /// Reads a packet; `None` if it is not one, or of another length.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let length = bytes.len();
        let bytes: &[u8; PACKET_BYTES] = bytes.get(..PACKET_BYTES)?.try_into().ok()?;
        let kind = Kind::parse(bytes[4])?;
        (length == PACKET_BYTES || length == FLOOD_BYTES && kind == Kind::Flood).then_some(())?;
        let number = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        (bytes[..4] == MAGIC).then_some(())?;
        Some(Self {
            kind,
            ttl: bytes[5],
            session: SessionId(number(8)),
            seq: number(16),
            asked_ns: number(24),
            cookie: bytes[32..48].try_into().expect("sixteen bytes"),
            arrived_ns: number(48),
            answered_ns: number(56),
            requests: number(64),
            load_bytes: number(72),
        })
    }
}

/// What identifies a request in an ICMP error, which quotes its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// The session it belongs to.
    pub session: SessionId,
    /// Its sequence number.
    pub seq: u64,
    /// The TTL with which it was sent.
    pub ttl: u8,
}

impl Quoted {
    /// Reads the quoted beginning of a packet; `None` if too little is quoted, as by old routers.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        (bytes.get(..4)? == MAGIC).then_some(())?;
        Some(Self { ttl: *bytes.get(5)?, session: SessionId(number(8)?), seq: number(16)? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet() -> impl Strategy<Value = Packet> {
        let numbers = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>());
        (1..=6_u8, any::<u8>(), any::<Cookie>(), numbers, any::<u64>()).prop_map(
            |(kind, ttl, cookie, (session, seq, asked_ns, arrived_ns, answered_ns, requests), load_bytes)| Packet {
                kind: Kind::parse(kind).unwrap(),
                ttl,
                session: SessionId(session),
                seq,
                asked_ns,
                cookie,
                arrived_ns,
                answered_ns,
                requests,
                load_bytes,
            },
        )
    }

    proptest! {
        #[test]
        fn a_packet_is_read_as_it_was_written(packet in packet()) {
            prop_assert_eq!(Packet::parse(&packet.bytes()), Some(packet));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Packet::parse(&bytes), Quoted::parse(&bytes));
        }

        #[test]
        fn an_error_that_quotes_24_bytes_identifies_the_request(packet in packet()) {
            let whole = packet.bytes();
            let quoted = Quoted { session: packet.session, seq: packet.seq, ttl: packet.ttl };
            prop_assert_eq!(Quoted::parse(&whole[..24]), Some(quoted));
            prop_assert_eq!(Quoted::parse(&whole[..23]), None);
        }
    }

    #[test]
    fn another_length_or_kind_is_refused() {
        let bytes = Packet::request(SessionId(7), 1, 0, 5, [0; 16]).bytes();
        assert_eq!(Packet::parse(&bytes[..95]), None);
        assert_eq!(Packet::parse(&[bytes.as_slice(), &[0]].concat()), None);
        let mut other = bytes;
        other[4] = 9;
        assert_eq!(Packet::parse(&other), None);
        let padding = vec![7; FLOOD_BYTES - PACKET_BYTES];
        assert_eq!(Packet::parse(&[bytes.as_slice(), &padding].concat()), None, "no packet of a flood");
        let flood = Packet::flood(SessionId(7), 1, [0; 16]);
        assert_eq!(Packet::parse(&[flood.bytes().as_slice(), &padding].concat()), Some(flood));
        assert_eq!(Packet::parse(&[flood.bytes().as_slice(), &padding[1..]].concat()), None);
        other = bytes;
        other[0] = b'X';
        assert_eq!(Packet::parse(&other), None);
    }
}
