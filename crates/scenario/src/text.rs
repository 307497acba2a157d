//! The kinds of text an experiment file holds, as types: names, lines, paragraphs.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::qdisc::DsFilter;

/// Characters in the longest name or line.
const LONGEST: usize = 200;

/// Names that no entry of traffic may have: its own metric would get the same name as a metric of the whole scenario,
/// such as `goodput.total_mbit`. A Python test compares these names with the definitions of the metrics.
const METRICS_OWN: [&str; 1] = ["total"];

/// What a string may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextRule {
    /// The name of something. It becomes part of key paths, of the names of metrics, and of names such as `r1>h2` and
    /// `bulk/1` in the records, so only few characters are allowed.
    Name,
    /// A name that becomes part of the names of metrics.
    TrafficName,
    /// A title or the like.
    Line,
    /// Paragraphs.
    Text,
    /// A [choice of packets](DsFilter).
    DsFilter,
}

impl TextRule {
    /// Name in the schema (`format`).
    pub(crate) fn format(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::TrafficName => "traffic-name",
            Self::Line => "line",
            Self::Text => "text",
            Self::DsFilter => "ds-filter",
        }
    }

    pub(crate) fn from_format(format: &str) -> Option<Self> {
        let mut rules = [Self::Name, Self::TrafficName, Self::Line, Self::Text, Self::DsFilter].into_iter();
        rules.find(|rule| rule.format() == format)
    }

    pub(crate) fn accepts(self, text: &str) -> bool {
        let short = || text.chars().count() <= LONGEST;
        match self {
            Self::Name => {
                let inner = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(inner) && short()
            }
            Self::TrafficName => Self::Name.accepts(text) && !METRICS_OWN.contains(&text),
            Self::Line => !text.trim().is_empty() && !text.contains(char::is_control) && short(),
            Self::Text => !text.trim().is_empty(),
            Self::DsFilter => DsFilter::read(text).is_some(),
        }
    }

    /// What is allowed, in words.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Name => "a name (letters a-z, digits, - and _)",
            Self::TrafficName => {
                "a name (letters a-z, digits, - and _) other than total, which metrics use for all traffic together"
            }
            Self::Line => "a line of text (at most 200 characters)",
            Self::Text => "a string that is not empty",
            Self::DsFilter => "VALUE/MASK, two numbers up to 255, such as 0x01/0x03",
        }
    }

    pub(crate) fn to_schema(self) -> Schema {
        match self {
            Self::Name => json_schema!({
                "type": "string", "format": self.format(), "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]*$", "maxLength": LONGEST,
            }),
            Self::TrafficName => {
                let mut schema = Self::Name.to_schema();
                schema.insert("format".to_owned(), self.format().into());
                schema.insert("not".to_owned(), json!({ "enum": METRICS_OWN }));
                schema
            }
            Self::Line => json_schema!({
                "type": "string", "format": self.format(), "pattern": "^[^\\n\\r]*\\S[^\\n\\r]*$", "maxLength": LONGEST,
            }),
            Self::Text => json_schema!({ "type": "string", "format": self.format(), "pattern": "\\S" }),
            Self::DsFilter => json_schema!({ "type": "string", "format": self.format(), "pattern": DsFilter::PATTERN }),
        }
    }
}

macro_rules! texts {
    ($($name:ident),*) => {$(
        #[doc = concat!("A string that [`TextRule::", stringify!($name), "`] accepts.")]
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
        #[serde(try_from = "String", into = "String")]
        pub(crate) struct $name(String);

        impl TryFrom<String> for $name {
            type Error = &'static str;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                if TextRule::$name.accepts(&text) { Ok(Self(text)) } else { Err(TextRule::$name.describe()) }
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                TextRule::$name.to_schema()
            }
        }
    )*};
}

texts!(Name, TrafficName, Line, Text);

impl Name {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Line {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl TrafficName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}
