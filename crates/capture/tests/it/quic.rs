//! Observations of QUIC connections.

use crate::common::{pcap, session};
use bufferscope_capture::session::{QuicNotes, Session};

/// A datagram of the client (port 50000), or of the server (443), at this microsecond.
fn datagram(us: u32, is_back: bool, payload: &[u8]) -> (u32, u32, Vec<u8>, u32) {
    let (ports, hosts) = if is_back { ([443_u16, 50_000], [9, 1]) } else { ([50_000, 443], [1, 9]) };
    let mut udp = ports.map(u16::to_be_bytes).concat();
    udp.extend(((8 + payload.len()) as u16).to_be_bytes());
    // A checksum, by which datagrams differ as they do in practice.
    udp.extend((us as u16).to_be_bytes());
    udp.extend(payload);
    let mut ip = vec![0x45, 0];
    ip.extend(((20 + udp.len()) as u16).to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, hosts[0], 192, 0, 2, hosts[1]]);
    ip.extend(udp);
    let wire_bytes = ip.len() as u32;
    (100 + us / 1_000_000, us % 1_000_000, ip, wire_bytes)
}

fn initial(us: u32, is_back: bool, from: [u8; 4]) -> (u32, u32, Vec<u8>, u32) {
    let payload = [&[0xc0, 0, 0, 0, 1, 2, 7, 7, 4][..], &from, &[0; 100]].concat();
    datagram(us, is_back, &payload)
}

fn data(us: u32, is_back: bool, spin: bool) -> (u32, u32, Vec<u8>, u32) {
    datagram(us, is_back, &[&[0x40 | u8::from(spin) << 5][..], &[9; 99]].concat())
}

fn read(packets: &mut [(u32, u32, Vec<u8>, u32)]) -> (Session, QuicNotes) {
    packets.sort_by_key(|packet| (packet.0, packet.1));
    let (session, _) = session(&[pcap(0xa1b2_c3d4, false, 101, packets)]).unwrap();
    let notes = session.quic[0].clone();
    (session, notes)
}

/// Packets every millisecond in both directions, with a round trip of 40 ms of which 10 ms are before the capture, and
/// the bits of both ends by the number of the round trip.
fn conversation(bit: impl Fn(bool, u32) -> bool) -> Vec<(u32, u32, Vec<u8>, u32)> {
    let mut packets = vec![initial(0, false, *b"abcd"), initial(30_000, true, *b"wxyz")];
    for ms in 0..400 {
        packets.push(data(50_000 + ms * 1000, false, bit(false, ms / 40)));
        packets.push(data(50_000 + 30_000 + ms * 1000 + 1, true, bit(true, ms / 40)));
    }
    packets
}

#[test]
fn the_spin_bit_gives_the_round_trip_where_both_ends_have_it_turn() {
    let (session, notes) = read(&mut conversation(|_, round| round % 2 == 1));
    assert_eq!(notes.spin.behaviour, "works");
    assert_eq!(
        (notes.spin.min_ns, notes.spin.median_ns, notes.spin.p95_ns),
        (Some(40_000_000), Some(40_000_000), Some(40_000_000))
    );
    assert_eq!((notes.from.port, notes.to.port, notes.version), (50_000, 443, Some(1)));
    assert_eq!(notes.ids, [vec!["61626364".to_owned()], vec!["7778797a".to_owned()]]);
    assert_eq!((notes.packets, notes.bytes), ([401, 401], [40_113, 40_113]));
    assert_eq!(notes.bytes_in.map(|bytes| bytes.iter().sum::<u64>()), notes.bytes);
    assert_eq!((session.counts.udp, session.counts.copies), (802, 0));
}

#[test]
fn a_spin_bit_that_does_not_work_gives_no_time() {
    for (bit, behaviour) in [
        (Box::new(|_: bool, _: u32| false) as Box<dyn Fn(bool, u32) -> bool>, "constant"),
        (Box::new(|is_back, round| !is_back && round % 2 == 1), "constant"),
    ] {
        let (_, notes) = read(&mut conversation(bit));
        assert_eq!((notes.spin.behaviour, notes.spin.median_ns), (behaviour, None));
    }
    // By chance, for each packet.
    let mut state = 1_u32;
    let mut packets = vec![initial(0, false, *b"abcd")];
    for ms in 0..400 {
        for is_back in [false, true] {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            packets.push(data(1000 * ms + u32::from(is_back), is_back, state >> 31 == 1));
        }
    }
    let (_, notes) = read(&mut packets);
    assert_eq!((notes.spin.behaviour, notes.spin.median_ns), ("random", None));
}

#[test]
fn a_direction_alone_and_few_turns_give_no_time() {
    let mut one_way: Vec<_> = (0..400).map(|ms| data(ms * 1000, true, ms / 40 % 2 == 1)).collect();
    assert_eq!(read(&mut one_way).1.spin.behaviour, "one-way");
    let mut short: Vec<_> = (0..60).flat_map(|ms| [false, true].map(|back| data(ms * 1000, back, ms > 40))).collect();
    let (_, notes) = read(&mut short);
    assert_eq!((notes.spin.behaviour, notes.is_sure, notes.to.port), ("few", false, 443));
}

#[test]
fn long_connections_are_counted_in_longer_intervals() {
    let mut packets: Vec<_> = (0..500).map(|number| data(number * 1_000_000, false, false)).collect();
    let (_, notes) = read(&mut packets);
    assert!(notes.bytes_in[0].len() <= 600);
    assert_eq!((notes.bytes_in[0].iter().sum::<u64>(), notes.interval_ns), (50_000, 1_600_000_000));
}
