//! The data that has arrived, in order and out of order, and the SACK blocks that report it (RFC 2018, section 4; RFC
//! 2883).

use super::memory::{Held, Storage};
use crate::network::segment::{SackBlock, SackBlocks};
use std::collections::VecDeque;

/// Blocks remembered in order of recency (`TCP_NUM_SACKS`).
const RECENT_BLOCKS: usize = 4;

/// The received part of the sequence space.
#[derive(Debug)]
pub(crate) struct Reassembly {
    /// Next sequence number expected in order (RCV.NXT).
    next: u64,
    /// Blocks beyond a gap: disjoint, not adjacent, ascending.
    held: VecDeque<Block>,
    /// The memory of all of them.
    held_bytes: u64,
    storage: Storage,
    /// The blocks that changed last, latest first.
    recent: Recent,
    /// Data that arrived twice and is to be reported once (RFC 2883).
    duplicate: Option<SackBlock>,
}

/// Data beyond a gap without a gap in it.
#[derive(Clone, Copy, Debug)]
struct Block {
    edges: SackBlock,
    memory_bytes: u64,
    /// How much its first packet holds.
    first_bytes: u64,
    /// What can be added to its last packet.
    room: u64,
}

/// How a segment fits in with the data that arrived before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The next in order, with nothing missing before or after.
    InOrder,
    /// It closed (part of) a gap. A packet holds the data up to `read`, and the application reads it first.
    FilledGap { read: u64 },
    /// It arrived too early.
    OutOfOrder,
    /// Nothing in it was new.
    Duplicate,
}

#[derive(Debug, Default)]
struct Recent {
    blocks: [Option<SackBlock>; RECENT_BLOCKS],
}

impl Reassembly {
    /// A reassembly that expects `next`.
    pub(crate) fn new(next: u64, storage: Storage) -> Self {
        Self { next, held: VecDeque::new(), held_bytes: 0, storage, recent: Recent::default(), duplicate: None }
    }

    /// How packets are stored that wait beyond a gap.
    #[inline]
    pub(crate) fn storage(&self) -> Storage {
        self.storage
    }

    /// Next sequence number expected in order.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The memory of what was received out of order.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Whether anything is missing.
    pub(crate) fn has_gap(&self) -> bool {
        !self.held.is_empty()
    }

    /// The sequence numbers from `start` to `end` (not empty) arrived.
    #[inline]
    pub(crate) fn insert(&mut self, start: u64, end: u64) -> Arrival {
        if start == self.next && self.held.is_empty() {
            self.next = end;
            return Arrival::InOrder;
        }
        self.insert_slowly(SackBlock { start, end })
    }

    /// Records a duplicate to report, without receiving data.
    pub(crate) fn report_duplicate(&mut self, start: u64, end: u64) {
        self.duplicate = Some(SackBlock { start, end });
    }

    /// Whether there is anything to report in SACK blocks.
    pub(crate) fn has_blocks(&self) -> bool {
        self.has_gap() || self.duplicate.is_some()
    }

    /// How many blocks have changed more recently than the block that these sequence numbers extend. If they extend no
    /// block, all blocks count as more recent. `None` unless the sequence numbers lie beyond a gap.
    pub(crate) fn recency(&self, start: u64, end: u64) -> Option<usize> {
        let blocks = || self.recent.blocks.iter().flatten();
        let extended = blocks().position(|block| block.start <= end && start <= block.end);
        (start > self.next).then(|| extended.unwrap_or_else(|| blocks().count()))
    }

    /// The blocks to send with the next acknowledgement: a duplicate first, then the most recent.
    pub(crate) fn take_blocks(&mut self) -> SackBlocks {
        let mut blocks = SackBlocks::NONE;
        if self.has_blocks() {
            let recent = self.recent.blocks.iter().flatten().copied();
            self.duplicate.take().into_iter().chain(recent).for_each(|block| blocks.push(self.next, block));
        }
        blocks
    }

    fn insert_slowly(&mut self, new: SackBlock) -> Arrival {
        if new.end <= self.next {
            self.duplicate = Some(new);
            return Arrival::Duplicate;
        }
        if new.start < self.next {
            self.duplicate = Some(SackBlock { start: new.start, end: self.next });
        }
        if new.start > self.next {
            return self.hold(new);
        }
        let Some(first) = self.held.front().copied() else {
            self.next = new.end;
            return Arrival::InOrder;
        };
        let follows = first.edges.start == new.end;
        let room = self.storage.hold(new.end - new.start).room;
        let shares = follows && self.storage.add(first.first_bytes, room).is_some();
        self.next = new.end;
        self.release();
        Arrival::FilledGap { read: new.end + if shares { first.first_bytes } else { 0 } }
    }

    /// Stores a block that came too early.
    fn hold(&mut self, new: SackBlock) -> Arrival {
        let first = self.held.partition_point(|block| block.edges.end < new.start);
        let touched = self.held.iter().skip(first).take_while(|block| block.edges.start <= new.end).count();
        let len = new.end - new.start;
        if touched == 0 {
            let Held { memory_bytes, room } = self.storage.hold(len);
            self.held_bytes += memory_bytes;
            self.held.insert(first, Block { edges: new, memory_bytes, first_bytes: len, room });
            self.recent.update(new);
            return Arrival::OutOfOrder;
        }
        let (low, high) = (self.held[first], self.held[first + touched - 1]);
        if low.edges.start <= new.start && new.end <= low.edges.end {
            self.duplicate = Some(new);
            self.recent.update(low.edges);
            return Arrival::Duplicate;
        }
        let follows = low.edges.end == new.start;
        let shared = follows.then(|| self.storage.add(len, low.room)).flatten();
        let added = shared.unwrap_or_else(|| self.storage.hold(len));
        let is_one_packet = low.first_bytes == low.edges.end - low.edges.start;
        let first_bytes = match shared {
            Some(_) if is_one_packet => low.first_bytes + len,
            None if new.start < low.edges.start => len,
            _ => low.first_bytes,
        };
        let before: u64 = self.held.range(first..first + touched).map(|block| block.memory_bytes).sum();
        self.held_bytes += added.memory_bytes;
        let edges = SackBlock { start: low.edges.start.min(new.start), end: high.edges.end.max(new.end) };
        let room = if high.edges.end > new.end { high.room } else { added.room };
        self.held[first] = Block { edges, memory_bytes: before + added.memory_bytes, first_bytes, room };
        self.held.drain(first + 1..first + touched);
        self.recent.update(edges);
        Arrival::OutOfOrder
    }

    /// Removes the blocks that are now in order.
    fn release(&mut self) {
        while let Some(block) = self.held.front().copied().filter(|block| block.edges.start <= self.next) {
            let Block { edges: block, memory_bytes, .. } = block;
            if block.start < self.next && self.duplicate.is_none() {
                // Of several duplicates, the first is reported (`tcp_dsack_extend`).
                self.duplicate = Some(SackBlock { start: block.start, end: block.end.min(self.next) });
            }
            self.next = self.next.max(block.end);
            self.held_bytes -= memory_bytes;
            self.held.pop_front();
        }
        self.recent.forget_below(self.next);
    }
}

impl Recent {
    /// Moves a block to the front. It replaces the blocks out of which it has grown.
    fn update(&mut self, block: SackBlock) {
        let others = self.blocks.into_iter().flatten();
        let mut kept = others.filter(|other| other.end < block.start || block.end < other.start);
        self.blocks = std::array::from_fn(|i| if i == 0 { Some(block) } else { kept.next() });
    }

    fn forget_below(&mut self, next: u64) {
        let mut kept = self.blocks.into_iter().flatten().filter(|block| block.end > next);
        self.blocks = std::array::from_fn(|_| kept.next());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(reassembly: &mut Reassembly) -> Vec<(u64, u64)> {
        let next = reassembly.next();
        reassembly.take_blocks().iter(next).map(|block| (block.start, block.end)).collect()
    }

    #[test]
    fn a_gap_holds_back_what_follows_until_it_is_filled() {
        let mut r = Reassembly::new(1, Storage::Paged);
        assert_eq!(r.insert(1, 10), Arrival::InOrder);
        assert_eq!(r.insert(20, 30), Arrival::OutOfOrder);
        assert_eq!((r.next(), r.held_bytes(), r.has_gap()), (10, Storage::Paged.hold(10).memory_bytes, true));
        assert_eq!(r.insert(10, 20), Arrival::FilledGap { read: 30 });
        assert_eq!((r.next(), r.held_bytes(), r.has_gap()), (30, 0, false));
        assert_eq!(blocks(&mut r), []);
    }

    #[test]
    fn packets_beyond_a_gap_share_buffers_in_order_of_arrival() {
        const MSS: u64 = 1_448;
        let one = Storage::Linear.hold(MSS).memory_bytes;
        let mut r = Reassembly::new(0, Storage::Linear);
        let mut arrive = |n: u64| {
            let arrival = r.insert(n * MSS, (n + 1) * MSS);
            (arrival, r.held_bytes())
        };
        // A buffer has room for two segments. Only data that directly follows is added to it.
        let held = [3, 4, 5, 2, 1].map(&mut arrive).map(|(_, held_bytes)| held_bytes);
        assert_eq!(held, [one, one, 2 * one, 3 * one, 4 * one]);
        // The packet that fills the gap has space for the first packet behind it.
        assert_eq!(arrive(0), (Arrival::FilledGap { read: 2 * MSS }, 0));
        // It has not for a packet that holds two segments.
        let _ = [7, 8].map(&mut arrive);
        assert_eq!(arrive(6), (Arrival::FilledGap { read: 7 * MSS }, 0));
    }

    #[test]
    fn the_block_that_changed_last_comes_first() {
        let mut r = Reassembly::new(1, Storage::Paged);
        r.insert(100, 110);
        r.insert(200, 210);
        assert_eq!(blocks(&mut r), [(200, 210), (100, 110)]);
        r.insert(110, 120);
        assert_eq!(blocks(&mut r), [(100, 120), (200, 210)]);
        r.insert(120, 200);
        assert_eq!(blocks(&mut r), [(100, 210)]);
    }

    #[test]
    fn of_five_blocks_the_three_latest_are_reported() {
        let mut r = Reassembly::new(1, Storage::Paged);
        (1..=5).for_each(|i| assert_eq!(r.insert(100 * i, 100 * i + 10), Arrival::OutOfOrder));
        assert_eq!(blocks(&mut r), [(500, 510), (400, 410), (300, 310)]);
    }

    #[test]
    fn recency_counts_the_blocks_that_changed_later() {
        let mut r = Reassembly::new(1, Storage::Paged);
        [100, 200, 300].into_iter().for_each(|start| assert_eq!(r.insert(start, start + 10), Arrival::OutOfOrder));
        assert_eq!(
            [310, 210, 110, 400].map(|start| r.recency(start, start + 10)),
            [Some(0), Some(1), Some(2), Some(3)]
        );
        assert_eq!(r.recency(1, 50), None);
    }

    #[test]
    fn what_arrives_twice_is_reported_once_and_first() {
        let mut r = Reassembly::new(1, Storage::Paged);
        r.insert(1, 50);
        r.insert(100, 110);
        assert_eq!(r.insert(20, 30), Arrival::Duplicate);
        assert_eq!(blocks(&mut r), [(20, 30), (100, 110)]);
        assert_eq!(blocks(&mut r), [(100, 110)]);
        assert_eq!(r.insert(100, 105), Arrival::Duplicate);
        assert_eq!(blocks(&mut r), [(100, 105), (100, 110)]);
    }

    #[test]
    fn any_order_of_arrival_ends_with_everything_in_order() {
        // All 120 orders of five pieces.
        fn permute(pieces: &mut Vec<u64>, from: usize, check: &mut impl FnMut(&[u64])) {
            if from == pieces.len() {
                return check(pieces);
            }
            for i in from..pieces.len() {
                pieces.swap(from, i);
                permute(pieces, from + 1, check);
                pieces.swap(from, i);
            }
        }
        permute(&mut (0..5).collect(), 0, &mut |order| {
            let mut r = Reassembly::new(1, Storage::Paged);
            for (arrived, piece) in order.iter().enumerate() {
                r.insert(1 + 10 * piece, 11 + 10 * piece);
                let held: u64 = r.held.iter().map(|block| block.edges.end - block.edges.start).sum();
                assert_eq!(r.next() - 1 + held, 10 * (arrived as u64 + 1), "{order:?}");
                assert_eq!(r.held_bytes(), r.held.iter().map(|block| block.memory_bytes).sum::<u64>(), "{order:?}");
            }
            assert_eq!((r.next(), r.has_gap()), (51, false), "{order:?}");
        });
    }
}
