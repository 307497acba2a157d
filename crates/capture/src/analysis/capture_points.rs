//! Where a connection was captured: at one interface, or at two interfaces of one file that see one direction each.
//!
//! A tap with one port for each direction writes two interfaces. Interfaces of one file share a clock, so their times
//! can be compared; those of different files are never assumed to.

use crate::Segment;

/// One interface that sees a connection, or two that see one direction each.
#[derive(Clone, Copy, Debug)]
pub(super) struct CapturePoints {
    /// The interface of the first segment.
    pub(super) vantage_point: u16,
    file: u16,
    /// The direction of the first segment.
    direction: usize,
    other: OtherDirection,
}

/// The interface that sees the opposite of the first segment's direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OtherDirection {
    Unseen,
    Here,
    At(u16),
}

impl CapturePoints {
    pub(super) fn new(segment: &Segment, direction: usize) -> Self {
        Self { vantage_point: segment.vantage_point, file: segment.file, direction, other: OtherDirection::Unseen }
    }

    /// Index of the capture points that captured this segment; `None`: none of them. Each connection has a few.
    #[inline]
    pub(super) fn find<'a>(
        those: impl DoubleEndedIterator<Item = &'a mut Self> + ExactSizeIterator,
        segment: &Segment,
        direction: usize,
    ) -> Option<usize> {
        let mut free = None;
        for (index, each) in those.enumerate() {
            if each.vantage_point == segment.vantage_point {
                if direction != each.direction {
                    each.other = OtherDirection::Here;
                }
                return Some(index);
            }
            if each.other == OtherDirection::At(segment.vantage_point) {
                if direction != each.direction {
                    return Some(index);
                }
                // It sees both directions, so it is separate.
                each.other = OtherDirection::Unseen;
                return None;
            }
            if each.other == OtherDirection::Unseen && each.file == segment.file && each.direction != direction {
                // The latest one: a packet passes interfaces in order, and its answer passes them in the opposite
                // order.
                free = Some((index, each));
            }
        }
        let (index, each) = free?;
        each.other = OtherDirection::At(segment.vantage_point);
        Some(index)
    }

    /// Whether both are in one file, and so share a clock.
    pub(super) fn has_the_clock_of(&self, other: &Self) -> bool {
        self.file == other.file
    }

    /// The interface that sees a direction.
    pub(super) fn vantage_point_of(&self, direction: usize) -> u16 {
        match self.other {
            OtherDirection::At(vantage_point) if direction != self.direction => vantage_point,
            _ => self.vantage_point,
        }
    }
}
