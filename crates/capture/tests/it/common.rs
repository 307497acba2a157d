//! Hand-made captures.

#![allow(dead_code, reason = "each test program uses some of them")]

use std::io::{Cursor, Read};
use std::ops::ControlFlow;

use bufferscope_capture::Segment;
use bufferscope_capture::session::{Choice, Follower, Session, SessionError, Source, read};

/// A number's bytes in the file's order.
pub(crate) fn order(big: bool, bytes: &[u8]) -> Vec<u8> {
    if big { bytes.iter().rev().copied().collect() } else { bytes.to_vec() }
}

/// A pcap file of packets with times in seconds and fractions, their captured bytes and their lengths on the wire.
pub(crate) fn pcap(magic: u32, big: bool, link_type: u32, packets: &[(u32, u32, Vec<u8>, u32)]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut number = |value: u32| file.extend(order(big, &value.to_le_bytes()));
    number(magic);
    number(if big { 0x0002_0004 } else { 0x0004_0002 });
    for value in [0, 0, 65_535, link_type] {
        number(value);
    }
    for (seconds, fraction, data, wire_bytes) in packets {
        for value in [*seconds, *fraction, data.len() as u32, *wire_bytes] {
            file.extend(order(big, &value.to_le_bytes()));
        }
        if magic == 0xa1b2_cd34 {
            file.extend([0; 8]);
        }
        file.extend(data);
    }
    file
}

/// A microsecond pcap file of Ethernet frames, one a millisecond.
pub(crate) fn ethernet_pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let packets: Vec<_> = frames
        .iter()
        .zip(0_u32..)
        .map(|(frame, number)| (100 + number / 1000, number % 1000 * 1000, frame.clone(), frame.len() as u32))
        .collect();
    pcap(0xa1b2_c3d4, false, 1, &packets)
}

/// A block of pcapng.
pub(crate) fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (12 + body.len().next_multiple_of(4)) as u32;
    let mut block = order(big, &kind.to_le_bytes());
    block.extend(order(big, &length.to_le_bytes()));
    block.extend(body);
    block.resize(block.len().next_multiple_of(4), 0);
    block.extend(order(big, &length.to_le_bytes()));
    block
}

/// A section header block.
pub(crate) fn section(big: bool) -> Vec<u8> {
    let mut body = order(big, &0x1a2b_3c4d_u32.to_le_bytes());
    body.extend(order(big, &1_u16.to_le_bytes()));
    body.extend(order(big, &0_u16.to_le_bytes()));
    body.extend([0xff; 8]);
    block(big, 0x0a0d_0d0a, &body)
}

/// An option of a block.
pub(crate) fn option(big: bool, code: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = order(big, &code.to_le_bytes());
    bytes.extend(order(big, &(value.len() as u16).to_le_bytes()));
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// An interface description block.
pub(crate) fn interface(big: bool, link_type: u16, snap_bytes: u32, options: &[u8]) -> Vec<u8> {
    let mut body = order(big, &link_type.to_le_bytes());
    body.extend([0; 2]);
    body.extend(order(big, &snap_bytes.to_le_bytes()));
    body.extend(options);
    block(big, 1, &body)
}

/// An enhanced packet block.
pub(crate) fn enhanced(big: bool, interface: u32, units: u64, data: &[u8], wire_bytes: u32) -> Vec<u8> {
    let mut body = Vec::new();
    for value in [interface, (units >> 32) as u32, units as u32, data.len() as u32, wire_bytes] {
        body.extend(order(big, &value.to_le_bytes()));
    }
    body.extend(data);
    block(big, 6, &body)
}

/// A TCP header with options (a multiple of four bytes), and no payload.
pub(crate) fn tcp(from: u16, to: u16, seq: u32, ack: u32, flags: u8, options: &[u8]) -> Vec<u8> {
    let mut header = Vec::new();
    header.extend(from.to_be_bytes());
    header.extend(to.to_be_bytes());
    header.extend(seq.to_be_bytes());
    header.extend(ack.to_be_bytes());
    header.extend([((20 + options.len()) / 4 * 16) as u8, flags]);
    header.extend(1000_u16.to_be_bytes());
    header.extend([0; 4]);
    header.extend(options);
    header
}

/// An IPv4 packet; the hosts are 192.0.2.FROM and 192.0.2.TO, `ip_bytes` is what its header says.
pub(crate) fn ipv4_of(protocol: u8, from: u8, to: u8, payload: &[u8], ip_bytes: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0x02];
    packet.extend(ip_bytes.to_be_bytes());
    packet.extend([0x12, 0x34, 0x40, 0, 64, protocol, 0, 0, 192, 0, 2, from, 192, 0, 2, to]);
    packet.extend(payload);
    packet
}

/// An IPv4 packet with the right length.
pub(crate) fn ipv4(protocol: u8, from: u8, to: u8, payload: &[u8]) -> Vec<u8> {
    ipv4_of(protocol, from, to, payload, (20 + payload.len()) as u16)
}

/// An IPv6 packet.
pub(crate) fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0x30, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next, 63]);
    for host in [1, 2] {
        packet.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    packet.extend(payload);
    packet
}

/// An Ethernet frame.
pub(crate) fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    frame.extend(kind.to_be_bytes());
    frame.extend(payload);
    frame
}

/// An ICMP echo request or reply.
pub(crate) fn echo(is_reply: bool, id: u16, seq: u16) -> Vec<u8> {
    let mut message = vec![if is_reply { 0 } else { 8 }, 0, 0, 0];
    message.extend(id.to_be_bytes());
    message.extend(seq.to_be_bytes());
    message.extend([0; 56]);
    message
}

/// What was passed to a follower.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) segments: Vec<Segment>,
    pub(crate) pings: Vec<String>,
    pub(crate) echoes: Vec<(usize, u64, u64, Option<u64>)>,
}

impl Follower for Found {
    fn segment(&mut self, segment: &Segment, _: i64) {
        self.segments.push(*segment);
    }

    fn ping(&mut self, name: &str) {
        self.pings.push(name.to_owned());
    }

    fn echo(&mut self, ping: usize, seq: u64, sent_ns: u64, rtt_ns: Option<u64>) {
        self.echoes.push((ping, seq, sent_ns, rtt_ns));
    }
}

/// A source with this content.
pub(crate) fn source(name: &str, content: Vec<u8>) -> Source {
    let stream: Box<dyn Read + Send> = Box::new(Cursor::new(content));
    Source { name: name.to_owned(), stream }
}

/// Reads files with these contents.
pub(crate) fn session(contents: &[Vec<u8>]) -> Result<(Session, Found), SessionError> {
    let mut found = Found::default();
    let sources = contents.iter().enumerate().map(|(number, each)| source(&format!("{number}.pcap"), each.clone()));
    let session = read(sources.collect(), &Choice::default(), &mut found, &mut |_| ControlFlow::Continue(()))?;
    Ok((session, found))
}
