//! `pfifo`: first in, first out, bounded in packets. This is the textbook queue, and that of bufferbloat.
//!
//! Source: Linux `net/sched/sch_fifo.c`, `pfifo`. An arriving packet is dropped if `limit` packets are queued. The
//! packet on the wire has left the queue and does not count.

use bufferscope_scenario as scenario;

use crate::network::pool::{Fifo, PacketId, Pool};
use crate::network::qdisc::shared::limited_fifo::{LimitedFifo, Policy};

pub(crate) type Pfifo = LimitedFifo<Limit>;

#[derive(Debug)]
pub(crate) struct Limit {
    packets: u32,
}

impl Policy for Limit {
    type Parameters = scenario::Pfifo;

    fn new(parameters: &scenario::Pfifo) -> Self {
        Self { packets: parameters.limit_packets }
    }

    #[inline]
    fn fits(&self, _packet: PacketId, queue: &Fifo, _pool: &Pool) -> bool {
        queue.packets() < self.packets
    }
}

#[cfg(test)]
mod tests {
    use bufferscope_scenario::Reason;

    use super::*;
    use crate::network::qdisc::testing::{Bench, FRAME};
    use crate::network::traffic_class::{Ecn, TrafficClass};
    use crate::network::xmit::Xmit;

    #[test]
    fn a_full_pfifo_drops_the_arriving_packet() {
        let mut bench = Bench::new(&scenario::Qdisc::Pfifo(scenario::Pfifo { limit_packets: 2 }));
        assert_eq!(bench.enqueue(0, FRAME, Ecn::NotEct), None);
        assert_eq!(bench.enqueue(1, 64, Ecn::NotEct), None);
        assert_eq!(bench.enqueue(2, 64, Ecn::NotEct), Some(Reason::OVERLIMIT));
        assert_eq!(bench.backlog(), (2, u64::from(FRAME) + 64));
        assert_eq!(bench.dequeue(3), (Some((0, Ecn::NotEct)), vec![]));
        assert_eq!(bench.enqueue(4, 64, Ecn::NotEct), None, "there is room again");
        assert_eq!(bench.dequeue(5).0, Some((1, Ecn::NotEct)));
        assert_eq!(bench.dequeue(6).0, Some((3, Ecn::NotEct)), "number 2 was the one dropped");
        assert_eq!(bench.dequeue(7), (None, vec![]));
    }

    #[test]
    fn the_sender_is_notified_that_there_was_no_room() {
        let mut bench = Bench::new(&scenario::Qdisc::Pfifo(scenario::Pfifo { limit_packets: 1 }));
        let class = TrafficClass::new(0, Ecn::NotEct);
        assert_eq!(bench.arrive(0, FRAME, class), (Xmit::Queued, vec![]));
        assert_eq!(bench.arrive(0, FRAME, class), (Xmit::Dropped, vec![(1, Reason::OVERLIMIT)]));
    }

    #[test]
    fn pfifo_drops_ecn_capable_packets_too() {
        let mut bench = Bench::new(&scenario::Qdisc::Pfifo(scenario::Pfifo { limit_packets: 1 }));
        bench.enqueue(0, FRAME, Ecn::Ect0);
        assert_eq!(bench.enqueue(0, FRAME, Ecn::Ect0), Some(Reason::OVERLIMIT));
        assert_eq!(bench.dequeue(1).0, Some((0, Ecn::Ect0)));
    }

    #[test]
    fn packets_over_a_lowered_limit_stay_and_no_other_is_accepted_meanwhile() {
        let pfifo = |limit_packets| scenario::Qdisc::Pfifo(scenario::Pfifo { limit_packets });
        let mut bench = Bench::new(&pfifo(3));
        (0..3).for_each(|_| assert_eq!(bench.enqueue(0, FRAME, Ecn::NotEct), None));
        assert_eq!(bench.change(&pfifo(1)), vec![]);
        assert_eq!(bench.backlog().0, 3);
        for left in [2, 1, 0] {
            assert_eq!(bench.enqueue(1, FRAME, Ecn::NotEct), Some(Reason::OVERLIMIT));
            bench.dequeue(2);
            assert_eq!(bench.backlog().0, left);
        }
        assert_eq!(bench.enqueue(3, FRAME, Ecn::NotEct), None);
        assert_eq!(bench.change(&pfifo(2)), vec![]);
        assert_eq!(bench.enqueue(4, FRAME, Ecn::NotEct), None, "a higher limit counts at once");
    }

    #[test]
    fn another_discipline_begins_empty() {
        let mut bench = Bench::new(&scenario::Qdisc::Pfifo(scenario::Pfifo { limit_packets: 3 }));
        (0..2).for_each(|_| assert_eq!(bench.enqueue(0, FRAME, Ecn::NotEct), None));
        let events = bench.change(&scenario::Qdisc::Bfifo(scenario::Bfifo { limit_bytes: 2000 }));
        assert_eq!(events, vec![(0, Reason::PURGED), (1, Reason::PURGED)]);
        assert_eq!(bench.backlog(), (0, 0));
        assert_eq!(bench.enqueue(1, FRAME, Ecn::NotEct), None);
        assert_eq!(bench.enqueue(1, FRAME, Ecn::NotEct), Some(Reason::OVERLIMIT), "now its limit counts");
    }
}
