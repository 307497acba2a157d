//! The bytes of packets as Linux sends them: Ethernet II, IPv4, and TCP, UDP or ICMP.
//!
//! Payload is zeros. A packet of several segments is one IP packet with one header, as before the network card splits it;
//! if it is longer than a total length can say, that is 0 (as in the kernel's BIG TCP).

use std::net::Ipv4Addr;

use bufferscope_scenario::sizes::{IP_HEADER_BYTES, MSS_BYTES, TCP_HEADER_BYTES, TIMESTAMPS_BYTES};
use bufferscope_sim::tcp::{Flags, Segment};

use crate::checksum::Sum;

/// Length of the Ethernet header.
pub const ETHERNET_BYTES: u32 = 14;
const ETHERTYPE_IPV4: u16 = 0x0800;
/// Version 4, and a header of five words.
const VERSION_AND_LENGTH: u8 = 0x45;
const DONT_FRAGMENT: u16 = 0x4000;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Length of the headers of UDP and of ICMP echo messages.
const DATAGRAM_BYTES: u32 = 8;
const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;

/// Everything below the transport.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Hardware addresses of the sender and the receiver on this link.
    pub hardware: [[u8; 6]; 2],
    /// Addresses of the sending and the receiving host.
    pub addresses: [Ipv4Addr; 2],
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// The identification field.
    pub id: u16,
    /// Time to live.
    pub ttl: u8,
}

/// A transport's header, and the length of what follows.
#[derive(Clone, Copy, Debug)]
pub enum Transport {
    /// TCP.
    Tcp {
        /// Source and destination port.
        ports: [u16; 2],
        /// The segment.
        segment: Segment,
        /// The initial values of each direction of the connection: first this segment's.
        begins: [Beginning; 2],
    },
    /// UDP.
    Udp {
        /// Source and destination port.
        ports: [u16; 2],
        /// Payload bytes.
        payload_bytes: u32,
    },
    /// An ICMP echo message.
    Echo {
        /// Whether it is a reply.
        is_reply: bool,
        /// The identifier.
        id: u16,
        /// The sequence number.
        seq: u16,
        /// Payload bytes.
        payload_bytes: u32,
    },
}

/// The initial values of one direction of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beginning {
    /// The initial sequence number.
    pub seq: u32,
    /// What is added to the host's clock for the timestamps option.
    pub clock: u32,
    /// The window scale that the sender announces.
    pub window_scale: u8,
}

/// Puts the packet's headers into `bytes`, which is cleared. Returns the length of the whole frame.
pub fn write(path: &Path, transport: &Transport, is_corrupt: bool, bytes: &mut Vec<u8>) -> u32 {
    let (protocol, length) = (transport.protocol(), transport.bytes());
    bytes.clear();
    bytes.extend_from_slice(&path.hardware[1]);
    bytes.extend_from_slice(&path.hardware[0]);
    push(bytes, ETHERTYPE_IPV4);
    let ip = bytes.len();
    bytes.extend_from_slice(&[VERSION_AND_LENGTH, path.traffic_class]);
    push(bytes, u16::try_from(IP_HEADER_BYTES + length).unwrap_or(0));
    push(bytes, path.id);
    push(bytes, DONT_FRAGMENT);
    bytes.extend_from_slice(&[path.ttl, protocol, 0, 0]);
    path.addresses.iter().for_each(|address| bytes.extend_from_slice(&address.octets()));
    let checksum = Sum::default().bytes(&bytes[ip..]).checksum();
    put(bytes, ip + 10, checksum);

    let begins = bytes.len();
    let checksum_at = begins + transport.write(bytes);
    // Zeros do not change the sum, so the payload counts only with its length.
    let pseudo = if protocol == ICMP { Sum::default() } else { pseudo_header(path, protocol, length) };
    let checksum = pseudo.bytes(&bytes[begins..]).checksum();
    // RFC 768: 0 means that there is no checksum.
    let checksum = if protocol == UDP && checksum == 0 { u16::MAX } else { checksum };
    put(bytes, checksum_at, if is_corrupt { checksum ^ 1 } else { checksum });
    ETHERNET_BYTES + IP_HEADER_BYTES + length
}

fn pseudo_header(path: &Path, protocol: u8, length: u32) -> Sum {
    let [high, low] = [(length >> 16) as u16, length as u16];
    let addresses = path.addresses.iter().fold(Sum::default(), |sum, address| sum.bytes(&address.octets()));
    addresses.word(protocol.into()).word(high).word(low)
}

impl Transport {
    fn protocol(&self) -> u8 {
        match self {
            Self::Tcp { .. } => TCP,
            Self::Udp { .. } => UDP,
            Self::Echo { .. } => ICMP,
        }
    }

    /// Length of the header and the payload.
    fn bytes(&self) -> u32 {
        match self {
            Self::Tcp { segment, .. } => tcp_header_bytes(segment) + segment.len,
            Self::Udp { payload_bytes, .. } | Self::Echo { payload_bytes, .. } => DATAGRAM_BYTES + payload_bytes,
        }
    }

    /// Appends the header, with a checksum of 0. Returns where in it the checksum is.
    fn write(&self, bytes: &mut Vec<u8>) -> usize {
        match self {
            Self::Tcp { ports, segment, begins } => {
                ports.iter().for_each(|port| push(bytes, *port));
                write_tcp(segment, begins, bytes);
                16
            }
            Self::Udp { ports, .. } => {
                ports.iter().for_each(|port| push(bytes, *port));
                push(bytes, self.bytes() as u16);
                push(bytes, 0);
                6
            }
            Self::Echo { is_reply, id, seq, .. } => {
                bytes.extend_from_slice(&[if *is_reply { ECHO_REPLY } else { ECHO_REQUEST }, 0, 0, 0]);
                push(bytes, *id);
                push(bytes, *seq);
                2
            }
        }
    }
}

/// Length of a segment's header with its options.
fn tcp_header_bytes(segment: &Segment) -> u32 {
    Segment { len: 0, ..*segment }.ip_bytes() - IP_HEADER_BYTES
}

/// Everything of a TCP header from the sequence number on.
fn write_tcp(segment: &Segment, [own, other]: &[Beginning; 2], bytes: &mut Vec<u8>) {
    let flags = segment.flags;
    let ack = if flags.ack() { absolute(segment.ack, other) } else { 0 };
    bytes.extend_from_slice(&absolute(segment.seq, own).to_be_bytes());
    bytes.extend_from_slice(&ack.to_be_bytes());
    let words = (tcp_header_bytes(segment) / 4) as u8;
    bytes.extend_from_slice(&[words << 4 | u8::from(flags.contains(Flags::AE)), flag_bits(flags)]);
    let scale = if flags.syn() { 0 } else { own.window_scale };
    push(bytes, u16::try_from(segment.window_bytes >> scale).unwrap_or(u16::MAX));
    push(bytes, 0);
    push(bytes, 0);
    write_options(segment, own, other, bytes);
}

/// The options in Linux' order.
fn write_options(segment: &Segment, own: &Beginning, other: &Beginning, bytes: &mut Vec<u8>) {
    const NOP: u8 = 1;
    const MSS: [u8; 2] = [2, 4];
    const WINDOW_SCALE: [u8; 2] = [3, 3];
    const SACK_PERMITTED: [u8; 2] = [4, 2];
    const SACK: u8 = 5;
    const TIMESTAMPS: [u8; 2] = [8, 10];
    if segment.flags.syn() {
        bytes.extend_from_slice(&MSS);
        push(bytes, (MSS_BYTES + TIMESTAMPS_BYTES) as u16);
        bytes.extend_from_slice(&SACK_PERMITTED);
    } else {
        bytes.extend_from_slice(&[NOP, NOP]);
    }
    bytes.extend_from_slice(&TIMESTAMPS);
    let echo = if segment.ts_ecr == 0 { 0 } else { segment.ts_ecr.wrapping_add(other.clock) };
    bytes.extend_from_slice(&segment.ts_val.wrapping_add(own.clock).to_be_bytes());
    bytes.extend_from_slice(&echo.to_be_bytes());
    if segment.flags.syn() {
        bytes.push(NOP);
        bytes.extend_from_slice(&WINDOW_SCALE);
        bytes.push(own.window_scale);
    } else if !segment.sack.is_empty() {
        bytes.extend_from_slice(&[NOP, NOP, SACK, 2 + 8 * segment.sack.len() as u8]);
        for block in segment.sack.iter(segment.ack) {
            bytes.extend_from_slice(&absolute(block.start, other).to_be_bytes());
            bytes.extend_from_slice(&absolute(block.end, other).to_be_bytes());
        }
    }
}

/// A sequence number on the wire, where it wraps.
fn absolute(seq: u64, beginning: &Beginning) -> u32 {
    beginning.seq.wrapping_add(seq as u32)
}

/// The byte of the flags on the wire.
fn flag_bits(flags: Flags) -> u8 {
    const WIRE_BITS: [(Flags, u8); 6] = [
        (Flags::FIN, 0x01),
        (Flags::SYN, 0x02),
        (Flags::PSH, 0x08),
        (Flags::ACK, 0x10),
        (Flags::ECE, 0x40),
        (Flags::CWR, 0x80),
    ];
    WIRE_BITS.iter().filter(|(flag, _)| flags.contains(*flag)).fold(0, |bits, (_, bit)| bits | bit)
}

fn push(bytes: &mut Vec<u8>, word: u16) {
    bytes.extend_from_slice(&word.to_be_bytes());
}

fn put(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

/// A TCP header of five words is what [`Segment::ip_bytes`] counts.
const _: () = assert!(TCP_HEADER_BYTES == 20);

#[cfg(test)]
mod tests;
