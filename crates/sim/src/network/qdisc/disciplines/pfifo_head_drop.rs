//! `pfifo_head_drop`: first in, first out, bounded in packets. It makes room by dropping the oldest packet.
//!
//! Source: Linux `net/sched/sch_fifo.c`, `pfifo_tail_enqueue`. A packet is always accepted. If `limit` packets are
//! waiting when it arrives, the packet at the head is dropped and counted, and the arriving packet's sender is notified
//! of congestion (`NET_XMIT_CN`), although its own packet is in the queue.

use bufferscope_scenario::{self as scenario, Reason};

use crate::network::pool::{Backlog, Fifo, PacketId, Pool};
use crate::network::qdisc::{Attachment, Dequeued, Discipline, QdiscEvents};
use crate::network::xmit::Xmit;

#[derive(Debug)]
pub(crate) struct PfifoHeadDrop {
    queue: Fifo,
    limit_packets: u32,
}

impl Discipline for PfifoHeadDrop {
    type Parameters = scenario::PfifoHeadDrop;

    fn new(parameters: &scenario::PfifoHeadDrop, _: Attachment) -> Result<Self, String> {
        Ok(Self { queue: Fifo::new(), limit_packets: parameters.limit_packets })
    }

    fn enqueue(&mut self, packet: PacketId, _now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        if self.queue.packets() < self.limit_packets {
            self.queue.push(packet, pool);
            return Xmit::Queued;
        }
        if let Some(oldest) = self.queue.pop(pool) {
            events.drop(oldest, Reason::OVERLIMIT);
        }
        self.queue.push(packet, pool);
        Xmit::Displacing
    }

    fn dequeue(&mut self, _now_ns: u64, pool: &mut Pool, _events: &mut QdiscEvents) -> Dequeued {
        self.queue.pop(pool).into()
    }

    /// `fifo_init`: packets over a lowered limit stay until they are sent.
    fn change(&mut self, to: Self, _pool: &Pool, _events: &mut QdiscEvents) {
        self.limit_packets = to.limit_packets;
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn peek(&self) -> Option<PacketId> {
        self.queue.front()
    }

    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.queue.iter(pool).for_each(visit);
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
