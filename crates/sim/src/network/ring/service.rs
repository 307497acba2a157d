//! How packets get from a discipline into a ring, and from the ring onto the link.

use super::{Begun, Report};
use crate::network::Network;
use crate::network::packet::Body;
use crate::network::pool::PacketId;
use crate::network::port::Port;
use crate::network::qdisc::Dequeued;
use crate::network::routes::PortIndex;
use crate::network::tap::Hook;
use crate::observation::recording::AnyRecording;

impl Network {
    /// Passes packets of a port's queue to its ring, as long as the queue is not stopped.
    pub(in crate::network) fn fill_ring(&mut self, port: PortIndex, recording: &mut AnyRecording<'_>) {
        let now_ns = self.now();
        loop {
            let Port { queue: Some(queue), ring: Some(ring), .. } = &mut self.ports[port as usize] else { return };
            if ring.is_stopped() {
                break;
            }
            match queue.dequeue(now_ns, &mut self.pool, &mut self.qdisc_events) {
                Dequeued::Packet(packet) => {
                    let header = self.pool.header_mut(packet);
                    recording.sojourn(port, now_ns, now_ns - header.at_ns);
                    header.at_ns = now_ns;
                    ring.push(packet, &mut self.pool);
                    self.show(packet, port, Hook::Ring);
                }
                Dequeued::Nothing => {
                    ring.idle_since_ns = now_ns;
                    break;
                }
                Dequeued::NotBefore(at_ns) => {
                    ring.idle_since_ns = now_ns;
                    self.events.schedule(self.slots.queue(port), at_ns);
                    break;
                }
            }
        }
        self.begin_frame(port, recording);
    }

    /// The device begins to send the next packet of its ring, if it sends none. If its link accepts none now, it waits.
    fn begin_frame(&mut self, port: PortIndex, recording: &mut AnyRecording<'_>) {
        let now_ns = self.now();
        let Port { ring: Some(ring), link, .. } = &mut self.ports[port as usize] else { return };
        if ring.is_sending() || ring.waiting().is_empty() {
            return;
        }
        if link.is_stopped(now_ns) {
            self.events.schedule(self.slots.link(port), link.awaited(now_ns));
            return;
        }
        let Some(packet) = ring.begin(&self.pool) else { return };
        let header = self.pool.header_mut(packet);
        recording.ring_sojourn(port, now_ns, now_ns - header.at_ns);
        let end_ns = link.send(now_ns, header.frame_bytes);
        if header.load.take_awaited() {
            self.await_freeing(packet, port);
        }
        self.events.schedule(self.slots.link(port), end_ns);
        self.propagate(packet, port, end_ns);
    }

    /// Whether the device of a port with a ring is sending a packet.
    pub(in crate::network) fn is_sending(&self, packet: PacketId, port: PortIndex) -> bool {
        self.ports[port as usize].ring.as_ref().is_some_and(|ring| ring.sending == Some(packet))
    }

    /// A packet is being sent, and its sender waits for it to be freed.
    pub(in crate::network) fn await_freeing(&mut self, packet: PacketId, port: PortIndex) {
        if let (Some(ring), Body::Tcp(segment)) = (&mut self.ports[port as usize].ring, self.pool.body(packet)) {
            let flow = self.pool.header(packet).flow;
            ring.await_sending(flow, *segment);
            self.flows[flow as usize].held += 1;
        }
    }

    /// The device of a port with a ring has sent a packet, or its link restarts.
    pub(in crate::network) fn device_acts(&mut self, port: PortIndex, recording: &mut AnyRecording<'_>) {
        let now_ns = self.now();
        let Some(ring) = &mut self.ports[port as usize].ring else { return };
        if !ring.is_sending() {
            return self.begin_frame(port, recording);
        }
        ring.end();
        self.begin_frame(port, recording);
        let Some(ring) = &self.ports[port as usize].ring else { return };
        match ring.report(now_ns) {
            Report::Now => self.free_sent(port, recording),
            Report::At(at_ns) => self.events.schedule(self.slots.ring(port), at_ns),
            Report::Later => {}
        }
    }

    /// The device of a port with a ring reports what it has sent. The driver frees it, and takes more from the queue.
    pub(crate) fn free_sent(&mut self, port: PortIndex, recording: &mut AnyRecording<'_>) {
        let now_ns = self.now();
        let mut bytes = 0;
        let Some(ring) = &mut self.ports[port as usize].ring else { return };
        while let Some(Begun { frame_bytes, awaited, .. }) = ring.free() {
            bytes += u64::from(frame_bytes);
            let Some((flow, segment)) = awaited else { continue };
            self.departures.push(segment);
            let account = &mut self.flows[flow as usize];
            account.held -= 1;
            if account.is_gone() {
                self.emptied.push(flow);
            }
        }
        ring.complete(bytes, now_ns);
        self.fill_ring(port, recording);
        self.settle_qdisc_events(port, recording);
    }
}
