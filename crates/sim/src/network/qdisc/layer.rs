//! The first layer of a port: a queueing discipline and its counters. Maybe another one is [stacked](super::stacked) on
//! it.

use bufferscope_records::{Layer, Name, QueueRow};

use super::stacked::Stacked;
use super::{Dequeued, Qdisc, QdiscEvents};
use crate::network::pool::{Backlog, PacketId, Pool};
use crate::network::samples;
use crate::network::xmit::Xmit;

/// A queueing discipline with its counters.
#[derive(Debug)]
pub(crate) struct QdiscLayer {
    /// The discipline of an interface on top of this one.
    stacked: Option<Box<Stacked>>,
    qdisc: Qdisc,
    pub(crate) counts: Counts,
}

/// Packets since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) arrived: u64,
    pub(crate) dropped: u64,
    pub(crate) marked: u64,
    /// Packets that left the queue, each counted once.
    pub(crate) left: u64,
    /// Packets and bytes that left the queue as "Sent" of `tc -s qdisc` has them: a packet of several segments counts as
    /// so many (`bstats_update` in the kernel's `sch_generic.h`).
    pub(crate) sent_packets: u64,
    pub(crate) sent_bytes: u64,
}

impl QdiscLayer {
    pub(crate) fn new(qdisc: Qdisc, stacked: Option<Qdisc>) -> Self {
        Self { stacked: stacked.map(|qdisc| Box::new(Stacked::new(qdisc))), qdisc, counts: Counts::default() }
    }

    /// Passes a packet to the discipline. Returns the result for the sender.
    #[inline]
    pub(crate) fn enqueue(&mut self, packet: PacketId, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        self.counts.arrived += 1;
        match &mut self.stacked {
            None => self.qdisc.enqueue(packet, now_ns, pool, events),
            Some(stacked) => stacked.enqueue(packet, &mut self.qdisc, now_ns, pool, events),
        }
    }

    /// Counts a packet that need not wait, if the discipline lets it pass. Otherwise it has to be enqueued.
    #[inline]
    pub(crate) fn bypass(&mut self, packet: PacketId, pool: &Pool) -> bool {
        let bypasses = self.stacked.is_none() && self.qdisc.can_bypass(packet, pool);
        if bypasses {
            self.counts.arrived += 1;
            self.count_sent(packet, pool);
        }
        bypasses
    }

    /// The discipline of the interface on top, if there is one.
    pub(crate) fn stacked(&self) -> Option<&Stacked> {
        self.stacked.as_deref()
    }

    /// Replaces the discipline, as if the run had begun with this one.
    pub(crate) fn begin_with(&mut self, qdisc: Qdisc) {
        self.qdisc = qdisc;
    }

    /// Takes the next packet for the layer below.
    #[inline]
    pub(crate) fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Dequeued {
        let dequeued = self.qdisc.dequeue(now_ns, pool, events);
        if let Dequeued::Packet(packet) = dequeued {
            self.count_sent(packet, pool);
        }
        dequeued
    }

    #[inline]
    fn count_sent(&mut self, packet: PacketId, pool: &Pool) {
        let header = pool.header(packet);
        self.counts.left += 1;
        self.counts.sent_packets += u64::from(header.load.frames());
        self.counts.sent_bytes += u64::from(header.frame_bytes);
    }

    /// The layer below has not been stopped since that time, and has found nothing to take.
    #[inline]
    pub(crate) fn idle_since(&mut self, at_ns: u64) {
        self.qdisc.idle_since(at_ns);
    }

    /// Changes the parameters of the discipline, or replaces it, as [`Qdisc::change`].
    pub(crate) fn change(&mut self, to: Qdisc, pool: &Pool, events: &mut QdiscEvents) {
        self.qdisc.change(to, pool, events);
    }

    /// Whether the queue is empty.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.qdisc.is_empty()
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.qdisc.backlog()
    }

    /// A sample of the discipline for the records.
    pub(in crate::network) fn sample(&self, t_ns: u64, port: Name) -> QueueRow {
        let counts = self.counts;
        QueueRow {
            dropped: counts.dropped - self.stacked().map_or(0, Stacked::dropped),
            marked: counts.marked,
            sent_packets: counts.sent_packets,
            sent_bytes: counts.sent_bytes,
            ..samples::of_layer(t_ns, port, Layer::Qdisc, self.backlog())
        }
    }

    /// Passes every queued packet to `visit`.
    pub(crate) fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        if let Some(stacked) = &self.stacked {
            stacked.each_packet(pool, visit);
        }
        self.qdisc.each_packet(pool, visit);
    }

    /// Passes every packet in a flow queue to `visit`, with a number for the queue.
    pub(crate) fn each_in_flow_queues(&self, pool: &Pool, visit: &mut dyn FnMut(u64, PacketId)) {
        self.qdisc.each_in_flow_queues(pool, visit);
    }

    /// When the discipline's timer is due, if it has one.
    pub(crate) fn timer(&self) -> Option<u64> {
        self.qdisc.timer()
    }

    /// The timer is due.
    pub(crate) fn on_timer(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) {
        self.qdisc.on_timer(now_ns, pool, events);
    }

    /// The warning that `tc` would give when it configures the discipline.
    pub(crate) fn warning(&self) -> Option<String> {
        self.qdisc.warning()
    }
}
