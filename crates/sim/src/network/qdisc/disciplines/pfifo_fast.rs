//! `pfifo_fast`: three queues by priority. A queue is served only while those before it are empty.
//!
//! Source: Linux `net/sched/sch_generic.c`. A packet's priority follows from its code point, as in `rt_tos2priority`
//! (`net/ipv4/route.c`). Two bits of the old type of service say whether the packet asks for low delay, throughput,
//! both or neither; the other bits of the code point have no effect. So expedited forwarding (46) does not go first,
//! and assured forwarding of low drop precedence (10, 18, 26, 34) goes last.
//!
//! Each queue is a ring of `txqueuelen` slots (`include/linux/ptr_ring.h`), however full the other queues are. Packets
//! that leave give back their slots 16 at a time, and at the end of the ring. So a queue may hold up to 15 packets
//! fewer.
//!
//! Departs: an echo reply in the queue of its own host has the priority of its code point; the kernel's has none.

use bufferscope_scenario as scenario;

use crate::network::pool::{Backlog, Fifo, PacketId, Pool};
use crate::network::qdisc::shared::fifo::{drop_surplus, tail_drop};
use crate::network::qdisc::{Attachment, Dequeued, Discipline, QdiscEvents};
use crate::network::traffic_class::TrafficClass;
use crate::network::xmit::Xmit;

const BANDS: usize = scenario::PfifoFast::BANDS;
/// The number of slots given back at a time: as many pointers of 8 bytes as fit in two cache lines of 64 bytes.
const BATCH: u32 = 16;

#[derive(Debug)]
pub(crate) struct PfifoFast {
    bands: [Fifo; BANDS],
    rings: [Ring; BANDS],
    /// Slots in each ring.
    slots: u32,
}

/// The position of a ring's reader.
#[derive(Clone, Copy, Debug, Default)]
struct Ring {
    /// The slot to be read next.
    next: u32,
    /// The slots before this one are free again.
    free_to: u32,
}

impl Discipline for PfifoFast {
    type Parameters = scenario::PfifoFast;

    fn new(parameters: &scenario::PfifoFast, _: Attachment) -> Result<Self, String> {
        Ok(Self {
            bands: std::array::from_fn(|_| Fifo::new()),
            rings: [Ring::default(); BANDS],
            slots: parameters.band_packets,
        })
    }

    fn enqueue(&mut self, packet: PacketId, _now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        let index = band(pool.header(packet).class);
        let (band, ring) = (&mut self.bands[index], &self.rings[index]);
        let fits = band.packets() + ring.unreturned() < self.slots;
        tail_drop(fits, packet, band, pool, events)
    }

    fn dequeue(&mut self, _now_ns: u64, pool: &mut Pool, _events: &mut QdiscEvents) -> Dequeued {
        let first = self.bands.iter_mut().zip(&mut self.rings).find_map(|(band, ring)| {
            let packet = band.pop(pool)?;
            ring.read(self.slots);
            Some(packet)
        });
        first.into()
    }

    /// The backlog begins at the first slot of the new rings (`pfifo_fast_change_tx_queue_len`).
    fn change(&mut self, to: Self, pool: &Pool, events: &mut QdiscEvents) {
        let Self { bands: _, rings, slots } = to;
        if slots != self.slots {
            (self.rings, self.slots) = (rings, slots);
            self.bands.iter_mut().for_each(|band| drop_surplus(slots, band, pool, events));
        }
    }

    fn backlog(&self) -> Backlog {
        self.bands.iter().map(Fifo::backlog).sum()
    }

    fn peek(&self) -> Option<PacketId> {
        self.bands.iter().find_map(Fifo::front)
    }

    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.bands.iter().flat_map(|band| band.iter(pool)).for_each(visit);
    }
}

impl Ring {
    /// The number of slots that were read but are not free yet.
    fn unreturned(&self) -> u32 {
        self.next - self.free_to
    }

    fn read(&mut self, slots: u32) {
        self.next += 1;
        if self.next == slots {
            *self = Self::default();
        } else if self.unreturned() >= batch(slots) {
            self.free_to = self.next;
        }
    }
}

/// Small rings give back each slot at once (`__ptr_ring_set_size`).
fn batch(slots: u32) -> u32 {
    if BATCH > slots / 2 { 1 } else { BATCH }
}

/// The queue of a packet (`prio2band`).
fn band(class: TrafficClass) -> usize {
    scenario::Prio::PRIOMAP[usize::from(class.priority())].into()
}

#[cfg(test)]
mod tests {
    use bufferscope_scenario::Reason;

    use super::*;
    use crate::network::qdisc::testing::{Bench, FRAME};
    use crate::network::traffic_class::Ecn;

    fn bench() -> Bench {
        Bench::new(&scenario::Qdisc::PfifoFast(scenario::PfifoFast { band_packets: 1000 }))
    }

    fn class(dscp: u8) -> TrafficClass {
        TrafficClass::new(dscp, Ecn::NotEct)
    }

    /// The type of service is the code point followed by two bits of ECN. 0x10 asks for low delay, 0x08 for throughput.
    /// The kernel's tables map the first to TC_PRIO_INTERACTIVE (6, band 0) and the second to TC_PRIO_BULK (2, band 2).
    /// No bit means TC_PRIO_BESTEFFORT (0) and both bits TC_PRIO_INTERACTIVE_BULK (4); these two go to band 1.
    #[test]
    fn two_bits_of_the_old_type_of_service_choose_the_band() {
        for (tos, expected) in [(0x00, 1), (0x10, 0), (0x08, 2), (0x18, 1), (0x04, 1), (0x14, 0)] {
            assert_eq!(band(class(tos >> 2)), expected, "{tos:#x}");
        }
        // EF; CS1 to CS7, in which both bits are 0; AF11, AF21, AF31, AF41; AF12; AF13.
        assert_eq!(band(class(46)), 1);
        assert!((1..8).all(|selector| band(class(selector << 3)) == 1));
        assert!([10, 18, 26, 34].into_iter().all(|dscp| band(class(dscp)) == 2));
        assert_eq!([12, 14].map(|dscp| band(class(dscp))), [0, 1]);
    }

    #[test]
    fn the_first_band_goes_first_and_the_last_only_when_the_others_are_empty() {
        let mut bench = bench();
        for dscp in [10, 0, 4, 10, 0, 4] {
            assert_eq!(bench.arrive(0, FRAME, class(dscp)), (Xmit::Queued, vec![]));
        }
        assert_eq!(bench.backlog(), (6, 6 * u64::from(FRAME)), "the counters are those of all bands together");
        let sent: Vec<u64> = (1..=4).filter_map(|at_ns| bench.dequeue(at_ns).0).map(|(number, _)| number).collect();
        assert_eq!(sent, [2, 5, 1, 4]);
        bench.arrive(5, FRAME, class(4));
        let sent: Vec<u64> = (6..=9).filter_map(|at_ns| bench.dequeue(at_ns).0).map(|(number, _)| number).collect();
        assert_eq!(sent, [6, 0, 3]);
    }

    #[test]
    fn each_band_has_room_of_its_own() {
        let mut bench = bench();
        for dscp in [0, 4, 10] {
            let queued = (0..1100).filter(|&at_ns| bench.arrive(at_ns, FRAME, class(dscp)).0 == Xmit::Queued).count();
            assert_eq!(queued, 1000);
        }
        assert_eq!(bench.backlog().0, 3000);
        assert_eq!(bench.arrive(0, FRAME, class(0)), (Xmit::Dropped, vec![(3300, Reason::OVERLIMIT)]));
    }

    /// With fewer than 32 slots, each is given back at once.
    #[test]
    fn a_short_ring_has_as_many_slots_as_the_device_says() {
        let mut bench = Bench::new(&scenario::Qdisc::PfifoFast(scenario::PfifoFast { band_packets: 20 }));
        let fill =
            |bench: &mut Bench| (0..30).filter(|&at_ns| bench.arrive(at_ns, FRAME, class(0)).0 == Xmit::Queued).count();
        assert_eq!(fill(&mut bench), 20);
        bench.dequeue(30);
        assert_eq!(fill(&mut bench), 1);
        assert_eq!(bench.arrive(31, FRAME, class(4)).0, Xmit::Queued, "the other bands have rings of their own");
    }

    /// `__ptr_ring_discard_one`: of 1000 slots, the first 992 are given back in batches of 16, and the last 8
    /// together.
    #[test]
    fn slots_are_given_back_in_batches() {
        let mut bench = bench();
        let fill = |bench: &mut Bench| {
            std::iter::from_fn(|| (bench.arrive(0, FRAME, class(0)).0 == Xmit::Queued).then_some(())).count()
        };
        assert_eq!(fill(&mut bench), 1000);
        let mut rooms = Vec::new();
        for read in 1..=1016 {
            bench.dequeue(read);
            let room = fill(&mut bench);
            if room > 0 {
                rooms.push((read, room));
            }
        }
        let batches = (1..=62).map(|batch| (16 * batch, 16)).chain([(1000, 8), (1016, 16)]);
        assert_eq!(rooms, batches.collect::<Vec<_>>());
    }
}
