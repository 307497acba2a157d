//! The programs that use TCP. This module passes them the time and the events of their connections, and carries out
//! their actions.

use std::io;

use bufferscope_programs::{Ask, Opening, Program, Random, Sockets, Transfer};
use nix::sys::epoll::EpollFlags;

use super::Desk;
use super::flow::Told;
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
    program: Program<Random>,
    at_ns: Option<u64>,
}

/// The sockets of one program.
struct Hands<'a, 'b> {
    traffic: usize,
    tcp: &'a mut Tcp,
    desk: &'a mut Desk<'b>,
}

impl Streams {
    /// Opens the servers, and plans when the programs begin.
    pub(super) fn open(seed: u64, desk: &mut Desk<'_>) -> io::Result<Self> {
        let program = |(index, traffic)| {
            let program = Program::new(traffic, index, seed, Random::new(seed, index))?;
            Some(Planned { program, at_ns: None })
        };
        let programs: Vec<_> = desk.scenario.traffic.iter().enumerate().map(program).collect();
        let ends: Vec<_> = programs.iter().map(|planned| Some(planned.as_ref()?.program.ends())).collect();
        let mut streams = Self { tcp: Tcp::open(&ends, desk)?, programs, ended: false };
        for index in 0..streams.programs.len() {
            streams.plan(index, desk);
        }
        Ok(streams)
    }

    /// It is time for an action that a program planned.
    pub(super) fn begin(&mut self, index: usize, desk: &mut Desk<'_>) -> io::Result<()> {
        if self.ended {
            return Ok(());
        }
        if let Some(Planned { program, at_ns }) = &mut self.programs[index] {
            *at_ns = None;
            let mut hands = Hands { traffic: index, tcp: &mut self.tcp, desk };
            while program.next_ns().is_some_and(|next_ns| next_ns <= hands.desk.now_ns()) {
                program.on_time(hands.desk.now_ns(), &mut hands)?;
            }
        }
        self.plan(index, desk);
        Ok(())
    }

    /// Stops an entry of traffic.
    pub(super) fn stop(&mut self, index: usize, desk: &mut Desk<'_>) -> io::Result<()> {
        match &mut self.programs[index] {
            Some(Planned { program, .. }) => program.on_stop(&mut Hands { traffic: index, tcp: &mut self.tcp, desk }),
            None => Ok(()),
        }
    }

    /// Connections have arrived at the server of an entry of traffic.
    pub(super) fn accept(&mut self, index: usize, desk: &mut Desk<'_>) -> io::Result<()> {
        self.tcp.accept(index, desk)
    }

    /// A connection is ready.
    pub(super) fn ready(&mut self, number: u32, flags: EpollFlags, desk: &mut Desk<'_>) -> io::Result<()> {
        match self.tcp.ready(number, flags, desk)? {
            Some(told) if !self.ended => self.tell(told, desk),
            _ => Ok(()),
        }
    }

    /// Records a sample of every flow.
    pub(super) fn sample(&self, desk: &mut Desk<'_>) -> io::Result<()> {
        self.tcp.sample(desk)
    }

    /// The scenario is over. Records the transfers that have not completed as unfinished, oldest first.
    pub(super) fn end(&mut self, desk: &mut Desk<'_>) -> io::Result<()> {
        self.ended = true;
        self.tcp.end(desk)?;
        let programs = self.programs.iter_mut().enumerate();
        let unfinished = programs.filter_map(|(index, planned)| Some((index, planned.as_mut()?.program.unfinished())));
        let mut unfinished: Vec<_> = unfinished
            .flat_map(|(index, transfers)| transfers.into_iter().map(move |transfer| (index, transfer)))
            .collect();
        unfinished.sort_by_key(|(_, transfer)| transfer.started_ns);
        for (index, transfer) in unfinished {
            self.tcp.record(index, transfer, desk);
        }
        Ok(())
    }

    /// Passes the events of a connection to its program.
    fn tell(&mut self, told: Told, desk: &mut Desk<'_>) -> io::Result<()> {
        let Told { traffic, number, news } = told;
        if let Some(Planned { program, .. }) = &mut self.programs[traffic] {
            let now_ns = desk.now_ns();
            program.hear(now_ns, number, news, &mut Hands { traffic, tcp: &mut self.tcp, desk })?;
        }
        self.plan(traffic, desk);
        Ok(())
    }

    /// Plans a program's next action, unless it is already planned.
    fn plan(&mut self, index: usize, desk: &mut Desk<'_>) {
        let Some(Planned { program, at_ns }) = &mut self.programs[index] else { return };
        if let Some(next_ns) = program.next_ns().filter(|next_ns| at_ns.is_none_or(|at_ns| *next_ns < at_ns)) {
            *at_ns = Some(next_ns);
            desk.reactor.at(next_ns, Event::Begin(index));
        }
    }
}

impl Sockets for Hands<'_, '_> {
    type Error = io::Error;

    fn open(&mut self, opening: &Opening) -> io::Result<()> {
        self.tcp.connect(self.traffic, opening, self.desk)
    }

    fn write(&mut self, connection: u32, bytes: u64) -> io::Result<()> {
        self.tcp.act(self.traffic, connection, self.desk, |outgoing| outgoing.write(bytes))
    }

    fn hold(&mut self, connection: u32) -> io::Result<()> {
        self.tcp.act(self.traffic, connection, self.desk, |outgoing| outgoing.hold())
    }

    fn close(&mut self, connection: u32) -> io::Result<()> {
        self.tcp.act(self.traffic, connection, self.desk, |outgoing| outgoing.close())
    }

    fn ask(&mut self, connection: u32, ask: Ask) -> io::Result<()> {
        self.tcp.ask(self.traffic, connection, ask, self.desk)
    }

    fn delivered(&mut self, connection: u32) -> io::Result<u64> {
        self.tcp.delivered(self.traffic, connection)
    }

    fn record(&mut self, transfer: Transfer) -> io::Result<()> {
        self.tcp.record(self.traffic, transfer, self.desk);
        Ok(())
    }
}
