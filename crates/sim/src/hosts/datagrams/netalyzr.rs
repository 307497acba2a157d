//! `netalyzr`: a test of the path's buffers. Each direction has a row in `estimates` when its load is over.

use bufferscope_programs::{NetalyzrClient, NetalyzrEstimate, NetalyzrStage, NetalyzrStep};
use bufferscope_records::{self as records, EstimateRow, Name, Sink};
use bufferscope_scenario::NetalyzrTraffic;

use super::Hosts;
use crate::event_queue::Slot;
use crate::hosts::setup::Setup;
use crate::network::Network;
use crate::network::packet::{Datagram, Direction};
use crate::observation::recording::Recording;

/// The client and the server of a test.
#[derive(Debug)]
pub(crate) struct Netalyzr {
    hosts: Hosts,
    name: Name,
    flow: u32,
    test: NetalyzrTraffic,
    client: NetalyzrClient,
    slot: Slot,
}

impl Netalyzr {
    pub(crate) fn new(setup: &Setup<'_>, parameters: &NetalyzrTraffic, net: &mut Network) -> Self {
        let (_, flow) = setup.flow(1, net);
        let (start_ns, stop_ns) = (setup.traffic.start_ns, setup.traffic.stop_ns);
        let slot = setup.slots.begin(setup.index);
        net.events.schedule(slot, start_ns.max(net.now()));
        Self {
            hosts: Hosts::new(setup, net),
            name: setup.name,
            flow,
            test: parameters.clone(),
            client: NetalyzrClient::new(parameters, start_ns, stop_ns),
            slot,
        }
    }

    /// The client has something to do.
    pub(super) fn begin<S: Sink>(&mut self, net: &mut Network, recording: &mut Recording<S>) {
        loop {
            match self.client.next(net.now()) {
                NetalyzrStep::Send(stage, packet) => {
                    self.hosts.send(packet, stage as u32, Direction::Forward, self.flow, net, recording);
                }
                NetalyzrStep::Estimated(estimate) => recording.recorder.estimate(self.row(&estimate)),
                NetalyzrStep::Wait(at_ns) => {
                    // An earlier event remains. When it is due, the client says how much longer to wait.
                    if net.events.scheduled_at(self.slot).is_none_or(|planned_ns| planned_ns > at_ns) {
                        net.events.schedule(self.slot, at_ns);
                    }
                    return;
                }
                NetalyzrStep::Finished => return,
            }
        }
    }

    pub(super) fn bring_stop_forward(&mut self, stop_ns: u64) {
        self.client.bring_stop_forward(stop_ns);
    }

    /// A packet has arrived at the server, or an answer at the client.
    pub(super) fn receive<S: Sink>(&mut self, datagram: Datagram, net: &mut Network, recording: &mut Recording<S>) {
        let Some(stage) = NetalyzrStage::of(datagram.stream) else { return };
        match datagram.direction {
            Direction::Forward => {
                let answer = stage.answer(&self.test, datagram.seq);
                self.hosts.send(answer, datagram.stream, Direction::Reverse, self.flow, net, recording);
            }
            Direction::Reverse => {
                self.client.receive(stage, datagram.seq, net.now());
                self.begin(net, recording);
            }
        }
    }

    /// The run is over.
    pub(super) fn give_up<S: Sink>(&mut self, recording: &mut Recording<S>) {
        if let Some(estimate) = self.client.close() {
            recording.recorder.estimate(self.row(&estimate));
        }
    }

    fn row(&self, estimate: &NetalyzrEstimate) -> EstimateRow {
        let &NetalyzrEstimate { stage, started_ns, idle_ns, loaded_ns, rate_bps, sent, received } = estimate;
        let direction = if stage == NetalyzrStage::Up { records::Direction::Up } else { records::Direction::Down };
        EstimateRow { traffic: self.name, direction, started_ns, idle_ns, loaded_ns, rate_bps, sent, received }
    }
}
