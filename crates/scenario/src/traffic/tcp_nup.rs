//! `tcp_nup`: Flent's test with TCP uploads.

use schemars::JsonSchema;
use serde::Deserialize;

use super::shared::flent::{BE, Load, LoadKeys, Maker};
use super::shared::keys::{self, Placement};
use super::{Entry, EntryPart, LoadTest};
use crate::error::Problems;

/// Flent's `tcp_nup`: some TCP uploads, and pings.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    #[serde(flatten)]
    load: LoadKeys,
    /// Number of TCP flows.
    #[serde(default = "keys::flows")]
    #[schemars(range(min = 0, max = 10_000))]
    flows: u32,
}

impl LoadTest for Keys {
    fn placement(&self) -> &Placement {
        &self.load.placement
    }

    fn parts(&self, entry: &Entry<'_>, problems: &mut Problems) -> Vec<EntryPart> {
        let maker = Maker::new(&self.load, entry, problems);
        vec![maker.tcp(Load::Up, None, BE, self.flows, problems), maker.ping()]
    }
}
