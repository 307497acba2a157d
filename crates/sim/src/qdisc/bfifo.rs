//! `bfifo`: first in, first out, bounded in bytes.
//!
//! Source: Linux `net/sched/sch_fifo.c`, `bfifo`. A packet that would raise the backlog above `limit` is dropped, so a
//! small packet may still fit where a large one did not. Bytes are those of frames: link-layer overhead counts.

use bufferscope_records::DropReason;
use bufferscope_scenario as scenario;

use super::Fates;
use crate::pool::{Fifo, PacketId, Pool};

#[derive(Debug)]
pub(crate) struct Bfifo {
    queue: Fifo,
    limit_bytes: u64,
}

impl Bfifo {
    pub(super) fn new(parameters: &scenario::Bfifo) -> Self {
        Self { queue: Fifo::new(), limit_bytes: parameters.limit_bytes }
    }

    pub(super) fn enqueue(&mut self, packet: PacketId, _now_ns: u64, pool: &mut Pool, fates: &mut Fates) {
        if self.queue.bytes() + u64::from(pool.header(packet).frame_bytes) <= self.limit_bytes {
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
    fn bfifo_counts_frames_and_lets_a_small_packet_through_where_a_large_one_does_not_fit() {
        // Two full frames are 3028 bytes; 72 are left.
        let mut bench = Bench::new(&scenario::Qdisc::Bfifo(scenario::Bfifo { limit_bytes: 3100 }));
        assert_eq!(bench.enqueue(0, FRAME, Ecn::NotEct), None);
        assert_eq!(bench.enqueue(0, FRAME, Ecn::NotEct), None);
        assert_eq!(bench.enqueue(0, 73, Ecn::NotEct), Some(DropReason::Overlimit));
        assert_eq!(bench.enqueue(0, 72, Ecn::NotEct), None, "exactly the limit is allowed");
        assert_eq!(bench.backlog(), (3, 3100));
        assert_eq!(bench.dequeue(1).0, Some((0, Ecn::NotEct)));
        assert_eq!(bench.backlog(), (2, 1586));
    }
}
