//! `[population]`: distributions instead of values.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toml::Value;

use super::defaults;
use super::expect::Label;
use super::sweep::Anything;

/// Many members of a population, such as the homes of a country, each with values of its own. Every point is run once for
/// each member; a member's number is the seed of its runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Population {
    /// Number of members that are run, unless the command line sets it.
    #[serde(default = "defaults::sessions")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) sessions: u32,
    /// What is drawn for every member: each key is the path of another key.
    #[serde(default)]
    #[schemars(example = json!({ "link.access.delay": { "from": "uniform", "min": "5ms", "max": "30ms" } }))]
    pub(crate) draw: IndexMap<String, Drawn>,
    /// The groups to which members belong, such as technologies, by name.
    pub(crate) group: IndexMap<String, Group>,
}

/// A group of a population.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Group {
    /// How likely a member belongs to this group, in proportion to the weights of the others.
    #[serde(default = "defaults::weight")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1e9))]
    pub(crate) weight: f64,
    /// What is drawn for the members of this group, instead of what is drawn for every member.
    #[serde(default)]
    pub(crate) draw: IndexMap<String, Drawn>,
}

/// A value that is the same for all, or a distribution.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Drawn {
    /// The distribution.
    From(Distribution),
    /// The value.
    Constant(#[schemars(with = "Label")] Value),
}

/// A distribution of values.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "from", rename_all = "lowercase")]
pub(crate) enum Distribution {
    /// One of several values.
    Choice(Choice),
    /// Each value between two is equally likely.
    Uniform(Between),
    /// Each order of magnitude between two values is equally likely.
    LogUniform(Between),
    /// The logarithm is normally distributed. A value outside of the limits is replaced by the nearer limit.
    LogNormal(LogNormal),
}

/// One of several values.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Choice {
    /// The values.
    #[schemars(with = "Vec<Anything>", length(min = 1))]
    pub(crate) values: Vec<Value>,
    /// How likely each is, in proportion to the others. Default: all the same.
    pub(crate) weights: Option<Vec<f64>>,
}

/// A value between two others.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Between {
    /// The smallest value.
    #[schemars(with = "Label")]
    pub(crate) min: Value,
    /// The largest value.
    #[schemars(with = "Label")]
    pub(crate) max: Value,
}

/// A value whose logarithm is normally distributed.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct LogNormal {
    /// Half of the values are smaller.
    #[schemars(with = "Label")]
    pub(crate) median: Value,
    /// Standard deviation of the natural logarithm.
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 10.0))]
    pub(crate) sigma: f64,
    /// The smallest value.
    #[schemars(with = "Label")]
    pub(crate) min: Value,
    /// The largest value.
    #[schemars(with = "Label")]
    pub(crate) max: Value,
}
