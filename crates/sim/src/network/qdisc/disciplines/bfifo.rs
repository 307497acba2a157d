//! `bfifo`: first in, first out, bounded in bytes.
//!
//! Source: Linux `net/sched/sch_fifo.c`, `bfifo`. A packet that would raise the backlog above `limit` is dropped, so a
//! small packet may still fit where a large one did not. The bytes counted are those of frames, with link-layer
//! overhead.

use bufferscope_scenario as scenario;

use crate::network::pool::{Fifo, PacketId, Pool};
use crate::network::qdisc::shared::limited_fifo::{LimitedFifo, Policy};

pub(crate) type Bfifo = LimitedFifo<Limit>;

#[derive(Debug)]
pub(crate) struct Limit {
    bytes: u64,
}

impl Policy for Limit {
    type Parameters = scenario::Bfifo;

    fn new(parameters: &scenario::Bfifo) -> Self {
        Self { bytes: parameters.limit_bytes }
    }

    #[inline]
    fn fits(&self, packet: PacketId, queue: &Fifo, pool: &Pool) -> bool {
        queue.bytes() + u64::from(pool.header(packet).frame_bytes) <= self.bytes
    }
}

#[cfg(test)]
mod tests {
    use bufferscope_scenario::Reason;

    use super::*;
    use crate::network::qdisc::testing::{Bench, FRAME};
    use crate::network::traffic_class::Ecn;

    #[test]
    fn bfifo_counts_frames_and_lets_a_small_packet_through_where_a_large_one_does_not_fit() {
        // Two full frames take 3028 bytes, which leaves 72.
        let mut bench = Bench::new(&scenario::Qdisc::Bfifo(scenario::Bfifo { limit_bytes: 3100 }));
        assert_eq!(bench.enqueue(0, FRAME, Ecn::NotEct), None);
        assert_eq!(bench.enqueue(0, FRAME, Ecn::NotEct), None);
        assert_eq!(bench.enqueue(0, 73, Ecn::NotEct), Some(Reason::OVERLIMIT));
        assert_eq!(bench.enqueue(0, 72, Ecn::NotEct), None, "exactly the limit is allowed");
        assert_eq!(bench.backlog(), (3, 3100));
        assert_eq!(bench.dequeue(1).0, Some((0, Ecn::NotEct)));
        assert_eq!(bench.backlog(), (2, 1586));
    }

    #[test]
    fn bytes_over_a_lowered_limit_stay() {
        let bfifo = |limit_bytes| scenario::Qdisc::Bfifo(scenario::Bfifo { limit_bytes });
        let mut bench = Bench::new(&bfifo(3100));
        (0..2).for_each(|_| assert_eq!(bench.enqueue(0, FRAME, Ecn::NotEct), None));
        assert_eq!(bench.change(&bfifo(1600)), vec![]);
        assert_eq!(bench.backlog(), (2, 3028));
        bench.dequeue(1);
        assert_eq!(bench.enqueue(1, 87, Ecn::NotEct), Some(Reason::OVERLIMIT), "1514 bytes leave 86");
        assert_eq!(bench.enqueue(1, 86, Ecn::NotEct), None);
    }
}
