//! Which segments carry the push flag (RFC 9293, section 3.9.1.2; the kernel's `tcp_push` and `tcp_mark_push`): each that holds the
//! last byte of what the application handed over in one go, also where more has followed since.
//!
//! A receiver acknowledges such a segment at once, whether it is a first or a second one. So the pairs in which segments of a long
//! transfer are acknowledged begin anew every so often, and flows that share a queue don't stay in step with one another.
//!
//! Departs: retransmissions do not carry it; no segment carries it in the middle of a single write, as those do in the kernel that
//! are half of the largest window ever offered apart (`forced_push`).

use std::collections::VecDeque;

/// Ends of what was written and is not sent yet.
#[derive(Debug)]
pub(super) struct Pushes {
    /// The first of them; `u64::MAX`: there is none. Looked at for every segment, so it does not lie elsewhere.
    first: u64,
    later: VecDeque<u64>,
}

impl Default for Pushes {
    fn default() -> Self {
        Self { first: u64::MAX, later: VecDeque::new() }
    }
}

impl Pushes {
    /// A write ends at `end`; the next segment will begin at `nxt`. No more is remembered than one end for each segment.
    pub(super) fn mark(&mut self, end: u64, nxt: u64, mss_bytes: u32) {
        let segment = |end: u64| (end - nxt).div_ceil(u64::from(mss_bytes));
        if self.first == u64::MAX {
            self.first = end;
        } else if segment(*self.later.back().unwrap_or(&self.first)) < segment(end) {
            self.later.push_back(end);
        }
    }

    /// Does a segment that ends at `end`, the next to be sent, hold the end of a write?
    #[inline]
    pub(super) fn holds(&self, end: u64) -> bool {
        self.first <= end
    }

    /// It is sent.
    #[inline]
    pub(super) fn forget(&mut self, end: u64) {
        while self.first <= end {
            self.first = self.later.pop_front().unwrap_or(u64::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of the segments of 100 bytes from sequence number 1 on carry the flag after writes that end there.
    fn pushed(ends: &[u64], segments: u64) -> Vec<bool> {
        let mut pushes = Pushes::default();
        ends.iter().for_each(|&end| pushes.mark(end, 1, 100));
        (1..=segments).map(|n| take(&mut pushes, 1 + 100 * n)).collect()
    }

    /// Sends the next segment, which ends at `end`: does it carry the flag?
    fn take(pushes: &mut Pushes, end: u64) -> bool {
        let holds = pushes.holds(end);
        pushes.forget(end);
        holds
    }

    #[test]
    fn the_last_segment_of_each_write_is_pushed_though_more_follows() {
        assert_eq!(pushed(&[301, 501], 6), [false, false, true, false, true, false]);
    }

    #[test]
    fn a_segment_that_is_filled_up_later_stays_pushed() {
        // `tcp_sendmsg_locked` adds to the last packet, whose flags remain.
        assert_eq!(pushed(&[250, 401], 4), [false, false, true, true]);
    }

    #[test]
    fn many_small_writes_are_remembered_once_a_segment() {
        let mut pushes = Pushes::default();
        (2..=1001).for_each(|end| pushes.mark(end, 1, 100));
        assert_eq!(1 + pushes.later.len(), 10);
        assert!((1..=10).all(|n| take(&mut pushes, 1 + 100 * n)));
    }
}
