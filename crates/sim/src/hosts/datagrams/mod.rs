//! Traffic over UDP: carries out what the programs decide. The transport neither retransmits datagrams nor slows down
//! their senders.

mod agenda;
mod dns;
mod isochronous;
mod netalyzr;
mod udp;

use bufferscope_programs as programs;
use bufferscope_records::{FlowRow, Sink};
use bufferscope_scenario::NodeIndex;
use bufferscope_scenario::sizes::DATAGRAM_HEADER_BYTES;

use crate::hosts::setup::Setup;
use crate::network::packet::{Body, Datagram, Direction};
use crate::network::traffic_class::Ecn;
use crate::network::{Network, Outbound};
use crate::observation::recording::Recording;
pub(crate) use dns::Dns;
pub(crate) use isochronous::Isochronous;
pub(crate) use netalyzr::Netalyzr;
pub(crate) use udp::Udp;

/// One entry of traffic.
#[derive(Debug)]
pub(crate) enum Datagrams {
    Udp(Udp),
    Isochronous(Isochronous),
    Dns(Dns),
    Netalyzr(Netalyzr),
}

/// The two hosts of an entry of traffic.
#[derive(Clone, Copy, Debug)]
struct Hosts {
    traffic: u32,
    /// `from` and `to`, each with its row in the routing table.
    nodes: [(NodeIndex, u16); 2],
}

impl Datagrams {
    /// It is time to send something.
    pub(crate) fn begin<S: Sink>(&mut self, net: &mut Network, recording: &mut Recording<S>) {
        match self {
            Self::Udp(udp) => udp.begin(net, recording),
            Self::Isochronous(sender) => sender.begin(net, recording),
            Self::Dns(dns) => dns.begin(net, recording),
            Self::Netalyzr(test) => test.begin(net, recording),
        }
    }

    /// Nothing new is sent at `stop_ns` or later.
    pub(crate) fn bring_stop_forward(&mut self, stop_ns: u64) {
        match self {
            Self::Udp(udp) => udp.bring_stop_forward(stop_ns),
            Self::Isochronous(sender) => sender.bring_stop_forward(stop_ns),
            Self::Dns(dns) => dns.bring_stop_forward(stop_ns),
            Self::Netalyzr(test) => test.bring_stop_forward(stop_ns),
        }
    }

    /// A datagram has arrived at its destination.
    pub(crate) fn receive<S: Sink>(&mut self, datagram: Datagram, net: &mut Network, recording: &mut Recording<S>) {
        match self {
            Self::Udp(udp) => udp.receive(datagram),
            Self::Isochronous(sender) => sender.receive(datagram, net, recording),
            Self::Dns(dns) => dns.receive(datagram, net, recording),
            Self::Netalyzr(test) => test.receive(datagram, net, recording),
        }
    }

    /// A datagram was dropped on the way.
    pub(crate) fn lose<S: Sink>(&mut self, datagram: Datagram, net: &Network, recording: &mut Recording<S>) {
        match self {
            // Their hosts detect the loss themselves.
            Self::Udp(_) | Self::Dns(_) | Self::Netalyzr(_) => {}
            Self::Isochronous(sender) => sender.lose(datagram, net, recording),
        }
    }

    /// The oldest awaited item may have timed out.
    pub(crate) fn time_out<S: Sink>(&mut self, net: &mut Network, recording: &mut Recording<S>) {
        match self {
            Self::Udp(_) | Self::Dns(_) | Self::Netalyzr(_) => {}
            Self::Isochronous(sender) => sender.time_out(net, recording),
        }
    }

    /// Samples its flows; returns how many there were.
    pub(crate) fn sample<S: Sink>(&self, now_ns: u64, recording: &mut Recording<S>) -> u64 {
        match self {
            Self::Udp(udp) => udp.rows(now_ns).map(|row| recording.recorder.flow(row)).count() as u64,
            Self::Isochronous(_) | Self::Dns(_) | Self::Netalyzr(_) => 0,
        }
    }

    /// Its flows that have begun.
    pub(crate) fn rows(&self, now_ns: u64) -> Vec<FlowRow> {
        match self {
            Self::Udp(udp) => udp.rows(now_ns).collect(),
            Self::Isochronous(_) | Self::Dns(_) | Self::Netalyzr(_) => Vec::new(),
        }
    }

    /// Records everything that is still open at the end of the duration.
    pub(crate) fn give_up<S: Sink>(&mut self, recording: &mut Recording<S>) {
        match self {
            Self::Udp(_) | Self::Isochronous(_) => {}
            Self::Netalyzr(test) => test.give_up(recording),
            Self::Dns(dns) => dns.give_up(recording),
        }
    }

    /// Whether the outcome of anything that gets a row is still open.
    pub(crate) fn is_waiting(&self) -> bool {
        match self {
            Self::Udp(_) | Self::Dns(_) | Self::Netalyzr(_) => false,
            Self::Isochronous(sender) => sender.is_waiting(),
        }
    }
}

impl Hosts {
    fn new(setup: &Setup<'_>, net: &Network) -> Self {
        Self { traffic: setup.index, nodes: setup.nodes(net) }
    }

    /// Sends a datagram of a stream and counts it in the account `flow`.
    fn send<S: Sink>(
        &self,
        datagram: programs::Datagram,
        stream: u32,
        direction: Direction,
        flow: u32,
        net: &mut Network,
        recording: &mut Recording<S>,
    ) {
        let [from, to] = match direction {
            Direction::Forward => self.nodes,
            Direction::Reverse => [self.nodes[1], self.nodes[0]],
        };
        let packet = Outbound {
            from: from.0,
            destination: to.1,
            flow,
            ip_bytes: DATAGRAM_HEADER_BYTES + datagram.payload_bytes,
            ecn: Ecn::NotEct,
            awaited: false,
            frames: 1,
            body: Body::Datagram(Datagram { traffic: self.traffic, stream, seq: datagram.number, direction }),
        };
        net.send(&packet, recording);
    }
}
