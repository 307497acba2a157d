//! `voip`: a call with G.711 over RTP. Each side that speaks sends a packet every 20 ms, without silence suppression.
//!
//! Every packet gets a row, in the order of sending. A packet counts as lost as soon as it is dropped, or when it takes
//! longer than [`VoipTraffic::TIMEOUT_NS`].

use bufferscope_programs::TIMER_SLACK_NS;
use bufferscope_records::{Name, ProbeRow, Sink};
use bufferscope_scenario::VoipTraffic;

use super::Hosts;
use super::agenda::Agenda;
use crate::clock::Slot;
use crate::hosts::awaited::Awaited;
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
    start_ns: u64,
    /// Packets that have no row yet. The outcome of the first of them is always still open.
    packets: Awaited<Packet>,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    sent_ns: u64,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    ArrivedAt(u64),
    Lost,
}

impl Voip {
    pub(crate) fn new(setup: &Setup<'_>, parameters: &VoipTraffic, net: &mut Network) -> Self {
        let mut random = setup.random();
        let mut stream = |number| {
            let (name, flow) = setup.flow(number, net);
            // Two telephones are in phase neither with each other nor with anything else.
            let start_ns = setup.traffic.start_ns + random.below(VoipTraffic::INTERVAL_NS);
            Speech { name, flow, start_ns, packets: Awaited::new() }
        };
        let streams: Vec<Speech> = (1..=parameters.streams()).map(&mut stream).collect();
        let mut voip = Self {
            hosts: Hosts::new(setup, net),
            streams,
            agenda: Agenda::new(setup.slots.begin(setup.index)),
            timeout: setup.slots.end(setup.index),
            random,
            stop_ns: setup.traffic.stop_ns,
        };
        (0..parameters.streams()).for_each(|index| voip.plan(index));
        voip.agenda.arm(net);
        voip
    }

    /// Packets are due.
    pub(super) fn begin<S: Sink>(&mut self, net: &mut Network, recording: &mut Recording<S>) {
        while let Some(index) = self.agenda.due(net.now()) {
            let stream = &mut self.streams[index as usize];
            let (seq, way) = (stream.packets.sent(), if index == 0 { Way::Out } else { Way::Back });
            stream.packets.push(Packet { sent_ns: net.now(), fate: Fate::Open });
            let datagram = Datagram { traffic: self.hosts.traffic, stream: index, seq, way };
            self.hosts.send(datagram, stream.flow, VoipTraffic::PAYLOAD_BYTES, net, recording);
            self.plan(index);
        }
        self.agenda.arm(net);
        self.arm_timeout(net);
    }

    pub(super) fn bring_stop_forward(&mut self, stop_ns: u64) {
        self.stop_ns = stop_ns;
        self.agenda.forget(|at_ns, _| at_ns >= stop_ns);
    }

    pub(super) fn receive<S: Sink>(&mut self, datagram: Datagram, net: &Network, recording: &mut Recording<S>) {
        self.streams[datagram.stream as usize].decide(datagram.seq, Fate::ArrivedAt(net.now()), recording);
    }

    pub(super) fn lose<S: Sink>(&mut self, datagram: Datagram, recording: &mut Recording<S>) {
        self.streams[datagram.stream as usize].decide(datagram.seq, Fate::Lost, recording);
    }

    /// The oldest awaited packet may have timed out.
    pub(super) fn time_out<S: Sink>(&mut self, net: &mut Network, recording: &mut Recording<S>) {
        for stream in &mut self.streams {
            let is_over = |packet: &&mut Packet| packet.sent_ns + VoipTraffic::TIMEOUT_NS <= net.now();
            stream.packets.iter_mut().take_while(is_over).for_each(Packet::expire);
            stream.write_rows(recording);
        }
        self.arm_timeout(net);
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.streams.iter().any(|stream| !stream.packets.is_empty())
    }

    fn plan(&mut self, index: u32) {
        let stream = &self.streams[index as usize];
        let nominal_ns = stream.start_ns + stream.packets.sent() * VoipTraffic::INTERVAL_NS;
        if nominal_ns < self.stop_ns {
            self.agenda.plan((nominal_ns + self.random.below(TIMER_SLACK_NS)).min(self.stop_ns - 1), index);
        }
    }

    /// One timer for all packets: it waits for the oldest.
    fn arm_timeout(&self, net: &mut Network) {
        let oldest_ns = self.streams.iter().filter_map(|stream| Some(stream.packets.oldest()?.sent_ns)).min();
        if let Some(sent_ns) = oldest_ns.filter(|_| net.events.scheduled_at(self.timeout).is_none()) {
            net.events.schedule(self.timeout, sent_ns + VoipTraffic::TIMEOUT_NS);
        }
    }
}

impl Speech {
    fn decide<S: Sink>(&mut self, seq: u64, fate: Fate, recording: &mut Recording<S>) {
        if let Some(packet) = self.packets.get_mut(seq).filter(|packet| packet.fate == Fate::Open) {
            packet.fate = fate;
            self.write_rows(recording);
        }
    }

    /// Writes rows from the oldest packet on, up to the first whose outcome is not yet known.
    fn write_rows<S: Sink>(&mut self, recording: &mut Recording<S>) {
        while let Some((seq, packet)) = self.packets.conclude(|packet| packet.fate != Fate::Open) {
            let arrived_ns = match packet.fate {
                Fate::ArrivedAt(at_ns) => Some(at_ns),
                Fate::Open | Fate::Lost => None,
            };
            recording.recorder.probe(ProbeRow {
                probe: self.name,
                seq,
                sent_ns: packet.sent_ns,
                rtt_ns: None,
                owd_up_ns: arrived_ns.map(|at_ns| at_ns - packet.sent_ns),
                owd_down_ns: None,
            });
        }
    }
}

impl Packet {
    fn expire(&mut self) {
        if self.fate == Fate::Open {
            self.fate = Fate::Lost;
        }
    }
}
