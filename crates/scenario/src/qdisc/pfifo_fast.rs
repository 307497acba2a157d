//! `pfifo_fast`: three queues in order of priority (`net/sched/sch_generic.c`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Discipline, Limit, Setting, TXQUEUELEN};
use crate::error::Problems;

/// Three queues, chosen by a packet's code point, each of as many packets as the link's txqueuelen says. A queue is served
/// only while those before it are empty. Linux' default if no other is configured. It has no parameters.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {}

/// `pfifo_fast`, which has no parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PfifoFast {
    /// Number of packets that each queue holds: the device's `txqueuelen`, which `tc` cannot change.
    #[serde(default = "band_packets", skip_serializing_if = "is_usual")]
    pub band_packets: u32,
}

fn band_packets() -> u32 {
    TXQUEUELEN
}

fn is_usual(band_packets: &u32) -> bool {
    *band_packets == TXQUEUELEN
}

impl PfifoFast {
    /// Number of queues.
    pub const BANDS: usize = 3;
    /// Number of packets that each holds on a device with the default `txqueuelen`.
    pub const USUAL_PACKETS: u32 = TXQUEUELEN;
}

impl Discipline for PfifoFast {
    type Keys = Keys;

    const PURPOSE: &'static str = "Tail drop in three bands by priority; Linux' default where no other is configured.";
    const SOURCE: &'static str = "net/sched/sch_generic.c";
    const MODULE: &'static str = "sch_generic";
    const LOADABLE: bool = false;
    const SAMPLE: &'static str = "pfifo_fast";

    fn resolve(_: &Keys, txqueuelen: u32, _: &str, _: &mut Problems) -> Option<Self> {
        Some(Self { band_packets: txqueuelen })
    }

    fn limit(&self) -> Limit {
        Limit::Packets(Self::BANDS as u64 * u64::from(self.band_packets))
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        Vec::new()
    }

    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::strategy::{Just, Strategy};
        Just(Self { band_packets: TXQUEUELEN }).boxed()
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        Vec::new()
    }
}
