//! `dns`: look-ups of names.
//!
//! Each look-up has a row, which lasts from its first question to its first answer. The row has no end if the look-up
//! failed or the run ended first.

use bufferscope_programs::{self as programs, Attempt, LookUp, NameServer, Resolver};
use bufferscope_records::{Name, Sink, TransferRow};
use bufferscope_scenario::DnsTraffic;

use super::Hosts;
use super::agenda::Agenda;
use crate::hosts::setup::Setup;
use crate::network::Network;
use crate::network::packet::{Datagram, Direction};
use crate::observation::recording::Recording;

/// A host that looks up names.
#[derive(Debug)]
pub(crate) struct Dns {
    hosts: Hosts,
    traffic: Name,
    name: Name,
    flow: u32,
    response_bytes: u32,
    resolver: Resolver,
    server: NameServer,
    agenda: Agenda<Due>,
    random: programs::Random,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// Begin the next look-up.
    Begin,
    /// Check whether the look-up with this number has its answer.
    Check(u64),
}

impl Dns {
    pub(crate) fn new(setup: &Setup<'_>, parameters: &DnsTraffic, net: &mut Network) -> Self {
        let (name, flow) = setup.flow(1, net);
        let mut dns = Self {
            hosts: Hosts::new(setup, net),
            traffic: setup.name,
            name,
            flow,
            response_bytes: parameters.response_bytes,
            resolver: Resolver::new(parameters, setup.traffic.start_ns, setup.traffic.stop_ns),
            server: NameServer::new(parameters),
            agenda: Agenda::new(setup.slots.begin(setup.index)),
            random: setup.starts(),
        };
        dns.plan(0);
        dns.agenda.arm(net);
        dns
    }

    /// It is time to ask.
    pub(super) fn begin<S: Sink>(&mut self, net: &mut Network, recording: &mut Recording<S>) {
        while let Some(plan) = self.agenda.due(net.now()) {
            match plan {
                Due::Begin => {
                    let number = self.resolver.begin(net.now());
                    self.attempt(number, net, recording);
                    self.plan(net.now());
                }
                Due::Check(number) => self.attempt(number, net, recording),
            }
        }
        self.agenda.arm(net);
    }

    /// Look-ups under way are continued.
    pub(super) fn bring_stop_forward(&mut self, stop_ns: u64) {
        self.resolver.bring_stop_forward(stop_ns);
        self.agenda.forget(|at_ns, what| what == Due::Begin && at_ns >= stop_ns);
    }

    /// A question has arrived at the server, or an answer at the host that asked.
    pub(super) fn receive<S: Sink>(&mut self, datagram: Datagram, net: &mut Network, recording: &mut Recording<S>) {
        match datagram.direction {
            Direction::Reverse => {
                let answer = self.server.answer(datagram.seq);
                self.hosts.send(answer, datagram.stream, Direction::Forward, self.flow, net, recording);
            }
            Direction::Forward => {
                if let Some(look_up) = self.resolver.answered(datagram.seq, net.now()) {
                    self.record(look_up, Some(net.now()), recording);
                }
            }
        }
    }

    /// Records the look-ups that have no answer, without an end.
    pub(super) fn give_up<S: Sink>(&mut self, recording: &mut Recording<S>) {
        while let Some(look_up) = self.resolver.give_up() {
            self.record(look_up, None, recording);
        }
    }

    /// Asks the question (again), or gives up if no attempts are left. Does nothing if the look-up is over.
    fn attempt<S: Sink>(&mut self, number: u64, net: &mut Network, recording: &mut Recording<S>) {
        match self.resolver.attempt(number) {
            Attempt::Ask { question, until_ns } => {
                self.hosts.send(question, 0, Direction::Reverse, self.flow, net, recording);
                self.agenda.plan(until_ns, Due::Check(number));
            }
            Attempt::Fail(look_up) => self.record(look_up, None, recording),
            Attempt::Nothing => {}
        }
    }

    fn record<S: Sink>(&self, look_up: LookUp, finished_ns: Option<u64>, recording: &mut Recording<S>) {
        recording.recorder.transfer(TransferRow {
            traffic: self.traffic,
            flow: self.name,
            started_ns: look_up.started_ns,
            finished_ns,
            bytes: self.response_bytes.into(),
        });
    }

    fn plan(&mut self, now_ns: u64) {
        if let Some(at_ns) = self.resolver.plan(&mut self.random) {
            self.agenda.plan(at_ns.max(now_ns), Due::Begin);
        }
    }
}
