//! ICMP echo at an interval, timed by the kernel's stamps of arrival.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use bufferscope_scenario::PingTraffic;
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{MsgFlags, SockaddrStorage, sendto};

use super::probes::{Probes, Stage};
use super::{Desk, icmp};
use crate::kernel::receive::receive;
use crate::kernel::socket;
use crate::reactor::Token;

/// An echo message in its IPv4 packet.
const PACKET_BYTES: usize = 65_536;

/// The probes of one traffic.
#[derive(Debug)]
pub(super) struct Ping {
    identifier: u16,
    payload_bytes: usize,
    prober: OwnedFd,
    /// A second observer at the target, which measures the two directions separately.
    target: OwnedFd,
    address: SockaddrStorage,
    probes: Probes,
    buffer: Vec<u8>,
}

impl Ping {
    /// Opens its sockets. `index` is its place among the scenario's pings.
    pub(super) fn open(
        index: u32,
        traffic: &bufferscope_scenario::Traffic,
        parameters: &PingTraffic,
        desk: &mut Desk<'_>,
    ) -> io::Result<Self> {
        let [from, to] = [traffic.from, traffic.to].map(usize::from);
        let addresses = [from, to].map(|node| desk.network.plan.addresses[node]);
        desk.network.namespaces[to].enter()?;
        let target = socket::icmp(addresses[1], icmp::REQUEST, traffic.dscp)?;
        desk.network.namespaces[from].enter()?;
        let prober = socket::icmp(addresses[0], icmp::REPLY, traffic.dscp)?;
        desk.reactor.watch(&prober, EpollFlags::EPOLLIN, Token::PingAnswers(index))?;
        desk.reactor.watch(&target, EpollFlags::EPOLLIN, Token::PingRequests(index))?;
        let name = desk.recorder.intern(&traffic.name);
        Ok(Self {
            identifier: (index + 1) as u16,
            payload_bytes: parameters.payload_bytes as usize,
            prober,
            target,
            address: socket::destination(addresses[1]),
            probes: Probes::new(name, Stage::Back, parameters.timeout_ns),
            buffer: vec![0; PACKET_BYTES],
        })
    }

    /// Sends the next probe.
    pub(super) fn send(&mut self, desk: &mut Desk<'_>) -> io::Result<()> {
        let message = icmp::request(self.identifier, self.probes.sent(), self.payload_bytes);
        let sent_ns = desk.now_ns();
        match sendto(self.prober.as_raw_fd(), &message, &self.address, MsgFlags::empty()) {
            // A full queue on the prober's own device drops like any other.
            Ok(_) | Err(Errno::ENOBUFS | Errno::EAGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        self.probes.push(sent_ns);
        self.take_answers(desk)
    }

    /// Requests have reached the target.
    pub(super) fn take_requests(&mut self, desk: &mut Desk<'_>) -> io::Result<()> {
        while self.take(Stage::Far, desk)? {}
        Ok(())
    }

    /// Answers may be back. Everything that has arrived by now is read before any probe counts as lost, and the
    /// requests before their answers: this program may be late.
    pub(super) fn take_answers(&mut self, desk: &mut Desk<'_>) -> io::Result<()> {
        let now_ns = desk.now_ns();
        self.take_requests(desk)?;
        while self.take(Stage::Back, desk)? {}
        self.probes.settle(now_ns, &mut desk.recorder);
        Ok(())
    }

    /// The scenario is over: what is sent from now on has no rows.
    pub(super) fn end(&mut self) {
        self.probes.end();
    }

    /// Whether a probe that will have a row is still awaited.
    pub(super) fn is_waiting(&mut self, desk: &mut Desk<'_>) -> io::Result<bool> {
        let now_ns = desk.now_ns();
        self.take_answers(desk)?;
        Ok(self.probes.are_awaited(now_ns, &mut desk.recorder))
    }

    /// Gives up what is still awaited.
    pub(super) fn give_up(&mut self, desk: &mut Desk<'_>) -> io::Result<()> {
        self.take_answers(desk)?;
        self.probes.give_up(&mut desk.recorder);
        Ok(())
    }

    /// When the last probe with a row times out.
    pub(super) fn times_out_ns(&self) -> Option<u64> {
        self.probes.times_out_ns()
    }

    /// Reads one echo message, which may be another's; false if there is none.
    fn take(&mut self, stage: Stage, desk: &mut Desk<'_>) -> io::Result<bool> {
        let (socket, kind) = match stage {
            Stage::Far => (&self.target, icmp::REQUEST),
            Stage::Back => (&self.prober, icmp::REPLY),
        };
        let Some(arrival) = receive(socket, &mut self.buffer)? else { return Ok(false) };
        let at_ns = desk.arrival_ns(arrival.realtime_ns);
        let echo = icmp::parse(&self.buffer[..arrival.bytes], kind).filter(|echo| echo.identifier == self.identifier);
        let latest = self.probes.sent().checked_sub(1);
        if let Some(number) = echo.zip(latest).and_then(|(echo, latest)| echo.number(latest)) {
            self.probes.see(number, stage, at_ns);
        }
        Ok(true)
    }
}
