//! Queueing disciplines. Each is in a file of its own in [`disciplines`], and the parts that several of them have in
//! common are in [`shared`]. One enum combines them, so that a packet costs a branch instead of a virtual call.
//!
//! A discipline owns the packets it holds, and may hold other disciplines with packets of theirs. It reports the
//! packets that it drops, marks or splits off through [`QdiscEvents`], and the caller does the bookkeeping. Lengths are
//! those of frames, the IP packet and the link's overhead, as in Linux (`qdisc_pkt_len`).

use bufferscope_programs::scramble;
use bufferscope_scenario::{Encapsulation, NodeIndex, Reason};

use super::pool::{Backlog, Fifo, PacketId, Pool};
use super::xmit::Xmit;

mod disciplines;
pub(crate) mod layer;
mod shared;
pub(crate) mod stacked;
#[cfg(test)]
pub(in crate::network) mod testing;
#[cfg(test)]
mod tests;

pub(in crate::network) use self::disciplines::NetemSettings;
pub(crate) use self::disciplines::Qdisc;

/// The events in a discipline since the last call, in order: drops, marks, splits and copies. The buffer is reused
/// between calls.
#[derive(Debug, Default)]
pub(crate) struct QdiscEvents(pub(crate) Vec<QdiscEvent>);

/// An event of one packet in a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QdiscEvent {
    /// Dropped, and returned to the caller, which frees it.
    Dropped(PacketId, Reason),
    /// Marked with Congestion Experienced; the packet stays in the queue or is passed on.
    Marked(PacketId, Reason),
    /// Split off from another packet, which arrived before. It is counted separately from now on.
    Split(PacketId),
    /// A copy of another packet, which arrived before. It is counted separately.
    Copied(PacketId),
}

/// The result of a dequeue: a packet, in the form in which the layer passes it on, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dequeued<P = PacketId> {
    Packet(P),
    /// Nothing until another packet arrives.
    Nothing,
    /// Nothing before this time, which lies in the future, unless another packet arrives.
    NotBefore(u64),
}

impl<P> Dequeued<P> {
    /// The same for the packet in another form.
    #[inline]
    pub(crate) fn map<Q>(self, form: impl FnOnce(P) -> Q) -> Dequeued<Q> {
        match self {
            Self::Packet(packet) => Dequeued::Packet(form(packet)),
            Self::Nothing => Dequeued::Nothing,
            Self::NotBefore(at_ns) => Dequeued::NotBefore(at_ns),
        }
    }
}

impl Dequeued {
    /// Combines the answers of two disciplines of which neither has a packet now.
    fn or_before(self, other: Self) -> Self {
        match (self, other) {
            (Self::NotBefore(a), Self::NotBefore(b)) => Self::NotBefore(a.min(b)),
            (Self::Nothing, answer) | (answer, _) => answer,
        }
    }
}

impl From<Option<PacketId>> for Dequeued {
    #[inline]
    fn from(packet: Option<PacketId>) -> Self {
        packet.map_or(Self::Nothing, Self::Packet)
    }
}

/// Where and when a discipline is attached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attachment {
    /// Number of the port.
    pub(crate) port: u32,
    /// The sending node.
    pub(crate) node: NodeIndex,
    /// The overhead of the port's link layer.
    pub(crate) encapsulation: Encapsulation,
    /// The seed of the run.
    pub(crate) seed: u64,
    /// When the discipline is attached to the port.
    pub(crate) now_ns: u64,
}

impl Attachment {
    /// The attachment of the discipline of an interface stacked on the port's, with random numbers of its own.
    pub(crate) fn on_top(self) -> Self {
        self.inner(u16::MAX)
    }

    /// The attachment of the inner discipline of that number, with random numbers of its own.
    fn inner(self, number: u16) -> Self {
        Self { seed: scramble(self.seed ^ (1 + u64::from(number))), ..self }
    }
}

/// The number of a flow queue of the inner discipline of that index.
fn inside(index: usize, queue: u64) -> u64 {
    /// More than any discipline contains.
    const CHILDREN: u64 = 1 << 16;
    let outer = (queue >> 16) * CHILDREN + index as u64 + 1;
    outer << 16 | queue & 0xffff
}

/// A queueing discipline of a port.
trait Discipline: Sized {
    /// Its parameters.
    type Parameters;

    /// Whether it has a timer or ever answers [`Dequeued::NotBefore`]. Only then are there events for it.
    const KEEPS_TIME: bool = false;

    /// The same for a discipline for which it depends on the parameters.
    fn keeps_time(_parameters: &Self::Parameters) -> bool {
        Self::KEEPS_TIME
    }

    /// Creates the discipline. The error says why Linux would reject the parameters.
    fn new(parameters: &Self::Parameters, attachment: Attachment) -> Result<Self, String>;

    /// Accepts or drops a packet. Returns what the kernel's `enqueue` would return to the sender.
    fn enqueue(&mut self, packet: PacketId, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit;

    /// Whether the discipline is empty and would pass this packet on at once, without any other effect. The layer below
    /// can take such a packet directly (the kernel's `TCQ_F_CAN_BYPASS`).
    fn can_bypass(&self, _packet: PacketId, _pool: &Pool) -> bool {
        false
    }

    /// Takes the next packet for the layer below out of the queue.
    fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Dequeued;

    /// The packet that leaves next, if it can be determined without dequeuing it. The kernel's disciplines that peek
    /// with `qdisc_peek_dequeued` cannot.
    fn peek(&self) -> Option<PacketId> {
        None
    }

    /// Backlog, including inner disciplines. Called for every packet that a link sends and for every sample, so it must
    /// not add up queues if there may be many of them.
    fn backlog(&self) -> Backlog;

    /// Passes every queued packet to `visit`, including those of inner disciplines.
    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId));

    /// Passes every packet in a flow queue to `visit`, with a number for the queue. Flow queues have that of their class
    /// in `tc -s class`, which begins with 1, and those of inner disciplines one of [`inside`].
    fn each_in_flow_queues(&self, _pool: &Pool, _visit: &mut dyn FnMut(u64, PacketId)) {}

    /// Takes over the parameters of `to`, which is empty, as the kernel's `change` does. The queued packets stay if the
    /// kernel keeps them.
    fn change(&mut self, to: Self, pool: &Pool, events: &mut QdiscEvents);

    /// Reports that the layer below has found nothing to take since that time, and that nothing has been enqueued since
    /// then. (It finds nothing, too, while a discipline answers [`Dequeued::NotBefore`].)
    fn idle_since(&mut self, _at_ns: u64) {}

    /// The same, but the discipline around this one has only looked for a first packet (the kernel's `peek`), and not
    /// tried to take one. A discipline that peeks by dequeuing (`qdisc_peek_dequeued`) notices no difference.
    fn peeked_empty_since(&mut self, at_ns: u64) {
        self.idle_since(at_ns);
    }

    /// When its timer is due, if it has one.
    fn timer(&self) -> Option<u64> {
        None
    }

    /// The timer is due.
    fn on_timer(&mut self, _now_ns: u64, _pool: &mut Pool, _events: &mut QdiscEvents) {}

    /// The warning that `tc` would give when it configures the discipline, or about a parameter without effect here.
    fn warning(&self) -> Option<String> {
        None
    }
}

impl QdiscEvents {
    /// Whether this packet was dropped.
    #[inline]
    pub(crate) fn has_dropped(&self, packet: PacketId) -> bool {
        self.0.iter().any(|event| matches!(event, QdiscEvent::Dropped(dropped, _) if *dropped == packet))
    }

    fn drop(&mut self, packet: PacketId, reason: Reason) {
        self.0.push(QdiscEvent::Dropped(packet, reason));
    }

    fn split(&mut self, packet: PacketId) {
        self.0.push(QdiscEvent::Split(packet));
    }

    /// Adds a copy of a packet.
    fn copy(&mut self, packet: PacketId, pool: &mut Pool) -> PacketId {
        let copy = pool.copy(packet);
        self.0.push(QdiscEvent::Copied(copy));
        copy
    }

    /// Drops every packet of a queue that is removed.
    fn purge(&mut self, queue: &Fifo, pool: &Pool) {
        queue.iter(pool).for_each(|packet| self.drop(packet, Reason::PURGED));
    }

    /// Marks the packet if its transport supports ECN; returns whether it does.
    fn mark(&mut self, packet: PacketId, reason: Reason, pool: &mut Pool) -> bool {
        let class = &mut pool.header_mut(packet).class;
        let capable = class.ecn().is_capable();
        if capable {
            class.mark();
            self.0.push(QdiscEvent::Marked(packet, reason));
        }
        capable
    }
}
