//! Changes of the ports' rates while an experiment runs.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use bufferscope_plan::RateChange;
use bufferscope_records::CapacityRow;

use crate::kernel::tool::{StandbyTc, ToolError};
use crate::network::Network;
use crate::relay::{Relay, WireRates};
use crate::traffic::RunContext;

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

    /// Makes a change, and records it with the time at which it was made.
    pub(crate) fn make_and_record(&mut self, index: usize, context: &mut RunContext<'_>) {
        let change = &context.network.plan.rate_changes[index];
        self.make(change);
        record(context.now_ns(), change.port, change.rate_bps, context);
    }

    /// Returns an error if any change failed.
    pub(crate) fn finish(self) -> Result<(), ToolError> {
        self.standby.into_values().try_for_each(StandbyTc::finish)
    }
}

/// Records the rates with which the experiment begins.
pub(crate) fn record_first(context: &mut RunContext<'_>) {
    for (index, port) in context.network.plan.ports.iter().enumerate() {
        record(0, index, port.rate_bps, context);
    }
}

fn record(t_ns: u64, port: usize, rate_bps: u64, context: &mut RunContext<'_>) {
    let port = context.recorder.intern(&context.network.plan.ports[port].name);
    context.recorder.capacity(CapacityRow { t_ns, port, rate_bps });
}
