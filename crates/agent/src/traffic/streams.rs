//! The programs that use TCP. This module passes them the time and the events of their connections, and carries out
//! their actions.

use std::io;

use bufferscope_programs::{Ask, Opening, Random, Sockets, StreamProgram, Transfer};
use nix::sys::epoll::EpollFlags;

use super::RunContext;
use super::flow::Notification;
use super::tcp::Tcp;
use crate::reactor::Event;

/// All programs of a scenario that use TCP.
#[derive(Debug)]
pub(super) struct Streams {
    tcp: Tcp,
    /// By traffic.
    programs: Vec<Option<Planned>>,
    /// The scenario is over.
    ended: bool,
}

/// A program, and the time for which its next action is planned.
#[derive(Debug)]
struct Planned {
    program: StreamProgram<Random>,
    at_ns: Option<u64>,
}

/// The sockets of one program.
struct KernelSockets<'a, 'b> {
    traffic: usize,
    tcp: &'a mut Tcp,
    context: &'a mut RunContext<'b>,
}

impl Streams {
    /// Opens the servers, and plans when the programs begin.
    pub(super) fn open(seed: u64, context: &mut RunContext<'_>) -> io::Result<Self> {
        let program = |(index, traffic)| {
            let program = StreamProgram::new(traffic, index, seed, Random::new(seed, index))?;
            Some(Planned { program, at_ns: None })
        };
        let programs: Vec<_> = context.scenario.traffic.iter().enumerate().map(program).collect();
        let ends: Vec<_> = programs.iter().map(|planned| Some(planned.as_ref()?.program.ends())).collect();
        let mut streams = Self { tcp: Tcp::open(&ends, context)?, programs, ended: false };
        for index in 0..streams.programs.len() {
            streams.plan(index, context);
        }
        Ok(streams)
    }

    /// It is time for an action that a program planned.
    pub(super) fn begin(&mut self, index: usize, context: &mut RunContext<'_>) -> io::Result<()> {
        if self.ended {
            return Ok(());
        }
        if let Some(Planned { program, at_ns }) = &mut self.programs[index] {
            // A timer that an earlier plan has replaced fires, too.
            at_ns.take_if(|at_ns| *at_ns <= context.now_ns());
            let mut sockets = KernelSockets { traffic: index, tcp: &mut self.tcp, context };
            while program.next_ns().is_some_and(|next_ns| next_ns <= sockets.context.now_ns()) {
                program.on_time(sockets.context.now_ns(), &mut sockets)?;
            }
        }
        self.plan(index, context);
        Ok(())
    }

    /// Stops an entry of traffic.
    pub(super) fn stop(&mut self, index: usize, context: &mut RunContext<'_>) -> io::Result<()> {
        match &mut self.programs[index] {
            Some(Planned { program, .. }) => {
                program.on_stop(&mut KernelSockets { traffic: index, tcp: &mut self.tcp, context })
            }
            None => Ok(()),
        }
    }

    /// Connections have arrived at the server of an entry of traffic.
    pub(super) fn accept(&mut self, index: usize, context: &mut RunContext<'_>) -> io::Result<()> {
        self.tcp.accept(index, context)
    }

    /// A connection is ready.
    pub(super) fn ready(&mut self, number: u32, flags: EpollFlags, context: &mut RunContext<'_>) -> io::Result<()> {
        match self.tcp.ready(number, flags, context)? {
            Some(notification) if !self.ended => self.notify(notification, context),
            _ => Ok(()),
        }
    }

    /// Records a sample of every flow.
    pub(super) fn sample(&self, context: &mut RunContext<'_>) -> io::Result<()> {
        self.tcp.sample(context)
    }

    /// The scenario is over. Records the transfers that have not completed as unfinished, oldest first.
    pub(super) fn end(&mut self, context: &mut RunContext<'_>) -> io::Result<()> {
        self.ended = true;
        self.tcp.end(context)?;
        let programs = self.programs.iter_mut().enumerate();
        let unfinished = programs.filter_map(|(index, planned)| Some((index, planned.as_mut()?.program.unfinished())));
        let mut unfinished: Vec<_> = unfinished
            .flat_map(|(index, transfers)| transfers.into_iter().map(move |transfer| (index, transfer)))
            .collect();
        unfinished.sort_by_key(|(_, transfer)| transfer.started_ns);
        for (index, transfer) in unfinished {
            self.tcp.record(index, transfer, context);
        }
        Ok(())
    }

    /// Passes the events of a connection to its program.
    fn notify(&mut self, notification: Notification, context: &mut RunContext<'_>) -> io::Result<()> {
        let Notification { traffic, number, events } = notification;
        if let Some(Planned { program, .. }) = &mut self.programs[traffic] {
            let now_ns = context.now_ns();
            program.on_events(now_ns, number, events, &mut KernelSockets { traffic, tcp: &mut self.tcp, context })?;
        }
        self.plan(traffic, context);
        Ok(())
    }

    /// Plans a program's next action, unless it is already planned.
    fn plan(&mut self, index: usize, context: &mut RunContext<'_>) {
        let Some(Planned { program, at_ns }) = &mut self.programs[index] else { return };
        if let Some(next_ns) = program.next_ns().filter(|next_ns| at_ns.is_none_or(|at_ns| *next_ns < at_ns)) {
            *at_ns = Some(next_ns);
            context.reactor.at(next_ns, Event::Begin(index));
        }
    }
}

impl Sockets for KernelSockets<'_, '_> {
    type Error = io::Error;

    fn open(&mut self, opening: &Opening) -> io::Result<()> {
        self.tcp.connect(self.traffic, opening, self.context)
    }

    fn write(&mut self, connection: u32, bytes: u64) -> io::Result<()> {
        self.tcp.act(self.traffic, connection, self.context, |outgoing| outgoing.write(bytes))
    }

    fn hold(&mut self, connection: u32) -> io::Result<()> {
        self.tcp.act(self.traffic, connection, self.context, |outgoing| outgoing.hold())
    }

    fn close(&mut self, connection: u32) -> io::Result<()> {
        self.tcp.act(self.traffic, connection, self.context, |outgoing| outgoing.close())
    }

    fn ask(&mut self, connection: u32, ask: Ask) -> io::Result<()> {
        self.tcp.ask(self.traffic, connection, ask, self.context)
    }

    fn delivered(&mut self, connection: u32) -> io::Result<u64> {
        self.tcp.delivered(self.traffic, connection)
    }

    fn record(&mut self, transfer: Transfer) -> io::Result<()> {
        self.tcp.record(self.traffic, transfer, self.context);
        Ok(())
    }
}
