//! Traffic that opens TCP connections: carries out what its programs decide.

use std::convert::Infallible;

use bufferscope_programs::{self as programs, Ask, ConnectionEvents, Sockets, StreamProgram, Transfer};
use bufferscope_records::{Name, TransferRow};
use bufferscope_scenario::{NodeIndex, Sending};

use super::connection::{Connection, Id, Opening};
use super::connections::Connections;
use super::setup::Setup;
use crate::network::packet::Role;
use crate::network::{Account, Labels, Network};
use crate::observation::recording::AnyRecording;
use crate::random::{Random, Stream};
use crate::tcp::{self, Egress, Timers};
use crate::timer_slots::TimerSlots;

/// The programs of one entry of traffic, and the connections they have opened.
#[derive(Debug)]
pub(crate) struct Streams {
    program: StreamProgram<programs::Random>,
    opened: Opened,
    slots: TimerSlots,
}

/// The connections of one entry of traffic.
#[derive(Debug)]
struct Opened {
    traffic: (u32, Name),
    labels: Labels,
    /// Client, then server.
    nodes: [NodeIndex; 2],
    configs: [tcp::Config; 2],
    /// Whether each of the two remembers slow-start thresholds.
    remember: [bool; 2],
    /// Seeds for the two ends of each connection.
    seeds: Random,
    /// Whether each connection has an account of its own. There may be millions of pages, so they share one.
    separate_accounts: bool,
    /// The slot of each connection in the table, by its number (the first is 1). Once a connection is forgotten, its
    /// slot may be reused.
    connection_slots: Vec<u32>,
}

/// The state outside the streams that a program's actions affect.
pub(crate) struct World<'a> {
    pub(crate) connections: &'a mut Connections,
    pub(crate) net: &'a mut Network,
    pub(crate) recording: &'a mut AnyRecording<'a>,
}

/// The sockets of a program.
struct SimSockets<'a, 'b> {
    opened: &'a mut Opened,
    world: &'a mut World<'b>,
}

impl Streams {
    /// The programs of an entry of traffic that opens TCP connections.
    pub(crate) fn new(setup: &Setup<'_>, net: &mut Network) -> Self {
        let Setup { traffic, index, seed, .. } = *setup;
        let sending = traffic.kind.sending().expect("it opens connections");
        let program = StreamProgram::new(traffic, index as usize, seed, setup.starts()).expect("it opens connections");
        let [client, server] = program.ends();
        if program.has_to_be_stopped() && traffic.stop_ns < setup.scenario.duration_ns {
            net.events.schedule(setup.slots.end(index), traffic.stop_ns);
        }
        let opened = Opened {
            traffic: (index, setup.name),
            labels: setup.labels(),
            nodes: [client, server],
            configs: [client, server].map(|node| setup.config(node, sending)),
            remember: [client, server].map(|node| setup.scenario.nodes[usize::from(node)].tcp.remember_ssthresh),
            seeds: Random::new(seed, Stream::Congestion(index)),
            separate_accounts: traffic.kind.connections_are_flows(),
            connection_slots: Vec::new(),
        };
        let streams = Self { program, opened, slots: setup.slots };
        streams.arm(net);
        streams
    }

    /// It is time for a planned action.
    pub(crate) fn begin(&mut self, world: &mut World<'_>) {
        let now_ns = world.net.now();
        let Ok(()) = self.program.on_time(now_ns, &mut SimSockets { opened: &mut self.opened, world });
        self.arm(world.net);
    }

    /// Handles the events of a connection.
    pub(crate) fn on_events(&mut self, number: u32, events: ConnectionEvents, world: &mut World<'_>) {
        let now_ns = world.net.now();
        let Ok(()) =
            self.program.on_events(now_ns, number, events, &mut SimSockets { opened: &mut self.opened, world });
        self.arm(world.net);
    }

    /// The traffic stops.
    pub(crate) fn stop(&mut self, world: &mut World<'_>) {
        let Ok(()) = self.program.on_stop(&mut SimSockets { opened: &mut self.opened, world });
    }

    /// The stop is brought forward to `stop_ns`.
    pub(crate) fn bring_stop_forward(&mut self, stop_ns: u64, net: &mut Network) {
        self.program.bring_stop_forward(stop_ns);
        if self.program.has_to_be_stopped() {
            net.events.schedule(self.slots.end(self.opened.traffic.0), stop_ns);
        }
    }

    /// From now on there are this many flows.
    pub(crate) fn set_flows(&mut self, flows: u32, world: &mut World<'_>) {
        let now_ns = world.net.now();
        let Ok(()) = self.program.set_flows(now_ns, flows, &mut SimSockets { opened: &mut self.opened, world });
        self.arm(world.net);
    }

    /// The transfers that have not completed. They will not be recorded again later.
    pub(crate) fn unfinished(&mut self) -> Vec<TransferRow> {
        self.program.unfinished().into_iter().map(|transfer| self.opened.row(transfer)).collect()
    }

    fn arm(&self, net: &mut Network) {
        if let Some(at_ns) = self.program.next_ns() {
            let slot = self.slots.begin(self.opened.traffic.0);
            let at_ns = at_ns.max(net.now());
            if net.events.scheduled_at(slot) != Some(at_ns) {
                net.events.schedule(slot, at_ns);
            }
        }
    }
}

impl Opened {
    fn row(&self, transfer: Transfer) -> TransferRow {
        let Transfer { connection, started_ns, finished_ns, bytes } = transfer;
        let traffic = self.traffic.1;
        TransferRow { traffic, flow: traffic.numbered(connection), started_ns, finished_ns, bytes }
    }
}

impl SimSockets<'_, '_> {
    /// The client of a connection acts, if the connection still exists.
    fn act(&mut self, number: u32, act: impl FnOnce(&mut Connection, u64, &mut dyn Egress)) {
        let id = Id { traffic: self.opened.traffic.0, number };
        let slot = self.opened.connection_slots[number as usize - 1];
        let World { connections, net, recording } = self.world;
        if connections.find(slot, id).is_some() {
            connections.act(slot, act, net, recording);
        }
    }
}

impl Sockets for SimSockets<'_, '_> {
    type Error = Infallible;

    fn open(&mut self, opening: &programs::Opening) -> Result<(), Infallible> {
        let opened = &mut *self.opened;
        let World { connections, net, recording } = self.world;
        let (traffic, number) = (opened.traffic.0, opening.number);
        let opening = Opening {
            id: Id { traffic, number },
            name: opened.traffic.1.numbered(number),
            account: Account { traffic, number: opened.separate_accounts.then_some(number) },
            labels: opened.labels,
            sender: match opening.data_from {
                programs::Role::Client => Role::Client,
                programs::Role::Server => Role::Server,
            },
            expects: opening.expects,
            nodes: opened.nodes,
            remember: opened.remember,
            configs: [0, 1].map(|side| {
                let config = opened.configs[side].clone();
                let pacing = config.pacing || net.is_pacing(opened.nodes[side]);
                tcp::Config { pacing, seed: opened.seeds.seed(), ..config }
            }),
        };
        opened.connection_slots.push(connections.open(&opening, net, recording));
        Ok(())
    }

    fn write(&mut self, connection: u32, bytes: u64) -> Result<(), Infallible> {
        self.act(connection, |connection, now_ns, out| connection.write(now_ns, bytes, out));
        Ok(())
    }

    fn hold(&mut self, connection: u32) -> Result<(), Infallible> {
        self.act(connection, |connection, _, _| connection.endpoint(Role::Client).hold());
        Ok(())
    }

    fn close(&mut self, connection: u32) -> Result<(), Infallible> {
        self.act(connection, Connection::close);
        Ok(())
    }

    fn ask(&mut self, connection: u32, ask: Ask) -> Result<(), Infallible> {
        self.act(connection, |connection, now_ns, out| connection.ask(now_ns, ask, out));
        Ok(())
    }

    fn delivered(&mut self, connection: u32) -> Result<u64, Infallible> {
        let id = Id { traffic: self.opened.traffic.0, number: connection };
        let slot = self.opened.connection_slots[connection as usize - 1];
        Ok(self.world.connections.find(slot, id).map_or(0, |connection| connection.delivered_bytes()))
    }

    fn record(&mut self, transfer: Transfer) -> Result<(), Infallible> {
        let row = self.opened.row(transfer);
        self.world.recording.recorder.transfer(row);
        Ok(())
    }
}

impl Setup<'_> {
    fn config(&self, node: NodeIndex, sending: Sending) -> tcp::Config {
        let unset = tcp::Config::DEFAULT;
        let host = &self.scenario.nodes[usize::from(node)].tcp;
        tcp::Config {
            initial_window_packets: host.initial_window_packets,
            rmem_default_bytes: host.rmem_default_bytes,
            rmem_max_bytes: host.rmem_max_bytes,
            wmem_default_bytes: host.wmem_default_bytes,
            wmem_max_bytes: host.wmem_max_bytes,
            notsent_lowat_bytes: host.notsent_lowat_bytes.unwrap_or(unset.notsent_lowat_bytes),
            congestion: sending.congestion,
            window_packets: sending.window_packets.unwrap_or(unset.window_packets),
            target_ns: sending.target_ns.unwrap_or(unset.target_ns),
            ecn: sending.ecn,
            pacing: sending.pacing,
            pacing_percent: host.pacing_percent,
            gso_max_segs: host.gso_max_segs,
            min_tso_segs: host.min_tso_segs,
            slow_start_after_idle: host.slow_start_after_idle,
            syn_linear_timeouts: host.syn_linear_timeouts,
            // Programs that answer requests set it, and it makes no difference to data written in large pieces.
            no_delay: true,
            timers: Timers::of_node(node, self.seed),
            ..unset
        }
    }
}
