//! Queueing disciplines. Each is in a file of its own. One enum combines them, so that a packet costs a branch instead
//! of a virtual call.
//!
//! A discipline owns the packets it holds. It reports the packets that it drops or marks through [`Fates`], and the
//! caller does the bookkeeping. Lengths are those of frames, the IP packet and the link's overhead, as in Linux
//! (`qdisc_pkt_len`).

use bufferscope_scenario::{self as scenario, Reason};

use super::pool::{Fifo, PacketId, Pool};
use super::xmit::Xmit;

/// The packets that a discipline dropped or marked since the last call, in order. The buffer is reused between calls.
#[derive(Debug, Default)]
pub(crate) struct Fates(pub(crate) Vec<Fate>);

/// What a discipline did to one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Dropped, and returned to the caller, which frees it.
    Dropped(PacketId, Reason),
    /// Marked with Congestion Experienced; the packet stays in the queue or is passed on.
    Marked(PacketId, Reason),
}

/// The place of a discipline in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Number of the port.
    pub(crate) port: u32,
    /// What the port's link adds to each packet.
    pub(crate) overhead_bytes: u32,
    /// The seed of the run.
    pub(crate) seed: u64,
}

/// A queueing discipline of a port.
trait Discipline: Sized {
    /// Its parameters.
    type Parameters;

    /// Creates the discipline. The error says why Linux would reject the parameters.
    fn new(parameters: &Self::Parameters, place: Place) -> Result<Self, String>;

    /// Accepts or drops a packet. Returns what the kernel's `enqueue` would return to the sender.
    fn enqueue(&mut self, packet: PacketId, now_ns: u64, pool: &mut Pool, fates: &mut Fates) -> Xmit;

    /// Takes the next packet for the wire out of the queue.
    fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, fates: &mut Fates) -> Option<PacketId>;

    /// The waiting packets, in one queue or several.
    fn bands(&self) -> &[Fifo];

    /// Takes over the parameters of `to`, which is empty, as the kernel's `change` does. Where the kernel keeps the
    /// waiting packets, they stay.
    fn change(&mut self, to: Self, pool: &Pool, fates: &mut Fates);

    /// The wire has found nothing to send since that time, and nothing has been enqueued since then.
    fn idle_since(&mut self, _at_ns: u64) {}

    /// The warning that `tc` would give when it configures the discipline.
    fn warning(&self) -> Option<String> {
        None
    }
}

/// Declares the listed modules and an enum over their disciplines, which has the methods of [`Discipline`].
macro_rules! disciplines {
    ($($file:ident::$name:ident,)+) => {
        $(mod $file;)+

        /// The discipline of a port.
        #[derive(Debug)]
        pub(crate) enum Qdisc {
            $($name($file::$name),)+
        }

        impl Qdisc {
            pub(crate) fn new(parameters: &scenario::Qdisc, place: Place) -> Result<Self, String> {
                match parameters {
                    $(scenario::Qdisc::$name(parameters) => $file::$name::new(parameters, place).map(Self::$name),)+
                }
            }

            #[inline]
            pub(crate) fn enqueue(
                &mut self,
                packet: PacketId,
                now_ns: u64,
                pool: &mut Pool,
                fates: &mut Fates,
            ) -> Xmit {
                pool.header_mut(packet).at_ns = now_ns;
                match self {
                    $(Self::$name(q) => q.enqueue(packet, now_ns, pool, fates),)+
                }
            }

            #[inline]
            pub(crate) fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, fates: &mut Fates) -> Option<PacketId> {
                match self {
                    $(Self::$name(q) => q.dequeue(now_ns, pool, fates),)+
                }
            }

            /// Is no packet waiting?
            #[inline]
            pub(crate) fn is_empty(&self) -> bool {
                match self {
                    $(Self::$name(q) => q.bands().iter().all(Fifo::is_empty),)+
                }
            }

            pub(crate) fn bands(&self) -> &[Fifo] {
                match self {
                    $(Self::$name(q) => q.bands(),)+
                }
            }

            /// Does what `tc qdisc replace` does: a discipline of the same kind takes over the parameters of `to`;
            /// otherwise `to` takes its place, and the waiting packets are dropped.
            pub(crate) fn change(&mut self, to: Self, pool: &Pool, fates: &mut Fates) {
                match (&mut *self, to) {
                    $((Self::$name(q), Self::$name(to)) => q.change(to, pool, fates),)+
                    (_, to) => {
                        self.bands().iter().for_each(|band| fates.purge(band, pool));
                        *self = to;
                    }
                }
            }

            #[inline]
            pub(crate) fn idle_since(&mut self, at_ns: u64) {
                match self {
                    $(Self::$name(q) => q.idle_since(at_ns),)+
                }
            }

            pub(crate) fn warning(&self) -> Option<String> {
                match self {
                    $(Self::$name(q) => q.warning(),)+
                }
            }
        }
    };
}

disciplines! {
    pfifo::Pfifo,
    pfifo_head_drop::PfifoHeadDrop,
    pfifo_fast::PfifoFast,
    bfifo::Bfifo,
    red::Red,
    codel::Codel,
}

impl Qdisc {
    /// Packets and bytes that wait.
    pub(crate) fn backlog(&self) -> (u64, u64) {
        let sum = |(packets, bytes), band: &Fifo| (packets + u64::from(band.packets()), bytes + band.bytes());
        self.bands().iter().fold((0, 0), sum)
    }
}

/// Queues an arriving packet if it fits, and drops it otherwise.
#[inline]
fn tail_drop(fits: bool, packet: PacketId, queue: &mut Fifo, pool: &mut Pool, fates: &mut Fates) -> Xmit {
    if fits {
        queue.push(packet, pool);
        Xmit::Queued
    } else {
        fates.drop(packet, Reason::OVERLIMIT);
        Xmit::Dropped
    }
}

impl Fates {
    fn drop(&mut self, packet: PacketId, reason: Reason) {
        self.0.push(Fate::Dropped(packet, reason));
    }

    /// Drops every packet of a queue that is given up.
    fn purge(&mut self, queue: &Fifo, pool: &Pool) {
        queue.iter(pool).for_each(|packet| self.drop(packet, Reason::PURGED));
    }

    /// Marks the packet if its transport supports ECN; returns whether it does.
    fn mark(&mut self, packet: PacketId, reason: Reason, pool: &mut Pool) -> bool {
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
