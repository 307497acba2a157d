//! `skbprio`: a queue in order of priority (`sch_skbprio`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Discipline, Limit, PacketLimit, Setting};
use crate::error::Problems;

/// One queue in order of priority, which follows from a packet's code point. If the queue is full, an arriving packet
/// replaces the newest of a lower priority.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Limit of the queue.
    #[serde(default = "limit")]
    limit: PacketLimit,
}

/// `skbprio_init` of `net/sched/sch_skbprio.c`.
fn limit() -> PacketLimit {
    PacketLimit::new(64)
}

/// Parameters of `skbprio`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Skbprio {
    /// Limit of the queue.
    pub limit_packets: u32,
}

impl Discipline for Skbprio {
    type Keys = Keys;

    const PURPOSE: &'static str =
        "Drops the least important packets when it is full: against floods, where senders set priorities.";
    const SOURCE: &'static str = "net/sched/sch_skbprio.c";
    const MODULE: &'static str = "sch_skbprio";
    const SAMPLE: &'static str = "skbprio limit 64";

    fn resolve(keys: &Keys, _: u32, _: &str, _: &mut Problems) -> Option<Self> {
        Some(Self { limit_packets: keys.limit.get_u32() })
    }

    fn limit(&self) -> Limit {
        Limit::Packets(self.limit_packets.into())
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        vec![("limit", Setting::Number(self.limit_packets.into()))]
    }

    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::strategy::Strategy;
        (1..=500_u32).prop_map(|limit_packets| Self { limit_packets }).boxed()
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        vec![("limit", crate::testing::text::packets(self.limit_packets))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::testing::read;

    #[test]
    fn the_default_is_that_of_the_kernel() {
        for (keys, limit_packets) in [("", 64), ("limit = '100p'", 100)] {
            assert_eq!(read::<Skbprio>(keys).unwrap(), Skbprio { limit_packets });
        }
    }
}
