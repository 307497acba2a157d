//! `netem`: delays, loses, duplicates, corrupts and reorders packets (`sch_netem`). Defaults and refusals are those of
//! iproute2's `tc/q_netem.c`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Counts, Discipline, Limit, Match, Part, Qdisc, Reason, Setting, counted};
use crate::error::Problems;
use crate::model::Port;

mod keys;
#[cfg(feature = "testing")]
mod testing;
mod words;

pub(crate) use keys::{GemodelKeys, Keys};

/// Parameters of `netem`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Netem {
    /// Limit of the packets in the emulator, including those being delayed.
    pub limit_packets: u32,
    /// Delay.
    pub delay_ns: u64,
    /// Jitter.
    pub jitter_ns: u64,
    /// Correlation of a delay with the previous one.
    pub correlation: f64,
    /// The distribution of delays.
    pub distribution: Distribution,
    /// How packets are lost.
    pub loss: Option<Loss>,
    /// Mark packets instead of losing them.
    pub ecn: bool,
    /// The probability that a packet is duplicated, and its correlation with the previous one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<[f64; 2]>,
    /// The probability that a packet is corrupted, and its correlation with the previous one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<[f64; 2]>,
    /// How packets are reordered.
    pub reorder: Option<Reorder>,
    /// The rate.
    pub rate: Option<NetemRate>,
    /// The slots in which packets leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<NetemSlot>,
    /// The discipline in which packets queue after their delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner: Option<Box<Qdisc>>,
}

/// How packets are lost. All are probabilities, except for correlations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Loss {
    /// Each with a probability, and a correlation with the one before.
    Random([f64; 2]),
    /// p13, p31, p32, p23, p14.
    State([f64; 5]),
    /// p, r, 1-h, 1-k.
    Gemodel([f64; 4]),
}

/// How packets are reordered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reorder {
    /// Probability with which a packet is reordered.
    pub probability: f64,
    /// Correlation with the previous packet.
    pub correlation: f64,
    /// Only every n-th packet may be reordered.
    pub gap: u32,
}

/// A rate of `netem`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetemRate {
    /// The rate.
    pub rate_bps: u64,
    /// Overhead of each packet in bytes.
    pub packet_overhead_bytes: i32,
    /// Size of a cell, or 0.
    pub cell_bytes: u32,
    /// Overhead of each cell in bytes.
    pub cell_overhead_bytes: i32,
}

impl NetemRate {
    /// Bytes that it counts for a frame of this many (`packet_time_ns`).
    #[inline]
    pub fn counted_bytes(&self, frame_bytes: u32) -> u64 {
        let bytes = (i64::from(frame_bytes) + i64::from(self.packet_overhead_bytes)).max(0) as u64;
        if self.cell_bytes == 0 {
            return bytes;
        }
        let cell_bytes = (i64::from(self.cell_bytes) + i64::from(self.cell_overhead_bytes)).max(1) as u64;
        bytes.div_ceil(self.cell_bytes.into()) * cell_bytes
    }
}

/// The slots of `netem`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetemSlot {
    /// How long it takes until the next one.
    pub delay: SlotDelay,
    /// Packets that leave in one.
    pub packets: Option<u32>,
    /// Bytes that leave in one.
    pub bytes: Option<u32>,
}

/// How long it takes until the next slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SlotDelay {
    /// The minimum, and the exclusive maximum, in nanoseconds.
    Between([u64; 2]),
    /// Mean and standard deviation, in nanoseconds.
    Distributed(Distribution, [u64; 2]),
}

/// A distribution of delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Distribution {
    /// Every delay within the jitter is equally likely.
    #[default]
    Uniform,
    /// Normal.
    Normal,
    /// Pareto.
    Pareto,
    /// A quarter normal, three quarters Pareto.
    ParetoNormal,
}

impl Reason {
    /// Lost by netem, as configured.
    pub const NETEM_LOSS: Self = Self::drop("loss");
    /// Marked by netem instead of lost.
    pub const NETEM_MARK: Self = Self::mark("loss_mark");
    /// Lost by netem, or dropped at its limit: Linux counts them together, and with marks.
    pub const NETEM: Self = Self::drop("loss_or_overlimit");
}

impl Discipline for Netem {
    type Keys = Keys;

    const PURPOSE: &'static str =
        "Delay, jitter, loss, duplicates, corruption, reordering: emulates a path, and mitigates nothing.";
    const SOURCE: &'static str = "net/sched/sch_netem.c";
    const MODULE: &'static str = "sch_netem";
    const SAMPLE: &'static str = "netem delay 1ms";
    const CONTAINS_OTHERS: bool = true;
    const REASONS: &'static [Reason] = &[Reason::OVERLIMIT, Reason::NETEM_LOSS, Reason::NETEM_MARK, Reason::NETEM];
    const COUNTED: &'static [Reason] = &[Reason::NETEM];
    const HOLDS_BACK: bool = true;

    fn resolve(keys: &Keys, txqueuelen: u32, path: &str, problems: &mut Problems) -> Option<Self> {
        keys.resolve(txqueuelen, path, problems)
    }

    fn limit(&self) -> Limit {
        // A packet is checked against the limit before its duplicate is enqueued, so the queue may exceed the limit by
        // one.
        let own = u64::from(self.limit_packets) + u64::from(self.duplicate.is_some());
        Limit::sum([Limit::Packets(own)].into_iter().chain(self.inner.as_ref().map(|inner| inner.limit())))
    }

    fn outermost_key(&self) -> Option<&'static str> {
        self.duplicate.map(|_| "duplicate")
    }

    fn parts(&self) -> Vec<Part<'_>> {
        self.inner.iter().map(|qdisc| Part::Inner { class: 1, qdisc }).collect()
    }

    fn each_match(&mut self, visit: &mut dyn FnMut(&mut Match)) {
        self.inner.iter_mut().for_each(|inner| inner.each_match(visit));
    }

    fn caution(&self, port: &Port) -> Option<String> {
        let rate = self.rate.filter(|rate| rate.packet_overhead_bytes != 0 || rate.cell_bytes != 0)?;
        port.encapsulation.counted_otherwise("netem", |frame_bytes| rate.counted_bytes(frame_bytes))
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        self.words()
    }

    fn counts(drops: u64, _own: &[u32]) -> Counts {
        counted([drops])
    }

    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        testing::any()
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        testing::written(self)
    }
}

#[cfg(test)]
mod tests;
