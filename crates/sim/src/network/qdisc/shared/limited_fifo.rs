//! A first-in, first-out queue with a limit.
//!
//! Source: Linux `net/sched/sch_fifo.c`. Its disciplines differ only in what their limit counts, and in which packet is
//! dropped when there is no room. A [`Policy`] says both.

use std::fmt::Debug;

use bufferscope_scenario::Reason;

use crate::network::pool::{Backlog, Fifo, PacketId, Pool};
use crate::network::qdisc::{Attachment, Dequeued, Discipline, QdiscEvents};
use crate::network::xmit::Xmit;

/// The discipline of a policy.
#[derive(Debug)]
pub(crate) struct LimitedFifo<P> {
    queue: Fifo,
    policy: P,
}

/// The limit of a queue, and what happens at the limit.
pub(crate) trait Policy: Debug {
    /// The parameters of the discipline.
    type Parameters;

    fn new(parameters: &Self::Parameters) -> Self;

    /// Whether an arriving packet fits into the queue.
    fn fits(&self, packet: PacketId, queue: &Fifo, pool: &Pool) -> bool;

    /// Handles a packet that does not fit. Returns the result for its sender.
    #[inline]
    fn overflow(packet: PacketId, _queue: &mut Fifo, _pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        events.drop(packet, Reason::OVERLIMIT);
        Xmit::Dropped
    }
}

impl<P: Policy> Discipline for LimitedFifo<P> {
    type Parameters = P::Parameters;

    fn new(parameters: &P::Parameters, _: Attachment) -> Result<Self, String> {
        Ok(Self { queue: Fifo::new(), policy: P::new(parameters) })
    }

    #[inline]
    fn enqueue(&mut self, packet: PacketId, _now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        if self.policy.fits(packet, &self.queue, pool) {
            self.queue.push(packet, pool);
            Xmit::Queued
        } else {
            P::overflow(packet, &mut self.queue, pool, events)
        }
    }

    #[inline]
    fn can_bypass(&self, packet: PacketId, pool: &Pool) -> bool {
        self.queue.is_empty() && self.policy.fits(packet, &self.queue, pool)
    }

    #[inline]
    fn dequeue(&mut self, _now_ns: u64, pool: &mut Pool, _events: &mut QdiscEvents) -> Dequeued {
        self.queue.pop(pool).into()
    }

    /// `fifo_init`: packets over a lowered limit stay until they are sent.
    fn change(&mut self, to: Self, _pool: &Pool, _events: &mut QdiscEvents) {
        self.policy = to.policy;
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn peek(&self) -> Option<PacketId> {
        self.queue.front()
    }

    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.queue.iter(pool).for_each(visit);
    }
}
