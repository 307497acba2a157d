//! The requirements of a scenario on Linux, as far as they are known without asking a kernel.

use bufferscope_scenario::Scenario;

use crate::{Kernel, Plan, PlanError};

/// Refuses a scenario that no released Linux kernel can run. The agent finds out whether a particular kernel has
/// everything else.
pub fn check(scenario: &Scenario) -> Result<(), PlanError> {
    Plan::new(scenario, Kernel::USUAL)?;
    for traffic in &scenario.traffic {
        if !traffic.kind.is_on_linux() {
            return Err(PlanError::Traffic { traffic: traffic.name.clone(), kind: traffic.kind.name() });
        }
        let sending = traffic.kind.sending();
        if let Some(sending) = sending.filter(|sending| sending.congestion.linux_name().is_none()) {
            let (traffic, congestion) = (traffic.name.clone(), sending.congestion.name());
            return Err(PlanError::Congestion { traffic, congestion });
        }
    }
    Ok(())
}
