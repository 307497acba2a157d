//! The programs of one entry of traffic over UDP.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bufferscope_scenario::{End, Traffic};

use crate::list::DatagramKind;
use crate::netalyzr::NetalyzrEstimate;
use crate::probes::Outcome;
use crate::random::{Random, Uniform};
use crate::sockets::Transfer;
use crate::starts::late_ns;

/// A datagram. Of its contents, only the number matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Its number among those of its stream, counted from 0. An answer has the number of its question.
    pub number: u64,
    /// UDP payload.
    pub payload_bytes: u32,
}

/// A datagram that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Where it has arrived.
    pub at: End,
    /// Its stream.
    pub stream: u32,
    /// Its number.
    pub number: u64,
    /// When the host saw it, which may be earlier than now.
    pub at_ns: u64,
}

/// What the two ends of a flow have counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// UDP payload of each datagram.
    pub payload_bytes: u32,
    /// Datagrams sent.
    pub sent: u64,
    /// The highest number that has arrived, plus one.
    pub expected: u64,
    /// Datagrams that have arrived.
    pub received: u64,
}

/// The actions of programs over UDP, which an engine carries out. Flows are given by their index.
pub trait DatagramSockets {
    /// Why something could not be done.
    type Error;

    /// Sends a datagram of a stream; false if the host accepts no more now.
    fn send(&mut self, from: End, stream: u32, datagram: Datagram) -> Result<bool, Self::Error>;

    /// The outcome of a probe of this flow; `None`: of the entry itself.
    fn record_probe(&mut self, flow: Option<u32>, outcome: Outcome) -> Result<(), Self::Error>;

    /// A transfer is over.
    fn record_transfer(&mut self, transfer: Transfer) -> Result<(), Self::Error>;

    /// A test of the path's buffers has a result.
    fn record_estimate(&mut self, estimate: NetalyzrEstimate) -> Result<(), Self::Error>;
}

/// What the file of a kind of traffic over UDP defines.
pub(crate) trait OverUdp {
    /// Its parameters in a scenario.
    type Parameters;
    /// Its programs.
    type Programs: Datagrams;

    /// Whether the result is wrong if many datagrams leave late, so that an engine must report it.
    const PUNCTUAL: bool = false;

    /// Plans how it begins. A datagram may arrive `spread_ns` later than one that was sent after it.
    fn programs<U: Uniform>(parameters: &Self::Parameters, spread_ns: u64, plans: &mut Plans<U>) -> Self::Programs;
}

/// The programs of one kind of traffic over UDP, at both ends. They plan their tasks in [`Plans`], and act through their
/// sockets. The number of a task says what it is; only the program that planned it knows its meaning.
///
/// A datagram belongs to a stream. The first streams are the flows, which have names and accounts.
pub(crate) trait Datagrams {
    /// Whether arrivals have to be reported before tasks, and before outcomes are [settled](Self::settle), because what
    /// has not been reported counts as lost.
    const AWAITS: bool;

    /// Number of flows.
    fn flows(&self) -> u32;

    /// Number of streams.
    fn streams(&self) -> u32 {
        self.flows()
    }

    /// Number of sockets at the end that is not the server. If there are several, each sends one of the streams and
    /// receives nothing.
    fn clients(&self) -> u32 {
        1
    }

    /// A task is due.
    fn on_task<U: Uniform, S: DatagramSockets>(
        &mut self,
        task: u64,
        now_ns: u64,
        plans: &mut Plans<U>,
        sockets: &mut S,
    ) -> Result<(), S::Error>;

    /// A datagram has arrived. Its number may come from a network, so there need not be such a datagram.
    fn on_arrival<U: Uniform, S: DatagramSockets>(
        &mut self,
        arrival: Arrival,
        plans: &mut Plans<U>,
        sockets: &mut S,
    ) -> Result<(), S::Error>;

    /// A datagram, or an answer to it, is known to be lost.
    fn on_loss(&mut self, _stream: u32, _number: u64) {}

    /// Records the outcomes that are known by now.
    fn settle<S: DatagramSockets>(&mut self, _now_ns: u64, _sockets: &mut S) -> Result<(), S::Error> {
        Ok(())
    }

    /// Nothing new is sent at `stop_ns` or later, which is earlier than planned.
    fn bring_stop_forward<U: Uniform>(&mut self, stop_ns: u64, plans: &mut Plans<U>);

    /// What a flow that has begun has counted; `None` if its kind does not count.
    fn counted(&self, _flow: u32) -> Option<Counted> {
        None
    }

    /// When the first awaited outcome times out.
    fn first_timeout_ns(&self) -> Option<u64> {
        None
    }

    /// When the last awaited outcome times out.
    fn last_timeout_ns(&self) -> Option<u64> {
        None
    }

    /// Whether an outcome is still awaited that may become known after the scenario's end.
    fn is_waiting(&self) -> bool {
        false
    }

    /// The scenario is over. Records everything else that did not complete.
    fn finish<U: Uniform, S: DatagramSockets>(
        &mut self,
        _plans: &mut Plans<U>,
        _sockets: &mut S,
    ) -> Result<(), S::Error> {
        Ok(())
    }

    /// After the end, sends on only to find out which of the awaited datagrams are lost. For engines that do not learn of
    /// losses otherwise.
    fn resume<U: Uniform>(&mut self, _now_ns: u64, _plans: &mut Plans<U>) {}

    /// Records as lost what is still awaited.
    fn give_up<S: DatagramSockets>(&mut self, _sockets: &mut S) -> Result<(), S::Error> {
        Ok(())
    }
}

/// The planned tasks of an entry, by time; those of the same time are in the order of their numbers.
#[derive(Debug)]
pub(crate) struct Plans<U> {
    tasks: BinaryHeap<Reverse<(u64, u64)>>,
    pub(crate) start_ns: u64,
    pub(crate) stop_ns: u64,
    /// Random numbers that are the same on every engine.
    pub(crate) random: Random,
    /// How late the timers of the programs are.
    slack: U,
}

impl<U: Uniform> Plans<U> {
    /// Plans a task.
    pub(crate) fn plan(&mut self, at_ns: u64, task: u64) {
        self.tasks.push(Reverse((at_ns, task)));
    }

    /// Plans a task of a program that wakes up to `most_ns` late, but before the stop, and not before now.
    pub(crate) fn plan_wake(&mut self, nominal_ns: u64, most_ns: u64, now_ns: u64, task: u64) {
        let at_ns = late_ns(nominal_ns, most_ns, self.stop_ns, &mut self.slack);
        self.plan(at_ns.max(now_ns), task);
    }

    /// Forgets the tasks that `is_over` says will not be carried out.
    pub(crate) fn forget(&mut self, is_over: impl Fn(u64, u64) -> bool) {
        self.tasks.retain(|&Reverse((at_ns, task))| !is_over(at_ns, task));
    }

    fn next_ns(&self) -> Option<u64> {
        self.tasks.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    fn due(&mut self, now_ns: u64) -> Option<u64> {
        self.next_ns().filter(|at_ns| *at_ns <= now_ns)?;
        self.tasks.pop().map(|Reverse((_, task))| task)
    }
}

/// The programs of one entry of traffic over UDP, at both ends.
///
/// `U` draws how late the timers of the programs are. On a real machine they are late by themselves ([`Punctual`]).
#[derive(Debug)]
pub struct DatagramProgram<U> {
    kind: DatagramKind,
    plans: Plans<U>,
}

/// Timers that are never late.
#[derive(Clone, Copy, Debug)]
pub struct Punctual;

impl Uniform for Punctual {
    fn bits(&mut self) -> u64 {
        0
    }
}

impl<U: Uniform> DatagramProgram<U> {
    /// The programs of the scenario's entry of traffic with this index; `None` if it sends no datagrams. A datagram may
    /// arrive `spread_ns` later than one that was sent after it.
    pub fn new(traffic: &Traffic, index: usize, seed: u64, spread_ns: u64, slack: U) -> Option<Self> {
        let (start_ns, stop_ns) = (traffic.start_ns, traffic.stop_ns);
        let random = Random::new(seed, index);
        let mut plans = Plans { tasks: BinaryHeap::new(), start_ns, stop_ns, random, slack };
        let kind = DatagramKind::new(&traffic.kind, spread_ns, &mut plans)?;
        Some(Self { kind, plans })
    }

    /// Number of flows, which have names and accounts.
    pub fn flows(&self) -> u32 {
        self.kind.flows()
    }

    /// Number of streams to which datagrams belong. The first are the flows; the others belong to the last flow.
    pub fn streams(&self) -> u32 {
        self.kind.streams()
    }

    /// Number of sockets at the end that is not the server. If there are several, each sends one of the streams and
    /// receives nothing.
    pub fn clients(&self) -> u32 {
        self.kind.clients()
    }

    /// Whether arrivals have to be reported before [`on_time`](Self::on_time) and [`settle`](Self::settle), because what
    /// has not been reported counts as lost.
    pub fn awaits(&self) -> bool {
        self.kind.awaits()
    }

    /// Whether the result is wrong if many datagrams leave late.
    pub fn is_punctual(&self) -> bool {
        self.kind.is_punctual()
    }

    /// When [`on_time`](Self::on_time) has to be called next.
    #[inline]
    pub fn next_ns(&self) -> Option<u64> {
        self.plans.next_ns()
    }

    /// Carries out the first task that is due, if there is one.
    pub fn on_time<S: DatagramSockets>(&mut self, now_ns: u64, sockets: &mut S) -> Result<(), S::Error> {
        match self.plans.due(now_ns) {
            Some(task) => self.kind.on_task(task, now_ns, &mut self.plans, sockets),
            None => Ok(()),
        }
    }

    /// A datagram has arrived.
    #[inline]
    pub fn on_arrival<S: DatagramSockets>(&mut self, arrival: Arrival, sockets: &mut S) -> Result<(), S::Error> {
        self.kind.on_arrival(arrival, &mut self.plans, sockets)
    }

    /// A datagram, or an answer to it, is known to be lost.
    pub fn on_loss(&mut self, stream: u32, number: u64) {
        self.kind.on_loss(stream, number);
    }

    /// Records the outcomes that are known by now.
    #[inline]
    pub fn settle<S: DatagramSockets>(&mut self, now_ns: u64, sockets: &mut S) -> Result<(), S::Error> {
        self.kind.settle(now_ns, sockets)
    }

    /// Nothing new is sent at `stop_ns` or later, which is earlier than planned.
    pub fn bring_stop_forward(&mut self, stop_ns: u64) {
        self.plans.stop_ns = stop_ns;
        self.kind.bring_stop_forward(stop_ns, &mut self.plans);
    }

    /// What a flow that has begun has counted; `None` if its kind does not count.
    pub fn counted(&self, flow: u32) -> Option<Counted> {
        self.kind.counted(flow)
    }

    /// When the first awaited outcome times out.
    pub fn first_timeout_ns(&self) -> Option<u64> {
        self.kind.first_timeout_ns()
    }

    /// When the last awaited outcome times out.
    pub fn last_timeout_ns(&self) -> Option<u64> {
        self.kind.last_timeout_ns()
    }

    /// Whether an outcome is still awaited that may become known after the scenario's end.
    pub fn is_waiting(&self) -> bool {
        self.kind.is_waiting()
    }

    /// The scenario is over. Records everything else that did not complete.
    pub fn finish<S: DatagramSockets>(&mut self, sockets: &mut S) -> Result<(), S::Error> {
        self.kind.finish(&mut self.plans, sockets)
    }

    /// After the end, sends on only to find out which of the awaited datagrams are lost. For engines that do not learn of
    /// losses otherwise.
    pub fn resume(&mut self, now_ns: u64) {
        self.kind.resume(now_ns, &mut self.plans);
    }

    /// Records as lost what is still awaited.
    pub fn give_up<S: DatagramSockets>(&mut self, sockets: &mut S) -> Result<(), S::Error> {
        self.kind.give_up(sockets)
    }
}
