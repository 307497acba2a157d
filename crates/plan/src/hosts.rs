//! Names for the nodes' addresses, in the format of `/etc/hosts`.

use std::fmt::Write;

use bufferscope_scenario::Scenario;

use super::Plan;
use super::network::end_address;

impl Plan {
    /// The lines of `hosts(5)`: every node's own address first, then those of its other links.
    pub fn hosts(&self, scenario: &Scenario) -> String {
        let mut text = String::from("127.0.0.1 localhost\n::1 localhost\n");
        let mut line = |address, node: usize| {
            writeln!(text, "{address} {}", self.namespaces[node].name).expect("a String takes everything");
        };
        for (node, address) in self.addresses.iter().enumerate() {
            line(*address, node);
        }
        for (link, ends) in scenario.links.iter().map(|link| link.ends.map(usize::from)).enumerate() {
            for (side, node) in ends.into_iter().enumerate() {
                let address = end_address(link, side);
                if address != self.addresses[node] {
                    line(address, node);
                }
            }
        }
        text
    }
}
