//! Whether a path of links leads from the sender to the receiver of each entry of traffic.

use crate::error::{Problem, Problems};
use crate::model::{NodeIndex, Scenario};
use crate::path::{join, of_traffic};

/// Refuses traffic between nodes that no links join.
pub(super) fn check(scenario: &Scenario, problems: &mut Problems) {
    for traffic in scenario.separated() {
        let name = |index: NodeIndex| scenario.nodes.get(usize::from(index)).map_or("", |node| &node.name);
        let found = format!("\"{}\", which no links connect to \"{}\"", name(traffic.to), name(traffic.from));
        let path = join(&of_traffic(traffic), "to");
        problems.add(|| Problem::new(path, found, "a node that can be reached").hint("add the missing link"));
    }
}
