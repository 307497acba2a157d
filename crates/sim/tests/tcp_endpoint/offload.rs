//! Segmentation offload: how many segments leave as one packet, and what a lost packet costs.

use bufferscope_scenario::Congestion;
use bufferscope_sim::tcp::Config;

use crate::net::{CLIENT, MS, MSS, Net, SECOND, SERVER};
use crate::pipe::Action;

const RENO: Config = Config { congestion: Congestion::Reno, gso_max_segs: 45, ..Config::DEFAULT };

/// Segments of each packet of data.
fn segments(net: &Net) -> Vec<u64> {
    net.data_sent().map(|packet| u64::from(packet.segment.len).div_ceil(MSS)).collect()
}

#[test]
fn a_packet_holds_a_millisecond_at_the_pacing_rate_and_two_segments_at_least() {
    // 10 Mbit/s: 1.2 windows a round trip are 1.5 kB a millisecond, less than two segments. 100 Mbit/s: 15 kB, ten
    // segments, and more where the queue has just grown.
    for (rate, expected) in [(10_000_000, 2..=2), (100_000_000, 8..=35)] {
        let mut net = Net::new(&RENO, 20 * MS).bottleneck(rate, 100).stream();
        net.run_until(20 * SECOND);
        let sizes = segments(&net);
        let mut late = sizes[sizes.len() - 101..].to_vec();
        late.sort_unstable();
        assert!(expected.contains(&late[50]), "{rate}: {late:?}");
    }
}

/// Largest of the last hundred packets after 20 s at 10 Mbit/s, where a millisecond is less than a segment.
fn largest_late(config: &Config) -> u64 {
    largest_late_at(10_000_000, config)
}

fn largest_late_at(rate_bps: u64, config: &Config) -> u64 {
    let mut net = Net::new(config, 20 * MS).bottleneck(rate_bps, 400).stream();
    net.run_until(20 * SECOND);
    segments(&net).into_iter().rev().take(100).max().unwrap()
}

#[test]
fn the_minimum_number_of_segments_holds_whatever_the_rate_is() {
    for least in [1, 2, 8, 20] {
        assert_eq!(largest_late(&Config { min_tso_segs: least, ..RENO }), u64::from(least));
    }
    // No packet holds more than `gso_max_segs` segments, and BBR has a minimum of its own.
    assert_eq!(largest_late(&Config { min_tso_segs: 255, gso_max_segs: 20, ..RENO }), 20);
    assert_eq!(largest_late(&Config { congestion: Congestion::Bbr, min_tso_segs: 8, ..RENO }), 2);
}

#[test]
fn below_1_2_mbit_s_bbr_sends_segments_one_by_one() {
    let bbr = Config { congestion: Congestion::Bbr, ..RENO };
    assert_eq!([800_000, 3_000_000].map(|rate_bps| largest_late_at(rate_bps, &bbr)), [1, 2]);
}

#[test]
fn the_first_window_leaves_in_packets_of_half_of_it_at_most() {
    let mut net = Net::new(&RENO, 20 * MS).stream();
    net.run_until(41 * MS);
    // Without a measured rate the handshake's round trip counts: 2 * 10 segments in 40 ms.
    assert_eq!(segments(&net), [2, 2, 2, 2, 2]);
    let mut near = Net::new(&RENO, MS / 10).stream();
    near.run_until(MS / 4);
    // At a round trip of 200 us, a packet may have the maximum size, but at most half of the window.
    assert_eq!(segments(&near), [5, 5]);
}

#[test]
fn no_packet_holds_more_than_is_allowed_and_every_byte_arrives() {
    for most in [1, 2, 3, 45] {
        let config = Config { gso_max_segs: most, ..RENO };
        let mut net = Net::new(&config, MS).bottleneck(1_000_000_000, 30).upload(5_000_001);
        net.run_to_end(60 * SECOND);
        assert_eq!(net.ends[SERVER].received_bytes(), 5_000_001);
        assert!(segments(&net).iter().all(|n| *n <= u64::from(most)), "{most}");
        let largest = segments(&net).into_iter().max().unwrap();
        assert!(most > 3 || largest == u64::from(most), "{largest} of {most}");
    }
}

#[test]
fn a_lost_packet_costs_the_segments_that_it_held() {
    let mut lost = None;
    let net = Net::new(&RENO, 20 * MS).bottleneck(10_000_000, 1000);
    let net = net.faults(move |n, packet| {
        let is_it = n > 40 && lost.is_none() && packet.segment.len > 1448;
        if is_it {
            lost = Some(n);
            return Action::Drop;
        }
        Action::Deliver
    });
    let mut net = net.stream();
    net.run_until(2 * SECOND);
    let sample = net.ends[CLIENT].sample(net.now_ns);
    assert_eq!(sample.retransmits, 2, "{sample:?}");
    let sent_bytes: u64 = net.data_sent().map(|packet| u64::from(packet.segment.len)).sum();
    let end = net.data_sent().map(|packet| packet.segment.end()).max().unwrap();
    assert_eq!(sent_bytes, end - 1 + 2 * MSS, "everything once, and two segments twice");
}

#[test]
fn every_packet_of_two_segments_is_acknowledged() {
    let mut net = Net::new(&RENO, 20 * MS).bottleneck(10_000_000, 100).stream();
    net.run_until(20 * SECOND);
    let before = (net.data_sent().count(), net.acks_sent().count());
    net.run_until(30 * SECOND);
    let (sizes, acks) = (&segments(&net)[before.0..], net.acks_sent().count() - before.1);
    // Of single segments, every other.
    let expected: u64 = sizes.iter().map(|&n| n.min(2)).sum::<u64>() / 2;
    assert!((acks as u64).abs_diff(expected) * 20 < expected, "{acks} acknowledgements, not {expected}");
}

/// Mean number of segments in a packet after 10 s, where two are the most.
fn mean_of_pairs(rate: u64) -> f64 {
    let mut net = Net::new(&Config { gso_max_segs: 2, ..RENO }, 10 * MS).bottleneck(rate, 100).stream();
    net.run_until(10 * SECOND);
    let before = net.data_sent().count();
    net.run_until(30 * SECOND);
    let late = &segments(&net)[before..];
    late.iter().sum::<u64>() as f64 / late.len() as f64
}

#[test]
fn a_segment_leaves_alone_where_the_next_acknowledgement_is_a_millisecond_away() {
    // A window that has grown by one has room for a pair and a single segment. That cuts the next pair, whose rest
    // leaves with half of the one after it: so for a round trip, until the window grows again. Four segments take three
    // packets then.
    let mean = mean_of_pairs(10_000_000);
    assert!((1.28..1.38).contains(&mean), "{mean}");
    // Every 0.24 ms: it is worth waiting for.
    let mean = mean_of_pairs(100_000_000);
    assert!(mean > 1.95, "{mean}");
}

#[test]
fn packets_of_several_segments_are_pushed() {
    let mut net = Net::new(&RENO, 20 * MS).bottleneck(10_000_000, 100).stream();
    net.run_until(5 * SECOND);
    assert!(net.data_sent().all(|packet| u64::from(packet.segment.len) <= MSS || packet.segment.flags.psh()));
}

#[test]
fn what_is_written_later_fills_up_the_last_packet_that_waits() {
    let mut net = Net::new(&Config { gso_max_segs: 4, ..RENO }, MS / 2);
    let write =
        |net: &mut Net, segments: u64| net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, segments * MSS, out));
    net.act(CLIENT, |end, now_ns, out| end.connect(now_ns, out));
    net.run_until(2 * MS);
    // Ten segments leave: two packets, and two segments of the third, whose rest waits.
    write(&mut net, 11);
    assert_eq!(segments(&net), [4, 4, 2]);
    // Three segments more go with it, and two are a packet of their own.
    write(&mut net, 5);
    net.run_until(10 * MS);
    assert_eq!(segments(&net), [4, 4, 2, 4, 2]);
}

#[test]
fn a_write_adds_to_the_rest_of_what_it_is_sending() {
    // A piece holds 22 segments, half of the window of 65,160 bytes. When a piece is full, the kernel sends what it may
    // at once (`tcp_push_one`): five segments, half of the congestion window. The write fills up the rest. When it is
    // full for the third time, 32 segments are written, and the buffer of 46,080 bytes has no room for another piece.
    let mut net = Net::new(&RENO, MS / 10).stream();
    net.run_until(MS / 4);
    assert_eq!(segments(&net), [5, 5]);
    assert_eq!(net.ends[CLIENT].sample(net.now_ns).notsent_bytes, 22 * MSS);
}

/// The first packet that is no multiple of full segments, on the way to a peer that offers windows of four and a half.
/// Its end, and whether it is the end of a window.
fn first_odd_to_small_window(gso_max_segs: u32) -> Option<(u64, bool)> {
    let client = Config { gso_max_segs, ..RENO };
    let server = Config { rmem_default_bytes: 16_000, rmem_max_bytes: 16_000, ..RENO };
    let mut net = Net::between(&client, &server, MS).upload(100 * MSS);
    net.run_to_end(60 * SECOND);
    assert_eq!(net.ends[SERVER].received_bytes(), 100 * MSS);
    let is_edge = |end| net.acks_sent().any(|ack| ack.segment.ack + u64::from(ack.segment.window_bytes) == end);
    let odd = net.data_sent().find(|packet| u64::from(packet.segment.len) % MSS > 0)?;
    let end = odd.segment.seq + u64::from(odd.segment.len);
    Some((end, is_edge(end)))
}

#[test]
fn a_packet_of_several_segments_uses_up_the_peers_window() {
    // `tcp_mss_split_point` cuts a packet where the window ends. A single segment waits until all of it fits
    // (`tcp_snd_wnd_test`).
    assert_eq!(first_odd_to_small_window(1), None);
    let odd = first_odd_to_small_window(45);
    assert!(odd.is_some_and(|(end, is_edge)| end < 100 * MSS && is_edge), "{odd:?}");
}
