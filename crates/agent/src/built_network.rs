//! A scenario's network as built on this kernel, before any traffic.

use bufferscope_plan::{Clock, DelayBy, Kernel, Plan};
use bufferscope_scenario::Scenario;

use crate::capabilities::{Capabilities, Owner};
use crate::error::Error;
use crate::kernel::namespace::Namespace;
use crate::kernel::{privilege, random};
use crate::network::Network;
use crate::relay::Relay;
use crate::request::DelayChoice;

/// The network, and what is known about its kernel.
#[derive(Debug)]
pub(crate) struct BuiltNetwork {
    pub(crate) capabilities: Capabilities,
    pub(crate) network: Network,
    delay_by: DelayBy,
}

impl BuiltNetwork {
    /// Builds the network. The process must still be single-threaded. If a seed is given, the kernel belongs to the run, and
    /// it is first mixed into the kernel's random numbers.
    pub(crate) fn build(scenario: &Scenario, delay: DelayChoice, kernel_seed: Option<u64>) -> Result<Self, Error> {
        let home = Namespace::current().map_err(Error::step("looking at the network"))?;
        let privilege = privilege::acquire()?;
        let capabilities = Capabilities::probe(privilege)?;
        let owner = if kernel_seed.is_some() { Owner::Run } else { Owner::User };
        let (plan, delay_by) = plan(scenario, delay, &capabilities, owner)?;
        if let Some(seed) = kernel_seed {
            random::mix(seed).map_err(Error::step("seeding the kernel"))?;
        }
        let network = Network::build(plan, &home, &capabilities.kernel)?;
        Ok(Self { capabilities, network, delay_by })
    }

    /// Starts the thread that implements the propagation delay, if there is a delay and the kernel does not implement
    /// it.
    pub(crate) fn start_relay(&self) -> Result<Option<Relay>, Error> {
        let relays = self.delay_by == DelayBy::Relay && !self.network.plan.delays.is_empty();
        relays.then(|| Relay::start(&self.network)).transpose().map_err(Error::step("starting the delay relay"))
    }
}

/// How this kernel can build a scenario's network; an error if it can't.
pub(crate) fn plan(
    scenario: &Scenario,
    delay: DelayChoice,
    capabilities: &Capabilities,
    owner: Owner,
) -> Result<(Plan, DelayBy), Error> {
    bufferscope_plan::check(scenario)?;
    capabilities.check(scenario, owner)?;
    capabilities.check_settings(scenario)?;
    let delay_by = choose_delay(delay, capabilities, owner)?;
    let clock = match owner {
        Owner::Run => Clock::Virtual,
        Owner::User => Clock::Real,
    };
    Ok((Plan::new(scenario, Kernel { delay_by, clock })?, delay_by))
}

fn choose_delay(choice: DelayChoice, capabilities: &Capabilities, owner: Owner) -> Result<DelayBy, Error> {
    match (choice, capabilities.has_qdisc("netem")) {
        (DelayChoice::Netem, false) => Err(capabilities.lacking(vec!["sch_netem".into()], owner).into()),
        (DelayChoice::Netem | DelayChoice::Auto, true) => Ok(DelayBy::Netem),
        (DelayChoice::Relay, _) | (DelayChoice::Auto, false) => Ok(DelayBy::Relay),
    }
}
