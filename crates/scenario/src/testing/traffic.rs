//! Any traffic between any two nodes of a line.

use proptest::prelude::*;
use proptest::sample::select;

use super::datagrams;
use crate::congestion::Congestion;
use crate::model::{NodeIndex, PingTraffic, Sending, TcpTraffic, Traffic, TrafficKind, WebTraffic};
use crate::units::MS;

/// Traffic without a name.
pub(super) fn traffic(nodes: usize, duration_ns: u64) -> impl Strategy<Value = Traffic> {
    let nodes = NodeIndex::try_from(nodes).unwrap_or(NodeIndex::MAX);
    let places = (0..nodes, 1..nodes).prop_map(move |(from, distance)| (from, (from + distance) % nodes));
    let times =
        (0..duration_ns / MS).prop_flat_map(move |start_ms| (Just(start_ms * MS), start_ms + 1..=duration_ns / MS));
    (places, times, 0..64_u8, kind()).prop_map(|((from, to), (start_ns, stop_ms), dscp, kind)| Traffic {
        name: String::new(),
        from,
        to,
        start_ns,
        stop_ns: stop_ms * MS,
        dscp,
        kind,
    })
}

pub(super) fn named(traffic: Vec<Traffic>) -> Vec<Traffic> {
    (1..).zip(traffic).map(|(number, traffic)| Traffic { name: format!("t{number}"), ..traffic }).collect()
}

fn kind() -> impl Strategy<Value = TrafficKind> {
    prop_oneof![
        3 => tcp().prop_map(TrafficKind::Tcp),
        2 => ping().prop_map(TrafficKind::Ping),
        2 => web().prop_map(TrafficKind::Web),
        2 => datagrams::udp().prop_map(TrafficKind::Udp),
        1 => datagrams::voip().prop_map(TrafficKind::Voip),
        1 => datagrams::dns().prop_map(TrafficKind::Dns),
    ]
}

fn sending() -> impl Strategy<Value = Sending> {
    (select(Congestion::ALL), 1..=100_u32, 1..=100_u64, any::<bool>(), any::<bool>()).prop_map(
        |(congestion, window_packets, target_ms, ecn, pacing)| Sending {
            congestion,
            window_packets: (congestion == Congestion::Window).then_some(window_packets),
            target_ns: (congestion == Congestion::Ledbat).then_some(target_ms * MS),
            ecn,
            pacing,
        },
    )
}

fn tcp() -> impl Strategy<Value = TcpTraffic> {
    (0..=5_u32, prop::option::of(1..=200_000_u64), sending()).prop_map(|(flows, bytes, sending)| TcpTraffic {
        flows,
        bytes,
        sending,
    })
}

fn ping() -> impl Strategy<Value = PingTraffic> {
    (1..=500_u64, 0..=1472_u32, 10..=5000_u64).prop_map(|(interval_ms, payload_bytes, timeout_ms)| PingTraffic {
        interval_ns: interval_ms * MS,
        payload_bytes,
        timeout_ns: timeout_ms * MS,
    })
}

fn web() -> impl Strategy<Value = WebTraffic> {
    (20..=2000_u64, 1..=100_000_u64, 1..=2000_u32, sending()).prop_map(
        |(interval_ms, bytes, request_bytes, sending)| WebTraffic {
            interval_ns: interval_ms * MS,
            bytes,
            request_bytes,
            sending,
        },
    )
}
