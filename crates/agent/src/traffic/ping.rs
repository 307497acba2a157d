//! ICMP echo at an interval, timed by the kernel's stamps of arrival.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use bufferscope_records::{Name, ProbeRow};
use bufferscope_scenario::PingTraffic;
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{MsgFlags, SockaddrStorage, sendto};

use super::{Desk, icmp};
use crate::kernel::receive::receive;
use crate::kernel::socket;
use crate::reactor::Token;

/// An echo message in its IPv4 packet.
const PACKET_BYTES: usize = 65_536;

/// The probes of one traffic.
#[derive(Debug)]
pub(super) struct Ping {
    name: Name,
    identifier: u16,
    parameters: PingTraffic,
    prober: OwnedFd,
    /// A second pair of eyes at the target, which tells the two ways apart.
    target: OwnedFd,
    address: SockaddrStorage,
    /// Number of the next probe.
    next: u64,
    /// Number of the first probe of `awaited`.
    first: u64,
    /// Probes without a row yet: rows come in the order of sending.
    awaited: VecDeque<Probe>,
    /// Probes from this number on are sent only to see earlier ones overtaken, and have no rows.
    recorded: u64,
    /// The latest probe that was answered.
    latest_answer: Option<u64>,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    sent_ns: u64,
    reached_ns: Option<u64>,
    answered_ns: Option<u64>,
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
        Ok(Self {
            name: desk.recorder.intern(&traffic.name),
            identifier: (index + 1) as u16,
            parameters: parameters.clone(),
            prober,
            target,
            address: socket::destination(addresses[1]),
            next: 0,
            first: 0,
            awaited: VecDeque::new(),
            recorded: u64::MAX,
            latest_answer: None,
            buffer: vec![0; PACKET_BYTES],
        })
    }

    /// Sends the next probe.
    pub(super) fn send(&mut self, desk: &mut Desk<'_>) -> io::Result<()> {
        let message = icmp::request(self.identifier, self.next, self.parameters.payload_bytes as usize);
        let sent_ns = desk.now_ns();
        match sendto(self.prober.as_raw_fd(), &message, &self.address, MsgFlags::empty()) {
            // A full queue on the prober's own device drops like any other.
            Ok(_) | Err(Errno::ENOBUFS | Errno::EAGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        self.awaited.push_back(Probe { sent_ns, reached_ns: None, answered_ns: None });
        self.next += 1;
        self.settle(desk);
        Ok(())
    }

    /// Requests have reached the target.
    pub(super) fn take_requests(&mut self, desk: &mut Desk<'_>) -> io::Result<()> {
        while let Some((number, at_ns)) = self.take(icmp::REQUEST, desk)? {
            if let Some(probe) = number.and_then(|number| self.probe(number)) {
                probe.reached_ns.get_or_insert(at_ns);
            }
        }
        Ok(())
    }

    /// Answers are back.
    pub(super) fn take_answers(&mut self, desk: &mut Desk<'_>) -> io::Result<()> {
        while let Some((number, at_ns)) = self.take(icmp::REPLY, desk)? {
            let Some(number) = number else { continue };
            self.latest_answer = self.latest_answer.max(Some(number));
            if let Some(probe) = self.probe(number) {
                probe.answered_ns.get_or_insert(at_ns);
            }
        }
        self.settle(desk);
        Ok(())
    }

    /// The scenario is over: what is sent from now on has no rows.
    pub(super) fn end(&mut self) {
        self.recorded = self.next;
    }

    /// Whether a probe that will have a row is still awaited. Once the scenario is over, a probe that a later one has
    /// overtaken is lost: none of the queueing disciplines reorders.
    pub(super) fn is_waiting(&mut self, desk: &mut Desk<'_>) -> bool {
        let overtaken = self.latest_answer.map_or(0, |latest| latest.min(self.recorded));
        while self.first < overtaken {
            self.conclude(desk);
        }
        self.settle(desk);
        self.first < self.recorded
    }

    /// Gives up what is still awaited.
    pub(super) fn give_up(&mut self, desk: &mut Desk<'_>) {
        while self.first < self.recorded.min(self.next) {
            self.conclude(desk);
        }
    }

    /// When the last probe with a row times out.
    pub(super) fn times_out_ns(&self) -> Option<u64> {
        Some(self.awaited.back()?.sent_ns + self.parameters.timeout_ns)
    }

    /// Takes one echo message; its number, if it is one of this ping's, and when it arrived. `None`: no more are there.
    fn take(&mut self, kind: u8, desk: &mut Desk<'_>) -> io::Result<Option<(Option<u64>, u64)>> {
        let socket = if kind == icmp::REQUEST { &self.target } else { &self.prober };
        let Some(arrival) = receive(socket, &mut self.buffer)? else { return Ok(None) };
        let stamped_ns = arrival.realtime_ns.map(|stamp| desk.reactor.clock.at_realtime(stamp));
        if stamped_ns.is_none() {
            desk.warnings.add("the kernel did not stamp all probes: their times include this program's wake-ups");
        }
        let at_ns = stamped_ns.unwrap_or_else(|| desk.now_ns());
        let echo = icmp::parse(&self.buffer[..arrival.bytes], kind).filter(|echo| echo.identifier == self.identifier);
        let number = self.next.checked_sub(1).and_then(|latest| echo?.number(latest));
        Ok(Some((number, at_ns)))
    }

    fn probe(&mut self, number: u64) -> Option<&mut Probe> {
        self.awaited.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// Writes the rows of the oldest probes, as far as their fate is known.
    fn settle(&mut self, desk: &mut Desk<'_>) {
        let now_ns = desk.now_ns();
        while let Some(probe) = self.awaited.front() {
            if probe.answered_ns.is_none() && now_ns < probe.sent_ns + self.parameters.timeout_ns {
                break;
            }
            self.conclude(desk);
        }
    }

    fn conclude(&mut self, desk: &mut Desk<'_>) {
        let Some(probe) = self.awaited.pop_front() else { return };
        let seq = self.first;
        self.first += 1;
        if seq >= self.recorded {
            return;
        }
        let rtt_ns = probe.answered_ns.map(|at_ns| at_ns.saturating_sub(probe.sent_ns));
        let rtt_ns = rtt_ns.filter(|&rtt_ns| rtt_ns < self.parameters.timeout_ns);
        let owd_up_ns = probe.reached_ns.map(|at_ns| at_ns.saturating_sub(probe.sent_ns));
        desk.recorder.probe(ProbeRow {
            probe: self.name,
            seq,
            sent_ns: probe.sent_ns,
            rtt_ns,
            owd_up_ns,
            owd_down_ns: owd_up_ns.and_then(|up_ns| rtt_ns?.checked_sub(up_ns)),
        });
    }
}
