//! Wi-Fi networks, and what they change about their links' ports.

use super::links::port_of;
use super::nodes::Nodes;
use crate::error::{Problem, Problems, quote};
use crate::file::{Aggregate as AggregateTable, Link as LinkTable, Queueing, Setup, Wifi as WifiTable};
use crate::model::{Aggregate, Link, LinkIndex, Port, Scenario, Station, Wifi, WifiQueueing};
use crate::path::{join, of_traffic};
use crate::qdisc::{FqCodel, Qdisc, TXQUEUELEN};
use crate::routes::Routing;
use crate::suggest::{any_of, closest};
use crate::units::MS;

/// Most stations of a network.
const MOST_STATIONS: usize = 250;
/// Packets in all queues of an interface (`fq_init` of `net/mac80211/tx.c`).
const MAC80211_PACKETS: u32 = 8192;
/// Memory of these packets.
const MAC80211_BYTES: u32 = 16 << 20;
/// Quantum of a flow (`include/net/fq_impl.h`).
const MAC80211_QUANTUM_BYTES: u32 = 300;
/// A station below this rate, times the number of stations, is slow (`STA_SLOW_THRESHOLD` of
/// `net/mac80211/sta_info.c`).
const SLOW_BPS: u64 = 6_000_000;

/// The networks. Also sets the queues of their links' ports.
pub(super) fn resolve(setup: &Setup, nodes: &Nodes<'_>, links: &mut [Link], problems: &mut Problems) -> Vec<Wifi> {
    if setup.wifi.is_empty() {
        return Vec::new();
    }
    let mut used = vec![None; links.len()];
    let mut networks = Vec::with_capacity(setup.wifi.len());
    for table in &setup.wifi {
        networks.extend(network(table, &setup.link, nodes, links, &mut used, problems));
    }
    networks
}

fn network<'s>(
    table: &'s WifiTable,
    tables: &[LinkTable],
    nodes: &Nodes<'_>,
    links: &mut [Link],
    used: &mut [Option<&'s str>],
    problems: &mut Problems,
) -> Option<Wifi> {
    let path = join("wifi", table.name.as_str());
    let access_point = nodes.find(&table.access_point, || join(&path, "access_point"), problems)?;
    if table.links.len() > MOST_STATIONS {
        let found = format!("{} links", table.links.len());
        problems.add(|| Problem::new(join(&path, "links"), found, format!("at most {MOST_STATIONS}")));
        return None;
    }
    let mut stations = Vec::with_capacity(table.links.len());
    for name in &table.links {
        let index = find(name.as_str(), tables, &join(&path, "links"), problems)?;
        let (link, own) = (&links[usize::from(index)], &tables[usize::from(index)]);
        check_link(table, own, link, access_point, problems);
        if let Some(first) = used[usize::from(index)].replace(table.name.as_str()) {
            let found = format!("\"{name}\", which is already in {}", join("wifi", first));
            problems.add(|| Problem::new(join(&path, "links"), found, "each link once"));
        }
        stations.push(Station { link: index, error_rate: table.errors.get(name.as_str()).copied().unwrap_or(0.0) });
    }
    for name in table.errors.keys().filter(|name| table.links.iter().all(|link| link.as_str() != name.as_str())) {
        let allowed = format!("a link of this network: {}", any_of(table.links.iter().map(|link| link.as_str())));
        problems.add(|| Problem::new(join(&path, "errors"), quote(name), allowed));
    }
    if !problems.is_empty() {
        return None;
    }
    let queueing = queueing(table, &path, access_point, &stations, tables, links, problems)?;
    let AggregateTable { frames, bytes, time } = &table.aggregate;
    Some(Wifi {
        name: table.name.to_string(),
        access_point,
        stations,
        queueing,
        aggregate: Aggregate { frames: frames.get_u32(), bytes: bytes.get_u32(), time_ns: time.get() },
        retries: table.retries,
    })
}

/// Sets the queues of the access point's ports.
fn queueing(
    table: &WifiTable,
    path: &str,
    access_point: u16,
    stations: &[Station],
    tables: &[LinkTable],
    links: &mut [Link],
    problems: &mut Problems,
) -> Option<WifiQueueing> {
    let airtime_fairness = match &table.queueing {
        None => true,
        Some(Queueing::Mac80211(keys)) => keys.airtime_fairness,
        Some(Queueing::Fifo(keys)) => {
            let queue = match &keys.queue {
                Some(queue) => Qdisc::of_port(queue, TXQUEUELEN, &join(&join(path, "queueing"), "queue"), problems)?,
                None => Qdisc::default(),
            };
            for index in stations.iter().map(|station| usize::from(station.link)) {
                check_has_no_queue(&tables[index], &links[index], access_point, path, problems);
                port_of(&mut links[index], access_point).queue = queue.clone();
            }
            return Some(WifiQueueing::Fifo { size_packets: keys.size.get_u32() });
        }
    };
    let share = stations.len() as u32;
    for station in stations {
        let (table, link) = (&tables[usize::from(station.link)], &mut links[usize::from(station.link)]);
        let is_forward = link.ends[0] == access_point;
        for (own, port, packets) in [
            (&table.forward, &mut link.forward, if is_forward { MAC80211_PACKETS / share } else { MAC80211_PACKETS }),
            (&table.reverse, &mut link.reverse, if is_forward { MAC80211_PACKETS } else { MAC80211_PACKETS / share }),
        ] {
            if own.queue.is_none() && table.queue.is_none() {
                port.queue = Qdisc::FqCodel(mac80211_queue(port, packets, share));
            }
        }
    }
    Some(WifiQueueing::Mac80211 { airtime_fairness })
}

/// The queues of a station in mac80211 (`ieee80211_txq_setup_flows`), and CoDel's parameters for its rate
/// (`sta_update_codel_params`).
fn mac80211_queue(port: &Port, limit_packets: u32, stations: u32) -> FqCodel {
    let rate_bps = port.rate.as_ref().map_or(u64::MAX, |rate| rate.at(0));
    let is_slow = rate_bps < SLOW_BPS * u64::from(stations);
    let (target_ns, interval_ns) = if is_slow { (50 * MS, 300 * MS) } else { (20 * MS, 100 * MS) };
    FqCodel {
        limit_packets,
        flows: 4096,
        target_ns,
        interval_ns,
        quantum_bytes: Some(MAC80211_QUANTUM_BYTES),
        ecn: !is_slow,
        ce_threshold_ns: None,
        ce_threshold_selector: None,
        memory_limit_bytes: MAC80211_BYTES,
        drop_batch: 1,
    }
}

fn find(name: &str, tables: &[LinkTable], path: &str, problems: &mut Problems) -> Option<LinkIndex> {
    const SHOWN: usize = 20;
    let names = || tables.iter().map(|table| table.name.as_str());
    let index = names().position(|other| other == name).and_then(|index| LinkIndex::try_from(index).ok());
    if index.is_none() {
        let allowed = format!("the name of a link: {}", any_of(names().take(SHOWN)));
        problems.add(|| Problem::new(path, format!("\"{name}\""), allowed).did_you_mean(closest(name, names())));
    }
    index
}

/// Refuses settings that a Wi-Fi link cannot have.
fn check_link(wifi: &WifiTable, table: &LinkTable, link: &Link, access_point: u16, problems: &mut Problems) {
    let path = join("link", table.name.as_str());
    if !link.ends.contains(&access_point) {
        let found = format!("\"{}\" and \"{}\"", table.ends[0], table.ends[1]);
        let allowed = format!("{} and a station, because this link belongs to wifi.{}", wifi.access_point, wifi.name);
        problems.add(|| Problem::new(join(&path, "ends"), found, allowed));
    }
    if link.ports().iter().any(|port| port.rate.is_none()) {
        let found = format!("no rate on a link of wifi.{}", wifi.name);
        let allowed = "the PHY rate of both directions, such as 72.2mbit";
        problems.add(|| Problem::new(join(&path, "rate"), found, allowed));
    }
    if link.ports().iter().any(|port| port.variation.is_some() || port.boost.is_some()) {
        let found = format!("a boost, a trace or a random walk for the PHY rate of wifi.{}", wifi.name);
        problems.add(|| Problem::new(join(&path, "rate"), found, "a rate, or a schedule of rates"));
    }
    if link.ports().iter().any(|port| port.faults.is_some() || port.stacked.is_some()) {
        let found = format!("impairments of the wire, or a stacked interface, on a link of wifi.{}", wifi.name);
        let allowed = format!("a link without them; frames are lost by wifi.{}.errors", wifi.name);
        problems.add(|| Problem::new(&path, found, allowed));
    }
    if link.ports().iter().any(|port| port.ring.is_some()) {
        let found = format!("a ring on a link of wifi.{}", wifi.name);
        let allowed = format!("wifi.{}.queueing, which sets the queues of the driver", wifi.name);
        problems.add(|| Problem::new(join(&path, "ring"), found, allowed));
    }
}

/// Refuses a discipline for a single station, where the interface has one for all.
fn check_has_no_queue(table: &LinkTable, link: &Link, access_point: u16, wifi: &str, problems: &mut Problems) {
    let (direction, own) =
        if link.ends[0] == access_point { ("forward", &table.forward) } else { ("reverse", &table.reverse) };
    let path = join("link", table.name.as_str());
    let path = match (&table.queue, &own.queue) {
        (Some(_), _) => path,
        (None, Some(_)) => join(&path, direction),
        (None, None) => return,
    };
    let found = "a queue for one station, where the driver has one interface for all of them";
    let hint = "the queue of a station's own interface belongs to the link's other direction";
    let allowed = format!("{}.queueing.queue", wifi);
    problems.add(|| Problem::new(join(&path, "queue"), found, allowed).hint(hint));
}

/// Refuses packets of several segments on the air, because mac80211 splits them.
pub(super) fn check_segments(scenario: &Scenario, problems: &mut Problems) {
    let on_air: Vec<LinkIndex> =
        scenario.wifi.iter().flat_map(|wifi| wifi.stations.iter().map(|station| station.link)).collect();
    if on_air.is_empty() {
        return;
    }
    let routing = Routing::of(scenario);
    for traffic in scenario.traffic.iter().filter(|traffic| traffic.kind.sending().is_some()) {
        let ends = [traffic.from, traffic.to].map(|end| &scenario.nodes[usize::from(end)]);
        let Some(node) = ends.into_iter().find(|node| node.tcp.gso_max_segs > 1) else { continue };
        let path = routing.path(traffic.from, traffic.to).unwrap_or_default();
        if path.into_iter().any(|port| on_air.iter().any(|&link| u32::from(link) == port / 2)) {
            let key = join(&join(&join("host", &node.name), "tcp"), "gso_max_segs");
            let found = format!("{}, and {} crosses a [[wifi]]", node.tcp.gso_max_segs, of_traffic(traffic));
            problems.add(|| Problem::new(key, found, "1: packets of a single segment"));
        }
    }
}
