//! The run itself: takes event after event and hands it to whom it concerns.

use std::ops::ControlFlow;

use bufferscope_programs::News;
use bufferscope_records::{Recorder, Sink};
use bufferscope_scenario::{BittorrentTraffic, Scenario, TcpTraffic, TrafficKind, WebTraffic};

use crate::connection::Id;
use crate::connections::Connections;
use crate::datagrams::{Datagrams, DatagramsSetup, Dns, Udp, Voip};
use crate::network::Network;
use crate::packet::Body;
use crate::ping::{Ping, PingSetup};
use crate::recording::Recording;
use crate::routes::{PortIndex, Step};
use crate::slots::{Slots, Target};
use crate::streams::{Streams, StreamsSetup, Surroundings};
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
    sources: Vec<Source>,
    slots: Slots,
    /// The duration is over; only the answers to probes are awaited.
    lingering: bool,
    events: u64,
    /// Work done since the last report.
    work: u64,
}

/// One traffic of the scenario.
#[derive(Debug)]
enum Source {
    Ping(Ping),
    Streams(Box<Streams>),
    Datagrams(Datagrams),
}

impl<'a, S: Sink> Simulation<'a, S> {
    pub(crate) fn new(scenario: &'a Scenario, seed: u64, recorder: Recorder<S>) -> Result<Self, SimError> {
        let slots = Slots::new(2 * scenario.links.len(), scenario.traffic.len());
        let mut recording = Recording::new(scenario, recorder);
        let mut net = Network::new(scenario, seed, slots)?;
        net.events.schedule_first(slots.sampler(), 0);
        net.events.schedule_first(slots.second(), SECOND_NS);
        let sources = sources(scenario, seed, slots, &mut net, &mut recording);
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
        while !self.lingering || self.is_waiting() {
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
                    match body {
                        Body::Tcp(segment) => {
                            let news = self.connections.receive(&segment, ecn, &mut self.net, &mut self.recording);
                            if let Some((id, news)) = news {
                                self.tell(id, news);
                            }
                        }
                        Body::Echo(echo) => {
                            let (ping, net, recording) = self.ping(echo.ping);
                            ping.receive(echo, net, recording);
                        }
                        Body::Datagram(datagram) => {
                            let (datagrams, net, recording) = self.datagrams(datagram.traffic);
                            datagrams.receive(datagram, net, recording);
                        }
                    }
                }
            }
        }
    }

    /// Takes a sample: it shows what was before everything that happens in the same nanosecond.
    fn sample(&mut self) {
        let now_ns = self.net.now();
        self.recording.sample_queues(now_ns, &self.net.ports);
        self.work += self.connections.sample(now_ns, &mut self.recording);
        for source in &self.sources {
            self.work += source.sample(now_ns, &mut self.recording);
        }
        self.connections.recycle(&mut self.net);
        if now_ns < self.scenario.duration_ns {
            let next_ns = (now_ns + self.scenario.sample_interval_ns).min(self.scenario.duration_ns);
            self.net.events.schedule_first(self.slots.sampler(), next_ns);
        } else {
            self.give_up_transfers();
            self.sources.iter_mut().for_each(|source| source.give_up(&mut self.recording));
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
        if self.lingering {
            return;
        }
        let Self { sources, connections, net, recording, .. } = self;
        match &mut sources[traffic as usize] {
            Source::Ping(ping) => ping.begin(net, recording),
            Source::Streams(streams) => streams.begin(&mut Surroundings { connections, net, recording }),
            Source::Datagrams(datagrams) => datagrams.begin(net, recording),
        }
    }

    fn end(&mut self, traffic: u32) {
        let Self { sources, connections, net, recording, .. } = self;
        match &mut sources[traffic as usize] {
            Source::Ping(ping) => ping.time_out(net, recording),
            Source::Streams(streams) => streams.stop(&mut Surroundings { connections, net, recording }),
            Source::Datagrams(datagrams) => datagrams.time_out(net, recording),
        }
    }

    /// Tells programs what has become of a connection of theirs.
    #[cold]
    fn tell(&mut self, id: Id, news: News) {
        let Self { sources, connections, net, recording, .. } = self;
        if let Source::Streams(streams) = &mut sources[id.traffic as usize] {
            streams.hear(id.number, news, &mut Surroundings { connections, net, recording });
        }
    }

    /// Records the transfers that have not come to their end, oldest first.
    fn give_up_transfers(&mut self) {
        let Self { sources, recording, .. } = self;
        let streams = sources.iter_mut().filter_map(|source| match source {
            Source::Streams(streams) => Some(streams),
            Source::Ping(_) | Source::Datagrams(_) => None,
        });
        let mut unfinished: Vec<_> = streams.flat_map(|streams| streams.unfinished(recording)).collect();
        unfinished.sort_by_key(|row| row.started_ns);
        unfinished.into_iter().for_each(|row| recording.recorder.transfer(row));
    }

    #[inline]
    fn settle_losses(&mut self) {
        while let Some(body) = self.net.lost.pop() {
            match body {
                Body::Echo(echo) => {
                    let (ping, _, recording) = self.ping(echo.ping);
                    ping.lose(echo, recording);
                }
                Body::Datagram(datagram) => {
                    let (datagrams, _, recording) = self.datagrams(datagram.traffic);
                    datagrams.lose(datagram, recording);
                }
                Body::Tcp(_) => {}
            }
        }
    }

    #[inline]
    fn settle_departures(&mut self) {
        while let Some(packet) = self.net.departures.pop() {
            self.connections.depart(&packet, &mut self.net, &mut self.recording);
        }
    }

    fn ping(&mut self, traffic: u32) -> (&mut Ping, &mut Network, &mut Recording<S>) {
        match &mut self.sources[traffic as usize] {
            Source::Ping(ping) => (ping, &mut self.net, &mut self.recording),
            Source::Streams(_) | Source::Datagrams(_) => unreachable!("only pings send echo messages"),
        }
    }

    fn datagrams(&mut self, traffic: u32) -> (&mut Datagrams, &mut Network, &mut Recording<S>) {
        match &mut self.sources[traffic as usize] {
            Source::Datagrams(datagrams) => (datagrams, &mut self.net, &mut self.recording),
            Source::Ping(_) | Source::Streams(_) => unreachable!("only traffic over UDP sends datagrams"),
        }
    }

    /// Whether a probe, or a packet of a call, is still awaited.
    fn is_waiting(&self) -> bool {
        self.sources.iter().any(Source::is_waiting)
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

impl Source {
    /// Samples the flows that it keeps itself; returns how many there were.
    fn sample<S: Sink>(&self, now_ns: u64, recording: &mut Recording<S>) -> u64 {
        match self {
            Self::Datagrams(datagrams) => datagrams.sample(now_ns, recording),
            Self::Ping(_) | Self::Streams(_) => 0,
        }
    }

    /// Records what has not arrived by the end of the duration.
    fn give_up<S: Sink>(&mut self, recording: &mut Recording<S>) {
        match self {
            Self::Datagrams(datagrams) => datagrams.give_up(recording),
            Self::Ping(_) | Self::Streams(_) => {}
        }
    }

    fn is_waiting(&self) -> bool {
        match self {
            Self::Ping(ping) => ping.is_waiting(),
            Self::Datagrams(datagrams) => datagrams.is_waiting(),
            Self::Streams(_) => false,
        }
    }
}

fn sources<S: Sink>(
    scenario: &Scenario,
    seed: u64,
    slots: Slots,
    net: &mut Network,
    recording: &mut Recording<S>,
) -> Vec<Source> {
    let source = |(index, traffic): (u32, &bufferscope_scenario::Traffic)| {
        let name = recording.recorder.intern(&traffic.name);
        let datagrams = DatagramsSetup { traffic, index, name, seed, slots };
        match &traffic.kind {
            TrafficKind::Udp(parameters) => {
                Source::Datagrams(Datagrams::Udp(Udp::new(&datagrams, parameters, net, recording)))
            }
            TrafficKind::Voip(parameters) => {
                Source::Datagrams(Datagrams::Voip(Voip::new(&datagrams, parameters, net, recording)))
            }
            TrafficKind::Dns(parameters) => {
                Source::Datagrams(Datagrams::Dns(Dns::new(&datagrams, parameters, net, recording)))
            }
            TrafficKind::Tcp(TcpTraffic { sending, .. })
            | TrafficKind::Web(WebTraffic { sending, .. })
            | TrafficKind::Bittorrent(BittorrentTraffic { sending, .. }) => {
                let setup = StreamsSetup { scenario, traffic, index, name, seed, slots };
                Source::Streams(Box::new(Streams::new(&setup, *sending, net)))
            }
            TrafficKind::Ping(parameters) => {
                let flow = recording.recorder.intern(&format!("{}/1", traffic.name));
                let setup = PingSetup { traffic, index, name, flow, seed, slots };
                Source::Ping(Ping::new(&setup, parameters, net))
            }
        }
    };
    (0_u32..).zip(&scenario.traffic).map(source).collect()
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
