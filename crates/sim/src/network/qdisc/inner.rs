//! A discipline inside another one.
//!
//! Source: Linux `include/net/sch_generic.h`, `qdisc_peek_dequeued` and `qdisc_dequeue_peeked`. A discipline that looks at
//! the first packet before it takes it takes it out of an inner discipline that cannot tell it otherwise, and keeps it.
//!
//! Departs: the kernel still counts that packet as one of the inner discipline's. There, it counts against its limit.

use bufferscope_scenario as scenario;

use super::{Dequeued, Fates, Place, Qdisc};
use crate::network::pool::{Backlog, PacketId, Pool};
use crate::network::xmit::Xmit;

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) qdisc: Box<Qdisc>,
    /// A packet that was taken out to be looked at, and its size.
    peeked: Option<(PacketId, u32)>,
}

impl Inner {
    pub(super) fn new(parameters: &scenario::Qdisc, place: Place) -> Result<Self, String> {
        Ok(Self { qdisc: Box::new(Qdisc::new(parameters, place)?), peeked: None })
    }

    pub(super) fn enqueue(&mut self, packet: PacketId, now_ns: u64, pool: &mut Pool, fates: &mut Fates) -> Xmit {
        self.qdisc.enqueue(packet, now_ns, pool, fates)
    }

    /// The packet that leaves next.
    pub(super) fn peek(&mut self, now_ns: u64, pool: &mut Pool, fates: &mut Fates) -> Dequeued {
        if let Some(packet) = self.peeked.map(|peeked| peeked.0).or_else(|| self.qdisc.peek()) {
            return Dequeued::Packet(packet);
        }
        let dequeued = self.qdisc.dequeue(now_ns, pool, fates);
        if let Dequeued::Packet(packet) = dequeued {
            self.peeked = Some((packet, pool.header(packet).frame_bytes));
        }
        dequeued
    }

    pub(super) fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, fates: &mut Fates) -> Dequeued {
        match self.peeked.take() {
            Some((packet, _)) => Dequeued::Packet(packet),
            None => self.qdisc.dequeue(now_ns, pool, fates),
        }
    }

    /// A packet that was looked at stays, except where another discipline comes into this one's place.
    pub(super) fn change(&mut self, to: Self, pool: &Pool, fates: &mut Fates) {
        if std::mem::discriminant(&*self.qdisc) != std::mem::discriminant(&*to.qdisc)
            && let Some((packet, _)) = self.peeked.take()
        {
            fates.drop(packet, scenario::Reason::PURGED);
        }
        self.qdisc.change(*to.qdisc, pool, fates);
    }

    pub(super) fn backlog(&self) -> Backlog {
        let Backlog { packets, bytes } = self.qdisc.backlog();
        let peeked = self.peeked.map_or(0, |peeked| peeked.1);
        Backlog { packets: packets + u64::from(self.peeked.is_some()), bytes: bytes + u64::from(peeked) }
    }

    pub(super) fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.peeked.into_iter().for_each(|peeked| visit(peeked.0));
        self.qdisc.each_packet(pool, visit);
    }
}
