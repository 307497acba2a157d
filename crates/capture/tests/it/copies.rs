//! Packets that were captured more than once, and others that only look so.

use crate::common::{echo, ethernet, ipv6, pcap, session, tcp};
use bufferscope_capture::Segment;
use bufferscope_capture::session::Session;

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// A packet to or from 192.0.2.1 with this identification and time to live.
fn packet(is_back: bool, id: u16, ttl: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let hosts = if is_back { [9, 1] } else { [1, 9] };
    let mut packet = vec![0x45, 0];
    packet.extend(((20 + payload.len()) as u16).to_be_bytes());
    packet.extend(id.to_be_bytes());
    packet.extend([0x40, 0, ttl, protocol, 0, 0, 192, 0, 2, hosts[0], 192, 0, 2, hosts[1]]);
    packet.extend(payload);
    packet
}

fn data(seq: u32, id: u16, ttl: u8) -> Vec<u8> {
    packet(false, id, ttl, 6, &[tcp(1000, 80, seq, 1, ACK, &[]), vec![7; 100]].concat())
}

fn syn(is_back: bool) -> Vec<u8> {
    let ports = if is_back { (80, 1000) } else { (1000, 80) };
    packet(is_back, 0, 64, 6, &tcp(ports.0, ports.1, 0, 0, SYN, &[]))
}

fn ack(ack: u32) -> Vec<u8> {
    packet(true, 0, 64, 6, &tcp(80, 1000, 1, ack, ACK, &[]))
}

/// A pcap file of packets at these microseconds.
fn at(link_type: u32, packets: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let row = |(us, data): &(u32, Vec<u8>)| (100 + us / 1_000_000, us % 1_000_000, data.clone(), data.len() as u32);
    pcap(0xa1b2_c3d4, false, link_type, &packets.iter().map(row).collect::<Vec<_>>())
}

fn read(packets: &[(u32, Vec<u8>)]) -> (Session, Vec<Segment>) {
    let (session, found) = session(&[at(101, packets)]).unwrap();
    (session, found.segments)
}

/// Each packet `times` times, this many microseconds apart.
fn copied(packets: &[(u32, Vec<u8>)], times: u32, apart_us: u32) -> Vec<(u32, Vec<u8>)> {
    let mut all: Vec<_> = packets
        .iter()
        .flat_map(|(us, data)| (0..times).map(move |copy| (us + copy * apart_us, data.clone())))
        .collect();
    all.sort_by_key(|(us, _)| *us);
    all
}

/// A handshake, ten segments and their acknowledgements, without identification and without timestamps.
fn connection() -> Vec<(u32, Vec<u8>)> {
    let mut packets =
        vec![(0, syn(false)), (40_000, syn(true)), (40_050, packet(false, 0, 64, 6, &tcp(1000, 80, 1, 1, ACK, &[])))];
    for number in 0..10 {
        packets.push((41_000 + number * 1200, data(1 + number * 100, 0, 64)));
        packets.push((81_000 + number * 1200, ack(101 + number * 100)));
    }
    packets.sort_by_key(|(us, _)| *us);
    packets
}

#[test]
fn each_packet_is_used_once_however_often_it_was_captured() {
    let once = connection();
    for times in [2, 3, 4] {
        for apart_us in [0, 20, 300, 5000, 30_000] {
            let (session, segments) = read(&copied(&once, times, apart_us));
            assert_eq!(segments.len(), once.len(), "{times} times, {apart_us} us apart");
            assert_eq!(session.counts.copies, once.len() as u64 * u64::from(times - 1));
        }
    }
}

#[test]
fn without_the_handshake_copies_are_known_by_coming_at_once() {
    let once: Vec<_> = connection().into_iter().skip(3).collect();
    for apart_us in [0, 20, 80] {
        let (session, segments) = read(&copied(&once, 2, apart_us));
        assert_eq!((segments.len(), session.counts.copies), (once.len(), once.len() as u64), "{apart_us} us apart");
        assert_eq!(session.counts.doubtful_copies, 0);
    }
}

#[test]
fn copies_that_cannot_be_distinguished_from_retransmissions_are_counted_as_doubtful() {
    let once: Vec<_> = connection().into_iter().skip(3).collect();
    let (session, _) = read(&copied(&once, 2, 50_000));
    assert!(session.counts.doubtful_copies >= 9, "{}", session.counts.doubtful_copies);
    let mut lossy = once;
    lossy.push((300_000, data(1, 0, 64)));
    lossy.push((300_100, ack(1001)));
    assert_eq!(read(&lossy).0.counts.doubtful_copies, 0);
}

#[test]
fn a_retransmission_is_no_copy_even_if_all_of_its_bytes_are_the_same() {
    // A fast retransmission after 40 ms, one on a network of 0.3 ms behind an acknowledgement, a time-out.
    for (us, back_us) in [(91_000, 81_500), (41_300, 41_200), (350_000, 82_000)] {
        let mut packets: Vec<_> = connection();
        packets.push((back_us, packet(true, 0, 64, 6, &tcp(80, 1000, 1, 1, ACK, &[]))));
        packets.push((us, data(1, 0, 64)));
        packets.sort_by_key(|(us, _)| *us);
        let (session, segments) = read(&packets);
        assert_eq!((segments.len(), session.counts.copies), (packets.len(), 0), "{us} us");
        // The same, with each packet twice: what was sent twice is seen twice.
        let (session, segments) = read(&copied(&packets, 2, 20));
        assert_eq!((segments.len(), session.counts.copies), (packets.len(), packets.len() as u64), "{us} us, copied");
    }
}

#[test]
fn without_answers_only_what_comes_in_a_tenth_of_a_millisecond_is_a_copy() {
    let sent = |us| vec![(0, data(1, 0, 64)), (us, data(1, 0, 64))];
    assert_eq!(read(&sent(20)).0.counts.copies, 1);
    assert_eq!(read(&sent(300)).0.counts.copies, 0);
}

#[test]
fn what_a_router_forwarded_is_a_copy_after_any_time_in_its_queue() {
    for (id, ttl) in [(0, 63), (4711, 63), (4711, 64)] {
        let (session, segments) = read(&[(0, data(1, id, 64)), (700_000, data(1, id, ttl))]);
        assert_eq!((segments.len(), session.counts.copies), (1, 1), "{id} {ttl}");
    }
    // Another identification is another packet, and a larger time to live is no forwarding.
    assert_eq!(read(&[(0, data(1, 4711, 64)), (700_000, data(1, 4712, 64))]).0.counts.copies, 0);
    assert_eq!(read(&[(0, data(1, 0, 63)), (700_000, data(1, 0, 64))]).0.counts.copies, 0);
}

#[test]
fn repeated_acknowledgements_of_a_connection_without_copies_stay() {
    let mut packets = connection();
    packets.extend([(95_000, ack(1001)), (95_010, ack(1001)), (95_020, ack(1001))]);
    let (session, segments) = read(&packets);
    assert_eq!((segments.len(), session.counts.copies), (packets.len(), 0));
}

#[test]
fn a_syn_is_sent_again_after_a_second_and_not_before() {
    let (session, segments) =
        read(&[(0, syn(false)), (60, syn(false)), (1_000_000, syn(false)), (1_000_060, syn(false))]);
    assert_eq!((segments.len(), session.counts.copies), (2, 2));
}

#[test]
fn in_ipv6_and_for_pings_and_datagrams_copies_are_left_out_as_well() {
    let segment = [tcp(1000, 80, 1, 1, ACK, &[]), vec![0; 50]].concat();
    let datagram = [&[0x12, 0x34, 0, 53, 0, 58, 0, 0][..], &[5; 50]].concat();
    for (protocol, payload) in [(6, segment), (17, datagram)] {
        let copy = ipv6(protocol, &payload);
        let (session, _) = session(&[at(101, &copied(&[(0, copy.clone()), (5_000_000, copy)], 3, 15))]).unwrap();
        assert_eq!((session.counts.copies, session.counts.tcp + session.counts.udp), (4, 2), "{protocol}");
    }
    let pings: Vec<_> = (0..5)
        .flat_map(|seq| {
            let sent_us = u32::from(seq) * 1_000_000;
            let ask = packet(false, 0, 64, 1, &echo(false, 9, seq));
            [(sent_us, ask), (sent_us + 20_000, packet(true, 0, 64, 1, &echo(true, 9, seq)))]
        })
        .collect();
    let (session, found) = session(&[at(101, &copied(&pings, 2, 9000))]).unwrap();
    assert_eq!((session.pings[0].requests, session.pings[0].answered, session.counts.copies), (5, 5, 10));
    assert!(found.echoes.iter().all(|each| each.3 == Some(20_000_000)));
}

/// A frame of a cooked capture.
fn cooked(version: u8, is_sent: bool, interface: u8, ip: &[u8]) -> Vec<u8> {
    let kind = if is_sent { 4 } else { 0 };
    match version {
        1 => [&[0, kind][..], &[0; 12], &[8, 0], ip].concat(),
        _ => [&[8, 0, 0, 0, 0, 0, 0, interface, 0, 1, kind, 6][..], &[0; 8], ip].concat(),
    }
}

#[test]
fn a_cooked_capture_of_a_router_is_one_of_two_interfaces() {
    for (version, link_type) in [(1, 113), (2, 276)] {
        let mut packets = Vec::new();
        for (us, ip) in connection() {
            let is_back = ip[15] == 9;
            let [first, second] = if is_back { [3, 2] } else { [2, 3] };
            packets.push((us, cooked(version, false, first, &ip)));
            packets.push((us + 30_000, cooked(version, true, second, &ip)));
        }
        packets.sort_by_key(|(us, _)| *us);
        let (session, found) = session(&[at(link_type, &packets)]).unwrap();
        assert_eq!((session.vantage_points.len(), session.counts.copies), (2, 0), "{version}");
        let first = found.segments.iter().filter(|segment| segment.vantage_point == 0).count();
        assert_eq!(2 * first, packets.len());
    }
}

#[test]
fn a_ping_through_a_router_is_one_ping_with_the_time_nearest_to_its_sender() {
    let ask = packet(false, 0, 64, 1, &echo(false, 9, 1));
    let answer = packet(true, 0, 60, 1, &echo(true, 9, 1));
    let packets = [
        (0, cooked(2, false, 2, &ask)),
        (5000, cooked(2, true, 3, &ask)),
        (25_000, cooked(2, false, 3, &answer)),
        (85_000, cooked(2, true, 2, &answer)),
    ];
    let (session, found) = session(&[at(276, &packets)]).unwrap();
    assert_eq!(session.pings.len(), 1);
    assert_eq!((session.pings[0].requests, session.pings[0].answered), (1, 1));
    assert_eq!(found.echoes, [(0, 1, 0, Some(85_000_000))]);
}

#[test]
fn a_frame_in_a_vlan_and_outside_of_it_is_one_packet() {
    let ip = data(1, 0, 64);
    let tagged = ethernet(0x8100, &[&[0, 5, 8, 0][..], &ip].concat());
    let (session, found) = session(&[at(1, &[(0, tagged), (10, ethernet(0x0800, &ip))])]).unwrap();
    assert_eq!((found.segments.len(), session.counts.copies), (1, 1));
}
