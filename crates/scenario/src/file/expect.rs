//! `[[expect]]`: what the source says about the outcome.

use std::borrow::Cow;
use std::fmt;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use toml::Value;

use crate::text::{Line, Text};

/// What the source says about one metric, and the band in which that counts as reproduced.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Expect {
    /// The metric's name.
    #[schemars(example = &"rtt.max_ms")]
    pub(crate) metric: Line,
    /// The points that the statement is about, by labels of swept keys. Default: all points.
    #[serde(rename = "where", default)]
    #[schemars(example = json!({ "link.bottleneck.queue.limit": "200p" }))]
    pub(crate) at: IndexMap<String, Label>,
    /// Compare with other points: the metric is divided by the metric at the point with these labels instead of those in
    /// `where`.
    pub(crate) relative_to: Option<IndexMap<String, Label>>,
    /// Only members of this group of the population.
    pub(crate) group: Option<Line>,
    /// Compare the share of the runs whose metric lies in this interval, ends included, instead of the mean; `-inf` and
    /// `inf` leave a side open.
    #[schemars(example = json!([600, 1200]))]
    pub(crate) share_in: Option<(f64, f64)>,
    /// The statement of the source, in its words.
    pub(crate) says: Text,
    /// Where the source makes the statement: a figure, a table or a section.
    #[schemars(example = &"figure 3")]
    pub(crate) figure: Option<Line>,
    /// Lowest and highest value that count as reproduced; `-inf` and `inf` leave a side open.
    #[schemars(example = json!([245, 320]))]
    pub(crate) band: (f64, f64),
    /// Why the measurement lies outside the band, if that is known.
    pub(crate) differs: Option<Text>,
    /// The point that shows this cause: these labels replace those in `where`, which adds or removes the cause, and the
    /// metric then lies in the band. Otherwise the cause counts as not shown.
    #[schemars(example = json!({ "tcp.gso_max_segs": "on" }))]
    pub(crate) shown_by: Option<IndexMap<String, Label>>,
}

/// A swept value's label: a plain value as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label(String);

impl Label {
    /// The label of a plain value; `None` for tables, arrays and dates.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(Self(text.clone())),
            Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Some(Self(value.to_string())),
            Value::Array(_) | Value::Table(_) | Value::Datetime(_) => None,
        }
    }

    pub(crate) fn named(name: &str) -> Self {
        Self(name.to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::of(&value).ok_or_else(|| serde::de::Error::custom("not a plain value"))
    }
}

impl JsonSchema for Label {
    fn schema_name() -> Cow<'static, str> {
        "Label".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer", "number", "boolean"] })
    }
}
