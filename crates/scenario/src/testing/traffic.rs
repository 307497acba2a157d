//! Arbitrary traffic between two nodes of a line.

use proptest::prelude::*;

use crate::model::{NodeIndex, Traffic};
use crate::traffic::TrafficKind;
use crate::units::MS;

/// Traffic without a name.
pub(super) fn traffic(nodes: usize, duration_ns: u64) -> impl Strategy<Value = Traffic> {
    let nodes = NodeIndex::try_from(nodes).unwrap_or(NodeIndex::MAX);
    let endpoints = (0..nodes, 1..nodes).prop_map(move |(from, distance)| (from, (from + distance) % nodes));
    let times =
        (0..duration_ns / MS).prop_flat_map(move |start_ms| (Just(start_ms * MS), start_ms + 1..=duration_ns / MS));
    (endpoints, times, 0..64_u8).prop_flat_map(|((from, to), (start_ns, stop_ms), dscp)| {
        TrafficKind::any(stop_ms * MS - start_ns).prop_map(move |kind| Traffic {
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
