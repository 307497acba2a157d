//! Segmentation offload: how many segments leave as one packet, and what a lost packet costs.

use bufferscope_scenario::Congestion;
use bufferscope_sim::tcp::Config;

use crate::net::{CLIENT, MS, MSS, Net, SECOND, SERVER};
use crate::pipe::Fate;

const RENO: Config = Config { congestion: Congestion::Reno, gso_max_segs: 45, ..Config::DEFAULT };

/// Segments of each packet of data.
fn segments(net: &Net) -> Vec<u64> {
    net.data_sent().map(|packet| u64::from(packet.segment.len).div_ceil(MSS)).collect()
}

#[test]
fn a_packet_holds_a_millisecond_at_the_pacing_rate_and_two_segments_at_least() {
    // 10 Mbit/s: 1.2 windows a round trip are 1.5 kB a millisecond, less than two segments. 100 Mbit/s: 15 kB, ten segments, and
    // more where the queue has just grown.
    for (rate, expected) in [(10_000_000, 2..=2), (100_000_000, 8..=35)] {
        let mut net = Net::new(&RENO, 20 * MS).bottleneck(rate, 100).stream();
        net.run_until(20 * SECOND);
        let sizes = segments(&net);
        let mut late = sizes[sizes.len() - 101..].to_vec();
        late.sort_unstable();
        assert!(expected.contains(&late[50]), "{rate}: {late:?}");
    }
}

#[test]
fn the_first_window_leaves_in_packets_of_half_of_it_at_most() {
    let mut net = Net::new(&RENO, 20 * MS).stream();
    net.run_until(41 * MS);
    // Without a measured rate the handshake's round trip counts: 2 * 10 segments in 40 ms.
    assert_eq!(segments(&net), [2, 2, 2, 2, 2]);
    let mut near = Net::new(&RENO, MS / 10).stream();
    near.run_until(MS / 4);
    // 200 us away a packet may be as large as it gets, but for half of the window.
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
    let net = net.fate(move |n, packet| {
        let is_it = n > 40 && lost.is_none() && packet.segment.len > 1448;
        if is_it {
            lost = Some(n);
            return Fate::Drop;
        }
        Fate::Deliver
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
    net.run_until(22 * SECOND);
    let (packets, acks) = (net.data_sent().count() - before.0, net.acks_sent().count() - before.1);
    assert!(acks * 10 >= packets * 9, "{acks} acknowledgements of {packets} packets");
}
