//! Rows of the records about the ports: the rates of their links, and what is in each of their layers.

use std::collections::BTreeMap;

use bufferscope_records::{CapacityRow, FlowQueueRow, Layer, Name, QueueRow};
use bufferscope_scenario::RateStep;

use super::Network;
use super::pool::Backlog;
use super::routes::PortIndex;
use crate::observation::recording::AnyRecording;

impl Network {
    /// Records the rates that the ports' links have had up to now, in order of time.
    pub(crate) fn record_rates(&mut self, recording: &mut AnyRecording<'_>) {
        let now_ns = self.now();
        let mut rows: Vec<CapacityRow> = Vec::new();
        for (index, port) in self.ports.iter_mut().enumerate() {
            let name = recording.port(index as PortIndex);
            let row = |step: RateStep| CapacityRow { t_ns: step.from_ns, port: name, rate_bps: step.bits_per_second };
            port.link.record_rates(now_ns, |step| rows.push(row(step)));
        }
        rows.sort_by_key(|row| row.t_ns);
        rows.into_iter().for_each(|row| recording.recorder.capacity(row));
    }

    /// Samples every layer of every port.
    pub(crate) fn sample_queues(&mut self, recording: &mut AnyRecording<'_>) {
        let now_ns = self.now();
        for (index, port) in self.ports.iter().enumerate() {
            let name = recording.port(index as PortIndex);
            if let Some(queue) = &port.queue {
                if let Some(stacked) = queue.stacked() {
                    recording.recorder.queue(stacked.sample(now_ns, name));
                }
                recording.recorder.queue(queue.sample(now_ns, name));
            }
            if let Some(ring) = &port.ring {
                recording.recorder.queue(ring.sample(now_ns, name));
            }
            if let Some(radio) = &port.radio {
                recording.recorder.queue(radio.sample(now_ns, name));
            }
        }
        self.work += self.ports.len() as u64;
    }
}

impl Network {
    /// Samples the flow queues of every port: the packets of each flow in each of them.
    pub(crate) fn sample_flow_queues(&mut self, recording: &mut AnyRecording<'_>) {
        let now_ns = self.now();
        for (index, port) in self.ports.iter().enumerate() {
            let Some(queue) = &port.queue else { continue };
            let mut backlogs: BTreeMap<(u64, u32), Backlog> = BTreeMap::new();
            queue.each_in_flow_queues(&self.pool, &mut |number, packet| {
                let header = self.pool.header(packet);
                let backlog = backlogs.entry((number, header.flow)).or_default();
                backlog.packets += 1;
                backlog.bytes += u64::from(header.frame_bytes);
            });
            let name = recording.port(index as PortIndex);
            for ((queue, flow), Backlog { packets, bytes }) in backlogs {
                let flow = Some(self.flows[flow as usize].name);
                recording.recorder.flow_queue(FlowQueueRow { t_ns: now_ns, port: name, queue, flow, packets, bytes });
                self.work += packets;
            }
        }
    }
}

/// A sample of a layer that has passed on nothing so far.
pub(super) fn of_layer(t_ns: u64, port: Name, layer: Layer, Backlog { packets, bytes }: Backlog) -> QueueRow {
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
