//! `fq_codel`: flow queues, each under the control of CoDel.
//!
//! Source: RFC 8290, as implemented in Linux (`net/sched/sch_fq_codel.c`, of 6.1). Linux differs from the RFC:
//! - above the limit it drops up to `drop_batch` packets, or half of the bytes, of the flow with the most bytes;
//! - CoDel lets packets pass while at most one MTU's worth of bytes remains in all queues together, not in the flow's;
//! - there is a limit of memory too (see [`truesize`](crate::network::truesize)).
//!
//! Departures:
//! - The hash of a packet is not that of the kernel, so different flows share a queue, though on average as many.
//! - If a change lowers a limit, Linux takes packets off the queue through CoDel, which may drop or mark others. Here
//!   only those over the limit are dropped, in the order in which they would be sent.
//! - Linux refuses to change the number of flows. Here the discipline is replaced, and its packets are dropped.

use bufferscope_scenario::sizes::FRAME_BYTES;
use bufferscope_scenario::{self as scenario, Reason};

use crate::network::pool::{Backlog, PacketId, Pool};
use crate::network::qdisc::shared::codel_law::{Law, State};
use crate::network::qdisc::shared::flow_queues::{FlowQueues, Turn};
use crate::network::qdisc::{Attachment, Dequeued, Discipline, QdiscEvents};
use crate::network::xmit::Xmit;

#[derive(Debug)]
pub(crate) struct FqCodel {
    /// Boxed to keep the discipline small.
    inner: Box<Inner>,
}

#[derive(Debug)]
struct Inner {
    flows: FlowQueues<State>,
    settings: Settings,
}

#[derive(Debug)]
struct Settings {
    limit_packets: u64,
    memory_limit_bytes: u64,
    quantum_bytes: u32,
    drop_batch: u32,
    law: Law,
}

impl Discipline for FqCodel {
    type Parameters = scenario::FqCodel;

    fn new(parameters: &scenario::FqCodel, _: Attachment) -> Result<Self, String> {
        let times = (parameters.target_ns, parameters.interval_ns);
        let mut law = Law::new(times, parameters.ecn, parameters.ce_threshold_ns);
        law.ce_filter = parameters.ce_threshold_selector;
        let settings = Settings {
            limit_packets: parameters.limit_packets.into(),
            memory_limit_bytes: parameters.memory_limit_bytes.into(),
            quantum_bytes: parameters.quantum_bytes.unwrap_or(FRAME_BYTES).max(scenario::FqCodel::LEAST_QUANTUM_BYTES),
            drop_batch: parameters.drop_batch,
            law,
        };
        let flows = FlowQueues::new(parameters.flows, State::default);
        Ok(Self { inner: Box::new(Inner { flows, settings }) })
    }

    #[inline]
    fn enqueue(&mut self, packet: PacketId, _now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        let Inner { flows, settings } = &mut *self.inner;
        let flow = flows.index_of(pool.header(packet).hash);
        flows.push(flow, packet, settings.quantum_bytes, pool);
        if !settings.is_over_memory(flows) && flows.backlog().packets <= settings.limit_packets {
            return Xmit::Queued;
        }
        self.inner.drop_batch(packet, flow, pool, events)
    }

    #[inline]
    fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Dequeued {
        let Inner { flows, settings } = &mut *self.inner;
        while let Some(flow) = flows.next(settings.quantum_bytes) {
            let Turn { state, mut queue } = flows.turn(flow);
            if let Some(packet) = state.dequeue(&settings.law, &mut queue, now_ns, pool, events) {
                flows.spend(flow, pool.header(packet).frame_bytes);
                return Dequeued::Packet(packet);
            }
            flows.retire();
        }
        Dequeued::Nothing
    }

    /// The layer below has asked every flow, and all were empty.
    fn idle_since(&mut self, _at_ns: u64) {
        let Inner { flows, settings } = &mut *self.inner;
        if flows.backlog().packets > 0 {
            return;
        }
        while let Some(flow) = flows.next(settings.quantum_bytes) {
            flows.turn(flow).state.on_empty();
            flows.retire();
        }
    }

    /// `fq_codel_change`: packets stay, and so does CoDel's state of the flows.
    fn change(&mut self, to: Self, pool: &Pool, events: &mut QdiscEvents) {
        if to.inner.flows.len() != self.inner.flows.len() {
            self.each_packet(pool, &mut |packet| events.drop(packet, Reason::PURGED));
            *self = to;
            return;
        }
        self.inner.settings = to.inner.settings;
        let Inner { flows, settings } = &mut *self.inner;
        loop {
            let reason = if settings.is_over_memory(flows) {
                Reason::OVERMEMORY
            } else if flows.backlog().packets > settings.limit_packets {
                Reason::OVERLIMIT
            } else {
                return;
            };
            let Some(flow) = flows.next(settings.quantum_bytes) else { return };
            match flows.turn(flow).queue.pop(pool) {
                Some(packet) => {
                    flows.spend(flow, pool.header(packet).frame_bytes);
                    events.drop(packet, reason);
                }
                None => flows.retire(),
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.inner.flows.backlog()
    }

    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.inner.flows.each_packet(pool, visit);
    }

    fn each_in_flow_queues(&self, pool: &Pool, visit: &mut dyn FnMut(u64, PacketId)) {
        self.inner.flows.each_in_flow_queues(pool, visit);
    }
}

impl Inner {
    /// A limit is exceeded by `packet`, which has been added to `arrival`: drops from the head of the flow with the most
    /// bytes (`fq_codel_drop`).
    #[cold]
    fn drop_batch(&mut self, packet: PacketId, arrival: u32, pool: &Pool, events: &mut QdiscEvents) -> Xmit {
        let reason = if self.settings.is_over_memory(&self.flows) { Reason::OVERMEMORY } else { Reason::OVERLIMIT };
        let fattest = self.flows.fattest();
        let Turn { state, mut queue } = self.flows.turn(fattest);
        let enough_bytes = queue.own().bytes / 2;
        let (mut dropped, mut dropped_bytes, mut has_dropped) = (0, 0, false);
        while let Some(oldest) = queue.pop(pool) {
            dropped += 1;
            dropped_bytes += u64::from(pool.header(oldest).frame_bytes);
            has_dropped |= oldest == packet;
            events.drop(oldest, reason);
            if dropped >= self.settings.drop_batch || dropped_bytes >= enough_bytes {
                break;
            }
        }
        state.add_drops(dropped);
        match fattest == arrival {
            false => Xmit::Queued,
            true if has_dropped => Xmit::Congested,
            true => Xmit::Displacing,
        }
    }
}

impl Settings {
    #[inline]
    fn is_over_memory(&self, flows: &FlowQueues<State>) -> bool {
        flows.memory_bytes() > self.memory_limit_bytes
    }
}

#[cfg(test)]
mod tests;
