//! `pfifo`: first in, first out, bounded in packets (`sch_fifo`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Discipline, Limit, PacketLimit, Setting, TXQUEUELEN};
use crate::error::Problems;

/// First in, first out, bounded in packets: tail drop.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Limit of the queue: a packet that arrives at a full queue is dropped. Default: the link's txqueuelen.
    #[schemars(example = &"100p")]
    limit: Option<PacketLimit>,
}

/// Parameters of `pfifo`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pfifo {
    /// Limit of the queue: a packet that arrives at a full queue is dropped.
    pub limit_packets: u32,
}

impl Default for Pfifo {
    fn default() -> Self {
        Self { limit_packets: TXQUEUELEN }
    }
}

impl Discipline for Pfifo {
    type Keys = Keys;

    const PURPOSE: &'static str = "Tail drop: one queue, bounded in packets; the yardstick for all others.";
    const SOURCE: &'static str = "net/sched/sch_fifo.c";
    const MODULE: &'static str = "sch_fifo";
    const LOADABLE: bool = false;
    const SAMPLE: &'static str = "pfifo limit 10";

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
