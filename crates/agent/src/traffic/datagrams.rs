//! Traffic over UDP: the sockets of the programs on the hosts. If datagrams become due while this program does something
//! else, they are sent together as soon as possible, which keeps their average rate. Where that spoils the result, it is
//! reported.

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

use bufferscope_endpoint::datagram::{NUMBER_BYTES, send_number, take};
use bufferscope_endpoint::socket;
use bufferscope_programs::{
    Arrival, Counted, Datagram, DatagramProgram, DatagramSockets, NetalyzrEstimate, NetalyzrStage, Outcome, Punctual,
    Transfer,
};
use bufferscope_records::{self as records, EstimateRow, FlowRow, Name, TransferRow};
use bufferscope_scenario::{End, LAST_SERVER_PORT};
use nix::sys::epoll::EpollFlags;

use super::RunContext;
use crate::reactor::{Event, Token};

/// Sockets that others do not send to first use this port and those after it, in the order in which they are opened. So
/// each flow has ports of its own.
const FIRST_SENDER_PORT: u16 = LAST_SERVER_PORT + 1;
/// The largest datagram; a packet of 1500 bytes holds less.
const DATAGRAM_BYTES: usize = 2048;
/// Number of datagrams that are read from a socket, or sent late, in a row before others get their turn.
const AT_ONCE: usize = 256;
/// A datagram that leaves later than this counts as late. The time is much longer than a timer's wake-up takes.
const LATE_NS: u64 = 1_000_000;
/// At most one in this many may be late.
const LATE_ONE_IN: u64 = 100;

/// The programs of one entry of traffic.
#[derive(Debug)]
pub(super) struct Datagrams {
    index: usize,
    program: DatagramProgram<Punctual>,
    /// When its next task is planned in the reactor.
    planned_ns: Option<u64>,
    network: Sockets,
    buffer: Vec<u8>,
}

/// The sockets of one entry of traffic, and what passed through them.
#[derive(Debug)]
struct Sockets {
    name: Name,
    /// The names of its flows.
    flows: Vec<Name>,
    server_at: End,
    server: OwnedFd,
    /// At the other end: one, or one for each stream.
    clients: Vec<OwnedFd>,
    /// The number in a datagram identifies its stream, because each stream counts in steps of the number of streams.
    streams: u64,
    payload: Vec<u8>,
    /// How late the task is that is carried out now.
    late_ns: u64,
    /// Datagrams that left, those of them that left late, and those that the kernel did not accept.
    sent: u64,
    late: u64,
    refused: u64,
}

/// The sockets of a program, for one of its actions.
struct KernelSockets<'a, 'b> {
    network: &'a mut Sockets,
    context: &'a mut RunContext<'b>,
}

/// Opens the entries of traffic one after the other, with ports that do not conflict.
#[derive(Debug)]
pub(super) struct Opener {
    seed: u64,
    next_port: u16,
}

impl Opener {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, next_port: FIRST_SENDER_PORT }
    }

    /// Opens the traffic with that index, and plans its beginning; `None` if it is of another transport.
    pub(super) fn open(&mut self, index: usize, context: &mut RunContext<'_>) -> io::Result<Option<Datagrams>> {
        let entry = &context.scenario.traffic[index];
        let spread_ns = context.scenario.delay_spread_ns();
        let Some(program) = DatagramProgram::new(entry, index, self.seed, spread_ns, Punctual) else {
            return Ok(None);
        };
        let network = self.sockets(index, &program, context)?;
        let buffer = vec![0; DATAGRAM_BYTES];
        let mut datagrams = Datagrams { index, program, planned_ns: None, network, buffer };
        datagrams.plan(context);
        Ok(Some(datagrams))
    }

    fn sockets(
        &mut self,
        index: usize,
        program: &DatagramProgram<Punctual>,
        context: &mut RunContext<'_>,
    ) -> io::Result<Sockets> {
        let entry = &context.scenario.traffic[index];
        let [server, client] = [entry.server(), entry.client()].map(usize::from);
        let address = SocketAddrV4::new(context.network.plan.addresses[server], context.server_ports[index]);
        // Where there are several clients, none is answered.
        let only_client = SocketAddrV4::new(context.network.plan.addresses[client], self.next_port);
        let mut clients = Vec::new();
        for _ in 0..program.clients() {
            clients.push(self.client(client, address, entry.dscp, context)?);
        }
        context.network.namespaces[server].enter()?;
        let server = socket::udp(address, (clients.len() == 1).then_some(only_client), entry.dscp)?;
        let server_at = entry.kind.server_end();
        let token = |end: End| match end {
            End::From => Token::DatagramsAtFrom(index as u32),
            End::To => Token::DatagramsAtTo(index as u32),
        };
        context.reactor.watch(&server, EpollFlags::EPOLLIN, token(server_at))?;
        if let [client] = &clients[..] {
            context.reactor.watch(client, EpollFlags::EPOLLIN, token(opposite(server_at)))?;
        }
        let flow = |number: u32| context.recorder.intern(&format!("{}/{number}", entry.name));
        let flows = (1..=program.flows()).map(flow).collect();
        Ok(Sockets {
            name: context.recorder.intern(&entry.name),
            flows,
            server_at,
            server,
            clients,
            streams: program.streams().into(),
            payload: vec![0; DATAGRAM_BYTES],
            late_ns: 0,
            sent: 0,
            late: 0,
            refused: 0,
        })
    }

    /// A socket on a node, with a port that no other socket uses.
    fn client(&mut self, node: usize, remote: SocketAddrV4, dscp: u8, context: &RunContext<'_>) -> io::Result<OwnedFd> {
        let port = self.next_port;
        self.next_port = port.checked_add(1).ok_or_else(|| io::Error::other("more flows than ports"))?;
        context.network.namespaces[node].enter()?;
        socket::udp(SocketAddrV4::new(context.network.plan.addresses[node], port), Some(remote), dscp)
    }
}

fn opposite(end: End) -> End {
    match end {
        End::From => End::To,
        End::To => End::From,
    }
}

impl Datagrams {
    /// Its tasks are due.
    pub(super) fn begin(&mut self, context: &mut RunContext<'_>) -> io::Result<()> {
        let now_ns = context.now_ns();
        self.planned_ns.take_if(|planned_ns| *planned_ns <= now_ns);
        if self.program.awaits() {
            self.take_all(context)?;
        }
        for _ in 0..AT_ONCE {
            let now_ns = context.now_ns();
            let Some(due_ns) = self.program.next_ns().filter(|due_ns| *due_ns <= now_ns) else { break };
            self.network.late_ns = now_ns - due_ns;
            self.program.on_time(now_ns, &mut KernelSockets { network: &mut self.network, context })?;
        }
        self.plan(context);
        Ok(())
    }

    /// Datagrams have arrived at an end.
    pub(super) fn ready(&mut self, end: End, context: &mut RunContext<'_>) -> io::Result<()> {
        if self.program.awaits() {
            self.take_all(context)?;
        } else {
            for _ in 0..AT_ONCE {
                if !self.take(end, context)? {
                    break;
                }
            }
        }
        self.plan(context);
        Ok(())
    }

    /// Records a sample of every flow.
    pub(super) fn sample(&self, context: &mut RunContext<'_>) {
        let t_ns = context.now_ns();
        for (flow, name) in (0..).zip(&self.network.flows) {
            if let Some(Counted { payload_bytes, sent, expected, received }) = self.program.counted(flow) {
                let datagrams = records::Datagrams { payload_bytes: payload_bytes.into(), sent, expected, received };
                context.recorder.flow(FlowRow::of_datagrams(t_ns, *name, datagrams));
            }
        }
    }

    /// The scenario is over, except for what is under way. Reports how this machine has disturbed the traffic.
    pub(super) fn end(&mut self, context: &mut RunContext<'_>) -> io::Result<()> {
        if self.program.awaits() {
            self.take_all(context)?;
        }
        self.program.finish(&mut KernelSockets { network: &mut self.network, context })?;
        if self.program.is_punctual() {
            self.report(context)?;
        }
        self.program.resume(context.now_ns());
        self.plan(context);
        Ok(())
    }

    /// Whether the outcome of anything that will have a row is still open.
    pub(super) fn is_waiting(&mut self, context: &mut RunContext<'_>) -> io::Result<bool> {
        if self.program.is_waiting() {
            self.take_all(context)?;
        }
        Ok(self.program.is_waiting())
    }

    /// The time after which waiting is pointless.
    pub(super) fn times_out_ns(&self) -> Option<u64> {
        self.program.last_timeout_ns()
    }

    /// Records as lost what is still awaited.
    pub(super) fn give_up(&mut self, context: &mut RunContext<'_>) -> io::Result<()> {
        if self.program.awaits() {
            self.take_all(context)?;
        }
        self.program.give_up(&mut KernelSockets { network: &mut self.network, context })
    }

    /// Reads everything that has arrived by now, questions before their answers. Only after that may anything that is
    /// missing count as lost, because this program may be late.
    fn take_all(&mut self, context: &mut RunContext<'_>) -> io::Result<()> {
        let now_ns = context.now_ns();
        let server_at = self.network.server_at;
        for end in [server_at, opposite(server_at)] {
            while self.take(end, context)? {}
        }
        self.program.settle(now_ns, &mut KernelSockets { network: &mut self.network, context })
    }

    /// Takes a datagram that has arrived at an end; false if nothing has arrived.
    fn take(&mut self, end: End, context: &mut RunContext<'_>) -> io::Result<bool> {
        let network = &mut self.network;
        let socket = match (end == network.server_at, &network.clients[..]) {
            (true, _) => &network.server,
            (false, [client]) => client,
            (false, _) => return Ok(false),
        };
        let Some(received) = take(socket, &mut self.buffer)? else { return Ok(false) };
        // There is no stream if there are no flows; then a stranger sends.
        let Some(stream) = received.number.checked_rem(network.streams) else { return Ok(true) };
        let (stream, number) = (stream as u32, received.number / network.streams);
        let sent_bytes = self.program.counted(stream).map(|counted| counted.payload_bytes as usize);
        if sent_bytes.is_some_and(|bytes| bytes.max(NUMBER_BYTES) != received.bytes) {
            return Ok(true);
        }
        let at_ns = if self.program.awaits() { context.arrival_ns(received.stamp_ns) } else { context.now_ns() };
        let arrival = Arrival { at: end, stream, number, at_ns };
        self.program.on_arrival(arrival, &mut KernelSockets { network, context })?;
        Ok(true)
    }

    /// Plans the next task, unless an earlier one is planned.
    fn plan(&mut self, context: &mut RunContext<'_>) {
        if let Some(next_ns) = self.program.next_ns()
            && self.planned_ns.is_none_or(|planned_ns| planned_ns > next_ns)
        {
            self.planned_ns = Some(next_ns);
            context.reactor.at(next_ns, Event::Send(self.index));
        }
    }

    fn report(&self, context: &mut RunContext<'_>) -> io::Result<()> {
        let name = &context.scenario.traffic[self.index].name;
        let missed = socket::datagrams_missed(&self.network.server)?;
        let Sockets { sent, late, refused, .. } = self.network;
        if missed > 0 {
            context.warnings.add(format!("{missed} datagrams of `{name}` arrived faster than this machine read them"));
        }
        if refused > 0 {
            context
                .warnings
                .add(format!("{refused} datagrams of `{name}` were not sent: the socket's buffer was full"));
        }
        if late > sent / LATE_ONE_IN {
            context.warnings.add(format!("{late} of {sent} datagrams of `{name}` left more than a millisecond late"));
        }
        Ok(())
    }
}

impl DatagramSockets for KernelSockets<'_, '_> {
    type Error = io::Error;

    fn send(&mut self, from: End, stream: u32, datagram: Datagram) -> io::Result<bool> {
        let network = &mut *self.network;
        let socket = if from == network.server_at {
            &network.server
        } else {
            // One socket for all streams, or one for each.
            &network.clients[(stream as usize).min(network.clients.len() - 1)]
        };
        let length = (datagram.payload_bytes as usize).clamp(NUMBER_BYTES, DATAGRAM_BYTES);
        let number = datagram.number * network.streams + u64::from(stream);
        let has_left = send_number(socket, number, &mut network.payload[..length])?;
        if has_left {
            network.sent += 1;
            network.late += u64::from(network.late_ns > LATE_NS);
        } else {
            network.refused += 1;
        }
        Ok(has_left)
    }

    fn record_probe(&mut self, flow: Option<u32>, outcome: Outcome) -> io::Result<()> {
        let name = flow.map_or(self.network.name, |flow| self.network.flows[flow as usize]);
        self.context.record_probe(name, outcome);
        Ok(())
    }

    fn record_transfer(&mut self, transfer: Transfer) -> io::Result<()> {
        let Transfer { connection, started_ns, finished_ns, bytes } = transfer;
        let duration_ns = self.context.scenario.duration_ns;
        self.context.recorder.transfer(TransferRow {
            traffic: self.network.name,
            flow: self.network.flows[connection as usize - 1],
            started_ns,
            finished_ns: finished_ns.filter(|&at_ns| at_ns <= duration_ns),
            bytes,
        });
        Ok(())
    }

    fn record_estimate(&mut self, estimate: NetalyzrEstimate) -> io::Result<()> {
        let NetalyzrEstimate { stage, started_ns, idle_ns, loaded_ns, rate_bps, sent, received } = estimate;
        let direction = if stage == NetalyzrStage::Up { records::Direction::Up } else { records::Direction::Down };
        let traffic = self.network.name;
        self.context.recorder.estimate(EstimateRow {
            traffic,
            direction,
            started_ns,
            idle_ns,
            loaded_ns,
            rate_bps,
            sent,
            received,
        });
        Ok(())
    }
}
