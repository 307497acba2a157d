//! What a scenario's traffic asks of Linux, as far as that can be told without asking a kernel.

use bufferscope_scenario::{Scenario, TrafficKind};

use crate::{DelayBy, Plan, PlanError};

/// Refuses a scenario that no released Linux kernel can run. What one kernel has and another has not is for the agent to find out.
pub fn check(scenario: &Scenario) -> Result<(), PlanError> {
    Plan::new(scenario, DelayBy::Netem)?;
    for traffic in &scenario.traffic {
        let name = || traffic.name.clone();
        if let Some(sending) = traffic.kind.sending().filter(|sending| sending.congestion.linux_name().is_none()) {
            return Err(PlanError::Congestion { traffic: name(), congestion: sending.congestion.name() });
        }
        if let Some(what) = not_made(&traffic.kind) {
            return Err(PlanError::Traffic { traffic: name(), what });
        }
    }
    Ok(())
}

/// What only the simulator makes so far.
fn not_made(kind: &TrafficKind) -> Option<&'static str> {
    match kind {
        TrafficKind::Tcp(tcp) if tcp.transfers > 1 => Some("several transfers a flow"),
        TrafficKind::Tcp(tcp) if tcp.rate_bps.is_some() => Some("an application's rate"),
        TrafficKind::Tcp(tcp) if tcp.on_off.is_some() => Some("on and off times"),
        TrafficKind::Web(web) if web.objects.is_some() => Some("pages with objects"),
        TrafficKind::Bittorrent(_) => Some("a swarm"),
        _ => None,
    }
}
