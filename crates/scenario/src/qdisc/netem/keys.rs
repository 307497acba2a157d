//! The keys of `netem` in an experiment file.

use schemars::JsonSchema;
use serde::Deserialize;

use super::super::{PacketLimit, Qdisc, Queue};
use super::{Distribution, Loss, Netem, NetemRate, NetemSlot, Reorder, SlotDelay};
use crate::error::{Problem, Problems};
use crate::file::Rate;
use crate::path::join;
use crate::quantity::{Quantity, Sizes, Times};
use crate::units::{GB, MINUTE, US};

/// A delay.
type Delay = Quantity<Times, US, MINUTE>;
/// A variation, for which the kernel has 32 bits.
type Jitter = Quantity<Times, US, 2_000_000_000>;

/// The limit that `tc` sets by default.
fn limit() -> PacketLimit {
    PacketLimit::new(1000)
}

/// A network emulator, as Linux' sch_netem: delays, loses, duplicates, corrupts and reorders packets. Probabilities and
/// correlations are numbers up to 1, where tc has per cent.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Limit of the packets in the emulator, including those being delayed.
    #[serde(default = "limit")]
    limit: PacketLimit,
    /// How long each packet is delayed. Default: not at all.
    #[schemars(example = &"100ms")]
    delay: Option<Delay>,
    /// Jitter: how far the delay varies. It can reorder packets. Default: none.
    #[schemars(example = &"10ms")]
    jitter: Option<Jitter>,
    /// Correlation of a delay with the previous one. Default: none.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    correlation: Option<f64>,
    /// The distribution of the delays. For distributions other than uniform, the jitter is their standard deviation.
    #[serde(default)]
    distribution: Distribution,
    /// Probability with which a packet is lost. Default: none is lost. Of loss, state and gemodel, one can be given.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    loss: Option<f64>,
    /// Correlation of a loss with the loss of the previous packet. Default: none.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    loss_correlation: Option<f64>,
    /// Losses by a Markov chain with four states (tc's `loss state`).
    state: Option<Box<StateKeys>>,
    /// Losses by the Gilbert-Elliott model (tc's `loss gemodel`).
    gemodel: Option<Box<GemodelKeys>>,
    /// Mark ECN-capable packets instead of losing them.
    #[serde(default)]
    ecn: bool,
    /// Probability with which a packet is duplicated; not in a discipline that is inside another one. Default: none is.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    duplicate: Option<f64>,
    /// Correlation of a duplication with that of the previous packet. Default: none.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    duplicate_correlation: Option<f64>,
    /// Probability with which one bit of a packet flips. The packet goes on, and its destination discards it because of its checksum,
    /// unless the bit is in the Ethernet source address. Of a packet of several segments, one is corrupted. Default: none is.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    corrupt: Option<f64>,
    /// Correlation of a corruption with that of the previous packet. Default: none.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    corrupt_correlation: Option<f64>,
    /// Probability with which a packet is reordered: it skips the delay. Default: none.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    reorder: Option<f64>,
    /// Correlation of a reordering with that of the previous packet. Default: none.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    reorder_correlation: Option<f64>,
    /// Only every n-th packet may be reordered. Default, with reorder: 1.
    #[schemars(range(min = 1, max = 1_000_000))]
    gap: Option<u32>,
    /// Rate at which packets are sent. Default: unlimited.
    rate: Option<Rate>,
    /// Overhead of each packet in bytes.
    #[serde(default)]
    #[schemars(range(min = -1000, max = 1000))]
    packetoverhead: i32,
    /// Size of the cells that packets are split into; 0 for none.
    #[serde(default)]
    #[schemars(range(min = 0, max = 65535))]
    cellsize: u32,
    /// Overhead of each cell in bytes.
    #[serde(default)]
    #[schemars(range(min = -1000, max = 1000))]
    celloverhead: i32,
    /// Slots: delayed packets leave only within these, in bursts. Default: at any time.
    slot: Option<Box<SlotKeys>>,
    /// The discipline in which packets queue after their delay. Reordered packets bypass it. Default: none.
    inner: Option<Box<Queue>>,
}

/// When slots begin, and how much leaves in each. The time until the next slot counts from the last packet of the
/// current one.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields, inline)]
struct SlotKeys {
    /// The shortest time until the next slot.
    min_delay: Option<Delay>,
    /// The longest time until the next slot. Default: min_delay.
    max_delay: Option<Delay>,
    /// The distribution of these times, instead of min_delay: any but uniform.
    distribution: Option<Distribution>,
    /// Mean of the distribution.
    delay: Option<Delay>,
    /// Standard deviation of the distribution.
    jitter: Option<Jitter>,
    /// Number of packets that leave in a slot. Default: any.
    packets: Option<PacketLimit>,
    /// Number of bytes that leave in a slot. Default: any.
    bytes: Option<Quantity<Sizes, 1, GB>>,
}

/// A Markov chain with four states: packets pass (1) or are lost (4) in a gap, and pass (2) or are lost (3) in a burst.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields, inline)]
struct StateKeys {
    /// Probability with which a burst begins with a loss.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    p13: f64,
    /// Probability with which a burst ends. Default: 1 - p13.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    p31: Option<f64>,
    /// Probability with which a packet passes after a loss in a burst. Default: 0.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    p32: Option<f64>,
    /// Probability with which a packet is lost after one that passed in a burst. Default: 1.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    p23: Option<f64>,
    /// Probability of a single loss in a gap. Default: 0.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    p14: Option<f64>,
}

/// A good state and a bad one, with a probability of loss in each.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields, inline)]
pub(crate) struct GemodelKeys {
    /// Probability with which the good state ends.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    p: f64,
    /// Probability with which the bad state ends. Default: 1 - p.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    r: Option<f64>,
    /// Probability of a loss in the bad state. Default: 1.
    #[serde(rename = "1-h")]
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    bad_loss: Option<f64>,
    /// Probability of a loss in the good state. Default: 0.
    #[serde(rename = "1-k")]
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    good_loss: Option<f64>,
}

impl GemodelKeys {
    pub(crate) fn loss(&self) -> Loss {
        let r = self.r.unwrap_or(1.0 - self.p);
        Loss::Gemodel([self.p, r, self.bad_loss.unwrap_or(1.0), self.good_loss.unwrap_or(0.0)])
    }
}

impl Keys {
    /// `None` if the keys of the table at `path` contradict each other.
    pub(super) fn resolve(&self, txqueuelen: u32, path: &str, problems: &mut Problems) -> Option<Netem> {
        let mut is_sound = true;
        let mut refuse = |key: &str, found: &str, expected: &str| {
            is_sound = false;
            problems.add(|| Problem::new(join(path, key), found, expected));
        };
        let models = [self.loss.is_some(), self.state.is_some(), self.gemodel.is_some()];
        if models.iter().filter(|given| **given).count() > 1 {
            refuse("loss", "several models of loss", "one of loss, state and gemodel");
        }
        let orphans = [
            ("loss_correlation", self.loss_correlation.is_some() && self.loss.is_none(), "loss"),
            ("ecn", self.ecn && !models.contains(&true), "loss, state or gemodel"),
            ("correlation", self.correlation.is_some() && self.jitter.is_none(), "jitter"),
            ("jitter", self.jitter.is_some() && self.delay.is_none(), "delay"),
            ("distribution", self.distribution != Distribution::Uniform && self.jitter.is_none(), "jitter"),
            ("duplicate_correlation", self.duplicate_correlation.is_some() && self.duplicate.is_none(), "duplicate"),
            ("corrupt_correlation", self.corrupt_correlation.is_some() && self.corrupt.is_none(), "corrupt"),
            ("reorder", self.reorder.is_some() && self.delay.is_none(), "delay"),
            ("reorder_correlation", self.reorder_correlation.is_some() && self.reorder.is_none(), "reorder"),
            ("gap", self.gap.is_some() && self.reorder.is_none(), "reorder"),
            ("packetoverhead", self.packetoverhead != 0 && self.rate.is_none(), "rate"),
            ("cellsize", self.cellsize != 0 && self.rate.is_none(), "rate"),
            ("celloverhead", self.celloverhead != 0 && self.cellsize == 0, "cellsize"),
        ];
        for (key, is_orphan, beside) in orphans {
            if is_orphan {
                refuse(key, &format!("{key} without {beside}"), &format!("{key} only together with {beside}"));
            }
        }
        if self.cellsize > 0 && i64::from(self.cellsize) + i64::from(self.celloverhead) <= 0 {
            refuse("celloverhead", "cells of no size", "cells of at least one byte");
        }
        let state = self.state.as_ref().map(|state| {
            let p31 = state.p31.unwrap_or(1.0 - state.p13);
            Loss::State([state.p13, p31, state.p32.unwrap_or(0.0), state.p23.unwrap_or(1.0), state.p14.unwrap_or(0.0)])
        });
        let gemodel = self.gemodel.as_ref().map(|model| model.loss());
        let slot = match &self.slot {
            Some(slot) => Some(slot.resolve(&join(path, "slot"), problems)?),
            None => None,
        };
        let inner = match &self.inner {
            Some(inner) => Some(Box::new(Qdisc::resolve(inner, txqueuelen, &join(path, "inner"), problems)?)),
            None => None,
        };
        let random = self.loss.map(|loss| Loss::Random([loss, self.loss_correlation.unwrap_or(0.0)]));
        is_sound.then(|| Netem {
            limit_packets: self.limit.get_u32(),
            delay_ns: self.delay.map_or(0, Delay::get),
            jitter_ns: self.jitter.map_or(0, Jitter::get),
            correlation: self.correlation.unwrap_or(0.0),
            distribution: self.distribution,
            loss: random.or(state).or(gemodel),
            ecn: self.ecn,
            duplicate: self.duplicate.map(|duplicate| [duplicate, self.duplicate_correlation.unwrap_or(0.0)]),
            corrupt: self.corrupt.map(|corrupt| [corrupt, self.corrupt_correlation.unwrap_or(0.0)]),
            reorder: self.reorder.map(|probability| Reorder {
                probability,
                correlation: self.reorder_correlation.unwrap_or(0.0),
                gap: self.gap.unwrap_or(1),
            }),
            rate: self.rate.map(|rate| NetemRate {
                rate_bps: rate.get(),
                packet_overhead_bytes: self.packetoverhead,
                cell_bytes: self.cellsize,
                cell_overhead_bytes: self.celloverhead,
            }),
            slot,
            inner,
        })
    }
}

impl SlotKeys {
    fn resolve(&self, path: &str, problems: &mut Problems) -> Option<NetemSlot> {
        let bounds = self.min_delay.is_some() || self.max_delay.is_some();
        let table = self.distribution.is_some() || self.delay.is_some() || self.jitter.is_some();
        let (packets, bytes) = (self.packets.map(PacketLimit::get_u32), self.bytes.map(Quantity::get_u32));
        let delay = match (self.min_delay, self.distribution, self.delay, self.jitter) {
            (Some(min), None, None, None) => {
                let (min, max) = (min.get(), self.max_delay.unwrap_or(min).get());
                (min <= max).then_some(SlotDelay::Between([min, max]))
            }
            (None, Some(distribution), Some(mean), Some(deviation)) if !bounds => {
                let distributed = SlotDelay::Distributed(distribution, [mean.get(), deviation.get()]);
                (distribution != Distribution::Uniform).then_some(distributed)
            }
            _ => None,
        };
        if delay.is_none() {
            let found = match (bounds, table) {
                (true, false) if self.min_delay.is_some() => "a max_delay below min_delay",
                (false, true) if self.distribution == Some(Distribution::Uniform) => "the uniform distribution",
                _ => "a slot without its delays, or with both kinds",
            };
            let allowed =
                "min_delay, and a max_delay that is not below it; or distribution (not uniform), delay and jitter";
            problems.add(|| Problem::new(path, found, allowed));
        }
        Some(NetemSlot { delay: delay?, packets, bytes })
    }
}
