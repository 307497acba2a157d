//! Which segments carry the push flag (RFC 9293, section 3.9.1.2; the kernel's `tcp_push` and `tcp_mark_push`): each
//! that holds the last byte of one write of the application. If more is added to the same packet before it leaves, the
//! flag moves to the new end (`tcp_sendmsg_locked`). Packets of several segments always carry it ("tcp: force a PSH
//! flag on TSO packets").
//!
//! A receiver acknowledges such a segment at once, whether it is the first or second of a pair. So the pairing in which
//! segments of a long transfer are acknowledged restarts now and then, and flows that share a queue do not stay in step
//! with one another.
//!
//! Departs: retransmissions do not carry it. No segment carries it in the middle of a single write; the kernel sets it
//! there on segments that are half of the largest window ever offered apart (`forced_push`).

use std::collections::VecDeque;

/// Ends of writes that are not sent yet.
#[derive(Debug)]
pub(super) struct Pushes {
    /// The first of them; `u64::MAX`: there is none. It is checked for every segment, so it is stored here and not in
    /// `later`.
    first: u64,
    later: VecDeque<u64>,
}

impl Default for Pushes {
    fn default() -> Self {
        Self { first: u64::MAX, later: VecDeque::new() }
    }
}

impl Pushes {
    /// A write ends at `end`. If it `fills_up` the packet in which the last write ended, that packet no longer carries
    /// the flag for the earlier write: so there is at most one end per packet.
    pub(super) fn mark(&mut self, end: u64, fills_up: bool) {
        let last = self.later.back_mut().unwrap_or(&mut self.first);
        if fills_up || *last == u64::MAX {
            *last = end;
        } else {
            self.later.push_back(end);
        }
    }

    /// Does the next segment to be sent, which ends at `end`, hold the end of a write?
    #[inline]
    pub(super) fn holds(&self, end: u64) -> bool {
        self.first <= end
    }

    /// It was sent.
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

    /// Which of the segments of 100 bytes from sequence number 1 on carry the flag after writes with these ends.
    fn pushed(ends: &[u64], segments: u64) -> Vec<bool> {
        let mut pushes = writes(ends);
        (1..=segments).map(|n| take(&mut pushes, 1 + 100 * n)).collect()
    }

    /// Sends the next segment, which ends at `end`: does it carry the flag?
    fn take(pushes: &mut Pushes, end: u64) -> bool {
        let holds = pushes.holds(end);
        pushes.forget(end);
        holds
    }

    fn writes(ends: &[u64]) -> Pushes {
        let mut pushes = Pushes::default();
        let mut last = 1;
        for &end in ends {
            pushes.mark(end, (last - 1) % 100 > 0);
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
