//! What a scenario's traffic requires of Linux, as far as that is known without asking a kernel.

use bufferscope_scenario::Scenario;

use crate::{DelayBy, Plan, PlanError};

/// Refuses a scenario that no released Linux kernel can run. The agent finds out what one kernel has and another lacks.
pub fn check(scenario: &Scenario) -> Result<(), PlanError> {
    Plan::new(scenario, DelayBy::Netem)?;
    for traffic in &scenario.traffic {
        let sending = traffic.kind.sending();
        if let Some(sending) = sending.filter(|sending| sending.congestion.linux_name().is_none()) {
            let (traffic, congestion) = (traffic.name.clone(), sending.congestion.name());
            return Err(PlanError::Congestion { traffic, congestion });
        }
    }
    Ok(())
}
