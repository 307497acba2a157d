//! Which way packets go: fewest hops, and among equally short ways the link that comes first in the file.

use std::collections::VecDeque;

use crate::model::{Link, LinkIndex, NodeIndex, Scenario};

/// The ports that packets to one destination leave by, one for each node.
///
/// ```
/// # let text = r#"
/// # title = "A line"
/// # duration = "1s"
/// # link = [{ name = "a", ends = ["h1", "r1"] }, { name = "b", ends = ["r1", "h2"] }]
/// # traffic = [{ name = "bulk", kind = "tcp", from = "h1", to = "h2" }]
/// # "#;
/// use bufferscope_scenario::{Experiment, Hop};
///
/// // h1 - r1 - h2, joined by the links a and b.
/// let experiment = Experiment::parse(text, "line.toml", &[]).unwrap();
/// let scenario = &experiment.points()[0].scenario;
/// let to_h2 = scenario.routes_to(2);
/// assert_eq!(to_h2.next_hop(0), Some(Hop { link: 0, forward: true }));
/// assert_eq!(to_h2.next_hop(1), Some(Hop { link: 1, forward: true }));
/// assert_eq!(to_h2.next_hop(2), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routes {
    next_hops: Vec<Option<Hop>>,
}

/// A port: one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Index of the link.
    pub link: LinkIndex,
    /// Whether it is the port from `ends[0]` to `ends[1]`.
    pub forward: bool,
}

impl Scenario {
    /// The ways to `destination` from everywhere.
    pub fn routes_to(&self, destination: NodeIndex) -> Routes {
        Routes::new(&self.links, self.nodes.len(), destination)
    }
}

impl Routes {
    fn new(links: &[Link], nodes: usize, destination: NodeIndex) -> Self {
        let adjacent = adjacency(links, nodes);
        let mut hops_left: Vec<Option<u32>> = vec![None; nodes];
        let mut next_hops = vec![None; nodes];
        let mut queue = VecDeque::new();
        if let Some(distance) = hops_left.get_mut(usize::from(destination)) {
            *distance = Some(0);
            queue.push_back((usize::from(destination), 0));
        }
        while let Some((node, distance)) = queue.pop_front() {
            for (neighbour, towards_node) in &adjacent[node] {
                if hops_left[*neighbour].is_none() {
                    hops_left[*neighbour] = Some(distance + 1);
                    queue.push_back((*neighbour, distance + 1));
                }
                if hops_left[*neighbour] == Some(distance + 1) {
                    let best: &mut Option<Hop> = &mut next_hops[*neighbour];
                    if best.is_none_or(|best| towards_node.link < best.link) {
                        *best = Some(*towards_node);
                    }
                }
            }
        }
        Self { next_hops }
    }

    /// The port by which packets leave `node`; `None` at the destination itself, and where no way leads there.
    pub fn next_hop(&self, node: NodeIndex) -> Option<Hop> {
        self.next_hops.get(usize::from(node)).copied().flatten()
    }
}

/// For each node its neighbours, each with the port that leads from the neighbour to the node.
fn adjacency(links: &[Link], nodes: usize) -> Vec<Vec<(usize, Hop)>> {
    let mut adjacent = vec![Vec::new(); nodes];
    for (link, index) in links.iter().zip(0..) {
        let [a, b] = link.ends.map(usize::from);
        adjacent[b].push((a, Hop { link: index, forward: true }));
        adjacent[a].push((b, Hop { link: index, forward: false }));
    }
    adjacent
}

/// Which nodes are joined at all (union-find).
pub(crate) struct Components {
    parents: Vec<usize>,
}

impl Components {
    pub(crate) fn of(scenario: &Scenario) -> Self {
        let mut components = Self { parents: (0..scenario.nodes.len()).collect() };
        for link in &scenario.links {
            let [a, b] = link.ends.map(|end| components.root(end));
            components.parents[a.max(b)] = a.min(b);
        }
        components
    }

    pub(crate) fn connect(&mut self, a: NodeIndex, b: NodeIndex) -> bool {
        self.root(a) == self.root(b)
    }

    /// The representative of the node's component. Shortens the way there for the next time.
    fn root(&mut self, node: NodeIndex) -> usize {
        let mut node = usize::from(node);
        while self.parents[node] != node {
            self.parents[node] = self.parents[self.parents[node]];
            node = self.parents[node];
        }
        node
    }
}
