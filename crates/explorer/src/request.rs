//! What the page asks for, as JSON.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A run that the page asks for. `explorer/src/core/protocol.ts` describes it.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Request {
    /// The text of the experiment's file.
    pub toml: String,
    /// The contents of files that the experiment names.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Index of the point.
    #[serde(default)]
    pub point: usize,
    /// Number of the population's member; `None`: the seed, as in other runs.
    #[serde(default)]
    pub member: Option<u64>,
    /// Overrides as for `--set`.
    #[serde(default)]
    pub sets: Vec<String>,
    /// Changes during the run.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// The seed.
    #[serde(default)]
    pub seed: u64,
    /// The ports whose packets are logged.
    #[serde(default)]
    pub watch: Vec<String>,
    /// When the log begins.
    #[serde(default)]
    pub packets_from_ns: Option<u64>,
    /// When it ends.
    #[serde(default)]
    pub packets_until_ns: Option<u64>,
    /// Another duration than the experiment's.
    #[serde(default)]
    pub duration_ns: Option<u64>,
}

/// A change during the run.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Change {
    /// When.
    pub at_ns: u64,
    /// The overrides from then on.
    pub sets: Vec<String>,
}
