//! Packets with all kinds of headers around them.

use crate::common::{ethernet, ipv4, ipv4_of, ipv6, tcp};
use bufferscope_capture::Flags;
use bufferscope_capture::decode::{Decoded, Guess, Layers, Transport, Undecoded, decode, decode_each};

fn words(decoded: &Decoded) -> Vec<&'static str> {
    decoded.layers.indices().map(|index| Layers::WORDS[index]).collect()
}

/// A segment with 100 bytes of payload.
fn segment() -> Vec<u8> {
    [tcp(1234, 80, 7, 9, 0x18, &[]), vec![0; 100]].concat()
}

fn whole(link_type: u16, packet: &[u8]) -> Result<Decoded, Undecoded> {
    decode(link_type, packet, packet.len() as u32)
}

fn udp(to: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0x30, 0x39];
    datagram.extend(to.to_be_bytes());
    datagram.extend(((8 + payload.len()) as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    datagram
}

#[test]
fn a_segment_is_found_whatever_is_around_it() {
    let ip = ipv4(6, 1, 2, &segment());
    let inner = ethernet(0x0800, &ip);
    let cooked_2 = [&[0x08, 0x00][..], &[0; 18], &ip].concat();
    let gtp = [&[0x30, 255, 0, 0, 0, 0, 0, 1][..], &ip].concat();
    let gtp_extended = [&[0x34, 255, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 9, 0][..], &ip].concat();
    let cases: [(u16, Vec<u8>, &[&str]); 22] = [
        (1, inner.clone(), &[]),
        (101, ip.clone(), &[]),
        (228, ip.clone(), &[]),
        (0, [&2_u32.to_le_bytes()[..], &ip].concat(), &[]),
        (108, [&2_u32.to_be_bytes()[..], &ip].concat(), &[]),
        (113, [&[0; 14][..], &[8, 0], &ip].concat(), &[]),
        (276, cooked_2, &[]),
        (9, [&[0xff, 3, 0, 0x21][..], &ip].concat(), &[]),
        (9, [&[0x21][..], &ip].concat(), &[]),
        (1, ethernet(0x8100, &[&[0, 5, 8, 0][..], &ip].concat()), &["VLAN"]),
        (1, ethernet(0x88a8, &[&[0, 5, 0x81, 0, 0, 6, 8, 0][..], &ip].concat()), &["VLAN"]),
        (1, ethernet(0x8847, &[&[0, 0, 0, 64, 0, 0, 1, 64][..], &ip].concat()), &["MPLS"]),
        (1, ethernet(0x8847, &[&[0, 0, 1, 64, 0, 0, 0, 0][..], &inner].concat()), &["MPLS"]),
        (1, ethernet(0x8864, &[&[0x11, 0, 0, 1, 0, 142, 0, 0x21][..], &ip].concat()), &["PPPoE"]),
        (101, ipv4(4, 8, 9, &ip), &["IP in IP"]),
        (101, ipv6(4, &ip), &["IP in IP"]),
        (101, ipv4(47, 8, 9, &[&[0, 0, 8, 0][..], &ip].concat()), &["GRE"]),
        (101, ipv4(47, 8, 9, &[&[0x30, 0, 8, 0, 1, 2, 3, 4, 0, 0, 0, 1][..], &ip].concat()), &["GRE"]),
        (101, ipv4(47, 8, 9, &[&[0, 0, 0x65, 0x58][..], &inner].concat()), &["Ethernet in GRE"]),
        (101, ipv4(17, 8, 9, &udp(4789, &[&[8, 0, 0, 0, 0, 0, 1, 0][..], &inner].concat())), &["VXLAN"]),
        (101, ipv4(17, 8, 9, &udp(2152, &gtp)), &["GTP-U"]),
        (101, ipv4(17, 8, 9, &udp(2152, &gtp_extended)), &["GTP-U"]),
    ];
    for (link_type, packet, layers) in cases {
        let decoded = whole(link_type, &packet).unwrap_or_else(|why| panic!("{layers:?} {link_type}: {why:?}"));
        assert_eq!(words(&decoded), layers, "{link_type}");
        assert_eq!((decoded.from.to_string(), decoded.to.to_string()), ("192.0.2.1".into(), "192.0.2.2".into()));
        let Transport::Tcp(found) = decoded.transport else { panic!("{:?}", decoded.transport) };
        assert_eq!((found.from_port, found.to_port, found.seq, found.ack), (1234, 80, 7, 9));
        assert_eq!((found.payload_bytes, found.flags), (100, Flags(0x18)), "{layers:?}");
        assert_eq!((decoded.ecn, decoded.ttl, decoded.ip_id), (2, 64, Some(0x1234)));
    }
}

#[test]
fn ipv6_is_read_through_its_extension_headers() {
    let hop_by_hop = [&[43, 0, 1, 4, 0, 0, 0, 0][..], &[60, 1], &[0; 14], &[44, 0], &[0; 6], &[6, 0, 0, 0, 0, 0, 0, 1]];
    let packet = ipv6(0, &[&hop_by_hop.concat()[..], &segment()].concat());
    let decoded = whole(229, &packet).unwrap();
    assert_eq!(
        (decoded.from.to_string(), decoded.ecn, decoded.ttl, decoded.ip_id),
        ("2001:db8::1".into(), 3, 63, None)
    );
    assert!(matches!(decoded.transport, Transport::Tcp(found) if found.payload_bytes == 100 && !found.is_fragment));
}

#[test]
fn lengths_come_from_the_headers_of_ip_when_packets_are_cut_or_padded() {
    let payload = |packet: &[u8], wire_bytes| match decode(1, packet, wire_bytes).unwrap().transport {
        Transport::Tcp(found) => found.payload_bytes,
        other => panic!("{other:?}"),
    };
    let header = tcp(1, 2, 0, 0, 0x10, &[]);
    // Cut to 54 bytes: 1500 on the wire.
    assert_eq!(payload(&ethernet(0x0800, &ipv4_of(6, 1, 2, &header, 1500)), 1514), 1460);
    // Padded to Ethernet's 60 bytes.
    assert_eq!(payload(&ethernet(0x0800, &[ipv4(6, 1, 2, &header), vec![0; 6]].concat()), 60), 0);
    // Captured above a network card that segments packets: the header has no length if it does not fit.
    assert_eq!(payload(&ethernet(0x0800, &ipv4_of(6, 1, 2, &header, 0)), 14 + 40 + 100_000), 100_000);
}

#[test]
fn all_options_of_tcp_are_read_and_nonsense_ends_them() {
    let options = |bytes: &[u8]| {
        let packet = ipv4(6, 1, 2, &tcp(1, 2, 0, 0, 2, bytes));
        match whole(101, &packet).unwrap().transport {
            Transport::Tcp(found) => found.options,
            other => panic!("{other:?}"),
        }
    };
    let syn = options(&[2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9, 1, 3, 3, 200]);
    assert_eq!(
        (syn.mss, syn.sack_permitted, syn.timestamps, syn.window_scale),
        (Some(1460), true, Some((7, 9)), Some(14))
    );
    let usual = options(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    assert_eq!((usual.timestamps, usual.truncated), (Some((1, 2)), false));
    let sack = options(&[1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 6]);
    assert_eq!((sack.sack_blocks, &sack.sack[..2]), (2, &[(1, 2), (5, 6)][..]));
    // Two options with three blocks each: four are kept.
    let twice: Vec<u8> = [5_u8, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 6].repeat(2);
    assert_eq!(options(&[&twice[..], &[0, 0, 0, 0]].concat()).sack_blocks, 4);
    assert_eq!(options(&[8, 0, 1, 1]), options(&[1, 1, 1, 1]));
    assert_eq!(options(&[8, 40, 1, 1]).timestamps, None);
    let cut = ipv4_of(6, 1, 2, &tcp(1, 2, 0, 0, 2, &[1; 12])[..24], 52);
    assert!(matches!(decode(101, &cut, 52).unwrap().transport, Transport::Tcp(found) if found.options.truncated));
}

#[test]
fn what_is_not_decoded_has_a_reason() {
    let mut fragment = ipv4(6, 1, 2, &segment());
    fragment[6] = 0x20;
    let first = whole(101, &fragment).unwrap();
    assert!(matches!(first.transport, Transport::Tcp(found) if found.is_fragment));
    fragment[7] = 9;
    assert_eq!(whole(101, &fragment), Err(Undecoded::Fragment));
    assert_eq!(whole(1, &ethernet(0x0806, &[0; 28])), Err(Undecoded::NotIp));
    assert_eq!(whole(189, &[0; 60]), Err(Undecoded::LinkType));
    assert_eq!(whole(101, &ipv4(6, 1, 2, &segment())[..30]), Err(Undecoded::Cut));
    assert_eq!(whole(101, &ipv4_of(6, 1, 2, &segment(), 19)), Err(Undecoded::Malformed));
    assert_eq!(whole(101, &ipv4(132, 1, 2, &[0; 40])), Err(Undecoded::Transport));
    assert_eq!(whole(101, &[0x70; 60]), Err(Undecoded::Malformed));
    let nested = (0..20).fold(segment(), |inner, _| ipv4(if inner[0] == 0x45 { 4 } else { 6 }, 1, 2, &inner));
    assert_eq!(whole(101, &nested), Err(Undecoded::Nested));
    // A server of DNS on the port of VXLAN is UDP.
    let plain = whole(101, &ipv4(17, 1, 2, &udp(4789, &[0; 30]))).unwrap();
    assert_eq!(plain.transport, Transport::Udp { from: 12345, to: 4789, payload_bytes: 30, guess: None, quic: None });
}

/// A frame of 802.3 with a length, LLC and SNAP.
fn snap(ip: &[u8]) -> Vec<u8> {
    let inside = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], ip].concat();
    let mut frame = ethernet(inside.len() as u16, &inside);
    frame.extend([0; 6]);
    frame
}

/// A data frame of Wi-Fi: control field, the rest of the header, and what follows.
fn wifi(control: [u8; 2], more: &[u8], payload: &[u8]) -> Vec<u8> {
    [&control[..], &[0; 22], more, payload].concat()
}

fn radiotap(flags: u8, frame: &[u8]) -> Vec<u8> {
    // Two words of present fields, a time of 8 bytes, aligned, and the flags.
    [&[0, 0, 25, 0, 3, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0][..], &[1; 8], &[flags], frame].concat()
}

#[test]
fn a_segment_is_found_behind_the_headers_of_other_link_layers() {
    let ip = ipv4(6, 1, 2, &segment());
    let llc = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], &ip].concat();
    let frame = ethernet(0x0800, &ip);
    let open = wifi([0x08, 1], &[], &llc);
    let with_quality = wifi([0x88, 1], &[0, 0], &llc);
    let mut tap = [0; 108];
    tap[0] = 108;
    tap[8] = 1;
    tap[12..15].copy_from_slice(b"en0");
    let raw_tap = [&[108, 0, 0, 0, 1, 0, 0, 0, 12, 0, 0, 0][..], &[0; 96]].concat();
    let cases: Vec<(u16, Vec<u8>)> = vec![
        (1, snap(&ip)),
        (1, ethernet(0x0800 - 0x0200, &[])[..12].iter().copied().chain([0x88, 0x70]).chain(llc.clone()).collect()),
        (1, ethernet(0x8909, &[&[1, 1, 0, 1, 0, 9, 8, 0][..], &ip].concat())),
        (105, open.clone()),
        (105, with_quality.clone()),
        (105, wifi([0x88, 3], &[0, 0, 0, 0, 0, 0, 0, 0], &llc)),
        (105, wifi([0x88, 0x81], &[0, 0, 9, 9, 9, 9], &llc)),
        // Decrypted by the driver, which left the bit.
        (105, wifi([0x08, 0x41], &[], &llc)),
        (127, radiotap(0, &open)),
        (127, radiotap(0x20, &wifi([0x88, 1], &[0, 0, 0xee, 0xee], &llc))),
        (119, [&[0, 0, 0, 0x44, 144, 0, 0, 0][..], &[0; 136], &open].concat()),
        (163, [&[0, 0, 0, 0, 0, 0, 0, 64][..], &[0; 56], &open].concat()),
        (192, [&[0, 0, 8, 0, 105, 0, 0, 0][..], &open].concat()),
        (258, [&tap[..], &frame].concat()),
        (149, [&tap[..], &frame].concat()),
        (258, [&raw_tap[..], &ip].concat()),
        (109, [&[0; 12][..], &ip].concat()),
        (117, [&[61, 2][..], &[0; 62], &ip].concat()),
        (143, [&[1, 3, 0, 99, 7, 7, 7, 0, 0][..], &frame].concat()),
        (166, [&[1, 3, 0, 0x21][..], &ip].concat()),
        (204, [&[0, 0xff, 3, 0, 0x21][..], &ip].concat()),
        (239, [&[2, 0, 0, 0, 8, 0, 1, 0, 0, 0, 0, 0, 60, 0, 9, 0][..], &ip].concat()),
        (240, [&[0; 4][..], &frame].concat()),
        (274, [&[0x55; 8][..], &frame].concat()),
        (10, [&[0x50; 13][..], &llc].concat()),
        (281, [&frame[..12], &[0x20, 0, 0, 1], &frame[12..]].concat()),
        (282, [&[0x20, 0, 0, 1], &frame[..]].concat()),
        (284, [&frame[..12], &[0xc0, 0, 0, 0], &frame[12..]].concat()),
        (285, [&frame[..12], &[0xda, 0xda, 0, 0, 0xc0, 0, 0, 0], &frame[12..]].concat()),
        (51, [&[0x11, 0, 0, 1, 0, 142, 0, 0x21][..], &ip].concat()),
        (104, [&[0x0f, 0, 8, 0][..], &ip].concat()),
        (100, llc.clone()),
        (113, [&[0; 14][..], &[0, 4], &llc].concat()),
    ];
    for (link_type, packet) in cases {
        let decoded = whole(link_type, &packet).unwrap_or_else(|why| panic!("{link_type}: {why:?} {packet:02x?}"));
        let Transport::Tcp(found) = decoded.transport else { panic!("{:?}", decoded.transport) };
        assert_eq!((found.from_port, found.payload_bytes), (1234, 100), "{link_type}");
    }
}

#[test]
fn a_segment_is_found_in_other_tunnels() {
    let ip = ipv4(6, 1, 2, &segment());
    let inner = ethernet(0x0800, &ip);
    let in_udp = |to, header: &[u8], inside: &[u8]| ipv4(17, 8, 9, &udp(to, &[header, inside].concat()));
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (in_udp(8472, &[8, 0, 0, 0, 0, 0, 1, 0], &inner), "VXLAN"),
        (in_udp(4789, &[0x88, 0, 0, 7, 0, 0, 1, 0], &inner), "VXLAN"),
        (in_udp(4790, &[0x0c, 0, 0, 3, 0, 0, 1, 0], &inner), "VXLAN"),
        (in_udp(4790, &[0x0c, 0, 0, 1, 0, 0, 1, 0], &ip), "VXLAN"),
        (in_udp(6081, &[0, 0, 0x65, 0x58, 0, 0, 1, 0], &inner), "Geneve"),
        (in_udp(6081, &[2, 0, 0x65, 0x58, 0, 0, 1, 0, 1, 2, 3, 1, 5, 6, 7, 8], &inner), "Geneve"),
        (in_udp(6081, &[0, 0, 8, 0, 0, 0, 1, 0], &ip), "Geneve"),
        (in_udp(4754, &[0, 0, 8, 0], &ip), "GRE"),
        (in_udp(6635, &[0, 0, 1, 64], &ip), "MPLS"),
        (in_udp(1701, &[0x40, 2, 0, 9, 0, 1, 0, 1, 0xff, 3, 0, 0x21], &ip), "L2TP"),
        (in_udp(1701, &[0, 2, 0, 1, 0, 1, 0, 0x21], &ip), "L2TP"),
        (in_udp(37008, &[1, 0, 0, 1, 10, 1, 9, 1], &inner), "TZSP"),
        (in_udp(6080, &[0, 4, 0, 0], &ip), "IP in UDP"),
        (in_udp(4341, &[0; 8], &ip), "LISP"),
        (ipv4(47, 8, 9, &[&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1][..], &[0x10; 8], &inner].concat()), "ERSPAN"),
        (ipv4(47, 8, 9, &[&[0, 0, 0x88, 0xbe][..], &inner].concat()), "ERSPAN"),
        (ipv4(47, 8, 9, &[&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1][..], &[0; 12], &inner].concat()), "ERSPAN"),
        (ipv4(47, 8, 9, &[&[0x20, 1, 0x64, 0, 0, 9, 1, 0][..], &inner].concat()), "Ethernet in GRE"),
        (ipv4(97, 8, 9, &[&[0x30, 0][..], &inner].concat()), "Ethernet in IP"),
    ];
    for (packet, layer) in cases {
        let decoded = whole(101, &packet).unwrap_or_else(|why| panic!("{layer}: {why:?}"));
        assert_eq!(words(&decoded), [layer]);
        let Transport::Tcp(found) = decoded.transport else { panic!("{layer}: {:?}", decoded.transport) };
        assert_eq!((found.from_port, found.payload_bytes), (1234, 100), "{layer}");
    }
    let six = ipv6(6, &segment());
    for head in [vec![], vec![0; 8], [&[0, 1, 0, 0][..], &[0; 9], &[0; 8]].concat()] {
        let teredo = whole(101, &in_udp(3544, &head, &six)).unwrap();
        assert_eq!((words(&teredo), teredo.ip_id), (vec!["Teredo"], None));
    }
    let authenticated = ipv4(51, 1, 2, &[&[6, 4][..], &[0; 22], &segment()].concat());
    assert!(matches!(whole(101, &authenticated).unwrap().transport, Transport::Tcp(tcp) if tcp.payload_bytes == 100));
}

#[test]
fn several_packets_in_one_frame_of_wifi_are_all_found() {
    let packets = [1, 2, 3].map(|host| ipv4(6, host, 9, &segment()[..20 + usize::from(host)]));
    let mut aggregate = Vec::new();
    for ip in &packets {
        let inside = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], ip].concat();
        aggregate.resize(aggregate.len().next_multiple_of(4), 0);
        aggregate.extend([1; 12]);
        aggregate.extend((inside.len() as u16).to_be_bytes());
        aggregate.extend(inside);
    }
    let frame = wifi([0x88, 1], &[0x80, 0], &aggregate);
    let mut found = Vec::new();
    decode_each(105, &frame, frame.len() as u32, &mut |each| found.push(each.unwrap().from.to_string()));
    assert_eq!(found, ["192.0.2.1", "192.0.2.2", "192.0.2.3"]);
}

#[test]
fn what_is_encrypted_is_named() {
    let hidden = [0x5a; 40];
    for (link_type, packet) in [
        (101, ipv4(50, 1, 2, &hidden)),
        (101, ipv6(50, &hidden)),
        (1, ethernet(0x88e5, &hidden)),
        (105, wifi([0x88, 0x41], &[0, 0], &hidden)),
        (105, wifi([0x88, 0x41], &[0x80, 0], &hidden)),
    ] {
        assert_eq!(whole(link_type, &packet), Err(Undecoded::Encrypted), "{link_type}");
    }
    assert_eq!(whole(105, &wifi([0x80, 0], &[], &hidden)), Err(Undecoded::WifiOnly));
    assert_eq!(whole(105, &wifi([0x48, 1], &[], &[])), Err(Undecoded::WifiOnly));
    assert_eq!(whole(127, &radiotap(0x40, &wifi([0x08, 1], &[], &hidden))), Err(Undecoded::Malformed));
}

#[test]
fn a_datagram_that_looks_like_a_tunnel_is_named() {
    let inner = ethernet(0x0800, &ipv4(6, 1, 2, &segment()));
    let ip = ipv4(6, 1, 2, &segment());
    let vxlan = [&[8, 0, 0, 0, 0, 0, 1, 0][..], &inner].concat();
    let geneve = [&[0, 0, 0x65, 0x58, 0, 0, 1, 0][..], &inner].concat();
    let gtp = [&[0x30, 255, 0, ip.len() as u8, 0, 0, 0, 1][..], &ip].concat();
    let initial = [&[0xc3, 0, 0, 0, 1, 4, 1, 2, 3, 4, 0][..], &[0; 50]].concat();
    for (port, payload, guess) in [
        (9000, vxlan, Some(Guess::Vxlan)),
        (9000, geneve, Some(Guess::Geneve)),
        (9000, gtp, Some(Guess::GtpU)),
        (5555, ip, Some(Guess::Ip)),
        (51820, [&[4, 0, 0, 0][..], &[9; 60]].concat(), Some(Guess::WireGuard)),
        (51820, [&[1, 0, 0, 0][..], &[9; 144]].concat(), Some(Guess::WireGuard)),
        (1194, vec![0x30; 60], Some(Guess::OpenVpn)),
        (4500, vec![0x30; 60], Some(Guess::Esp)),
        (5000, vec![22, 0xfe, 0xfd, 0, 0, 0], Some(Guess::Dtls)),
        (4433, initial, Some(Guess::Quic)),
        (443, vec![0x41; 30], Some(Guess::Quic)),
        (9000, vec![0x41; 30], None),
        (53, vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0], None),
        (9000, vec![], None),
    ] {
        let decoded = whole(101, &ipv4(17, 1, 2, &udp(port, &payload))).unwrap();
        let Transport::Udp { guess: found, .. } = decoded.transport else { panic!("{port}") };
        assert_eq!(found, guess, "{port}");
    }
}
