//! Bounds on how much one run may record. With them, a typo is reported at once, before the run fills a disk.

use crate::error::{Problem, Problems};
use crate::file::Sample;
use crate::model::{Port, Scenario, SojournDetail, Table, Traffic, Variation};
use crate::path::{join, of_traffic};
use crate::sizes::MTU_BYTES;

/// Flows that exist from start to end.
const MOST_FLOWS: u64 = 10_000;
/// Entries of traffic, parts of tests included. Each server on a host needs a port of its own.
const MOST_TRAFFIC: usize = 10_000;
/// Rows of one table.
pub(crate) const MOST_ROWS: u64 = 50_000_000;
/// Steps of the random walks of a link.
const MOST_WALKED: u64 = 5_000_000;
/// Connections opened one after the other, in total.
pub(crate) const MOST_CONNECTIONS: u64 = 1_000_000;
/// Bits of a full-size packet, for estimating rows from rates.
const PACKET_BITS: u64 = MTU_BYTES as u64 * 8;

pub(super) fn check(scenario: &Scenario, sample: Sample, problems: &mut Problems) {
    check_flows(scenario, problems);
    check_samples(scenario, sample, problems);
    scenario.traffic.iter().for_each(|traffic| traffic.kind.check_limits(traffic, problems));
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

/// Refuses an entry that starts more than `most` of something, one each `interval_ns`, which the key sets.
pub(crate) fn check_starts(
    traffic: &Traffic,
    key: &str,
    interval_ns: u64,
    most: u64,
    what: &str,
    problems: &mut Problems,
) {
    let starts = (traffic.stop_ns - traffic.start_ns).div_ceil(interval_ns);
    if starts > most {
        let path = join(&of_traffic(traffic), key);
        let found = format!("an interval that makes {starts} {what}");
        problems.add(|| Problem::new(path, found, format!("at most {most}")));
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
    scenario.traffic.iter().filter_map(|traffic| traffic.kind.flows()).map(u64::from).sum()
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
