//! `pfifo_head_drop`: first in, first out, bounded in packets; drops at the head (`sch_fifo`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Discipline, Limit, PacketLimit, Setting};
use crate::error::Problems;

/// First in, first out, bounded in packets. If the queue is full, an arriving packet replaces the oldest one.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Limit of the queue: a packet that arrives at a full queue replaces the oldest one. Default: the link's
    /// txqueuelen.
    #[schemars(example = &"100p")]
    limit: Option<PacketLimit>,
}

/// Parameters of `pfifo_head_drop`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PfifoHeadDrop {
    /// Limit of the queue: a packet that arrives at a full queue replaces the oldest one.
    pub limit_packets: u32,
}

impl Discipline for PfifoHeadDrop {
    type Keys = Keys;

    const PURPOSE: &'static str =
        "Drops the oldest packet instead of the newest: for live data, where only the latest counts.";
    const SOURCE: &'static str = "net/sched/sch_fifo.c";
    const MODULE: &'static str = "sch_fifo";
    const LOADABLE: bool = false;
    const SAMPLE: &'static str = "pfifo_head_drop limit 10";

    fn resolve(keys: &Keys, txqueuelen: u32, _: &str, _: &mut Problems) -> Option<Self> {
        Some(Self { limit_packets: keys.limit.map_or(txqueuelen, PacketLimit::get_u32) })
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
    use crate::Qdisc;
    use crate::qdisc::{Kind, Reason};

    /// `qdisc_qstats_drop` counts a packet dropped at the head like one that is refused.
    #[test]
    fn the_common_count_of_drops_is_that_of_packets_dropped_at_the_head() {
        let kind = Kind::named("pfifo_head_drop").unwrap();
        assert_eq!(kind.counts(7, &[]).collect::<Vec<_>>(), [(Reason::OVERLIMIT, 7)]);
        assert!(Qdisc::KINDS.iter().any(|each| each.name == kind.name));
    }
}
