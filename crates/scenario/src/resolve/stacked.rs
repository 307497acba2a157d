//! Interfaces that are stacked on others.

use crate::error::{Problem, Problems};
use crate::file::Stacked;
use crate::path::join;
use crate::qdisc::{Qdisc, TXQUEUELEN};

/// The discipline of a stacked interface.
pub(super) fn resolve(table: &Stacked, path: &str, problems: &mut Problems) -> Option<Qdisc> {
    let path = join(path, "queue");
    let qdisc = Qdisc::of_port(&table.queue, TXQUEUELEN, &path, problems)?;
    if let Some(kind) = qdisc.all().into_iter().map(Qdisc::kind).find(|kind| kind.holds_back) {
        let hint = "set it as the queue of the interface below, where packets wait";
        let allowed = "a discipline that passes every packet on as soon as it is asked";
        problems.add(|| Problem::new(path, format!("{}, which holds packets back", kind.name), allowed).hint(hint));
        return None;
    }
    Some(qdisc)
}
