//! Traffic: who sends, to whom, and when.

use super::nodes::Nodes;
use super::{datagrams, streams};
use crate::error::{Problem, Problems};
use crate::file::{HostTcp, Ping, Setup, Traffic as TrafficTable, TrafficCommon};
use crate::model::{PingTiming, PingTraffic, Traffic, TrafficKind};
use crate::path::join;
use crate::units::{MS, TIME};

pub(super) fn resolve(setup: &Setup, nodes: &Nodes<'_>, problems: &mut Problems) -> Vec<Traffic> {
    let host_of = |table: &TrafficTable| {
        let from = &table.common().from;
        setup.host.iter().find(|host| host.name == *from).map_or(&setup.tcp, |host| &host.tcp)
    };
    let duration_ns = setup.duration.get();
    let resolved = |table| traffic(table, host_of(table), duration_ns, nodes, problems);
    setup.traffic.iter().filter_map(resolved).collect()
}

fn traffic(
    table: &TrafficTable,
    host: &HostTcp,
    duration_ns: u64,
    nodes: &Nodes<'_>,
    problems: &mut Problems,
) -> Option<Traffic> {
    let common = table.common();
    let path = join("traffic", common.name.as_str());
    let stop_ns = check_times(common, duration_ns, &path, problems);
    if common.from == common.to {
        let found = format!("\"{}\", which is also from", common.to);
        problems.add(|| Problem::new(join(&path, "to"), found, "another node than from"));
    }
    let from = nodes.find(&common.from, || join(&path, "from"), problems);
    let to = nodes.find(&common.to, || join(&path, "to"), problems);
    let name = common.name.to_string();
    let kind = kind(table, stop_ns, host, &path, problems);
    Some(Traffic { name, from: from?, to: to?, start_ns: common.start.get(), stop_ns, dscp: common.dscp.get(), kind })
}

/// Checks when the traffic starts and stops; returns the time at which it stops.
fn check_times(common: &TrafficCommon, duration_ns: u64, path: &str, problems: &mut Problems) -> u64 {
    let (start_ns, stop_ns) = (common.start.get(), common.stop.map_or(duration_ns, |stop| stop.get()));
    let duration = TIME.display(duration_ns);
    if start_ns >= duration_ns {
        let allowed = format!("a time before the end, duration = {duration}");
        problems.add(|| Problem::new(join(path, "start"), common.start.to_string(), allowed));
    } else if stop_ns <= start_ns || stop_ns > duration_ns {
        let allowed = format!("a time after start = {} and up to duration = {duration}", common.start);
        problems.add(|| Problem::new(join(path, "stop"), TIME.display(stop_ns), allowed));
    }
    stop_ns
}

/// What is sent; `host` are the settings of the host that sends it.
fn kind(table: &TrafficTable, stop_ns: u64, host: &HostTcp, path: &str, problems: &mut Problems) -> TrafficKind {
    match table {
        TrafficTable::Tcp(tcp) => TrafficKind::Tcp(streams::tcp(tcp, stop_ns, host, path, problems)),
        TrafficTable::Web(web) => TrafficKind::Web(streams::web(web, host, path, problems)),
        TrafficTable::Bittorrent(keys) => TrafficKind::Bittorrent(streams::bittorrent(keys, path, problems)),
        TrafficTable::Ping(keys) => TrafficKind::Ping(ping(keys, path, problems)),
        TrafficTable::Udp(udp) => TrafficKind::Udp(datagrams::udp(udp, path, problems)),
        TrafficTable::Voip(voip) => TrafficKind::Voip(datagrams::voip(voip)),
        TrafficTable::Dns(dns) => TrafficKind::Dns(datagrams::dns(dns)),
    }
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
