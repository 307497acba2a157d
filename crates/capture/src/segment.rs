//! A captured TCP segment.

use std::net::IpAddr;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    pub address: IpAddr,
    pub port: u16,
}

/// The flags of a TCP header (RFC 9293, section 3.1), as in its bytes 12 and 13.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u16);

impl Flags {
    pub const FIN: u16 = 0x001;
    pub const SYN: u16 = 0x002;
    pub const RST: u16 = 0x004;
    pub const PSH: u16 = 0x008;
    pub const ACK: u16 = 0x010;
    pub const URG: u16 = 0x020;
    pub const ECE: u16 = 0x040;
    pub const CWR: u16 = 0x080;

    /// Whether all of these bits are set.
    #[inline]
    pub fn has(self, bits: u16) -> bool {
        self.0 & bits == bits
    }
}

/// The options of a TCP header that the analysis uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub mss: Option<u16>,
    /// The shift count (RFC 7323, section 2); on SYNs only.
    pub window_scale: Option<u8>,
    pub sack_permitted: bool,
    /// `TSval` and `TSecr` (RFC 7323, section 3).
    pub timestamps: Option<(u32, u32)>,
    /// Blocks of a selective acknowledgement (RFC 2018), left and right edge; the first `sack_blocks` count.
    pub sack: [(u32, u32); 4],
    pub sack_blocks: u8,
    /// Whether the options were cut off by the snap length, so that others may be missing.
    pub truncated: bool,
}

/// One TCP segment at one vantage point where packets were captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Time of capture, nanoseconds since 1970.
    pub t_ns: i64,
    /// The vantage point: an index into the interfaces of all files.
    pub vantage_point: u16,
    /// The file of the vantage point, whose interfaces share a clock.
    pub file: u16,
    pub from: Endpoint,
    pub to: Endpoint,
    pub seq: u32,
    pub ack: u32,
    pub flags: Flags,
    /// The window field as it is in the header, not scaled.
    pub window: u16,
    /// Length of the payload by the IP header, captured or not. With offload, it may be more than a packet's.
    pub payload_bytes: u32,
    /// The ECN field of the IP header (RFC 3168): 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    pub ecn: u8,
    /// Identification of IPv4; `None`: IPv6.
    pub ip_id: Option<u16>,
    /// Time to live, or hop limit.
    pub ttl: u8,
    pub options: Options,
}
