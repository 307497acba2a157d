//! The transport header in an IP packet.

use super::cursor::{Cursor, u16_at, u32_at};
use super::guess::{Guess, guess};
use super::quic::{self, Quic};
use super::{Decoded, Layers, Next, Undecoded, digest, tunnel};
use crate::{Flags, Options};

/// The header of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A segment of TCP.
    Tcp(Tcp),
    /// A datagram of UDP.
    Udp {
        /// The sender's port.
        from: u16,
        /// The receiver's port.
        to: u16,
        /// Its payload.
        payload_bytes: u32,
        /// A guess at its contents, if they are not decoded.
        guess: Option<Guess>,
        /// The QUIC header at its start, if it seems to have one. Many other payloads look like a short header.
        quic: Option<Quic>,
    },
    /// An echo request or its reply, of ICMP or ICMPv6.
    Echo(Echo),
    /// Another known message, such as an ICMP error.
    Other,
}

/// A TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of the header, as in `Segment`")]
pub struct Tcp {
    pub from_port: u16,
    pub to_port: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: Flags,
    pub window: u16,
    pub payload_bytes: u32,
    pub options: Options,
    /// Whether the IP packet is the first of several fragments, so that the payload's length is that of a part.
    pub is_fragment: bool,
}

/// An echo request or its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// A reply.
    pub is_reply: bool,
    /// The identifier: the number of the `ping` that sends.
    pub id: u16,
    /// The sequence number.
    pub seq: u16,
}

const ICMP: u8 = 1;
const IPV4: u8 = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;
const IPV6: u8 = 41;
const GRE: u8 = 47;
const ENCRYPTED: u8 = 50;
const AUTHENTICATED: u8 = 51;
const ICMPV6: u8 = 58;
const ETHERNET: u8 = 97;
const MPLS: u8 = 137;

#[inline]
pub(super) fn transport(
    protocol: u8,
    packet: Decoded,
    is_fragment: bool,
    cursor: &mut Cursor<'_>,
    layers: &mut Layers,
) -> Result<Next, Undecoded> {
    let start = *cursor;
    let transport = match protocol {
        TCP => Transport::Tcp(tcp(cursor, is_fragment)?),
        UDP => return udp(packet, cursor, layers),
        ICMP => icmp(cursor, [8, 0])?,
        ICMPV6 => icmp(cursor, [128, 129])?,
        IPV4 | IPV6 => {
            layers.add(Layers::IP_IN_IP);
            return Ok(Next::Ip);
        }
        MPLS => {
            layers.add(Layers::MPLS);
            return Ok(Next::Mpls);
        }
        GRE => return Ok(Next::Gre),
        ETHERNET => {
            layers.add(Layers::ETHERNET_IN_IP);
            cursor.take::<2>()?;
            return Ok(Next::Ethernet);
        }
        // Only in IPv4; in IPv6 it is an extension header.
        AUTHENTICATED => {
            let header = cursor.take::<8>()?;
            cursor.pass(usize::from(header[1]) * 4);
            return transport_behind(header[0], packet, is_fragment, cursor, layers);
        }
        ENCRYPTED => return Err(Undecoded::Encrypted),
        _ => return Err(Undecoded::Transport),
    };
    Ok(Next::Done(Decoded { transport, digest: digest::of(&packet, protocol, start.rest()), ..packet }))
}

/// The transport after an authentication header, which is never followed by a second one.
fn transport_behind(
    protocol: u8,
    packet: Decoded,
    is_fragment: bool,
    cursor: &mut Cursor<'_>,
    layers: &mut Layers,
) -> Result<Next, Undecoded> {
    if protocol == AUTHENTICATED {
        return Err(Undecoded::Nested);
    }
    transport(protocol, packet, is_fragment, cursor, layers)
}

#[inline]
fn tcp(cursor: &mut Cursor<'_>, is_fragment: bool) -> Result<Tcp, Undecoded> {
    let wire_bytes = cursor.wire_bytes();
    let header = cursor.take::<20>()?;
    let header_bytes = u32::from(header[12] >> 4) * 4;
    if header_bytes < 20 || header_bytes > wire_bytes {
        return Err(Undecoded::Malformed);
    }
    Ok(Tcp {
        from_port: u16_at(header, 0),
        to_port: u16_at(header, 2),
        seq: u32_at(header, 4),
        ack: u32_at(header, 8),
        flags: Flags(u16_at(header, 12) & 0x01ff),
        window: u16_at(header, 14),
        payload_bytes: wire_bytes - header_bytes,
        options: options(cursor.rest(), header_bytes as usize - 20),
        is_fragment,
    })
}

#[inline]
fn options(rest: &[u8], option_bytes: usize) -> Options {
    let mut found = Options { truncated: rest.len() < option_bytes, ..Options::default() };
    let mut rest = &rest[..rest.len().min(option_bytes)];
    // The options of most segments: two NOPs and timestamps.
    if let [1, 1, 8, 10, stamps @ ..] = rest
        && stamps.len() == 8
    {
        found.timestamps = Some((u32_at(stamps, 0), u32_at(stamps, 4)));
        return found;
    }
    while let [kind, behind @ ..] = rest {
        match kind {
            0 => break,
            1 => rest = behind,
            _ => {
                let Some((&length, _)) = behind.split_first() else { break };
                let Some((option, others)) = rest.split_at_checked(usize::from(length)) else { break };
                // A length below two would loop forever.
                let Some(value) = option.get(2..) else { break };
                option_of(*kind, value, &mut found);
                rest = others;
            }
        }
    }
    found
}

fn option_of(kind: u8, value: &[u8], found: &mut Options) {
    match (kind, value) {
        (2, value) if value.len() == 2 => found.mss = Some(u16_at(value, 0)),
        // RFC 7323, section 2.3: larger ones count as 14.
        (3, &[shift]) => found.window_scale = Some(shift.min(14)),
        (4, []) => found.sack_permitted = true,
        (5, blocks) => {
            for block in blocks.chunks_exact(8) {
                let Some(block_slot) = found.sack.get_mut(usize::from(found.sack_blocks)) else { break };
                *block_slot = (u32_at(block, 0), u32_at(block, 4));
                found.sack_blocks += 1;
            }
        }
        (8, value) if value.len() == 8 => found.timestamps = Some((u32_at(value, 0), u32_at(value, 4))),
        _ => {}
    }
}

fn udp(packet: Decoded, cursor: &mut Cursor<'_>, layers: &mut Layers) -> Result<Next, Undecoded> {
    let start = *cursor;
    let header = cursor.take::<8>()?;
    let (from, to) = (u16_at(header, 0), u16_at(header, 2));
    if let Some((layer, open)) = tunnel::of_ports(from, to) {
        let mut ahead = *cursor;
        if let Some(next) = open(&mut ahead) {
            *cursor = ahead;
            layers.add(layer);
            return Ok(next);
        }
    }
    let payload_bytes = cursor.wire_bytes();
    let guess = guess([from, to], cursor.rest(), payload_bytes);
    let transport = Transport::Udp { from, to, payload_bytes, guess, quic: quic::header(cursor.rest()) };
    Ok(Next::Done(Decoded { transport, digest: digest::of(&packet, UDP, start.rest()), ..packet }))
}

fn icmp(cursor: &mut Cursor<'_>, [request, reply]: [u8; 2]) -> Result<Transport, Undecoded> {
    let header = cursor.take::<8>()?;
    if header[0] != request && header[0] != reply {
        return Ok(Transport::Other);
    }
    Ok(Transport::Echo(Echo { is_reply: header[0] == reply, id: u16_at(header, 4), seq: u16_at(header, 6) }))
}
