//! Routing by fewest hops, the same on every engine. If several paths have equally few hops, a packet takes the one
//! whose first link comes first in the scenario.

use std::collections::VecDeque;
use std::fmt;

use crate::model::{Link, NodeIndex, Port, Scenario, Traffic};

/// Index of a port: `2 * link` is the link's forward direction, `2 * link + 1` its reverse direction.
pub type PortIndex = u32;

/// A port of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The port.
    pub port: PortIndex,
    /// The node that it leads to.
    pub neighbour: NodeIndex,
}

/// The ports of each node, from which paths are computed.
#[derive(Clone, Debug)]
pub struct Routing {
    /// By node, in the order of the links.
    exits: Vec<Vec<Exit>>,
}

/// There is traffic between nodes that no links join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// The traffic sources.
    pub traffic: String,
    /// Its sender.
    pub from: String,
    /// Its receiver.
    pub to: String,
}

impl Exit {
    /// The link of the port, and its end there: 0 or 1.
    pub fn link_end(self) -> (usize, usize) {
        (self.port as usize / 2, self.port as usize % 2)
    }
}

impl Routing {
    /// The network with this number of nodes, and with links between these ends, given as indices of nodes.
    pub fn new(nodes: usize, links: impl IntoIterator<Item = [NodeIndex; 2]>) -> Self {
        let mut exits = vec![Vec::new(); nodes];
        for (forward, [a, b]) in (0..).step_by(2).zip(links) {
            exits[usize::from(a)].push(Exit { port: forward, neighbour: b });
            exits[usize::from(b)].push(Exit { port: forward + 1, neighbour: a });
        }
        Self { exits }
    }

    /// The network of a scenario.
    pub fn of(scenario: &Scenario) -> Self {
        Self::new(scenario.nodes.len(), scenario.links.iter().map(|link| link.ends))
    }

    /// A node's ports, in the order of the links.
    pub fn exits(&self, node: usize) -> &[Exit] {
        &self.exits[node]
    }

    /// For every node, the port through which packets to `destination` leave; `None` at the destination itself and
    /// where no path leads to it.
    pub fn towards(&self, destination: NodeIndex) -> Vec<Option<Exit>> {
        let hops = self.hops_to(destination);
        let nearest = |(exits, own): (&Vec<Exit>, &Option<u32>)| {
            let nearer = (*own)?.checked_sub(1)?;
            exits.iter().find(|exit| hops[usize::from(exit.neighbour)] == Some(nearer)).copied()
        };
        self.exits.iter().zip(&hops).map(nearest).collect()
    }

    /// The ports that a packet crosses from one node to another; `None` if no path leads there.
    pub fn path(&self, from: NodeIndex, to: NodeIndex) -> Option<Vec<PortIndex>> {
        let towards = self.towards(to);
        let (mut node, mut path) = (from, Vec::new());
        while node != to {
            let exit = towards[usize::from(node)]?;
            path.push(exit.port);
            node = exit.neighbour;
        }
        Some(path)
    }

    /// For each node, the number of hops to a destination; `None` if there is no path.
    fn hops_to(&self, destination: NodeIndex) -> Vec<Option<u32>> {
        let mut hops = vec![None; self.exits.len()];
        hops[usize::from(destination)] = Some(0);
        let mut reached = VecDeque::from([(destination, 0)]);
        while let Some((node, distance)) = reached.pop_front() {
            for exit in &self.exits[usize::from(node)] {
                let own = &mut hops[usize::from(exit.neighbour)];
                if own.is_none() {
                    *own = Some(distance + 1);
                    reached.push_back((exit.neighbour, distance + 1));
                }
            }
        }
        hops
    }
}

impl Scenario {
    /// All ports, in the order of their [indices](PortIndex).
    pub fn ports(&self) -> impl Iterator<Item = &Port> {
        self.links.iter().flat_map(Link::ports)
    }

    /// The names of all ports, in the same order.
    pub fn port_names(&self) -> impl Iterator<Item = String> {
        self.links.iter().flat_map(|link| link.port_names(&self.nodes))
    }

    /// The name of the first port with a ring, for engines that have none.
    pub fn first_ring(&self) -> Option<String> {
        self.port_names().zip(self.ports()).find(|(_, port)| port.ring.is_some()).map(|(name, _)| name)
    }

    /// Refuses traffic between nodes that no links join.
    ///
    /// # Errors
    /// Names the first such traffic. A scenario from the loader has none, but one from outside may.
    pub fn check_reachable(&self) -> Result<(), Unreachable> {
        let Some(traffic) = self.separated().next() else { return Ok(()) };
        let [from, to] = [traffic.from, traffic.to].map(|node| self.nodes[usize::from(node)].name.clone());
        Err(Unreachable { traffic: traffic.name.clone(), from, to })
    }

    /// The traffic between nodes that no links join.
    pub(crate) fn separated(&self) -> impl Iterator<Item = &Traffic> {
        let mut components = Components::of(self);
        self.traffic.iter().filter(move |traffic| !components.connect(traffic.from, traffic.to))
    }
}

impl Link {
    /// Its two ports, forward first.
    pub fn ports(&self) -> [&Port; 2] {
        [&self.forward, &self.reverse]
    }
}

impl std::error::Error for Unreachable {}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { traffic, from, to } = self;
        write!(
            f,
            "traffic `{traffic}`: no links lead from {from} to {to}; join them by a link, or by several over other \
             nodes"
        )
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;

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

    /// The names of the ports on the path from `from` to `to`.
    fn path(scenario: &Scenario, from: &str, to: &str) -> Option<Vec<String>> {
        let names: Vec<String> = scenario.port_names().collect();
        let node = |name: &str| scenario.nodes.iter().position(|node| node.name == name).unwrap() as NodeIndex;
        let path = Routing::of(scenario).path(node(from), node(to))?;
        Some(path.into_iter().map(|port| names[port as usize].clone()).collect())
    }

    #[test]
    fn packets_take_the_path_of_the_fewest_hops_both_ways() {
        let scenario = scenario(&[["a", "b"], ["b", "c"], ["c", "z"], ["a", "d"], ["d", "z"]]);
        assert_eq!(path(&scenario, "a", "z").unwrap(), ["a>d", "d>z"]);
        assert_eq!(path(&scenario, "z", "a").unwrap(), ["z>d", "d>a"]);
        assert_eq!(path(&scenario, "a", "a"), Some(Vec::new()));
    }

    #[test]
    fn among_equal_paths_a_node_takes_its_first_link() {
        let scenario = scenario(&[["c", "z"], ["a", "b"], ["a", "c"], ["b", "z"]]);
        assert_eq!(path(&scenario, "a", "z").unwrap(), ["a>b", "b>z"]);
        assert_eq!(path(&scenario, "z", "a").unwrap(), ["z>c", "c>a"]);
    }

    #[test]
    fn unreachable_hosts_are_an_error_that_names_them() {
        let mut scenario = scenario(&[["a", "b"], ["b", "z"]]);
        assert_eq!(scenario.check_reachable(), Ok(()));
        scenario.links.pop();
        let error = scenario.check_reachable().unwrap_err().to_string();
        assert!(error.starts_with("traffic `ping`: no links lead from a to z"), "{error}");
        assert_eq!(path(&scenario, "a", "z"), None);
    }
}
