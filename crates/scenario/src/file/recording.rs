//! What is recorded of a run, and how often.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Interval, defaults};
use crate::model::Table;

/// The time between two samples: the same for both sampled tables, or one for each.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Sample {
    Both(Interval),
    Each(Intervals),
}

/// The time between two samples of each sampled table.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Intervals {
    /// For the table `queues`. On a kernel, drops and marks are detected at these times.
    #[serde(default = "defaults::interval")]
    pub(crate) queues: Interval,
    /// For the table `flows`.
    #[serde(default = "defaults::interval")]
    pub(crate) flows: Interval,
}

impl Sample {
    pub(crate) fn intervals(self) -> Intervals {
        match self {
            Self::Both(interval) => Intervals { queues: interval, flows: interval },
            Self::Each(intervals) => intervals,
        }
    }

    /// The path of the key with the interval of `flows` or `queues`.
    pub(crate) fn path(self, table: Table) -> String {
        match self {
            Self::Both(_) => "sample".to_owned(),
            Self::Each(_) => format!("sample.{table}"),
        }
    }
}
