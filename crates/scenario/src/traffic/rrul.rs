//! `rrul`: Flent's *Realtime Response Under Load*.

use schemars::JsonSchema;
use serde::Deserialize;

use super::shared::flent::{BE, BK, CS5, EF, LoadKeys, Maker, Marks};
use super::shared::keys::Placement;
use super::{Entry, EntryPart, LoadTest};
use crate::error::Problems;

/// Flent's *Realtime Response Under Load*: four TCP uploads and four downloads, marked BE, BK (CS1), CS5 and EF, under
/// probes over UDP (marked EF, BK and BE) and ICMP.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    #[serde(flatten)]
    load: LoadKeys,
}

const TCP: &Marks = &[("be", BE), ("bk", BK), ("cs5", CS5), ("ef", EF)];
const UDP: &Marks = &[("ef", EF), ("bk", BK), ("be", BE)];

impl LoadTest for Keys {
    fn placement(&self) -> &Placement {
        &self.load.placement
    }

    fn parts(&self, entry: &Entry<'_>, problems: &mut Problems) -> Vec<EntryPart> {
        Maker::new(&self.load, entry, problems).rrul(TCP, UDP, problems)
    }
}
