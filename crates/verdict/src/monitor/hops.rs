//! The hops of the path: where a delay begins, and whether the path changes.

use std::collections::{BTreeMap, VecDeque};

use crate::input::{AnswerKind, EndName, LadderProbe};
use crate::statistics::{median, quantile, sorted};

/// Undisturbed answers of a hop that are remembered.
const REMEMBERED: usize = 60;
/// Its undisturbed round trip is this quantile of them.
const BASE: f64 = 0.25;
/// A hop is used if it has so many of them ...
const LEAST_BEFORE: usize = 6;
/// ... and so many answers while packets are late, of which no more than this are kept.
const LEAST_DURING: usize = 3;
const MOST_DURING: usize = 256;
/// A hop with this part of the delay is behind the queue, one with less than that part before it.
const BEHIND: f64 = 0.5;
const BEFORE: f64 = 0.25;
/// A new address must answer so often in turn.
const IN_TURN: u32 = 3;
/// Addresses of a hop that are remembered: load balancers have several.
const ADDRESSES: usize = 8;

/// What is known of the hops, by their TTL from the client.
#[derive(Debug, Default)]
pub(super) struct Hops {
    hops: BTreeMap<u8, Hop>,
}

#[derive(Debug, Default)]
struct Hop {
    addresses: VecDeque<String>,
    candidate: Option<(String, u32)>,
    before: VecDeque<f64>,
    during: Vec<f64>,
}

impl Hops {
    /// Takes an answer. Returns a change of the path in words.
    pub(super) fn take(&mut self, probe: &LadderProbe, is_late: bool) -> Option<String> {
        if probe.end != EndName::Client || probe.kind != AnswerKind::Exceeded {
            return None;
        }
        let rtt_ns = probe.rtt_ns? as f64;
        let hop = self.hops.entry(probe.ttl).or_default();
        if is_late {
            if hop.during.len() < MOST_DURING {
                hop.during.push(rtt_ns);
            }
        } else {
            if hop.before.len() >= REMEMBERED {
                hop.before.pop_front();
            }
            hop.before.push_back(rtt_ns);
        }
        let change = hop.changes(probe.address.as_deref()?)?;
        Some(format!("the path changed: hop {} is now {change}", probe.ttl))
    }

    /// Between which hops a delay begins, in words; `None`: too few answered, or they contradict one another.
    pub(super) fn begins(&self, added_ns: f64) -> Option<String> {
        let found: Vec<(u8, &Hop, f64)> =
            self.hops.iter().filter_map(|(ttl, hop)| Some((*ttl, hop, hop.rise_ns()? / added_ns))).collect();
        if found.is_empty() {
            return None;
        }
        let behind = found.iter().position(|(_, _, part)| *part >= BEHIND);
        let (before, after) = found.split_at(behind.unwrap_or(found.len()));
        let is_consistent =
            before.iter().all(|(_, _, part)| *part < BEFORE) && after.iter().all(|(_, _, part)| *part >= BEHIND);
        if !is_consistent {
            return None;
        }
        let name = |(ttl, hop, _): &(u8, &Hop, f64)| match hop.addresses.back() {
            Some(address) => format!("hop {ttl} ({address})"),
            None => format!("hop {ttl}"),
        };
        Some(match (before.last(), after.first()) {
            (Some(before), Some(after)) => format!("between {} and {}", name(before), name(after)),
            (None, Some(after)) => format!("between this machine and {}", name(after)),
            (Some(before), None) => format!("behind {}", name(before)),
            (None, None) => return None,
        })
    }

    /// The answers while packets were late are no longer needed.
    pub(super) fn episode_is_over(&mut self) {
        self.hops.values_mut().for_each(|hop| hop.during.clear());
    }

    /// Round trips of another path mean nothing.
    pub(super) fn forget_delays(&mut self) {
        for hop in self.hops.values_mut() {
            hop.before.clear();
            hop.during.clear();
        }
    }
}

impl Hop {
    fn rise_ns(&self) -> Option<f64> {
        if self.before.len() < LEAST_BEFORE || self.during.len() < LEAST_DURING {
            return None;
        }
        let base = quantile(&sorted(self.before.iter().copied()), BASE)?;
        Some(median(self.during.iter().copied())? - base)
    }

    /// The change that an answer's address completes.
    fn changes(&mut self, address: &str) -> Option<String> {
        if self.addresses.is_empty() || self.addresses.iter().any(|known| known == address) {
            if self.addresses.is_empty() {
                self.addresses.push_back(address.to_owned());
            }
            self.candidate = None;
            return None;
        }
        let times = match self.candidate.take() {
            Some((known, times)) if known == address => times + 1,
            _ => 1,
        };
        if times < IN_TURN {
            self.candidate = Some((address.to_owned(), times));
            return None;
        }
        let before = self.addresses.back().cloned().unwrap_or_default();
        if self.addresses.len() >= ADDRESSES {
            self.addresses.pop_front();
        }
        self.addresses.push_back(address.to_owned());
        Some(format!("{address}, before {before}"))
    }
}
