//! `bfifo`: first in, first out, bounded in bytes (`sch_fifo`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ByteLimit, Discipline, Limit, Setting};
use crate::error::Problems;
use crate::sizes::FRAME_BYTES;

/// First in, first out, bounded in bytes: tail drop.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// A packet that would make the queue longer than this is dropped. Default: the link's txqueuelen in full frames of
    /// Ethernet.
    #[schemars(example = &"150kb")]
    limit: Option<ByteLimit>,
}

/// Parameters of `bfifo`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bfifo {
    /// A packet that would raise the backlog above this is dropped.
    pub limit_bytes: u64,
}

impl Discipline for Bfifo {
    type Keys = Keys;

    const PURPOSE: &'static str =
        "Tail drop, bounded in bytes: the delay's limit does not depend on the size of the packets.";
    const SOURCE: &'static str = "net/sched/sch_fifo.c";
    const MODULE: &'static str = "sch_fifo";
    const LOADABLE: bool = false;
    const SAMPLE: &'static str = "bfifo limit 10000";

    fn resolve(keys: &Keys, txqueuelen: u32, _: &str, _: &mut Problems) -> Option<Self> {
        let frames = u64::from(txqueuelen) * u64::from(FRAME_BYTES);
        Some(Self { limit_bytes: keys.limit.map_or(frames, ByteLimit::get) })
    }

    fn limit(&self) -> Limit {
        Limit::Bytes(self.limit_bytes)
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        vec![("limit", Setting::Number(self.limit_bytes))]
    }

    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::strategy::Strategy;
        (1..=300_000_u64).prop_map(|limit_bytes| Self { limit_bytes }).boxed()
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        vec![("limit", crate::testing::text::size(self.limit_bytes))]
    }
}
