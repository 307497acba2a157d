//! Accounts for the events of a queue: counts and records packets, and frees those that were dropped. A host may also
//! discard a packet.

use bufferscope_records::{DropReason, Layer};
use bufferscope_scenario::Reason;

use super::Network;
use super::packet::Body;
use super::pool::PacketId;
use super::qdisc::QdiscEvent;
use super::routes::PortIndex;
use crate::observation::recording::AnyRecording;

impl Network {
    /// Does the bookkeeping for the events of a queue.
    #[inline(always)]
    pub(super) fn settle_qdisc_events(&mut self, port: PortIndex, recording: &mut AnyRecording<'_>) {
        if !self.qdisc_events.0.is_empty() {
            self.settle_each_qdisc_event(port, recording);
        }
        if !self.lost_on_wires.is_empty() {
            self.settle_losses(recording);
        }
    }

    /// Counts and records the packets that a queue dropped, marked, split off or copied, and frees the dropped ones.
    #[cold]
    fn settle_each_qdisc_event(&mut self, port: PortIndex, recording: &mut AnyRecording<'_>) {
        let mut qdisc_events = std::mem::take(&mut self.qdisc_events);
        for event in qdisc_events.0.drain(..) {
            self.work += 1;
            let counts = &mut self.ports[port as usize].queue.as_mut().expect("only queues have events").counts;
            self.has_copies |= matches!(event, QdiscEvent::Copied(_));
            match event {
                QdiscEvent::Split(packet) | QdiscEvent::Copied(packet) => {
                    counts.arrived += 1;
                    self.flows[self.pool.header(packet).flow as usize].sent += 1;
                }
                QdiscEvent::Marked(packet, reason) => {
                    counts.marked += 1;
                    self.record_drop_or_mark((port, Layer::Qdisc), packet, reason, recording);
                }
                QdiscEvent::Dropped(packet, reason) => {
                    counts.dropped += 1;
                    self.show_drop(packet, port, reason.word);
                    self.record_drop_or_mark((port, Layer::Qdisc), packet, reason, recording);
                    self.drop(packet);
                }
            }
        }
        self.qdisc_events = qdisc_events;
    }

    /// Counts, records and frees the packets that were lost on wires.
    #[cold]
    fn settle_losses(&mut self, recording: &mut AnyRecording<'_>) {
        for (port, packet) in std::mem::take(&mut self.lost_on_wires) {
            self.work += 1;
            self.show_drop(packet, port, Reason::NETEM_LOSS.word);
            let header = self.pool.header(packet);
            let flow = self.flows[header.flow as usize].name;
            recording.lost(self.now(), port, flow, header.frame_bytes, DropReason::new(Reason::NETEM_LOSS.word));
            self.drop(packet);
        }
    }

    /// Frees a packet that was dropped.
    pub(super) fn drop(&mut self, packet: PacketId) {
        let index = self.pool.header(packet).flow;
        self.flows[index as usize].dropped += 1;
        self.note_emptied(index);
        self.note_departure(packet);
        self.note_loss(packet);
        self.pool.remove(packet);
    }

    /// Frees a packet that was delivered, but that its host discards.
    #[cold]
    pub(super) fn discard(&mut self, packet: PacketId) {
        let index = self.pool.header(packet).flow;
        self.note_emptied(index);
        self.note_loss(packet);
        self.pool.remove(packet);
    }

    /// A packet of a flow is no longer in the network. If it was the last, its connection may be over.
    fn note_emptied(&mut self, index: u32) {
        if self.flows[index as usize].is_gone() {
            self.emptied.push(index);
        }
    }

    /// Notes the loss of a packet for the sources that must be informed. (With duplicates, these wait until their timeouts.)
    fn note_loss(&mut self, packet: PacketId) {
        match self.pool.body(packet) {
            Body::Tcp(_) => {}
            Body::Echo(_) | Body::Datagram(_) if self.has_copies => {}
            body @ (Body::Echo(_) | Body::Datagram(_)) => self.lost.push(*body),
        }
    }

    /// A packet has left a queue, and its sender may be waiting for that.
    #[inline]
    pub(super) fn note_departure(&mut self, packet: PacketId) {
        if self.pool.header_mut(packet).load.take_awaited()
            && let Body::Tcp(segment) = self.pool.body(packet)
        {
            self.departures.push(*segment);
        }
    }

    pub(super) fn record_drop_or_mark(
        &self,
        layer: (PortIndex, Layer),
        packet: PacketId,
        reason: Reason,
        recording: &mut AnyRecording<'_>,
    ) {
        let header = self.pool.header(packet);
        let flow = self.flows[header.flow as usize].name;
        recording.drop_or_mark(self.now(), layer, flow, header.frame_bytes, DropReason::new(reason.word));
    }
}
