//! `pfifo_head_drop`: first in, first out, bounded in packets. It makes room by dropping the oldest packet.
//!
//! Source: Linux `net/sched/sch_fifo.c`, `pfifo_tail_enqueue`. A packet is always accepted. If `limit` packets are
//! waiting when it arrives, the packet at the head is dropped and counted, and the arriving packet's sender is notified
//! of congestion (`NET_XMIT_CN`), although its own packet is in the queue.

use bufferscope_scenario::{self as scenario, Reason};

use crate::network::pool::{Fifo, PacketId, Pool};
use crate::network::qdisc::QdiscEvents;
use crate::network::qdisc::shared::limited_fifo::{LimitedFifo, Policy};
use crate::network::xmit::Xmit;

pub(crate) type PfifoHeadDrop = LimitedFifo<Limit>;

#[derive(Debug)]
pub(crate) struct Limit {
    packets: u32,
}

impl Policy for Limit {
    type Parameters = scenario::PfifoHeadDrop;

    fn new(parameters: &scenario::PfifoHeadDrop) -> Self {
        Self { packets: parameters.limit_packets }
    }

    #[inline]
    fn fits(&self, _packet: PacketId, queue: &Fifo, _pool: &Pool) -> bool {
        queue.packets() < self.packets
    }

    #[inline]
    fn overflow(packet: PacketId, queue: &mut Fifo, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        if let Some(oldest) = queue.pop(pool) {
            events.drop(oldest, Reason::OVERLIMIT);
        }
        queue.push(packet, pool);
        Xmit::Displacing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::qdisc::testing::{Bench, FRAME};
    use crate::network::traffic_class::{Ecn, TrafficClass};

    const NOT_ECT: Ecn = Ecn::NotEct;

    /// Below the limit, `pfifo_tail_enqueue` returns the result of `qdisc_enqueue_tail`, `NET_XMIT_SUCCESS`. At the
    /// limit it returns `NET_XMIT_CN`.
    #[test]
    fn a_full_queue_drops_its_oldest_packet_and_notifies_the_sender_of_the_newest() {
        let mut bench = Bench::new(&scenario::Qdisc::PfifoHeadDrop(scenario::PfifoHeadDrop { limit_packets: 2 }));
        let class = TrafficClass::new(0, NOT_ECT);
        assert_eq!(bench.arrive(0, FRAME, class), (Xmit::Queued, vec![]));
        assert_eq!(bench.arrive(1, 64, class), (Xmit::Queued, vec![]));
        assert_eq!(bench.arrive(2, 100, class), (Xmit::Displacing, vec![(0, Reason::OVERLIMIT)]));
        // The backlog is that of the two remaining packets (`qdisc_tree_reduce_backlog`).
        assert_eq!(bench.backlog(), (2, 164));
        assert_eq!(bench.arrive(3, 64, class), (Xmit::Displacing, vec![(1, Reason::OVERLIMIT)]));
        assert_eq!(bench.dequeue(4), (Some((2, NOT_ECT)), vec![]));
        assert_eq!(bench.arrive(5, 64, class), (Xmit::Queued, vec![]), "there is room again");
        assert_eq!([6, 7, 8].map(|at_ns| bench.dequeue(at_ns).0), [Some((3, NOT_ECT)), Some((4, NOT_ECT)), None]);
    }

    #[test]
    fn a_queue_of_one_holds_the_newest_packet() {
        let mut bench = Bench::new(&scenario::Qdisc::PfifoHeadDrop(scenario::PfifoHeadDrop { limit_packets: 1 }));
        let class = TrafficClass::new(0, Ecn::Ect0);
        for number in 0..5_u64 {
            let displaced = number.checked_sub(1).map(|oldest| (oldest, Reason::OVERLIMIT));
            assert_eq!(bench.arrive(number, FRAME, class).1, Vec::from_iter(displaced), "dropped, never marked");
        }
        assert_eq!(bench.dequeue(9).0, Some((4, Ecn::Ect0)));
    }

    #[test]
    fn over_a_lowered_limit_each_arriving_packet_displaces_one() {
        let queue = |limit_packets| scenario::Qdisc::PfifoHeadDrop(scenario::PfifoHeadDrop { limit_packets });
        let mut bench = Bench::new(&queue(3));
        let class = TrafficClass::new(0, NOT_ECT);
        (0..3).for_each(|_| assert_eq!(bench.arrive(0, FRAME, class), (Xmit::Queued, vec![])));
        assert_eq!(bench.change(&queue(1)), vec![]);
        assert_eq!(bench.arrive(1, FRAME, class), (Xmit::Displacing, vec![(0, Reason::OVERLIMIT)]));
        assert_eq!(bench.backlog().0, 3);
    }
}
