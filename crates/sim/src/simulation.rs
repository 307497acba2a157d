//! The run itself: takes one event after another and dispatches it, and changes the network in between ([`changes`]).

pub(crate) mod changes;

use std::ops::ControlFlow;

use bufferscope_records::{Recorder, Sink, Table};
use bufferscope_scenario::Scenario;

use crate::event_queue::Slot;
use crate::hosts::connections::Connections;
use crate::hosts::sources::TrafficSources;
use crate::hosts::streams::World;
use crate::network::Network;
use crate::network::packet::Body;
use crate::network::routes::{PortIndex, Step};
use crate::network::tap::{Tap, Tapped};
use crate::network::traffic_class::Ecn;
use crate::observation::recording::Recording;
use crate::observation::state::{SenderState, State, ports_at};
use crate::observation::state_log::StateLog;
use crate::observation::summary;
use crate::timer_slots::{Target, TimerSlots};
use crate::{Change, Progress, SimError, Summary};

/// Work between two progress reports, in [`Network::work`]'s units: about 10 ms. It is a count, because a run must not
/// depend on a clock.
const WORK_PER_REPORT: u64 = 1 << 16;
/// Connections sampled before the work done is checked again.
const CONNECTIONS_AT_ONCE: usize = 1 << 12;
const SECOND_NS: u64 = 1_000_000_000;

/// A run in progress, which can be advanced in steps, observed and changed in between.
///
/// The steps do not affect the records. A change takes effect before all other events at the same time, so a change at
/// time 0 gives the run of the changed scenario.
///
/// ```
/// use std::ops::ControlFlow;
/// use bufferscope_records::{MemorySink, Recorder};
/// use bufferscope_scenario::Experiment;
/// use bufferscope_sim::Simulation;
///
/// let text = r#"
///     title = "A link becomes slow"
///     duration = "10s"
///     link = [{ name = "line", ends = ["h1", "h2"], rate = "10mbit", delay = "5ms" }]
///     traffic = [{ name = "bulk", kind = "tcp", from = "h1", to = "h2" }]
/// "#;
/// let experiment = Experiment::parse(text, "slow.toml", &[])?;
/// let scenario = experiment.points()[0].scenario.clone();
/// let go_on = &mut |_| ControlFlow::Continue(());
///
/// let mut simulation = Simulation::new(scenario, 1, Recorder::new(MemorySink::default()))?;
/// simulation.advance(5_000_000_000, go_on)?;
/// let mut slow = vec!["link.line.rate=1mbit".to_owned()];
/// simulation.change(experiment.changed(0, None, &mut slow)?, slow)?;
/// simulation.advance(8_000_000_000, go_on)?;
/// assert_eq!(simulation.state().ports[0].rate_bps, Some(1_000_000));
/// let summary = simulation.finish(go_on)?;
/// assert_eq!(summary.changes[0].t_ns, 5_000_000_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Simulation<S: Sink> {
    /// The scenario as executed: rates and starts are those that applied at each time. This field and the next are boxed
    /// to keep hot fields on few cache lines.
    scenario: Box<Scenario>,
    /// The scenario as last requested.
    asked: Box<Scenario>,
    changes: Vec<Change>,
    seed: u64,
    /// Why the run was stopped, maybe in the middle of an event.
    stopped: Option<Stop>,
    net: Network,
    recording: Recording<S>,
    connections: Connections,
    sources: TrafficSources,
    slots: TimerSlots,
    /// When queues, flow queues and flows are sampled.
    queues: Cadence,
    flow_queues: Cadence,
    flows: Cadence,
    /// The duration is over; only the answers to probes are awaited.
    lingering: bool,
    events: u64,
}

/// When a table is sampled: at 0, at every multiple of its interval, and at the end; never if it is not recorded.
#[derive(Clone, Copy, Debug)]
struct Cadence {
    interval_ns: u64,
    end_ns: u64,
    /// When the next sample is due, if there is one.
    next_ns: Option<u64>,
}

impl Cadence {
    fn new(scenario: &Scenario, table: Table) -> Self {
        let interval_ns = scenario.sampled_every_ns(table);
        let next_ns = interval_ns.map(|_| 0);
        Self { interval_ns: interval_ns.unwrap_or_default(), end_ns: scenario.duration_ns, next_ns }
    }

    /// Whether a sample is due now. It is then taken, and the next one becomes due.
    fn take(&mut self, now_ns: u64) -> bool {
        let is_due = self.next_ns == Some(now_ns);
        if is_due {
            self.next_ns = (now_ns < self.end_ns).then(|| (now_ns + self.interval_ns).min(self.end_ns));
        }
        is_due
    }
}

/// Why a run ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// The progress callback asked for it.
    Interrupted,
    /// The records cannot be stored; finishing reports why.
    Unrecorded,
}

impl From<Stop> for SimError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Interrupted => Self::Interrupted,
            Stop::Unrecorded => Self::Unrecorded,
        }
    }
}

/// Receives the progress of the run.
type OnProgress<'p> = dyn FnMut(Progress) -> ControlFlow<()> + 'p;

impl<S: Sink> Simulation<S> {
    /// A run at time 0, before anything has happened.
    ///
    /// # Errors
    /// The same as for [`run`](crate::run).
    pub fn new(scenario: Scenario, seed: u64, recorder: Recorder<S>) -> Result<Self, SimError> {
        let slots = TimerSlots::new(&scenario);
        let mut recording = Recording::new(&scenario, recorder);
        let mut net = Network::new(&scenario, seed, slots)?;
        net.events.schedule_first(slots.sampler(), 0);
        net.events.schedule_first(slots.second(), SECOND_NS);
        let sources = TrafficSources::new(&scenario, seed, slots, &mut net, &mut recording);
        let connections = Connections::new(slots);
        let [queues, flow_queues, flows] =
            [Table::Queues, Table::FlowQueues, Table::Flows].map(|table| Cadence::new(&scenario, table));
        Ok(Self {
            asked: Box::new(scenario.clone()),
            scenario: Box::new(scenario),
            changes: Vec::new(),
            seed,
            stopped: None,
            net,
            recording,
            connections,
            sources,
            slots,
            queues,
            flow_queues,
            flows,
            lingering: false,
            events: 0,
        })
    }

    /// Shows the packets to `tap` from now on. The run must not have begun.
    ///
    /// # Panics
    /// If the simulation has advanced.
    #[must_use]
    pub fn tapped(mut self, tap: Box<dyn Tap>) -> Self {
        assert_eq!(self.events, 0, "a tap sees a run from its beginning");
        self.net.tapped = Some(Box::new(Tapped::new(tap)));
        self
    }

    /// Logs what changes in the state of TCP. The run must not have begun. In WebAssembly there is no log.
    ///
    /// # Panics
    /// If the simulation has advanced.
    #[must_use]
    pub fn logged(mut self, log: Box<dyn StateLog>) -> Self {
        assert_eq!(self.events, 0, "a log sees a run from its beginning");
        self.connections.set_log(log);
        self
    }

    /// The current time.
    pub fn now_ns(&self) -> u64 {
        self.net.now()
    }

    /// The scenario as it has been carried out so far and will be, if nothing else is changed. A rate that was changed
    /// is a schedule; of everything else that was changed, it has the last value.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The rows recorded so far.
    pub fn recorder(&self) -> &Recorder<S> {
        &self.recording.recorder
    }

    /// Handles every event before `until_ns`, and sets the clock to that time. Events at `until_ns`, including samples,
    /// are left to the next call.
    ///
    /// `on_progress` is called about every 10 ms of CPU time; [`ControlFlow::Break`] stops the run for good, because it
    /// may be in the middle of an event.
    ///
    /// # Errors
    /// [`SimError::Time`] if `until_ns` lies before now or after the duration; [`SimError::Interrupted`] now and in any
    /// later call if `on_progress` stopped the run; [`SimError::Unrecorded`] if the records can't be stored.
    pub fn advance(&mut self, until_ns: u64, on_progress: &mut OnProgress<'_>) -> Result<(), SimError> {
        self.check_running()?;
        let duration_ns = self.scenario.duration_ns;
        if !(self.now_ns()..=duration_ns).contains(&until_ns) {
            return Err(SimError::Time { until_ns, now_ns: self.now_ns(), duration_ns });
        }
        self.handle_before(until_ns, on_progress).map_err(|stop| self.stop(stop))?;
        self.net.events.pass(until_ns);
        Ok(())
    }

    /// The state at the current time.
    pub fn state(&self) -> State {
        let now_ns = self.now_ns();
        let rows = self.connections.rows(now_ns).chain(self.sources.rows(now_ns));
        State {
            now_ns,
            ports: ports_at(now_ns, &self.scenario, &self.net.ports),
            flows: rows.map(|row| SenderState::new(&row, &self.recording.recorder)).collect(),
        }
    }

    /// Runs to the end, or until the records cannot be stored.
    ///
    /// `on_progress` is called about every 10 ms of CPU time, and at the end; [`ControlFlow::Break`] stops the run.
    ///
    /// # Errors
    /// [`SimError::Interrupted`] if the run was stopped, and [`SimError::Records`] if the records could not be stored.
    pub fn finish(mut self, on_progress: &mut OnProgress<'_>) -> Result<Summary<S::Output>, SimError> {
        match self.check_running().and_then(|()| self.run_to_end(on_progress)) {
            Ok(()) | Err(SimError::Unrecorded) => self.summary(),
            Err(error) => Err(error),
        }
    }

    fn run_to_end(&mut self, on_progress: &mut OnProgress<'_>) -> Result<(), SimError> {
        self.handle_before(u64::MAX, on_progress).and_then(|()| self.report(on_progress))?;
        Ok(())
    }

    fn check_running(&self) -> Result<(), SimError> {
        match self.stopped {
            None => Ok(()),
            Some(stop) => Err(stop.into()),
        }
    }

    fn stop(&mut self, stop: Stop) -> SimError {
        self.stopped = Some(stop);
        stop.into()
    }

    /// Handles every event before `until_ns`, or all that there are until the run is over.
    fn handle_before(&mut self, until_ns: u64, on_progress: &mut OnProgress<'_>) -> Result<(), Stop> {
        while !self.lingering || self.sources.is_waiting() {
            let Some(slot) = self.net.events.pop_before(until_ns) else { break };
            self.handle_event(slot, on_progress)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn handle_event(&mut self, slot: Slot, on_progress: &mut OnProgress<'_>) -> Result<(), Stop> {
        self.events += 1;
        self.net.work += 1;
        self.handle(self.slots.target(slot), on_progress)?;
        self.settle(on_progress)?;
        self.pause(on_progress)
    }

    /// Handles the losses, departures and closed connections that the network has noted.
    #[inline(always)]
    fn settle(&mut self, on_progress: &mut OnProgress<'_>) -> Result<(), Stop> {
        self.settle_losses();
        self.settle_departures(on_progress)?;
        self.settle_closed();
        Ok(())
    }

    #[inline]
    fn handle(&mut self, target: Target, on_progress: &mut OnProgress<'_>) -> Result<(), Stop> {
        match target {
            Target::Link(port) => self.net.link_restarts(port, &mut self.recording),
            Target::Queue(port) => self.net.queue_is_due(port, &mut self.recording),
            Target::Ring(port) => self.net.free_sent(port, &mut self.recording),
            Target::Timer(port) => self.net.timer_is_due(port, &mut self.recording),
            Target::Line(port) => self.arrivals(port, on_progress)?,
            Target::Endpoint(index, role) => {
                self.connections.timer(index, role, &mut self.net, &mut self.recording);
            }
            Target::Sampler => self.sample(on_progress)?,
            Target::Second => self.end_second(),
            Target::Medium(index) => self.net.medium_is_due(index, &mut self.recording),
            Target::Begin(traffic) => self.begin(traffic),
            Target::End(traffic) => self.end(traffic),
        }
        Ok(())
    }

    /// Packets arrive at the node to which a port leads. There may be thousands in the same nanosecond if no wire
    /// spaces them out.
    #[inline]
    fn arrivals(&mut self, port: PortIndex, on_progress: &mut OnProgress<'_>) -> Result<(), Stop> {
        while let Some((packet, step)) = self.net.next_arrival(port) {
            match step {
                Step::Forward(next) => {
                    self.net.forward(packet, next, &mut self.recording);
                }
                Step::Deliver => {
                    if let Some((body, ecn)) = self.net.deliver(packet) {
                        self.receive(&body, ecn);
                    }
                }
            }
            self.pause(on_progress)?;
        }
        Ok(())
    }

    /// A packet has arrived at its destination.
    #[inline]
    fn receive(&mut self, body: &Body, ecn: Ecn) {
        let Self { sources, connections, net, recording, .. } = self;
        match body {
            Body::Tcp(segment) => {
                if let Some((id, events)) = connections.receive(segment, ecn, net, recording) {
                    sources.notify(id, events, &mut World { connections, net, recording });
                }
            }
            Body::Echo(echo) => sources.receive_echo(*echo, net, recording),
            Body::Datagram(datagram) => sources.receive_datagram(*datagram, net, recording),
        }
    }

    /// Takes the samples that are due. They show the state before anything else that happens in the same nanosecond.
    fn sample(&mut self, on_progress: &mut OnProgress<'_>) -> Result<(), Stop> {
        let now_ns = self.net.now();
        self.net.record_rates(&mut self.recording);
        if self.queues.take(now_ns) {
            self.net.sample_queues(&mut self.recording);
        }
        if self.flow_queues.take(now_ns) {
            self.net.sample_flow_queues(&mut self.recording);
        }
        if self.flows.take(now_ns) {
            self.sample_flows(now_ns, on_progress)?;
        }
        let duration_ns = self.scenario.duration_ns;
        if now_ns < duration_ns {
            let next = [self.queues.next_ns, self.flow_queues.next_ns, self.flows.next_ns, Some(duration_ns)];
            let next_ns = next.into_iter().flatten().min().expect("the end is among them");
            self.net.events.schedule_first(self.slots.sampler(), next_ns);
        } else {
            self.sources.give_up(&mut self.net, &mut self.recording);
            self.recording.close_sojourns(now_ns);
            self.lingering = true;
        }
        Ok(())
    }

    fn sample_flows(&mut self, now_ns: u64, on_progress: &mut OnProgress<'_>) -> Result<(), Stop> {
        for first in (0..self.connections.slots()).step_by(CONNECTIONS_AT_ONCE) {
            let indices = first..first + CONNECTIONS_AT_ONCE;
            self.net.work += self.connections.sample(indices, now_ns, &mut self.recording);
            self.pause(on_progress)?;
        }
        self.net.work += self.sources.sample(now_ns, &mut self.recording);
        Ok(())
    }

    fn end_second(&mut self) {
        let now_ns = self.net.now();
        if now_ns < self.scenario.duration_ns {
            self.net.work += self.recording.end_second(now_ns);
            self.net.events.schedule_first(self.slots.second(), now_ns + SECOND_NS);
        }
    }

    fn begin(&mut self, traffic: u32) {
        if !self.lingering {
            let Self { sources, connections, net, recording, .. } = self;
            sources.begin(traffic, &mut World { connections, net, recording });
        }
    }

    fn end(&mut self, traffic: u32) {
        let Self { sources, connections, net, recording, .. } = self;
        sources.end(traffic, &mut World { connections, net, recording });
    }

    #[inline(always)]
    fn settle_losses(&mut self) {
        while let Some(body) = self.net.lost.pop() {
            self.sources.lose(&body, &mut self.net, &mut self.recording);
        }
    }

    #[inline(always)]
    fn settle_departures(&mut self, on_progress: &mut OnProgress<'_>) -> Result<(), Stop> {
        while let Some(packet) = self.net.departures.pop() {
            self.connections.depart(&packet, &mut self.net, &mut self.recording);
            self.pause(on_progress)?;
        }
        Ok(())
    }

    /// Forgets the connections that are over. Nothing in this event can refer to them any more.
    #[inline(always)]
    fn settle_closed(&mut self) {
        if !self.net.emptied.is_empty() {
            self.connections.note_emptied(self.net.emptied.drain(..));
        }
        if self.connections.any_closed() {
            self.connections.forget_closed(self.flows.next_ns, &mut self.net, &mut self.recording);
        }
    }

    /// Reports the progress if enough work was done since the last report.
    #[inline]
    fn pause(&mut self, on_progress: &mut OnProgress<'_>) -> Result<(), Stop> {
        if self.net.work < WORK_PER_REPORT { Ok(()) } else { self.report(on_progress) }
    }

    /// Reports the progress of the run, and learns whether to continue.
    #[cold]
    fn report(&mut self, on_progress: &mut OnProgress<'_>) -> Result<(), Stop> {
        self.net.work = 0;
        let duration_ns = self.scenario.duration_ns;
        if on_progress(Progress { now_ns: self.net.now().min(duration_ns), duration_ns }).is_break() {
            return Err(Stop::Interrupted);
        }
        self.recording.recorder.check().map_err(|_| Stop::Unrecorded)
    }

    fn summary(self) -> Result<Summary<S::Output>, SimError> {
        Ok(Summary {
            events: self.events,
            hops: self.net.hops,
            ended_ns: self.net.now(),
            ports: summary::ports(&self.scenario, &self.net.ports),
            warnings: summary::warnings(&self.scenario, &self.net.ports),
            flows: self.connections.into_accounts(&self.net).into_flows(&self.scenario),
            changes: self.changes,
            output: self.recording.recorder.finish()?,
        })
    }
}

#[cfg(test)]
mod tests;
