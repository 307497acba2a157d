//! `stacked = { queue = { qdisc = "pfifo", limit = "2952p" } }`: an interface on top of another.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::qdisc::Queue;

/// An interface without a queue of its own device, such as that of a VLAN, through which all packets of the port come.
/// Packets that leave its discipline enter the discipline below at once. That one may drop them, but never makes the
/// one above wait.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Stacked {
    /// Its queueing discipline, which must be one that never holds packets back. (Linux' default is `noqueue`,
    /// with which the interface makes no difference.)
    #[schemars(example = json!({ "qdisc": "pfifo", "limit": "1000p" }))]
    pub(crate) queue: Queue,
}
