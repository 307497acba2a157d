//! Changes of the ports' rates while an experiment runs.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use bufferscope_plan::RateChange;

use crate::kernel::tool::{StandbyTc, ToolError};
use crate::network::Network;
use crate::relay::{Relay, WireRates};

/// Everything that must be ready so that a change takes effect at once when its time comes.
#[derive(Debug)]
pub(crate) struct Rates {
    /// By namespace.
    standby: BTreeMap<usize, StandbyTc>,
    relayed: Option<WireRates>,
}

impl Rates {
    /// Prepares a `tc` for every namespace whose rates change, and the relay's wires if there is a relay.
    pub(crate) fn prepare(network: &Network, relay: Option<&Relay>) -> Result<Self, ToolError> {
        let mut standby = BTreeMap::new();
        for &(index, _) in network.plan.rate_changes.iter().flat_map(|change| &change.commands) {
            if let Entry::Vacant(vacant) = standby.entry(index) {
                let name = &network.plan.namespaces[index].name;
                vacant.insert(StandbyTc::start(&network.namespaces[index], name)?);
            }
        }
        Ok(Self { standby, relayed: relay.map(Relay::rates) })
    }

    /// Makes a change. If it fails, [`finish`](Self::finish) reports that.
    pub(crate) fn make(&mut self, change: &RateChange) {
        if let Some(wires) = &self.relayed {
            wires.set(change.wire, change.rate_bps);
        }
        for (namespace, command) in &change.commands {
            if let Some(tc) = self.standby.get_mut(namespace) {
                tc.run(command);
            }
        }
    }

    /// Returns an error if any change failed.
    pub(crate) fn finish(self) -> Result<(), ToolError> {
        self.standby.into_values().try_for_each(StandbyTc::finish)
    }
}
