//! Turns the events of a run into rows of the records.

use bufferscope_programs::Outcome;
use bufferscope_records::{
    DropReason, DropRow, Layer, Name, Observed, ProbeRow, Recorder, Sink, SojournHistogram, SojournRow, Table,
};
use bufferscope_scenario::{PortIndex, Scenario, SojournDetail};

/// The recorder, and the state that is needed to write its rows.
#[derive(Debug)]
pub(crate) struct Recording<S: Sink + ?Sized> {
    ports: Vec<Name>,
    sojourns: Sojourns,
    /// Start of the second whose sojourn times are being collected.
    second_ns: u64,
    pub(crate) recorder: Recorder<S>,
}

/// The recording as the network and the hosts see it, which do not depend on the destination of the records.
pub(crate) type AnyRecording<'s> = Recording<dyn Sink + 's>;

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
        Self { ports, sojourns, second_ns: 0, recorder }
    }
}

impl<S: Sink + ?Sized> Recording<S> {
    /// The name of a port.
    pub(crate) fn port(&self, port: PortIndex) -> Name {
        self.ports[port as usize]
    }

    /// A packet left the queue of a port.
    #[inline]
    pub(crate) fn sojourn(&mut self, port: PortIndex, now_ns: u64, sojourn_ns: u64) {
        match &mut self.sojourns {
            Sojourns::Histogram { queues, .. } => queues[port as usize].record(sojourn_ns),
            Sojourns::Packets => self.sojourn_of_packet((port, Layer::Qdisc), now_ns, sojourn_ns),
            Sojourns::Unrecorded => {}
        }
    }

    /// The device below the ring of a port has begun to send a packet, or a packet has arrived over the air.
    pub(crate) fn ring_sojourn(&mut self, port: PortIndex, now_ns: u64, sojourn_ns: u64) {
        match &mut self.sojourns {
            Sojourns::Histogram { rings, .. } => rings[port as usize].record(sojourn_ns),
            Sojourns::Packets => self.sojourn_of_packet((port, Layer::Ring), now_ns, sojourn_ns),
            Sojourns::Unrecorded => {}
        }
    }

    #[cold]
    fn sojourn_of_packet(&mut self, (port, layer): (PortIndex, Layer), now_ns: u64, sojourn_ns: u64) {
        let port = self.ports[port as usize];
        self.recorder.sojourn(SojournRow { t_ns: now_ns, port, layer, sojourn_ns, packets: 1 });
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
