//! Traffic over UDP: programs on the hosts that send datagrams, hold a call or look up names.

mod dns;
mod isochronous;
mod udp;

use std::io;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

use bufferscope_endpoint::socket;
use bufferscope_scenario::{LAST_SERVER_PORT, TrafficKind};
use nix::sys::epoll::EpollFlags;

use super::RunContext;
use crate::reactor::Token;
use bufferscope_programs::Random;
use dns::Dns;
use isochronous::Isochronous;
use udp::Udp;

/// Sockets that others do not send to first use this port and those after it, in the order in which they are opened. So
/// each flow has ports of its own.
const FIRST_SENDER_PORT: u16 = LAST_SERVER_PORT + 1;
/// The largest datagram; a packet of 1500 bytes holds less.
const DATAGRAM_BYTES: usize = 2048;
/// Number of datagrams that are read from a socket, or sent late, in a row before others get their turn.
const AT_ONCE: usize = 256;

/// One entry of traffic.
#[derive(Debug)]
pub(super) enum Datagrams {
    Udp(Udp),
    Isochronous(Isochronous),
    Dns(Dns),
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

    /// Opens the traffic with that index, and plans its beginning; `None` if it is of another kind.
    pub(super) fn open(&mut self, index: usize, context: &mut RunContext<'_>) -> io::Result<Option<Datagrams>> {
        let scenario = context.scenario;
        Ok(Some(match &scenario.traffic[index].kind {
            TrafficKind::Udp(parameters) => Datagrams::Udp(Udp::open(index, parameters, self, context)?),
            TrafficKind::Voip(parameters) => {
                Datagrams::Isochronous(Isochronous::voip(index, parameters, self, context)?)
            }
            TrafficKind::Irtt(parameters) => {
                Datagrams::Isochronous(Isochronous::irtt(index, parameters, self, context)?)
            }
            TrafficKind::Dns(parameters) => Datagrams::Dns(Dns::open(index, parameters, self, context)?),
            // The plan refuses it.
            TrafficKind::Netalyzr(_) => return Err(io::ErrorKind::Unsupported.into()),
            TrafficKind::Tcp(_) | TrafficKind::Bittorrent(_) | TrafficKind::Ping(_) | TrafficKind::Web(_) => {
                return Ok(None);
            }
        }))
    }

    fn random(&self, index: usize) -> Random {
        Random::new(self.seed, index)
    }

    /// A socket on a node, with a port that no other socket uses.
    fn sender(&mut self, node: usize, remote: SocketAddrV4, dscp: u8, context: &RunContext<'_>) -> io::Result<OwnedFd> {
        let port = self.next_port;
        self.next_port = port.checked_add(1).ok_or_else(|| io::Error::other("more flows than ports"))?;
        context.network.namespaces[node].enter()?;
        socket::udp(SocketAddrV4::new(context.network.plan.addresses[node], port), Some(remote), dscp)
    }
}

/// The address at which a node receives the traffic with that index.
fn address(index: usize, node: usize, context: &RunContext<'_>) -> SocketAddrV4 {
    SocketAddrV4::new(context.network.plan.addresses[node], context.server_ports[index])
}

/// Two sockets that send to each other, at `from` and at `to`. The one at the end `fixed` uses the port that others
/// send to.
fn open_pair(index: usize, fixed: End, opener: &mut Opener, context: &RunContext<'_>) -> io::Result<[OwnedFd; 2]> {
    let entry = &context.scenario.traffic[index];
    let nodes = [entry.from, entry.to].map(usize::from);
    let (here, there) = match fixed {
        End::From => (nodes[0], nodes[1]),
        End::To => (nodes[1], nodes[0]),
    };
    let address = address(index, here, context);
    let away = SocketAddrV4::new(context.network.plan.addresses[there], opener.next_port);
    let sender = opener.sender(there, address, entry.dscp, context)?;
    context.network.namespaces[here].enter()?;
    let fixed_socket = socket::udp(address, Some(away), entry.dscp)?;
    let sockets = match fixed {
        End::From => [fixed_socket, sender],
        End::To => [sender, fixed_socket],
    };
    context.reactor.watch(&sockets[0], EpollFlags::EPOLLIN, Token::DatagramsAtFrom(index as u32))?;
    context.reactor.watch(&sockets[1], EpollFlags::EPOLLIN, Token::DatagramsAtTo(index as u32))?;
    Ok(sockets)
}

/// The two ends of an entry of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    From,
    To,
}

impl Datagrams {
    /// The next datagram of a flow is due.
    pub(super) fn send(&mut self, flow: u32, context: &mut RunContext<'_>) -> io::Result<()> {
        match self {
            Self::Udp(udp) => udp.send(flow, context),
            Self::Isochronous(senders) => senders.send(flow as usize, context),
            Self::Dns(dns) => dns.begin(context),
        }
    }

    /// A look-up may have timed out.
    pub(super) fn check(&mut self, number: u64, context: &mut RunContext<'_>) -> io::Result<()> {
        match self {
            Self::Udp(_) | Self::Isochronous(_) => Ok(()),
            Self::Dns(dns) => dns.ask(number, context),
        }
    }

    /// Datagrams have arrived at an end.
    pub(super) fn ready(&mut self, end: End, context: &mut RunContext<'_>) -> io::Result<()> {
        match self {
            Self::Udp(udp) => udp.receive(),
            Self::Isochronous(senders) => senders.receive(end, context),
            Self::Dns(dns) => dns.receive(end, context),
        }
    }

    /// Records a sample of every flow.
    pub(super) fn sample(&self, context: &mut RunContext<'_>) {
        if let Self::Udp(udp) = self {
            udp.sample(context);
        }
    }

    /// The scenario is over, except for the packets of a call that are under way.
    pub(super) fn end(&mut self, context: &mut RunContext<'_>) -> io::Result<()> {
        match self {
            Self::Udp(udp) => udp.end(context),
            Self::Isochronous(senders) => {
                senders.end(context);
                Ok(())
            }
            Self::Dns(dns) => dns.end(context),
        }
    }

    /// Whether the outcome of anything that will have a row is still open.
    pub(super) fn is_waiting(&mut self, context: &mut RunContext<'_>) -> io::Result<bool> {
        match self {
            Self::Udp(_) | Self::Dns(_) => Ok(false),
            Self::Isochronous(senders) => senders.is_waiting(context),
        }
    }

    /// The time after which waiting is pointless.
    pub(super) fn times_out_ns(&self) -> Option<u64> {
        match self {
            Self::Udp(_) | Self::Dns(_) => None,
            Self::Isochronous(senders) => senders.times_out_ns(),
        }
    }

    /// Records as lost what is still awaited.
    pub(super) fn give_up(&mut self, context: &mut RunContext<'_>) -> io::Result<()> {
        match self {
            Self::Udp(_) | Self::Dns(_) => Ok(()),
            Self::Isochronous(senders) => senders.give_up(context),
        }
    }
}
