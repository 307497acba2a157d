//! Which segments carry the push flag (RFC 9293, section 3.9.1.2; the kernel's `tcp_push` and `tcp_mark_push`). A
//! segment carries the flag if it holds the last byte of one write of the application. If more data is added to the
//! same packet before it leaves, the flag moves to the new end (`tcp_sendmsg_locked`). Packets of several segments
//! always carry the flag ("tcp: force a PSH flag on TSO packets"). A segment that is retransmitted by itself carries it
//! only if it holds the end of a write.
//!
//! A receiver acknowledges such a segment at once, whether it is the first or the second of a pair. So the pairs in
//! which the segments of a long transfer are acknowledged shift now and then, and flows that share a queue do not stay
//! in step.
//!
//! Departs: without offload, no segment in the middle of a single write carries the flag; the kernel sets it there at
//! intervals of half the largest window ever offered (`forced_push`).

use std::collections::VecDeque;

/// The ends of writes that are not sent yet.
#[derive(Debug)]
pub(in crate::tcp::sender) struct Pushes {
    /// The first of them, or `u64::MAX` if there are no such writes. It is checked for every segment and therefore not
    /// stored in `later`.
    first: u64,
    later: VecDeque<u64>,
}

impl Default for Pushes {
    fn default() -> Self {
        Self { first: u64::MAX, later: VecDeque::new() }
    }
}

impl Pushes {
    /// The last byte before `end` is to be pushed.
    pub(in crate::tcp::sender) fn mark(&mut self, end: u64) {
        let last = self.later.back_mut().unwrap_or(&mut self.first);
        if *last == u64::MAX {
            *last = end;
        } else if *last != end {
            self.later.push_back(end);
        }
    }

    /// The packet that ends at `end` grows, so its last byte so far is not to be pushed any more. Returns
    /// whether it was.
    pub(in crate::tcp::sender) fn unmark(&mut self, end: u64) -> bool {
        let last = self.later.back().unwrap_or(&self.first);
        let was_marked = *last == end;
        if was_marked && self.later.pop_back().is_none() {
            self.first = u64::MAX;
        }
        was_marked
    }

    /// Whether the next segment to be sent, which ends at `end`, holds the end of a write.
    #[inline]
    pub(in crate::tcp::sender) fn holds(&self, end: u64) -> bool {
        self.first <= end
    }

    /// The segment that ends at `end` was sent.
    #[inline]
    pub(in crate::tcp::sender) fn forget(&mut self, end: u64) {
        while self.first <= end {
            self.first = self.later.pop_front().unwrap_or(u64::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which segments carry the flag after writes with these ends. Segments have 100 bytes and begin at sequence number
    /// 1.
    fn pushed(ends: &[u64], segments: u64) -> Vec<bool> {
        let mut pushes = writes(ends);
        (1..=segments).map(|n| take(&mut pushes, 1 + 100 * n)).collect()
    }

    /// Sends the next segment, which ends at `end`. Returns whether it carries the flag.
    fn take(pushes: &mut Pushes, end: u64) -> bool {
        let holds = pushes.holds(end);
        pushes.forget(end);
        holds
    }

    fn writes(ends: &[u64]) -> Pushes {
        let mut pushes = Pushes::default();
        let mut last = 1;
        for &end in ends {
            if (last - 1) % 100 > 0 {
                assert!(pushes.unmark(last));
            }
            pushes.mark(end);
            last = end;
        }
        pushes
    }

    #[test]
    fn the_last_segment_of_each_write_is_pushed_though_more_follows() {
        assert_eq!(pushed(&[301, 501], 6), [false, false, true, false, true, false]);
    }

    #[test]
    fn a_segment_that_is_filled_up_later_is_pushed_no_more() {
        // `tcp_sendmsg_locked` removes the flag from the packet that it adds to.
        assert_eq!(pushed(&[250, 401], 5), [false, false, false, true, false]);
        assert_eq!(pushed(&[201, 250, 401], 4), [false, true, false, true]);
    }

    #[test]
    fn many_small_writes_are_remembered_once_a_segment() {
        let mut pushes = writes(&(2..=1001).collect::<Vec<u64>>());
        assert_eq!(1 + pushes.later.len(), 10);
        assert!((1..=10).all(|n| take(&mut pushes, 1 + 100 * n)));
    }
}
