//! `fq`: a queue for each flow, served by deficit round robin, whose packets can be paced.
//!
//! Source: Linux 6.1 (`net/sched/sch_fq.c`). A flow is a TCP connection of the sending host, or all packets with the same
//! hash under `orphan_mask`. Flows that must not send yet wait in a heap. Linux 6.7 added three bands and a fast path,
//! which are not modelled.
//!
//! Linux paces TCP by the departure time that each packet carries (`skb->tstamp`), and leaves `maxrate` to this file. A
//! packet without such a time is charged a whole quantum, when the flow's credit is used up. Between network namespaces
//! of one machine, which the kernel engines use, a forwarded packet keeps its time (`mono_delivery_time`, since Linux
//! 5.18), and so it does here. A router that is a machine of its own gets packets without it.
//!
//! Departures:
//! - The pacing of TCP: connections of this host space their packets themselves, as at any other queue. The packets leave
//!   at the same times, but those that are not yet due wait in the connection and not here, so the queue is shorter.
//! - Their spacing differs from the kernel's where windows are a few packets: `ce_threshold` = 1 ms at the port of four
//!   CUBIC senders gave a fifth less goodput than Linux 6.1, and a tenth more marks.
//! - `horizon` and `horizon_drop` have no effect: they concern packets that wait here for their departure time. Linux' TCP
//!   passes packets on ahead of it, as many as its small queues allow, which are two or what lasts a millisecond
//!   (`tcp_small_queue_check`). The departure time of a forwarded packet is past. So a horizon matters only if two packets
//!   last longer at the rate of a connection of this host.
//! - `ce_threshold` counts the delay from when a packet arrives here, as on a router that is a machine of its own. The
//!   kernel counts from the departure time of a packet that has one. That of a connection of this host has just come
//!   when it arrives, but that of a forwarded packet is when its sender sent it.
//! - A new connection begins to be paced at once, instead of when `fq` sees its first packet, and a queue that becomes
//!   `fq`, or is `fq` no longer, changes nothing for connections that exist.
//! - SYN-ACKs belong to the flow of their connection, not to one that the hash chooses.
//! - A change that lowers the limit drops packets of the flows that may send. In Linux, it leaves those alone that become
//!   throttled meanwhile.
//! - TCP sockets that are closed leave their packets to the hash; here they do not.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bufferscope_scenario::sizes::FRAME_BYTES;
use bufferscope_scenario::{self as scenario, NodeIndex, Reason};

use crate::network::packet::Body;
use crate::network::pool::{Backlog, Fifo, PacketId, Pool};
use crate::network::qdisc::shared::flow_queues::{List, Listed, UNLISTED};
use crate::network::qdisc::{Attachment, Dequeued, Discipline, QdiscEvents};
use crate::network::xmit::Xmit;
use crate::timers::Timers;

const NS_PER_S: u64 = 1_000_000_000;
/// One jiffy (`1 / CONFIG_HZ`).
const JIFFY_NS: u64 = 4_000_000;
/// A flow that was empty for longer than this many jiffies may be forgotten (`FQ_GC_AGE`).
const FORGET_AFTER_JIFFIES: u64 = 750;
/// The end of a chain of flows.
const END: u32 = u32::MAX;
/// Marks the keys of connections of this host: the lower half is the connection's number.
const OWN_CONNECTION: u64 = 1 << 32;

#[derive(Debug)]
pub(crate) struct Fq {
    /// Boxed to keep the discipline small.
    inner: Box<Inner>,
    /// Whether the horizon is one that Linux' TCP may reach.
    has_short_horizon: bool,
}

#[derive(Debug)]
struct Inner {
    settings: Settings,
    flows: Vec<Flow>,
    /// The first flow of each bucket of the table in which flows are looked up.
    buckets: Box<[u32]>,
    /// Forgotten flows, as a chain.
    free: u32,
    /// Number of flows that are not forgotten, and of those that are on no list.
    known: u32,
    inactive: u32,
    new: List,
    old: List,
    /// Flows that must not send before a time, and their order of arrival.
    throttled: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// Number of times a flow was throttled.
    throttlings: u64,
    backlog: Backlog,
    node: NodeIndex,
    timers: Timers,
    /// When the last packet arrived, in jiffies.
    last_arrival: u64,
}

#[derive(Debug)]
struct Settings {
    limit_packets: u64,
    flow_limit_packets: u32,
    quantum_bytes: u32,
    initial_quantum_bytes: u32,
    orphan_mask: u32,
    /// In bytes per second. `None` if there is no limit, or if nothing is paced.
    maxrate: Option<u64>,
    /// In bytes per second.
    low_rate: u64,
    refill_jiffies: u64,
    timer_slack_ns: u64,
    ce_threshold_ns: Option<u64>,
}

#[derive(Debug)]
struct Flow {
    key: u64,
    queue: Fifo,
    /// How many bytes it may still send in its turn.
    credit: i32,
    link: u32,
    /// The next flow in the same bucket, or on the chain of forgotten ones.
    chain: u32,
    state: FlowState,
    /// The next packet leaves at this time at the earliest. 0 if it was never limited.
    next_at_ns: u64,
    /// When it was found empty, in jiffies, made odd.
    empty_since: u64,
}

/// The state of a flow: `throttled`, `detached`, or on a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlowState {
    /// On no list: it was found empty.
    Detached,
    /// On the list of new or of old flows.
    Listed,
    Throttled,
}

impl Listed for Flow {
    #[inline]
    fn link(&mut self) -> &mut u32 {
        &mut self.link
    }
}

impl Discipline for Fq {
    type Parameters = scenario::Fq;

    const KEEPS_TIME: bool = true;

    fn new(parameters: &scenario::Fq, attachment: Attachment) -> Result<Self, String> {
        let settings = Settings {
            limit_packets: parameters.limit_packets.into(),
            flow_limit_packets: parameters.flow_limit_packets,
            quantum_bytes: parameters.quantum_bytes.unwrap_or(2 * FRAME_BYTES),
            initial_quantum_bytes: parameters.initial_quantum_bytes.unwrap_or(10 * FRAME_BYTES),
            orphan_mask: parameters.orphan_mask,
            maxrate: parameters.maxrate_bps.filter(|_| parameters.pacing).map(|bps| bps / 8),
            low_rate: parameters.low_rate_threshold_bps / 8,
            refill_jiffies: parameters.refill_delay_ns.div_ceil(JIFFY_NS),
            timer_slack_ns: parameters.timer_slack_ns,
            ce_threshold_ns: parameters.ce_threshold_ns,
        };
        let buckets = parameters.buckets.next_power_of_two() as usize;
        Ok(Self {
            inner: Box::new(Inner {
                settings,
                flows: Vec::new(),
                buckets: vec![END; buckets].into(),
                free: END,
                known: 0,
                inactive: 0,
                new: List::EMPTY,
                old: List::EMPTY,
                throttled: BinaryHeap::new(),
                throttlings: 0,
                backlog: Backlog::default(),
                node: attachment.node,
                timers: Timers::of_node(attachment.node, attachment.seed),
                last_arrival: 0,
            }),
            has_short_horizon: parameters.pacing && parameters.horizon_ns < scenario::Fq::HORIZON_NS,
        })
    }

    fn enqueue(&mut self, packet: PacketId, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        let inner = &mut *self.inner;
        if inner.backlog.packets >= inner.settings.limit_packets {
            events.drop(packet, Reason::OVERLIMIT);
            return Xmit::Dropped;
        }
        let jiffies = inner.jiffies(now_ns);
        inner.last_arrival = jiffies;
        let index = inner.flow_of(packet, jiffies, pool);
        let flow = &mut inner.flows[index as usize];
        if flow.queue.packets() >= inner.settings.flow_limit_packets {
            events.drop(packet, Reason::FLOW_LIMIT);
            return Xmit::Dropped;
        }
        flow.queue.push(packet, pool);
        inner.backlog.packets += 1;
        inner.backlog.bytes += u64::from(pool.header(packet).frame_bytes);
        if flow.state == FlowState::Detached {
            flow.state = FlowState::Listed;
            if jiffies > flow.empty_since + inner.settings.refill_jiffies {
                // The kernel compares without signs, so a credit below zero would stay as it is.
                let credit = flow.credit.cast_unsigned().max(inner.settings.quantum_bytes);
                flow.credit = credit.cast_signed();
            }
            inner.inactive -= 1;
            inner.new.append(index, &mut inner.flows);
        }
        Xmit::Queued
    }

    fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Dequeued {
        let inner = &mut *self.inner;
        if inner.backlog.packets == 0 {
            return Dequeued::Nothing;
        }
        inner.release_throttled(now_ns);
        while let Some(index) = inner.next() {
            let flow = &mut inner.flows[index as usize];
            if !flow.queue.is_empty() && now_ns < flow.next_at_ns {
                inner.throttle();
            } else if let Some(packet) = inner.pop(index, pool) {
                inner.mark_late(index, packet, now_ns, pool, events);
                inner.charge(index, packet, now_ns, pool);
                return Dequeued::Packet(packet);
            } else {
                inner.retire(inner.jiffies(now_ns));
            }
        }
        match inner.throttled.peek() {
            Some(Reverse((at_ns, ..))) => Dequeued::NotBefore(at_ns + inner.settings.timer_slack_ns),
            None => Dequeued::Nothing,
        }
    }

    /// `fq_change`: flows stay, though they may move to other buckets.
    fn change(&mut self, to: Self, pool: &Pool, events: &mut QdiscEvents) {
        self.has_short_horizon = to.has_short_horizon;
        let inner = &mut *self.inner;
        let Inner { settings, buckets, .. } = *to.inner;
        inner.settings = settings;
        if buckets.len() != inner.buckets.len() {
            inner.resize(buckets);
        }
        while inner.backlog.packets > inner.settings.limit_packets {
            let Some(index) = inner.next() else { return };
            match inner.pop(index, pool) {
                Some(packet) => {
                    inner.flows[index as usize].spend(pool.header(packet).frame_bytes);
                    events.drop(packet, Reason::OVERLIMIT);
                }
                None => inner.retire(inner.last_arrival),
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.inner.backlog
    }

    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.inner.flows.iter().for_each(|flow| flow.queue.iter(pool).for_each(&mut *visit));
    }

    fn each_in_flow_queues(&self, pool: &Pool, visit: &mut dyn FnMut(u64, PacketId)) {
        let flows = (1..).zip(&self.inner.flows);
        flows.for_each(|(number, flow)| flow.queue.iter(pool).for_each(|packet| visit(number, packet)));
    }

    fn warning(&self) -> Option<String> {
        let reason = "fq: horizon has no effect in the simulator, where TCP keeps packets back until they are due";
        self.has_short_horizon.then(|| reason.to_owned())
    }
}

impl Inner {
    fn jiffies(&self, now_ns: u64) -> u64 {
        self.timers.clock_ns(now_ns) / JIFFY_NS
    }

    /// The flow of a packet, which may be a new one (`fq_classify`).
    #[inline]
    fn flow_of(&mut self, packet: PacketId, jiffies: u64, pool: &Pool) -> u32 {
        let header = pool.header(packet);
        let key = match pool.body(packet) {
            // Its socket stays the same when its packets get another hash.
            Body::Tcp(tcp) if header.source == self.node => OWN_CONNECTION | u64::from(tcp.connection),
            _ => u64::from(header.low_hash() & self.settings.orphan_mask),
        };
        let bucket = bucket_of(key, self.buckets.len());
        if u64::from(self.known) >= 2 * self.buckets.len() as u64 && self.inactive > self.known / 2 {
            self.forget_old(bucket, key, jiffies);
        }
        let mut index = self.buckets[bucket];
        while index != END {
            let flow = &self.flows[index as usize];
            if flow.key == key {
                return index;
            }
            index = flow.chain;
        }
        self.add(key, bucket, jiffies)
    }

    #[cold]
    fn add(&mut self, key: u64, bucket: usize, jiffies: u64) -> u32 {
        let flow = Flow {
            key,
            queue: Fifo::new(),
            credit: self.settings.initial_quantum_bytes.cast_signed(),
            link: UNLISTED,
            chain: self.buckets[bucket],
            state: FlowState::Detached,
            next_at_ns: 0,
            empty_since: jiffies | 1,
        };
        let index = if self.free == END {
            self.flows.push(flow);
            (self.flows.len() - 1) as u32
        } else {
            let free = self.free;
            self.free = self.flows[free as usize].chain;
            self.flows[free as usize] = flow;
            free
        };
        self.buckets[bucket] = index;
        self.known += 1;
        self.inactive += 1;
        index
    }

    /// Forgets flows of the bucket that have been empty for long, except the one with this key (`fq_gc`).
    #[cold]
    fn forget_old(&mut self, bucket: usize, key: u64, jiffies: u64) {
        let mut index = std::mem::replace(&mut self.buckets[bucket], END);
        while index != END {
            let flow = &mut self.flows[index as usize];
            let next = flow.chain;
            let is_old = flow.state == FlowState::Detached && jiffies > flow.empty_since + FORGET_AFTER_JIFFIES;
            let head = if is_old && flow.key != key { &mut self.free } else { &mut self.buckets[bucket] };
            flow.chain = std::mem::replace(head, index);
            if is_old && flow.key != key {
                self.known -= 1;
                self.inactive -= 1;
            }
            index = next;
        }
    }

    /// Moves all flows to other buckets.
    fn resize(&mut self, buckets: Box<[u32]>) {
        let before = std::mem::replace(&mut self.buckets, buckets);
        for mut index in before {
            while index != END {
                let flow = &mut self.flows[index as usize];
                let bucket = &mut self.buckets[bucket_of(flow.key, self.buckets.len())];
                let next = std::mem::replace(&mut flow.chain, *bucket);
                *bucket = index;
                index = next;
            }
        }
    }

    /// The next flow with a turn. Flows without credit get another quantum and become old.
    fn next(&mut self) -> Option<u32> {
        loop {
            let list = if self.new.is_empty() { &mut self.old } else { &mut self.new };
            let first = list.first()?;
            let flow = &mut self.flows[first as usize];
            if flow.credit > 0 {
                return Some(first);
            }
            flow.credit = flow.credit.saturating_add_unsigned(self.settings.quantum_bytes);
            list.remove_first(&mut self.flows);
            self.old.append(first, &mut self.flows);
        }
    }

    fn pop(&mut self, index: u32, pool: &Pool) -> Option<PacketId> {
        let packet = self.flows[index as usize].queue.pop(pool)?;
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(pool.header(packet).frame_bytes);
        Some(packet)
    }

    /// Takes the flow that is next off its list.
    fn remove_next(&mut self) -> Option<(u32, bool)> {
        let is_new = !self.new.is_empty();
        let list = if is_new { &mut self.new } else { &mut self.old };
        let first = list.first()?;
        list.remove_first(&mut self.flows);
        Some((first, is_new))
    }

    /// The flow that is next must wait.
    fn throttle(&mut self) {
        let Some((index, _)) = self.remove_next() else { return };
        let flow = &mut self.flows[index as usize];
        flow.state = FlowState::Throttled;
        self.throttlings += 1;
        self.throttled.push(Reverse((flow.next_at_ns, self.throttlings, index)));
    }

    /// Flows that may send now become old ones (`fq_check_throttled`).
    fn release_throttled(&mut self, now_ns: u64) {
        while let Some(Reverse((at_ns, _, index))) = self.throttled.peek()
            && *at_ns <= now_ns
        {
            let index = *index;
            self.throttled.pop();
            self.flows[index as usize].state = FlowState::Listed;
            self.old.append(index, &mut self.flows);
        }
    }

    /// The flow that is next is empty. If it was new, it has to wait for the old flows before it can be new again.
    fn retire(&mut self, jiffies: u64) {
        let Some((index, was_new)) = self.remove_next() else { return };
        if was_new && !self.old.is_empty() {
            self.old.append(index, &mut self.flows);
        } else {
            let flow = &mut self.flows[index as usize];
            flow.state = FlowState::Detached;
            flow.empty_since = jiffies | 1;
            self.inactive += 1;
        }
    }

    /// Marks a packet that leaves later than `ce_threshold` after the time at which it and its flow could have sent.
    #[inline]
    fn mark_late(&mut self, index: u32, packet: PacketId, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) {
        let Some(threshold_ns) = self.settings.ce_threshold_ns else { return };
        let due_ns = pool.header(packet).at_ns.max(self.flows[index as usize].next_at_ns);
        if now_ns - due_ns > threshold_ns {
            events.mark(packet, Reason::CE_THRESHOLD_MARK, pool);
        }
    }

    /// A packet leaves: takes it from the flow's credit, and says when the next one may leave.
    fn charge(&mut self, index: u32, packet: PacketId, now_ns: u64, pool: &Pool) {
        let mut bytes = pool.header(packet).frame_bytes;
        let flow = &mut self.flows[index as usize];
        flow.spend(bytes);
        let Some(rate) = self.settings.maxrate else { return };
        let has_departure_time = matches!(pool.body(packet), Body::Tcp(_));
        if !has_departure_time {
            if rate <= self.settings.low_rate {
                flow.credit = 0;
            } else {
                bytes = bytes.max(self.settings.quantum_bytes);
                if flow.credit > 0 {
                    return;
                }
            }
        }
        let mut length_ns = (u64::from(bytes) * NS_PER_S).checked_div(rate).unwrap_or(NS_PER_S).min(NS_PER_S);
        if flow.next_at_ns > 0 {
            // Compensates for the lateness of the packet.
            length_ns -= (length_ns / 2).min(now_ns - flow.next_at_ns);
        }
        flow.next_at_ns = now_ns + length_ns;
    }
}

impl Flow {
    fn spend(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_sub_unsigned(bytes);
    }
}

/// Multiplies by the golden ratio, and takes the upper bits (`hash_64`).
fn bucket_of(key: u64, buckets: usize) -> usize {
    let bits = buckets.trailing_zeros();
    (key.wrapping_mul(0x61C8_8646_80B5_83EB) >> (64 - bits)) as usize
}

#[cfg(test)]
mod tests;
