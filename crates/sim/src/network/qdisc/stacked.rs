//! The discipline of an interface that is stacked on another, such as a VLAN or a bridge (Linux'
//! `vlan_dev_hard_start_xmit`).
//!
//! Below the discipline of such an interface, there is no device queue that could be stopped. It passes each packet to
//! the interface below (`dev_queue_xmit`), which queues or drops it. The discipline above is not notified, and the
//! sender gets only what the discipline above did with the packet. So it is always empty. It has no timer either: the
//! timer by which some disciplines follow their delay would find nothing.

use bufferscope_records::{Layer, Name, QueueRow};

use super::{Dequeued, Qdisc, QdiscEvent, QdiscEvents};
use crate::network::pool::{PacketId, Pool};
use crate::network::samples;
use crate::network::xmit::Xmit;

/// The discipline, and its counters.
#[derive(Debug)]
pub(crate) struct Stacked {
    qdisc: Qdisc,
    /// Packets that it has dropped, which the layer's own count includes.
    dropped: u64,
    sent_packets: u64,
    sent_bytes: u64,
    /// When it was last found empty.
    idle_since_ns: u64,
}

impl Stacked {
    pub(super) fn new(qdisc: Qdisc) -> Self {
        Self { qdisc, dropped: 0, sent_packets: 0, sent_bytes: 0, idle_since_ns: 0 }
    }

    /// Passes a packet to the discipline, and the packets that it passes on to the discipline `below`. Returns the
    /// result for the sender.
    #[cold]
    pub(super) fn enqueue(
        &mut self,
        packet: PacketId,
        below: &mut Qdisc,
        now_ns: u64,
        pool: &mut Pool,
        events: &mut QdiscEvents,
    ) -> Xmit {
        self.qdisc.idle_since(self.idle_since_ns);
        let mut decided = events.0.len();
        let xmit = self.qdisc.enqueue(packet, now_ns, pool, events);
        while let Dequeued::Packet(packet) = self.qdisc.dequeue(now_ns, pool, events) {
            self.count_drops(&events.0[decided..]);
            let header = pool.header(packet);
            self.sent_packets += u64::from(header.load.frames());
            self.sent_bytes += u64::from(header.frame_bytes);
            below.enqueue(packet, now_ns, pool, events);
            decided = events.0.len();
        }
        self.count_drops(&events.0[decided..]);
        self.idle_since_ns = now_ns;
        xmit
    }

    fn count_drops(&mut self, events: &[QdiscEvent]) {
        self.dropped += events.iter().filter(|event| matches!(event, QdiscEvent::Dropped(..))).count() as u64;
    }

    /// How many packets it has dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// A sample for the records.
    pub(in crate::network) fn sample(&self, t_ns: u64, port: Name) -> QueueRow {
        QueueRow {
            dropped: self.dropped,
            sent_packets: self.sent_packets,
            sent_bytes: self.sent_bytes,
            ..samples::of_layer(t_ns, port, Layer::Stacked, self.qdisc.backlog())
        }
    }

    pub(super) fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.qdisc.each_packet(pool, visit);
    }
}
