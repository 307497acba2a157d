//! `dualpi2`: dual-queue coupled active queue management for low latency, low loss and scalable throughput
//! (`sch_dualpi2`, RFC 9332). Defaults are those of sch_dualpi2 and tc-dualpi2(8); the presets for round-trip times are
//! computed as iproute2's `tc/q_dualpi2.c` computes them.
//!
//! Departs from `tc`, which ignores `target`, `tupdate`, `alpha` and `beta` with a warning where a round-trip time is
//! given: they are refused there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Aqm, Counts, Discipline, Limit, PacketLimit, Queues, Reason, Setting, counted, words};
use crate::error::{Problem, Problems};
use crate::path::join;
use crate::quantity::{Packets, Quantity, QueueLengths, Sizes, Times};
use crate::units::{MINUTE, MS, SECOND, TIME, US};

/// A time parameter of DualPI2.
type Time = Quantity<Times, US, MINUTE>;
/// Limit of the memory that packets occupy.
type Memory = Quantity<Sizes, 1, { u32::MAX as u64 }>;
/// Number of packets above which the step threshold applies.
type Least = Quantity<Packets, 0, 10_000_000>;

/// `max_rtt` is this many times as long as `typical_rtt` where only one of them is given.
const MAX_TO_TYPICAL: u64 = 6;
/// Weights are in this fraction of a hertz.
const WEIGHT_SCALE: f64 = 256.0;

/// Dual-queue coupled active queue management (RFC 9332), as Linux' sch_dualpi2: packets of scalable congestion controls
/// have a queue of their own (L), and are marked as if they shared the queue (C) of all others.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Hard limit of both queues together.
    #[serde(default = "limit")]
    limit: PacketLimit,
    /// Hard limit of the memory that the packets of both queues occupy. Default: twice `limit` full frames.
    memlimit: Option<Memory>,
    /// Target queueing delay of the C queue. Default: 15ms.
    target: Option<Time>,
    /// Update interval of the probability. Default: 16ms.
    tupdate: Option<Time>,
    /// Weight of the deviation of the delay from the target, in hertz; `tc` takes 256ths. Default: 41/256.
    #[schemars(range(max = 8_388_607.0), extend("exclusiveMinimum" = 0.0))]
    alpha: Option<f64>,
    /// Weight of the change of the delay, in hertz; `tc` takes 256ths. Default: 819/256.
    #[schemars(range(max = 8_388_607.0), extend("exclusiveMinimum" = 0.0))]
    beta: Option<f64>,
    /// The longest round-trip time for which the control is to be stable. It replaces `target`, `tupdate`, `alpha` and
    /// `beta`. Default: six times `typical_rtt`, if that is given.
    #[schemars(example = &"100ms")]
    max_rtt: Option<Time>,
    /// The usual round-trip time. It replaces `target`, `tupdate`, `alpha` and `beta`. Default: a sixth of `max_rtt`, if
    /// that is given.
    #[schemars(example = &"15ms")]
    typical_rtt: Option<Time>,
    /// Coupling factor: the marking probability of the L queue, relative to the probability that is squared for the C
    /// queue.
    #[serde(default = "coupling_factor")]
    #[schemars(range(min = 1))]
    coupling_factor: u8,
    /// Packets that have spent more time in the L queue are marked; or, as a number such as `5p`, those that leave more
    /// packets behind.
    #[serde(default = "step_thresh")]
    step_thresh: StepKey,
    /// The step threshold applies to packets that find this many in the L queue. Linux has 0 since 6.17; the authors' kernel
    /// of 2020 had 2, which matters below about 12 Mbit/s, where a full frame takes longer than step_thresh.
    #[serde(default = "min_qlen_step")]
    min_qlen_step: Least,
    /// On overload, drop packets of both queues (`drop_on_overload`). If false, mark until the limit is reached
    /// (`overflow`).
    #[serde(default = "yes")]
    drop_on_overload: bool,
    /// Drop or mark on arrival (`drop_enqueue`). If false, on departure (`drop_dequeue`).
    #[serde(default)]
    drop_enqueue: bool,
    /// Every packet of an ECN-capable transport goes to the L queue (`any_ect`). If false, only ECT(1) and CE
    /// (`l4s_ect`).
    #[serde(default)]
    any_ect: bool,
    /// Share of the rate in per cent that the C queue gets at least while both queues are busy.
    #[serde(default = "classic_protection")]
    #[schemars(range(max = 100))]
    classic_protection: u8,
    /// Split packets that segmentation offload made large (`split_gso`). If false, keep them (`no_split_gso`).
    #[serde(default = "yes")]
    split_gso: bool,
}

/// A time, or a number of packets with its unit.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum StepKey {
    Time(Time),
    Packets(Quantity<QueueLengths, 1, 10_000_000>),
}

fn limit() -> PacketLimit {
    PacketLimit::new(10_000)
}

fn coupling_factor() -> u8 {
    2
}

fn step_thresh() -> StepKey {
    StepKey::Time(Time::new(MS))
}

fn min_qlen_step() -> Least {
    Least::new(0)
}

fn yes() -> bool {
    true
}

fn classic_protection() -> u8 {
    10
}

/// Parameters of `dualpi2`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dualpi2 {
    /// Hard limit of both queues together.
    pub limit_packets: u32,
    /// Hard limit of the memory that packets occupy, if it does not follow from the limit.
    pub memlimit_bytes: Option<u32>,
    /// The proportional integral controller.
    pub controller: Pi2,
    /// Coupling factor: the marking probability of the L queue, relative to the probability that is squared for the C
    /// queue.
    pub coupling_factor: u8,
    /// Above this, packets of the L queue are marked.
    pub step_threshold: StepThreshold,
    /// The step threshold applies to packets that find this many in the L queue.
    pub min_qlen_step: u32,
    /// Drop packets on overload.
    pub drop_on_overload: bool,
    /// Drop or mark on arrival.
    pub drop_enqueue: bool,
    /// Every packet of an ECN-capable transport goes to the L queue.
    pub any_ect: bool,
    /// Share of the C queue, in per cent.
    pub classic_protection_percent: u8,
    /// Split packets that segmentation offload made large.
    pub split_gso: bool,
}

/// The parameters of the controller of `dualpi2`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pi2 {
    /// Target queueing delay.
    pub target_ns: u64,
    /// Update interval of the probability.
    pub tupdate_ns: u64,
    /// Weight of the deviation of the delay from the target, in 256ths of a hertz.
    pub alpha: u32,
    /// Weight of the change of the delay, in 256ths of a hertz.
    pub beta: u32,
}

/// The step threshold of the L queue of `dualpi2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepThreshold {
    /// A time in the queue, in nanoseconds.
    Time(u64),
    /// A number of packets in the queue.
    Packets(u32),
}

/// The parameters in sch_dualpi2 (`dualpi2_reset_default`).
impl Default for Dualpi2 {
    fn default() -> Self {
        Self {
            limit_packets: limit().get_u32(),
            memlimit_bytes: None,
            controller: Pi2::default(),
            coupling_factor: coupling_factor(),
            step_threshold: step_threshold(&step_thresh()),
            min_qlen_step: min_qlen_step().get_u32(),
            drop_on_overload: yes(),
            drop_enqueue: false,
            any_ect: false,
            classic_protection_percent: classic_protection(),
            split_gso: yes(),
        }
    }
}

/// The controller's parameters in sch_dualpi2.
impl Default for Pi2 {
    fn default() -> Self {
        Self { target_ns: 15 * MS, tupdate_ns: 16 * MS, alpha: 41, beta: 819 }
    }
}

impl Reason {
    /// Dropped by DualPI2. Linux counts drops at the limit among these.
    pub const DUALPI2: Self = Self::drop("dualpi2");
    /// Marked by DualPI2, at random.
    pub const DUALPI2_MARK: Self = Self::mark("dualpi2_mark");
    /// Marked by DualPI2: above the step threshold of the L queue.
    pub const STEP_MARK: Self = Self::mark("step_mark");
}

impl Discipline for Dualpi2 {
    type Keys = Keys;

    const PURPOSE: &'static str =
        "Two coupled queues: scalable flows (L4S) see less than a millisecond of delay beside classic ones.";
    const SOURCE: &'static str = "net/sched/sch_dualpi2.c; RFC 9332";
    const MODULE: &'static str = "sch_dualpi2";
    const SAMPLE: &'static str = "dualpi2";
    const QUEUES: Queues = Queues::Coupled;
    const AQM: Option<Aqm> = Some(Aqm::Delay);
    const KERNEL_DEFAULTS: bool = true;
    const REASONS: &'static [Reason] = &[Reason::OVERLIMIT, Reason::DUALPI2, Reason::DUALPI2_MARK, Reason::STEP_MARK];
    const COUNTED: &'static [Reason] = &[Reason::DUALPI2, Reason::DUALPI2_MARK, Reason::STEP_MARK];
    const OWN_WORDS: usize = 8;

    fn resolve(keys: &Keys, _: u32, path: &str, problems: &mut Problems) -> Option<Self> {
        let controller = problems.checked(controller(keys, path))?;
        Some(Self {
            limit_packets: keys.limit.get_u32(),
            memlimit_bytes: keys.memlimit.map(Memory::get_u32),
            controller,
            coupling_factor: keys.coupling_factor,
            step_threshold: step_threshold(&keys.step_thresh),
            min_qlen_step: keys.min_qlen_step.get_u32(),
            drop_on_overload: keys.drop_on_overload,
            drop_enqueue: keys.drop_enqueue,
            any_ect: keys.any_ect,
            classic_protection_percent: keys.classic_protection,
            split_gso: keys.split_gso,
        })
    }

    fn limit(&self) -> Limit {
        Limit::Packets(self.limit_packets.into())
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let Pi2 { target_ns, tupdate_ns, alpha, beta } = self.controller;
        let weight = |weight: u32| Setting::Decimal(f64::from(weight) / WEIGHT_SCALE);
        let step_thresh = match self.step_threshold {
            StepThreshold::Time(ns) => Setting::Time(ns),
            StepThreshold::Packets(packets) => Setting::Packets(packets),
        };
        let mut settings = vec![("limit", Setting::Number(self.limit_packets.into()))];
        settings.extend(self.memlimit_bytes.map(|bytes| ("memlimit", Setting::Number(bytes.into()))));
        settings.extend([
            ("target", Setting::Time(target_ns)),
            ("tupdate", Setting::Time(tupdate_ns)),
            ("alpha", weight(alpha)),
            ("beta", weight(beta)),
            ("coupling_factor", Setting::Number(self.coupling_factor.into())),
            ("step_thresh", step_thresh),
            ("min_qlen_step", Setting::Number(self.min_qlen_step.into())),
            (if self.drop_on_overload { "drop_on_overload" } else { "overflow" }, Setting::Flag),
            (if self.drop_enqueue { "drop_enqueue" } else { "drop_dequeue" }, Setting::Flag),
            (if self.any_ect { "any_ect" } else { "l4s_ect" }, Setting::Flag),
            ("classic_protection", Setting::Number(self.classic_protection_percent.into())),
            (if self.split_gso { "split_gso" } else { "no_split_gso" }, Setting::Flag),
        ]);
        settings
    }

    /// `struct tc_dualpi2_xstats`: prob, delay_c, delay_l, packets_in_c, packets_in_l, maxq, ecn_mark (which includes the
    /// next) and step_marks.
    fn counts(drops: u64, own: &[u32]) -> Counts {
        let [marked, above_step] = words(own, [6, 7]);
        counted([drops, marked.saturating_sub(above_step), above_step])
    }

    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let weights = (1..=2000_u32, 1..=4000_u32);
        let controller = ((1..=50_000_u64, 1..=100_000_u64), weights).prop_map(|((target_us, tupdate_us), weights)| {
            Pi2 { target_ns: target_us * US, tupdate_ns: tupdate_us * US, alpha: weights.0, beta: weights.1 }
        });
        let step_threshold = prop_oneof![
            (1..=20_000_u64).prop_map(|us| StepThreshold::Time(us * US)),
            (1..=50_u32).prop_map(StepThreshold::Packets),
        ];
        let limits = (1..=1000_u32, prop::option::of(1..=1_000_000_u32));
        let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
        (limits, controller, 1..=255_u8, (step_threshold, 0..=20_u32), 0..=100_u8, switches)
            .prop_map(|(limits, controller, coupling_factor, step, classic_protection_percent, switches)| Self {
                limit_packets: limits.0,
                memlimit_bytes: limits.1,
                controller,
                coupling_factor,
                step_threshold: step.0,
                min_qlen_step: step.1,
                drop_on_overload: switches.0,
                drop_enqueue: switches.1,
                any_ect: switches.2,
                classic_protection_percent,
                split_gso: switches.3,
            })
            .boxed()
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{number, packets, size, time};
        let Pi2 { target_ns, tupdate_ns, alpha, beta } = self.controller;
        let weight = |weight: u32| toml::Value::from(f64::from(weight) / WEIGHT_SCALE);
        let mut keys = vec![
            ("limit", packets(self.limit_packets)),
            ("target", time(target_ns)),
            ("tupdate", time(tupdate_ns)),
            ("alpha", weight(alpha)),
            ("beta", weight(beta)),
            ("coupling_factor", number(self.coupling_factor.into())),
            (
                "step_thresh",
                match self.step_threshold {
                    StepThreshold::Time(ns) => time(ns),
                    StepThreshold::Packets(number) => packets(number),
                },
            ),
            ("min_qlen_step", packets(self.min_qlen_step)),
            ("drop_on_overload", self.drop_on_overload.into()),
            ("drop_enqueue", self.drop_enqueue.into()),
            ("any_ect", self.any_ect.into()),
            ("classic_protection", number(self.classic_protection_percent.into())),
            ("split_gso", self.split_gso.into()),
        ];
        keys.extend(self.memlimit_bytes.map(|bytes| ("memlimit", size(bytes))));
        keys
    }
}

fn step_threshold(key: &StepKey) -> StepThreshold {
    match key {
        StepKey::Time(time) => StepThreshold::Time(time.get()),
        StepKey::Packets(packets) => StepThreshold::Packets(packets.get_u32()),
    }
}

/// The controller's parameters: those of the keys, or those for a round-trip time.
fn controller(keys: &Keys, path: &str) -> Result<Pi2, Box<Problem>> {
    let default = Pi2::default();
    let Some(preset) = preset(keys, path)? else {
        let time = |key: Option<Time>, default| key.map_or(default, Time::get);
        return Ok(Pi2 {
            target_ns: time(keys.target, default.target_ns),
            tupdate_ns: time(keys.tupdate, default.tupdate_ns),
            alpha: keys.alpha.map_or(Ok(default.alpha), |weight| weight_of(weight, "alpha", path))?,
            beta: keys.beta.map_or(Ok(default.beta), |weight| weight_of(weight, "beta", path))?,
        });
    };
    let given = [
        ("target", keys.target.is_some()),
        ("tupdate", keys.tupdate.is_some()),
        ("alpha", keys.alpha.is_some()),
        ("beta", keys.beta.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(preset),
        Some((key, _)) => {
            let allowed = format!("no {key}, which tc computes from these and ignores here");
            Err(Box::new(Problem::new(join(path, key), format!("{key} together with max_rtt or typical_rtt"), allowed)))
        }
    }
}

/// A weight as `tc` passes it to the kernel, which takes 256ths, at least one.
fn weight_of(hertz: f64, key: &str, path: &str) -> Result<u32, Box<Problem>> {
    let weight = (hertz as f32 * WEIGHT_SCALE as f32) as u32;
    if weight == 0 {
        let allowed = "at least 1/256 = 0.00390625; tc would round it to zero";
        return Err(Box::new(Problem::new(join(path, key), hertz.to_string(), allowed)));
    }
    Ok(weight)
}

/// The controller for `typical_rtt` and `max_rtt` (RFC 9332, appendix A.1), if one of them is given.
fn preset(keys: &Keys, path: &str) -> Result<Option<Pi2>, Box<Problem>> {
    let in_us = |key: Option<Time>| key.map(|time| time.get() / US);
    let (typical, max) = match (in_us(keys.typical_rtt), in_us(keys.max_rtt)) {
        (None, None) => return Ok(None),
        (None, Some(max)) => ((max / MAX_TO_TYPICAL).max(1), max),
        (Some(typical), None) => (typical, typical * MAX_TO_TYPICAL),
        (Some(typical), Some(max)) => (typical, max),
    };
    if typical > max {
        let allowed = format!("at most max_rtt = {}", TIME.display(max * US));
        return Err(Box::new(Problem::new(join(path, "typical_rtt"), TIME.display(typical * US), allowed)));
    }
    let max_us = max as f64;
    let tupdate = if (typical as f64) < max_us / 3.0 { typical } else { ((max_us / 3.0) as u64).max(1) };
    let us_per_second = (SECOND / US) as f64;
    // `tc` has these factors as numbers of single precision.
    let alpha = tupdate as f64 / max_us / max_us * us_per_second * f64::from(0.1_f32);
    let beta = f64::from(0.3_f32) / max_us * us_per_second;
    if alpha.min(beta) * WEIGHT_SCALE < 1.0 {
        let key = if keys.max_rtt.is_some() { "max_rtt" } else { "typical_rtt" };
        let found = format!("max_rtt = {}, which makes alpha {alpha:.6} and beta {beta:.6}", TIME.display(max * US));
        let allowed = "round-trip times for which both are at least 1/256";
        return Err(Box::new(Problem::new(join(path, key), found, allowed)));
    }
    let weight = |hertz: f64| (hertz * WEIGHT_SCALE) as u32;
    let (target_ns, tupdate_ns) = (typical * US, tupdate * US);
    Ok(Some(Pi2 { target_ns, tupdate_ns, alpha: weight(alpha), beta: weight(beta) }))
}

#[cfg(test)]
mod tests;
