//! `netem`: delays, loses, duplicates and reorders packets (`sch_netem`). Defaults and refusals are those of iproute2's
//! `tc/q_netem.c`.
//!
//! Left out: corruption.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Counts, Discipline, Limit, Match, PacketLimit, Part, Qdisc, Queue, Reason, Setting, counted};
use crate::error::{Problem, Problems};
use crate::file::Rate;
use crate::path::join;
use crate::quantity::{Quantity, Sizes, Times};
use crate::units::{GB, MINUTE, US};

/// A delay.
type Delay = Quantity<Times, US, MINUTE>;
/// A variation, for which the kernel has 32 bits.
type Jitter = Quantity<Times, US, 2_000_000_000>;

/// A network emulator, as Linux' sch_netem: delays, loses, duplicates and reorders packets. Probabilities and correlations are numbers
/// up to 1, where tc has per cent.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Number of packets under way at which an arriving packet is dropped.
    #[serde(default = "super::pfifo::limit")]
    limit: PacketLimit,
    /// How long each packet is delayed. Default: not at all.
    #[schemars(example = &"100ms")]
    delay: Option<Delay>,
    /// How far the delay varies. Packets overtake one another then. Default: not at all.
    #[schemars(example = &"10ms")]
    jitter: Option<Jitter>,
    /// How much a delay depends on the one before. Default: not at all.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    correlation: Option<f64>,
    /// The distribution of the delays. Other than with uniform, the jitter is their standard deviation.
    #[serde(default)]
    distribution: Distribution,
    /// Probability with which a packet is lost. Default: none is lost. Of loss, state and gemodel, one can be given.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    loss: Option<f64>,
    /// How much a loss depends on whether the packet before was lost. Default: not at all.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    loss_correlation: Option<f64>,
    /// Losses of a Markov chain with four states (tc's `loss state`).
    state: Option<Box<StateKeys>>,
    /// Losses of the model of Gilbert and Elliott (tc's `loss gemodel`).
    gemodel: Option<Box<GemodelKeys>>,
    /// Mark ECN-capable packets instead of losing them.
    #[serde(default)]
    ecn: bool,
    /// Probability with which a packet is duplicated; not in a discipline that is inside another one. Default: none is.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    duplicate: Option<f64>,
    /// How much that depends on whether the packet before was duplicated. Default: not at all.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    duplicate_correlation: Option<f64>,
    /// Probability with which a packet is not delayed but goes first. Default: none does.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    reorder: Option<f64>,
    /// How much that depends on whether the packet before went first. Default: not at all.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    reorder_correlation: Option<f64>,
    /// Only every packet of this number may go first. Default, with reorder: 1.
    #[schemars(range(min = 1, max = 1_000_000))]
    gap: Option<u32>,
    /// Rate at which packets pass one after the other. Default: any.
    rate: Option<Rate>,
    /// Bytes that each packet takes beyond its own.
    #[serde(default)]
    #[schemars(range(min = -1000, max = 1000))]
    packetoverhead: i32,
    /// Size of the cells that packets are split into; 0 for none.
    #[serde(default)]
    #[schemars(range(min = 0, max = 65535))]
    cellsize: u32,
    /// Bytes that each cell takes beyond its own.
    #[serde(default)]
    #[schemars(range(min = -1000, max = 1000))]
    celloverhead: i32,
    /// Slots: delayed packets leave only within these, in bunches. Default: any time.
    slot: Option<Box<SlotKeys>>,
    /// The discipline in which packets wait after their delay. Packets that go first pass it by. Default: none.
    inner: Option<Box<Queue>>,
}

/// When slots begin, and what leaves in one. Each begins a while after the packet that ends the one before.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields, inline)]
struct SlotKeys {
    /// The shortest time until the next slot.
    min_delay: Option<Delay>,
    /// The longest. Default: min_delay.
    max_delay: Option<Delay>,
    /// The distribution of these times, instead of min_delay: any but uniform.
    distribution: Option<Distribution>,
    /// Mean of the distribution.
    delay: Option<Delay>,
    /// Standard deviation of the distribution.
    jitter: Option<Jitter>,
    /// Number of packets that leave in a slot. Default: any.
    packets: Option<PacketLimit>,
    /// What leaves in a slot before it ends. Default: any.
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
struct GemodelKeys {
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

/// A distribution of delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Distribution {
    /// Every delay within the jitter is as likely.
    #[default]
    Uniform,
    /// Normal.
    Normal,
    /// Pareto.
    Pareto,
    /// A quarter normal, three quarters Pareto.
    ParetoNormal,
}

/// Parameters of `netem`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Netem {
    /// Number of packets under way at which an arriving one is dropped.
    pub limit_packets: u32,
    /// Delay.
    pub delay_ns: u64,
    /// Its variation.
    pub jitter_ns: u64,
    /// How much a delay depends on the one before.
    pub correlation: f64,
    /// The distribution of delays.
    pub distribution: Distribution,
    /// How packets are lost.
    pub loss: Option<Loss>,
    /// Mark instead of losing.
    pub ecn: bool,
    /// With what probability packets are duplicated, and how much that depends on the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<[f64; 2]>,
    /// How packets are reordered.
    pub reorder: Option<Reorder>,
    /// The rate.
    pub rate: Option<NetemRate>,
    /// In what slots packets leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<NetemSlot>,
    /// Where packets wait after their delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner: Option<Box<Qdisc>>,
}

/// How packets are lost. All are probabilities, except for correlations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reorder {
    /// Probability with which a packet goes first.
    pub probability: f64,
    /// How much that depends on the one before.
    pub correlation: f64,
    /// Only every packet of this number may.
    pub gap: u32,
}

/// A rate of `netem`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetemRate {
    /// The rate.
    pub rate_bps: u64,
    /// Bytes that each packet takes beyond its own.
    pub packet_overhead_bytes: i32,
    /// Size of a cell, or 0.
    pub cell_bytes: u32,
    /// Bytes that each cell takes beyond its own.
    pub cell_overhead_bytes: i32,
}

/// The slots of `netem`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetemSlot {
    /// How long it takes until the next one.
    pub delay: SlotDelay,
    /// Packets that leave in one.
    pub packets: Option<u32>,
    /// Bytes that leave in one.
    pub bytes: Option<u32>,
}

/// How long it takes until the next slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotDelay {
    /// At least and less than, in nanoseconds.
    Between([u64; 2]),
    /// Mean and standard deviation, in nanoseconds.
    Distributed(Distribution, [u64; 2]),
}

impl Reason {
    /// Lost by netem, as it was told to.
    pub const NETEM_LOSS: Self = Self::drop("loss");
    /// Marked by netem instead of lost.
    pub const NETEM_MARK: Self = Self::mark("loss_mark");
    /// Lost by netem, or dropped at its limit: Linux counts them together, and with marks.
    pub const NETEM: Self = Self::drop("loss_or_overlimit");
}

impl Discipline for Netem {
    type Keys = Keys;

    const PURPOSE: &'static str =
        "Delay, jitter, loss, duplication and reordering: emulates a path, and mitigates nothing.";
    const SOURCE: &'static str = "net/sched/sch_netem.c";
    const MODULE: &'static str = "sch_netem";
    const SAMPLE: &'static str = "netem delay 1ms";
    const REASONS: &'static [Reason] = &[Reason::OVERLIMIT, Reason::NETEM_LOSS, Reason::NETEM_MARK, Reason::NETEM];
    const COUNTED: &'static [Reason] = &[Reason::NETEM];
    const HOLDS_BACK: bool = true;

    fn resolve(keys: &Keys, path: &str, problems: &mut Problems) -> Option<Self> {
        let mut is_sound = true;
        let mut refuse = |key: &str, found: &str, expected: &str| {
            is_sound = false;
            problems.add(|| Problem::new(join(path, key), found, expected));
        };
        let models = [keys.loss.is_some(), keys.state.is_some(), keys.gemodel.is_some()];
        if models.iter().filter(|given| **given).count() > 1 {
            refuse("loss", "several models of loss", "one of loss, state and gemodel");
        }
        let orphans = [
            ("loss_correlation", keys.loss_correlation.is_some() && keys.loss.is_none(), "loss"),
            ("ecn", keys.ecn && !models.contains(&true), "loss, state or gemodel"),
            ("correlation", keys.correlation.is_some() && keys.jitter.is_none(), "jitter"),
            ("jitter", keys.jitter.is_some() && keys.delay.is_none(), "delay"),
            ("distribution", keys.distribution != Distribution::Uniform && keys.jitter.is_none(), "jitter"),
            ("duplicate_correlation", keys.duplicate_correlation.is_some() && keys.duplicate.is_none(), "duplicate"),
            ("reorder", keys.reorder.is_some() && keys.delay.is_none(), "delay"),
            ("reorder_correlation", keys.reorder_correlation.is_some() && keys.reorder.is_none(), "reorder"),
            ("gap", keys.gap.is_some() && keys.reorder.is_none(), "reorder"),
            ("packetoverhead", keys.packetoverhead != 0 && keys.rate.is_none(), "rate"),
            ("cellsize", keys.cellsize != 0 && keys.rate.is_none(), "rate"),
            ("celloverhead", keys.celloverhead != 0 && keys.cellsize == 0, "cellsize"),
        ];
        for (key, is_orphan, beside) in orphans {
            if is_orphan {
                refuse(key, &format!("{key} without {beside}"), &format!("{key} only beside {beside}"));
            }
        }
        if keys.cellsize > 0 && i64::from(keys.cellsize) + i64::from(keys.celloverhead) <= 0 {
            refuse("celloverhead", "cells of no size", "cells of at least one byte");
        }
        let state = keys.state.as_ref().map(|state| {
            let p31 = state.p31.unwrap_or(1.0 - state.p13);
            Loss::State([state.p13, p31, state.p32.unwrap_or(0.0), state.p23.unwrap_or(1.0), state.p14.unwrap_or(0.0)])
        });
        let gemodel = keys.gemodel.as_ref().map(|model| {
            let r = model.r.unwrap_or(1.0 - model.p);
            Loss::Gemodel([model.p, r, model.bad_loss.unwrap_or(1.0), model.good_loss.unwrap_or(0.0)])
        });
        let slot = match &keys.slot {
            Some(slot) => Some(slot.resolve(&join(path, "slot"), problems)?),
            None => None,
        };
        let inner = match &keys.inner {
            Some(inner) => Some(Box::new(Qdisc::resolve(inner, &join(path, "inner"), problems)?)),
            None => None,
        };
        let random = keys.loss.map(|loss| Loss::Random([loss, keys.loss_correlation.unwrap_or(0.0)]));
        is_sound.then(|| Self {
            limit_packets: keys.limit.get_u32(),
            delay_ns: keys.delay.map_or(0, Delay::get),
            jitter_ns: keys.jitter.map_or(0, Jitter::get),
            correlation: keys.correlation.unwrap_or(0.0),
            distribution: keys.distribution,
            loss: random.or(state).or(gemodel),
            ecn: keys.ecn,
            duplicate: keys.duplicate.map(|duplicate| [duplicate, keys.duplicate_correlation.unwrap_or(0.0)]),
            reorder: keys.reorder.map(|probability| Reorder {
                probability,
                correlation: keys.reorder_correlation.unwrap_or(0.0),
                gap: keys.gap.unwrap_or(1),
            }),
            rate: keys.rate.map(|rate| NetemRate {
                rate_bps: rate.get(),
                packet_overhead_bytes: keys.packetoverhead,
                cell_bytes: keys.cellsize,
                cell_overhead_bytes: keys.celloverhead,
            }),
            slot,
            inner,
        })
    }

    fn limit(&self) -> Limit {
        // A duplicate takes its place before the packet that was found to fit.
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

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let us = |ns: u64| format!("{}us", ns / 1000);
        let percent = |parts: &[f64]| {
            let parts: Vec<String> = parts.iter().map(|part| format!("{}", part * 100.0)).collect();
            parts.join(" ")
        };
        let mut settings = vec![("limit", Setting::Number(self.limit_packets.into()))];
        if self.jitter_ns > 0 {
            let words = format!("{} {} {}", us(self.delay_ns), us(self.jitter_ns), percent(&[self.correlation]));
            settings.push(("delay", Setting::Words(words)));
        } else if self.delay_ns > 0 {
            settings.push(("delay", Setting::Time(self.delay_ns)));
        }
        let distribution = self.distribution.table();
        settings.extend(distribution.map(|name| ("distribution", Setting::Words(name.to_owned()))));
        let loss = self.loss.map(|loss| match loss {
            Loss::Random(parts) => format!("random {}", percent(&parts)),
            Loss::State(parts) => format!("state {}", percent(&parts)),
            Loss::Gemodel(parts) => format!("gemodel {}", percent(&parts)),
        });
        settings.extend(loss.map(|loss| ("loss", Setting::Words(loss))));
        settings.extend(self.ecn.then_some(("ecn", Setting::Flag)));
        settings.extend(self.duplicate.map(|parts| ("duplicate", Setting::Words(percent(&parts)))));
        if let Some(reorder) = &self.reorder {
            settings.push(("reorder", Setting::Words(percent(&[reorder.probability, reorder.correlation]))));
            settings.push(("gap", Setting::Number(reorder.gap.into())));
        }
        if let Some(rate) = &self.rate {
            let cells = format!("{} {} {}", rate.packet_overhead_bytes, rate.cell_bytes, rate.cell_overhead_bytes);
            settings.push(("rate", Setting::Words(format!("{}bit {cells}", rate.rate_bps))));
        }
        if let Some(slot) = &self.slot {
            let mut words = match slot.delay {
                SlotDelay::Between([min, max]) => format!("{} {}", us(min), us(max)),
                SlotDelay::Distributed(distribution, [mean, deviation]) => {
                    let table = distribution.table().unwrap_or("normal");
                    format!("distribution {table} {} {}", us(mean), us(deviation))
                }
            };
            for (name, most) in [("packets", slot.packets), ("bytes", slot.bytes)] {
                words.extend(most.map(|most| format!(" {name} {most}")));
            }
            settings.push(("slot", Setting::Words(words)));
        }
        settings
    }

    fn counts(drops: u64, _own: &[u32]) -> Counts {
        counted([drops])
    }

    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let part = || (1..=1000_u32).prop_map(|part| f64::from(part) / 1000.0);
        let loss = prop_oneof![
            [part(), part()].prop_map(|[loss, correlation]| Loss::Random([loss / 20.0, correlation])),
            [part(), part(), part(), part(), part()].prop_map(|[a, b, c, d, e]| Loss::State([
                a / 20.0,
                b,
                c,
                d,
                e / 20.0
            ])),
            [part(), part(), part(), part()].prop_map(|[a, b, c, d]| Loss::Gemodel([a / 20.0, b, c, d / 20.0])),
        ];
        let distribution = prop_oneof![
            Just(Distribution::Uniform),
            Just(Distribution::Normal),
            Just(Distribution::Pareto),
            Just(Distribution::ParetoNormal),
        ];
        let times = (1..=50_000_u64, 1..=20_000_u64, part(), distribution);
        let reorder = (part(), part(), 1..10_u32).prop_map(|(probability, correlation, gap)| Reorder {
            probability,
            correlation,
            gap,
        });
        let rate = (500_000..=50_000_000_u64, -20..=60_i32, 40..=60_u32, -8..=8_i32).prop_map(
            |(rate_bps, packet_overhead_bytes, cell_bytes, cell_overhead_bytes)| NetemRate {
                rate_bps,
                packet_overhead_bytes,
                cell_bytes,
                cell_overhead_bytes,
            },
        );
        let options = (prop::option::of(loss), any::<bool>(), prop::option::of(reorder), prop::option::of(rate));
        let delay = prop_oneof![
            (1..=20_000_u64, 0..=20_000_u64)
                .prop_map(|(min_us, more_us)| SlotDelay::Between([min_us * US, (min_us + more_us) * US])),
            (1..=20_000_u64, 1..=5_000_u64)
                .prop_map(|(us, more_us)| SlotDelay::Distributed(Distribution::Pareto, [us * US, more_us * US])),
        ];
        let slot = (delay, prop::option::of(1..=20_u32), prop::option::of(1..=30_000_u32))
            .prop_map(|(delay, packets, bytes)| NetemSlot { delay, packets, bytes });
        let inner = prop_oneof![
            super::Pfifo::any().prop_map(Qdisc::Pfifo),
            super::Codel::any().prop_map(Qdisc::Codel),
            super::Pie::any().prop_map(Qdisc::Pie),
        ];
        let duplicate = prop::option::of([part(), part()]);
        let more = (duplicate, prop::option::of(slot), prop::option::of(inner.prop_map(Box::new)));
        (1..=500_u32, times, options, more)
            .prop_map(|(limit_packets, (delay_us, jitter_us, correlation, distribution), options, more)| {
                let ((loss, ecn, reorder, rate), (duplicate, slot, inner)) = (options, more);
                let (delay_ns, jitter_ns, ecn) = (delay_us * US, jitter_us * US, ecn && loss.is_some());
                Self {
                    limit_packets,
                    delay_ns,
                    jitter_ns,
                    correlation,
                    distribution,
                    loss,
                    ecn,
                    duplicate,
                    reorder,
                    rate,
                    slot,
                    inner,
                }
            })
            .boxed()
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use toml::Value;

        use crate::testing::text::{packets, rate, time};
        let table = |names: &[&str], parts: &[f64]| {
            let given = names.iter().zip(parts).filter(|(_, part)| **part > 0.0);
            Value::Table(given.map(|(name, part)| ((*name).to_owned(), Value::from(*part))).collect())
        };
        let mut keys = vec![
            ("limit", packets(self.limit_packets)),
            ("delay", time(self.delay_ns)),
            ("jitter", time(self.jitter_ns)),
            ("correlation", self.correlation.into()),
            ("distribution", format!("{:?}", self.distribution).to_lowercase().into()),
            ("ecn", self.ecn.into()),
        ];
        match &self.loss {
            Some(Loss::Random([loss, correlation])) => {
                keys.extend([("loss", (*loss).into()), ("loss_correlation", (*correlation).into())]);
            }
            Some(Loss::State(parts)) => keys.push(("state", table(&["p13", "p31", "p32", "p23", "p14"], parts))),
            Some(Loss::Gemodel(parts)) => keys.push(("gemodel", table(&["p", "r", "1-h", "1-k"], parts))),
            None => {}
        }
        if let Some([duplicate, correlation]) = self.duplicate {
            keys.extend([("duplicate", duplicate.into())]);
            keys.extend((correlation > 0.0).then_some(("duplicate_correlation", correlation.into())));
        }
        if let Some(slot) = &self.slot {
            use crate::testing::text::size;
            let mut own = match slot.delay {
                SlotDelay::Between([min, max]) => vec![("min_delay", time(min)), ("max_delay", time(max))],
                SlotDelay::Distributed(distribution, [mean, deviation]) => vec![
                    ("distribution", format!("{distribution:?}").to_lowercase().into()),
                    ("delay", time(mean)),
                    ("jitter", time(deviation)),
                ],
            };
            own.extend(slot.packets.map(|most| ("packets", packets(most))));
            own.extend(slot.bytes.map(|most| ("bytes", size(most))));
            let own = own.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            keys.push(("slot", Value::Table(own)));
        }
        keys.extend(self.inner.iter().map(|inner| ("inner", inner.written().into())));
        if let Some(reorder) = &self.reorder {
            keys.push(("reorder", reorder.probability.into()));
            keys.push(("reorder_correlation", reorder.correlation.into()));
            keys.push(("gap", i64::from(reorder.gap).into()));
        }
        if let Some(own) = &self.rate {
            keys.push(("rate", rate(own.rate_bps)));
            keys.push(("packetoverhead", i64::from(own.packet_overhead_bytes).into()));
            keys.push(("cellsize", i64::from(own.cell_bytes).into()));
            keys.push(("celloverhead", i64::from(own.cell_overhead_bytes).into()));
        }
        keys
    }
}

impl Distribution {
    /// The name of its table in iproute2.
    fn table(self) -> Option<&'static str> {
        match self {
            Self::Uniform => None,
            Self::Normal => Some("normal"),
            Self::Pareto => Some("pareto"),
            Self::ParetoNormal => Some("paretonormal"),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(keys: &str) -> Result<Netem, String> {
        let keys: Keys = toml::from_str(keys).unwrap();
        let mut problems = Problems::default();
        let resolved = Netem::resolve(&keys, "queue", &mut problems);
        let problems = problems.into_result();
        assert_eq!(resolved.is_some(), problems.is_ok());
        resolved.ok_or_else(|| problems.unwrap_err().into_error("test.toml").to_string())
    }

    #[test]
    fn the_defaults_are_those_of_tc() {
        let netem = read("").unwrap();
        assert_eq!((netem.limit_packets, netem.delay_ns, netem.jitter_ns, netem.ecn), (1000, 0, 0, false));
        assert_eq!((netem.loss, netem.reorder, netem.rate), (None, None, None));
        assert_eq!((netem.duplicate, netem.slot, netem.inner), (None, None, None));
        assert_eq!(read("duplicate = 0.5").unwrap().duplicate, Some([0.5, 0.0]));
        let slot = read("slot = { min_delay = \"5ms\" }").unwrap().slot.unwrap();
        let delay = SlotDelay::Between([5_000_000, 5_000_000]);
        assert_eq!(slot, NetemSlot { delay, packets: None, bytes: None });
        let loss = |keys| read(keys).unwrap().loss.unwrap();
        assert_eq!(loss("loss = 0.5"), Loss::Random([0.5, 0.0]));
        assert_eq!(loss("state = { p13 = 0.25 }"), Loss::State([0.25, 0.75, 0.0, 1.0, 0.0]));
        assert_eq!(loss("gemodel = { p = 0.25 }"), Loss::Gemodel([0.25, 0.75, 1.0, 0.0]));
        assert_eq!(read("delay = \"1ms\"\nreorder = 0.5").unwrap().reorder.unwrap().gap, 1);
    }

    #[test]
    fn what_tc_refuses_is_refused() {
        for (keys, expected) in [
            ("reorder = 0.5", "queue.reorder: found reorder without delay"),
            ("delay = \"1ms\"\ngap = 5", "queue.gap: found gap without reorder"),
            ("ecn = true", "queue.ecn: found ecn without loss, state or gemodel"),
            ("delay = \"1ms\"\ndistribution = \"normal\"", "queue.distribution: found distribution without jitter"),
            ("loss = 0.1\nstate = { p13 = 0.1 }", "queue.loss: found several models of loss"),
            (
                "duplicate_correlation = 0.5",
                "queue.duplicate_correlation: found duplicate_correlation without duplicate",
            ),
            ("slot = { min_delay = \"2ms\", max_delay = \"1ms\" }", "queue.slot: found a max_delay below min_delay"),
            ("slot = { packets = \"5p\" }", "queue.slot: found a slot without its delays"),
            (
                "slot = { distribution = \"uniform\", delay = \"1ms\", jitter = \"1ms\" }",
                "found the uniform distribution",
            ),
            ("rate = \"1mbit\"\ncellsize = 5\ncelloverhead = -5", "queue.celloverhead: found cells of no size"),
        ] {
            let refusal = read(keys).unwrap_err();
            assert!(refusal.contains(expected), "{refusal}");
        }
    }

    #[test]
    fn tc_gets_per_cent_without_the_sign() {
        let netem = read(
            "delay = \"20ms\"\njitter = \"5ms\"\ncorrelation = 0.25\nloss = 0.01\nrate = \"1mbit\"\ncellsize = 48",
        )
        .unwrap();
        let words = |wanted| netem.settings().into_iter().find(|(name, _)| *name == wanted).unwrap().1;
        assert_eq!(words("delay"), Setting::Words("20000us 5000us 25".to_owned()));
        assert_eq!(words("loss"), Setting::Words("random 1 0".to_owned()));
        let netem = read(
            "duplicate = 0.01\nduplicate_correlation = 0.5\nslot = { min_delay = \"5ms\", packets = \"5p\", bytes = \"3kb\" }",
        );
        let settings = netem.unwrap().settings();
        assert_eq!(settings[1], ("duplicate", Setting::Words("1 50".to_owned())));
        assert_eq!(settings[2], ("slot", Setting::Words("5000us 5000us packets 5 bytes 3072".to_owned())));
        let netem = read("slot = { distribution = \"pareto\", delay = \"5ms\", jitter = \"1ms\" }").unwrap();
        assert_eq!(netem.settings()[1].1, Setting::Words("distribution pareto 5000us 1000us".to_owned()));
        assert_eq!(words("rate"), Setting::Words("1000000bit 0 48 0".to_owned()));
    }
}
