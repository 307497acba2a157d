//! The hops of both ladders: their answers on the idle path and under load.

use std::collections::{BTreeMap, BTreeSet};

use crate::input::{AnswerKind, EndName, LadderProbe, Observations, Phase, PhaseKind};
use crate::statistics::{SIGMA_PER_MAD, mad, median, whole};
use crate::verdict;

/// A hop with fewer answers under load is silent ...
const LEAST_LOADED: usize = 3;
/// ... and so is one with fewer answers on the unloaded path.
const LEAST_IDLE: usize = 4;
/// Paths that are longer, or whose length is not known.
const MOST_LINKS: u8 = 32;
const LINKS_IF_UNKNOWN: u8 = 3;

/// A hop in one loaded phase.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    pub(crate) end: EndName,
    pub(crate) ttl: u8,
    pub(crate) address: Option<String>,
    pub(crate) idle_count: usize,
    /// The median round-trip time of the unloaded path.
    pub(crate) base_ns: Option<f64>,
    /// The uncertainty of one answer, and of the median.
    pub(crate) sigma_ns: f64,
    /// When probes were sent under load, and the round-trip times of their answers.
    pub(crate) loaded: Vec<(i64, f64)>,
    /// Why it is not used.
    pub(crate) note: Option<&'static str>,
    changed: bool,
}

/// The length of the path from each end, in links.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lengths {
    pub(crate) client: u8,
    pub(crate) server: u8,
    pub(crate) known: bool,
}

impl Lengths {
    pub(crate) fn of(observations: &Observations) -> Self {
        let client = length(observations, EndName::Client);
        let server = length(observations, EndName::Server);
        let known = client.or(server);
        let either = known.unwrap_or(LINKS_IF_UNKNOWN);
        let bounded = |length: Option<u8>| length.unwrap_or(either).clamp(1, MOST_LINKS);
        Self { client: bounded(client), server: bounded(server), known: known.is_some() }
    }

    /// The length as counted by an end.
    pub(crate) fn get(&self, end: EndName) -> u8 {
        match end {
            EndName::Client => self.client,
            EndName::Server => self.server,
        }
    }
}

/// The number of links from an end: as it counted them, the TTL that sufficed, or one more than the last hop that answered.
fn length(observations: &Observations, end: EndName) -> Option<u8> {
    let answers = || {
        let probes = observations.phases.iter().flat_map(|phase| &phase.ladder);
        probes.filter(move |probe| probe.end == end && probe.rtt_ns.is_some())
    };
    let counted = observations.ends.get(end).hops_to_other;
    let sufficed = || answers().filter(|probe| probe.kind == AnswerKind::Destination).map(|probe| probe.ttl).min();
    let last = || answers().filter(|probe| probe.kind == AnswerKind::Exceeded).map(|probe| probe.ttl).max();
    counted.or_else(sufficed).or_else(|| last().map(|ttl| ttl.saturating_add(1)))
}

/// The hops between the ends, by end and TTL.
pub(crate) fn hops(phases: &[Phase], loaded: &Phase, lengths: &Lengths) -> Vec<Hop> {
    let unloaded: Vec<&LadderProbe> = phases
        .iter()
        .filter(|phase| matches!(phase.kind, PhaseKind::Idle | PhaseKind::CoolDown))
        .flat_map(|phase| &phase.ladder)
        .collect();
    let before = grouped(unloaded.into_iter(), lengths);
    let during = grouped(loaded.ladder.iter(), lengths);
    let keys: BTreeSet<Key> = before.keys().chain(during.keys()).copied().collect();
    let none = Vec::new();
    keys.into_iter().map(|key| hop(key, before.get(&key).unwrap_or(&none), during.get(&key).unwrap_or(&none))).collect()
}

/// The modem behind the router, as the client's probes to its own address found it; `None`: it has not answered, or it is a hop.
pub(crate) fn modem(phases: &[Phase], loaded: &Phase, hops: &[Hop]) -> Option<Hop> {
    fn of_modem(phase: &Phase) -> impl Iterator<Item = &LadderProbe> {
        phase.ladder.iter().filter(|probe| probe.kind == AnswerKind::Modem)
    }
    let unloaded = phases.iter().filter(|phase| matches!(phase.kind, PhaseKind::Idle | PhaseKind::CoolDown));
    let before: Vec<&LadderProbe> = unloaded.flat_map(of_modem).collect();
    let during: Vec<&LadderProbe> = of_modem(loaded).collect();
    let modem = hop((false, before.first()?.ttl, true), &before, &during);
    let is_hop = hops.iter().any(|hop| hop.address.is_some() && hop.address == modem.address);
    (!is_hop && modem.note.is_none()).then_some(modem)
}

/// End (the client first), TTL, and whether it is an echo of the hop.
type Key = (bool, u8, bool);

fn grouped<'a>(
    probes: impl Iterator<Item = &'a LadderProbe>,
    lengths: &Lengths,
) -> BTreeMap<Key, Vec<&'a LadderProbe>> {
    let mut groups: BTreeMap<Key, Vec<&LadderProbe>> = BTreeMap::new();
    for probe in probes {
        let hop = matches!(probe.kind, AnswerKind::Exceeded | AnswerKind::Echo);
        if hop && (1..lengths.get(probe.end)).contains(&probe.ttl) {
            let key = (probe.end == EndName::Server, probe.ttl, probe.kind == AnswerKind::Echo);
            groups.entry(key).or_default().push(probe);
        }
    }
    groups
}

fn hop((server, ttl, _): Key, before: &[&LadderProbe], during: &[&LadderProbe]) -> Hop {
    let rtts = |probes: &[&LadderProbe]| -> Vec<(i64, f64)> {
        probes.iter().filter_map(|probe| Some((probe.t_ns, probe.rtt_ns? as f64))).collect()
    };
    let (idle, loaded) = (rtts(before), rtts(during));
    let base_ns = median(idle.iter().map(|sample| sample.1));
    let spread = base_ns.and_then(|base| mad(idle.iter().map(|sample| sample.1), base)).unwrap_or(0.0) * SIGMA_PER_MAD;
    let (known, address) = (addresses(before), usual(during));
    let changed = address.is_some_and(|address| !known.is_empty() && !known.contains(address));
    let labelled = before.iter().chain(during).any(|probe| probe.mpls);
    let note = if changed {
        Some("its address changed under load: another path")
    } else if labelled {
        Some("it is inside an MPLS tunnel, whose hops answer through the end of the tunnel")
    } else if loaded.len() < LEAST_LOADED || idle.len() < LEAST_IDLE {
        Some("too few answers")
    } else {
        None
    };
    let error = 1.25 * spread / (idle.len().max(1) as f64).sqrt();
    Hop {
        end: if server { EndName::Server } else { EndName::Client },
        ttl,
        address: address.or(usual(before)).map(str::to_owned),
        idle_count: idle.len(),
        base_ns,
        sigma_ns: spread + error,
        loaded,
        note,
        changed,
    }
}

fn addresses<'a>(probes: &[&'a LadderProbe]) -> BTreeSet<&'a str> {
    probes.iter().filter_map(|probe| probe.address.as_deref()).collect()
}

/// The address that answered most often.
fn usual<'a>(probes: &[&'a LadderProbe]) -> Option<&'a str> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for address in probes.iter().filter_map(|probe| probe.address.as_deref()) {
        *counts.entry(address).or_default() += 1;
    }
    counts.into_iter().max_by_key(|count| count.1).map(|count| count.0)
}

/// Whether more than half of the hops have another address under load.
pub(crate) fn path_changed(hops: &[Hop]) -> bool {
    let comparable = hops.iter().filter(|hop| hop.idle_count > 0 && !hop.loaded.is_empty() && hop.address.is_some());
    let (all, changed) = comparable.fold((0, 0), |(all, changed), hop| (all + 1, changed + usize::from(hop.changed)));
    all >= 2 && 2 * changed > all
}

impl Hop {
    /// For the verdict.
    pub(crate) fn report(&self, excluded: Option<&'static str>) -> verdict::Hop {
        let loaded = median(self.loaded.iter().map(|sample| sample.1));
        let note = self.note.or(excluded);
        verdict::Hop {
            end: self.end,
            ttl: self.ttl,
            address: self.address.clone(),
            idle_count: self.idle_count as u64,
            loaded_count: self.loaded.len() as u64,
            idle_p50_ns: self.base_ns.map(whole),
            rise_ns: loaded.zip(self.base_ns).map(|(loaded, base)| whole(loaded - base)),
            used: note.is_none(),
            note: note.map(str::to_owned),
        }
    }
}
