//! `voip`, a call, and `irtt`, round trips over UDP: packets that leave at a fixed interval.
//!
//! Every packet gets a row, in the order of sending. A packet counts as lost as soon as it or its answer is dropped, or
//! when it takes longer than the timeout. The packets of a call have no answers.

use bufferscope_programs::{self as programs, Probes, Stage, TIMER_SLACK_NS, late_ns};
use bufferscope_records::{Name, Sink};
use bufferscope_scenario::{IrttTraffic, VoipTraffic};

use super::Hosts;
use super::agenda::Agenda;
use crate::event_queue::Slot;
use crate::hosts::setup::Setup;
use crate::network::Network;
use crate::network::packet::{Datagram, Direction};
use crate::observation::recording::Recording;
use crate::random::Random;

/// The senders of one entry of traffic.
#[derive(Debug)]
pub(crate) struct Isochronous {
    hosts: Hosts,
    /// That of `from`, and that of `to` if there is one.
    streams: Vec<Stream>,
    /// Size of the answers; `None`: there are none.
    answer_bytes: Option<u32>,
    /// The next packet of each stream, by index.
    agenda: Agenda<u32>,
    timeout: Slot,
    slack: Random,
    stop_ns: u64,
}

#[derive(Debug)]
struct Stream {
    name: Name,
    flow: u32,
    sender: programs::Isochronous,
    packets: Probes,
}

impl Isochronous {
    /// A call.
    pub(crate) fn voip(setup: &Setup<'_>, parameters: &VoipTraffic, net: &mut Network) -> Self {
        let mut starts = setup.starts();
        let (start_ns, stop_ns) = (setup.traffic.start_ns, setup.traffic.stop_ns);
        let mut stream = |number| {
            let (name, flow) = setup.flow(number, net);
            let sender = programs::Isochronous::speaker(start_ns, stop_ns, &mut starts);
            Stream { name, flow, sender, packets: Probes::new(Stage::Far, VoipTraffic::TIMEOUT_NS) }
        };
        let streams = (1..=parameters.streams()).map(&mut stream).collect();
        Self::new(setup, streams, None, net)
    }

    /// Round trips.
    pub(crate) fn irtt(setup: &Setup<'_>, parameters: &IrttTraffic, net: &mut Network) -> Self {
        let (start_ns, stop_ns) = (setup.traffic.start_ns, setup.traffic.stop_ns);
        let (_, flow) = setup.flow(1, net);
        let sender = programs::Isochronous::irtt(parameters, start_ns, stop_ns, &mut setup.starts());
        let packets = Probes::new(Stage::Back, parameters.timeout_ns);
        let stream = Stream { name: setup.name, flow, sender, packets };
        Self::new(setup, vec![stream], Some(parameters.payload_bytes), net)
    }

    fn new(setup: &Setup<'_>, streams: Vec<Stream>, answer_bytes: Option<u32>, net: &mut Network) -> Self {
        let count = streams.len() as u32;
        let mut senders = Self {
            hosts: Hosts::new(setup, net),
            streams,
            answer_bytes,
            agenda: Agenda::new(setup.slots.begin(setup.index)),
            timeout: setup.slots.end(setup.index),
            slack: setup.slack(),
            stop_ns: setup.traffic.stop_ns,
        };
        (0..count).for_each(|index| senders.plan(index));
        senders.agenda.arm(net);
        senders
    }

    /// Packets are due.
    pub(super) fn begin<S: Sink>(&mut self, net: &mut Network, recording: &mut Recording<S>) {
        while let Some(index) = self.agenda.due(net.now()) {
            let stream = &mut self.streams[index as usize];
            stream.packets.push(net.now());
            let direction = if index == 0 { Direction::Forward } else { Direction::Reverse };
            self.hosts.send(stream.sender.send(), index, direction, stream.flow, net, recording);
            self.plan(index);
        }
        self.agenda.arm(net);
        self.arm_timeout(net);
    }

    pub(super) fn bring_stop_forward(&mut self, stop_ns: u64) {
        self.stop_ns = stop_ns;
        self.streams.iter_mut().for_each(|stream| stream.sender.bring_stop_forward(stop_ns));
        self.agenda.forget(|at_ns, _| at_ns >= stop_ns);
    }

    pub(super) fn receive<S: Sink>(&mut self, datagram: Datagram, net: &mut Network, recording: &mut Recording<S>) {
        let Datagram { seq: number, stream: index, direction, .. } = datagram;
        let stream = &mut self.streams[index as usize];
        let is_answer = self.answer_bytes.is_some() && direction == Direction::Reverse;
        stream.packets.see(number, if is_answer { Stage::Back } else { Stage::Far }, net.now());
        stream.write_rows(net.now(), recording);
        if let Some(payload_bytes) = self.answer_bytes.filter(|_| !is_answer) {
            let answer = programs::Datagram { number, payload_bytes };
            self.hosts.send(answer, index, Direction::Reverse, stream.flow, net, recording);
        }
    }

    pub(super) fn lose<S: Sink>(&mut self, datagram: Datagram, net: &Network, recording: &mut Recording<S>) {
        let stream = &mut self.streams[datagram.stream as usize];
        stream.packets.lose(datagram.seq);
        stream.write_rows(net.now(), recording);
    }

    /// The oldest awaited packet may have timed out.
    pub(super) fn time_out<S: Sink>(&mut self, net: &mut Network, recording: &mut Recording<S>) {
        self.streams.iter_mut().for_each(|stream| stream.write_rows(net.now(), recording));
        self.arm_timeout(net);
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.streams.iter().any(|stream| stream.packets.are_awaited())
    }

    fn plan(&mut self, index: u32) {
        if let Some(nominal_ns) = self.streams[index as usize].sender.next_ns() {
            self.agenda.plan(late_ns(nominal_ns, TIMER_SLACK_NS, self.stop_ns, &mut self.slack), index);
        }
    }

    /// One timer for all packets: it waits for the oldest.
    fn arm_timeout(&self, net: &mut Network) {
        let first_ns = self.streams.iter().filter_map(|stream| stream.packets.first_timeout_ns()).min();
        if let Some(at_ns) = first_ns.filter(|_| net.events.scheduled_at(self.timeout).is_none()) {
            net.events.schedule(self.timeout, at_ns);
        }
    }
}

impl Stream {
    fn write_rows<S: Sink>(&mut self, now_ns: u64, recording: &mut Recording<S>) {
        while let Some(outcome) = self.packets.settled(now_ns) {
            recording.probe(self.name, outcome);
        }
    }
}
