//! `pie`: proportional integral controller enhanced. Drops arriving packets at random, with a probability that a timer
//! adapts to the queueing delay.
//!
//! Source: RFC 8033, as implemented in Linux (`net/sched/sch_pie.c`). The controller is in a file of its own, which
//! lists its differences from the RFC. The timer counts jiffies: an update every 15 ms is one every 20 ms with 250
//! jiffies a second.
//!
//! Departures: those of the controller.

use bufferscope_scenario::{self as scenario, Reason};

use crate::network::pool::{Backlog, Fifo, PacketId, Pool};
use crate::network::qdisc::shared::fifo::drop_surplus;
use crate::network::qdisc::shared::pie_controller::{CERTAIN, Controller, Law, bytes_of, first_update_ns, ticks};
use crate::network::qdisc::{Attachment, Dequeued, Discipline, QdiscEvents};
use crate::network::xmit::Xmit;
use crate::random::{Random, Stream};
use crate::timers::Timers;

#[derive(Debug)]
pub(crate) struct Pie {
    queue: Fifo,
    limit_packets: u32,
    ecn: bool,
    law: Law,
    /// Boxed to keep the discipline small.
    controller: Box<Controller>,
    random: Random,
    timers: Timers,
    tupdate_ns: u64,
    /// When the timer is due.
    due_ns: u64,
}

impl Discipline for Pie {
    type Parameters = scenario::Pie;

    const KEEPS_TIME: bool = true;

    fn new(parameters: &scenario::Pie, attachment: Attachment) -> Result<Self, String> {
        let scenario::Pie { target_ns, tupdate_ns, alpha, beta, bytemode, dq_rate_estimator, .. } = *parameters;
        let mut random = Random::new(attachment.seed, Stream::Qdisc(attachment.port));
        let timers = Timers::of_node(attachment.node, attachment.seed);
        let due_ns = first_update_ns(attachment.now_ns, tupdate_ns, timers, &mut random);
        Ok(Self {
            queue: Fifo::new(),
            limit_packets: parameters.limit_packets,
            ecn: parameters.ecn,
            law: Law::new(target_ns, [alpha, beta], bytemode, dq_rate_estimator),
            controller: Box::new(Controller::new()),
            random,
            timers,
            tupdate_ns,
            due_ns,
        })
    }

    fn enqueue(&mut self, packet: PacketId, _now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        let (bytes, backlog) = (bytes_of(pool.header(packet)), self.queue.bytes());
        let reason = if self.queue.packets() >= self.limit_packets {
            Reason::OVERLIMIT
        } else if !self.controller.drops_early(bytes, backlog, &self.law, &mut self.random)
            || self.mark(packet, pool, events)
        {
            self.queue.push(packet, pool);
            return Xmit::Queued;
        } else {
            Reason::PIE
        };
        self.controller.on_drop();
        events.drop(packet, reason);
        Xmit::Dropped
    }

    fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, _events: &mut QdiscEvents) -> Dequeued {
        let Some(packet) = self.queue.pop(pool) else { return Dequeued::Nothing };
        let header = pool.header(packet);
        let (now, backlog) = (ticks(now_ns), self.queue.bytes() as u32);
        self.controller.on_departure(now, now - ticks(header.at_ns), bytes_of(header), backlog, &self.law);
        Dequeued::Packet(packet)
    }

    /// `pie_change`: the probability and the timer stay, and packets over a lowered limit are dropped from the head.
    fn change(&mut self, to: Self, pool: &Pool, events: &mut QdiscEvents) {
        self.limit_packets = to.limit_packets;
        self.ecn = to.ecn;
        self.tupdate_ns = to.tupdate_ns;
        self.law = to.law;
        drop_surplus(self.limit_packets, &mut self.queue, pool, events);
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.queue.iter(pool).for_each(visit);
    }

    fn timer(&self) -> Option<u64> {
        Some(self.due_ns)
    }

    fn on_timer(&mut self, now_ns: u64, _pool: &mut Pool, _events: &mut QdiscEvents) {
        self.controller.update(self.queue.bytes() as u32, &self.law);
        self.due_ns = self.timers.expiry_ns(now_ns, self.tupdate_ns);
    }
}

impl Pie {
    fn mark(&self, packet: PacketId, pool: &mut Pool, events: &mut QdiscEvents) -> bool {
        self.ecn && self.controller.probability <= CERTAIN / 10 && events.mark(packet, Reason::PIE_MARK, pool)
    }
}

#[cfg(test)]
mod tests;
