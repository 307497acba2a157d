//! Routing by fewest hops. Routes are computed once, so that finding a packet's next port takes a single look-up.

use std::collections::VecDeque;

use bufferscope_scenario::{NodeIndex, Scenario};

use crate::SimError;

/// Index of a port: `2 * link` is the link's forward direction, `2 * link + 1` its reverse direction.
pub(crate) type PortIndex = u32;

/// What a node does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The packet has arrived.
    Deliver,
    /// The packet leaves through this port.
    Forward(PortIndex),
}

/// The routing table: for every destination of traffic (a *row*) and every node, the port to take.
///
/// If several paths have equally few hops, the path whose first link comes first in the scenario is taken.
#[derive(Clone, Debug)]
pub(crate) struct Routes {
    nodes: usize,
    /// Row of each node that is a destination.
    rows: Vec<Option<u16>>,
    steps: Vec<Option<Step>>,
}

impl Routes {
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, SimError> {
        let nodes = scenario.nodes.len();
        Self { nodes, rows: vec![None; nodes], steps: Vec::new() }.extended(scenario)
    }

    /// These routes, and those of traffic that was added to the scenario.
    pub(crate) fn extended(mut self, scenario: &Scenario) -> Result<Self, SimError> {
        let ports = ports_into(scenario);
        for traffic in &scenario.traffic {
            for (from, to) in [(traffic.from, traffic.to), (traffic.to, traffic.from)] {
                let row = self.row_towards(to, &ports);
                if self.steps[usize::from(row) * self.nodes + usize::from(from)].is_none() {
                    let name = |node: NodeIndex| scenario.nodes[usize::from(node)].name.clone();
                    return Err(SimError::Unreachable { from: name(from), to: name(to) });
                }
            }
        }
        Ok(self)
    }

    /// The row of a node that is the destination of some traffic.
    pub(crate) fn row(&self, destination: NodeIndex) -> u16 {
        self.rows[usize::from(destination)].expect("routes are made for every end of every traffic")
    }

    /// What `node` does with a packet whose destination is that of `row`.
    #[inline]
    pub(crate) fn step(&self, row: u16, node: NodeIndex) -> Step {
        self.steps[usize::from(row) * self.nodes + usize::from(node)].expect("packets only visit nodes on their path")
    }

    /// Searches breadth-first from the destination, against the direction of travel.
    fn row_towards(&mut self, destination: NodeIndex, ports_into: &[Vec<(PortIndex, NodeIndex)>]) -> u16 {
        if let Some(row) = self.rows[usize::from(destination)] {
            return row;
        }
        let row = u16::try_from(self.steps.len() / self.nodes).expect("there are at most as many rows as nodes");
        let mut steps = vec![None; self.nodes];
        let mut hops = vec![u32::MAX; self.nodes];
        (steps[usize::from(destination)], hops[usize::from(destination)]) = (Some(Step::Deliver), 0);
        let mut reached = VecDeque::from([destination]);
        while let Some(node) = reached.pop_front() {
            let distance = hops[usize::from(node)] + 1;
            for &(port, from) in &ports_into[usize::from(node)] {
                let from = usize::from(from);
                let better = distance < hops[from];
                let earlier = distance == hops[from] && steps[from].is_some_and(|taken| comes_before(port, taken));
                if better {
                    reached.push_back(from as NodeIndex);
                }
                if better || earlier {
                    (steps[from], hops[from]) = (Some(Step::Forward(port)), distance);
                }
            }
        }
        self.steps.extend(steps);
        self.rows[usize::from(destination)] = Some(row);
        row
    }
}

fn comes_before(port: PortIndex, step: Step) -> bool {
    matches!(step, Step::Forward(taken) if port < taken)
}

/// For every node, the ports that lead to it, each with the node at which the port is.
fn ports_into(scenario: &Scenario) -> Vec<Vec<(PortIndex, NodeIndex)>> {
    let mut into = vec![Vec::new(); scenario.nodes.len()];
    for (port, link) in (0_u32..).step_by(2).zip(&scenario.links) {
        let [a, b] = link.ends;
        into[usize::from(b)].push((port, a));
        into[usize::from(a)].push((port + 1, b));
    }
    into
}

#[cfg(test)]
mod tests {
    use bufferscope_scenario::Experiment;

    use super::*;

    /// A scenario with these links and traffic from `a` to `z`.
    fn scenario(links: &[[&str; 2]]) -> Scenario {
        let link = |[from, to]: &[&str; 2]| {
            format!("[[link]]\nname = \"{from}{to}\"\nends = [\"{from}\", \"{to}\"]\ndelay = \"1ms\"\n")
        };
        let links: String = links.iter().map(link).collect();
        let traffic = "[[traffic]]\nname = \"ping\"\nkind = \"ping\"\nfrom = \"a\"\nto = \"z\"\n";
        let text = format!("title = \"Routes\"\nduration = \"1s\"\n{links}{traffic}");
        Experiment::parse(&text, "routes.toml", &[]).unwrap_or_else(|error| panic!("{error}")).points()[0]
            .scenario
            .clone()
    }

    /// The ports a packet takes from `from` to `to`.
    fn path(scenario: &Scenario, from: &str, to: &str) -> Vec<String> {
        let routes = Routes::new(scenario).unwrap();
        let node = |name: &str| scenario.nodes.iter().position(|node| node.name == name).unwrap() as NodeIndex;
        let row = routes.row(node(to));
        let mut at = node(from);
        let mut path = Vec::new();
        while let Step::Forward(port) = routes.step(row, at) {
            let link = &scenario.links[port as usize / 2];
            path.push(link.port_names(&scenario.nodes)[port as usize % 2].clone());
            at = link.ends[1 - port as usize % 2];
        }
        path
    }

    #[test]
    fn packets_take_the_path_of_the_fewest_hops_both_ways() {
        let scenario = scenario(&[["a", "b"], ["b", "c"], ["c", "z"], ["a", "d"], ["d", "z"]]);
        assert_eq!(path(&scenario, "a", "z"), ["a>d", "d>z"]);
        assert_eq!(path(&scenario, "z", "a"), ["z>d", "d>a"]);
    }

    #[test]
    fn among_equal_paths_a_node_takes_its_first_link() {
        let scenario = scenario(&[["c", "z"], ["a", "b"], ["a", "c"], ["b", "z"]]);
        assert_eq!(path(&scenario, "a", "z"), ["a>b", "b>z"]);
        assert_eq!(path(&scenario, "z", "a"), ["z>c", "c>a"]);
    }

    #[test]
    fn unreachable_hosts_are_an_error_that_names_them() {
        let mut scenario = scenario(&[["a", "b"], ["b", "z"]]);
        scenario.links.pop();
        let error = Routes::new(&scenario).unwrap_err().to_string();
        assert!(error.starts_with("no path leads from `a` to `z`"), "{error}");
    }
}
