//! `codel`: controlled delay. Drops packets from the head when packets have waited too long.
//!
//! Source: Nichols and Jacobson, RFC 8289, as implemented in Linux (`net/sched/sch_codel.c`). When to drop is decided in
//! [`codel_law`](crate::network::qdisc::shared::codel_law), which lists where Linux differs from the RFC.
//!
//! Departures: none known.

use bufferscope_scenario::{self as scenario};

use crate::network::pool::{Backlog, Fifo, PacketId, Pool};
use crate::network::qdisc::shared::codel_law::{Law, State};
use crate::network::qdisc::shared::fifo::{drop_surplus, tail_drop};
use crate::network::qdisc::{Attachment, Dequeued, Discipline, QdiscEvents};
use crate::network::xmit::Xmit;

#[derive(Debug)]
pub(crate) struct Codel {
    queue: Fifo,
    limit_packets: u32,
    law: Law,
    state: State,
}

impl Discipline for Codel {
    type Parameters = scenario::Codel;

    fn new(parameters: &scenario::Codel, _: Attachment) -> Result<Self, String> {
        let scenario::Codel { limit_packets, target_ns, interval_ns, ecn, ce_threshold_ns } = *parameters;
        Ok(Self {
            queue: Fifo::new(),
            limit_packets,
            law: Law::new((target_ns, interval_ns), ecn, ce_threshold_ns),
            state: State::default(),
        })
    }

    fn enqueue(&mut self, packet: PacketId, _now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        let fits = self.queue.packets() < self.limit_packets;
        tail_drop(fits, packet, &mut self.queue, pool, events)
    }

    // Without inlining, the result is returned through memory, and a run with one flow is 1.5 % slower.
    #[inline]
    fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Dequeued {
        self.state.dequeue(&self.law, &mut self.queue, now_ns, pool, events).into()
    }

    fn idle_since(&mut self, _at_ns: u64) {
        self.state.on_empty();
    }

    /// `codel_change`: the state of the control law stays, and packets over a lowered limit are dropped from the head.
    fn change(&mut self, to: Self, pool: &Pool, events: &mut QdiscEvents) {
        self.limit_packets = to.limit_packets;
        self.law = to.law;
        drop_surplus(self.limit_packets, &mut self.queue, pool, events);
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.queue.iter(pool).for_each(visit);
    }
}

#[cfg(test)]
mod tests;
