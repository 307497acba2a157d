//! `skbprio`: one queue in order of priority.
//!
//! Source: Linux `net/sched/sch_skbprio.c`. The packet of the highest priority leaves first; those of the same priority
//! leave in the order of their arrival. If the queue is full, an arriving packet replaces the newest of the lowest
//! priority in the queue, and its sender is notified of congestion (`NET_XMIT_CN`). If its own priority is not higher than that,
//! the arriving packet is dropped. A packet's priority follows from its code point, as for `pfifo_fast`.

use bufferscope_scenario::{self as scenario, Reason};

use crate::network::pool::{Backlog, Fifo, PacketId, Pool};
use crate::network::qdisc::{Attachment, Dequeued, Discipline, QdiscEvents};
use crate::network::xmit::Xmit;

/// The priorities that follow from a code point are less than this; the kernel has 64.
const PRIORITIES: usize = 8;

#[derive(Debug)]
pub(crate) struct Skbprio {
    /// By priority, the lowest first.
    queues: [Fifo; PRIORITIES],
    limit_packets: u32,
}

impl Discipline for Skbprio {
    type Parameters = scenario::Skbprio;

    fn new(parameters: &scenario::Skbprio, _: Attachment) -> Result<Self, String> {
        Ok(Self { queues: std::array::from_fn(|_| Fifo::new()), limit_packets: parameters.limit_packets })
    }

    fn enqueue(&mut self, packet: PacketId, _now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        let priority = usize::from(pool.header(packet).class.priority());
        if self.backlog().packets < self.limit_packets.into() {
            self.queues[priority].push(packet, pool);
            return Xmit::Queued;
        }
        let below = self.queues[..priority].iter_mut().find(|queue| queue.packets() > 0);
        let Some(newest) = below.and_then(|queue| queue.pop_back(pool)) else {
            events.drop(packet, Reason::OVERLIMIT);
            return Xmit::Dropped;
        };
        events.drop(newest, Reason::OVERLIMIT);
        self.queues[priority].push(packet, pool);
        Xmit::Displacing
    }

    fn dequeue(&mut self, _now_ns: u64, pool: &mut Pool, _events: &mut QdiscEvents) -> Dequeued {
        self.queues.iter_mut().rev().find_map(|queue| queue.pop(pool)).into()
    }

    /// `skbprio_change`: packets over a lowered limit stay until they are sent.
    fn change(&mut self, to: Self, _pool: &Pool, _events: &mut QdiscEvents) {
        self.limit_packets = to.limit_packets;
    }

    fn backlog(&self) -> Backlog {
        self.queues.iter().map(Fifo::backlog).sum()
    }

    fn peek(&self) -> Option<PacketId> {
        self.queues.iter().rev().find_map(Fifo::front)
    }

    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.queues.iter().flat_map(|queue| queue.iter(pool)).for_each(visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::qdisc::testing::{Bench, FRAME};
    use crate::network::traffic_class::{Ecn, TrafficClass};

    fn skbprio(limit_packets: u32) -> scenario::Qdisc {
        scenario::Qdisc::Skbprio(scenario::Skbprio { limit_packets })
    }

    /// Code points whose priorities are 0 (best effort), 2 (bulk) and 6 (interactive).
    fn class(priority: u8) -> TrafficClass {
        let dscp = [(0, 0), (2, 10), (6, 4)].into_iter().find(|(each, _)| *each == priority).unwrap().1;
        assert_eq!(TrafficClass::new(dscp, Ecn::NotEct).priority(), priority);
        TrafficClass::new(dscp, Ecn::NotEct)
    }

    fn numbers(bench: &mut Bench) -> Vec<u64> {
        std::iter::from_fn(|| bench.dequeue(9).0).map(|(number, _)| number).collect()
    }

    #[test]
    fn the_highest_priority_leaves_first_and_equal_ones_in_their_order() {
        let mut bench = Bench::new(&skbprio(10));
        for priority in [0, 6, 2, 0, 6] {
            assert_eq!(bench.arrive(0, FRAME, class(priority)), (Xmit::Queued, vec![]));
        }
        assert_eq!(bench.backlog(), (5, 5 * u64::from(FRAME)));
        assert_eq!(numbers(&mut bench), [1, 4, 2, 0, 3]);
    }

    /// The queue holds 2, 0, 0 (numbers 0 to 2) when it is full.
    #[test]
    fn a_full_queue_drops_the_newest_packet_of_the_lowest_priority() {
        let mut bench = Bench::new(&skbprio(3));
        for priority in [2, 0, 0] {
            bench.arrive(0, FRAME, class(priority));
        }
        assert_eq!(bench.arrive(1, FRAME, class(0)), (Xmit::Dropped, vec![(3, Reason::OVERLIMIT)]));
        assert_eq!(bench.arrive(2, FRAME, class(6)), (Xmit::Displacing, vec![(2, Reason::OVERLIMIT)]));
        assert_eq!(bench.arrive(3, FRAME, class(6)), (Xmit::Displacing, vec![(1, Reason::OVERLIMIT)]));
        assert_eq!(
            bench.arrive(4, FRAME, class(2)),
            (Xmit::Dropped, vec![(6, Reason::OVERLIMIT)]),
            "not above the lowest"
        );
        assert_eq!(numbers(&mut bench), [4, 5, 0]);
    }

    #[test]
    fn packets_over_a_lowered_limit_stay() {
        let mut bench = Bench::new(&skbprio(3));
        (0..3).for_each(|_| assert_eq!(bench.arrive(0, FRAME, class(0)).0, Xmit::Queued));
        assert_eq!(bench.change(&skbprio(1)), vec![]);
        assert_eq!(bench.arrive(1, FRAME, class(6)), (Xmit::Displacing, vec![(2, Reason::OVERLIMIT)]));
        assert_eq!(bench.backlog().0, 3);
    }
}
