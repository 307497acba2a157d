//! `udp`: flows at a given rate.

use bufferscope_programs::{self as programs, TIMER_SLACK_NS, UdpReceiver, UdpSender, late_ns};
use bufferscope_records::{Datagrams, FlowRow, Name, Sink};
use bufferscope_scenario::UdpTraffic;

use super::Hosts;
use super::agenda::Agenda;
use crate::hosts::setup::Setup;
use crate::network::Network;
use crate::network::packet::{Datagram, Direction};
use crate::observation::recording::Recording;
use crate::random::Random;

/// The flows of one entry of traffic.
#[derive(Debug)]
pub(crate) struct Udp {
    hosts: Hosts,
    payload_bytes: u32,
    flows: Vec<UdpFlow>,
    /// The next datagram of each flow, by index.
    agenda: Agenda<u32>,
    random: programs::Random,
    slack: Random,
    /// The longest delay between a datagram's planned time and its departure.
    slack_ns: u64,
    stop_ns: u64,
}

#[derive(Debug)]
struct UdpFlow {
    name: Name,
    flow: u32,
    sender: UdpSender,
    receiver: UdpReceiver,
}

impl Udp {
    pub(crate) fn new(setup: &Setup<'_>, parameters: &UdpTraffic, net: &mut Network) -> Self {
        let mut random = setup.starts();
        let (start_ns, stop_ns) = (setup.traffic.start_ns, setup.traffic.stop_ns);
        let mut flow = |number| {
            let (name, flow) = setup.flow(number, net);
            let sender = UdpSender::new(parameters, start_ns, stop_ns, &mut random);
            UdpFlow { name, flow, sender, receiver: UdpReceiver::default() }
        };
        let flows: Vec<UdpFlow> = (1..=parameters.flows).map(&mut flow).collect();
        let slack_ns = parameters.phase_ns().min(TIMER_SLACK_NS);
        let (hosts, agenda) = (Hosts::new(setup, net), Agenda::new(setup.slots.begin(setup.index)));
        let payload_bytes = parameters.payload_bytes;
        let mut udp = Self { hosts, payload_bytes, flows, agenda, random, slack: setup.slack(), slack_ns, stop_ns };
        (0..parameters.flows).for_each(|index| udp.plan(index, 0));
        udp.agenda.arm(net);
        udp
    }

    /// Datagrams are due.
    pub(super) fn begin<S: Sink>(&mut self, net: &mut Network, recording: &mut Recording<S>) {
        while let Some(index) = self.agenda.due(net.now()) {
            let flow = &mut self.flows[index as usize];
            self.hosts.send(flow.sender.next(), index, Direction::Forward, flow.flow, net, recording);
            flow.sender.has_left();
            self.plan(index, net.now());
        }
        self.agenda.arm(net);
    }

    pub(super) fn bring_stop_forward(&mut self, stop_ns: u64) {
        self.stop_ns = stop_ns;
        self.flows.iter_mut().for_each(|flow| flow.sender.bring_stop_forward(stop_ns));
        self.agenda.forget(|at_ns, _| at_ns >= stop_ns);
    }

    pub(super) fn receive(&mut self, datagram: Datagram) {
        self.flows[datagram.stream as usize].receiver.receive(datagram.seq);
    }

    /// The flows that have begun.
    pub(super) fn rows(&self, now_ns: u64) -> impl Iterator<Item = FlowRow> {
        let begun = self.flows.iter().filter(|flow| flow.sender.sent() > 0);
        begun.map(move |flow| flow.row(now_ns, self.payload_bytes.into()))
    }

    /// Plans the next datagram of a flow. A sleeping sender wakes a little late, but these delays do not accumulate.
    fn plan(&mut self, index: u32, now_ns: u64) {
        if let Some(nominal_ns) = self.flows[index as usize].sender.plan(&mut self.random) {
            let at_ns = late_ns(nominal_ns, self.slack_ns, self.stop_ns, &mut self.slack);
            self.agenda.plan(at_ns.max(now_ns), index);
        }
    }
}

impl UdpFlow {
    fn row(&self, t_ns: u64, payload_bytes: u64) -> FlowRow {
        let UdpReceiver { received, expected } = self.receiver;
        let datagrams = Datagrams { payload_bytes, sent: self.sender.sent(), expected, received };
        FlowRow::of_datagrams(t_ns, self.name, datagrams)
    }
}
