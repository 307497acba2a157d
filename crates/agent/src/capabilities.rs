//! What this kernel supports, and what a scenario requires of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use bufferscope_endpoint::socket;
use bufferscope_plan::{SYN_LINEAR_TIMEOUTS, module, needed_qdiscs};
use bufferscope_scenario::{Congestion, Node, Qdisc, Scenario};
use serde::Serialize;

use crate::kernel::namespace::Namespace;
use crate::kernel::privilege::Privilege;
use crate::kernel::sysctl;
use crate::kernel::tool::{self, ToolError};

/// The queueing disciplines that scenarios may need for ports and wires, each with arguments that it accepts.
fn qdiscs() -> impl Iterator<Item = (&'static str, &'static str)> {
    Qdisc::KINDS.iter().map(|kind| (kind.name, kind.sample))
}

/// What this kernel can do.
#[derive(Clone, Debug, Serialize)]
pub struct Capabilities {
    /// Its release (`uname -r`).
    pub kernel: String,
    /// The privilege with which networks can be built.
    pub privilege: Privilege,
    /// The queueing disciplines that were tried, and whether the kernel has them.
    pub qdiscs: BTreeMap<&'static str, bool>,
    /// The congestion controls that were tried, and whether the kernel has them.
    pub congestion: BTreeMap<&'static str, bool>,
    /// Whether the kernel can keep the first timeouts of a SYN from doubling (`net.ipv4.tcp_syn_linear_timeouts`, since
    /// 6.5).
    pub syn_linear_timeouts: bool,
}

/// This kernel lacks something that a scenario needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this kernel ({kernel}) has no {}; {}", missing.join(", no "), owner.remedy())]
pub struct Lacking {
    /// The kernel's release.
    pub kernel: String,
    /// What is missing, by the names of kernel modules.
    pub missing: Vec<String>,
    /// Whose kernel it is.
    pub owner: Owner,
}

/// Whose kernel it is, on which depends what the user can do if it lacks something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The user, whose machine it is.
    User,
    /// The run, in a guest.
    Run,
}

impl Owner {
    fn remedy(self) -> &'static str {
        match self {
            Self::User => "use --engine guest, or load the modules",
            Self::Run => "use --engine sim, or another --kernel",
        }
    }
}

/// This kernel has no setting for the timeouts of a SYN.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "host `{host}`: syn_linear_timeouts is {wanted}, and this kernel ({kernel}) has no {SYN_LINEAR_TIMEOUTS}, which came with \
     Linux 6.5; set it to 0, as this kernel does, or use --engine sim, or --engine guest --kernel 6.12"
)]
pub struct NoLinearTimeouts {
    /// The kernel's release.
    pub kernel: String,
    /// The host.
    pub host: String,
    /// What the scenario asks for.
    pub wanted: u32,
}

impl Capabilities {
    /// Tries everything out in a new namespace. The calling thread remains in it.
    pub(crate) fn probe(privilege: Privilege) -> Result<Self, ProbeError> {
        let scratch = Namespace::create()?;
        let lines: Vec<String> =
            qdiscs().map(|(_, arguments)| format!("qdisc replace dev lo root {arguments}")).collect();
        let answers = tool::attempt("tc", &scratch, &lines)?;
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
        Ok(Self {
            kernel: release.trim().to_owned(),
            privilege,
            qdiscs: qdiscs().zip(answers).map(|((name, _), has)| (name, has)).collect(),
            congestion: linux_names(Congestion::ALL).map(|name| (name, socket::has_congestion(name))).collect(),
            syn_linear_timeouts: sysctl::exists(SYN_LINEAR_TIMEOUTS),
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

    /// Returns an error that names everything that a scenario needs and this kernel lacks. It ignores the propagation
    /// delay, which the agent can implement itself.
    pub(crate) fn check(&self, scenario: &Scenario, owner: Owner) -> Result<(), Lacking> {
        let qdiscs = needed_qdiscs(scenario).into_iter().filter(|kind| !self.has_qdisc(kind));
        let congestions = needed_congestions(scenario).into_iter().filter(|name| !self.has_congestion(name));
        let missing: Vec<String> = qdiscs.map(module).chain(congestions.map(|name| format!("tcp_{name}"))).collect();
        if missing.is_empty() { Ok(()) } else { Err(self.lacking(missing, owner)) }
    }

    /// Returns an error that names a host that needs a setting which this kernel lacks.
    pub(crate) fn check_settings(&self, scenario: &Scenario) -> Result<(), NoLinearTimeouts> {
        let asking = |node: &&Node| node.tcp.syn_linear_timeouts > 0 && !self.syn_linear_timeouts;
        scenario.nodes.iter().find(asking).map_or(Ok(()), |node| {
            let (host, wanted) = (node.name.clone(), node.tcp.syn_linear_timeouts);
            Err(NoLinearTimeouts { kernel: self.kernel.clone(), host, wanted })
        })
    }

    /// The error that something is missing.
    pub(crate) fn lacking(&self, missing: Vec<String>, owner: Owner) -> Lacking {
        Lacking { kernel: self.kernel.clone(), missing, owner }
    }
}

/// The capabilities could not be determined.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The system refused something.
    #[error("cannot determine what this kernel supports: {0}")]
    Io(#[from] io::Error),
    /// `tc` failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
}

/// The congestion controls by their names in Linux. A control that no kernel has was refused earlier.
fn needed_congestions(scenario: &Scenario) -> BTreeSet<&'static str> {
    let sendings = scenario.traffic.iter().filter_map(|traffic| traffic.kind.sending());
    sendings.filter_map(|sending| sending.congestion.linux_name()).collect()
}

fn linux_names(controls: &[Congestion]) -> impl Iterator<Item = &'static str> {
    controls.iter().filter_map(|control| control.linux_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_asks_for_a_setting_which_the_kernel_lacks_is_refused_by_name() {
        let scenario = |timeouts: u32| {
            let text = format!(
                r#"
                title = "SYNs"
                duration = "1s"
                link = [{{ name = "l", ends = ["h1", "h2"] }}]
                host = [{{ name = "h2", tcp = {{ syn_linear_timeouts = {timeouts} }} }}]
                traffic = [{{ name = "bulk", kind = "tcp", from = "h1", to = "h2" }}]
                "#
            );
            let experiment = bufferscope_scenario::Experiment::parse(&text, "test.toml", &[]).unwrap();
            experiment.points()[0].scenario.clone()
        };
        let kernel = |syn_linear_timeouts| Capabilities {
            kernel: "6.1.0".into(),
            privilege: Privilege::Root,
            qdiscs: BTreeMap::new(),
            congestion: BTreeMap::new(),
            syn_linear_timeouts,
        };
        let refusal = kernel(false).check_settings(&scenario(4)).unwrap_err().to_string();
        let expected =
            "host `h2`: syn_linear_timeouts is 4, and this kernel (6.1.0) has no net.ipv4.tcp_syn_linear_timeouts, ";
        assert!(refusal.starts_with(expected), "{refusal}");
        // A kernel without the setting does what 0 says.
        assert_eq!(kernel(false).check_settings(&scenario(0)), Ok(()));
        assert_eq!(kernel(true).check_settings(&scenario(4)), Ok(()));
    }

    /// dualpi2 came with Linux 6.17, and no Debian kernel before has it. In a guest, another guest does not help.
    #[test]
    fn a_discipline_that_the_kernel_lacks_is_named_by_its_module_with_what_helps() {
        let text = r#"
            title = "L4S"
            duration = "1s"
            link = [{ name = "l", ends = ["h1", "h2"], rate = "10mbit", queue = { qdisc = "dualpi2" } }]
            traffic = [{ name = "bulk", kind = "tcp", from = "h1", to = "h2" }]
        "#;
        let experiment = bufferscope_scenario::Experiment::parse(text, "test.toml", &[]).unwrap();
        let scenario = &experiment.points()[0].scenario;
        let kernel = |has_dualpi2| Capabilities {
            kernel: "6.1.0".into(),
            privilege: Privilege::Root,
            qdiscs: BTreeMap::from([("htb", true), ("pfifo", true), ("dualpi2", has_dualpi2)]),
            congestion: BTreeMap::from([("cubic", true)]),
            syn_linear_timeouts: false,
        };
        let refusal = |owner| kernel(false).check(scenario, owner).unwrap_err().to_string();
        let lacks = "this kernel (6.1.0) has no sch_dualpi2";
        assert_eq!(refusal(Owner::User), format!("{lacks}; use --engine guest, or load the modules"));
        assert_eq!(refusal(Owner::Run), format!("{lacks}; use --engine sim, or another --kernel"));
        assert_eq!(kernel(true).check(scenario, Owner::User), Ok(()));
    }
}
