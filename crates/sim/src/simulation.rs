//! The run itself: takes event after event and hands it to whom it concerns.

use std::ops::ControlFlow;

use bufferscope_records::{Recorder, Sink};
use bufferscope_scenario::Scenario;

use crate::connections::Connections;
use crate::network::Network;
use crate::packet::{Body, Ecn};
use crate::recording::Recording;
use crate::routes::{PortIndex, Step};
use crate::slots::{Slots, Target};
use crate::sources::Sources;
use crate::streams::Surroundings;
use crate::{Progress, SimError, Summary, summary};

/// Events (and rows sampled) between two reports of progress: about 10 ms of work. A count, because a run must not depend
/// on a clock.
const WORK_PER_REPORT: u64 = 1 << 16;
const SECOND_NS: u64 = 1_000_000_000;

/// A run under way.
#[derive(Debug)]
pub(crate) struct Simulation<'a, S: Sink> {
    scenario: &'a Scenario,
    net: Network,
    recording: Recording<S>,
    connections: Connections,
    sources: Sources,
    slots: Slots,
    /// The duration is over; only the answers to probes are awaited.
    lingering: bool,
    events: u64,
    /// Work done since the last report.
    work: u64,
}

impl<'a, S: Sink> Simulation<'a, S> {
    pub(crate) fn new(scenario: &'a Scenario, seed: u64, recorder: Recorder<S>) -> Result<Self, SimError> {
        let slots = Slots::new(2 * scenario.links.len(), scenario.traffic.len());
        let mut recording = Recording::new(scenario, recorder);
        let mut net = Network::new(scenario, seed, slots)?;
        net.events.schedule_first(slots.sampler(), 0);
        net.events.schedule_first(slots.second(), SECOND_NS);
        let sources = Sources::new(scenario, seed, slots, &mut net, &mut recording);
        let connections = Connections::new(slots, net.flows.len() as u32);
        Ok(Self { scenario, net, recording, connections, sources, slots, lingering: false, events: 0, work: 0 })
    }

    /// Runs to the end, or until the records cannot be stored: finishing then tells why.
    pub(crate) fn run(
        mut self,
        on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Summary<S::Output>, SimError> {
        self.handle_events(on_progress)?;
        self.finish()
    }

    fn handle_events(&mut self, on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>) -> Result<(), SimError> {
        while !self.lingering || self.sources.is_waiting() {
            self.handle_next();
            if self.work >= WORK_PER_REPORT {
                self.report(on_progress)?;
                if self.recording.recorder.check().is_err() {
                    break;
                }
            }
        }
        self.report(on_progress)
    }

    #[inline]
    fn handle_next(&mut self) {
        let slot = self.net.events.pop().expect("what is waited for has a timer");
        self.events += 1;
        self.work += 1;
        self.handle(self.slots.target(slot));
        self.settle_losses();
        self.settle_departures();
    }

    #[inline]
    fn handle(&mut self, target: Target) {
        match target {
            Target::Wire(port) => self.net.wire_is_free(port, &mut self.recording),
            Target::Line(port) => self.arrivals(port),
            Target::Endpoint(index, side) => {
                self.connections.timer(index, side, &mut self.net, &mut self.recording);
            }
            Target::Sampler => self.sample(),
            Target::Second => self.end_second(),
            Target::Begin(traffic) => self.begin(traffic),
            Target::End(traffic) => self.end(traffic),
        }
    }

    /// Packets arrive at the node a port leads to.
    #[inline]
    fn arrivals(&mut self, port: PortIndex) {
        while let Some(packet) = self.net.next_arrival(port) {
            match self.net.step(packet, port) {
                Step::Forward(next) => self.net.forward(packet, next, &mut self.recording),
                Step::Deliver => {
                    let (body, ecn) = self.net.deliver(packet);
                    self.receive(&body, ecn);
                }
            }
        }
    }

    /// A packet has arrived at the host it was for.
    #[inline]
    fn receive(&mut self, body: &Body, ecn: Ecn) {
        let Self { sources, connections, net, recording, .. } = self;
        match body {
            Body::Tcp(segment) => {
                if let Some((id, news)) = connections.receive(segment, ecn, net, recording) {
                    sources.tell(id, news, &mut Surroundings { connections, net, recording });
                }
            }
            Body::Echo(echo) => sources.receive_echo(*echo, net, recording),
            Body::Datagram(datagram) => sources.receive_datagram(*datagram, net, recording),
        }
    }

    /// Takes a sample: it shows what was before everything that happens in the same nanosecond.
    fn sample(&mut self) {
        let now_ns = self.net.now();
        self.recording.sample_queues(now_ns, &self.net.ports);
        self.work += self.connections.sample(now_ns, &mut self.recording);
        self.work += self.sources.sample(now_ns, &mut self.recording);
        self.connections.recycle(&mut self.net);
        if now_ns < self.scenario.duration_ns {
            let next_ns = (now_ns + self.scenario.sample_interval_ns).min(self.scenario.duration_ns);
            self.net.events.schedule_first(self.slots.sampler(), next_ns);
        } else {
            self.sources.give_up(&mut self.recording);
            self.recording.close_sojourns(now_ns);
            self.lingering = true;
        }
    }

    fn end_second(&mut self) {
        let now_ns = self.net.now();
        if now_ns < self.scenario.duration_ns {
            self.recording.end_second(now_ns);
            self.net.events.schedule_first(self.slots.second(), now_ns + SECOND_NS);
        }
    }

    fn begin(&mut self, traffic: u32) {
        if !self.lingering {
            let Self { sources, connections, net, recording, .. } = self;
            sources.begin(traffic, &mut Surroundings { connections, net, recording });
        }
    }

    fn end(&mut self, traffic: u32) {
        let Self { sources, connections, net, recording, .. } = self;
        sources.end(traffic, &mut Surroundings { connections, net, recording });
    }

    #[inline]
    fn settle_losses(&mut self) {
        while let Some(body) = self.net.lost.pop() {
            self.sources.lose(&body, &mut self.recording);
        }
    }

    #[inline]
    fn settle_departures(&mut self) {
        while let Some(packet) = self.net.departures.pop() {
            self.connections.depart(&packet, &mut self.net, &mut self.recording);
        }
    }

    /// Tells how far the run is, and hears whether it is to go on.
    fn report(&mut self, on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>) -> Result<(), SimError> {
        self.work = 0;
        let duration_ns = self.scenario.duration_ns;
        match on_progress(Progress { now_ns: self.net.now().min(duration_ns), duration_ns }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(SimError::Interrupted),
        }
    }

    fn finish(self) -> Result<Summary<S::Output>, SimError> {
        Ok(Summary {
            events: self.events,
            hops: self.net.hops,
            ended_ns: self.net.now(),
            ports: summary::ports(self.scenario, &self.net.ports),
            warnings: summary::warnings(self.scenario, &self.net.ports),
            flows: self.connections.into_accounts(&self.net).into_flows(self.scenario),
            output: self.recording.recorder.finish()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use bufferscope_records::MemorySink;
    use bufferscope_scenario::Experiment;

    use super::*;

    fn simulation(scenario: &Scenario) -> Simulation<'_, MemorySink> {
        Simulation::new(scenario, 1, Recorder::new(MemorySink::default())).unwrap()
    }

    fn scenario(text: &str) -> Scenario {
        let experiment = Experiment::parse(text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
        experiment.points()[0].scenario.clone()
    }

    #[test]
    fn places_of_closed_connections_are_used_again() {
        // 1000 pages, a few round trips of 20 ms each and 20 ms apart: a handful is open at a time.
        let text = r#"
            title = "Many pages"
            duration = "20s"
            link = [{ name = "line", ends = ["h1", "h2"], rate = "100mbit", delay = "10ms" }]
            traffic = [{ name = "web", kind = "web", from = "h1", to = "h2", interval = "20ms", bytes = "1000b" }]
        "#;
        let scenario = scenario(text);
        let mut simulation = simulation(&scenario);
        simulation.handle_events(&mut |_| ControlFlow::Continue(())).unwrap();
        assert!((1..20).contains(&simulation.connections.places()), "{} places", simulation.connections.places());
    }

    #[test]
    fn packets_carry_the_code_point_of_their_traffic_both_ways() {
        let scenario = scenario(
            r#"
            title = "Three classes"
            duration = "3s"
            link = [{ name = "line", ends = ["h1", "h2"], rate = "2mbit", delay = "20ms", queue = { qdisc = "codel", ecn = true } }]
            traffic = [
              { name = "bulk", kind = "tcp", from = "h1", to = "h2", dscp = "cs1", ecn = true },
              { name = "web", kind = "web", from = "h2", to = "h1", interval = "100ms", bytes = "20kb", dscp = "af41" },
              { name = "ping", kind = "ping", from = "h1", to = "h2", interval = "10ms", dscp = "ef" },
            ]
            "#,
        );
        let mut simulation = simulation(&scenario);
        let mut seen = [[0; 2]; 3];
        while simulation.net.now() < 2 * SECOND_NS {
            simulation.handle_next();
            let Network { ports, pool, flows, .. } = &simulation.net;
            for (direction, port) in ports.iter().enumerate() {
                for header in port.packets(pool).map(|packet| pool.header(packet)) {
                    let traffic = flows[header.flow as usize].account.traffic as usize;
                    assert_eq!(header.class.dscp(), [8, 34, 46][traffic]);
                    seen[traffic][direction] += 1;
                }
            }
        }
        assert!(seen.iter().flatten().all(|&packets| packets > 100), "{seen:?}");
        assert!(simulation.net.ports[0].counts.marked > 0, "marks leave the code point as it is");
    }
}
