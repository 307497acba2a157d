//! `codel`: controlled delay (`sch_codel`, RFC 8289). Defaults are those of sch_codel and tc-codel(8).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Aqm, Counts, Discipline, Limit, PacketLimit, Reason, Setting, counted, words};
use crate::error::Problems;
use crate::quantity::{Quantity, Times};
use crate::units::{MINUTE, MS, US};

/// A time parameter of CoDel.
pub(super) type Time = Quantity<Times, US, MINUTE>;

/// Controlled delay (RFC 8289), as in Linux' sch_codel.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Hard limit of the queue.
    #[serde(default = "limit")]
    limit: PacketLimit,
    /// Acceptable standing delay.
    #[serde(default = "target")]
    target: Time,
    /// How long the delay must stay above `target` before the first drop.
    #[serde(default = "interval")]
    interval: Time,
    /// Mark ECN-capable packets instead of dropping them.
    #[serde(default)]
    ecn: bool,
    /// Mark every ECN-capable packet that was delayed for longer than this. Default: never.
    ce_threshold: Option<Time>,
}

fn limit() -> PacketLimit {
    PacketLimit::new(1000)
}

pub(super) fn target() -> Time {
    Time::new(5 * MS)
}

pub(super) fn interval() -> Time {
    Time::new(100 * MS)
}

/// Parameters of `codel`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Codel {
    /// Hard limit of the queue.
    pub limit_packets: u32,
    /// Acceptable standing delay.
    pub target_ns: u64,
    /// Time the delay must stay above target before the first drop.
    pub interval_ns: u64,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Mark every ECN-capable packet whose delay exceeds this.
    pub ce_threshold_ns: Option<u64>,
}

impl Reason {
    /// Dropped by CoDel: the delay was above target for too long.
    pub const CODEL: Self = Self::drop("codel");
    /// Marked by CoDel instead of dropped, or above its `ce_threshold`.
    pub const CODEL_MARK: Self = Self::mark("codel_mark");
}

impl Discipline for Codel {
    type Keys = Keys;

    const PURPOSE: &'static str =
        "Drops by how long packets wait, at any rate, without tuning; all flows share one queue.";
    const SOURCE: &'static str = "net/sched/sch_codel.c, include/net/codel_impl.h; RFC 8289";
    const MODULE: &'static str = "sch_codel";
    const SAMPLE: &'static str = "codel";
    const AQM: Option<Aqm> = Some(Aqm::Delay);
    const KERNEL_DEFAULTS: bool = true;
    const REASONS: &'static [Reason] = Self::COUNTED;
    const COUNTED: &'static [Reason] = &[Reason::OVERLIMIT, Reason::CODEL, Reason::CODEL_MARK];
    const OWN_WORDS: usize = 9;

    fn resolve(keys: &Keys, _: u32, _: &str, _: &mut Problems) -> Option<Self> {
        Some(Self {
            limit_packets: keys.limit.get_u32(),
            target_ns: keys.target.get(),
            interval_ns: keys.interval.get(),
            ecn: keys.ecn,
            ce_threshold_ns: keys.ce_threshold.map(|threshold| threshold.get()),
        })
    }

    fn limit(&self) -> Limit {
        Limit::Packets(self.limit_packets.into())
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let mut settings = vec![
            ("limit", Setting::Number(self.limit_packets.into())),
            ("target", Setting::Time(self.target_ns)),
            ("interval", Setting::Time(self.interval_ns)),
        ];
        settings.extend(self.ce_threshold_ns.map(|ns| ("ce_threshold", Setting::Time(ns))));
        settings.push((if self.ecn { "ecn" } else { "noecn" }, Setting::Flag));
        settings
    }

    /// `struct tc_codel_xstats`: maxpacket, count, lastcount, ldelay, drop_next, drop_overlimit, ecn_mark, dropping and
    /// ce_mark, which also counts packets that ecn_mark counts.
    fn counts(drops: u64, own: &[u32]) -> Counts {
        let [overlimit, marked, over_threshold] = words(own, [5, 6, 8]);
        counted([overlimit, drops.saturating_sub(overlimit), marked + over_threshold])
    }

    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let threshold = prop::option::of(1..=20_000_u64);
        (1..=1000_u32, 1..=50_000_u64, 1..=500_000_u64, any::<bool>(), threshold)
            .prop_map(|(limit_packets, target_us, interval_us, ecn, threshold_us)| Self {
                limit_packets,
                target_ns: target_us * US,
                interval_ns: interval_us * US,
                ecn,
                ce_threshold_ns: threshold_us.map(|us| us * US),
            })
            .boxed()
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{packets, time};
        let mut keys = vec![
            ("limit", packets(self.limit_packets)),
            ("target", time(self.target_ns)),
            ("interval", time(self.interval_ns)),
            ("ecn", self.ecn.into()),
        ];
        keys.extend(self.ce_threshold_ns.map(|ns| ("ce_threshold", time(ns))));
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five drops of which two at the limit; three marks, and one more above `ce_threshold`.
    #[test]
    fn drops_beyond_the_limit_are_distinguished() {
        assert_eq!(Codel::counts(5, &[0, 1514, 0, 0, 0, 2, 3, 0, 1]), counted([2, 3, 4]));
        // A packet was dropped at the limit while the statistics were read: the common count does not include it yet.
        assert_eq!(Codel::counts(1, &[0, 1514, 0, 0, 0, 2, 0, 0, 0]), counted([2, 0, 0]));
    }
}
