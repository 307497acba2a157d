//! What this kernel can do, and what a scenario needs of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use bufferscope_plan::{module, needed_qdiscs};
use bufferscope_scenario::{Congestion, Scenario};
use serde::Serialize;

use crate::kernel::namespace::Namespace;
use crate::kernel::privilege::Privilege;
use crate::kernel::socket;
use crate::kernel::tool::{self, ToolError};

/// The queueing disciplines that scenarios may need, each with arguments that it accepts.
const QDISCS: [(&str, &str); 6] = [
    ("htb", "htb"),
    ("pfifo", "pfifo limit 10"),
    ("bfifo", "bfifo limit 10000"),
    ("red", "red limit 100000 min 10000 max 30000 avpkt 1000 burst 20 bandwidth 10mbit"),
    ("codel", "codel"),
    ("netem", "netem delay 1ms"),
];

/// What this kernel can do.
#[derive(Clone, Debug, Serialize)]
pub struct Capabilities {
    /// Its release (`uname -r`).
    pub kernel: String,
    /// By what right networks can be built.
    pub privilege: Privilege,
    /// The queueing disciplines asked for, and whether it has them.
    pub qdiscs: BTreeMap<&'static str, bool>,
    /// The congestion controls asked for, and whether it has them.
    pub congestion: BTreeMap<&'static str, bool>,
}

/// This kernel lacks something that a scenario needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this kernel ({kernel}) has no {}; use --engine guest, or load the modules", missing.join(", no "))]
pub struct Lacking {
    /// The kernel's release.
    pub kernel: String,
    /// What is missing, by the names of kernel modules.
    pub missing: Vec<String>,
}

impl Capabilities {
    /// Tries everything out in a namespace made for that, in which the calling thread is afterwards.
    pub(crate) fn probe(privilege: Privilege) -> Result<Self, ProbeError> {
        let scratch = Namespace::create()?;
        let lines = QDISCS.map(|(_, arguments)| format!("qdisc replace dev lo root {arguments}"));
        let answers = tool::attempt("tc", &scratch, &lines)?;
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
        Ok(Self {
            kernel: release.trim().to_owned(),
            privilege,
            qdiscs: QDISCS.iter().zip(answers).map(|((kind, _), has)| (*kind, has)).collect(),
            congestion: linux_names(Congestion::ALL).map(|name| (name, socket::has_congestion(name))).collect(),
        })
    }

    /// Whether the kernel has a queueing discipline.
    pub fn has_qdisc(&self, kind: &str) -> bool {
        self.qdiscs.get(kind).is_some_and(|&has| has)
    }

    /// Whether the kernel has a congestion control of this name.
    fn has_congestion(&self, name: &str) -> bool {
        self.congestion.get(name).is_some_and(|&has| has)
    }

    /// An error that names all that a scenario needs and this kernel lacks. The propagation delay is not its concern: the
    /// agent can make that itself.
    pub(crate) fn check(&self, scenario: &Scenario) -> Result<(), Lacking> {
        let qdiscs = needed_qdiscs(scenario).into_iter().filter(|kind| !self.has_qdisc(kind));
        let congestions = needed_congestions(scenario).into_iter().filter(|name| !self.has_congestion(name));
        let missing: Vec<String> = qdiscs.map(module).chain(congestions.map(|name| format!("tcp_{name}"))).collect();
        if missing.is_empty() { Ok(()) } else { Err(self.lacking(missing)) }
    }

    /// The error that something is missing.
    pub(crate) fn lacking(&self, missing: Vec<String>) -> Lacking {
        Lacking { kernel: self.kernel.clone(), missing }
    }
}

/// The capabilities could not be found out.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The system refused something.
    #[error("cannot find out what this kernel can do: {0}")]
    Io(#[from] io::Error),
    /// `tc` failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
}

/// By their names in Linux; those that no kernel has are refused before a kernel is asked.
fn needed_congestions(scenario: &Scenario) -> BTreeSet<&'static str> {
    let sendings = scenario.traffic.iter().filter_map(|traffic| traffic.kind.sending());
    sendings.filter_map(|sending| sending.congestion.linux_name()).collect()
}

fn linux_names(controls: &[Congestion]) -> impl Iterator<Item = &'static str> {
    controls.iter().filter_map(|control| control.linux_name())
}
