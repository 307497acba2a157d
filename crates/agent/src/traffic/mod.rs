//! The scenario's traffic: real sockets in the hosts' namespaces. One thread serves all of them, so that no lock and no
//! scheduler comes between them. [`ping`], [`datagrams`] and `crates/programs` define what a program on each host would
//! do; [`streams`] carries out the actions of `crates/programs`.

mod connection;
mod datagrams;
mod flow;
mod hosts;
mod icmp;
mod outgoing;
mod ping;
mod streams;
mod tcp;
mod tcp_checks;

use std::io;

use bufferscope_programs::{Outcome, Random, TIMER_SLACK_NS, late_ns};
use bufferscope_records::{Name, ProbeRow, Recorder};
use bufferscope_scenario::{End, PingTiming, Scenario, TrafficKind};
use nix::sys::epoll::EpollFlags;

use crate::network::Network;
use crate::output::BatchSender;
use crate::reactor::{Event, Reactor, Token};
use crate::warnings::Warnings;
use datagrams::{Datagrams, Opener};
use ping::Ping;
use streams::Streams;

/// The shared state with which everything that generates traffic works.
pub(crate) struct RunContext<'a> {
    pub(crate) scenario: &'a Scenario,
    /// The port of the server of each entry of traffic.
    pub(crate) server_ports: Vec<u16>,
    pub(crate) network: &'a Network,
    pub(crate) reactor: Reactor,
    pub(crate) recorder: Recorder<BatchSender>,
    pub(crate) warnings: Warnings,
}

impl RunContext<'_> {
    /// The run's time.
    pub(crate) fn now_ns(&self) -> u64 {
        self.reactor.clock.now_ns()
    }

    /// The run's time at which the kernel saw something arrive, given the kernel's stamp on the real-time clock.
    fn arrival_ns(&mut self, stamp_ns: Option<u64>) -> u64 {
        let Some(stamp_ns) = stamp_ns else {
            self.warnings.add(
                "the kernel did not timestamp all packets: arrival times include the wake-up latency of this program",
            );
            return self.now_ns();
        };
        self.reactor.clock.at_realtime(stamp_ns)
    }

    /// The outcome of a probe is known.
    fn record_probe(&mut self, probe: Name, outcome: Outcome) {
        let Outcome { number: seq, sent_ns, rtt_ns, owd_up_ns, owd_down_ns } = outcome;
        self.recorder.probe(ProbeRow { probe, seq, sent_ns, rtt_ns, owd_up_ns, owd_down_ns });
    }
}

/// All traffic of a scenario.
#[derive(Debug)]
pub(crate) struct Traffic {
    streams: Streams,
    pings: Vec<Ping>,
    /// By traffic.
    datagrams: Vec<Option<Datagrams>>,
    sources: Vec<Source>,
}

/// When an entry of traffic sends its probes.
#[derive(Debug)]
struct Source {
    random: Random,
    /// How many times it has begun something.
    begun: u64,
    /// Its index among the pings, if it is a ping.
    ping: usize,
}

impl Traffic {
    /// Opens everything that must exist before the first packet, and plans when each entry of traffic begins.
    pub(crate) fn open(seed: u64, context: &mut RunContext<'_>) -> io::Result<Self> {
        let scenario = context.scenario;
        let mut traffic = Self {
            streams: Streams::open(seed, context)?,
            pings: Vec::new(),
            datagrams: Vec::new(),
            sources: (0..scenario.traffic.len())
                .map(|index| Source { random: Random::new(seed, index), begun: 0, ping: 0 })
                .collect(),
        };
        let mut opener = Opener::new(seed);
        for (index, entry) in scenario.traffic.iter().enumerate() {
            traffic.datagrams.push(opener.open(index, context)?);
            if let TrafficKind::Ping(parameters) = &entry.kind {
                traffic.sources[index].ping = traffic.pings.len();
                traffic.pings.push(Ping::open(traffic.pings.len() as u32, index, entry, parameters, context)?);
                traffic.plan(index, 0, context);
            }
            if entry.stop_ns < context.scenario.duration_ns {
                context.reactor.at(entry.stop_ns, Event::Stop(index));
            }
        }
        Ok(traffic)
    }

    /// It is time for the next connection, probe or page of an entry of traffic.
    pub(crate) fn begin(&mut self, index: usize, context: &mut RunContext<'_>) -> io::Result<()> {
        let TrafficKind::Ping(ping) = &context.scenario.traffic[index].kind else {
            return self.streams.begin(index, context);
        };
        if ping.timing == PingTiming::Iputils {
            return self.wake(self.sources[index].ping, context);
        }
        self.sources[index].begun += 1;
        self.plan(index, self.sources[index].begun * ping.interval_ns, context);
        self.pings[self.sources[index].ping].send(context)
    }

    /// iputils' `ping` may be awake; `ping` is its index among the pings.
    fn wake(&mut self, ping: usize, context: &mut RunContext<'_>) -> io::Result<()> {
        let ping = &mut self.pings[ping];
        let (index, now_ns) = (ping.traffic, context.now_ns());
        if !ping.is_awake(now_ns) || !may_probe(index, now_ns, context) {
            return Ok(());
        }
        if let Some(wakes_ns) = ping.wake(&mut self.sources[index].random, context)?
            && may_probe(index, wakes_ns, context)
        {
            context.reactor.at(wakes_ns, Event::Begin(index));
        }
        Ok(())
    }

    /// It is time for the next datagrams of an entry of traffic, or one of its look-ups may have timed out.
    pub(crate) fn send(&mut self, index: usize, context: &mut RunContext<'_>) -> io::Result<()> {
        self.datagrams[index].as_mut().map_or(Ok(()), |datagrams| datagrams.begin(context))
    }

    fn arrivals(&mut self, index: u32, end: End, context: &mut RunContext<'_>) -> io::Result<()> {
        self.datagrams[index as usize].as_mut().map_or(Ok(()), |datagrams| datagrams.ready(end, context))
    }

    /// Stops an entry of traffic: unbounded flows are closed.
    pub(crate) fn stop(&mut self, index: usize, context: &mut RunContext<'_>) -> io::Result<()> {
        self.streams.stop(index, context)
    }

    /// A socket is ready.
    pub(crate) fn ready(&mut self, token: Token, flags: EpollFlags, context: &mut RunContext<'_>) -> io::Result<()> {
        match token {
            Token::PingAnswers(index) => {
                self.pings[index as usize].take_answers(context)?;
                self.wake(index as usize, context)
            }
            Token::PingRequests(index) => self.pings[index as usize].take_requests(context),
            Token::Listener(index) => self.streams.accept(index as usize, context),
            Token::Connection(number) => self.streams.ready(number, flags, context),
            Token::DatagramsAtFrom(index) => self.arrivals(index, End::From, context),
            Token::DatagramsAtTo(index) => self.arrivals(index, End::To, context),
            Token::Timer => Ok(()),
        }
    }

    /// Records a sample of every flow.
    pub(crate) fn sample(&self, context: &mut RunContext<'_>) -> io::Result<()> {
        self.streams.sample(context)?;
        self.datagrams.iter().flatten().for_each(|datagrams| datagrams.sample(context));
        Ok(())
    }

    /// The scenario is over, except for the answers to probes and the packets of calls.
    pub(crate) fn end(&mut self, context: &mut RunContext<'_>) -> io::Result<()> {
        self.streams.end(context)?;
        self.pings.iter_mut().for_each(Ping::end);
        for datagrams in self.datagrams.iter_mut().flatten() {
            datagrams.end(context)?;
        }
        let datagrams = self.datagrams.iter().flatten().filter_map(Datagrams::times_out_ns);
        if let Some(last_ns) = self.pings.iter().filter_map(Ping::times_out_ns).chain(datagrams).max() {
            context.reactor.at(last_ns, Event::GiveUp);
        }
        Ok(())
    }

    /// Whether a probe, or a packet of a call, is still awaited.
    pub(crate) fn is_waiting(&mut self, context: &mut RunContext<'_>) -> io::Result<bool> {
        for ping in &mut self.pings {
            if ping.is_waiting(context)? {
                return Ok(true);
            }
        }
        for datagrams in self.datagrams.iter_mut().flatten() {
            if datagrams.is_waiting(context)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Records as lost what is still awaited.
    pub(crate) fn give_up(&mut self, context: &mut RunContext<'_>) -> io::Result<()> {
        self.pings.iter_mut().try_for_each(|ping| ping.give_up(context))?;
        self.datagrams.iter_mut().flatten().try_for_each(|datagrams| datagrams.give_up(context))
    }

    /// Plans a probe for this time after the entry's start.
    fn plan(&mut self, index: usize, after_ns: u64, context: &mut RunContext<'_>) {
        let entry = &context.scenario.traffic[index];
        let nominal_ns = entry.start_ns.saturating_add(after_ns);
        if may_probe(index, nominal_ns, context) {
            let stop_ns = if nominal_ns < entry.stop_ns { entry.stop_ns } else { u64::MAX };
            let at_ns = late_ns(nominal_ns, TIMER_SLACK_NS, stop_ns, &mut self.sources[index].random);
            context.reactor.at(at_ns, Event::Begin(index));
        }
    }
}

/// Whether an entry of traffic may send a probe at this time. Probes continue after the end of the scenario, but then
/// serve only to detect which earlier ones are lost.
fn may_probe(index: usize, at_ns: u64, context: &RunContext<'_>) -> bool {
    let (stop_ns, duration_ns) = (context.scenario.traffic[index].stop_ns, context.scenario.duration_ns);
    at_ns < stop_ns || (at_ns >= duration_ns && stop_ns >= duration_ns)
}
