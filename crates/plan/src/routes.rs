//! Routes, which include the initial congestion window that the scenario gives each host.

use std::net::Ipv4Addr;

use bufferscope_scenario::{Exit, NodeIndex, Routing, Scenario};

use super::network::{end_address, node_device};
use super::{Plan, PlanError};

/// The kernel's initial congestion window in segments (RFC 6928), where a route says nothing else.
const KERNEL_INITIAL_WINDOW: u32 = 10;

/// Adds its routes to every node.
pub(super) fn add(scenario: &Scenario, plan: &mut Plan) -> Result<(), PlanError> {
    scenario.check_reachable()?;
    let routing = Routing::of(scenario);
    for node in 0..scenario.nodes.len() {
        let (exits, window) = (routing.exits(node), window(scenario, node));
        let near = exits.iter().filter_map(|exit| on_link(scenario, *exit, &window));
        plan.namespaces[node].ip.extend(near);
        if let [only] = exits {
            let route = format!("route add default {}", via(scenario, plan, *only, &window));
            plan.namespaces[node].ip.push(route);
        }
    }
    for destination in destinations(scenario, &routing) {
        let address = plan.addresses[usize::from(destination)];
        for (node, exit) in routing.towards(destination).into_iter().enumerate() {
            let Some(exit) = exit.filter(|_| routing.exits(node).len() > 1) else { continue };
            if far_address(exit) != address {
                let route = format!("route add {address}/32 {}", via(scenario, plan, exit, &window(scenario, node)));
                plan.namespaces[node].ip.push(route);
            }
        }
    }
    Ok(())
}

/// The address at the other end of a port's link.
fn far_address(exit: Exit) -> Ipv4Addr {
    let (link, side) = exit.link_end();
    end_address(link, 1 - side)
}

fn window(scenario: &Scenario, node: usize) -> String {
    match scenario.nodes[node].tcp.initial_window_packets {
        KERNEL_INITIAL_WINDOW => String::new(),
        packets => format!(" initcwnd {packets}"),
    }
}

fn via(scenario: &Scenario, plan: &Plan, exit: Exit, window: &str) -> String {
    let (link, side) = exit.link_end();
    let own = node_device(scenario, link, side);
    format!("via {} dev {} src {}{window}", far_address(exit), own.name, plan.addresses[own.namespace])
}

/// The kernel itself creates the route to the other end of a link. A separate route is needed only for a special
/// window.
fn on_link(scenario: &Scenario, exit: Exit, window: &str) -> Option<String> {
    let (link, side) = exit.link_end();
    let device = node_device(scenario, link, side).name;
    let (own, other) = (end_address(link, side), far_address(exit));
    (!window.is_empty()).then(|| format!("route add {other}/32 dev {device} src {own}{window}"))
}

/// Every node that takes part in traffic, and every host (a node with a single link).
fn destinations(scenario: &Scenario, routing: &Routing) -> Vec<NodeIndex> {
    let mut wanted: Vec<bool> = (0..scenario.nodes.len()).map(|node| routing.exits(node).len() == 1).collect();
    for traffic in &scenario.traffic {
        wanted[usize::from(traffic.from)] = true;
        wanted[usize::from(traffic.to)] = true;
    }
    (0..).zip(wanted).filter_map(|(node, is_wanted)| is_wanted.then_some(node)).collect()
}
