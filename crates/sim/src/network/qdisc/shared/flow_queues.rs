//! Flow queues: a fixed table of queues that are served by deficit round robin, queues that have just become active
//! before the others. `fq_codel` and `fq_pie` manage each of them by their own rules.
//!
//! Source: RFC 8290 (sections 4.1 and 4.2), as implemented in Linux (`net/sched/sch_fq_codel.c`, `sch_fq_pie.c`). The
//! lists are threaded through the table, so a packet costs no allocation, and its cost does not depend on the number of
//! flows. Linux only ever takes the first flow off a list; the lists are therefore linked in one direction.
//!
//! Departures: none known.

use crate::network::pool::{Backlog, Fifo, PacketId, Pool};
use crate::network::truesize::truesize;

/// The end of a list, as a link.
const LAST: u32 = u32::MAX;
/// The link of a flow that is on no list.
pub(crate) const UNLISTED: u32 = u32::MAX - 1;

/// Flow queues with a state `S` each.
#[derive(Debug)]
pub(crate) struct FlowQueues<S> {
    flows: Box<[Flow<S>]>,
    /// Bytes in the queue of each flow, in a table of their own, which is small enough to be searched at every overflow.
    /// They wrap as in Linux, where they have 32 bits, too.
    backlogs: Box<[u32]>,
    /// Flows that have become active, in this order.
    new: List,
    /// Flows that have had a turn already.
    old: List,
    total: Total,
}

/// The backlog of all queues, and its memory.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    backlog: Backlog,
    /// Memory that the packets would take in Linux.
    memory_bytes: u64,
}

/// One queue of the table.
#[derive(Debug)]
struct Flow<S> {
    queue: Fifo,
    /// How many bytes it may still send in its turn. A turn begins while this is positive, so it can become negative.
    deficit: i32,
    link: u32,
    state: S,
}

/// A list of flows, threaded through their table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    first: u32,
    last: u32,
}

/// A flow that can be on a list.
pub(crate) trait Listed {
    /// The next flow of the list.
    fn link(&mut self) -> &mut u32;
}

/// The flow whose turn it is.
#[derive(Debug)]
pub(crate) struct Turn<'a, S> {
    /// The state that the discipline keeps for the flow.
    pub(crate) state: &'a mut S,
    pub(crate) queue: TurnQueue<'a>,
}

/// The queue of one flow, with access to the totals of all queues.
#[derive(Debug)]
pub(crate) struct TurnQueue<'a> {
    queue: &'a mut Fifo,
    backlog: &'a mut u32,
    total: &'a mut Total,
}

impl<S> FlowQueues<S> {
    /// A table of `count` flows.
    pub(crate) fn new(count: u32, mut state: impl FnMut() -> S) -> Self {
        let flow = |_| Flow { queue: Fifo::new(), deficit: 0, link: UNLISTED, state: state() };
        Self {
            flows: (0..count).map(flow).collect(),
            backlogs: vec![0; count as usize].into_boxed_slice(),
            new: List::EMPTY,
            old: List::EMPTY,
            total: Total::default(),
        }
    }

    /// The flow of a packet with this hash (`reciprocal_scale`). Flows may share a queue by chance.
    #[inline]
    pub(crate) fn index_of(&self, hash: u32) -> u32 {
        ((u64::from(hash) * self.flows.len() as u64) >> 32) as u32
    }

    /// Enqueues a packet of a flow. A flow that was on no list is new, and has a whole quantum.
    #[inline]
    pub(crate) fn push(&mut self, flow: u32, packet: PacketId, quantum: u32, pool: &mut Pool) {
        let Flow { queue, deficit, link, .. } = &mut self.flows[flow as usize];
        queue.push(packet, pool);
        let bytes = pool.header(packet).frame_bytes;
        let backlog = &mut self.backlogs[flow as usize];
        *backlog = backlog.wrapping_add(bytes);
        self.total.backlog.packets += 1;
        self.total.backlog.bytes += u64::from(bytes);
        self.total.memory_bytes += truesize(packet, pool);
        if *link == UNLISTED {
            *deficit = quantum.cast_signed();
            self.new.append(flow, &mut self.flows);
        }
    }

    /// The next flow with a turn, though its queue may be empty. Flows that have used up their deficits get another
    /// quantum and are put at the end of the old flows. `None` if no flow is on a list.
    #[inline]
    pub(crate) fn next(&mut self, quantum: u32) -> Option<u32> {
        loop {
            let list = if self.new.is_empty() { &mut self.old } else { &mut self.new };
            let first = list.first()?;
            let flow = &mut self.flows[first as usize];
            if flow.deficit > 0 {
                return Some(first);
            }
            flow.deficit = flow.deficit.saturating_add_unsigned(quantum);
            list.remove_first(&mut self.flows);
            self.old.append(first, &mut self.flows);
        }
    }

    /// Begins the turn of a flow.
    #[inline]
    pub(crate) fn turn(&mut self, flow: u32) -> Turn<'_, S> {
        let Flow { queue, state, .. } = &mut self.flows[flow as usize];
        let backlog = &mut self.backlogs[flow as usize];
        Turn { state, queue: TurnQueue { queue, backlog, total: &mut self.total } }
    }

    /// The flow that was [next](Self::next) has sent this many bytes.
    #[inline]
    pub(crate) fn spend(&mut self, flow: u32, bytes: u32) {
        let deficit = &mut self.flows[flow as usize].deficit;
        *deficit = deficit.saturating_sub_unsigned(bytes);
    }

    /// The flow that was [next](Self::next) has nothing to send. If it was new, it has to wait for the old flows before
    /// it can be new again.
    #[inline]
    pub(crate) fn retire(&mut self) {
        if let Some(first) = self.new.first() {
            self.new.remove_first(&mut self.flows);
            if !self.old.is_empty() {
                self.old.append(first, &mut self.flows);
            }
        } else {
            self.old.remove_first(&mut self.flows);
        }
    }

    /// The flow with the most bytes in its queue, the first of several. Looks at every flow: once for the most bytes and
    /// once for the flow, because the compiler makes vector instructions of either.
    pub(crate) fn fattest(&self) -> u32 {
        let most = self.backlogs.iter().copied().max().unwrap_or(0);
        self.backlogs.iter().position(|bytes| *bytes == most).unwrap_or(0) as u32
    }

    /// The backlog of all queues.
    #[inline]
    pub(crate) fn backlog(&self) -> Backlog {
        self.total.backlog
    }

    /// Memory that the queued packets would take in Linux.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.total.memory_bytes
    }

    /// Passes every queued packet to `visit`.
    pub(crate) fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.flows.iter().for_each(|flow| flow.queue.iter(pool).for_each(&mut *visit));
    }

    /// Passes every queued packet to `visit`, with the number of its queue, counted from 1.
    pub(crate) fn each_in_flow_queues(&self, pool: &Pool, visit: &mut dyn FnMut(u64, PacketId)) {
        let flows = (1..).zip(&self.flows);
        flows.for_each(|(number, flow)| flow.queue.iter(pool).for_each(|packet| visit(number, packet)));
    }

    /// Number of flows.
    pub(crate) fn len(&self) -> u32 {
        self.flows.len() as u32
    }

    /// The states of the flows, and their queues.
    pub(crate) fn states_mut(&mut self) -> impl Iterator<Item = (&mut S, &Fifo)> {
        self.flows.iter_mut().map(|flow| (&mut flow.state, &flow.queue))
    }
}

impl TurnQueue<'_> {
    /// Takes the oldest packet of the flow.
    #[inline]
    pub(crate) fn pop(&mut self, pool: &Pool) -> Option<PacketId> {
        let packet = self.queue.pop(pool)?;
        let bytes = pool.header(packet).frame_bytes;
        *self.backlog = self.backlog.wrapping_sub(bytes);
        self.total.backlog.packets -= 1;
        self.total.backlog.bytes -= u64::from(bytes);
        self.total.memory_bytes -= truesize(packet, pool);
        Some(packet)
    }

    /// The backlog of the flow's own queue.
    #[inline]
    pub(crate) fn own(&self) -> Backlog {
        self.queue.backlog()
    }

    /// The backlog of all queues.
    #[inline]
    pub(crate) fn total(&self) -> Backlog {
        self.total.backlog
    }
}

impl<S> Listed for Flow<S> {
    #[inline]
    fn link(&mut self) -> &mut u32 {
        &mut self.link
    }
}

impl List {
    pub(crate) const EMPTY: Self = Self { first: LAST, last: LAST };

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.first == LAST
    }

    #[inline]
    pub(crate) fn first(self) -> Option<u32> {
        (self.first != LAST).then_some(self.first)
    }

    #[inline]
    pub(crate) fn append<F: Listed>(&mut self, flow: u32, flows: &mut [F]) {
        *flows[flow as usize].link() = LAST;
        if self.is_empty() {
            self.first = flow;
        } else {
            *flows[self.last as usize].link() = flow;
        }
        self.last = flow;
    }

    /// Takes the first flow off the list, which is not empty.
    #[inline]
    pub(crate) fn remove_first<F: Listed>(&mut self, flows: &mut [F]) {
        self.first = std::mem::replace(flows[self.first as usize].link(), UNLISTED);
    }
}

#[cfg(test)]
mod tests;
