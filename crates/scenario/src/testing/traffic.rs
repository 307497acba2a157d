//! Arbitrary traffic between two nodes of a line.

use proptest::prelude::*;
use proptest::sample::select;

use super::datagrams;
use crate::congestion::Congestion;
use crate::model::{
    BittorrentTraffic, NodeIndex, PageObjects, PingTiming, PingTraffic, Sending, TcpTraffic, Traffic, TrafficKind,
    WebTraffic,
};
use crate::units::MS;

/// Traffic without a name.
pub(super) fn traffic(nodes: usize, duration_ns: u64) -> impl Strategy<Value = Traffic> {
    let nodes = NodeIndex::try_from(nodes).unwrap_or(NodeIndex::MAX);
    let endpoints = (0..nodes, 1..nodes).prop_map(move |(from, distance)| (from, (from + distance) % nodes));
    let times =
        (0..duration_ns / MS).prop_flat_map(move |start_ms| (Just(start_ms * MS), start_ms + 1..=duration_ns / MS));
    (endpoints, times, 0..64_u8).prop_flat_map(|((from, to), (start_ns, stop_ms), dscp)| {
        kind(stop_ms * MS - start_ns).prop_map(move |kind| Traffic {
            name: String::new(),
            from,
            to,
            start_ns,
            stop_ns: stop_ms * MS,
            dscp,
            port: None,
            kind,
        })
    })
}

pub(super) fn named(traffic: Vec<Traffic>) -> Vec<Traffic> {
    let named = |(number, traffic): (u16, Traffic)| {
        // Some servers have a port of their own, which may be one that another server would have got.
        let port = traffic.transport().filter(|_| number.is_multiple_of(2)).map(|_| 5000 + number);
        Traffic { name: format!("t{number}"), port, ..traffic }
    };
    (1..).zip(traffic).map(named).collect()
}

/// Any kind of traffic, for traffic that lasts for `stream_ns`.
fn kind(stream_ns: u64) -> impl Strategy<Value = TrafficKind> {
    prop_oneof![
        3 => tcp(stream_ns).prop_map(TrafficKind::Tcp),
        2 => ping().prop_map(TrafficKind::Ping),
        2 => web().prop_map(TrafficKind::Web),
        2 => datagrams::udp().prop_map(TrafficKind::Udp),
        1 => datagrams::voip().prop_map(TrafficKind::Voip),
        1 => datagrams::dns().prop_map(TrafficKind::Dns),
        1 => datagrams::irtt().prop_map(TrafficKind::Irtt),
        1 => datagrams::netalyzr(stream_ns),
        1 => bittorrent().prop_map(TrafficKind::Bittorrent),
    ]
}

fn sending() -> impl Strategy<Value = Sending> {
    (select(Congestion::ALL), 1..=100_u32, 1..=100_u64, any::<bool>(), any::<bool>()).prop_map(
        |(congestion, window_packets, target_ms, ecn, pacing)| Sending {
            congestion,
            window_packets: (congestion == Congestion::Window).then_some(window_packets),
            target_ns: congestion.default_target_ns().map(|_| target_ms * MS),
            ecn,
            pacing,
        },
    )
}

fn tcp(stream_ns: u64) -> impl Strategy<Value = TcpTraffic> {
    let files = (1..=200_000_u64, 1..=5_u32).prop_map(|(bytes, transfers)| (Some(bytes), transfers, None));
    let endless = prop::option::of(datagrams::on_off()).prop_map(|on_off| (None, 1, on_off));
    let rate_bps = prop::option::of(10_000..=20_000_000_u64);
    (0..=5_u32, 0..=stream_ns / MS / 5, prop_oneof![files, endless], rate_bps, sending()).prop_map(
        |(flows, stagger_ms, (bytes, transfers, on_off), rate_bps, sending)| TcpTraffic {
            flows,
            stagger_ns: stagger_ms * MS,
            bytes,
            transfers,
            rate_bps,
            on_off,
            sending,
        },
    )
}

fn ping() -> impl Strategy<Value = PingTraffic> {
    let timing = select(vec![PingTiming::Exact, PingTiming::Iputils]);
    (1..=500_u64, 0..=1472_u32, 10..=5000_u64, timing).prop_map(|(interval_ms, payload_bytes, timeout_ms, timing)| {
        PingTraffic { interval_ns: interval_ms * MS, payload_bytes, timeout_ns: timeout_ms * MS, timing }
    })
}

fn web() -> impl Strategy<Value = WebTraffic> {
    let objects = (1..=20_u32, 1..=20_000_u64, 1..=8_u32).prop_map(|(count, bytes, connections)| PageObjects {
        count,
        bytes,
        connections,
    });
    (20..=2000_u64, 1..=100_000_u64, 1..=2000_u32, prop::option::of(objects), sending()).prop_map(
        |(interval_ms, bytes, request_bytes, objects, sending)| WebTraffic {
            interval_ns: interval_ms * MS,
            bytes,
            request_bytes,
            objects,
            sending,
        },
    )
}

fn bittorrent() -> impl Strategy<Value = BittorrentTraffic> {
    (0..=8_u32, 1..=5_u32, sending()).prop_map(|(peers, unchoked, sending)| BittorrentTraffic {
        peers,
        unchoked,
        sending,
    })
}
