//! Routes, computed once, so that finding a packet's next port takes a single look-up.

pub(crate) use bufferscope_scenario::PortIndex;
use bufferscope_scenario::{NodeIndex, Routing, Scenario, Unreachable};

/// What a node does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The packet has arrived.
    Deliver,
    /// The packet leaves through this port.
    Forward(PortIndex),
}

/// The routing table: for every destination of traffic (a *row*) and every node, the port to take.
#[derive(Clone, Debug)]
pub(crate) struct Routes {
    nodes: usize,
    /// Row of each node that is a destination.
    rows: Vec<Option<u16>>,
    steps: Vec<Option<Step>>,
    /// Nodes with an interface that leads to several links. Packets for any of them are queued at the first port.
    interfaces: Vec<(NodeIndex, Vec<PortIndex>)>,
    /// The steps if interfaces are ignored; empty if there are no interfaces.
    links: Vec<Option<Step>>,
}

impl Routes {
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, Unreachable> {
        let nodes = scenario.nodes.len();
        Self { nodes, rows: vec![None; nodes], steps: Vec::new(), interfaces: Vec::new(), links: Vec::new() }
            .extended(scenario)
    }

    /// These routes, and those of traffic that was added to the scenario.
    pub(crate) fn extended(mut self, scenario: &Scenario) -> Result<Self, Unreachable> {
        scenario.check_reachable()?;
        let routing = Routing::of(scenario);
        for destination in scenario.traffic.iter().flat_map(|traffic| [traffic.to, traffic.from]) {
            self.add(destination, &routing);
        }
        Ok(self)
    }

    /// The row of a node that is the destination of some traffic.
    pub(crate) fn row(&self, destination: NodeIndex) -> u16 {
        self.rows[usize::from(destination)].expect("routes exist for both ends of every entry of traffic")
    }

    /// The node that is the destination of this row.
    pub(crate) fn destination(&self, row: u16) -> NodeIndex {
        let node = self.rows.iter().position(|other| *other == Some(row)).expect("a row is that of a node");
        node as NodeIndex
    }

    /// What `node` does with a packet whose destination is that of `row`.
    #[inline]
    pub(crate) fn step(&self, row: u16, node: NodeIndex) -> Step {
        self.steps[usize::from(row) * self.nodes + usize::from(node)].expect("packets only visit nodes on their path")
    }

    /// Packets that leave `node` through any of these ports are passed to the first of them.
    pub(crate) fn join(&mut self, node: NodeIndex, ports: &[PortIndex]) {
        if self.interfaces.is_empty() {
            self.links.clone_from(&self.steps);
        }
        self.interfaces.push((node, ports.to_vec()));
        self.redirect(0);
    }

    /// The port through which a packet that is queued at an interface of `node` will leave.
    pub(crate) fn behind(&self, row: u16, node: NodeIndex) -> Step {
        let steps = if self.links.is_empty() { &self.steps } else { &self.links };
        steps[usize::from(row) * self.nodes + usize::from(node)].expect("packets only visit nodes on their path")
    }

    /// Joins the ports of interfaces in the steps from `first` on.
    fn redirect(&mut self, first: usize) {
        for (node, ports) in &self.interfaces {
            let of_node = self.steps[first..].iter_mut().skip(usize::from(*node)).step_by(self.nodes);
            for step in of_node.flatten() {
                if let Step::Forward(port) = step
                    && ports.contains(port)
                {
                    *port = ports[0];
                }
            }
        }
    }

    fn add(&mut self, destination: NodeIndex, routing: &Routing) {
        if self.rows[usize::from(destination)].is_some() {
            return;
        }
        let row = u16::try_from(self.steps.len() / self.nodes).expect("there are at most as many rows as nodes");
        self.rows[usize::from(destination)] = Some(row);
        self.steps.extend(routing.towards(destination).into_iter().map(|exit| Some(Step::Forward(exit?.port))));
        let arrived = usize::from(row) * self.nodes + usize::from(destination);
        self.steps[arrived] = Some(Step::Deliver);
        if !self.interfaces.is_empty() {
            let first = usize::from(row) * self.nodes;
            self.links.extend_from_slice(&self.steps[first..]);
            self.redirect(first);
        }
    }
}
