//! The TCP connections of all traffic, and what the programs do with them.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

use bufferscope_endpoint::socket::{self, TcpOptions};
use bufferscope_programs::{Ask, Opening, Role, Transfer};
use bufferscope_records::{Table, TransferRow};
use bufferscope_scenario::{NodeIndex, Sending};
use nix::sys::epoll::EpollFlags;

use super::RunContext;
use super::connection::{Connection, Served};
use super::flow::{Flow, Notification};
use super::hosts::Host;
use super::outgoing::Outgoing;
use super::tcp_checks::{self, Supply};
use crate::reactor::Token;

/// A SYN is retransmitted after one second and again after two more. If a connection still waits after that, there is a
/// warning.
const UNANSWERED_NS: u64 = 3_000_000_000;

/// All connections and flows.
#[derive(Debug)]
pub(super) struct Tcp {
    hosts: Vec<Option<Host>>,
    /// By traffic.
    services: Vec<Option<Service>>,
    connections: BTreeMap<u32, Connection>,
    /// Number of the next connection. Numbers are never reused, so a late event cannot reach the wrong connection.
    next: u32,
    flows: Vec<Flow>,
    /// How well the senders of each entry of traffic were supplied with data.
    supplies: Vec<Supply>,
    /// Flows that the server has not accepted yet, by traffic and the client's port.
    arriving: HashMap<(usize, u16), usize>,
}

/// The server of an entry of traffic.
#[derive(Debug)]
struct Service {
    listener: OwnedFd,
    address: SocketAddrV4,
    client: usize,
    sending: Sending,
    /// Its flows, by their number from 1 on.
    flows: Vec<usize>,
}

impl Tcp {
    /// Opens the servers; `ends` holds the nodes of client and server for each entry that uses TCP.
    pub(super) fn open(ends: &[Option<[NodeIndex; 2]>], context: &mut RunContext<'_>) -> io::Result<Self> {
        let scenario = context.scenario;
        let mut tcp = Self {
            hosts: scenario.nodes.iter().map(|_| None).collect(),
            services: Vec::new(),
            connections: BTreeMap::new(),
            next: 0,
            flows: Vec::new(),
            supplies: vec![Supply::default(); scenario.traffic.len()],
            arriving: HashMap::new(),
        };
        for (index, (traffic, ends)) in scenario.traffic.iter().zip(ends).enumerate() {
            let service = match ends.zip(traffic.kind.sending()) {
                Some((ends, sending)) => Some(tcp.serve(index, ends.map(usize::from), sending, context)?),
                None => None,
            };
            tcp.services.push(service);
        }
        Ok(tcp)
    }

    /// Opens the next connection of an entry of traffic.
    pub(super) fn connect(
        &mut self,
        traffic: usize,
        opening: &Opening,
        context: &mut RunContext<'_>,
    ) -> io::Result<()> {
        let Some(service) = &self.services[traffic] else { return Ok(()) };
        let Some(host) = &mut self.hosts[service.client] else { return Ok(()) };
        let port = host.port();
        host.ask_for_ecn(service.sending.ecn)?;
        context.network.namespaces[service.client].enter()?;
        let local = SocketAddrV4::new(context.network.plan.addresses[service.client], port);
        let entry = &context.scenario.traffic[traffic];
        let socket = socket::tcp(local, Self::options(service.sending, entry.dscp))?;
        let name = context.recorder.intern(&format!("{}/{}", entry.name, opening.number));
        let started_ns = context.now_ns();
        socket::start_connect(&socket, service.address)?;
        let flow = self.flows.len();
        self.flows.push(Flow::new(name, traffic, opening, started_ns));
        self.arriving.insert((traffic, port), flow);
        if let Some(service) = &mut self.services[traffic] {
            service.flows.push(flow);
        }
        self.add(Connection::client(socket, flow), context)
    }

    /// Connections have arrived at a server.
    pub(super) fn accept(&mut self, traffic: usize, context: &mut RunContext<'_>) -> io::Result<()> {
        while let Some(service) = &self.services[traffic] {
            let Some((socket, remote)) = socket::accept(&service.listener)? else { break };
            let Some(flow) = self.arriving.remove(&(traffic, remote.port())) else { continue };
            self.add(Connection::server(socket, flow)?, context)?;
        }
        Ok(())
    }

    /// A connection is ready; returns the events for the programs.
    pub(super) fn ready(
        &mut self,
        number: u32,
        flags: EpollFlags,
        context: &mut RunContext<'_>,
    ) -> io::Result<Option<Notification>> {
        let Some(connection) = self.connections.get_mut(&number) else { return Ok(None) };
        let flow = &mut self.flows[connection.flow];
        let served = connection.serve(flags).and_then(|served| {
            flow.answer(connection, served.received)?;
            Ok(served)
        });
        let served = served.unwrap_or_else(|error| {
            let traffic = &context.scenario.traffic[flow.traffic].name;
            context.warnings.add(format!("a connection of `{traffic}` failed: {error}"));
            Served { received: 0, done: true, agreed: None }
        });
        if let Some((info, service)) = served.agreed.zip(self.services[flow.traffic].as_ref()) {
            tcp_checks::check_handshake(&info, service.sending.ecn, flow.traffic, context);
        }
        let events = flow.events(connection.role, &served);
        if served.done {
            self.forget(number, context)?;
        } else {
            connection.watch(number, context)?;
        }
        Ok(events)
    }

    /// The client program of a flow acts; does nothing if the connection is over.
    pub(super) fn act(
        &mut self,
        traffic: usize,
        number: u32,
        context: &mut RunContext<'_>,
        act: impl FnOnce(&mut Outgoing),
    ) -> io::Result<()> {
        let Some(flow) = self.flow(traffic, number) else { return Ok(()) };
        let Some(end) = flow.ends[Role::Client as usize] else { return Ok(()) };
        let Some(connection) = self.connections.get_mut(&end) else { return Ok(()) };
        act(&mut connection.outgoing);
        // Errors are reported when the socket is served.
        let _ = connection.pump();
        connection.watch(end, context)
    }

    /// The client of a flow makes a request.
    pub(super) fn ask(
        &mut self,
        traffic: usize,
        number: u32,
        ask: Ask,
        context: &mut RunContext<'_>,
    ) -> io::Result<()> {
        if let Some(flow) = self.flow(traffic, number) {
            flow.ask(ask);
        }
        self.act(traffic, number, context, |outgoing| outgoing.write(ask.request_bytes))
    }

    /// Acknowledged payload of a flow so far; 0 once the connection is over.
    pub(super) fn delivered(&mut self, traffic: usize, number: u32) -> io::Result<u64> {
        let Some(flow) = self.flow(traffic, number) else { return Ok(0) };
        let end = flow.ends[flow.data_from as usize];
        let Some(connection) = end.and_then(|end| self.connections.get(&end)) else { return Ok(0) };
        Ok(connection.info()?.map_or(0, |info| connection.outgoing.delivered(info.bytes_acked)))
    }

    /// Records a transfer. It counts as unfinished if it ended after the scenario.
    pub(super) fn record(&mut self, traffic: usize, transfer: Transfer, context: &mut RunContext<'_>) {
        let Some(&Flow { name: flow, .. }) = self.flow(traffic, transfer.connection).as_deref() else { return };
        let Transfer { started_ns, finished_ns, bytes, .. } = transfer;
        let finished_ns = finished_ns.filter(|at_ns| *at_ns <= context.scenario.duration_ns);
        let traffic = context.recorder.intern(&context.scenario.traffic[traffic].name);
        context.recorder.transfer(TransferRow { traffic, flow, started_ns, finished_ns, bytes });
    }

    /// Records a sample of every flow.
    pub(super) fn sample(&self, context: &mut RunContext<'_>) -> io::Result<()> {
        self.connections.values().try_for_each(|connection| self.sample_one(connection, context))
    }

    /// The scenario is over.
    pub(super) fn end(&mut self, context: &mut RunContext<'_>) -> io::Result<()> {
        for connection in self.connections.values().filter(|connection| !connection.established()) {
            let flow = &self.flows[connection.flow];
            if flow.started_ns + UNANSWERED_NS < context.now_ns() {
                let traffic = &context.scenario.traffic[flow.traffic].name;
                context.warnings.add(format!("a connection of `{traffic}` was never answered"));
            }
        }
        for connection in self.connections.values() {
            self.flows[connection.flow].conclude(connection, &mut self.supplies)?;
        }
        for (supply, traffic) in self.supplies.iter().zip(&context.scenario.traffic) {
            supply.check(&traffic.name, &mut context.warnings);
        }
        Ok(())
    }

    fn flow(&mut self, traffic: usize, number: u32) -> Option<&mut Flow> {
        let service = self.services[traffic].as_ref()?;
        let flow = *service.flows.get((number as usize).checked_sub(1)?)?;
        self.flows.get_mut(flow)
    }

    /// A connection has nothing left to do. Its last sample is taken now, because it may have opened and closed since
    /// the previous sample.
    fn forget(&mut self, number: u32, context: &mut RunContext<'_>) -> io::Result<()> {
        let Some(connection) = self.connections.remove(&number) else { return Ok(()) };
        self.sample_one(&connection, context)?;
        let flow = &mut self.flows[connection.flow];
        flow.ends[connection.role as usize] = None;
        flow.conclude(&connection, &mut self.supplies)
    }

    fn sample_one(&self, connection: &Connection, context: &mut RunContext<'_>) -> io::Result<()> {
        if !context.recorder.records(Table::Flows) {
            return Ok(());
        }
        let &Flow { name, traffic, data_from, .. } = &self.flows[connection.flow];
        let service = self.services[traffic].as_ref().filter(|_| connection.role == data_from);
        let Some(service) = service else { return Ok(()) };
        if let Some(row) = connection.sample(context.now_ns(), name, service.sending)? {
            context.recorder.flow(row);
        }
        Ok(())
    }

    fn options(sending: Sending, dscp: u8) -> TcpOptions {
        let Sending { congestion, pacing, .. } = sending;
        TcpOptions { congestion, pacing, dscp }
    }

    fn serve(
        &mut self,
        traffic: usize,
        [client, server]: [usize; 2],
        sending: Sending,
        context: &mut RunContext<'_>,
    ) -> io::Result<Service> {
        for node in [client, server] {
            if self.hosts[node].is_none() {
                self.hosts[node] = Some(Host::open(context.network, node)?);
            }
        }
        let address = SocketAddrV4::new(context.network.plan.addresses[server], context.server_ports[traffic]);
        context.network.namespaces[server].enter()?;
        let listener = socket::listener(address, Self::options(sending, context.scenario.traffic[traffic].dscp))?;
        context.reactor.watch(&listener, EpollFlags::EPOLLIN, Token::Listener(traffic as u32))?;
        Ok(Service { listener, address, client, sending, flows: Vec::new() })
    }

    fn add(&mut self, connection: Connection, context: &mut RunContext<'_>) -> io::Result<()> {
        self.flows[connection.flow].ends[connection.role as usize] = Some(self.next);
        context.reactor.watch(&connection.socket, connection.interest, Token::Connection(self.next))?;
        self.connections.insert(self.next, connection);
        self.next += 1;
        Ok(())
    }
}
