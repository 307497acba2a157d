//! Routes of fewest hops; among equally short ones, the route over the link that comes first in the scenario. The
//! routes include the initial congestion window that the scenario gives each host.

use std::collections::VecDeque;

use bufferscope_scenario::Scenario;

use super::network::{end_address, node_device};
use super::{Plan, PlanError};

/// The kernel's initial congestion window in segments (RFC 6928), where a route says nothing else.
const KERNEL_INITIAL_WINDOW: u32 = 10;

/// Adds its routes to every node.
pub(super) fn add(scenario: &Scenario, plan: &mut Plan) -> Result<(), PlanError> {
    let exits = exits(scenario);
    check_reachable(scenario, &exits)?;
    for (node, exits) in exits.iter().enumerate() {
        let window = window(scenario, node);
        let near = exits.iter().filter_map(|exit| on_link(scenario, exit, &window));
        plan.namespaces[node].ip.extend(near);
        if let [only] = exits[..] {
            let route = format!("route add default {}", via(scenario, plan, only, &window));
            plan.namespaces[node].ip.push(route);
        }
    }
    for destination in destinations(scenario, &exits) {
        let hops = hops_to(destination, &exits);
        let address = plan.addresses[destination];
        for (node, exits) in exits.iter().enumerate().filter(|(_, exits)| exits.len() > 1) {
            let Some(exit) = nearest(exits, &hops, hops[node]) else { continue };
            if end_address(exit.link, 1 - exit.side) != address {
                let route = format!("route add {address}/32 {}", via(scenario, plan, exit, &window(scenario, node)));
                plan.namespaces[node].ip.push(route);
            }
        }
    }
    Ok(())
}

/// One way out of a node.
#[derive(Clone, Copy, Debug)]
struct Exit {
    link: usize,
    /// The node's side of the link.
    side: usize,
    neighbour: usize,
}

fn window(scenario: &Scenario, node: usize) -> String {
    match scenario.nodes[node].tcp.initial_window_packets {
        KERNEL_INITIAL_WINDOW => String::new(),
        packets => format!(" initcwnd {packets}"),
    }
}

fn via(scenario: &Scenario, plan: &Plan, exit: Exit, window: &str) -> String {
    let own = node_device(scenario, exit.link, exit.side);
    let next = end_address(exit.link, 1 - exit.side);
    format!("via {next} dev {} src {}{window}", own.name, plan.addresses[own.namespace])
}

/// The kernel itself creates the route to the other end of a link. A separate route is needed only for a special
/// window.
fn on_link(scenario: &Scenario, exit: &Exit, window: &str) -> Option<String> {
    let device = node_device(scenario, exit.link, exit.side).name;
    let (own, other) = (end_address(exit.link, exit.side), end_address(exit.link, 1 - exit.side));
    (!window.is_empty()).then(|| format!("route add {other}/32 dev {device} src {own}{window}"))
}

fn exits(scenario: &Scenario) -> Vec<Vec<Exit>> {
    let mut exits = vec![Vec::new(); scenario.nodes.len()];
    for (link, ends) in scenario.links.iter().map(|link| link.ends.map(usize::from)).enumerate() {
        for side in [0, 1] {
            exits[ends[side]].push(Exit { link, side, neighbour: ends[1 - side] });
        }
    }
    exits
}

/// Every node that takes part in traffic, and every host (a node with a single link).
fn destinations(scenario: &Scenario, exits: &[Vec<Exit>]) -> Vec<usize> {
    let mut wanted: Vec<bool> = exits.iter().map(|exits| exits.len() == 1).collect();
    for traffic in &scenario.traffic {
        wanted[usize::from(traffic.from)] = true;
        wanted[usize::from(traffic.to)] = true;
    }
    (0..wanted.len()).filter(|&node| wanted[node]).collect()
}

/// For each node, the number of hops to a destination; `None` if there is no path.
fn hops_to(destination: usize, exits: &[Vec<Exit>]) -> Vec<Option<u32>> {
    let mut hops = vec![None; exits.len()];
    hops[destination] = Some(0);
    let mut reached = VecDeque::from([(destination, 0)]);
    while let Some((node, distance)) = reached.pop_front() {
        for exit in &exits[node] {
            if hops[exit.neighbour].is_none() {
                hops[exit.neighbour] = Some(distance + 1);
                reached.push_back((exit.neighbour, distance + 1));
            }
        }
    }
    hops
}

/// The first exit of a node that leads nearer to the destination, given the number of hops from each node.
fn nearest(exits: &[Exit], hops: &[Option<u32>], own: Option<u32>) -> Option<Exit> {
    let nearer = own?.checked_sub(1)?;
    exits.iter().find(|exit| hops[exit.neighbour] == Some(nearer)).copied()
}

fn check_reachable(scenario: &Scenario, exits: &[Vec<Exit>]) -> Result<(), PlanError> {
    for traffic in &scenario.traffic {
        let [from, to] = [traffic.from, traffic.to].map(usize::from);
        if hops_to(to, exits)[from].is_none() {
            let [from, to] = [from, to].map(|node| scenario.nodes[node].name.clone());
            return Err(PlanError::Unreachable { traffic: traffic.name.clone(), from, to });
        }
    }
    Ok(())
}
