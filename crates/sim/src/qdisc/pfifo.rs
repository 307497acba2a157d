//! `pfifo`: first in, first out, bounded in packets. The queue of the textbooks, and of bufferbloat.
//!
//! Source: Linux `net/sched/sch_fifo.c`, `pfifo`. A packet that finds `limit` packets waiting is dropped; the one on the
//! wire has left the queue and does not count.

use bufferscope_records::DropReason;
use bufferscope_scenario as scenario;

use super::Fates;
use crate::pool::{Fifo, PacketId, Pool};

#[derive(Debug)]
pub(crate) struct Pfifo {
    queue: Fifo,
    limit_packets: u32,
}

impl Pfifo {
    pub(super) fn new(parameters: &scenario::Pfifo) -> Self {
        Self { queue: Fifo::new(), limit_packets: parameters.limit_packets }
    }

    pub(super) fn enqueue(&mut self, packet: PacketId, _now_ns: u64, pool: &mut Pool, fates: &mut Fates) {
        if self.queue.packets() < self.limit_packets {
            self.queue.push(packet, pool);
        } else {
            fates.drop(packet, DropReason::Overlimit);
        }
    }

    pub(super) fn dequeue(&mut self, pool: &Pool) -> Option<PacketId> {
        self.queue.pop(pool)
    }

    pub(super) fn queue(&self) -> &Fifo {
        &self.queue
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, FRAME};
    use super::*;
    use crate::packet::Ecn;

    #[test]
    fn a_full_pfifo_drops_the_arriving_packet() {
        let mut bench = Bench::new(&scenario::Qdisc::Pfifo(scenario::Pfifo { limit_packets: 2 }));
        assert_eq!(bench.enqueue(0, FRAME, Ecn::NotEct), None);
        assert_eq!(bench.enqueue(1, 64, Ecn::NotEct), None);
        assert_eq!(bench.enqueue(2, 64, Ecn::NotEct), Some(DropReason::Overlimit));
        assert_eq!(bench.backlog(), (2, u64::from(FRAME) + 64));
        assert_eq!(bench.dequeue(3), (Some((0, Ecn::NotEct)), vec![]));
        assert_eq!(bench.enqueue(4, 64, Ecn::NotEct), None, "there is room again");
        assert_eq!(bench.dequeue(5).0, Some((1, Ecn::NotEct)));
        assert_eq!(bench.dequeue(6).0, Some((3, Ecn::NotEct)), "number 2 was the one dropped");
        assert_eq!(bench.dequeue(7), (None, vec![]));
    }

    #[test]
    fn pfifo_drops_ecn_capable_packets_too() {
        let mut bench = Bench::new(&scenario::Qdisc::Pfifo(scenario::Pfifo { limit_packets: 1 }));
        bench.enqueue(0, FRAME, Ecn::Ect0);
        assert_eq!(bench.enqueue(0, FRAME, Ecn::Ect0), Some(DropReason::Overlimit));
        assert_eq!(bench.dequeue(1).0, Some((0, Ecn::Ect0)));
    }
}
