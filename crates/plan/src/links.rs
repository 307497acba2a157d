//! Links that the kernel can't build.

use bufferscope_scenario::{Port, Scenario, Variation};

use super::PlanError;

/// Refuses what nothing in Linux does.
pub(super) fn check(scenario: &Scenario) -> Result<(), PlanError> {
    scenario.port_names().zip(scenario.ports()).try_for_each(|(name, port)| match unknown(port) {
        Some(what) => Err(PlanError::Link { port: name, what }),
        None => Ok(()),
    })
}

fn unknown(port: &Port) -> Option<&'static str> {
    match port.variation.as_ref()? {
        Variation::Trace { .. } => Some("no queueing discipline of Linux plays the delivery opportunities of a trace"),
        Variation::Walk(_) => Some("no queueing discipline of Linux has a rate that walks at random"),
    }
}
