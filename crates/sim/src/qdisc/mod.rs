//! Queueing disciplines: one file each, and one enum over all, so that a packet costs a branch instead of a virtual
//! call.
//!
//! A discipline owns the packets it holds. It reports through [`Fates`] what it did to a packet other than passing it
//! on; the caller does the bookkeeping. Lengths are those of frames: the IP packet and the link's overhead, as Linux
//! counts (`qdisc_pkt_len`).

mod bfifo;
mod codel;
mod pfifo;
mod red;

use bufferscope_records::DropReason;
use bufferscope_scenario as scenario;

use crate::pool::{Fifo, PacketId, Pool};
use crate::random::{Random, Stream};
use crate::tcp::Xmit;

/// What a discipline did to packets since the last call, in order. The buffer is reused from call to call.
#[derive(Debug, Default)]
pub(crate) struct Fates(pub(crate) Vec<Fate>);

/// What a discipline did to one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Returned to the caller, who frees it.
    Dropped(PacketId, DropReason),
    /// Marked with Congestion Experienced, and still queued or passed on.
    Marked(PacketId, DropReason),
}

/// The discipline of a port.
#[derive(Debug)]
pub(crate) enum Qdisc {
    Pfifo(pfifo::Pfifo),
    Bfifo(bfifo::Bfifo),
    Red(Box<red::Red>),
    Codel(codel::Codel),
}

/// Forwards to the actual discipline.
macro_rules! each {
    ($self:expr, $qdisc:ident => $call:expr) => {
        match $self {
            Qdisc::Pfifo($qdisc) => $call,
            Qdisc::Bfifo($qdisc) => $call,
            Qdisc::Red($qdisc) => $call,
            Qdisc::Codel($qdisc) => $call,
        }
    };
}

impl Qdisc {
    /// The discipline of port number `port`, whose link adds `overhead_bytes` to each packet. The error says why Linux
    /// would refuse the parameters.
    pub(crate) fn new(parameters: &scenario::Qdisc, overhead_bytes: u32, seed: u64, port: u32) -> Result<Self, String> {
        Ok(match parameters {
            scenario::Qdisc::Pfifo(p) => Self::Pfifo(pfifo::Pfifo::new(p)),
            scenario::Qdisc::Bfifo(p) => Self::Bfifo(bfifo::Bfifo::new(p)),
            scenario::Qdisc::Red(p) => Self::Red(Box::new(red::Red::new(p, Random::new(seed, Stream::Qdisc(port)))?)),
            scenario::Qdisc::Codel(p) => Self::Codel(codel::Codel::new(p, overhead_bytes)),
        })
    }

    /// Accepts a packet, or refuses it.
    #[inline]
    pub(crate) fn enqueue(&mut self, packet: PacketId, now_ns: u64, pool: &mut Pool, fates: &mut Fates) {
        pool.header_mut(packet).at_ns = now_ns;
        each!(self, q => q.enqueue(packet, now_ns, pool, fates))
    }

    /// The next packet for the wire.
    #[inline]
    pub(crate) fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, fates: &mut Fates) -> Option<PacketId> {
        match self {
            Self::Pfifo(q) => q.dequeue(pool),
            Self::Bfifo(q) => q.dequeue(pool),
            Self::Red(q) => q.dequeue(pool),
            Self::Codel(q) => q.dequeue(now_ns, pool, fates),
        }
    }

    /// Reports that the wire found nothing to send at that time and that nothing was enqueued since.
    #[inline]
    pub(crate) fn idle_since(&mut self, at_ns: u64) {
        match self {
            Self::Pfifo(_) | Self::Bfifo(_) => {}
            Self::Red(q) => q.idle_since(at_ns),
            Self::Codel(q) => q.idle(),
        }
    }

    /// What waits.
    #[inline]
    pub(crate) fn queue(&self) -> &Fifo {
        each!(self, q => q.queue())
    }

    /// What `tc` would warn of when configuring the discipline.
    pub(crate) fn warning(&self) -> Option<String> {
        match self {
            Self::Red(q) => q.warning(),
            Self::Pfifo(_) | Self::Bfifo(_) | Self::Codel(_) => None,
        }
    }
}

impl Fates {
    /// What the sending host is told about a packet that was put into the queue of its own port (in Linux, what a
    /// discipline's `enqueue` returns; drops by `dequeue` are not reported).
    #[inline]
    pub(crate) fn xmit(&self, packet: PacketId) -> Xmit {
        let reason = self.0.iter().find_map(|fate| match *fate {
            Fate::Dropped(dropped, reason) if dropped == packet => Some(reason),
            _ => None,
        });
        match reason {
            None => Xmit::Queued,
            Some(DropReason::Overlimit) => Xmit::Dropped,
            Some(DropReason::RedEarly | DropReason::RedForced | DropReason::Red) => Xmit::Congested,
            Some(DropReason::Codel | DropReason::RedMark | DropReason::CodelMark) => Xmit::Left,
        }
    }

    fn drop(&mut self, packet: PacketId, reason: DropReason) {
        self.0.push(Fate::Dropped(packet, reason));
    }

    /// Marks the packet if its transport supports ECN; returns whether it does.
    fn mark(&mut self, packet: PacketId, reason: DropReason, pool: &mut Pool) -> bool {
        let class = &mut pool.header_mut(packet).class;
        let capable = class.ecn().is_capable();
        if capable {
            class.mark();
            self.0.push(Fate::Marked(packet, reason));
        }
        capable
    }
}

#[cfg(test)]
mod testing;
