//! `stacked = { queue = { qdisc = "pfifo", limit = "2952p" } }`: an interface on top of another.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::error::{Problem, Problems};
use crate::path::join;
use crate::qdisc::{Qdisc, Queue, TXQUEUELEN};

/// An interface without a queue of its own device, such as that of a VLAN, through which all packets of the port come.
/// Packets that leave its discipline enter the discipline below at once. That one may drop them, but never makes the
/// one above wait.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Stacked")]
pub(crate) struct Keys {
    /// Its queueing discipline, which must be one that never holds packets back. (Linux' default is `noqueue`,
    /// with which the interface makes no difference.)
    #[schemars(example = json!({ "qdisc": "pfifo", "limit": "1000p" }))]
    queue: Queue,
}

/// The discipline of a stacked interface.
pub(crate) fn resolve(keys: &Keys, path: &str, problems: &mut Problems) -> Option<Qdisc> {
    let path = join(path, "queue");
    let qdisc = Qdisc::of_port(&keys.queue, TXQUEUELEN, &path, problems)?;
    if let Some(kind) = qdisc.all().into_iter().map(Qdisc::kind).find(|kind| kind.holds_back) {
        let hint = "set it as the queue of the interface below, where packets wait";
        let allowed = "a discipline that passes every packet on as soon as it is asked";
        problems.add(|| Problem::new(path, format!("{}, which holds packets back", kind.name), allowed).hint(hint));
        return None;
    }
    Some(qdisc)
}
