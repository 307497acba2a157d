//! Whether the links lead from each traffic's sender to its receiver.

use crate::error::{Problem, Problems};
use crate::model::{NodeIndex, Scenario};
use crate::path::join;

/// Refuses traffic between nodes that no links join.
pub(super) fn check(scenario: &Scenario, problems: &mut Problems) {
    let mut components = Components::of(scenario);
    for traffic in &scenario.traffic {
        if components.connect(traffic.from, traffic.to) {
            continue;
        }
        let name = |index: NodeIndex| scenario.nodes.get(usize::from(index)).map_or("", |node| &node.name);
        let found = format!("\"{}\", which no links join to \"{}\"", name(traffic.to), name(traffic.from));
        let path = join(&join("traffic", &traffic.name), "to");
        problems.add(|| Problem::new(path, found, "a node that can be reached").hint("add the link that is missing"));
    }
}

/// Which nodes are connected by links, directly or not (union-find).
struct Components {
    parents: Vec<usize>,
}

impl Components {
    fn of(scenario: &Scenario) -> Self {
        let mut components = Self { parents: (0..scenario.nodes.len()).collect() };
        for link in &scenario.links {
            let [a, b] = link.ends.map(|end| components.root(end));
            components.parents[a.max(b)] = a.min(b);
        }
        components
    }

    fn connect(&mut self, a: NodeIndex, b: NodeIndex) -> bool {
        self.root(a) == self.root(b)
    }

    /// The representative of the node's component. Shortens the path to it for later calls.
    fn root(&mut self, node: NodeIndex) -> usize {
        let mut node = usize::from(node);
        while self.parents[node] != node {
            self.parents[node] = self.parents[self.parents[node]];
            node = self.parents[node];
        }
        node
    }
}
