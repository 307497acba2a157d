//! Builds a plan's network and holds it. The network lasts as long as this process.

use std::io;

use bufferscope_endpoint::dualpi2::{self, ParametersError};
use bufferscope_endpoint::netlink::Netlink;
use bufferscope_endpoint::qdisc_stats::{self, QdiscStats};
use bufferscope_plan::{FAULTS_HANDLE, Parameters, Plan, is_optional};
use nix::net::if_::if_nametoindex;

use crate::cards::{CardError, CardSet};
use crate::kernel::namespace::Namespace;
use crate::kernel::tool::{self, ToolError};
use crate::kernel::{carrier, device_drops, offload, sysctl};

/// A network that is up.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) plan: Plan,
    /// As in the plan.
    pub(crate) namespaces: Vec<Namespace>,
    /// The cards of the ports with a ring.
    pub(crate) cards: CardSet,
}

/// The network could not be built.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// `ip` or `tc` failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// A port cannot have its ring.
    #[error(transparent)]
    Card(#[from] CardError),
    /// A discipline does not have its parameters.
    #[error("dualpi2 on {device} in {namespace}: {source}")]
    Parameters {
        /// The device.
        device: String,
        /// Where it is.
        namespace: String,
        /// Why not.
        source: ParametersError,
    },
    /// Anything else.
    #[error("{what} in {namespace}: {source}")]
    Step {
        /// The step that failed.
        what: String,
        /// Where.
        namespace: String,
        /// Why it failed.
        source: io::Error,
    },
}

impl Network {
    /// Builds the network. The machine's own network cards are in the namespace `home`; `kernel` is the release, for
    /// errors.
    pub(crate) fn build(plan: Plan, home: &Namespace, kernel: &str) -> Result<Self, NetworkError> {
        let cards = CardSet::open(&plan, home)?;
        let mut namespaces = Vec::with_capacity(plan.namespaces.len());
        for planned in &plan.namespaces {
            let namespace = Namespace::create().map_err(step("making a network namespace", &planned.name))?;
            for (key, value) in &planned.sysctls {
                set_sysctl(key, value).map_err(step(&format!("setting {key}={value}"), &planned.name))?;
            }
            namespaces.push(namespace);
        }
        let network = Self { plan, namespaces, cards };
        network.lay_cables()?;
        network.plug_in_cards(home)?;
        for (planned, namespace) in network.plan.namespaces.iter().zip(&network.namespaces) {
            tool::run("ip", namespace, &planned.name, &planned.ip)?;
            for device in &planned.devices {
                offload::turn_off(device, network.plan.segmentation)
                    .map_err(step("turning offloads off", &planned.name))?;
            }
            tool::run("tc", namespace, &planned.name, &planned.tc)?;
            for parameters in &planned.parameters {
                set_parameters(parameters, namespace).map_err(|source| NetworkError::Parameters {
                    device: parameters.device.clone(),
                    namespace: planned.name.clone(),
                    source,
                })?;
            }
        }
        network.await_carriers()?;
        network.check_bql(kernel)?;
        Ok(network)
    }

    /// Number of packets lost so far where none may be lost: in devices outside their queues, and on the wires, except
    /// what their impairments lose.
    pub(crate) fn lost_outside_queues(&self) -> io::Result<u64> {
        let mut lost = 0;
        for namespace in &self.namespaces {
            namespace.enter()?;
            lost += device_drops::read()?;
        }
        for delay in &self.plan.delays {
            self.namespaces[delay.namespace].enter()?;
            let mut qdiscs = Vec::new();
            qdisc_stats::read(&mut Netlink::open()?, |stats| qdiscs.push(stats))?;
            lost += lost_by_mistake(&qdiscs);
        }
        Ok(lost)
    }

    fn await_carriers(&self) -> Result<(), NetworkError> {
        for (planned, namespace) in self.plan.namespaces.iter().zip(&self.namespaces) {
            let waited = namespace.enter().and_then(|()| carrier::wait(&planned.devices));
            waited.map_err(step("waiting for the devices", &planned.name))?;
        }
        Ok(())
    }

    fn lay_cables(&self) -> Result<(), NetworkError> {
        // Cables are created from a namespace without devices. Many kernels refuse a name that exists in the namespace
        // in which the command runs, even if the device is created in another one.
        let empty = Namespace::create().map_err(step("making a network namespace", "the cables' namespace"))?;
        let path = |index: usize| self.namespaces[index].path();
        let cables = self.plan.cables.iter().filter(|cable| cable.cards.is_none());
        let lines: Vec<String> = cables.map(|cable| self.plan.cable_command(cable, path)).collect();
        Ok(tool::run("ip", &empty, "the cables' namespace", &lines)?)
    }

    fn plug_in_cards(&self, home: &Namespace) -> Result<(), NetworkError> {
        let path = |index: usize| self.namespaces[index].path();
        let cables = self.plan.cables.iter().filter_map(|cable| Some((cable.cards?, &cable.ends)));
        let lines: Vec<String> = cables.flat_map(|(pair, ends)| self.cards.commands(pair, ends, path)).collect();
        Ok(tool::run("ip", home, "the cards' namespace", &lines)?)
    }

    fn check_bql(&self, kernel: &str) -> Result<(), NetworkError> {
        for port in &self.plan.ports {
            let Some(ring) = port.ring.filter(|ring| ring.bql.is_some()) else { continue };
            let namespace = &self.namespaces[usize::from(port.node)];
            namespace.enter().map_err(step("entering the namespace", &port.name))?;
            self.cards.check_bql(&self.plan, port, ring, kernel)?;
        }
        Ok(())
    }
}

fn set_parameters(parameters: &Parameters, namespace: &Namespace) -> Result<(), ParametersError> {
    namespace.enter()?;
    let interface = if_nametoindex(parameters.device.as_str()).map_err(io::Error::from)?;
    dualpi2::configure(&mut Netlink::open()?, interface, parameters.handle, &parameters.dualpi2)
}

/// Changes a setting. If the kernel lacks it, this is no error for settings that a kernel may lack.
fn set_sysctl(key: &str, value: &str) -> io::Result<()> {
    match sysctl::write(key, value) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_optional(key, value) => Ok(()),
        other => other,
    }
}

fn step(what: &str, namespace: &str) -> impl FnOnce(io::Error) -> NetworkError {
    move |source| NetworkError::Step { what: what.to_owned(), namespace: namespace.to_owned(), source }
}

/// Number of packets that these qdiscs of wires lost, except what impairments lose. A netem around that of the
/// impairments counts their losses as its own, too (`net/sched/sch_netem.c`).
fn lost_by_mistake(qdiscs: &[QdiscStats]) -> u64 {
    let (impairments, wires): (Vec<&QdiscStats>, Vec<_>) =
        qdiscs.iter().partition(|qdisc| qdisc.handle == FAULTS_HANDLE);
    wires
        .iter()
        .map(|wire| {
            let inside = impairments.iter().filter(|inside| inside.interface == wire.interface);
            wire.drops.saturating_sub(inside.map(|inside| inside.drops).sum())
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impairments_lose_nothing_by_mistake() {
        let qdisc = |interface, handle, drops| QdiscStats { interface, handle, drops, ..QdiscStats::default() };
        let outer = 1 << 16;
        assert_eq!(lost_by_mistake(&[qdisc(2, FAULTS_HANDLE, 500)]), 0, "impairments without a wire around them");
        let both = [qdisc(2, outer, 506), qdisc(2, FAULTS_HANDLE, 506), qdisc(3, outer, 4), qdisc(4, FAULTS_HANDLE, 9)];
        assert_eq!(lost_by_mistake(&both), 4);
        assert_eq!(lost_by_mistake(&[qdisc(2, outer, 7), qdisc(2, FAULTS_HANDLE, 5)]), 2);
    }
}
