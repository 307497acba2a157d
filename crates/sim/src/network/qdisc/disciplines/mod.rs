//! The disciplines, one in each file, and the enum over them.

use bufferscope_scenario::{self as scenario, Reason};

pub(in crate::network) use self::netem::Settings as NetemSettings;
use super::{Attachment, Dequeued, Discipline, QdiscEvents};
use crate::network::pool::{Backlog, PacketId, Pool};
use crate::network::xmit::Xmit;

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
            pub(crate) fn new(parameters: &scenario::Qdisc, attachment: Attachment) -> Result<Self, String> {
                match parameters {
                    $(scenario::Qdisc::$name(parameters) => $file::$name::new(parameters, attachment).map(Self::$name),)+
                }
            }

            #[inline]
            pub(crate) fn enqueue(
                &mut self,
                packet: PacketId,
                now_ns: u64,
                pool: &mut Pool,
                events: &mut QdiscEvents,
            ) -> Xmit {
                pool.header_mut(packet).at_ns = now_ns;
                match self {
                    $(Self::$name(q) => q.enqueue(packet, now_ns, pool, events),)+
                }
            }

            /// Whether a discipline with these parameters has a timer, or ever answers [`Dequeued::NotBefore`].
            pub(crate) fn keeps_time(parameters: &scenario::Qdisc) -> bool {
                match parameters {
                    $(scenario::Qdisc::$name(parameters) => $file::$name::keeps_time(parameters),)+
                }
            }

            #[inline]
            pub(crate) fn can_bypass(&self, packet: PacketId, pool: &Pool) -> bool {
                match self {
                    $(Self::$name(q) => q.can_bypass(packet, pool),)+
                }
            }

            #[inline]
            pub(crate) fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Dequeued {
                match self {
                    $(Self::$name(q) => q.dequeue(now_ns, pool, events),)+
                }
            }

            /// The packet that leaves next, if it can be determined without dequeuing it.
            pub(in crate::network::qdisc) fn peek(&self) -> Option<PacketId> {
                match self {
                    $(Self::$name(q) => q.peek(),)+
                }
            }

            /// Whether the queue is empty.
            #[inline]
            pub(crate) fn is_empty(&self) -> bool {
                self.backlog().packets == 0
            }

            #[inline]
            pub(crate) fn backlog(&self) -> Backlog {
                match self {
                    $(Self::$name(q) => q.backlog(),)+
                }
            }

            /// Passes every queued packet to `visit`.
            pub(crate) fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
                match self {
                    $(Self::$name(q) => q.each_packet(pool, visit),)+
                }
            }

            /// Passes every packet in a flow queue to `visit`, with a number for the queue.
            pub(crate) fn each_in_flow_queues(&self, pool: &Pool, visit: &mut dyn FnMut(u64, PacketId)) {
                match self {
                    $(Self::$name(q) => q.each_in_flow_queues(pool, visit),)+
                }
            }

            /// Does what `tc qdisc replace` does: a discipline of the same kind takes over the parameters of `to`;
            /// otherwise `to` replaces it, and the queued packets are dropped.
            pub(crate) fn change(&mut self, to: Self, pool: &Pool, events: &mut QdiscEvents) {
                match (&mut *self, to) {
                    $((Self::$name(q), Self::$name(to)) => q.change(to, pool, events),)+
                    (_, to) => {
                        self.each_packet(pool, &mut |packet| events.drop(packet, Reason::PURGED));
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

            pub(in crate::network::qdisc) fn peeked_empty_since(&mut self, at_ns: u64) {
                match self {
                    $(Self::$name(q) => q.peeked_empty_since(at_ns),)+
                }
            }

            pub(crate) fn timer(&self) -> Option<u64> {
                match self {
                    $(Self::$name(q) => q.timer(),)+
                }
            }

            pub(crate) fn on_timer(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) {
                match self {
                    $(Self::$name(q) => q.on_timer(now_ns, pool, events),)+
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
    bfifo::Bfifo,
    pfifo_head_drop::PfifoHeadDrop,
    pfifo_fast::PfifoFast,
    red::Red,
    choke::Choke,
    sfq::Sfq,
    codel::Codel,
    fq_codel::FqCodel,
    pie::Pie,
    fq_pie::FqPie,
    dualpi2::Dualpi2,
    cake::Cake,
    fq::Fq,
    tbf::Tbf,
    htb::Htb,
    prio::Prio,
    netem::Netem,
}
