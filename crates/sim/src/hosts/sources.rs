//! The traffic of a scenario: creates it, and dispatches events to it.

use bufferscope_programs::{ConnectionEvents, Programs};
use bufferscope_records::FlowRow;
use bufferscope_scenario::Scenario;

use super::connection::Id;
use super::datagrams::Datagrams;
use super::ping::Ping;
use super::setup::Setup;
use super::streams::{Streams, World};
use crate::network::Network;
use crate::network::packet::{Body, Datagram, Echo};
use crate::observation::recording::AnyRecording;
use crate::timer_slots::TimerSlots;

/// All traffic, by its index in the scenario.
#[derive(Debug)]
pub(crate) struct TrafficSources(Vec<Source>);

/// One entry of the scenario's traffic.
#[derive(Debug)]
enum Source {
    Ping(Box<Ping>),
    Streams(Box<Streams>),
    Datagrams(Box<Datagrams>),
}

impl TrafficSources {
    pub(crate) fn new(
        scenario: &Scenario,
        seed: u64,
        slots: TimerSlots,
        net: &mut Network,
        recording: &mut AnyRecording<'_>,
    ) -> Self {
        let mut sources = Self(Vec::new());
        sources.add(scenario, seed, slots, net, recording);
        sources
    }

    /// Adds the entries of the scenario's traffic that do not exist yet. They follow the existing ones.
    pub(crate) fn add(
        &mut self,
        scenario: &Scenario,
        seed: u64,
        slots: TimerSlots,
        net: &mut Network,
        recording: &mut AnyRecording<'_>,
    ) {
        let ports = scenario.server_ports();
        for (index, (traffic, &port)) in scenario.traffic.iter().zip(&ports).enumerate().skip(self.0.len()) {
            let name = recording.recorder.intern(&traffic.name);
            let setup = Setup { scenario, traffic, index: index as u32, name, port, seed, slots };
            self.0.push(Source::new(&setup, net));
        }
    }

    /// It is time for a planned action of an entry of traffic.
    pub(crate) fn begin(&mut self, traffic: u32, world: &mut World<'_>) {
        match self.source(traffic) {
            Source::Ping(ping) => ping.begin(world.net, world.recording),
            Source::Streams(streams) => streams.begin(world),
            Source::Datagrams(datagrams) => datagrams.begin(world.net, world.recording),
        }
    }

    /// An entry of traffic must stop, or one of its awaited items may have timed out.
    pub(crate) fn end(&mut self, traffic: u32, world: &mut World<'_>) {
        match self.source(traffic) {
            Source::Ping(ping) => ping.time_out(world.net, world.recording),
            Source::Streams(streams) => streams.stop(world),
            Source::Datagrams(datagrams) => datagrams.time_out(world.net, world.recording),
        }
    }

    /// The stop of an entry of traffic is brought forward to `stop_ns`.
    pub(crate) fn bring_stop_forward(&mut self, traffic: u32, stop_ns: u64, net: &mut Network) {
        match self.source(traffic) {
            Source::Ping(ping) => ping.bring_stop_forward(stop_ns, net),
            Source::Streams(streams) => streams.bring_stop_forward(stop_ns, net),
            Source::Datagrams(datagrams) => datagrams.bring_stop_forward(stop_ns),
        }
    }

    /// From now on an entry of unbounded flows has this many of them.
    pub(crate) fn set_flows(&mut self, traffic: u32, flows: u32, world: &mut World<'_>) {
        if let Source::Streams(streams) = self.source(traffic) {
            streams.set_flows(flows, world);
        }
    }

    /// Passes the events of a connection to its programs.
    #[cold]
    pub(crate) fn notify(&mut self, id: Id, events: ConnectionEvents, world: &mut World<'_>) {
        if let Source::Streams(streams) = self.source(id.traffic) {
            streams.on_events(id.number, events, world);
        }
    }

    /// An echo message has arrived at its destination.
    pub(crate) fn receive_echo(&mut self, echo: Echo, net: &mut Network, recording: &mut AnyRecording<'_>) {
        self.ping(echo).receive(echo, net, recording);
    }

    /// A datagram has arrived at its destination.
    pub(crate) fn receive_datagram(&mut self, datagram: Datagram, net: &mut Network, recording: &mut AnyRecording<'_>) {
        self.datagrams(datagram).receive(datagram, net, recording);
    }

    /// A packet was dropped on the way.
    pub(crate) fn lose(&mut self, body: &Body, net: &mut Network, recording: &mut AnyRecording<'_>) {
        match body {
            Body::Echo(echo) => self.ping(*echo).lose(*echo, net, recording),
            Body::Datagram(datagram) => self.datagrams(*datagram).lose(*datagram, net, recording),
            // TCP detects the loss itself.
            Body::Tcp(_) => {}
        }
    }

    /// Samples the flows that are tracked by their traffic; returns how many were sampled.
    pub(crate) fn sample(&self, now_ns: u64, recording: &mut AnyRecording<'_>) -> u64 {
        let sample = |source: &Source| match source {
            Source::Datagrams(datagrams) => datagrams.sample(now_ns, recording),
            Source::Ping(_) | Source::Streams(_) => 0,
        };
        self.0.iter().map(sample).sum()
    }

    /// The flows that are tracked by their traffic.
    pub(crate) fn rows(&self, now_ns: u64) -> Vec<FlowRow> {
        let rows = |source: &Source| match source {
            Source::Datagrams(datagrams) => datagrams.rows(now_ns),
            Source::Ping(_) | Source::Streams(_) => Vec::new(),
        };
        self.0.iter().flat_map(rows).collect()
    }

    /// Records everything that has not completed within the duration.
    pub(crate) fn give_up(&mut self, net: &mut Network, recording: &mut AnyRecording<'_>) {
        self.give_up_transfers(recording);
        for source in &mut self.0 {
            if let Source::Datagrams(datagrams) = source {
                datagrams.finish(net, recording);
            }
        }
    }

    /// Whether a probe or a packet of a call is still awaited.
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.iter().any(|source| match source {
            Source::Ping(ping) => ping.is_waiting(),
            Source::Datagrams(datagrams) => datagrams.is_waiting(),
            Source::Streams(_) => false,
        })
    }

    /// Records the transfers that have not completed, oldest first.
    fn give_up_transfers(&mut self, recording: &mut AnyRecording<'_>) {
        let mut unfinished = Vec::new();
        for source in &mut self.0 {
            if let Source::Streams(streams) = source {
                unfinished.extend(streams.unfinished());
            }
        }
        unfinished.sort_by_key(|row| row.started_ns);
        unfinished.into_iter().for_each(|row| recording.recorder.transfer(row));
    }

    fn source(&mut self, traffic: u32) -> &mut Source {
        &mut self.0[traffic as usize]
    }

    fn ping(&mut self, echo: Echo) -> &mut Ping {
        match self.source(echo.ping) {
            Source::Ping(ping) => ping,
            Source::Streams(_) | Source::Datagrams(_) => unreachable!("only pings send echo messages"),
        }
    }

    fn datagrams(&mut self, datagram: Datagram) -> &mut Datagrams {
        match self.source(datagram.traffic) {
            Source::Datagrams(datagrams) => datagrams,
            Source::Ping(_) | Source::Streams(_) => unreachable!("only traffic over UDP sends datagrams"),
        }
    }
}

impl Source {
    fn new(setup: &Setup<'_>, net: &mut Network) -> Self {
        match Programs::of(&setup.traffic.kind) {
            Programs::Ping(parameters) => Self::Ping(Box::new(Ping::new(setup, parameters, net))),
            Programs::Datagrams => Self::Datagrams(Box::new(Datagrams::new(setup, net))),
            Programs::Streams => Self::Streams(Box::new(Streams::new(setup, net))),
        }
    }
}
