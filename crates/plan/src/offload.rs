//! Segmentation offload. It is off, as it should be in a testbed, unless a host wants it; then it is on in every device
//! of the path.

use bufferscope_scenario::Scenario;

use super::{DelayBy, PlanError};

/// Whether a host sends packets of several segments.
pub(super) fn is_wanted(scenario: &Scenario) -> bool {
    scenario.nodes.iter().any(|node| node.tcp.gso_max_segs > 1)
}

/// Refuses packets of several segments where they would not stay whole. They stay whole only where the kernel itself
/// passes them from one virtual device to the next.
pub(super) fn check(scenario: &Scenario, delay_by: DelayBy) -> Result<(), PlanError> {
    let mut ports = scenario.links.iter().flat_map(|link| [&link.forward, &link.reverse]);
    let reason = if !is_wanted(scenario) {
        return Ok(());
    } else if ports.any(|port| port.ring.is_some()) {
        "goes with no ring, whose card takes packets of one segment"
    } else if delay_by == DelayBy::Relay {
        "needs sch_netem, since the agent's own wires take packets of one segment"
    } else {
        return Ok(());
    };
    let node = scenario.nodes.iter().find(|node| node.tcp.gso_max_segs > 1).map_or("", |node| &node.name);
    Err(PlanError::Offload { node: node.to_owned(), reason })
}

/// Most segments in a packet that leaves a device of the node: the node's own limit, or the limit of any host whose
/// packets it forwards. (Unless this limit is 1, TCP passes large packets down even with segmentation offload off, and
/// they are segmented after the queue.)
pub(super) fn most_segments(scenario: &Scenario, node: usize) -> u32 {
    let links = scenario.links.iter().flat_map(|link| link.ends).filter(|end| usize::from(*end) == node).count();
    if links > 1 {
        scenario.nodes.iter().map(|node| node.tcp.gso_max_segs).max().unwrap_or(1)
    } else {
        scenario.nodes[node].tcp.gso_max_segs
    }
}
