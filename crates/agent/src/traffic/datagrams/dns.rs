//! Look-ups: questions that are repeated, and a server that answers at once.

use std::io;
use std::os::fd::OwnedFd;

use bufferscope_endpoint::datagram::{NUMBER_BYTES, send_number, take};
use bufferscope_programs::{Attempt, Datagram, LookUp, NameServer, Random, Resolver};
use bufferscope_records::{Name, TransferRow};
use bufferscope_scenario::DnsTraffic;

use super::{AT_ONCE, DATAGRAM_BYTES, End, Opener, open_pair};
use crate::reactor::Event;
use crate::traffic::RunContext;

/// A resolver and its server.
#[derive(Debug)]
pub(in crate::traffic) struct Dns {
    index: usize,
    traffic: Name,
    name: Name,
    response_bytes: u32,
    /// The sockets at `from`, which is the server, and at `to`.
    sockets: [OwnedFd; 2],
    resolver: Resolver,
    server: NameServer,
    random: Random,
    buffer: Vec<u8>,
}

impl Dns {
    /// Opens the two ends and plans the first look-up.
    pub(super) fn open(
        index: usize,
        parameters: &DnsTraffic,
        opener: &mut Opener,
        context: &mut RunContext<'_>,
    ) -> io::Result<Self> {
        let sockets = open_pair(index, End::From, opener, context)?;
        let entry = &context.scenario.traffic[index];
        let mut dns = Self {
            index,
            traffic: context.recorder.intern(&entry.name),
            name: context.recorder.intern(&format!("{}/1", entry.name)),
            response_bytes: parameters.response_bytes,
            sockets,
            resolver: Resolver::new(parameters, entry.start_ns, entry.stop_ns),
            server: NameServer::new(parameters),
            random: opener.random(index),
            buffer: vec![0; DATAGRAM_BYTES],
        };
        dns.plan(context);
        Ok(dns)
    }

    /// Begins the next look-up.
    pub(super) fn begin(&mut self, context: &mut RunContext<'_>) -> io::Result<()> {
        if context.now_ns() >= context.scenario.duration_ns {
            return Ok(());
        }
        let number = self.resolver.begin(context.now_ns());
        self.plan(context);
        self.ask(number, context)
    }

    /// Asks the question for the first time, or asks again, or gives up. Does nothing if the look-up is over.
    pub(super) fn ask(&mut self, number: u64, context: &mut RunContext<'_>) -> io::Result<()> {
        // The answer may have arrived in time, but may not have been read yet.
        while self.take_answer(context)? {}
        match self.resolver.attempt(number) {
            Attempt::Ask { question, until_ns } => {
                // A datagram that the kernel does not accept is lost, like one that a queue does not accept.
                send(&self.sockets[1], question, &mut self.buffer)?;
                context.reactor.at(until_ns, Event::Check(self.index, number));
            }
            Attempt::Fail(look_up) => self.record(look_up, None, context),
            Attempt::Nothing => {}
        }
        Ok(())
    }

    /// Questions have arrived at the server, or answers at the other end.
    pub(super) fn receive(&mut self, end: End, context: &mut RunContext<'_>) -> io::Result<()> {
        for _ in 0..AT_ONCE {
            let taken = match end {
                End::From => self.answer()?,
                End::To => self.take_answer(context)?,
            };
            if !taken {
                break;
            }
        }
        Ok(())
    }

    /// Answers one question; false if no question has arrived.
    fn answer(&mut self) -> io::Result<bool> {
        let Some(received) = take(&self.sockets[0], &mut self.buffer)? else { return Ok(false) };
        send(&self.sockets[0], self.server.answer(received.number), &mut self.buffer)?;
        Ok(true)
    }

    /// Takes one answer; false if no answer has arrived.
    fn take_answer(&mut self, context: &mut RunContext<'_>) -> io::Result<bool> {
        let Some(received) = take(&self.sockets[1], &mut self.buffer)? else { return Ok(false) };
        let at_ns = context.arrival_ns(received.stamp_ns);
        if let Some(look_up) = self.resolver.answered(received.number, at_ns) {
            self.record(look_up, Some(at_ns), context);
        }
        Ok(true)
    }

    /// The scenario is over. Look-ups that have no answer are recorded without an end.
    pub(super) fn end(&mut self, context: &mut RunContext<'_>) -> io::Result<()> {
        while self.take_answer(context)? {}
        while let Some(look_up) = self.resolver.give_up() {
            self.record(look_up, None, context);
        }
        Ok(())
    }

    /// Records a look-up that is over.
    fn record(&mut self, look_up: LookUp, finished_ns: Option<u64>, context: &mut RunContext<'_>) {
        context.recorder.transfer(TransferRow {
            traffic: self.traffic,
            flow: self.name,
            started_ns: look_up.started_ns,
            finished_ns: finished_ns.filter(|&at_ns| at_ns <= context.scenario.duration_ns),
            bytes: self.response_bytes.into(),
        });
    }

    fn plan(&mut self, context: &mut RunContext<'_>) {
        if let Some(at_ns) = self.resolver.plan(&mut self.random) {
            context.reactor.at(at_ns, Event::Send(self.index, 0));
        }
    }
}

/// Sends a datagram out of a buffer; false if the kernel accepts no more from this socket now.
fn send(socket: &OwnedFd, datagram: Datagram, buffer: &mut [u8]) -> io::Result<bool> {
    let most = buffer.len();
    let bytes = &mut buffer[..(datagram.payload_bytes as usize).clamp(NUMBER_BYTES, most)];
    send_number(socket, datagram.number, bytes)
}
