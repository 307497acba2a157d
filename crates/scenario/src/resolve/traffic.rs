//! Traffic: who sends, to whom, and when. An entry for a load test becomes several.

use std::collections::HashMap;

use super::nodes::Nodes;
use super::{datagrams, flent_tests, streams};
use crate::error::{Problem, Problems};
use crate::file::{HostTcp, Ping, Placement, Setup, Traffic as TrafficTable};
use crate::model::{PingTiming, PingTraffic, Traffic, TrafficKind};
use crate::path::{join, of_traffic};
use crate::text::Name;
use crate::units::{MS, TIME};

pub(super) fn resolve(setup: &Setup, nodes: &Nodes<'_>, problems: &mut Problems) -> Vec<Traffic> {
    let resolved: Vec<Traffic> = setup.traffic.iter().flat_map(|table| entry(table, setup, nodes, problems)).collect();
    check_ports(&resolved, problems);
    resolved
}

/// The traffic of one entry.
fn entry(table: &TrafficTable, setup: &Setup, nodes: &Nodes<'_>, problems: &mut Problems) -> Vec<Traffic> {
    let placement = table.placement();
    let path = join("traffic", placement.name.as_str());
    let stop_ns = check_times(placement, setup.duration.get(), &path, problems);
    if placement.from == placement.to {
        let found = format!("\"{}\", which is also from", placement.to);
        problems.add(|| Problem::new(join(&path, "to"), found, "another node than from"));
    }
    let from = nodes.find(&placement.from, || join(&path, "from"), problems);
    let to = nodes.find(&placement.to, || join(&path, "to"), problems);
    let host_of = |name: &Name| setup.host.iter().find(|host| host.name == *name).map_or(&setup.tcp, |host| &host.tcp);
    let hosts = [&placement.from, &placement.to].map(host_of);
    let parts = match kind(table, stop_ns, hosts[0], &path, problems) {
        Some(kind) => {
            let dscp = table.common().map_or(0, |common| common.dscp.get());
            vec![Part { name: None, dscp, reverse: false, late_ns: 0, kind }]
        }
        None => flent_tests::parts(table, stop_ns, hosts, &path, problems),
    };
    let (Some(from), Some(to)) = (from, to) else { return Vec::new() };
    let traffic = |part: Part| {
        let name = part.name.map_or_else(|| placement.name.to_string(), |part| format!("{}.{part}", placement.name));
        let [from, to] = if part.reverse { [to, from] } else { [from, to] };
        let (start_ns, stop_ns) = (placement.start.get() + part.late_ns, stop_ns.saturating_sub(part.late_ns));
        Traffic { name, from, to, start_ns, stop_ns, dscp: part.dscp, port: table.port(), kind: part.kind }
    };
    parts.into_iter().map(traffic).collect()
}

/// One part of an entry: its only one, or one of the flows and probes of a test.
pub(super) struct Part {
    /// Its name after that of the entry; `None`: it is the entry's only part.
    pub(super) name: Option<String>,
    pub(super) dscp: u8,
    /// Whether it goes from the entry's `to` to its `from`.
    pub(super) reverse: bool,
    /// How much later than the entry it starts, and how much earlier it stops.
    pub(super) late_ns: u64,
    pub(super) kind: TrafficKind,
}

/// Refuses two servers on the same port of a node.
fn check_ports(traffic: &[Traffic], problems: &mut Problems) {
    let mut servers = HashMap::new();
    for entry in traffic {
        let Some(port) = entry.port else { continue };
        if let Some(other) = servers.insert((entry.transport(), entry.server(), port), entry) {
            let found = format!("{port}, a port that the same node already uses for {}", of_traffic(other));
            let path = join(&of_traffic(entry), "port");
            problems.add(|| Problem::new(path, found, "a different port for each server of a node"));
        }
    }
}

/// Checks when the traffic starts and stops; returns the time at which it stops.
fn check_times(placement: &Placement, duration_ns: u64, path: &str, problems: &mut Problems) -> u64 {
    let (start_ns, stop_ns) = (placement.start.get(), placement.stop.map_or(duration_ns, |stop| stop.get()));
    let duration = TIME.display(duration_ns);
    if start_ns >= duration_ns {
        let allowed = format!("a time before the end, duration = {duration}");
        problems.add(|| Problem::new(join(path, "start"), placement.start.to_string(), allowed));
    } else if stop_ns <= start_ns || stop_ns > duration_ns {
        let allowed = format!("a time after start = {} and up to duration = {duration}", placement.start);
        problems.add(|| Problem::new(join(path, "stop"), TIME.display(stop_ns), allowed));
    }
    stop_ns
}

/// What is sent; `host` are the settings of the host that sends it. `None` if it is a test of several parts.
fn kind(
    table: &TrafficTable,
    stop_ns: u64,
    host: &HostTcp,
    path: &str,
    problems: &mut Problems,
) -> Option<TrafficKind> {
    Some(match table {
        TrafficTable::Tcp(tcp) => TrafficKind::Tcp(streams::tcp(tcp, stop_ns, host, path, problems)),
        TrafficTable::Web(web) => TrafficKind::Web(streams::web(web, host, path, problems)),
        TrafficTable::Bittorrent(keys) => TrafficKind::Bittorrent(streams::bittorrent(keys, path, problems)),
        TrafficTable::Ping(keys) => TrafficKind::Ping(ping(keys, path, problems)),
        TrafficTable::Udp(udp) => TrafficKind::Udp(datagrams::udp(udp, path, problems)),
        TrafficTable::Voip(voip) => TrafficKind::Voip(datagrams::voip(voip)),
        TrafficTable::Dns(dns) => TrafficKind::Dns(datagrams::dns(dns)),
        TrafficTable::Irtt(irtt) => TrafficKind::Irtt(datagrams::irtt(irtt)),
        TrafficTable::Netalyzr(keys) => {
            let time_ns = stop_ns.saturating_sub(table.placement().start.get());
            TrafficKind::Netalyzr(datagrams::netalyzr(keys, time_ns, path, problems))
        }
        TrafficTable::Rrul(_)
        | TrafficTable::RrulBe(_)
        | TrafficTable::TcpBidirectional(_)
        | TrafficTable::TcpDown(_)
        | TrafficTable::TcpUp(_) => return None,
    })
}

fn ping(keys: &Ping, path: &str, problems: &mut Problems) -> PingTraffic {
    if keys.timing == PingTiming::Iputils && !keys.interval.get().is_multiple_of(MS) {
        let allowed = "whole milliseconds, in which iputils counts (timing = \"iputils\")";
        problems.add(|| Problem::new(join(path, "interval"), keys.interval.to_string(), allowed));
    }
    PingTraffic {
        interval_ns: keys.interval.get(),
        payload_bytes: keys.size.get_u32(),
        timeout_ns: keys.timeout.get(),
        timing: keys.timing,
    }
}
