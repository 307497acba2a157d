//! `voip`: a call.
//!
//! Every packet gets a row, in the order of sending. A packet counts as lost as soon as it is dropped, or when it takes
//! longer than [`VoipTraffic::TIMEOUT_NS`].

use bufferscope_programs::{Probes, Speaker, Stage, TIMER_SLACK_NS, late_ns};
use bufferscope_records::{Name, Sink};
use bufferscope_scenario::VoipTraffic;

use super::Hosts;
use super::agenda::Agenda;
use crate::clock::Slot;
use crate::hosts::setup::Setup;
use crate::network::Network;
use crate::network::packet::{Datagram, Way};
use crate::observation::recording::Recording;
use crate::random::Random;

/// One call.
#[derive(Debug)]
pub(crate) struct Voip {
    hosts: Hosts,
    /// The speech of `from`, and that of `to` if it speaks.
    streams: Vec<Speech>,
    /// The next packet of each stream, by index.
    agenda: Agenda<u32>,
    timeout: Slot,
    random: Random,
    stop_ns: u64,
}

#[derive(Debug)]
struct Speech {
    name: Name,
    flow: u32,
    speaker: Speaker,
    packets: Probes,
}

impl Voip {
    pub(crate) fn new(setup: &Setup<'_>, parameters: &VoipTraffic, net: &mut Network) -> Self {
        let mut random = setup.random();
        let (start_ns, stop_ns) = (setup.traffic.start_ns, setup.traffic.stop_ns);
        let mut stream = |number| {
            let (name, flow) = setup.flow(number, net);
            let speaker = Speaker::new(start_ns, stop_ns, &mut random);
            Speech { name, flow, speaker, packets: Probes::new(Stage::Far, VoipTraffic::TIMEOUT_NS) }
        };
        let streams: Vec<Speech> = (1..=parameters.streams()).map(&mut stream).collect();
        let mut voip = Self {
            hosts: Hosts::new(setup, net),
            streams,
            agenda: Agenda::new(setup.slots.begin(setup.index)),
            timeout: setup.slots.end(setup.index),
            random,
            stop_ns,
        };
        (0..parameters.streams()).for_each(|index| voip.plan(index));
        voip.agenda.arm(net);
        voip
    }

    /// Packets are due.
    pub(super) fn begin<S: Sink>(&mut self, net: &mut Network, recording: &mut Recording<S>) {
        while let Some(index) = self.agenda.due(net.now()) {
            let stream = &mut self.streams[index as usize];
            stream.packets.push(net.now());
            let way = if index == 0 { Way::Out } else { Way::Back };
            self.hosts.send(stream.speaker.send(), index, way, stream.flow, net, recording);
            self.plan(index);
        }
        self.agenda.arm(net);
        self.arm_timeout(net);
    }

    pub(super) fn bring_stop_forward(&mut self, stop_ns: u64) {
        self.stop_ns = stop_ns;
        self.streams.iter_mut().for_each(|stream| stream.speaker.bring_stop_forward(stop_ns));
        self.agenda.forget(|at_ns, _| at_ns >= stop_ns);
    }

    pub(super) fn receive<S: Sink>(&mut self, datagram: Datagram, net: &Network, recording: &mut Recording<S>) {
        let stream = &mut self.streams[datagram.stream as usize];
        stream.packets.see(datagram.seq, Stage::Far, net.now());
        stream.write_rows(net.now(), recording);
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
        if let Some(nominal_ns) = self.streams[index as usize].speaker.next_ns() {
            self.agenda.plan(late_ns(nominal_ns, TIMER_SLACK_NS, self.stop_ns, &mut self.random), index);
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

impl Speech {
    fn write_rows<S: Sink>(&mut self, now_ns: u64, recording: &mut Recording<S>) {
        while let Some(outcome) = self.packets.settled(now_ns) {
            recording.probe(self.name, outcome);
        }
    }
}
