//! `red`: random early detection (`sch_red`). Omitted parameters are derived as iproute2's `tc` derives them.

use std::fmt::Display;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Aqm, ByteLimit, Counts, Discipline, Limit, Reason, Setting, counted, words};
use crate::error::{Problem, Problems};
use crate::file::Rate;
use crate::path::join;
use crate::quantity::{Quantity, Sizes};
use crate::units::{Dimension, KB, SIZE};

mod curve;
mod idle;

pub(super) use curve::Wanted;
pub use curve::{Averaging, AveragingError, Curve};
pub use idle::IdleTable;

/// Size of a packet.
pub(super) type PacketSize = Quantity<Sizes, 1, { 64 * KB - 1 }>;
/// In (0, 1].
pub(super) type Probability = f64;

/// Random early detection, as in Linux' sch_red. Missing keys are derived as in tc-red(8).
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Hard limit of the queue.
    #[schemars(example = 1_000_000)]
    limit: ByteLimit,
    /// Average queue at which dropping starts. Default: a third of `max`.
    min: Option<ByteLimit>,
    /// Average queue at which the drop probability reaches its maximum. Above it, every packet is dropped. Default: three
    /// times `min`, or a quarter of `limit` without `min`.
    max: Option<ByteLimit>,
    /// Average packet size. With `min` and `burst` it determines how slowly the average follows the queue.
    #[schemars(example = 1000)]
    avpkt: PacketSize,
    /// Size of a burst, in packets, that passes without drops. Default: (2 `min` + `max`) / (3 `avpkt`).
    #[schemars(range(min = 1, max = 1_000_000))]
    burst: Option<u32>,
    /// Maximum probability of an early drop.
    #[serde(default = "probability")]
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    probability: Probability,
    /// Rate at which the average decays while the queue is empty. As in tc, the default is not the link's rate.
    #[serde(default = "bandwidth")]
    bandwidth: Rate,
    /// Mark ECN-capable packets instead of dropping them early.
    #[serde(default)]
    ecn: bool,
    /// Drop even ECN-capable packets while the average is above `max`. Without `ecn` it changes nothing.
    #[serde(default)]
    harddrop: bool,
    /// Queue packets that should be marked but are not ECN-capable, instead of dropping them. It requires `ecn`, and
    /// Linux 5.7.
    #[serde(default)]
    nodrop: bool,
    /// Adapt `probability` every half second, so that the average stays around the middle between `min` and `max`: it
    /// grows to 50 % while the average is long, and falls to 1 % while it is short. It has an effect in the simulator
    /// only: since 5.7, tc passes the flag in an attribute in which Linux does not look for it, and `probability` stays
    /// constant.
    #[serde(default)]
    adaptive: bool,
}

/// tc-red(8).
pub(super) fn probability() -> Probability {
    0.02
}

/// tc-red(8).
fn bandwidth() -> Rate {
    Rate::new(10_000_000)
}

/// The default of tc-red(8). An average packet has `avpkt` of the units of the thresholds.
pub(super) fn derived_burst(min: u64, max: u64, avpkt: u32) -> u32 {
    // At most 2 * 10 GB / 3: fits after the division for any avpkt that passes the checks.
    u32::try_from((2 * min + max) / (3 * u64::from(avpkt))).unwrap_or(u32::MAX)
}

/// Parameters of `red`, as `tc red` names them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Red {
    /// Hard limit of the backlog.
    pub limit_bytes: u64,
    /// Average backlog at which marking starts.
    pub min_bytes: u64,
    /// Average backlog at which the marking probability reaches `probability` and above which everything is marked.
    pub max_bytes: u64,
    /// Size of an average packet.
    pub avpkt_bytes: u32,
    /// Packets of burst allowed; with `min` and `avpkt` it sets the averaging constant.
    pub burst_packets: u32,
    /// Highest marking probability, in (0, 1].
    pub probability: f64,
    /// Rate used to age the average over idle times.
    pub bandwidth_bps: u64,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Drop even ECN-capable packets above `max`.
    pub harddrop: bool,
    /// Queue packets that are not ECN-capable instead of dropping them.
    pub nodrop: bool,
    /// Adapt `probability` so that the average stays between the thresholds.
    pub adaptive: bool,
}

impl Red {
    /// How the kernel averages the queue.
    ///
    /// # Errors
    /// Parameters that `tc` or the kernel refuses.
    pub fn averaging(&self) -> Result<Averaging, AveragingError> {
        let wanted = Wanted {
            min: self.min_bytes,
            max: self.max_bytes,
            unit_bytes: 1,
            avpkt_bytes: self.avpkt_bytes,
            burst_packets: self.burst_packets,
            probability: self.probability,
        };
        wanted.averaging(self.bandwidth_bps)
    }
}

impl Reason {
    /// Dropped by RED: the average backlog was between `min` and `max`.
    pub const RED_EARLY: Self = Self::drop("red_early");
    /// Dropped by RED: the average backlog was above `max`.
    pub const RED_FORCED: Self = Self::drop("red_forced");
    /// Dropped by RED for one of these two reasons: Linux counts them together.
    pub const RED: Self = Self::drop("red");
    /// Marked by RED instead of dropped.
    pub const RED_MARK: Self = Self::mark("red_mark");
}

impl Discipline for Red {
    type Keys = Keys;

    const PURPOSE: &'static str =
        "Drops or marks early, by the average length of the queue; its thresholds suit one rate.";
    const SOURCE: &'static str =
        "net/sched/sch_red.c, include/net/red.h; S. Floyd and V. Jacobson, Random Early Detection, 1993";
    const MODULE: &'static str = "sch_red";
    const SAMPLE: &'static str = "red limit 100000 min 10000 max 30000 avpkt 1000 burst 20 bandwidth 10mbit";
    const AQM: Option<Aqm> = Some(Aqm::Length);
    const REASONS: &'static [Reason] =
        &[Reason::OVERLIMIT, Reason::RED_EARLY, Reason::RED_FORCED, Reason::RED, Reason::RED_MARK];
    const COUNTED: &'static [Reason] = &[Reason::OVERLIMIT, Reason::RED, Reason::RED_MARK];
    const OWN_WORDS: usize = 4;

    /// Derives omitted parameters as iproute2's tc does, and refuses what tc or the kernel refuses.
    ///
    /// It is stricter than tc in one respect: max must be below limit, as tc-red(8) requires. Otherwise tail drop would
    /// hide RED.
    fn resolve(keys: &Keys, _: u32, path: &str, problems: &mut Problems) -> Option<Self> {
        let limit_bytes = keys.limit.get();
        let given_min = keys.min.map(|min| min.get());
        let max_bytes = match (keys.max, given_min) {
            (Some(max), _) => max.get(),
            (None, Some(min)) => 3 * min,
            (None, None) => limit_bytes / 4,
        };
        let min_bytes = given_min.unwrap_or(max_bytes / 3);
        let avpkt_bytes = keys.avpkt.get_u32();
        let red = Self {
            limit_bytes,
            min_bytes,
            max_bytes,
            avpkt_bytes,
            burst_packets: keys.burst.unwrap_or_else(|| derived_burst(min_bytes, max_bytes, avpkt_bytes)),
            probability: keys.probability,
            bandwidth_bps: keys.bandwidth.get(),
            ecn: keys.ecn,
            harddrop: keys.harddrop,
            nodrop: keys.nodrop,
            adaptive: keys.adaptive,
        };
        match contradiction(&red, keys, path) {
            None => Some(red),
            Some(problem) => {
                problems.add(|| problem);
                None
            }
        }
    }

    fn limit(&self) -> Limit {
        Limit::Bytes(self.limit_bytes)
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let mut settings = vec![
            ("limit", Setting::Number(self.limit_bytes)),
            ("min", Setting::Number(self.min_bytes)),
            ("max", Setting::Number(self.max_bytes)),
            ("avpkt", Setting::Number(self.avpkt_bytes.into())),
            ("burst", Setting::Number(self.burst_packets.into())),
            ("probability", Setting::Probability(self.probability)),
            ("bandwidth", Setting::Rate(self.bandwidth_bps)),
        ];
        let flags =
            [("ecn", self.ecn), ("harddrop", self.harddrop), ("nodrop", self.nodrop), ("adaptive", self.adaptive)];
        settings.extend(flags.into_iter().filter(|flag| flag.1).map(|(name, _)| (name, Setting::Flag)));
        settings
    }

    /// `struct tc_red_xstats`: early (drops because of the average, below `max` or above it), pdrop (drops at the
    /// limit), other, and marked.
    fn counts(_drops: u64, own: &[u32]) -> Counts {
        counted(words(own, [1, 0, 3]))
    }

    /// Thresholds in order, and a burst for which there is an averaging constant that the kernel accepts.
    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let thresholds = (3..=50_u32, 1..=200_000_u64, 1..=200_000_u64);
        let averaging = (100..=2000_u32, 0..=50_u32);
        let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
        (thresholds, averaging, 0.001..=1.0_f64, 1_000_000..=50_000_000_u64, switches)
            .prop_map(
                |((min_packets, span, room), (avpkt_bytes, extra_burst), probability, bandwidth_bps, switches)| {
                    let min_bytes = u64::from(min_packets * avpkt_bytes);
                    Self {
                        limit_bytes: min_bytes + span + room,
                        min_bytes,
                        max_bytes: min_bytes + span,
                        avpkt_bytes,
                        burst_packets: min_packets + 1 + extra_burst,
                        probability,
                        bandwidth_bps,
                        ecn: switches.0,
                        harddrop: switches.1,
                        nodrop: switches.0 && switches.2,
                        adaptive: switches.3,
                    }
                },
            )
            .prop_filter("the kernel refuses it", |red| red.averaging().is_ok())
            .boxed()
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{number, rate, size};
        vec![
            ("limit", size(self.limit_bytes)),
            ("min", size(self.min_bytes)),
            ("max", size(self.max_bytes)),
            ("avpkt", size(self.avpkt_bytes)),
            ("burst", number(self.burst_packets)),
            ("probability", self.probability.into()),
            ("bandwidth", rate(self.bandwidth_bps)),
            ("ecn", self.ecn.into()),
            ("harddrop", self.harddrop.into()),
            ("nodrop", self.nodrop.into()),
            ("adaptive", self.adaptive.into()),
        ]
    }
}

fn contradiction(red: &Red, keys: &Keys, path: &str) -> Option<Problem> {
    let thresholds = Thresholds {
        dimension: &SIZE,
        limit: ("limit", red.limit_bytes),
        min: (red.min_bytes, keys.min.is_some()),
        max: (red.max_bytes, keys.max.is_some()),
    };
    if red.max_bytes >= red.limit_bytes {
        return Some(thresholds.max_refused(path, "less than"));
    }
    if let Some(problem) = thresholds.contradiction(path) {
        return Some(problem);
    }
    if red.nodrop && !red.ecn {
        let allowed = "nodrop only with ecn = true, as in Linux";
        return Some(Problem::new(join(path, "nodrop"), "true without ecn", allowed));
    }
    let error = red.averaging().err()?;
    let burst = shown(&red.burst_packets, keys.burst.is_some());
    Some(refused(error, burst, red.probability, Some(keys.bandwidth), path))
}

/// RED's thresholds, and for each whether it was given.
pub(super) struct Thresholds {
    pub(super) dimension: &'static Dimension,
    /// The key of the limit above them, and its value.
    pub(super) limit: (&'static str, u64),
    pub(super) min: (u64, bool),
    pub(super) max: (u64, bool),
}

impl Thresholds {
    /// What `tc` refuses: a max above the limit, and a min that is not below max.
    pub(super) fn contradiction(&self, path: &str) -> Option<Problem> {
        let (max, min) = (self.max.0, self.min.0);
        if max > self.limit.1 {
            return Some(self.max_refused(path, "at most"));
        }
        (min == 0 || min >= max).then(|| {
            let show = |value| self.dimension.display(value);
            let allowed = format!("more than {} and less than max = {}", show(0), show(max));
            Problem::new(join(path, "min"), shown(&show(min), self.min.1), allowed)
        })
    }

    /// A max that is not `below` the limit.
    fn max_refused(&self, path: &str, below: &str) -> Problem {
        let (key, limit) = self.limit;
        let found = shown(&self.dimension.display(self.max.0), self.max.1);
        Problem::new(join(path, "max"), found, format!("{below} {key} = {}", self.dimension.display(limit)))
    }
}

/// A value, and whether it was derived from others.
pub(super) fn shown(value: &impl Display, is_given: bool) -> String {
    if is_given { value.to_string() } else { format!("{value} (derived)") }
}

/// What is wrong with RED's parameters in the table at `path`, from which the kernel cannot compute its constants.
pub(super) fn refused(
    error: AveragingError,
    burst: String,
    probability: f64,
    bandwidth: Option<Rate>,
    path: &str,
) -> Problem {
    let problem = |key, found, allowed: String| Problem::new(join(path, key), found, allowed);
    match error {
        AveragingError::BurstTooSmall { least_packets } => {
            let allowed = format!("at least 1 + min / avpkt = {least_packets} packets, with a min above avpkt");
            problem("burst", burst, allowed)
        }
        AveragingError::TooSlow { shift } => {
            let found = format!("{burst}, for which each packet moves the average by 2^-{shift}");
            let allowed =
                "a faster average if max is large: the bits of max plus the exponent below 32, as in the kernel";
            problem("burst", found, allowed.to_owned()).hint("give a larger min or a smaller burst")
        }
        AveragingError::NeverAges => {
            let found = bandwidth.map_or_else(String::new, |rate| rate.to_string());
            let allowed = "a rate at which the average decays while the queue is empty; tc's default is 10mbit";
            problem("bandwidth", found, allowed.to_owned())
        }
        AveragingError::Flat => {
            let allowed = "a probability that is not vanishingly small compared with max - min";
            problem("probability", probability.to_string(), allowed.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two drops because of the average, one at the limit, five marks.
    #[test]
    fn the_limit_is_distinguished_from_the_average_but_early_not_from_forced() {
        let reasons_and_counts: Vec<_> = Red::COUNTED.iter().zip(Red::counts(3, &[2, 1, 0, 5])).collect();
        assert_eq!(reasons_and_counts, [(&Reason::OVERLIMIT, 1), (&Reason::RED, 2), (&Reason::RED_MARK, 5)]);
    }
}
