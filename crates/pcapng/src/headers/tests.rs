use bufferscope_sim::tcp::{SackBlock, SackBlocks};
use proptest::prelude::*;

use super::*;

const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 6);

fn path(traffic_class: u8, id: u16, ttl: u8) -> Path {
    Path { hardware: [[2, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 1]], addresses: [CLIENT, SERVER], traffic_class, id, ttl }
}

fn segment(seq: u64, len: u32, flags: Flags) -> Segment {
    Segment { seq, ack: 1, len, window_bytes: 64_000, ts_val: 1000, ts_ecr: 900, sack: SackBlocks::NONE, flags }
}

fn tcp(segment: Segment, begins: [Beginning; 2]) -> Transport {
    Transport::Tcp { ports: [32768, 5001], segment, begins }
}

fn frame(path: &Path, transport: &Transport) -> (Vec<u8>, u32) {
    let mut bytes = vec![0xff; 3];
    let length = write(path, transport, false, &mut bytes);
    (bytes, length)
}

/// The checksum as a receiver verifies it, bit by bit after RFC 1071 and without the code under test: the sum of all
/// words, the checksum's included, is all ones. The frame's payload is filled up with zeros first.
fn verifies(frame: &[u8], length: u32) -> bool {
    let mut frame = frame.to_vec();
    frame.resize(length as usize, 0);
    let sum = |bytes: &[u8], start: u64| {
        let mut sum = start;
        for (at, byte) in bytes.iter().enumerate() {
            sum += u64::from(*byte) << if at % 2 == 0 { 8 } else { 0 };
        }
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        sum
    };
    let (ip, transport) = (&frame[14..34], &frame[34..]);
    let pseudo = match ip[9] {
        1 => 0,
        protocol => sum(&ip[12..20], u64::from(protocol) + transport.len() as u64),
    };
    sum(ip, 0) == 0xffff && sum(transport, pseudo) == 0xffff
}

/// Byte for byte what RFC 9293, RFC 7323 and RFC 2018 say, in the order in which Linux writes the options.
#[test]
fn a_syn_is_that_of_linux() {
    let syn = Segment { ack: 0, ts_ecr: 0, ..segment(0, 0, Flags::SYN) };
    let begins = [Beginning { seq: 0x0102_0304, clock: 0x10, window_scale: 7 }, Beginning::default()];
    let (bytes, length) = frame(&path(0, 0x1234, 64), &tcp(syn, begins));
    assert_eq!(length, 74);
    let expected = [
        &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 8, 0][..],
        &[0x45, 0, 0, 60, 0x12, 0x34, 0x40, 0, 64, 6],
        &bytes[24..26],
        &[10, 0, 0, 1, 10, 0, 0, 6],
        &[0x80, 0, 0x13, 0x89, 1, 2, 3, 4, 0, 0, 0, 0, 0xa0, 0x02, 0xfa, 0],
        &bytes[50..52],
        &[0, 0, 2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0x03, 0xf8, 0, 0, 0, 0, 1, 3, 3, 7],
    ];
    assert_eq!(bytes, expected.concat());
    assert!(verifies(&bytes, length));
}

#[test]
fn sequence_numbers_wrap_and_windows_are_scaled() {
    let begins = [Beginning { seq: 0xffff_fff0, clock: u32::MAX, window_scale: 7 }, Beginning::default()];
    let data = segment((1 << 32) + 0x20, 1448, Flags::ACK);
    let (bytes, length) = frame(&path(0, 1, 64), &tcp(data, begins));
    assert_eq!(length, 1514);
    assert_eq!(bytes[38..42], [0, 0, 0, 0x10]);
    assert_eq!(u16::from_be_bytes([bytes[48], bytes[49]]), 500, "64000 bytes in units of 128");
    assert_eq!(bytes[58..62], 999_u32.to_be_bytes(), "the clock wraps too");
}

#[test]
fn accurate_ecn_has_its_ninth_flag() {
    let flags = Flags::ACK | Flags::AE | Flags::CWR | Flags::ECE;
    let (bytes, _) = frame(&path(3, 1, 64), &tcp(segment(1, 0, flags), [Beginning::default(); 2]));
    assert_eq!((bytes[46], bytes[47]), (0x81, 0xd0));
    assert_eq!(bytes[15], 3, "Congestion Experienced");
}

#[test]
fn acknowledgements_report_what_was_received_out_of_order() {
    let mut sack = SackBlocks::NONE;
    sack.push(1, SackBlock { start: 1449, end: 2897 });
    let ack = Segment { sack, ..segment(1, 0, Flags::ACK) };
    let begins = [Beginning::default(), Beginning { seq: 1000, ..Beginning::default() }];
    let (bytes, length) = frame(&path(0, 1, 64), &tcp(ack, begins));
    assert_eq!(length, 14 + 64);
    let expected = [&[1, 1, 5, 10][..], &2449_u32.to_be_bytes(), &3897_u32.to_be_bytes()];
    assert_eq!(bytes[66..], expected.concat());
}

#[test]
fn a_packet_of_several_segments_has_one_header() {
    let (bytes, length) = frame(&path(0, 1, 64), &tcp(segment(1, 3 * 1448, Flags::ACK), [Beginning::default(); 2]));
    assert_eq!(length, 14 + 52 + 3 * 1448);
    assert_eq!(u32::from(u16::from_be_bytes([bytes[16], bytes[17]])), length - 14);
    assert!(verifies(&bytes, length));
}

#[test]
fn a_damaged_packet_has_a_wrong_checksum() {
    let mut bytes = Vec::new();
    let transport = Transport::Udp { ports: [40000, 7], payload_bytes: 100 };
    let length = write(&path(0, 1, 64), &transport, true, &mut bytes);
    assert!(!verifies(&bytes, length));
}

proptest! {
    #[test]
    fn every_checksum_is_right(
        class: u8, id: u16, ttl: u8, ports: [u16; 2], seq: u64, ack: u64, len in 0..63_000_u32, window: u32, clocks: [u32; 2],
        begins: [(u32, u32); 2], is_reply: bool, kind in 0..3,
    ) {
        let begins = begins.map(|(seq, clock)| Beginning { seq, clock, window_scale: 7 });
        let transport = match kind {
            0 => Transport::Udp { ports, payload_bytes: len },
            1 => Transport::Echo { is_reply, id, seq: seq as u16, payload_bytes: len },
            _ => {
                let segment = Segment { ack, window_bytes: window, ts_val: clocks[0], ts_ecr: clocks[1], ..segment(seq, len, Flags::ACK) };
                Transport::Tcp { ports, segment, begins }
            }
        };
        let (bytes, length) = frame(&path(class, id, ttl), &transport);
        prop_assert!(verifies(&bytes, length));
        prop_assert_eq!(u32::from(u16::from_be_bytes([bytes[16], bytes[17]])), length - ETHERNET_BYTES);
    }
}
