//! What a scenario's traffic asks of Linux, as far as that can be told without asking a kernel.

use bufferscope_scenario::{Scenario, TrafficKind};

use crate::{DelayBy, Plan, PlanError};

/// Refuses a scenario that no released Linux kernel can run. What one kernel has and another has not is for the agent to find out.
pub fn check(scenario: &Scenario) -> Result<(), PlanError> {
    Plan::new(scenario, DelayBy::Netem)?;
    for traffic in &scenario.traffic {
        let congestion = match &traffic.kind {
            TrafficKind::Tcp(tcp) => tcp.sending.congestion,
            TrafficKind::Web(web) => web.sending.congestion,
            TrafficKind::Ping(_) | TrafficKind::Udp(_) | TrafficKind::Voip(_) | TrafficKind::Dns(_) => continue,
        };
        if congestion.linux_name().is_none() {
            return Err(PlanError::Congestion { traffic: traffic.name.clone(), congestion: congestion.name() });
        }
    }
    Ok(())
}
