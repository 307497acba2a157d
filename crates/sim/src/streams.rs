//! The traffic that opens TCP connections: bulk flows that start together, pages fetched at an interval.

use bufferscope_records::{Name, Sink};
use bufferscope_scenario::{NodeIndex, Scenario, Sending, TcpTraffic, Traffic, WebTraffic};

use crate::connection::{Job, Opening};
use crate::connections::Connections;
use crate::network::{Account, Network};
use crate::random::{Random, Stream};
use crate::recording::Recording;
use crate::slots::Slots;
use crate::tcp::{self, Timers};

/// A connection begins up to this much later than planned.
///
/// Programs started "at the same time" open their connections within about a millisecond of one another: forking, loading
/// and name look-up take that long. Without it, flows of equal parameters would send every packet in the same nanosecond.
pub(crate) const START_JITTER_NS: u64 = 1_000_000;

/// Something that opens connections, one after the other.
#[derive(Debug)]
pub(crate) struct Streams {
    name: String,
    traffic: (u32, Name),
    dscp: u8,
    /// Client, then server.
    nodes: [NodeIndex; 2],
    configs: [tcp::Config; 2],
    /// Seeds for the two ends of each connection.
    seeds: Random,
    job: Job,
    slots: Slots,
    /// Connections opened so far.
    opened: u64,
    schedule: Schedule,
    /// Nothing begins at or after this time.
    stop_ns: u64,
}

/// When connections are opened.
#[derive(Debug)]
enum Schedule {
    /// At these times, latest first.
    Times(Vec<u64>),
    /// At a fixed interval, each time with some jitter.
    Periodic { start_ns: u64, interval_ns: u64, random: Random },
}

/// What [`Streams`] are made of, besides their parameters.
#[derive(Debug)]
pub(crate) struct StreamsSetup<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) traffic: &'a Traffic,
    pub(crate) index: u32,
    pub(crate) name: Name,
    pub(crate) seed: u64,
    pub(crate) slots: Slots,
}

impl Streams {
    /// Bulk flows: `from` is the client and sends.
    pub(crate) fn bulk(setup: &StreamsSetup<'_>, parameters: &TcpTraffic, net: &mut Network) -> Self {
        let mut random = setup.random();
        let Traffic { start_ns, stop_ns, .. } = *setup.traffic;
        let flows = if start_ns < stop_ns { parameters.flows } else { 0 };
        let mut times: Vec<u64> = (0..flows).map(|_| start_ns + random.below(START_JITTER_NS)).collect();
        times.sort_unstable_by(|a, b| b.cmp(a));
        let nodes = [setup.traffic.from, setup.traffic.to];
        if stop_ns < setup.scenario.duration_ns {
            net.events.schedule(setup.slots.end(setup.index), stop_ns);
        }
        setup.finish(
            nodes,
            setup.configs(nodes, parameters.sending, net),
            Job::Bulk { bytes: parameters.bytes },
            Schedule::Times(times),
            net,
        )
    }

    /// Pages: `to` is the client, `from` the server that sends them.
    pub(crate) fn web(setup: &StreamsSetup<'_>, parameters: &WebTraffic, net: &mut Network) -> Self {
        let nodes = [setup.traffic.to, setup.traffic.from];
        setup.finish(
            nodes,
            setup.configs(nodes, parameters.sending, net),
            Job::Page { request_bytes: u64::from(parameters.request_bytes), bytes: parameters.bytes },
            Schedule::Periodic {
                start_ns: setup.traffic.start_ns,
                interval_ns: parameters.interval_ns,
                random: setup.random(),
            },
            net,
        )
    }

    /// Time to open the next connection.
    pub(crate) fn begin<S: Sink>(
        &mut self,
        connections: &mut Connections,
        net: &mut Network,
        recording: &mut Recording<S>,
    ) {
        self.opened += 1;
        let opening = Opening {
            name: recording.recorder.intern(&format!("{}/{}", self.name, self.opened)),
            traffic: self.traffic.1,
            account: self.account(),
            dscp: self.dscp,
            job: self.job,
            nodes: self.nodes,
            configs: self.configs.clone().map(|config| tcp::Config { seed: self.seeds.seed(), ..config }),
        };
        connections.open(&opening, net, recording);
        self.arm(net);
    }

    /// There may be millions of pages: they share an account.
    fn account(&self) -> Account {
        let number = match self.job {
            Job::Bulk { .. } => Some(self.opened),
            Job::Page { .. } => None,
        };
        Account { traffic: self.traffic.0, number }
    }

    fn arm(&mut self, net: &mut Network) {
        let at_ns = match &mut self.schedule {
            Schedule::Times(times) => times.pop(),
            Schedule::Periodic { start_ns, interval_ns, random } => {
                let nominal_ns = *start_ns + self.opened * *interval_ns;
                (nominal_ns < self.stop_ns).then(|| nominal_ns + random.below(START_JITTER_NS))
            }
        };
        if let Some(at_ns) = at_ns {
            let at_ns = at_ns.min(self.stop_ns.saturating_sub(1)).max(net.now());
            net.events.schedule(self.slots.begin(self.traffic.0), at_ns);
        }
    }
}

impl StreamsSetup<'_> {
    fn random(&self) -> Random {
        Random::new(self.seed, Stream::Traffic(self.index))
    }

    /// Hosts are not switched on at the same time, so their clocks do not tick together.
    fn timers(&self, node: NodeIndex) -> Timers {
        let mut random = Random::new(self.seed, Stream::Clock(node.into()));
        Timers::Jiffies { age_ns: random.below(Timers::AGES_NS) }
    }

    fn configs(&self, nodes: [NodeIndex; 2], sending: Sending, net: &Network) -> [tcp::Config; 2] {
        let [client, server] = nodes;
        [(client, server), (server, client)].map(|(node, peer)| {
            let host_queue = net.queues_at(node, peer);
            tcp::Config { host_queue, ..self.config(node, sending) }
        })
    }

    fn config(&self, node: NodeIndex, sending: Sending) -> tcp::Config {
        let unset = tcp::Config::DEFAULT;
        let host = &self.scenario.nodes[usize::from(node)].tcp;
        tcp::Config {
            initial_window_packets: host.initial_window_packets,
            rmem_default_bytes: host.rmem_default_bytes,
            rmem_max_bytes: host.rmem_max_bytes,
            congestion: sending.congestion,
            window_packets: sending.window_packets.unwrap_or(unset.window_packets),
            target_ns: sending.target_ns.unwrap_or(unset.target_ns),
            ecn: sending.ecn,
            pacing: sending.pacing,
            pacing_percent: host.pacing_percent,
            slow_start_after_idle: host.slow_start_after_idle,
            timers: self.timers(node),
            ..unset
        }
    }

    fn finish(
        &self,
        nodes: [NodeIndex; 2],
        configs: [tcp::Config; 2],
        job: Job,
        schedule: Schedule,
        net: &mut Network,
    ) -> Streams {
        let mut streams = Streams {
            name: self.traffic.name.clone(),
            traffic: (self.index, self.name),
            dscp: self.traffic.dscp,
            nodes,
            configs,
            seeds: Random::new(self.seed, Stream::Congestion(self.index)),
            job,
            slots: self.slots,
            opened: 0,
            schedule,
            stop_ns: self.traffic.stop_ns,
        };
        streams.arm(net);
        streams
    }
}
