//! Bounds on how much one run may record. With them, a typo is reported at once, before the run fills a disk.

use crate::error::{Problem, Problems};
use crate::file::Sample;
use crate::model::{
    NetalyzrTraffic, OnOff, Port, Scenario, SojournDetail, Table, TcpTraffic, Traffic, TrafficKind, UdpTraffic,
    Variation,
};
use crate::path::{join, of_traffic};
use crate::sizes::MTU_BYTES;

/// Flows that exist from start to end.
const MOST_FLOWS: u64 = 10_000;
/// Entries of traffic, parts of tests included. Each server on a host needs a port of its own.
const MOST_TRAFFIC: usize = 10_000;
/// Rows of one table.
const MOST_ROWS: u64 = 50_000_000;
/// Steps of the random walks of a link.
const MOST_WALKED: u64 = 5_000_000;
/// Connections opened one after the other, in total.
const MOST_CONNECTIONS: u64 = 1_000_000;
/// Bits of a full-size packet, for estimating rows from rates.
const PACKET_BITS: u64 = MTU_BYTES as u64 * 8;

pub(super) fn check(scenario: &Scenario, sample: Sample, problems: &mut Problems) {
    check_flows(scenario, problems);
    check_samples(scenario, sample, problems);
    check_starts(scenario, problems);
    check_sojourns(scenario, problems);
    check_walks(scenario, problems);
}

fn check_flows(scenario: &Scenario, problems: &mut Problems) {
    let entries = scenario.traffic.len();
    if entries > MOST_TRAFFIC {
        problems.add(|| Problem::new("traffic", format!("{entries} in all"), format!("at most {MOST_TRAFFIC} in all")));
    }
    let flows = flows(scenario);
    if flows > MOST_FLOWS {
        let found = format!("{flows} flows in all");
        problems.add(|| Problem::new("traffic", found, format!("at most {MOST_FLOWS} in all")));
    }
}

fn check_samples(scenario: &Scenario, sample: Sample, problems: &mut Problems) {
    let ports = scenario.ports().filter(|port| port.rate.is_some()).count() as u64;
    let rows = |(table, sampled): (Table, u64)| {
        let samples = scenario.duration_ns / scenario.sampled_every_ns(table)? + 1;
        Some((samples.saturating_mul(sampled), table))
    };
    let most = [(Table::Queues, ports), (Table::Flows, flows(scenario))].into_iter().filter_map(rows).max();
    if let Some((rows, table)) = most.filter(|(rows, _)| *rows > MOST_ROWS) {
        let found = format!("an interval that makes {rows} rows of one table");
        let allowed = format!("at most {MOST_ROWS} (duration / sample, for each flow or port)");
        let hint = "sample less often or for a shorter time, or leave the table out of record";
        problems.add(|| Problem::new(sample.path(table), found, allowed).hint(hint));
    }
}

/// Each step of a random walk has a row.
fn check_walks(scenario: &Scenario, problems: &mut Problems) {
    let steps = |port: &Port| match &port.variation {
        Some(Variation::Walk(walk)) => scenario.duration_ns / walk.every_ns + 1,
        _ => 0,
    };
    for link in &scenario.links {
        let rows = steps(&link.forward) + steps(&link.reverse);
        if rows > MOST_WALKED {
            let found = format!("a random walk of {rows} steps");
            let allowed = format!("at most {MOST_WALKED} (duration / every, in each direction)");
            problems.add(|| Problem::new(join(&join("link", &link.name), "rate"), found, allowed));
        }
    }
}

/// Probes and pages that will be started.
fn check_starts(scenario: &Scenario, problems: &mut Problems) {
    for traffic in &scenario.traffic {
        let (interval_ns, most, what) = match &traffic.kind {
            TrafficKind::Tcp(tcp) => {
                check_transfers(traffic, tcp, problems);
                continue;
            }
            // Even a day of speech has fewer rows than the limit.
            TrafficKind::Bittorrent(_) | TrafficKind::Voip(_) => continue,
            TrafficKind::Udp(udp) => {
                check_datagrams(traffic, udp, problems);
                continue;
            }
            TrafficKind::Netalyzr(test) => {
                check_test(traffic, test, problems);
                continue;
            }
            TrafficKind::Ping(ping) => (ping.interval_ns, MOST_ROWS, "probes"),
            TrafficKind::Irtt(irtt) => (irtt.interval_ns, MOST_ROWS, "probes"),
            TrafficKind::Web(web) => {
                let each = web.objects.map_or(1, |objects| u64::from(objects.connections.min(objects.count)));
                (web.interval_ns, MOST_CONNECTIONS / each, "pages")
            }
            TrafficKind::Dns(dns) => (dns.interval_ns, MOST_ROWS, "look-ups"),
        };
        let starts = (traffic.stop_ns - traffic.start_ns).div_ceil(interval_ns);
        if starts > most {
            let path = join(&of_traffic(traffic), "interval");
            let found = format!("an interval that makes {starts} {what}");
            problems.add(|| Problem::new(path, found, format!("at most {most}")));
        }
    }
}

/// Each datagram of a flood may be dropped, and each drop has a row.
fn check_datagrams(traffic: &Traffic, udp: &UdpTraffic, problems: &mut Problems) {
    let bits = u128::from(udp.rate_bps) * u128::from(traffic.stop_ns - traffic.start_ns) / 1_000_000_000;
    let whole = bits * u128::from(udp.flows) / (8 * u128::from(udp.payload_bytes));
    let datagrams = udp.on_off.map_or(whole, |OnOff { on_ns, off_ns, .. }| {
        whole * u128::from(on_ns) / (u128::from(on_ns) + u128::from(off_ns))
    });
    if datagrams > u128::from(MOST_ROWS) {
        let path = join(&of_traffic(traffic), "rate");
        let found = format!("a rate that makes {datagrams} datagrams");
        problems
            .add(|| Problem::new(path, found, format!("at most {MOST_ROWS}")).hint("send less or for a shorter time"));
    }
}

/// Each packet of a load may be dropped.
fn check_test(traffic: &Traffic, test: &NetalyzrTraffic, problems: &mut Problems) {
    let bits = 2 * u128::from(test.rate_bps) * u128::from(test.load_ns) / 1_000_000_000;
    let packets = bits / (8 * u128::from(test.payload_bytes.max(1)));
    if packets > u128::from(MOST_ROWS) {
        let path = join(&of_traffic(traffic), "rate");
        let found = format!("a rate that makes {packets} packets");
        problems
            .add(|| Problem::new(path, found, format!("at most {MOST_ROWS}")).hint("send less or for a shorter time"));
    }
}

fn check_transfers(traffic: &Traffic, tcp: &TcpTraffic, problems: &mut Problems) {
    let transfers = u64::from(tcp.flows) * u64::from(tcp.transfers);
    if tcp.transfers > 1 && transfers > MOST_CONNECTIONS {
        let path = join(&of_traffic(traffic), "transfers");
        let found = format!("{} for each of {} flows", tcp.transfers, tcp.flows);
        problems.add(|| Problem::new(path, found, format!("at most {MOST_CONNECTIONS} in all")));
    }
}

fn check_sojourns(scenario: &Scenario, problems: &mut Problems) {
    if scenario.sojourns != SojournDetail::Packets || !scenario.record.contains(Table::Sojourns) {
        return;
    }
    let bits: u128 = scenario.ports().map(|port| port.capacity_bits(scenario.duration_ns)).sum();
    let rows = bits / u128::from(PACKET_BITS);
    if rows > u128::from(MOST_ROWS) {
        let found = format!("\"packets\" where about {rows} full-size packets can pass");
        let problem = || Problem::new("sojourns", found, format!("at most {MOST_ROWS} packets"));
        problems.add(|| problem().hint("keep a \"histogram\" instead, or run for a shorter time"));
    }
}

fn flows(scenario: &Scenario) -> u64 {
    let flows = |traffic: &Traffic| match &traffic.kind {
        TrafficKind::Tcp(tcp) => u64::from(tcp.flows),
        TrafficKind::Udp(udp) => u64::from(udp.flows),
        TrafficKind::Bittorrent(bittorrent) => u64::from(bittorrent.peers),
        TrafficKind::Ping(_)
        | TrafficKind::Web(_)
        | TrafficKind::Voip(_)
        | TrafficKind::Dns(_)
        | TrafficKind::Irtt(_)
        | TrafficKind::Netalyzr(_) => 0,
    };
    scenario.traffic.iter().map(flows).sum()
}

impl Port {
    /// Bits that can be sent up to `end_ns`, on average if the rate varies by itself; 0 if the port has no rate, because nothing queues there.
    fn capacity_bits(&self, end_ns: u64) -> u128 {
        let steps = self.rate.as_ref().map_or(&[][..], |rate| rate.steps());
        let ends = steps.iter().skip(1).map(|step| step.from_ns).chain([end_ns]);
        let bits = steps.iter().zip(ends).map(|(step, until)| {
            let ns = until.min(end_ns).saturating_sub(step.from_ns);
            u128::from(ns) * u128::from(step.bits_per_second)
        });
        let boosted = self.boost.map_or(0, |boost| 8 * u128::from(boost.bytes));
        bits.sum::<u128>() / 1_000_000_000 + boosted
    }
}
