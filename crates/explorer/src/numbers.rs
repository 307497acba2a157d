//! The numbers of each entry of traffic, as the metrics of stored runs define them: goodput, round trips, transfers.
//!
//! They are those of the window: from the warm-up to the duration, or the part of it under load in a test that has idle
//! times (`python/bufferscope/metrics/window.py`). A lost probe counts as slower than all others in percentiles.

use std::collections::HashMap;

use bufferscope_scenario::Scenario;
use serde::Serialize;

const MS: f64 = 1e6;
/// Times of which percentiles are computed at most, for each entry.
const MOST_TIMES: usize = 1 << 20;

/// What is counted while the run goes on.
#[derive(Debug)]
pub(crate) struct Numbers {
    start_ns: u64,
    end_ns: u64,
    entries: Vec<Entry>,
    by_name: HashMap<String, usize>,
    /// What each flow has delivered, at the start of the window and at its end.
    delivered: HashMap<String, [u64; 2]>,
}

#[derive(Debug)]
struct Entry {
    name: String,
    kind: Kind,
    /// The rows of its transfers say what its flows have delivered.
    transfers_count: bool,
    probes: Times,
    transfers: Times,
}

/// What an entry of traffic does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Its flows carry data.
    Carrying,
    /// A call or a game: its packets have one-way delays.
    Call,
    Other,
}

/// Times, some of which are not known because something was lost or did not finish.
#[derive(Debug, Default)]
struct Times {
    known_ns: Vec<u64>,
    unknown: u64,
    more: bool,
}

/// Numbers of an entry of traffic.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TrafficNumbers {
    name: String,
    goodput_bps: Option<f64>,
    rtt_ms: Option<Quantiles>,
    loss: Option<f64>,
    transfer_ms: Option<Quantiles>,
    unfinished: Option<u64>,
}

/// A distribution. Percentiles are `None` where a lost sample has a weight in them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Quantiles {
    count: u64,
    min: f64,
    mean: f64,
    p50: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    max: f64,
}

impl Numbers {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let entry = |traffic: &bufferscope_scenario::Traffic| Entry {
            name: traffic.name.clone(),
            kind: match traffic.kind.carries() {
                true => Kind::Carrying,
                false if traffic.kind.is_one_way() => Kind::Call,
                false => Kind::Other,
            },
            transfers_count: traffic.kind.transfers_are_connections(),
            probes: Times::default(),
            transfers: Times::default(),
        };
        let (start_ns, end_ns) = window(scenario);
        let entries: Vec<Entry> = scenario.traffic.iter().map(entry).collect();
        let by_name = (0..).zip(&entries).map(|(index, entry)| (entry.name.clone(), index)).collect();
        Self { start_ns, end_ns, entries, by_name, delivered: HashMap::new() }
    }

    /// A flow has delivered this much since it began.
    pub(crate) fn delivered(&mut self, flow: &str, t_ns: u64, bytes: u64) {
        if t_ns > self.end_ns {
            return;
        }
        let counted = match self.delivered.get_mut(flow) {
            Some(counted) => counted,
            None => self.delivered.entry(flow.to_owned()).or_default(),
        };
        counted[1] = counted[1].max(bytes);
        if t_ns <= self.start_ns {
            counted[0] = counted[0].max(bytes);
        }
    }

    pub(crate) fn probe(&mut self, probe: &str, sent_ns: u64, rtt_ns: Option<u64>, owd_ns: Option<u64>) {
        let is_in_window = self.is_in_window(sent_ns);
        let Some(entry) = self.entry(probe).filter(|_| is_in_window) else { return };
        let time_ns = if entry.kind == Kind::Call { owd_ns } else { rtt_ns };
        entry.probes.add(time_ns);
    }

    pub(crate) fn transfer(&mut self, traffic: &str, flow: &str, times: (u64, Option<u64>), bytes: u64) {
        let (started_ns, finished_ns) = times;
        let is_in_window = self.is_in_window(started_ns);
        let Some(entry) = self.entry(traffic) else { return };
        if is_in_window {
            entry.transfers.add(finished_ns.map(|finished_ns| finished_ns.saturating_sub(started_ns)));
        }
        if let (true, Some(finished_ns)) = (entry.transfers_count, finished_ns) {
            self.delivered(flow, finished_ns, bytes);
        }
    }

    fn is_in_window(&self, t_ns: u64) -> bool {
        (self.start_ns..=self.end_ns).contains(&t_ns)
    }

    fn entry(&mut self, name: &str) -> Option<&mut Entry> {
        self.by_name.get(without_number(name)).map(|index| &mut self.entries[*index])
    }

    /// The numbers of all entries, in their order, and what is not complete, in sentences.
    pub(crate) fn of_traffic(&mut self) -> (Vec<TrafficNumbers>, Vec<String>) {
        let mut gained: HashMap<&str, u64> = HashMap::new();
        for (flow, [before, after]) in &self.delivered {
            *gained.entry(without_number(flow)).or_default() += after - before;
        }
        let window_ns = self.end_ns - self.start_ns;
        let goodput = |entry: &Entry| {
            let bytes = gained.get(entry.name.as_str()).copied().unwrap_or(0);
            (entry.kind == Kind::Carrying && window_ns > 0).then(|| bytes as f64 * 8e9 / window_ns as f64)
        };
        let goodputs: Vec<Option<f64>> = self.entries.iter().map(goodput).collect();
        let cut = |entry: &Entry| {
            let is_cut = entry.probes.more || entry.transfers.more;
            is_cut.then(|| format!("{}: the percentiles are those of the first {MOST_TIMES} times", entry.name))
        };
        let left_out = self.entries.iter().filter_map(cut).collect();
        let numbers = |(entry, goodput_bps): (&mut Entry, Option<f64>)| TrafficNumbers {
            name: entry.name.clone(),
            goodput_bps,
            loss: entry.probes.share_unknown(),
            rtt_ms: entry.probes.quantiles(),
            unfinished: entry.transfers.any().then_some(entry.transfers.unknown),
            transfer_ms: entry.transfers.quantiles(),
        };
        (self.entries.iter_mut().zip(goodputs).map(numbers).collect(), left_out)
    }
}

impl Times {
    fn add(&mut self, time_ns: Option<u64>) {
        match time_ns {
            None => self.unknown += 1,
            Some(_) if self.known_ns.len() == MOST_TIMES => self.more = true,
            Some(time_ns) => self.known_ns.push(time_ns),
        }
    }

    fn any(&self) -> bool {
        self.unknown > 0 || !self.known_ns.is_empty()
    }

    fn share_unknown(&self) -> Option<f64> {
        self.any().then(|| self.unknown as f64 / (self.unknown + self.known_ns.len() as u64) as f64)
    }

    fn quantiles(&mut self) -> Option<Quantiles> {
        self.known_ns.sort_unstable();
        let (min_ns, max_ns) = (*self.known_ns.first()?, *self.known_ns.last()?);
        let count = self.known_ns.len() as u64;
        let sum: u128 = self.known_ns.iter().map(|time_ns| u128::from(*time_ns)).sum();
        Some(Quantiles {
            count,
            min: min_ns as f64 / MS,
            mean: sum as f64 / count as f64 / MS,
            p50: self.percentile(50),
            p95: self.percentile(95),
            p99: self.percentile(99),
            max: max_ns as f64 / MS,
        })
    }

    /// As `percentile_of` in `python/bufferscope/stats/estimate.py`: between two order statistics.
    fn percentile(&self, percent: u64) -> Option<f64> {
        let rank = (self.known_ns.len() as u64 + self.unknown - 1) * percent;
        let (low, share) = ((rank / 100) as usize, rank % 100);
        let below = *self.known_ns.get(low)?;
        let above = if share > 0 { *self.known_ns.get(low + 1)? } else { below };
        Some((below * 100 + (above - below) * share) as f64 / (100.0 * MS))
    }
}

/// The name of an entry of traffic: `web` for `web/17`.
fn without_number(name: &str) -> &str {
    match name.rsplit_once('/') {
        Some((entry, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => entry,
        _ => name,
    }
}

/// The time that the numbers are of.
fn window(scenario: &Scenario) -> (u64, u64) {
    let (start_ns, end_ns) = (scenario.warmup_ns, scenario.duration_ns);
    let carrying = || scenario.traffic.iter().filter(|traffic| traffic.kind.carries());
    let is_test = carrying().any(|traffic| traffic.name.contains('.'));
    let begins_ns = carrying().map(|traffic| traffic.start_ns).min().unwrap_or(0);
    let ends_ns = carrying().map(|traffic| traffic.stop_ns).max().unwrap_or(0);
    match is_test && ends_ns > start_ns {
        true => (start_ns.max(begins_ns), end_ns.min(ends_ns)),
        false => (start_ns, end_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(known_ns: &[u64], unknown: u64) -> Times {
        Times { known_ns: known_ns.to_vec(), unknown, more: false }
    }

    #[test]
    fn a_percentile_lies_between_two_times() {
        let quantiles = times(&[4_000_000, 1_000_000, 2_000_000, 3_000_000], 0).quantiles().unwrap();
        assert_eq!((quantiles.p50, quantiles.p95, quantiles.max), (Some(2.5), Some(3.85), 4.0));
        assert_eq!((quantiles.min, quantiles.mean, quantiles.count), (1.0, 2.5, 4));
    }

    #[test]
    fn a_percentile_among_lost_probes_is_not_known() {
        let mut lost = times(&[1_000_000, 2_000_000, 3_000_000], 1);
        assert_eq!(lost.share_unknown(), Some(0.25));
        let quantiles = lost.quantiles().unwrap();
        assert_eq!((quantiles.p50, quantiles.p95, quantiles.p99), (Some(2.5), None, None));
        assert_eq!(times(&[], 3).quantiles(), None);
        assert_eq!(times(&[], 0).share_unknown(), None);
    }

    #[test]
    fn the_number_of_a_flow_is_no_part_of_the_name() {
        assert_eq!(["web/17", "web", "a.b/2", "x/y"].map(without_number), ["web", "web", "a.b", "x/y"]);
    }
}
