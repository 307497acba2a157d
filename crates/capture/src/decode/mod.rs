//! Decodes a captured packet up to the transport's header.
//!
//! A packet is peeled: link layer, tags, tunnels, IP, until a transport is found. Of tunnels, the innermost packet is
//! used, and the layers around it are reported. Lengths come from the IP headers, because captures are often cut to
//! their headers; an offloaded packet of Linux has no length there, and then the length on the wire is used.
//!
//! Sources: <https://www.tcpdump.org/linktypes.html>; RFC 791, 8200, 2003, 4213 (IP in IP), 2784 and 2890 (GRE), 7348
//! (VXLAN), 8926 (Geneve), 3032 (MPLS), 2516 (PPPoE), 1661 (PPP), 2661 (L2TP), 4380 (Teredo), 3GPP TS 29.281 (GTP-U);
//! IEEE 802.2 (LLC) and 802.11 (Wi-Fi).

mod cursor;
mod digest;
mod guess;
mod ip;
mod link;
mod origin;
mod quic;
mod transport;
mod tunnel;
mod wifi;

use std::net::IpAddr;

pub(crate) use digest::mixed;
pub use guess::Guess;
pub use link::link_name;
pub use origin::{Origin, origin};
pub use quic::{ConnectionId, Quic};
pub use transport::{Echo, Tcp, Transport};

use cursor::Cursor;

/// Maximum number of headers around an IP packet.
const MOST_LAYERS: usize = 16;

/// The tags and tunnels around the innermost IP packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers(u16);

impl Layers {
    /// The words for all layers, in the order of their bits.
    pub const WORDS: [&str; 16] = [
        "VLAN",
        "MPLS",
        "PPPoE",
        "IP in IP",
        "GRE",
        "VXLAN",
        "GTP-U",
        "Ethernet in GRE",
        "Geneve",
        "ERSPAN",
        "L2TP",
        "Teredo",
        "LISP",
        "IP in UDP",
        "TZSP",
        "Ethernet in IP",
    ];

    const VLAN: Self = Self(1);
    const MPLS: Self = Self(1 << 1);
    const PPPOE: Self = Self(1 << 2);
    const IP_IN_IP: Self = Self(1 << 3);
    const GRE: Self = Self(1 << 4);
    const VXLAN: Self = Self(1 << 5);
    const GTP_U: Self = Self(1 << 6);
    const ETHERNET_IN_GRE: Self = Self(1 << 7);
    const GENEVE: Self = Self(1 << 8);
    const ERSPAN: Self = Self(1 << 9);
    const L2TP: Self = Self(1 << 10);
    const TEREDO: Self = Self(1 << 11);
    const LISP: Self = Self(1 << 12);
    const IP_IN_UDP: Self = Self(1 << 13);
    const TZSP: Self = Self(1 << 14);
    const ETHERNET_IN_IP: Self = Self(1 << 15);

    fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Whether there were none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Their indices in [`Layers::WORDS`].
    pub fn indices(self) -> impl Iterator<Item = usize> {
        (0..Self::WORDS.len()).filter(move |index| self.0 & (1 << index) != 0)
    }
}

/// The innermost IP packet, and its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The tags and tunnels around it.
    pub layers: Layers,
    /// Its sender.
    pub from: IpAddr,
    /// Its receiver.
    pub to: IpAddr,
    /// The ECN field.
    pub ecn: u8,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// Identification of IPv4; `None`: IPv6.
    pub ip_id: Option<u16>,
    /// Length of the whole IP packet, by its header.
    pub ip_bytes: u32,
    /// What it carries.
    pub transport: Transport,
    /// A digest of the fields that do not change on the path. Copies of a packet have the same digest, and different
    /// packets have different ones, with few exceptions (a retransmission without IP identification within a tick of
    /// TCP's timestamp clock).
    pub digest: u64,
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// Why a packet was not decoded.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Undecoded { $($(#[$doc])* $name,)* }

        impl Undecoded {
            /// Their names, in order.
            pub const WORDS: &[&str] = &[$($word),*];
        }
    };
}

reasons! {
    /// Such as ARP, or the frames of a bridge.
    NotIp = "not IP",
    /// Such as USB.
    LinkType = "of an unknown link type",
    /// The snap length was too short for its headers.
    Cut = "cut off within the headers",
    /// A length or version in its headers is impossible.
    Malformed = "with impossible headers",
    /// A later fragment has no transport's header.
    Fragment = "later fragments",
    /// Such as SCTP.
    Transport = "of another transport",
    /// More tunnels than any real network has.
    Nested = "nested too deeply",
    /// Such as ESP, MACsec, and frames of a Wi-Fi network with a password.
    Encrypted = "encrypted",
    /// Such as beacons and acknowledgements of frames.
    WifiOnly = "frames of Wi-Fi without data",
}

/// The next layer to decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// A protocol by its Ethernet type.
    EtherType(u16),
    /// A protocol by PPP's number.
    Ppp(u16),
    /// A frame of Ethernet.
    Ethernet,
    /// IPv4 or IPv6, by its version.
    Ip,
    /// MPLS labels.
    Mpls,
    /// PPP's frame.
    PppFrame,
    /// A tunnel of GRE.
    Gre,
    /// A header of LLC.
    Llc,
    /// Several frames in one of Wi-Fi.
    Aggregate,
    /// A transport in an IP packet.
    Done(Decoded),
}

/// Decodes a packet of an interface with this link type; `wire_bytes` is its length before it was cut. Of several packets
/// in one frame, this is the first: see [`decode_each`].
pub fn decode(link_type: u16, data: &[u8], wire_bytes: u32) -> Result<Decoded, Undecoded> {
    let mut first = None;
    decode_each(link_type, data, wire_bytes, &mut |decoded| first = first.or(Some(decoded)));
    first.unwrap_or(Err(Undecoded::Cut))
}

/// Maximum number of packets in one Wi-Fi frame. An aggregate has at most 11,454 bytes, a packet at least 20 and its
/// header 22.
const MOST_SUBFRAMES: usize = 272;

/// Decodes all packets of a frame. Only Wi-Fi aggregates have more than one.
#[inline]
pub fn decode_each(link_type: u16, data: &[u8], wire_bytes: u32, each: &mut impl FnMut(Result<Decoded, Undecoded>)) {
    let mut cursor = Cursor::new(data, wire_bytes);
    match link::first(link_type, &mut cursor) {
        Ok(Next::Aggregate) => {
            let mut subframes = 0;
            while subframes < MOST_SUBFRAMES
                && let Some(mut inside) = wifi::subframe(&mut cursor)
            {
                each(peel(Next::Llc, &mut inside));
                subframes += 1;
            }
            if subframes == 0 {
                each(Err(Undecoded::Cut));
            }
        }
        Ok(next) => each(peel(next, &mut cursor)),
        Err(reason) => each(Err(reason)),
    }
}

#[inline]
fn peel(first: Next, cursor: &mut Cursor<'_>) -> Result<Decoded, Undecoded> {
    let mut layers = Layers::default();
    let mut next = first;
    for _ in 0..MOST_LAYERS {
        next = match next {
            Next::EtherType(kind) => link::ether_type(kind, cursor, &mut layers)?,
            Next::Ethernet => link::ethernet(cursor)?,
            Next::Llc => link::llc(cursor)?,
            Next::Ppp(protocol) => link::ppp(protocol)?,
            Next::PppFrame => link::ppp_frame(cursor)?,
            Next::Mpls => tunnel::mpls(cursor)?,
            Next::Gre => tunnel::gre(cursor, &mut layers)?,
            Next::Ip => ip::ip(cursor, &mut layers)?,
            Next::Aggregate => return Err(Undecoded::Nested),
            Next::Done(decoded) => return Ok(decoded),
        };
    }
    match next {
        Next::Done(decoded) => Ok(decoded),
        _ => Err(Undecoded::Nested),
    }
}
