//! From where a connection is seen: one interface, or two interfaces of one file that see one direction each.
//!
//! The second is what a tap with a port for each direction writes, and what the export of two ports gives. Interfaces of
//! one file share a clock, so that times may be taken from one to the other; those of different files never do.

use crate::Segment;

/// One interface that shows a connection, or two that show a direction each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standpoint {
    /// The interface of the first segment.
    pub(super) place: u16,
    file: u16,
    /// The direction of the first segment.
    direction: usize,
    other: OtherDirection,
}

/// Where the opposite of the first segment's direction is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OtherDirection {
    Unseen,
    Here,
    At(u16),
}

impl Standpoint {
    pub(super) fn new(segment: &Segment, direction: usize) -> Self {
        Self { place: segment.place, file: segment.file, direction, other: OtherDirection::Unseen }
    }

    /// Index of the standpoint that captured this segment; `None`: none of them. Each connection has a few.
    #[inline]
    pub(super) fn find<'a>(
        those: impl DoubleEndedIterator<Item = &'a mut Self> + ExactSizeIterator,
        segment: &Segment,
        direction: usize,
    ) -> Option<usize> {
        let mut free = None;
        for (index, each) in those.enumerate() {
            if each.place == segment.place {
                if direction != each.direction {
                    each.other = OtherDirection::Here;
                }
                return Some(index);
            }
            if each.other == OtherDirection::At(segment.place) {
                if direction != each.direction {
                    return Some(index);
                }
                // It shows both directions, so it is a standpoint of its own.
                each.other = OtherDirection::Unseen;
                return None;
            }
            if each.other == OtherDirection::Unseen && each.file == segment.file && each.direction != direction {
                // The latest: on its way a packet passes interfaces one after another, and the answer the last one first.
                free = Some((index, each));
            }
        }
        let (index, each) = free?;
        each.other = OtherDirection::At(segment.place);
        Some(index)
    }

    /// Whether both are of one file, so that their times are of one clock.
    pub(super) fn has_the_clock_of(&self, other: &Self) -> bool {
        self.file == other.file
    }

    /// Where a direction is seen.
    pub(super) fn place_of(&self, direction: usize) -> u16 {
        match self.other {
            OtherDirection::At(place) if direction != self.direction => place,
            _ => self.place,
        }
    }
}
