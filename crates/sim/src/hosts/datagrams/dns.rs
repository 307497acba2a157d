//! `dns`: look-ups as the resolver of the C library makes them (resolv.conf(5)): one question and one answer. If no
//! answer arrives within the timeout, the resolver repeats the question until the attempts are used up.
//!
//! The server answers at once. Each look-up has a row, which lasts from its first question to its first answer. The row
//! has no end if the look-up failed or the run ended first.

use bufferscope_records::{Name, Sink, TransferRow};
use bufferscope_scenario::{Departures, DnsTraffic};

use super::Hosts;
use super::agenda::Agenda;
use crate::hosts::awaited::Awaited;
use crate::hosts::setup::Setup;
use crate::network::Network;
use crate::network::packet::{Datagram, Way};
use crate::observation::recording::Recording;
use crate::random::Random;
use bufferscope_programs::START_JITTER_NS;

/// A host that looks up names.
#[derive(Debug)]
pub(crate) struct Dns {
    hosts: Hosts,
    traffic: Name,
    name: Name,
    flow: u32,
    parameters: DnsTraffic,
    departures: Departures,
    agenda: Agenda<Due>,
    random: Random,
    /// The longest delay between a look-up's planned time and its start.
    jitter_ns: u64,
    stop_ns: u64,
    look_ups: Awaited<LookUp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// Begin the next look-up.
    Begin,
    /// Check whether the look-up with this number has its answer.
    Check(u64),
}

#[derive(Clone, Copy, Debug)]
struct LookUp {
    started_ns: u64,
    /// Questions asked so far.
    asked: u32,
    /// Its row has been written.
    is_over: bool,
}

impl Dns {
    pub(crate) fn new(setup: &Setup<'_>, parameters: &DnsTraffic, net: &mut Network) -> Self {
        let (name, flow) = setup.flow(1, net);
        let mut dns = Self {
            hosts: Hosts::new(setup, net),
            traffic: setup.name,
            name,
            flow,
            parameters: parameters.clone(),
            departures: parameters.departures(setup.traffic.start_ns, setup.traffic.stop_ns),
            agenda: Agenda::new(setup.slots.begin(setup.index)),
            random: setup.random(),
            jitter_ns: START_JITTER_NS.min(parameters.phase_ns()),
            stop_ns: setup.traffic.stop_ns,
            look_ups: Awaited::new(),
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
                    let number = self.look_ups.sent();
                    self.look_ups.push(LookUp { started_ns: net.now(), asked: 0, is_over: false });
                    self.ask(number, net, recording);
                    self.plan(net.now());
                }
                Due::Check(number) => self.ask(number, net, recording),
            }
        }
        self.agenda.arm(net);
    }

    /// Look-ups under way are continued.
    pub(super) fn bring_stop_forward(&mut self, stop_ns: u64) {
        self.stop_ns = stop_ns;
        self.departures.bring_stop_forward(stop_ns);
        self.agenda.forget(|at_ns, what| what == Due::Begin && at_ns >= stop_ns);
    }

    /// A question has arrived at the server, or an answer at the host that asked.
    pub(super) fn receive<S: Sink>(&mut self, datagram: Datagram, net: &mut Network, recording: &mut Recording<S>) {
        match datagram.way {
            Way::Back => {
                let answer = Datagram { way: Way::Out, ..datagram };
                self.hosts.send(answer, self.flow, self.parameters.response_bytes, net, recording);
            }
            Way::Out => self.conclude(datagram.seq, Some(net.now()), recording),
        }
    }

    /// Records the look-ups that have no answer, without an end.
    pub(super) fn give_up<S: Sink>(&mut self, recording: &mut Recording<S>) {
        self.look_ups.numbers().for_each(|number| self.conclude(number, None, recording));
    }

    /// Asks the question (again), or gives up if no attempts are left. Does nothing if the look-up is over.
    fn ask<S: Sink>(&mut self, number: u64, net: &mut Network, recording: &mut Recording<S>) {
        let DnsTraffic { request_bytes, timeout_ns, attempts, .. } = self.parameters;
        let Some(look_up) = self.look_ups.get_mut(number).filter(|look_up| !look_up.is_over) else { return };
        if look_up.asked == attempts {
            return self.conclude(number, None, recording);
        }
        look_up.asked += 1;
        let question = Datagram { traffic: self.hosts.traffic, stream: 0, seq: number, way: Way::Back };
        self.hosts.send(question, self.flow, request_bytes, net, recording);
        self.agenda.plan(net.now() + timeout_ns, Due::Check(number));
    }

    /// Records a look-up that is not over yet.
    fn conclude<S: Sink>(&mut self, number: u64, finished_ns: Option<u64>, recording: &mut Recording<S>) {
        let Some(look_up) = self.look_ups.get_mut(number).filter(|look_up| !look_up.is_over) else { return };
        look_up.is_over = true;
        recording.recorder.transfer(TransferRow {
            traffic: self.traffic,
            flow: self.name,
            started_ns: look_up.started_ns,
            finished_ns,
            bytes: self.parameters.response_bytes.into(),
        });
        while self.look_ups.conclude(|look_up| look_up.is_over).is_some() {}
    }

    fn plan(&mut self, now_ns: u64) {
        let random = &mut self.random;
        if let Some(nominal_ns) = self.departures.next(&mut || random.seed()) {
            let at_ns = (nominal_ns + random.below(self.jitter_ns)).min(self.stop_ns - 1);
            self.agenda.plan(at_ns.max(now_ns), Due::Begin);
        }
    }
}
