//! The programs of one entry of traffic over TCP.

use bufferscope_scenario::{NodeIndex, Traffic};

use crate::agenda::{Agenda, Task};
use crate::list::StreamKind;
use crate::random::{Random, Uniform};
use crate::sockets::{Sockets, Transfer};
use crate::starts::Starts;

/// The programs of one kind of traffic over TCP, at both ends of their connections. A program plans its tasks in its
/// agenda, and acts through its sockets.
pub(crate) trait Stream: Sized {
    /// Its parameters in a scenario.
    type Parameters;

    /// Whether [`on_stop`](Self::on_stop) must be called at the entry's stop.
    const HAS_TO_BE_STOPPED: bool = true;

    /// Plans how it begins. `random` is the same on every engine, unlike the delays of `starts`.
    fn new<U: Uniform>(
        parameters: &Self::Parameters,
        random: Random,
        starts: &mut Starts<U>,
        agenda: &mut Agenda,
    ) -> Self;

    /// A task is due.
    fn on_task<U: Uniform, S: Sockets>(&mut self, task: Task, run: &mut Run<'_, U, S>) -> Result<(), S::Error>;

    /// The handshake of a client is complete.
    fn on_established<U: Uniform, S: Sockets>(
        &mut self,
        _number: u32,
        _run: &mut Run<'_, U, S>,
    ) -> Result<(), S::Error> {
        Ok(())
    }

    /// All expected payload of a connection has arrived.
    fn on_arrived<U: Uniform, S: Sockets>(&mut self, _number: u32, _run: &mut Run<'_, U, S>) -> Result<(), S::Error> {
        Ok(())
    }

    /// The server of a connection has closed its side.
    fn on_closed<U: Uniform, S: Sockets>(&mut self, _number: u32, _run: &mut Run<'_, U, S>) -> Result<(), S::Error> {
        Ok(())
    }

    /// The entry's stop: unbounded flows are closed.
    fn on_stop<S: Sockets>(&mut self, _agenda: &mut Agenda, _sockets: &mut S) -> Result<(), S::Error> {
        Ok(())
    }

    /// The stop comes earlier than planned. The tasks to begin something at or after it are already forgotten.
    fn bring_stop_forward(&mut self, _stop_ns: u64) {}

    /// Changes the number of flows, which must be endless.
    fn set_flows<U: Uniform, S: Sockets>(&mut self, _flows: u32, _run: &mut Run<'_, U, S>) -> Result<(), S::Error> {
        Ok(())
    }

    /// The run is over: returns the transfers that did not complete.
    fn unfinished(&mut self) -> Vec<Transfer> {
        Vec::new()
    }
}

/// What a program works with while it handles an event.
#[derive(Debug)]
pub(crate) struct Run<'a, U, S> {
    pub(crate) now_ns: u64,
    pub(crate) starts: &'a mut Starts<U>,
    pub(crate) agenda: &'a mut Agenda,
    pub(crate) sockets: &'a mut S,
}

/// The programs of one entry of traffic over TCP, at both ends.
///
/// `U` draws the random delays with which flows and pages begin.
#[derive(Debug)]
pub struct StreamProgram<U> {
    kind: StreamKind,
    ends: [NodeIndex; 2],
    starts: Starts<U>,
    agenda: Agenda,
}

/// The events of a connection since the last notification.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionEvents {
    /// The client's handshake has completed.
    pub established: bool,
    /// All expected payload has arrived.
    pub arrived: bool,
    /// The server has closed its side, as the client sees it.
    pub closed: bool,
}

impl ConnectionEvents {
    /// Whether there is any event.
    #[inline]
    pub fn is_any(self) -> bool {
        self.established || self.arrived || self.closed
    }
}

impl<U: Uniform> StreamProgram<U> {
    /// The programs of the scenario's entry of traffic with this index; `None` if it opens no TCP connections.
    pub fn new(traffic: &Traffic, index: usize, seed: u64, jitter: U) -> Option<Self> {
        let mut starts = Starts::new(traffic, jitter);
        let mut agenda = Agenda::default();
        let random = Random::new(seed, index).split(0);
        let kind = StreamKind::new(&traffic.kind, random, &mut starts, &mut agenda)?;
        Some(Self { kind, ends: [traffic.client(), traffic.server()], starts, agenda })
    }

    /// The nodes of client and server.
    pub fn ends(&self) -> [NodeIndex; 2] {
        self.ends
    }

    /// When [`on_time`](Self::on_time) has to be called next.
    pub fn next_ns(&self) -> Option<u64> {
        self.agenda.next_ns()
    }

    /// Whether [`on_stop`](Self::on_stop) must be called at its stop.
    pub fn has_to_be_stopped(&self) -> bool {
        self.kind.has_to_be_stopped()
    }

    /// Carries out the first task that is due, if there is one.
    pub fn on_time<S: Sockets>(&mut self, now_ns: u64, sockets: &mut S) -> Result<(), S::Error> {
        let Self { kind, starts, agenda, .. } = self;
        match agenda.due(now_ns) {
            Some(task) => kind.on_task(task, &mut Run { now_ns, starts, agenda, sockets }),
            None => Ok(()),
        }
    }

    /// Handles the events of a connection.
    pub fn on_events<S: Sockets>(
        &mut self,
        now_ns: u64,
        number: u32,
        events: ConnectionEvents,
        sockets: &mut S,
    ) -> Result<(), S::Error> {
        let Self { kind, starts, agenda, .. } = self;
        let mut run = Run { now_ns, starts, agenda, sockets };
        if events.established {
            kind.on_established(number, &mut run)?;
        }
        if events.arrived {
            kind.on_arrived(number, &mut run)?;
        }
        if events.closed {
            kind.on_closed(number, &mut run)?;
        }
        Ok(())
    }

    /// The entry's stop: unbounded flows are closed.
    pub fn on_stop<S: Sockets>(&mut self, sockets: &mut S) -> Result<(), S::Error> {
        self.kind.on_stop(&mut self.agenda, sockets)
    }

    /// The stop is brought forward: nothing new begins at `stop_ns` or later. If the programs [have to be
    /// stopped](Self::has_to_be_stopped), [`on_stop`](Self::on_stop) has to be called then.
    pub fn bring_stop_forward(&mut self, stop_ns: u64) {
        self.starts.stop_ns = stop_ns;
        self.agenda.forget(Task::Begin, stop_ns);
        self.kind.bring_stop_forward(stop_ns);
    }

    /// Changes the number of flows, which must be endless: further ones begin, or the newest ones end.
    pub fn set_flows<S: Sockets>(&mut self, now_ns: u64, flows: u32, sockets: &mut S) -> Result<(), S::Error> {
        let Self { kind, starts, agenda, .. } = self;
        kind.set_flows(flows, &mut Run { now_ns, starts, agenda, sockets })
    }

    /// The run is over: returns the transfers that did not complete.
    pub fn unfinished(&mut self) -> Vec<Transfer> {
        self.kind.unfinished()
    }
}
