//! Decides what happens next: events at chosen times, and sockets that are ready.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::AsFd;

use bufferscope_endpoint::clock::RunClock;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// Number of ready sockets that are taken at a time. After each such batch, due events come first.
const READY_AT_ONCE: usize = 64;

/// Something that happens at a chosen time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// Take a sample of the queues, and of the flows unless these are sampled separately.
    Sample,
    /// Take a sample of the flows, which have an interval of their own.
    SampleFlows,
    /// A change of rate, by its index in the plan.
    ChangeRate(usize),
    /// Begin the next connection, probe or page of an entry of traffic.
    Begin(usize),
    /// Send the next datagrams of an entry of traffic, or check whether its look-ups have been answered.
    Send(usize),
    /// Stop an entry of traffic.
    Stop(usize),
    /// Take the packets that were captured.
    TakePackets,
    /// Report the progress of the run.
    Progress,
    /// Check how busy the CPUs are.
    CheckCpus,
    /// The scenario's duration is over.
    End,
    /// Stop waiting for probes.
    GiveUp,
}

/// A socket that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Timer,
    /// Answers to a ping, by index.
    PingAnswers(u32),
    /// Requests of a ping arriving at its target, by index.
    PingRequests(u32),
    /// A listening socket, by index.
    Listener(u32),
    /// A connection, by number.
    Connection(u32),
    /// The UDP socket at the `from` of an entry of traffic, by the entry's index.
    DatagramsAtFrom(u32),
    /// The UDP socket at its `to`.
    DatagramsAtTo(u32),
}

/// Events and sockets.
pub(crate) struct Reactor {
    pub(crate) clock: RunClock,
    epoll: Epoll,
    timer: TimerFd,
    /// The time the timer is set to.
    armed_ns: Option<u64>,
    /// By time, then in the order in which they were planned.
    agenda: BinaryHeap<Reverse<(u64, u64, Event)>>,
    planned: u64,
}

impl Reactor {
    pub(crate) fn new(clock: RunClock) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        let reactor = Self { clock, epoll, timer, armed_ns: None, agenda: BinaryHeap::new(), planned: 0 };
        reactor.epoll.add(&reactor.timer, EpollEvent::new(EpollFlags::EPOLLIN, Token::Timer.encode()))?;
        Ok(reactor)
    }

    /// Plans an event.
    pub(crate) fn at(&mut self, run_ns: u64, event: Event) {
        self.agenda.push(Reverse((run_ns, self.planned, event)));
        self.planned += 1;
    }

    /// The next event that is due, and the time for which it was planned.
    pub(crate) fn due(&mut self) -> Option<(u64, Event)> {
        let Reverse((at_ns, _, event)) = *self.agenda.peek()?;
        if !self.clock.has_come(at_ns) {
            return None;
        }
        self.agenda.pop();
        Some((at_ns, event))
    }

    /// Waits until an event is due or sockets are ready, and puts the latter into `ready`.
    pub(crate) fn wait(&mut self, ready: &mut Vec<(Token, EpollFlags)>) -> io::Result<()> {
        self.arm()?;
        let mut events = [EpollEvent::empty(); READY_AT_ONCE];
        let count = match self.epoll.wait(&mut events, EpollTimeout::NONE) {
            Err(Errno::EINTR) => 0,
            other => other?,
        };
        ready.clear();
        for event in &events[..count] {
            match Token::decode(event.data()) {
                Some(Token::Timer) | None => self.armed_ns = None,
                Some(token) => ready.push((token, event.events())),
            }
        }
        Ok(())
    }

    pub(crate) fn watch(&self, socket: impl AsFd, interest: EpollFlags, token: Token) -> io::Result<()> {
        Ok(self.epoll.add(socket, EpollEvent::new(interest, token.encode()))?)
    }

    pub(crate) fn change(&self, socket: impl AsFd, interest: EpollFlags, token: Token) -> io::Result<()> {
        Ok(self.epoll.modify(socket, &mut EpollEvent::new(interest, token.encode()))?)
    }

    /// Sets the timer for the next event. This also cancels an expiry that was not read.
    fn arm(&mut self) -> io::Result<()> {
        let next_ns = self.agenda.peek().map(|Reverse((at_ns, ..))| *at_ns);
        if let Some(at_ns) = next_ns.filter(|_| next_ns != self.armed_ns) {
            let monotonic_ns = self.clock.monotonic_ns(at_ns);
            let at = TimeSpec::new((monotonic_ns / 1_000_000_000) as _, (monotonic_ns % 1_000_000_000) as _);
            self.timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
            self.armed_ns = next_ns;
        }
        Ok(())
    }
}

impl Token {
    fn encode(self) -> u64 {
        let (kind, index) = match self {
            Self::Timer => (0, 0),
            Self::PingAnswers(index) => (1, index),
            Self::PingRequests(index) => (2, index),
            Self::Listener(index) => (3, index),
            Self::Connection(number) => (4, number),
            Self::DatagramsAtFrom(index) => (5, index),
            Self::DatagramsAtTo(index) => (6, index),
        };
        u64::from(kind as u32) << 32 | u64::from(index)
    }

    fn decode(data: u64) -> Option<Self> {
        let index = data as u32;
        Some(match data >> 32 {
            0 => Self::Timer,
            1 => Self::PingAnswers(index),
            2 => Self::PingRequests(index),
            3 => Self::Listener(index),
            4 => Self::Connection(index),
            5 => Self::DatagramsAtFrom(index),
            6 => Self::DatagramsAtTo(index),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_epoll() {
        for token in [
            Token::Timer,
            Token::PingAnswers(7),
            Token::PingRequests(0),
            Token::Listener(3),
            Token::Connection(u32::MAX),
            Token::DatagramsAtFrom(1),
            Token::DatagramsAtTo(2),
        ] {
            assert_eq!(Token::decode(token.encode()), Some(token));
        }
    }

    #[test]
    fn events_come_at_their_time_in_the_order_planned() {
        let mut reactor = Reactor::new(RunClock::starting_in(0)).unwrap();
        reactor.at(2_000_000, Event::End);
        reactor.at(1_000_000, Event::Stop(1));
        reactor.at(1_000_000, Event::Sample);
        let mut seen = Vec::new();
        while seen.len() < 3 {
            reactor.wait(&mut Vec::new()).unwrap();
            while let Some((at_ns, event)) = reactor.due() {
                assert!(reactor.clock.now_ns() >= at_ns);
                seen.push(event);
            }
        }
        assert_eq!(seen, [Event::Stop(1), Event::Sample, Event::End]);
    }
}
