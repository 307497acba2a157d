//! `[sweep]`: the values that a key takes in turn.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Value;

use super::expect::Label;

/// The values of one swept key.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum SweepValues {
    /// Plain values: each is its own label.
    List(#[schemars(with = "Vec<Label>", length(min = 1))] Vec<Value>),
    /// Named values; the names become the labels. For tables, such as whole queues, for schedules, for loads (the path
    /// `traffic` with lists of traffic, which join the file's own), and for plain values that need an explanation.
    Named(#[schemars(with = "std::collections::BTreeMap<String, Anything>")] IndexMap<String, Value>),
}

/// Any value: whether it suits the swept key is checked at each point.
pub(super) struct Anything;

impl JsonSchema for Anything {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Anything".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        true.into()
    }
}
