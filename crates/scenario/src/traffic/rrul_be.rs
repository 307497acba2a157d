//! `rrul_be`: `rrul` without marks.

use schemars::JsonSchema;
use serde::Deserialize;

use super::shared::flent::{BE, LoadKeys, Maker, Marks};
use super::shared::keys::Placement;
use super::{Entry, EntryPart, LoadTest};
use crate::error::Problems;

/// Flent's `rrul_be`: as `rrul`, but without marks.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    #[serde(flatten)]
    load: LoadKeys,
}

const TCP: &Marks = &[("be", BE), ("be2", BE), ("be3", BE), ("be4", BE)];
const UDP: &Marks = &[("be1", BE), ("be2", BE), ("be3", BE)];

impl LoadTest for Keys {
    fn placement(&self) -> &Placement {
        &self.load.placement
    }

    fn parts(&self, entry: &Entry<'_>, problems: &mut Problems) -> Vec<EntryPart> {
        Maker::new(&self.load, entry, problems).rrul(TCP, UDP, problems)
    }
}
