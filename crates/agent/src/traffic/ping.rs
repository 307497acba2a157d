//! ICMP echo at an interval, timed by the kernel's stamps of arrival.
//!
//! Requests leave at each multiple of the interval, or when iputils' `ping` would send them. The latter also depends on
//! when answers come, so a planned wake-up may no longer be valid when its time comes.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use bufferscope_endpoint::receive::receive;
use bufferscope_endpoint::socket;
use bufferscope_programs::{IputilsPing, Probes, Stage, Uniform};
use bufferscope_records::Name;
use bufferscope_scenario::{PingTiming, PingTraffic};
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::{MsgFlags, SockaddrStorage, sendto};

use super::{RunContext, icmp};
use crate::reactor::Token;

/// Room for an IPv4 packet with an echo message.
const PACKET_BYTES: usize = 65_536;

/// The probes of one entry of traffic.
#[derive(Debug)]
pub(super) struct Ping {
    /// The index of the entry of traffic.
    pub(super) traffic: usize,
    name: Name,
    identifier: u16,
    payload_bytes: usize,
    prober: OwnedFd,
    /// A second observer at the target. With it, the two directions are measured separately.
    target: OwnedFd,
    address: SockaddrStorage,
    probes: Probes,
    /// The program that decides when requests are sent; `None` if they are sent at each multiple of the interval.
    iputils: Option<IputilsPing>,
    /// When that program wakes up next if no answer comes.
    wakes_ns: u64,
    /// An answer has come since it last woke up.
    answered: bool,
    buffer: Vec<u8>,
}

impl Ping {
    /// Opens the sockets. `index` is the index among the scenario's pings, and `number` is the index of the entry of
    /// traffic.
    pub(super) fn open(
        index: u32,
        number: usize,
        traffic: &bufferscope_scenario::Traffic,
        parameters: &PingTraffic,
        context: &mut RunContext<'_>,
    ) -> io::Result<Self> {
        let [from, to] = [traffic.from, traffic.to].map(usize::from);
        let addresses = [from, to].map(|node| context.network.plan.addresses[node]);
        context.network.namespaces[to].enter()?;
        let target = socket::icmp(addresses[1], icmp::REQUEST, traffic.dscp)?;
        context.network.namespaces[from].enter()?;
        let prober = socket::icmp(addresses[0], icmp::REPLY, traffic.dscp)?;
        context.reactor.watch(&prober, EpollFlags::EPOLLIN, Token::PingAnswers(index))?;
        context.reactor.watch(&target, EpollFlags::EPOLLIN, Token::PingRequests(index))?;
        let name = context.recorder.intern(&traffic.name);
        let iputils = parameters.timing == PingTiming::Iputils;
        Ok(Self {
            traffic: number,
            name,
            identifier: (index + 1) as u16,
            payload_bytes: parameters.payload_bytes as usize,
            prober,
            target,
            address: socket::destination(addresses[1]),
            probes: Probes::new(Stage::Back, parameters.timeout_ns).spread(context.scenario.delay_spread_ns()),
            iputils: iputils.then(|| IputilsPing::new(parameters.interval_ns)),
            wakes_ns: traffic.start_ns,
            answered: false,
            buffer: vec![0; PACKET_BYTES],
        })
    }

    /// Sends the next probe.
    pub(super) fn send(&mut self, context: &mut RunContext<'_>) -> io::Result<()> {
        let message = icmp::request(self.identifier, self.probes.sent(), self.payload_bytes);
        let sent_ns = context.now_ns();
        match sendto(self.prober.as_raw_fd(), &message, &self.address, MsgFlags::empty()) {
            // A full queue on the prober's own device drops packets like any other queue.
            Ok(_) | Err(Errno::ENOBUFS | Errno::EAGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        self.probes.push(sent_ns);
        if let Some(iputils) = &mut self.iputils {
            iputils.sent(sent_ns);
        }
        self.take_answers(context)
    }

    /// Whether iputils' `ping` is awake at this time: its wait is over, or an answer has come.
    pub(super) fn is_awake(&self, now_ns: u64) -> bool {
        self.iputils.is_some() && (self.answered || now_ns >= self.wakes_ns)
    }

    /// iputils' `ping` is awake. Sends the next probe if it is time; returns when the program wakes up again.
    pub(super) fn wake(&mut self, slack: &mut impl Uniform, context: &mut RunContext<'_>) -> io::Result<Option<u64>> {
        if self.iputils.as_ref().is_some_and(|iputils| iputils.is_due(context.now_ns())) {
            self.send(context)?;
        }
        let Some(iputils) = &self.iputils else { return Ok(None) };
        self.answered = false;
        self.wakes_ns = iputils.wakes_ns(context.now_ns(), slack);
        Ok(Some(self.wakes_ns))
    }

    /// Requests have reached the target.
    pub(super) fn take_requests(&mut self, context: &mut RunContext<'_>) -> io::Result<()> {
        while self.take(Stage::Far, context)? {}
        Ok(())
    }

    /// Answers may have arrived. Because this program may be late, everything that has arrived by now is read before
    /// any probe counts as lost. Requests are read before their answers.
    pub(super) fn take_answers(&mut self, context: &mut RunContext<'_>) -> io::Result<()> {
        let now_ns = context.now_ns();
        self.take_requests(context)?;
        while self.take(Stage::Back, context)? {}
        while let Some(outcome) = self.probes.settled(now_ns) {
            context.record_probe(self.name, outcome);
        }
        Ok(())
    }

    /// The scenario is over. Probes that are sent from now on have no rows.
    pub(super) fn end(&mut self) {
        self.probes.end();
    }

    /// Whether a probe that will have a row is still awaited.
    pub(super) fn is_waiting(&mut self, context: &mut RunContext<'_>) -> io::Result<bool> {
        self.take_answers(context)?;
        Ok(self.probes.are_awaited())
    }

    /// Gives up the probes that are still awaited.
    pub(super) fn give_up(&mut self, context: &mut RunContext<'_>) -> io::Result<()> {
        self.take_answers(context)?;
        while let Some(outcome) = self.probes.give_up() {
            context.record_probe(self.name, outcome);
        }
        Ok(())
    }

    /// When the last probe with a row times out.
    pub(super) fn times_out_ns(&self) -> Option<u64> {
        self.probes.last_timeout_ns()
    }

    /// Reads one echo message, which may belong to another ping; false if no message has arrived.
    fn take(&mut self, stage: Stage, context: &mut RunContext<'_>) -> io::Result<bool> {
        let (socket, kind) = match stage {
            Stage::Far => (&self.target, icmp::REQUEST),
            Stage::Back => (&self.prober, icmp::REPLY),
        };
        let Some(arrival) = receive(socket, &mut self.buffer)? else { return Ok(false) };
        let at_ns = context.arrival_ns(arrival.realtime_ns);
        let echo = icmp::parse(&self.buffer[..arrival.bytes], kind).filter(|echo| echo.identifier == self.identifier);
        let latest = self.probes.sent().checked_sub(1);
        if let Some(number) = echo.zip(latest).and_then(|(echo, latest)| echo.number(latest)) {
            self.probes.see(number, stage, at_ns);
            if let Some(iputils) = self.iputils.as_mut().filter(|_| stage == Stage::Back) {
                iputils.answered(number);
                self.answered = true;
            }
        }
        Ok(true)
    }
}
