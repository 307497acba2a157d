//! From a captured packet to the transport's header.
//!
//! A packet is peeled: link layer, tags, tunnels, IP, until a transport is found. Of tunnels, the innermost packet is
//! used, and the layers on the way are told. Lengths come from the IP headers, because captures are often cut to their
//! headers; a packet that Linux captures before its network card cuts it has no length there, and then the wire's
//! counts.
//!
//! Link layers after <https://www.tcpdump.org/linktypes.html>; RFC 791, 8200, 2003, 4213 (IP in IP), 2784 and 2890 (GRE),
//! 7348 (VXLAN), 3032 (MPLS), 2516 (PPPoE), 1661 (PPP), 3GPP TS 29.281 (GTP-U).

mod cursor;
mod ip;
mod link;
mod transport;
mod tunnel;

use std::net::IpAddr;

pub use link::link_name;
pub use transport::{Echo, Tcp, Transport};

use cursor::Cursor;

/// How many headers around an IP packet are peeled.
const MOST_LAYERS: usize = 16;

/// What was around the innermost IP packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers(u16);

impl Layers {
    /// The words for all layers, in the order of their bits.
    pub const WORDS: [&str; 8] = ["VLAN", "MPLS", "PPPoE", "IP in IP", "GRE", "VXLAN", "GTP-U", "Ethernet in GRE"];

    const VLAN: Self = Self(1);
    const MPLS: Self = Self(1 << 1);
    const PPPOE: Self = Self(1 << 2);
    const IP_IN_IP: Self = Self(1 << 3);
    const GRE: Self = Self(1 << 4);
    const VXLAN: Self = Self(1 << 5);
    const GTP_U: Self = Self(1 << 6);
    const ETHERNET_IN_GRE: Self = Self(1 << 7);

    fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Whether there were none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Which they are: places in [`Layers::WORDS`].
    pub fn places(self) -> impl Iterator<Item = usize> {
        (0..Self::WORDS.len()).filter(move |place| self.0 & (1 << place) != 0)
    }
}

/// The innermost IP packet, and what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// What was around it.
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
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// Why a packet was not decoded.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Undecoded { $($(#[$doc])* $name,)* }

        impl Undecoded {
            /// What each is called, in order.
            pub const WORDS: &[&str] = &[$($word),*];
        }
    };
}

reasons! {
    /// Such as ARP, or the frames of a bridge.
    NotIp = "not IP",
    /// Such as Wi-Fi's own frames.
    LinkType = "of an unknown link type",
    /// The snap length was too short for its headers.
    Cut = "cut off within the headers",
    /// A length or version in its headers is impossible.
    Malformed = "with impossible headers",
    /// A later fragment has no transport's header.
    Fragment = "later fragments",
    /// Such as ESP or SCTP.
    Transport = "of another transport",
    /// More tunnels than anybody builds.
    Nested = "nested too deeply",
}

/// What to peel next.
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
    /// A transport in an IP packet.
    Done(Decoded),
}

/// Decodes a packet of an interface with this link type; `wire_bytes` is its length before it was cut.
pub fn decode(link_type: u16, data: &[u8], wire_bytes: u32) -> Result<Decoded, Undecoded> {
    let mut cursor = Cursor::new(data, wire_bytes);
    let mut layers = Layers::default();
    let mut next = link::first(link_type, &mut cursor)?;
    for _ in 0..MOST_LAYERS {
        next = match next {
            Next::EtherType(kind) => link::ether_type(kind, &mut cursor, &mut layers)?,
            Next::Ethernet => link::ethernet(&mut cursor)?,
            Next::Ppp(protocol) => link::ppp(protocol)?,
            Next::PppFrame => link::ppp_frame(&mut cursor)?,
            Next::Mpls => tunnel::mpls(&mut cursor)?,
            Next::Gre => tunnel::gre(&mut cursor, &mut layers)?,
            Next::Ip => ip::ip(&mut cursor, &mut layers)?,
            Next::Done(decoded) => return Ok(decoded),
        };
    }
    match next {
        Next::Done(decoded) => Ok(decoded),
        _ => Err(Undecoded::Nested),
    }
}
