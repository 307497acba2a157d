//! `rate = { trace = "FILE" }`, `rate = { walk = { ... } }`, `rate = { preset = "umts-down" }`: variable rates.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::link::Rate;
use crate::model::Cellular;
use crate::quantity::{Quantity, Times};
use crate::text::Line;
use crate::units::{HOUR, MS};

/// A mean time.
pub(crate) type Mean = Quantity<Times, MS, HOUR>;

/// A variable rate: exactly one of these keys.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Varying {
    /// A file with delivery opportunities in the format of mahimahi, relative to the experiment's file: each line has a
    /// time in milliseconds at which 1500 bytes can be delivered. After the last line, the file repeats.
    #[schemars(example = &"cell.down")]
    pub(crate) trace: Option<Line>,
    /// A random walk, drawn from the run's seed.
    #[schemars(example = json!({ "mean": "2mbit", "deviation": "1mbit", "coherence": "5s" }))]
    pub(crate) walk: Option<WalkKeys>,
    /// A random walk with the parameters of a published measurement.
    #[schemars(example = &"umts-down")]
    pub(crate) preset: Option<Cellular>,
}

/// A rate whose logarithm is a normal process with an exponential autocorrelation (Ornstein-Uhlenbeck), with outages.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields, inline)]
pub(crate) struct WalkKeys {
    /// Mean of the rate, outages excluded.
    pub(crate) mean: Rate,
    /// Standard deviation of the rate, outages excluded.
    pub(crate) deviation: Rate,
    /// Time after which the autocorrelation of the rate's logarithm is 1/e.
    #[schemars(example = &"5s")]
    pub(crate) coherence: Mean,
    /// Maximum of the rate. Default: the maximum of all rates.
    pub(crate) max: Option<Rate>,
    /// Time between two changes of the rate.
    #[serde(default = "super::defaults::walk_step")]
    pub(crate) every: Mean,
    /// Times during which nothing is sent. Default: none.
    #[schemars(example = json!({ "every": "30s", "lasts": "2s" }))]
    pub(crate) outages: Option<OutageKeys>,
}

/// Outages whose intervals and lengths are exponentially distributed.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields, inline)]
pub(crate) struct OutageKeys {
    /// Mean time from the end of one to the beginning of the next.
    pub(crate) every: Mean,
    /// Mean length.
    pub(crate) lasts: Mean,
}
