//! `fq_pie`: flow queues that take turns, each of which PIE manages.
//!
//! Source: Linux `net/sched/sch_fq_pie.c`, as in 6.1; RFC 8290 for the turns, and RFC 8033 for PIE. The flow queues and the
//! controller are in files of their own.
//! - A packet that PIE drops, or for which the queue is full, was congested to its sender, as in the kernel
//!   (`NET_XMIT_CN`);
//! - `memory_limit` drops nothing: the kernel only counts the packets that exceed it;
//! - one timer updates the probabilities of all flows. With more than 2048 flows, it updates that many at a time, one jiffy
//!   after another, and waits for `tupdate` after the last. (Kernels before 6.5, and before 6.1.53, update all at once.)
//!
//! Departures: those of the flow queues and of the controller. Filters and priorities that choose a flow are not
//! modelled. The kernel refuses to change the number of flows of a discipline that is attached; here the number stays.

use bufferscope_scenario::{self as scenario, Reason};

use crate::network::pool::{Backlog, PacketId, Pool};
use crate::network::qdisc::shared::flow_queues::{FlowQueues, Turn};
use crate::network::qdisc::shared::pie_controller::{CERTAIN, Controller, Law, bytes_of, first_update_ns, ticks};
use crate::network::qdisc::{Attachment, Dequeued, Discipline, QdiscEvents};
use crate::network::xmit::Xmit;
use crate::random::{Random, Stream};
use crate::timers::Timers;

/// How many flows the timer updates at once.
const FLOWS_AT_ONCE: usize = 2048;

#[derive(Debug)]
pub(crate) struct FqPie {
    flows: FlowQueues<Controller>,
    /// Boxed to keep the discipline small.
    state: Box<State>,
}

#[derive(Debug)]
struct State {
    settings: Settings,
    random: Random,
    timers: Timers,
    /// When the timer is due.
    due_ns: u64,
    /// The flow that the timer updates next.
    cursor: usize,
    /// When the discipline was created.
    since_ns: u64,
}

/// The parameters, except the number of flows.
#[derive(Debug)]
struct Settings {
    limit_packets: u32,
    quantum_bytes: u32,
    tupdate_ns: u64,
    law: Law,
    /// The probability up to which packets are marked; `None`: never.
    mark_up_to: Option<u64>,
}

impl Discipline for FqPie {
    type Parameters = scenario::FqPie;

    const KEEPS_TIME: bool = true;

    fn new(parameters: &scenario::FqPie, attachment: Attachment) -> Result<Self, String> {
        let settings = Settings::new(parameters);
        let mut random = Random::new(attachment.seed, Stream::Qdisc(attachment.port));
        let timers = Timers::of_node(attachment.node, attachment.seed);
        let due_ns = first_update_ns(attachment.now_ns, settings.tupdate_ns, timers, &mut random);
        let state = State { settings, random, timers, due_ns, cursor: 0, since_ns: attachment.now_ns };
        Ok(Self { flows: FlowQueues::new(parameters.flows, Controller::new), state: Box::new(state) })
    }

    fn enqueue(&mut self, packet: PacketId, _now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        let State { settings, random, .. } = &mut *self.state;
        let header = pool.header(packet);
        let (flow, bytes) = (self.flows.index_of(header.hash), bytes_of(header));
        let Turn { state: controller, queue } = self.flows.turn(flow);
        let backlog = queue.own().bytes;
        let reason = if queue.total().packets >= settings.limit_packets.into() {
            Reason::OVERLIMIT
        } else if !controller.drops_early(bytes, backlog, &settings.law, random)
            || settings.marks(controller) && events.mark(packet, Reason::PIE_MARK, pool)
        {
            self.flows.push(flow, packet, settings.quantum_bytes, pool);
            return Xmit::Queued;
        } else {
            Reason::PIE
        };
        controller.on_drop();
        events.drop(packet, reason);
        Xmit::Congested
    }

    fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, _events: &mut QdiscEvents) -> Dequeued {
        self.next(ticks(now_ns), pool).into()
    }

    /// `fq_pie_change`: the flows keep their probabilities, and packets over a lowered limit are dropped as if they left.
    /// The number of flows stays.
    fn change(&mut self, to: Self, pool: &Pool, events: &mut QdiscEvents) {
        let State { settings, since_ns, .. } = *to.state;
        let now = ticks(since_ns);
        self.state.settings = settings;
        while self.backlog().packets > self.state.settings.limit_packets.into()
            && let Some(packet) = self.next(now, pool)
        {
            events.drop(packet, Reason::OVERLIMIT);
        }
    }

    fn backlog(&self) -> Backlog {
        self.flows.backlog()
    }

    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.flows.each_packet(pool, visit);
    }

    fn each_in_flow_queues(&self, pool: &Pool, visit: &mut dyn FnMut(u64, PacketId)) {
        self.flows.each_in_flow_queues(pool, visit);
    }

    fn timer(&self) -> Option<u64> {
        Some(self.state.due_ns)
    }

    fn on_timer(&mut self, now_ns: u64, _pool: &mut Pool, _events: &mut QdiscEvents) {
        let State { settings, timers, due_ns, cursor, .. } = &mut *self.state;
        let mut flows = self.flows.states_mut().skip(*cursor);
        for (controller, queue) in flows.by_ref().take(FLOWS_AT_ONCE) {
            controller.update(queue.bytes() as u32, &settings.law);
        }
        *cursor = if flows.next().is_some() { *cursor + FLOWS_AT_ONCE } else { 0 };
        *due_ns = timers.expiry_ns(now_ns, if *cursor > 0 { 0 } else { settings.tupdate_ns });
    }
}

impl FqPie {
    /// Takes the next packet (`fq_pie_qdisc_dequeue`).
    fn next(&mut self, now: u64, pool: &Pool) -> Option<PacketId> {
        let settings = &self.state.settings;
        loop {
            let flow = self.flows.next(settings.quantum_bytes)?;
            let Turn { state: controller, mut queue } = self.flows.turn(flow);
            let Some(packet) = queue.pop(pool) else {
                self.flows.retire();
                continue;
            };
            let (header, backlog) = (pool.header(packet), queue.own().bytes as u32);
            controller.on_departure(now, now - ticks(header.at_ns), bytes_of(header), backlog, &settings.law);
            self.flows.spend(flow, header.frame_bytes);
            return Some(packet);
        }
    }
}

impl Settings {
    fn new(parameters: &scenario::FqPie) -> Self {
        let scenario::FqPie { target_ns, alpha, beta, bytemode, dq_rate_estimator, .. } = *parameters;
        Self {
            limit_packets: parameters.limit_packets,
            quantum_bytes: parameters.quantum_bytes,
            tupdate_ns: parameters.tupdate_ns,
            law: Law::new(target_ns, [alpha, beta], bytemode, dq_rate_estimator),
            mark_up_to: parameters.ecn.then_some(CERTAIN / 100 * u64::from(parameters.ecn_prob_percent)),
        }
    }

    /// Whether packets of this flow are marked rather than dropped.
    fn marks(&self, controller: &Controller) -> bool {
        self.mark_up_to.is_some_and(|most| controller.probability <= most)
    }
}

#[cfg(test)]
mod tests;
