//! `pfifo_fast`: three queues in order of priority (`net/sched/sch_generic.c`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Discipline, Limit, Setting};
use crate::error::Problems;

/// Three queues of 1000 packets each, chosen by a packet's code point. A queue is served only while those before it are
/// empty. Linux' default if no other is configured. It has no parameters.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {}

/// `pfifo_fast`, which has no parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PfifoFast {}

impl PfifoFast {
    /// Number of queues.
    pub const BANDS: usize = 3;
    /// Number of packets that each queue holds: `txqueuelen` of an Ethernet device, which `tc` cannot change.
    pub const BAND_PACKETS: u32 = 1000;
}

impl Discipline for PfifoFast {
    type Keys = Keys;

    const PURPOSE: &'static str = "Tail drop in three bands by priority; Linux' default where no other is configured.";
    const SOURCE: &'static str = "net/sched/sch_generic.c";
    const MODULE: &'static str = "sch_generic";
    const LOADABLE: bool = false;
    const SAMPLE: &'static str = "pfifo_fast";

    fn resolve(_: &Keys, _: &str, _: &mut Problems) -> Option<Self> {
        Some(Self {})
    }

    fn limit(&self) -> Limit {
        Limit::Packets(Self::BANDS as u64 * u64::from(Self::BAND_PACKETS))
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        Vec::new()
    }

    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::strategy::{Just, Strategy};
        Just(Self {}).boxed()
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        Vec::new()
    }
}
