//! Links that the kernel can't build.

use bufferscope_scenario::{Port, Scenario, Variation};

use super::{DelayBy, PlanError};

/// Refuses links that Linux cannot emulate.
pub(super) fn check(scenario: &Scenario, delay_by: DelayBy) -> Result<(), PlanError> {
    scenario.port_names().zip(scenario.ports()).try_for_each(|(name, port)| match unknown(port, delay_by) {
        Some(what) => Err(PlanError::Link { port: name, what }),
        None => Ok(()),
    })
}

fn unknown(port: &Port, delay_by: DelayBy) -> Option<&'static str> {
    if port.faults.is_some() && delay_by == DelayBy::Relay {
        return Some("this kernel has no sch_netem, without which no wire loses or reorders packets");
    }
    match port.variation.as_ref()? {
        Variation::Trace { .. } => Some("no queueing discipline of Linux plays the delivery opportunities of a trace"),
        Variation::Walk(_) => Some("no queueing discipline of Linux has a rate that walks at random"),
    }
}
