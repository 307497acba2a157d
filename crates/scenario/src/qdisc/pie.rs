//! `pie`: proportional integral controller enhanced (`sch_pie`, RFC 8033). Defaults are those of sch_pie and tc-pie(8).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Aqm, Counts, Discipline, Limit, PacketLimit, Reason, Setting, counted, words};
use crate::error::Problems;
use crate::quantity::{Quantity, Times};
use crate::units::{MINUTE, MS, US};

/// A time parameter of PIE.
pub(super) type Time = Quantity<Times, US, MINUTE>;

/// Proportional integral controller enhanced (RFC 8033), as Linux' sch_pie.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Hard limit of the queue.
    #[serde(default = "limit")]
    limit: PacketLimit,
    /// Target queueing delay.
    #[serde(default = "target")]
    target: Time,
    /// Update interval of the drop probability. Linux rounds it up to ticks of its clock.
    #[serde(default = "tupdate")]
    tupdate: Time,
    /// Weight of the deviation of the delay from the target, in 16ths.
    #[serde(default = "alpha")]
    #[schemars(range(max = 32))]
    alpha: u32,
    /// Weight of the change of the delay, in 16ths.
    #[serde(default = "beta")]
    #[schemars(range(max = 32))]
    beta: u32,
    /// Mark packets of ECN-capable flows instead of dropping them, while the probability is below 10 %.
    #[serde(default)]
    ecn: bool,
    /// Drop small packets less often, in proportion to their size.
    #[serde(default)]
    bytemode: bool,
    /// Estimate the delay from the queue's length and its dequeue rate instead of measuring it with timestamps.
    #[serde(default)]
    dq_rate_estimator: bool,
}

fn limit() -> PacketLimit {
    PacketLimit::new(1000)
}

pub(super) fn target() -> Time {
    Time::new(15 * MS)
}

pub(super) fn tupdate() -> Time {
    Time::new(15 * MS)
}

pub(super) fn alpha() -> u32 {
    2
}

pub(super) fn beta() -> u32 {
    20
}

/// Parameters of `pie`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pie {
    /// Hard limit of the queue.
    pub limit_packets: u32,
    /// Target queueing delay.
    pub target_ns: u64,
    /// Update interval of the drop probability.
    pub tupdate_ns: u64,
    /// Weight of the deviation of the delay from the target, in 16ths.
    pub alpha: u32,
    /// Weight of the change of the delay, in 16ths.
    pub beta: u32,
    /// Mark ECN-capable packets instead of dropping them, while the probability is below 10 %.
    pub ecn: bool,
    /// Drop small packets less often.
    pub bytemode: bool,
    /// Estimate the delay from the queue's length and its dequeue rate.
    pub dq_rate_estimator: bool,
}

impl Reason {
    /// Dropped by PIE, at random.
    pub const PIE: Self = Self::drop("pie");
    /// Marked by PIE instead of dropped.
    pub const PIE_MARK: Self = Self::mark("pie_mark");
}

impl Discipline for Pie {
    type Keys = Keys;

    const PURPOSE: &'static str = "Keeps an estimated delay near a target by random drops; cheap enough for modems.";
    const SOURCE: &'static str = "net/sched/sch_pie.c, include/net/pie.h; RFC 8033";
    const MODULE: &'static str = "sch_pie";
    const SAMPLE: &'static str = "pie";
    const AQM: Option<Aqm> = Some(Aqm::Delay);
    const KERNEL_DEFAULTS: bool = true;
    const REASONS: &'static [Reason] = Self::COUNTED;
    const COUNTED: &'static [Reason] = &[Reason::OVERLIMIT, Reason::PIE, Reason::PIE_MARK];
    const OWN_WORDS: usize = 10;

    fn resolve(keys: &Keys, _: u32, _: &str, _: &mut Problems) -> Option<Self> {
        Some(Self {
            limit_packets: keys.limit.get_u32(),
            target_ns: keys.target.get(),
            tupdate_ns: keys.tupdate.get(),
            alpha: keys.alpha,
            beta: keys.beta,
            ecn: keys.ecn,
            bytemode: keys.bytemode,
            dq_rate_estimator: keys.dq_rate_estimator,
        })
    }

    fn limit(&self) -> Limit {
        Limit::Packets(self.limit_packets.into())
    }

    /// Kernels before 5.6 always estimate the rate, and have no switch for it.
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let mut settings = vec![
            ("limit", Setting::Number(self.limit_packets.into())),
            ("target", Setting::Time(self.target_ns)),
            ("tupdate", Setting::Time(self.tupdate_ns)),
            ("alpha", Setting::Number(self.alpha.into())),
            ("beta", Setting::Number(self.beta.into())),
            (if self.ecn { "ecn" } else { "noecn" }, Setting::Flag),
            (if self.bytemode { "bytemode" } else { "nobytemode" }, Setting::Flag),
        ];
        settings.extend(self.dq_rate_estimator.then_some(("dq_rate_estimator", Setting::Flag)));
        settings
    }

    /// `struct tc_pie_xstats`: prob (two words), delay, avg_dq_rate, dq_rate_estimating, packets_in, dropped (which
    /// includes those at the limit), overlimit, maxq and ecn_mark.
    fn counts(_drops: u64, own: &[u32]) -> Counts {
        let [dropped, overlimit, marked] = words(own, [6, 7, 9]);
        counted([overlimit, dropped.saturating_sub(overlimit), marked])
    }

    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let times = (1..=50_000_u64, 1..=100_000_u64);
        let switches = (any::<bool>(), any::<bool>(), any::<bool>());
        (1..=1000_u32, times, 0..=32_u32, 0..=32_u32, switches)
            .prop_map(|(limit_packets, (target_us, tupdate_us), alpha, beta, switches)| Self {
                limit_packets,
                target_ns: target_us * US,
                tupdate_ns: tupdate_us * US,
                alpha,
                beta,
                ecn: switches.0,
                bytemode: switches.1,
                dq_rate_estimator: switches.2,
            })
            .boxed()
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{number, packets, time};
        vec![
            ("limit", packets(self.limit_packets)),
            ("target", time(self.target_ns)),
            ("tupdate", time(self.tupdate_ns)),
            ("alpha", number(self.alpha)),
            ("beta", number(self.beta)),
            ("ecn", self.ecn.into()),
            ("bytemode", self.bytemode.into()),
            ("dq_rate_estimator", self.dq_rate_estimator.into()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seven drops of which two at the limit, and three marks.
    #[test]
    fn drops_at_the_limit_are_among_all_drops() {
        assert_eq!(Pie::counts(7, &[0, 0, 900, 0, 0, 500, 7, 2, 40, 3]), counted([2, 5, 3]));
    }
}
