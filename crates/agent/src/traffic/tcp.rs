//! All TCP traffic: bulk flows and pages.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

use bufferscope_records::{Name, TransferRow};
use bufferscope_scenario::{Scenario, Sending, TrafficKind};
use nix::sys::epoll::EpollFlags;

use super::Desk;
use super::connection::{Connection, Role, Served};
use super::hosts::Host;
use super::outgoing::Outgoing;
use super::scrutiny::{self, Supply};
use crate::kernel::socket::{self, TcpOptions};
use crate::reactor::Token;

/// Servers listen on this port and those after it, one for each entry of the scenario's traffic.
const FIRST_SERVER_PORT: u16 = 5001;
/// Data that waits unsent in the kernel is worth this much time of the fastest port: enough to keep it busy until this
/// program is asked for more, and no more, since what waits here is still sent after `stop`.
const UNSENT_NS: u64 = 2_000_000;
const UNSENT_BYTES: std::ops::RangeInclusive<u64> = 16 * 1024..=1 << 20;
/// A SYN is sent again after one second and after two more; a connection that then still waits is worth a warning.
const UNANSWERED_NS: u64 = 3_000_000_000;

/// All connections and flows.
#[derive(Debug)]
pub(super) struct Tcp {
    hosts: Vec<Option<Host>>,
    /// By traffic.
    services: Vec<Option<Service>>,
    connections: BTreeMap<u32, Connection>,
    /// Number of the next connection; they are never used again, so that a late event can't reach the wrong one.
    next: u32,
    flows: Vec<Flow>,
    /// How well the senders of each traffic were supplied with data.
    supplies: Vec<Supply>,
    /// Flows by traffic and the client's port, until the server has accepted them.
    arriving: HashMap<(usize, u16), usize>,
    unsent_bytes: u32,
}

/// A traffic entry's server.
#[derive(Debug)]
struct Service {
    listener: OwnedFd,
    address: SocketAddrV4,
    client: usize,
    job: Job,
    sending: Sending,
}

/// What the two programs do.
#[derive(Clone, Copy, Debug)]
enum Job {
    /// The client sends so much, or without end, and closes.
    Bulk { bytes: Option<u64> },
    /// The client sends a request; the server answers and closes.
    Page { request_bytes: u64, bytes: u64 },
}

/// One connection as the records know it.
#[derive(Debug)]
struct Flow {
    name: Name,
    traffic: usize,
    started_ns: u64,
    /// Its object, until that has arrived.
    object_bytes: Option<u64>,
}

impl Tcp {
    /// Opens the servers.
    pub(super) fn open(desk: &mut Desk<'_>) -> io::Result<Self> {
        let scenario = desk.scenario;
        let mut tcp = Self {
            hosts: scenario.nodes.iter().map(|_| None).collect(),
            services: Vec::new(),
            connections: BTreeMap::new(),
            next: 0,
            flows: Vec::new(),
            supplies: vec![Supply::default(); scenario.traffic.len()],
            arriving: HashMap::new(),
            unsent_bytes: unsent_bytes(scenario),
        };
        for (index, traffic) in scenario.traffic.iter().enumerate() {
            let [from, to] = [traffic.from, traffic.to].map(usize::from);
            let service = match &traffic.kind {
                TrafficKind::Ping(_) | TrafficKind::Bittorrent(_) => None,
                TrafficKind::Udp(_) | TrafficKind::Voip(_) | TrafficKind::Dns(_) => None,
                TrafficKind::Tcp(parameters) => {
                    let job = Job::Bulk { bytes: parameters.bytes };
                    Some(tcp.serve(index, [from, to], job, parameters.sending, desk)?)
                }
                TrafficKind::Web(parameters) => {
                    let job = Job::Page { request_bytes: parameters.request_bytes.into(), bytes: parameters.bytes };
                    Some(tcp.serve(index, [to, from], job, parameters.sending, desk)?)
                }
            };
            tcp.services.push(service);
        }
        Ok(tcp)
    }

    /// Opens the next connection of a traffic, its `number`th.
    pub(super) fn connect(&mut self, traffic: usize, number: u64, desk: &mut Desk<'_>) -> io::Result<()> {
        let Some(service) = &self.services[traffic] else { return Ok(()) };
        let Some(host) = &mut self.hosts[service.client] else { return Ok(()) };
        let (role, object_bytes) = match service.job {
            Job::Bulk { bytes } => (Role::Sender(Outgoing::new(bytes, true)), bytes),
            Job::Page { request_bytes, bytes } => {
                let request = Outgoing::new(Some(request_bytes), false);
                (Role::Receiver { request, received: 0 }, Some(bytes))
            }
        };
        let port = host.port();
        host.ask_for_ecn(service.sending.ecn)?;
        desk.network.namespaces[service.client].enter()?;
        let local = SocketAddrV4::new(desk.network.plan.addresses[service.client], port);
        let entry = &desk.scenario.traffic[traffic];
        let socket = socket::tcp(local, self.options(service.sending, entry.dscp))?;
        let name = desk.recorder.intern(&format!("{}/{number}", entry.name));
        let started_ns = desk.now_ns();
        socket::start_connect(&socket, service.address)?;
        let flow = self.flows.len();
        self.flows.push(Flow { name, traffic, started_ns, object_bytes });
        self.arriving.insert((traffic, port), flow);
        self.add(Connection::client(socket, flow, role), desk)
    }

    /// Connections have arrived at a server.
    pub(super) fn accept(&mut self, traffic: usize, desk: &mut Desk<'_>) -> io::Result<()> {
        while let Some(service) = &self.services[traffic] {
            let Some((socket, remote)) = socket::accept(&service.listener)? else { break };
            let Some(flow) = self.arriving.remove(&(traffic, remote.port())) else { continue };
            let role = match service.job {
                Job::Bulk { .. } => Role::Receiver { request: Outgoing::new(Some(0), false), received: 0 },
                Job::Page { request_bytes, bytes } => {
                    Role::Server { awaited: request_bytes, response: Outgoing::new(Some(bytes), true) }
                }
            };
            self.add(Connection::server(socket, flow, role)?, desk)?;
        }
        Ok(())
    }

    /// A connection is ready.
    pub(super) fn ready(&mut self, number: u32, flags: EpollFlags, desk: &mut Desk<'_>) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&number) else { return Ok(()) };
        let flow = &mut self.flows[connection.flow];
        let served = connection.serve(flags).unwrap_or_else(|error| {
            let traffic = &desk.scenario.traffic[flow.traffic].name;
            desk.warnings.add(format!("a connection of `{traffic}` failed: {error}"));
            Served { received: None, done: true, agreed: None }
        });
        if let Some((info, service)) = served.agreed.zip(self.services[flow.traffic].as_ref()) {
            scrutiny::check_handshake(&info, service.sending.ecn, flow.traffic, desk);
        }
        if served.received.zip(flow.object_bytes).is_some_and(|(received, bytes)| received >= bytes) {
            flow.arrived(desk);
        }
        if served.done {
            if let Some(info) = connection.conclude()? {
                self.supplies[flow.traffic].add(&info);
            }
            self.connections.remove(&number);
            return Ok(());
        }
        let wanted = connection.wanted();
        if wanted != connection.interest {
            connection.interest = wanted;
            desk.reactor.change(&connection.socket, wanted, Token::Connection(number))?;
        }
        Ok(())
    }

    /// Ends the flows without end of a traffic.
    pub(super) fn stop(&mut self, traffic: usize, desk: &mut Desk<'_>) -> io::Result<()> {
        for (number, connection) in &mut self.connections {
            if self.flows[connection.flow].traffic == traffic {
                connection.stop()?;
                connection.interest = connection.wanted();
                desk.reactor.change(&connection.socket, connection.interest, Token::Connection(*number))?;
            }
        }
        Ok(())
    }

    /// Records a sample of every flow.
    pub(super) fn sample(&self, desk: &mut Desk<'_>) -> io::Result<()> {
        for connection in self.connections.values() {
            let Flow { name, traffic, .. } = self.flows[connection.flow];
            let Some(service) = &self.services[traffic] else { continue };
            if let Some(row) = connection.sample(desk.now_ns(), name, service.sending)? {
                desk.recorder.flow(row);
            }
        }
        Ok(())
    }

    /// The scenario is over: objects that have not arrived are unfinished.
    pub(super) fn end(&mut self, desk: &mut Desk<'_>) -> io::Result<()> {
        for connection in self.connections.values().filter(|connection| !connection.stands()) {
            let flow = &self.flows[connection.flow];
            if flow.started_ns + UNANSWERED_NS < desk.now_ns() {
                let traffic = &desk.scenario.traffic[flow.traffic].name;
                desk.warnings.add(format!("a connection of `{traffic}` was never answered"));
            }
        }
        for flow in &mut self.flows {
            flow.record_transfer(None, desk);
        }
        for connection in self.connections.values() {
            if let Some(info) = connection.conclude()? {
                self.supplies[self.flows[connection.flow].traffic].add(&info);
            }
        }
        for (supply, traffic) in self.supplies.iter().zip(&desk.scenario.traffic) {
            supply.check(&traffic.name, &mut desk.warnings);
        }
        Ok(())
    }

    fn options(&self, sending: Sending, dscp: u8) -> TcpOptions {
        let Sending { congestion, pacing, .. } = sending;
        TcpOptions { congestion, pacing, dscp, unsent_bytes: self.unsent_bytes }
    }

    fn serve(
        &mut self,
        traffic: usize,
        [client, server]: [usize; 2],
        job: Job,
        sending: Sending,
        desk: &mut Desk<'_>,
    ) -> io::Result<Service> {
        for node in [client, server] {
            if self.hosts[node].is_none() {
                self.hosts[node] = Some(Host::open(desk.network, node)?);
            }
        }
        let port = u16::try_from(traffic).ok().and_then(|index| FIRST_SERVER_PORT.checked_add(index));
        let port = port.ok_or_else(|| io::Error::other("more traffic than there are ports"))?;
        let address = SocketAddrV4::new(desk.network.plan.addresses[server], port);
        desk.network.namespaces[server].enter()?;
        let listener = socket::listener(address, self.options(sending, desk.scenario.traffic[traffic].dscp))?;
        desk.reactor.watch(&listener, EpollFlags::EPOLLIN, Token::Listener(traffic as u32))?;
        Ok(Service { listener, address, client, job, sending })
    }

    fn add(&mut self, connection: Connection, desk: &mut Desk<'_>) -> io::Result<()> {
        desk.reactor.watch(&connection.socket, connection.interest, Token::Connection(self.next))?;
        self.connections.insert(self.next, connection);
        self.next += 1;
        Ok(())
    }
}

impl Flow {
    /// The whole object has arrived.
    fn arrived(&mut self, desk: &mut Desk<'_>) {
        let now_ns = desk.now_ns();
        self.record_transfer((now_ns <= desk.scenario.duration_ns).then_some(now_ns), desk);
    }

    fn record_transfer(&mut self, finished_ns: Option<u64>, desk: &mut Desk<'_>) {
        let Some(bytes) = self.object_bytes.take() else { return };
        let traffic = desk.recorder.intern(&desk.scenario.traffic[self.traffic].name);
        desk.recorder.transfer(TransferRow {
            traffic,
            flow: self.name,
            started_ns: self.started_ns,
            finished_ns,
            bytes,
        });
    }
}

fn unsent_bytes(scenario: &Scenario) -> u32 {
    let ports = scenario.links.iter().flat_map(|link| [&link.forward, &link.reverse]);
    let steps = ports.filter_map(|port| port.rate.as_ref()).flat_map(|rate| rate.steps());
    let fastest_bps = steps.map(|step| step.bits_per_second).max().unwrap_or(u64::MAX);
    let bytes = u128::from(fastest_bps) * u128::from(UNSENT_NS) / 8_000_000_000;
    (bytes as u64).clamp(*UNSENT_BYTES.start(), *UNSENT_BYTES.end()) as u32
}
