//! Look-ups: questions that are asked again, and a server that answers at once.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

use bufferscope_records::{Name, TransferRow};
use bufferscope_scenario::{Departures, DnsTraffic};

use super::{AT_ONCE, DATAGRAM_BYTES, End, NUMBER_BYTES, Opener, open_pair, send_number, take};
use crate::reactor::Event;
use crate::traffic::{Desk, START_JITTER_NS};
use bufferscope_programs::Random;

/// A resolver and its server.
#[derive(Debug)]
pub(in crate::traffic) struct Dns {
    index: usize,
    traffic: Name,
    name: Name,
    parameters: DnsTraffic,
    /// At `from`, the server, and at `to`.
    sockets: [OwnedFd; 2],
    departures: Departures,
    random: Random,
    /// Look-ups begun so far.
    begun: u64,
    /// Those that have no answer yet, by number.
    open: BTreeMap<u64, LookUp>,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct LookUp {
    started_ns: u64,
    /// Questions asked so far.
    asked: u32,
}

impl Dns {
    /// Opens the two ends and plans the first look-up.
    pub(super) fn open(
        index: usize,
        parameters: &DnsTraffic,
        opener: &mut Opener,
        desk: &mut Desk<'_>,
    ) -> io::Result<Self> {
        let sockets = open_pair(index, End::From, opener, desk)?;
        let entry = &desk.scenario.traffic[index];
        let mut dns = Self {
            index,
            traffic: desk.recorder.intern(&entry.name),
            name: desk.recorder.intern(&format!("{}/1", entry.name)),
            parameters: parameters.clone(),
            sockets,
            departures: parameters.departures(entry.start_ns, entry.stop_ns),
            random: opener.random(index),
            begun: 0,
            open: BTreeMap::new(),
            buffer: vec![0; DATAGRAM_BYTES],
        };
        dns.plan(desk);
        Ok(dns)
    }

    /// Begins the next look-up.
    pub(super) fn begin(&mut self, desk: &mut Desk<'_>) -> io::Result<()> {
        if desk.now_ns() >= desk.scenario.duration_ns {
            return Ok(());
        }
        let number = self.begun;
        self.begun += 1;
        self.open.insert(number, LookUp { started_ns: desk.now_ns(), asked: 0 });
        self.plan(desk);
        self.ask(number, desk)
    }

    /// Asks for the first time, or again, or gives up; of a look-up that is over, nothing.
    pub(super) fn ask(&mut self, number: u64, desk: &mut Desk<'_>) -> io::Result<()> {
        let Some(look_up) = self.open.get_mut(&number) else { return Ok(()) };
        if look_up.asked == self.parameters.attempts {
            self.conclude(number, None, desk);
            return Ok(());
        }
        look_up.asked += 1;
        let question = bytes(&mut self.buffer, self.parameters.request_bytes);
        // What the kernel does not take is lost like what a queue does not.
        send_number(&self.sockets[1], number, question)?;
        desk.reactor.at(desk.now_ns() + self.parameters.timeout_ns, Event::Check(self.index, number));
        Ok(())
    }

    /// Questions have arrived at the server, or answers at the other end.
    pub(super) fn receive(&mut self, end: End, desk: &mut Desk<'_>) -> io::Result<()> {
        for _ in 0..AT_ONCE {
            let socket = &self.sockets[usize::from(end == End::To)];
            let Some(received) = take(socket, &mut self.buffer)? else { break };
            match end {
                End::From => {
                    let answer = bytes(&mut self.buffer, self.parameters.response_bytes);
                    send_number(&self.sockets[0], received.number, answer)?;
                }
                End::To => {
                    let at_ns = desk.arrival_ns(received.stamp_ns);
                    self.conclude(received.number, Some(at_ns), desk);
                }
            }
        }
        Ok(())
    }

    /// The scenario is over: look-ups without an answer have no end.
    pub(super) fn end(&mut self, desk: &mut Desk<'_>) {
        while let Some(&number) = self.open.keys().next() {
            self.conclude(number, None, desk);
        }
    }

    /// Records a look-up that is not over yet.
    fn conclude(&mut self, number: u64, finished_ns: Option<u64>, desk: &mut Desk<'_>) {
        let Some(look_up) = self.open.remove(&number) else { return };
        desk.recorder.transfer(TransferRow {
            traffic: self.traffic,
            flow: self.name,
            started_ns: look_up.started_ns,
            finished_ns: finished_ns.filter(|&at_ns| at_ns <= desk.scenario.duration_ns),
            bytes: self.parameters.response_bytes.into(),
        });
    }

    fn plan(&mut self, desk: &mut Desk<'_>) {
        let random = &mut self.random;
        let jitter_ns = START_JITTER_NS.min(self.parameters.phase_ns());
        if let Some(nominal_ns) = self.departures.next(&mut || random.bits()) {
            desk.reactor.at(nominal_ns + random.below(jitter_ns), Event::Send(self.index, 0));
        }
    }
}

/// A datagram of that size, of which only the number means anything.
fn bytes(buffer: &mut [u8], size: u32) -> &mut [u8] {
    let most = buffer.len();
    &mut buffer[..(size as usize).clamp(NUMBER_BYTES, most)]
}
