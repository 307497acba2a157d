//! Sending and pausing alternately.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Interval;
use crate::model::Periods;

/// When a source is on and when it is off.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Turns {
    /// How long a flow sends (of `tcp`: its application writes) before it pauses for `off`. Default: it never pauses.
    #[schemars(example = &"1s")]
    pub(crate) on: Option<Interval>,
    /// How long it pauses before it sends again; of `tcp`, over the same connection.
    #[schemars(example = &"2s")]
    pub(crate) off: Option<Interval>,
    /// Whether these periods are all equally long, or exponentially distributed with `on` and `off` as their means. Default: fixed.
    #[schemars(example = &"exponential")]
    pub(crate) periods: Option<Periods>,
}
