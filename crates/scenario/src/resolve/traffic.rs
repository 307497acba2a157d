//! Traffic: who sends, to whom, and when. An entry for a load test becomes several.

use super::nodes::Nodes;
use crate::error::{Problem, Problems};
use crate::file::Setup;
use crate::model::Traffic;
use crate::path::join;
use crate::text::Name;
use crate::traffic::{Entry, EntryPart, Placement, TrafficKeys, check_ports};
use crate::units::TIME;

pub(super) fn resolve(setup: &Setup, nodes: &Nodes<'_>, problems: &mut Problems) -> Vec<Traffic> {
    let resolved: Vec<Traffic> = setup.traffic.iter().flat_map(|table| entry(table, setup, nodes, problems)).collect();
    check_ports(&resolved, problems);
    resolved
}

/// The traffic of one entry.
fn entry(table: &TrafficKeys, setup: &Setup, nodes: &Nodes<'_>, problems: &mut Problems) -> Vec<Traffic> {
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
    let parts = table.parts(&Entry { path: &path, stop_ns, hosts }, problems);
    let (Some(from), Some(to)) = (from, to) else { return Vec::new() };
    let traffic = |part: EntryPart| {
        let name = part.name.map_or_else(|| placement.name.to_string(), |part| format!("{}.{part}", placement.name));
        let [from, to] = if part.reverse { [to, from] } else { [from, to] };
        let (start_ns, stop_ns) = (placement.start.get() + part.late_ns, stop_ns.saturating_sub(part.late_ns));
        Traffic { name, from, to, start_ns, stop_ns, dscp: part.dscp, port: table.port(), kind: part.kind }
    };
    parts.into_iter().map(traffic).collect()
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
