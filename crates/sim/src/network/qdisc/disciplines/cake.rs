//! `cake`: common applications kept enhanced. Fair queues for flows and hosts, each with an AQM of its own, in tins by code
//! point, behind a shaper.
//!
//! Source: Linux 6.1 `net/sched/sch_cake.c` with the fixes of its stable releases; Høiland-Jørgensen, Täht and Morton,
//! "Piece of CAKE" (arXiv:1804.07617). The parts are in files of their own: [`cobalt`], [`flows`], [`rotation`], [`tins`],
//! [`shaper`], [`overhead`], [`stock`], [`ack_filter`], [`overflow`] and [`autorate`].
//!
//! Departs:
//! - `nat` has no effect, because no node translates addresses;
//! - the length that the shaper counts is computed when a packet leaves, so a change of the overhead also applies to
//!   queued packets;
//! - a change sets every parameter. `tc qdisc change` keeps those that are left out.

use bufferscope_programs::scramble;
use bufferscope_scenario::{self as scenario, AckFilter, Encapsulation, Reason};

use self::autorate::Autorate;
use self::cobalt::Verdict;
use self::flows::{Dithers, Isolation, List, QUEUES, Set};
use self::overflow::{Entry, Heap};
use self::shaper::{Rate, Shaper};
use self::stock::Stock;
use self::tins::{Table, Tin};
use crate::network::pool::{Backlog, PacketId, Pool};
use crate::network::qdisc::{Attachment, Dequeued, Discipline, QdiscEvent, QdiscEvents};
use crate::network::segmentation;
use crate::network::xmit::Xmit;
use crate::random::{Random, Stream};

mod ack_filter;
mod autorate;
mod cobalt;
mod flows;
mod overflow;
mod overhead;
mod rotation;
mod shaper;
mod stock;
mod tins;

/// Number of tins in memory (`CAKE_MAX_TINS`).
const MOST_TINS: usize = 8;

/// Boxed to keep the enum of disciplines small.
#[derive(Debug)]
pub(crate) struct Cake(Box<State>);

#[derive(Debug)]
struct State {
    parameters: scenario::Cake,
    isolation: Isolation,
    tins: Vec<Tin>,
    table: Table,
    /// The tin that is served. At first, and after a change, it lies behind the last.
    tin: usize,
    shaper: Shaper,
    stock: Stock,
    memory_limit: u64,
    /// Built when the memory is first exhausted.
    heap: Option<Box<Heap>>,
    autorate: Option<Autorate>,
    random: Random,
    dithers: Dithers,
    salt: u64,
    /// What the link adds to each packet.
    link: Encapsulation,
}

/// The result of serving a queue.
enum Served {
    Packet(PacketId),
    /// It was empty: choose a tin again.
    Empty,
    /// A packet was dropped that counts as sent: choose a queue again.
    Again,
}

impl Discipline for Cake {
    type Parameters = scenario::Cake;

    const KEEPS_TIME: bool = true;

    fn new(parameters: &scenario::Cake, attachment: Attachment) -> Result<Self, String> {
        let mut state = State {
            parameters: parameters.clone(),
            isolation: Isolation::new(parameters.flowmode),
            tins: Vec::new(),
            table: tins::table(parameters.diffserv),
            tin: 0,
            shaper: Shaper::new(Rate::default()),
            stock: Stock::default(),
            memory_limit: 0,
            heap: None,
            autorate: parameters.autorate_ingress.then(|| Autorate::new(parameters.bytes_per_second())),
            random: Random::new(attachment.seed, Stream::Qdisc(attachment.port)),
            dithers: Dithers::default(),
            salt: scramble(attachment.seed ^ u64::from(attachment.port)),
            link: attachment.encapsulation,
        };
        let tins = tins::shares(parameters.diffserv, 0).len();
        state.tins.resize_with(tins, || Tin::new(state.salt));
        state.set_rate(parameters.bytes_per_second());
        Ok(Self(Box::new(state)))
    }

    fn enqueue(&mut self, packet: PacketId, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        self.0.enqueue(packet, now_ns, pool, events)
    }

    fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Dequeued {
        self.0.dequeue(now_ns, pool, events)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.0.stock.backlog
    }

    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        for flow in self.0.tins.iter().flat_map(|tin| &tin.flows.flows) {
            flow.queue.iter(pool).for_each(&mut *visit);
        }
    }

    fn each_in_flow_queues(&self, pool: &Pool, visit: &mut dyn FnMut(u64, PacketId)) {
        for (tin, first) in self.0.tins.iter().zip((1..).step_by(QUEUES)).filter(|(tin, _)| tin.bytes > 0) {
            let flows = (first..).zip(&tin.flows.flows);
            flows.for_each(|(number, flow)| flow.queue.iter(pool).for_each(|packet| visit(number, packet)));
        }
    }

    fn change(&mut self, to: Self, pool: &Pool, events: &mut QdiscEvents) {
        self.0.change(*to.0, pool, events);
    }
}

impl State {
    fn enqueue(&mut self, packet: PacketId, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        let header = pool.header_mut(packet);
        let tin_index = usize::from(self.table[usize::from(header.class.dscp())]);
        if self.parameters.wash {
            header.class.wash();
        }
        let (header, before) = (*header, self.stock.backlog.bytes);
        let tin = &mut self.tins[tin_index];
        let index = tin.flows.classify(&header, self.isolation);
        if tin.bytes == 0 {
            tin.next_ns = tin.next_ns.max(now_ns);
            if self.stock.backlog.packets == 0 {
                self.shaper.wake(now_ns);
            }
        }
        if header.load.frames() > 1 && self.parameters.split_gso {
            while let Some(first) = segmentation::split_off_first(packet, &self.link, pool) {
                events.split(first);
                self.push(first, tin_index, index, pool);
            }
            self.push(packet, tin_index, index, pool);
        } else {
            self.push(packet, tin_index, index, pool);
            if self.parameters.ack_filter != AckFilter::None {
                self.filter(packet, tin_index, index, now_ns, pool, events);
            }
        }
        if let Some(heap) = self.heap.as_mut().filter(|heap| heap.timeout > 0) {
            heap.grown(Entry::new(tin_index, index), bytes_of(&self.tins));
        }
        if let Some(autorate) = &mut self.autorate {
            let added = self.stock.backlog.bytes.saturating_sub(before);
            if let Some(rate) = autorate.on_arrival(added, now_ns) {
                self.set_rate(rate);
            }
        }
        self.activate(tin_index, index);
        match self.drop_surplus((tin_index, index), now_ns, pool, events) {
            Xmit::Displacing if events.has_dropped(packet) => Xmit::Congested,
            xmit => xmit,
        }
    }

    #[inline]
    fn push(&mut self, packet: PacketId, tin: usize, index: usize, pool: &mut Pool) {
        let tin = &mut self.tins[tin];
        tin.flows.flows[index].queue.push(packet, pool);
        self.stock.add(packet, tin, pool);
    }

    /// Drops an acknowledgement that the packet, the last of its queue, replaces.
    fn filter(
        &mut self,
        packet: PacketId,
        tin: usize,
        index: usize,
        now_ns: u64,
        pool: &mut Pool,
        events: &mut QdiscEvents,
    ) {
        let queue = &mut self.tins[tin].flows.flows[index].queue;
        let aggressive = self.parameters.ack_filter == AckFilter::Aggressive;
        let Some(replaced) = ack_filter::take_replaced(queue, packet, aggressive, pool) else { return };
        let tin = &mut self.tins[tin];
        self.stock.remove(replaced, tin, pool);
        if self.parameters.ingress {
            let bytes = overhead::adjusted_bytes(replaced, &self.parameters.link_layer, pool);
            advance(&mut self.shaper, tin, bytes, now_ns, true);
        }
        events.drop(replaced, Reason::ACK_FILTER);
    }

    /// Enters a queue, in which a packet has arrived, into the rotation.
    fn activate(&mut self, tin: usize, index: usize) {
        let flows = &mut self.tins[tin].flows;
        match flows.flows[index].set {
            set @ (Set::Free | Set::Decaying) => {
                flows.decaying -= u32::from(set == Set::Decaying);
                flows.append(index, List::New);
                flows.sparse += 1;
                flows.flows[index].set = Set::Sparse;
                flows.flows[index].deficit = flows.share(index, self.isolation, &mut self.dithers, &mut self.random);
            }
            Set::SparseWait => {
                flows.sparse -= 1;
                flows.become_bulk(index, self.isolation);
            }
            Set::Sparse | Set::Bulk => {}
        }
    }

    /// Drops packets from the head of the longest queue until the memory suffices.
    #[inline]
    fn drop_surplus(&mut self, own: (usize, usize), now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        let mut result = Xmit::Queued;
        while self.stock.memory > self.memory_limit {
            if self.drop_longest(now_ns, pool, events) == own {
                result = Xmit::Displacing;
            }
        }
        result
    }

    /// Drops a packet of the longest queue (`cake_drop`). Returns the tin and the queue.
    #[cold]
    fn drop_longest(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> (usize, usize) {
        let heap = self.heap.get_or_insert_with(|| Box::new(Heap::new()));
        let entry = heap.longest(bytes_of(&self.tins));
        let longest_queue = (entry.tin(), entry.queue());
        let longest = self
            .tins
            .get_mut(longest_queue.0)
            .and_then(|tin| Some((tin.flows.flows[longest_queue.1].queue.pop(pool)?, tin)));
        let Some((packet, tin)) = longest else {
            heap.timeout = 0;
            return longest_queue;
        };
        tin.flows.flows[longest_queue.1].cobalt.on_overflow(&tin.cobalt, now_ns as i64);
        self.stock.remove(packet, tin, pool);
        if self.parameters.ingress {
            let bytes = overhead::adjusted_bytes(packet, &self.parameters.link_layer, pool);
            advance(&mut self.shaper, tin, bytes, now_ns, true);
        }
        events.drop(packet, Reason::OVERLIMIT);
        heap.first_shrunk(bytes_of(&self.tins));
        longest_queue
    }

    fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Dequeued {
        let mut may_decay = true;
        loop {
            if self.stock.backlog.packets == 0 {
                return Dequeued::Nothing;
            }
            if let Some(at_ns) = self.shaper.not_before(now_ns) {
                return Dequeued::NotBefore(at_ns);
            }
            let chosen = if self.shaper.rate.is_unlimited() { self.tin_by_deficit() } else { self.tin_by_time(now_ns) };
            if !chosen {
                return Dequeued::Nothing;
            }
            while let Some(index) = self.next_queue(&mut may_decay) {
                match self.serve(index, now_ns, pool, events) {
                    Served::Packet(packet) => {
                        if let Some(heap) = &mut self.heap {
                            heap.timeout = heap.timeout.saturating_sub(1);
                        }
                        return Dequeued::Packet(packet);
                    }
                    Served::Empty => break,
                    Served::Again => {}
                }
            }
        }
    }

    /// Chooses a tin by turns without a shaper. Returns false if all tins are empty.
    #[inline]
    fn tin_by_deficit(&mut self) -> bool {
        let (mut wrapped, mut empty) = (false, true);
        loop {
            for (index, tin) in self.tins.iter_mut().enumerate().skip(self.tin) {
                let active = tin.flows.any_active();
                if tin.deficit >= 0 && active {
                    self.tin = index;
                    return true;
                }
                if tin.deficit <= 0 {
                    tin.deficit += tin.quantum;
                }
                empty &= !active;
            }
            self.tin = 0;
            if wrapped && empty {
                return false;
            }
            wrapped = true;
        }
    }

    /// Chooses the last tin that is below its threshold, or else the one that will be so first. Returns false if all
    /// tins are empty.
    #[inline]
    fn tin_by_time(&mut self, now_ns: u64) -> bool {
        let (mut best, mut least_ns) = (0, i64::MAX);
        for (index, tin) in self.tins.iter().enumerate().filter(|(_, tin)| tin.flows.any_active()) {
            let ahead_ns = tin.next_ns as i64 - now_ns as i64;
            if ahead_ns <= 0 || ahead_ns <= least_ns {
                (best, least_ns) = (index, ahead_ns);
            }
        }
        self.tin = best;
        self.tins[best].flows.any_active()
    }

    /// The queue of the tin that is served next: one that decays first, then new ones, then old ones (DRR++).
    #[inline]
    fn next_queue(&mut self, may_decay: &mut bool) -> Option<usize> {
        let flows = &mut self.tins[self.tin].flows;
        loop {
            let decaying = if std::mem::replace(may_decay, false) { flows.first(List::Decaying) } else { None };
            let index = match decaying.or_else(|| flows.first(List::New)) {
                Some(index) => index,
                None => {
                    let old = flows.next_old(self.isolation, &mut self.dithers, &mut self.random);
                    old.or_else(|| flows.first(List::Decaying))?
                }
            };
            let flow = &mut flows.flows[index];
            if flow.deficit > 0 {
                return Some(index);
            }
            if flow.set == Set::Sparse {
                if flow.queue.is_empty() {
                    flow.set = Set::SparseWait;
                } else {
                    flows.sparse -= 1;
                    flows.become_bulk(index, self.isolation);
                }
            }
            let share = flows.share(index, self.isolation, &mut self.dithers, &mut self.random);
            flows.flows[index].deficit += share;
            flows.append_old(index);
        }
    }

    /// Takes a packet out of a queue of the chosen tin, as COBALT lets it.
    #[inline]
    fn serve(&mut self, index: usize, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Served {
        let ingress = self.parameters.ingress;
        loop {
            let tin = &mut self.tins[self.tin];
            let bulk_flows = if ingress { tin.flows.bulk.into() } else { 0 };
            let flow = &mut tin.flows.flows[index];
            let Some(packet) = flow.queue.pop(pool) else {
                tin.flows.retire(index, &tin.cobalt, self.isolation, now_ns as i64);
                return Served::Empty;
            };
            let is_last = flow.queue.is_empty();
            let header = pool.header_mut(packet);
            let (sojourn_ns, capable) = (now_ns - header.at_ns, header.class.ecn().is_capable());
            let Verdict { drop, marked } =
                flow.cobalt.judge(&tin.cobalt, now_ns as i64, sojourn_ns, bulk_flows, capable, &mut self.random);
            if marked {
                header.class.mark();
            }
            let is_sent = !drop || is_last;
            if is_sent || ingress {
                // Dropped packets have come through the link, too.
                let bytes = overhead::adjusted_bytes(packet, &self.parameters.link_layer, pool);
                flow.deficit -= bytes as i32;
                tin.deficit -= bytes as i32;
                advance(&mut self.shaper, tin, bytes, now_ns, !is_sent);
            }
            self.stock.remove(packet, tin, pool);
            if let Some(heap) = self.heap.as_mut().filter(|heap| heap.timeout > 0) {
                heap.shrunk(Entry::new(self.tin, index), bytes_of(&self.tins));
            }
            if is_sent {
                if marked {
                    events.0.push(QdiscEvent::Marked(packet, Reason::COBALT_MARK));
                }
                return Served::Packet(packet);
            }
            events.drop(packet, Reason::COBALT);
            if ingress {
                return Served::Again;
            }
        }
    }

    /// Sets the rate of the shaper, and what depends on it (`cake_reconfigure`).
    fn set_rate(&mut self, bytes_per_second: u64) {
        let parameters = &self.parameters;
        let (target_ns, interval_ns) = (parameters.target_us() * 1000, parameters.interval_us() * 1000);
        let shares = tins::shares(parameters.diffserv, bytes_per_second);
        for (tin, (rate, quantum)) in self.tins.iter_mut().zip(shares) {
            tin.set_rate(rate, target_ns, interval_ns);
            tin.quantum = quantum;
        }
        if self.tins.len() < MOST_TINS {
            // The kernel clears the other tins, and the last of them has its turn.
            self.tin = MOST_TINS - 1;
        }
        self.shaper.rate = self.tins[0].rate();
        self.memory_limit = self.parameters.buffer_limit(bytes_per_second);
    }

    /// `cake_change`: the packets of removed tins are dropped, and a lowered limit of the memory applies from the next
    /// packet on.
    fn change(&mut self, to: Self, pool: &Pool, events: &mut QdiscEvents) {
        let State { parameters, isolation, tins, table, autorate, .. } = to;
        let kept = tins.len();
        for index in kept..self.tins.len() {
            for queue in 0..QUEUES {
                let tin = &mut self.tins[index];
                while let Some(packet) = tin.flows.flows[queue].queue.pop(pool) {
                    self.stock.remove(packet, tin, pool);
                    events.drop(packet, Reason::PURGED);
                }
            }
        }
        self.tins.truncate(kept);
        let salt = self.salt;
        self.tins.resize_with(kept, || Tin::new(salt));
        if self.autorate.is_none() || autorate.is_none() {
            self.autorate = autorate;
        }
        (self.parameters, self.isolation, self.table) = (parameters, isolation, table);
        self.set_rate(self.parameters.bytes_per_second());
    }
}

/// A packet of the tin leaves or, with `dropped`, counts as sent (`cake_advance_shaper`).
#[inline]
fn advance(shaper: &mut Shaper, tin: &mut Tin, bytes: u32, now_ns: u64, dropped: bool) {
    if !shaper.rate.is_unlimited() {
        tin.advance(bytes, now_ns);
        shaper.advance(bytes, dropped);
    }
}

/// How long a queue is, for the heap.
fn bytes_of(tins: &[Tin]) -> impl Fn(Entry) -> u64 {
    |entry: Entry| tins.get(entry.tin()).map_or(0, |tin| tin.flows.flows[entry.queue()].queue.bytes())
}

#[cfg(test)]
mod tests;
