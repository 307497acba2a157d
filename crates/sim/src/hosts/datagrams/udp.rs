//! `udp`: flows that send at a given rate, whether or not their datagrams arrive, as `iperf3 -u` does.
//!
//! The receiver counts by sequence number: a datagram is lost if it is missing and one with a higher number has arrived
//! (RFC 3550, section A.3; iperf3 counts the same way). If datagrams are dropped and none with a higher number arrives,
//! the receiver cannot notice; they count as under way.

use bufferscope_programs::TIMER_SLACK_NS;
use bufferscope_records::{Datagrams, FlowRow, Name, Sink};
use bufferscope_scenario::{Departures, UdpTraffic};

use super::Hosts;
use super::agenda::Agenda;
use crate::hosts::setup::Setup;
use crate::network::Network;
use crate::network::packet::{Datagram, Way};
use crate::observation::recording::Recording;
use crate::random::Random;
use bufferscope_programs::START_JITTER_NS;

/// The flows of one traffic.
#[derive(Debug)]
pub(crate) struct Udp {
    hosts: Hosts,
    payload_bytes: u32,
    flows: Vec<UdpFlow>,
    /// The next datagram of each flow, by index.
    agenda: Agenda<u32>,
    random: Random,
    /// The longest delay between a datagram's planned time and its departure.
    slack_ns: u64,
    stop_ns: u64,
}

#[derive(Debug)]
struct UdpFlow {
    name: Name,
    flow: u32,
    departures: Departures,
    sent: u64,
    received: u64,
    /// The highest number that has arrived, plus one.
    expected: u64,
}

impl Udp {
    pub(crate) fn new(setup: &Setup<'_>, parameters: &UdpTraffic, net: &mut Network) -> Self {
        let mut random = setup.random();
        let (start_ns, stop_ns) = (setup.traffic.start_ns, setup.traffic.stop_ns);
        let jitter_ns = START_JITTER_NS.max(parameters.phase_ns());
        let mut flow = |number| {
            let (name, flow) = setup.flow(number, net);
            let departures = parameters.departures(start_ns + random.below(jitter_ns), stop_ns);
            UdpFlow { name, flow, departures, sent: 0, received: 0, expected: 0 }
        };
        let flows: Vec<UdpFlow> = (1..=parameters.flows).map(&mut flow).collect();
        let slack_ns = parameters.phase_ns().min(TIMER_SLACK_NS);
        let (hosts, agenda) = (Hosts::new(setup, net), Agenda::new(setup.slots.begin(setup.index)));
        let payload_bytes = parameters.payload_bytes;
        let mut udp = Self { hosts, payload_bytes, flows, agenda, random, slack_ns, stop_ns };
        (0..parameters.flows).for_each(|index| udp.plan(index, 0));
        udp.agenda.arm(net);
        udp
    }

    /// Datagrams are due.
    pub(super) fn begin<S: Sink>(&mut self, net: &mut Network, recording: &mut Recording<S>) {
        while let Some(index) = self.agenda.due(net.now()) {
            let flow = &mut self.flows[index as usize];
            let datagram = Datagram { traffic: self.hosts.traffic, stream: index, seq: flow.sent, way: Way::Out };
            flow.sent += 1;
            self.hosts.send(datagram, flow.flow, self.payload_bytes, net, recording);
            self.plan(index, net.now());
        }
        self.agenda.arm(net);
    }

    pub(super) fn bring_stop_forward(&mut self, stop_ns: u64) {
        self.stop_ns = stop_ns;
        self.flows.iter_mut().for_each(|flow| flow.departures.bring_stop_forward(stop_ns));
        self.agenda.forget(|at_ns, _| at_ns >= stop_ns);
    }

    pub(super) fn receive(&mut self, datagram: Datagram) {
        let flow = &mut self.flows[datagram.stream as usize];
        flow.received += 1;
        flow.expected = flow.expected.max(datagram.seq + 1);
    }

    /// The flows that have begun.
    pub(super) fn rows(&self, now_ns: u64) -> impl Iterator<Item = FlowRow> {
        let begun = self.flows.iter().filter(|flow| flow.sent > 0);
        begun.map(move |flow| flow.row(now_ns, self.payload_bytes.into()))
    }

    /// Plans the next datagram of a flow. A sleeping sender wakes a little late, but these delays do not accumulate.
    fn plan(&mut self, index: u32, now_ns: u64) {
        let random = &mut self.random;
        if let Some(nominal_ns) = self.flows[index as usize].departures.next(&mut || random.seed()) {
            let at_ns = (nominal_ns + random.below(self.slack_ns)).min(self.stop_ns - 1);
            self.agenda.plan(at_ns.max(now_ns), index);
        }
    }
}

impl UdpFlow {
    fn row(&self, t_ns: u64, payload_bytes: u64) -> FlowRow {
        let Self { sent, expected, received, .. } = *self;
        FlowRow::of_datagrams(t_ns, self.name, Datagrams { payload_bytes, sent, expected, received })
    }
}
