//! The input from which every source of traffic is built, apart from the parameters of its kind.

use bufferscope_programs as programs;
use bufferscope_records::Name;
use bufferscope_scenario::{NodeIndex, Scenario, Traffic, TrafficKind};

use crate::network::{Account, Labels, Network};
use crate::random::{Random, Stream};
use crate::timer_slots::TimerSlots;

/// An entry of a scenario's traffic, with all that is needed to create its source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) traffic: &'a Traffic,
    /// Its index in the scenario.
    pub(crate) index: u32,
    pub(crate) name: Name,
    /// The port of its server.
    pub(crate) port: u16,
    pub(crate) seed: u64,
    pub(crate) slots: TimerSlots,
}

impl Setup<'_> {
    /// When flows, pages and probes start: with the same seed the same on every engine.
    pub(crate) fn starts(&self) -> programs::Random {
        programs::Random::new(self.seed, self.index as usize)
    }

    /// How late the timers of the entry's programs are.
    pub(crate) fn slack(&self) -> Random {
        Random::new(self.seed, Stream::Traffic(self.index))
    }

    /// The header fields of its packets.
    pub(crate) fn labels(&self) -> Labels {
        Labels { dscp: self.traffic.dscp, port: self.port }
    }

    /// `from` and `to`, each with its row in the routing table.
    pub(crate) fn nodes(&self, net: &Network) -> [(NodeIndex, u16); 2] {
        [self.traffic.from, self.traffic.to].map(|node| (node, net.routes.row(node)))
    }

    /// The entry whose flows have the same hashes. A kernel's disciplines distinguish flows by addresses, protocol and
    /// ports (`skb_get_hash`), and ICMP has no ports: all pings between two hosts are one flow.
    fn hashed_as(&self) -> u32 {
        let ends = |traffic: &Traffic| {
            let is_ping = matches!(traffic.kind, TrafficKind::Ping(_));
            is_ping.then(|| [traffic.from.min(traffic.to), traffic.from.max(traffic.to)])
        };
        let Some(own) = ends(self.traffic) else { return self.index };
        self.scenario.traffic.iter().position(|other| ends(other) == Some(own)).map_or(self.index, |index| index as u32)
    }

    /// Opens the account of the flow with this number (the first is 1). Returns the flow's name and index.
    pub(crate) fn flow(&self, number: u32, net: &mut Network) -> (Name, u32) {
        let name = self.name.numbered(number);
        let account = Account { traffic: self.index, number: Some(number) };
        let flow = net.flow(name, account, [self.hashed_as(), number], self.labels());
        net.flows.push(flow);
        (name, net.flows.len() as u32 - 1)
    }
}
