//! Turns the events of a run into rows of the records.

use bufferscope_programs::Outcome;
use bufferscope_records::{
    CapacityRow, DropReason, DropRow, Layer, Name, Observed, ProbeRow, QueueRow, Recorder, Sink, SojournHistogram,
    SojournRow, Table,
};
use bufferscope_scenario::{RateStep, Scenario, SojournDetail};

use crate::network::pool::Backlog;
use crate::network::port::Port;
use crate::network::qdisc::layer::QdiscLayer;
use crate::network::qdisc::stacked::Stacked;
use crate::network::ring::Ring;
use crate::network::routes::PortIndex;
use crate::network::wifi::Radio;

/// The recorder, and the state that is needed to write its rows.
#[derive(Debug)]
pub(crate) struct Recording<S: Sink> {
    pub(crate) recorder: Recorder<S>,
    ports: Vec<Name>,
    sojourns: Sojourns,
    /// Start of the second whose sojourn times are being collected.
    second_ns: u64,
}

#[derive(Debug)]
enum Sojourns {
    /// One histogram per port for its queue, and, if any port has a ring or a radio, one per port for these.
    Histogram {
        queues: Vec<SojournHistogram>,
        rings: Vec<SojournHistogram>,
    },
    Packets,
    /// They are not recorded, or the run's duration is over.
    Unrecorded,
}

impl<S: Sink> Recording<S> {
    pub(crate) fn new(scenario: &Scenario, recorder: Recorder<S>) -> Self {
        let mut recorder = recorder.only(scenario.record);
        let ports: Vec<Name> = scenario.port_names().map(|name| recorder.intern(&name)).collect();
        let sojourns = match scenario.sojourns {
            _ if !scenario.record.contains(Table::Sojourns) => Sojourns::Unrecorded,
            SojournDetail::Histogram => {
                let each = |names: &[Name]| names.iter().map(|_| SojournHistogram::new()).collect();
                let has_rings = !scenario.wifi.is_empty() || scenario.ports().any(|port| port.ring.is_some());
                let ringed = if has_rings { &ports[..] } else { &[] };
                Sojourns::Histogram { queues: each(&ports), rings: each(ringed) }
            }
            SojournDetail::Packets => Sojourns::Packets,
        };
        Self { recorder, ports, sojourns, second_ns: 0 }
    }

    /// Records the rates that the ports' links have had up to now, in order of time.
    pub(crate) fn capacity(&mut self, now_ns: u64, ports: &mut [Port]) {
        let mut rows: Vec<CapacityRow> = Vec::new();
        for (port, &name) in ports.iter_mut().zip(&self.ports) {
            let row = |step: RateStep| CapacityRow { t_ns: step.from_ns, port: name, rate_bps: step.bits_per_second };
            port.link.record_rates(now_ns, |step| rows.push(row(step)));
        }
        rows.sort_by_key(|row| row.t_ns);
        rows.into_iter().for_each(|row| self.recorder.capacity(row));
    }

    /// A packet left the queue of a port.
    #[inline]
    pub(crate) fn sojourn(&mut self, port: PortIndex, now_ns: u64, sojourn_ns: u64) {
        match &mut self.sojourns {
            Sojourns::Histogram { queues, .. } => queues[port as usize].record(sojourn_ns),
            Sojourns::Packets => {
                let port = self.ports[port as usize];
                self.recorder.sojourn(SojournRow { t_ns: now_ns, port, layer: Layer::Qdisc, sojourn_ns, packets: 1 });
            }
            Sojourns::Unrecorded => {}
        }
    }

    /// The device below the ring of a port has begun to send a packet, or a packet has arrived over the air.
    pub(crate) fn ring_sojourn(&mut self, port: PortIndex, now_ns: u64, sojourn_ns: u64) {
        match &mut self.sojourns {
            Sojourns::Histogram { rings, .. } => rings[port as usize].record(sojourn_ns),
            Sojourns::Packets => {
                let port = self.ports[port as usize];
                self.recorder.sojourn(SojournRow { t_ns: now_ns, port, layer: Layer::Ring, sojourn_ns, packets: 1 });
            }
            Sojourns::Unrecorded => {}
        }
    }

    /// A packet was dropped or marked in a layer of a port.
    pub(crate) fn drop_or_mark(
        &mut self,
        now_ns: u64,
        (port, layer): (PortIndex, Layer),
        flow: Name,
        frame_bytes: u32,
        reason: DropReason,
    ) {
        let port = self.ports[port as usize];
        self.recorder.dropped(DropRow {
            t_ns: now_ns,
            port,
            layer,
            flow: Some(flow),
            bytes: Some(frame_bytes.into()),
            reason,
            observed: Observed::Packet,
        });
    }

    /// A packet was lost on the wire of a port.
    pub(crate) fn lost(&mut self, now_ns: u64, port: PortIndex, flow: Name, frame_bytes: u32, reason: DropReason) {
        let port = self.ports[port as usize];
        self.recorder.dropped(DropRow {
            t_ns: now_ns,
            port,
            layer: Layer::Wire,
            flow: Some(flow),
            bytes: Some(frame_bytes.into()),
            reason,
            observed: Observed::Packet,
        });
    }

    /// The outcome of a probe is known.
    pub(crate) fn probe(&mut self, probe: Name, outcome: Outcome) {
        let Outcome { number: seq, sent_ns, rtt_ns, owd_up_ns, owd_down_ns } = outcome;
        self.recorder.probe(ProbeRow { probe, seq, sent_ns, rtt_ns, owd_up_ns, owd_down_ns });
    }

    /// Samples every port that has a queue; returns how many ports were looked at.
    pub(crate) fn sample_queues(&mut self, now_ns: u64, ports: &[Port]) -> u64 {
        for (port, &name) in ports.iter().zip(&self.ports) {
            if let Some(queue) = &port.queue {
                if let Some(stacked) = queue.stacked() {
                    self.recorder.queue(stacked_row(now_ns, name, stacked));
                }
                self.recorder.queue(queue_row(now_ns, name, queue));
            }
            if let Some(ring) = &port.ring {
                self.recorder.queue(ring_row(now_ns, name, ring));
            }
            if let Some(radio) = &port.radio {
                self.recorder.queue(radio_row(now_ns, name, radio));
            }
        }
        ports.len() as u64
    }

    /// Writes the sojourn times of the second that ends now; returns the number of rows.
    pub(crate) fn end_second(&mut self, now_ns: u64) -> u64 {
        let mut rows = 0;
        if let Sojourns::Histogram { queues, rings } = &mut self.sojourns {
            for (layer, histograms) in [(Layer::Qdisc, queues), (Layer::Ring, rings)] {
                for (histogram, &port) in histograms.iter_mut().zip(&self.ports) {
                    histogram.drain(self.second_ns, port, layer, |row| {
                        self.recorder.sojourn(row);
                        rows += 1;
                    });
                }
            }
        }
        self.second_ns = now_ns;
        rows
    }

    /// From now on, sojourn times are not recorded.
    pub(crate) fn close_sojourns(&mut self, now_ns: u64) {
        self.end_second(now_ns);
        self.sojourns = Sojourns::Unrecorded;
    }
}

/// A sample of the discipline of a stacked interface.
fn stacked_row(t_ns: u64, port: Name, stacked: &Stacked) -> QueueRow {
    QueueRow {
        dropped: stacked.dropped,
        sent_packets: stacked.sent_packets,
        sent_bytes: stacked.sent_bytes,
        ..layer_row(t_ns, port, Layer::Stacked, stacked.backlog())
    }
}

/// A sample of a queueing discipline.
fn queue_row(t_ns: u64, port: Name, queue: &QdiscLayer) -> QueueRow {
    let counts = queue.counts;
    QueueRow {
        dropped: counts.dropped - queue.stacked().map_or(0, |stacked| stacked.dropped),
        marked: counts.marked,
        sent_packets: counts.sent_packets,
        sent_bytes: counts.sent_bytes,
        ..layer_row(t_ns, port, Layer::Qdisc, queue.backlog())
    }
}

/// A sample of a ring. It contains the packets that have left the discipline and were not sent completely, as in the
/// records of a card.
fn ring_row(t_ns: u64, port: Name, ring: &Ring) -> QueueRow {
    let limits = ring.limits();
    QueueRow {
        sent_packets: ring.counts.sent_packets,
        sent_bytes: ring.counts.sent_bytes,
        limit_bytes: limits.map(|(limit_bytes, _)| limit_bytes),
        inflight_bytes: limits.map(|(_, inflight_bytes)| inflight_bytes),
        ..layer_row(t_ns, port, Layer::Ring, ring.backlog())
    }
}

/// A sample of the driver's packets for a receiver on the air.
fn radio_row(t_ns: u64, port: Name, radio: &Radio) -> QueueRow {
    let counts = radio.counts;
    QueueRow {
        dropped: counts.dropped,
        sent_packets: counts.sent_packets,
        sent_bytes: counts.sent_bytes,
        airtime_ns: Some(counts.airtime_ns),
        transmissions: Some(counts.transmissions),
        ..layer_row(t_ns, port, Layer::Ring, radio.backlog())
    }
}

/// A sample of a layer that has passed on nothing so far.
fn layer_row(t_ns: u64, port: Name, layer: Layer, Backlog { packets, bytes }: Backlog) -> QueueRow {
    QueueRow {
        t_ns,
        port,
        layer,
        packets,
        bytes,
        dropped: 0,
        marked: 0,
        sent_packets: 0,
        sent_bytes: 0,
        airtime_ns: None,
        transmissions: None,
        limit_bytes: None,
        inflight_bytes: None,
    }
}
