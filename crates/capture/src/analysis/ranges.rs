//! The outstanding data of a stream: ranges of sequence numbers, in order and without gaps.
//!
//! Sequence numbers are 64 bits wide here, so that they never wrap; [`unwrap`] extends those of TCP.

use std::collections::VecDeque;

/// Maximum number of ranges for one stream: that of a window of 20 MB in full-size segments. Beyond it, the last range
/// grows and yields no round-trip time.
const MOST_RANGES: usize = 16_384;

/// The number nearest to `near` whose low 32 bits are `sequence`.
#[inline]
pub(super) fn unwrap(sequence: u32, near: i64) -> i64 {
    near + i64::from(sequence.wrapping_sub(near as u32) as i32)
}

/// Bytes that were sent together, or that were not seen but must have been sent, because later ones were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: i64,
    pub(super) end: i64,
    /// When it was sent last.
    pub(super) t_ns: i64,
    /// How often it was seen; 0 if only later bytes were seen.
    pub(super) seen: u16,
    pub(super) sacked: bool,
    pub(super) ip_id: Option<u16>,
    pub(super) stamp: Option<u32>,
}

impl Range {
    fn bytes(&self) -> u64 {
        (self.end - self.start) as u64
    }
}

/// The ranges that an acknowledgement covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Covered {
    /// When the newest range was sent, among those seen exactly once and not covered before.
    pub(super) newest_ns: Option<i64>,
    /// Whether a range among them was seen more than once or not at all; then the newest may have arrived long ago.
    pub(super) retransmitted: bool,
    /// Bytes that were never seen.
    pub(super) unseen_bytes: u64,
    /// Ranges covered for the first time.
    pub(super) ranges: u64,
}

impl Covered {
    fn add(&mut self, range: &Range) {
        match range.seen {
            0 => self.unseen_bytes += range.bytes(),
            1 if !range.sacked => self.newest_ns = Some(range.t_ns),
            _ => {}
        }
        self.retransmitted |= range.seen != 1;
        self.ranges += u64::from(!range.sacked);
    }
}

/// The ranges of one stream.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    ranges: VecDeque<Range>,
    sacked_bytes: u64,
    /// The blocks of the last selective acknowledgement, because the next one mostly repeats them.
    marked: [(i64, i64); 4],
}

impl Ranges {
    pub(super) fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Appends bytes.
    pub(super) fn push(&mut self, range: Range) {
        if self.ranges.len() < MOST_RANGES {
            self.ranges.push_back(range);
        } else if let Some(last) = self.ranges.back_mut() {
            last.end = range.end;
            last.seen = 2;
        }
    }

    /// Processes a cumulative acknowledgement of all bytes before `ack`.
    pub(super) fn acknowledge(&mut self, ack: i64) -> Covered {
        let mut covered = Covered::default();
        while let Some(front) = self.ranges.front_mut() {
            if front.end > ack {
                if front.start < ack {
                    self.sacked_bytes -= if front.sacked { (ack - front.start) as u64 } else { 0 };
                    front.start = ack;
                }
                break;
            }
            covered.add(front);
            self.sacked_bytes -= if front.sacked { front.bytes() } else { 0 };
            self.ranges.pop_front();
        }
        covered
    }

    /// Processes a selective acknowledgement, whose blocks are within what was sent.
    pub(super) fn select(&mut self, blocks: &[(i64, i64)]) -> Covered {
        let mut covered = Covered::default();
        for &(start, end) in blocks {
            // Usually a block grows at one end only.
            let known =
                self.marked.iter().copied().find(|known| known.0 >= start && known.1 <= end && known.0 < known.1);
            match known {
                Some(known) => {
                    self.mark(start, known.0, &mut covered);
                    self.mark(known.1, end, &mut covered);
                }
                None => self.mark(start, end, &mut covered),
            }
        }
        self.marked = [(0, 0); 4];
        for (slot, block) in self.marked.iter_mut().zip(blocks) {
            *slot = *block;
        }
        covered
    }

    fn mark(&mut self, start: i64, end: i64, covered: &mut Covered) {
        if start >= end {
            return;
        }
        self.split(start);
        self.split(end);
        let first = self.index(start);
        for range in self.ranges.range_mut(first..) {
            if range.start >= end {
                break;
            }
            if !range.sacked {
                covered.add(range);
                self.sacked_bytes += range.bytes();
                range.sacked = true;
            }
        }
    }

    /// The ranges between two sequence numbers, after splitting ranges there.
    pub(super) fn between(&mut self, start: i64, end: i64) -> impl Iterator<Item = &mut Range> {
        self.split(start);
        self.split(end);
        let first = self.index(start);
        self.ranges.range_mut(first..).take_while(move |range| range.start < end)
    }

    /// The first range at or after a sequence number that was seen.
    pub(super) fn seen_after(&self, sequence: i64) -> Option<&Range> {
        self.ranges.range(self.index(sequence)..).take(64).find(|range| range.seen > 0)
    }

    /// Number of segments of this size before a sequence number that were sent once and not acknowledged selectively.
    pub(super) fn missing_before(&self, sequence: i64, mss_bytes: u64) -> u64 {
        let before = self.ranges.iter().take_while(|range| range.start < sequence);
        before.filter(|range| !range.sacked && range.seen <= 1).map(|range| range.bytes().div_ceil(mss_bytes)).sum()
    }

    /// The first range that ends after this sequence number.
    fn index(&self, sequence: i64) -> usize {
        self.ranges.partition_point(|range| range.end <= sequence)
    }

    /// Splits a range at a sequence number, if it is inside one. The parts of an offloaded segment are lost and
    /// acknowledged separately.
    fn split(&mut self, sequence: i64) {
        let index = self.index(sequence);
        if let Some(range) = self.ranges.get_mut(index)
            && range.start < sequence
            && index < MOST_RANGES
        {
            let rest = Range { start: sequence, ..*range };
            range.end = sequence;
            self.ranges.insert(index + 1, rest);
        }
    }
}
