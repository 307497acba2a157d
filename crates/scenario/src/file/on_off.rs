//! Sending and pausing alternately.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Interval;
use crate::model::Periods;

/// When a source is on and when it is off.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct OnOffKeys {
    /// How long a flow sends (with `tcp`, how long its application writes) before it pauses. Default: it never pauses.
    #[schemars(example = &"1s")]
    pub(crate) on: Option<Interval>,
    /// How long it pauses before it sends again. With `tcp`, the connection stays open.
    #[schemars(example = &"2s")]
    pub(crate) off: Option<Interval>,
    /// Whether all periods have these lengths, or are exponentially distributed with these means. Default: fixed.
    #[schemars(example = &"exponential")]
    pub(crate) periods: Option<Periods>,
}
