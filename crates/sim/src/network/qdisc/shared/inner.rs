//! A discipline inside another one.
//!
//! Source: Linux `include/net/sch_generic.h`, `qdisc_peek_dequeued` and `qdisc_dequeue_peeked`. A discipline that peeks
//! at its first packet dequeues it from an inner discipline that cannot peek, and keeps it.
//!
//! Departs: in the kernel, that packet still counts for the inner discipline, and against its limit.

use bufferscope_scenario as scenario;

use crate::network::pool::{Backlog, PacketId, Pool};
use crate::network::qdisc::{Attachment, Dequeued, Qdisc, QdiscEvents};
use crate::network::xmit::Xmit;

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) qdisc: Box<Qdisc>,
    /// A packet that was dequeued in order to peek at it, and its size.
    peeked: Option<(PacketId, u32)>,
}

impl Inner {
    pub(crate) fn new(parameters: &scenario::Qdisc, attachment: Attachment) -> Result<Self, String> {
        Ok(Self { qdisc: Box::new(Qdisc::new(parameters, attachment)?), peeked: None })
    }

    pub(crate) fn enqueue(&mut self, packet: PacketId, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        self.qdisc.enqueue(packet, now_ns, pool, events)
    }

    /// The packet that leaves next.
    pub(crate) fn peek(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Dequeued {
        if let Some(packet) = self.peeked.map(|peeked| peeked.0).or_else(|| self.qdisc.peek()) {
            return Dequeued::Packet(packet);
        }
        let dequeued = self.qdisc.dequeue(now_ns, pool, events);
        if let Dequeued::Packet(packet) = dequeued {
            self.peeked = Some((packet, pool.header(packet).frame_bytes));
        }
        dequeued
    }

    pub(crate) fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Dequeued {
        match self.peeked.take() {
            Some((packet, _)) => Dequeued::Packet(packet),
            None => self.qdisc.dequeue(now_ns, pool, events),
        }
    }

    /// A peeked packet stays, unless another discipline replaces this one.
    pub(crate) fn change(&mut self, to: Self, pool: &Pool, events: &mut QdiscEvents) {
        if std::mem::discriminant(&*self.qdisc) != std::mem::discriminant(&*to.qdisc)
            && let Some((packet, _)) = self.peeked.take()
        {
            events.drop(packet, scenario::Reason::PURGED);
        }
        self.qdisc.change(*to.qdisc, pool, events);
    }

    pub(crate) fn backlog(&self) -> Backlog {
        let Backlog { packets, bytes } = self.qdisc.backlog();
        let peeked = self.peeked.map_or(0, |peeked| peeked.1);
        Backlog { packets: packets + u64::from(self.peeked.is_some()), bytes: bytes + u64::from(peeked) }
    }

    pub(crate) fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.peeked.into_iter().for_each(|peeked| visit(peeked.0));
        self.qdisc.each_packet(pool, visit);
    }
}
