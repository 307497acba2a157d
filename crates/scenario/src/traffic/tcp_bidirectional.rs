//! `tcp_bidirectional`: Flent's test with TCP in both directions.

use schemars::JsonSchema;
use serde::Deserialize;

use super::shared::flent::{BE, Load, LoadKeys, Maker};
use super::shared::keys::Placement;
use super::{Entry, EntryPart, LoadTest};
use crate::error::Problems;

/// Flent's `tcp_bidirectional`: one TCP upload and one download, and pings.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    #[serde(flatten)]
    load: LoadKeys,
}

impl LoadTest for Keys {
    fn placement(&self) -> &Placement {
        &self.load.placement
    }

    /// In the order of Flent's file.
    fn parts(&self, entry: &Entry<'_>, problems: &mut Problems) -> Vec<EntryPart> {
        let maker = Maker::new(&self.load, entry, problems);
        let down = maker.tcp(Load::Down, None, BE, 1, problems);
        vec![down, maker.tcp(Load::Up, None, BE, 1, problems), maker.ping()]
    }
}
