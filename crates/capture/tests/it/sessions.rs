//! Several captures, read together.

use std::ops::ControlFlow;

use crate::common::{
    Found, block, echo, enhanced, ethernet, ethernet_pcap, interface, ipv4, ipv4_of, option, pcap, section, session,
    source, tcp,
};
use bufferscope_capture::session::{Choice, SessionError, read};

/// A pcap file of raw IP packets at these milliseconds.
fn raw(packets: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let rows: Vec<_> =
        packets.iter().map(|(ms, data)| (100 + ms / 1000, ms % 1000 * 1000, data.clone(), data.len() as u32)).collect();
    pcap(0xa1b2_c3d4, false, 101, &rows)
}

fn segment(seq: u32) -> Vec<u8> {
    ipv4(6, 1, 2, &tcp(1000, 80, seq, 0, 0x10, &[]))
}

#[test]
fn packets_of_several_files_come_in_the_order_of_their_times_and_each_file_is_a_vantage_point() {
    let near = raw(&[(0, segment(1)), (20, segment(2)), (40, segment(3))]);
    let far = raw(&[(10, segment(1)), (30, segment(2)), (50, segment(3))]);
    let (session, found) = session(&[near, far]).unwrap();
    let order: Vec<_> = found.segments.iter().map(|each| (each.seq, each.vantage_point)).collect();
    assert_eq!(order, [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)]);
    let vantage_points: Vec<_> = session
        .vantage_points
        .iter()
        .map(|vantage_point| (vantage_point.file.as_str(), vantage_point.packets))
        .collect();
    assert_eq!(vantage_points, [("0.pcap", 3), ("1.pcap", 3)]);
    assert_eq!(session.last_ns.unwrap() - session.first_ns.unwrap(), 50_000_000);
}

#[test]
fn files_that_continue_each_other_are_one_vantage_point() {
    let later = raw(&[(30, segment(3)), (40, segment(4))]);
    let earlier = raw(&[(0, segment(1)), (20, segment(2))]);
    let (session, found) = session(&[later, earlier]).unwrap();
    assert_eq!(found.segments.iter().map(|each| each.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(session.vantage_points.len(), 1);
    assert_eq!((session.vantage_points[0].packets, session.vantage_points[0].file.as_str()), (4, "1.pcap"));
}

#[test]
fn what_a_capture_could_not_keep_is_reported() {
    let mut file = section(false);
    file.extend(interface(false, 101, 40, &option(false, 2, b"ppp0")));
    file.extend(enhanced(false, 0, 5, &segment(1), 40));
    file.extend(enhanced(false, 0, 3, &ipv4_of(6, 1, 2, &tcp(1, 2, 0, 0, 16, &[1; 12])[..20], 9052), 9052));
    let mut statistics = vec![0; 12];
    statistics.extend(option(false, 5, &12_u64.to_le_bytes()));
    file.extend(block(false, 5, &statistics));
    file.extend([6, 0, 0, 0, 100]);
    let (session, found) = session(&[file]).unwrap();
    assert_eq!(found.segments[1].payload_bytes, 9000);
    let vantage_point = &session.vantage_points[0];
    assert_eq!(
        (vantage_point.interface.as_deref(), vantage_point.snap_bytes, vantage_point.lost, vantage_point.backwards),
        (Some("ppp0"), 40, Some(12), 1)
    );
    let counts = &session.counts;
    assert_eq!((counts.packets, counts.tcp, counts.cut, counts.without_options), (2, 2, 1, 1));
    assert_eq!((counts.beyond_mtu, counts.largest_ip_bytes), (1, 9052));
    assert!(session.files[0].ended.as_ref().unwrap().ends_with("within a block's header"));
}

#[test]
fn a_ping_is_its_requests_and_the_replies_to_them() {
    let ask = |seq| ipv4(1, 1, 2, &echo(false, 9, seq));
    let answer = |seq| ipv4(1, 2, 1, &echo(true, 9, seq));
    let (session, found) = session(&[raw(&[
        (0, ask(1)),
        (20, answer(1)),
        (100, ask(2)),
        (200, ask(3)),
        (250, answer(3)),
        (251, answer(3)),
        (20_000, ask(4)),
        (20_030, answer(4)),
        (20_100, ask(5)),
        (20_110, segment(1)),
    ])])
    .unwrap();
    assert_eq!(found.pings, ["ping"]);
    let ms = |ms: u64| ms * 1_000_000;
    assert_eq!(
        found.echoes,
        [
            (0, 1, 0, Some(ms(20))),
            (0, 2, ms(100), None),
            (0, 3, ms(200), Some(ms(50))),
            (0, 4, ms(20_000), Some(ms(30))),
        ]
    );
    let ping = &session.pings[0];
    assert_eq!((ping.requests, ping.answered, ping.unknown), (5, 3, 1));
    assert_eq!((ping.from.to_string(), ping.to.to_string()), ("192.0.2.1".into(), "192.0.2.2".into()));
}

#[test]
fn the_numbers_of_a_long_ping_go_on_where_the_field_begins_again() {
    let ask = |seq: u16| ipv4(1, 1, 2, &echo(false, 9, seq));
    let packets = [(0, ask(65_534)), (1000, ask(65_535)), (2000, ask(0)), (3000, ask(1)), (60_000, segment(1))];
    let (_, found) = session(&[raw(&packets)]).unwrap();
    assert_eq!(found.echoes.iter().map(|each| each.1).collect::<Vec<_>>(), [65_534, 65_535, 65_536, 65_537]);
}

#[test]
fn the_choice_of_hosts_and_ports_leaves_out_the_rest() {
    let file = ethernet_pcap(&[
        ethernet(0x0800, &ipv4(6, 1, 2, &tcp(1000, 80, 1, 0, 16, &[]))),
        ethernet(0x0800, &ipv4(6, 2, 1, &tcp(80, 1000, 2, 0, 16, &[]))),
        ethernet(0x0800, &ipv4(6, 1, 2, &tcp(1000, 22, 3, 0, 16, &[]))),
        ethernet(0x0800, &ipv4(6, 3, 4, &tcp(1000, 80, 4, 0, 16, &[]))),
    ]);
    for (hosts, ports, expected) in [
        (vec!["192.0.2.1"], vec![], vec![1, 2, 3]),
        (vec![], vec![80], vec![1, 2, 4]),
        (vec!["192.0.2.2"], vec![22, 80], vec![1, 2, 3]),
        (vec!["192.0.2.9"], vec![], vec![]),
    ] {
        let mut found = Found::default();
        let choice = Choice { hosts: hosts.iter().map(|host| host.parse().unwrap()).collect(), ports };
        let sources = vec![source("a", file.clone())];
        let session = read(sources, &choice, &mut found, &mut |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(found.segments.iter().map(|each| each.seq).collect::<Vec<_>>(), expected);
        assert_eq!(session.counts.not_chosen, 4 - expected.len() as u64);
    }
}

#[test]
fn reading_stops_when_it_is_asked_to_and_names_the_file_that_it_cannot_read() {
    let mut found = Found::default();
    let sources = vec![source("a", raw(&[(0, segment(1))]))];
    let outcome = read(sources, &Choice::default(), &mut found, &mut |_| ControlFlow::Break(()));
    assert!(matches!(outcome, Err(SessionError::Stopped)));
    let error = session(&[raw(&[]), b"nonsense".to_vec()]).unwrap_err().to_string();
    assert!(error.starts_with("1.pcap: found a file that begins with the bytes 6e 6f 6e 73; allowed:"), "{error}");
}

/// A section of pcapng with one named interface, and segments at these milliseconds.
fn sections(big: bool, names: &[&[u8]], packets: &[(u32, u64, u32)]) -> Vec<u8> {
    let mut file = section(big);
    for name in names {
        file.extend(interface(big, 101, 0, &option(big, 2, name)));
    }
    for &(number, ms, seq) in packets {
        let data = segment(seq);
        file.extend(enhanced(big, number, 100_000_000 + ms * 1000, &data, data.len() as u32));
    }
    file
}

#[test]
fn the_sections_of_a_file_are_read_as_one_capture() {
    let first = sections(false, &[b"eth0"], &[(0, 0, 1), (0, 10, 2)]);
    let second = sections(true, &[b"lo", b"eth0"], &[(1, 20, 3), (1, 30, 4), (0, 35, 5)]);
    let third = sections(false, &[b"eth0", b"lo"], &[(0, 40, 6), (1, 50, 7)]);
    let (session, found) = session(&[[first, second, third].concat()]).unwrap();
    let order: Vec<_> = found.segments.iter().map(|each| (each.seq, each.vantage_point)).collect();
    assert_eq!(order, [(1, 0), (2, 0), (3, 0), (4, 0), (5, 1), (6, 0), (7, 1)]);
    let vantage_points: Vec<_> = session
        .vantage_points
        .iter()
        .map(|vantage_point| (vantage_point.interface.as_deref(), vantage_point.packets))
        .collect();
    assert_eq!(vantage_points, [(Some("eth0"), 5), (Some("lo"), 2)]);
    assert_eq!(session.counts.before_first, 0);
}

#[test]
fn sections_that_were_captured_at_the_same_time_are_two_vantage_points() {
    let first = sections(false, &[b"eth0"], &[(0, 0, 1), (0, 100, 2)]);
    let second = sections(false, &[b"eth0"], &[(0, 50, 1), (0, 150, 2)]);
    let (both, _) = session(&[[first.clone(), second.clone()].concat()]).unwrap();
    assert_eq!(both.vantage_points.len(), 2);
    let (wrong_order, _) = session(&[[second, first].concat()]).unwrap();
    assert_eq!(wrong_order.counts.before_first, 1);
}

#[test]
fn interfaces_without_names_go_on_in_the_next_section_in_their_order() {
    let half = |ms: u64| {
        let mut file = section(false);
        file.extend(interface(false, 101, 0, &[]));
        file.extend(interface(false, 101, 0, &[]));
        for (number, seq) in [(0, 1), (1, 2)] {
            file.extend(enhanced(false, number, ms * 1000, &segment(seq), 40));
        }
        file
    };
    let (session, _) = session(&[[half(0), half(10)].concat()]).unwrap();
    assert_eq!(session.vantage_points.iter().map(|vantage_point| vantage_point.packets).collect::<Vec<_>>(), [2, 2]);
}

fn acknowledgement(ack: u32) -> Vec<u8> {
    ipv4(6, 2, 1, &tcp(80, 1000, 1, ack, 0x10, &[]))
}

#[test]
fn files_of_one_direction_each_are_put_together() {
    let out = raw(&[(0, segment(1)), (20, segment(2)), (40, segment(3))]);
    let back = raw(&[(10, acknowledgement(1)), (30, acknowledgement(2)), (50, acknowledgement(3))]);
    for files in [[out.clone(), back.clone()], [back.clone(), out.clone()]] {
        let (session, found) = session(&files).unwrap();
        assert_eq!(session.put_together, Some([0, 1]));
        assert!(found.segments.iter().all(|segment| segment.file == 0));
        assert_eq!(session.vantage_points.len(), 2);
    }
    let asked = raw(&[(0, ipv4(1, 1, 2, &echo(false, 9, 1)))]);
    let answered = raw(&[(30, ipv4(1, 2, 1, &echo(true, 9, 1)))]);
    let (pings, found) = session(&[asked, answered]).unwrap();
    assert_eq!((pings.put_together, pings.pings.len()), (Some([0, 1]), 1));
    assert_eq!(found.echoes, [(0, 1, 0, Some(30_000_000))]);
}

#[test]
fn files_that_cannot_share_a_clock_or_a_direction_stay_apart() {
    let out = raw(&[(0, segment(1)), (20, segment(2)), (40, segment(3)), (60, segment(4))]);
    // Acknowledged before it was sent.
    let early = raw(&[(1, acknowledgement(3)), (2, acknowledgement(4))]);
    let both = raw(&[(10, acknowledgement(1)), (20, segment(2))]);
    let same = raw(&[(1, segment(1)), (21, segment(2))]);
    let other = raw(&[(10, ipv4(6, 2, 1, &tcp(81, 1000, 1, 1, 0x10, &[])))]);
    for second in [early, both, same, other] {
        assert_eq!(session(&[out.clone(), second]).unwrap().0.put_together, None);
    }
    let back = raw(&[(10, acknowledgement(1))]);
    assert_eq!(session(&[out.clone(), back.clone(), back]).unwrap().0.put_together, None);
}
