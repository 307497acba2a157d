//! The pieces into which written data is joined, each of which is a buffer of the kernel (`sk_write_queue`).
//!
//! The application adds to the last piece until it has the size that is the goal of this write, and then begins others
//! of that size (`size_goal` in `tcp_sendmsg_locked`). A piece that is followed by another keeps the size that it has,
//! even if the goal is larger later.
//!
//! A packet consists of a whole piece or of the beginning of one. In the second case, the rest becomes a piece of its
//! own, however small (`tso_fragment`). If it is the last one, it grows again.

use std::collections::VecDeque;

/// The pieces of the data that is not sent yet.
#[derive(Debug, Default)]
pub(in crate::tcp::sender) struct Pieces {
    /// The oldest first. Each run begins where the one before ends. The first ones may be sent already.
    runs: VecDeque<Run>,
    /// Where the first piece was cut: more than once, if the host's own queue dropped what was cut off, and then less of it
    /// could be sent. The nearest is the last. Obsolete when it is sent.
    cuts: Vec<u64>,
}

/// Pieces of one size. The last one may be smaller.
#[derive(Debug)]
struct Run {
    start: u64,
    end: u64,
    piece_bytes: u64,
}

impl Pieces {
    /// Where the last piece begins, without what is sent (up to `nxt`) or was cut off. `nxt` if everything is sent.
    pub(in crate::tcp::sender) fn last_start(&self, nxt: u64) -> u64 {
        match self.runs.back() {
            Some(run) if run.end > nxt => run.last_start().max(nxt).max(self.cuts.first().copied().unwrap_or(0)),
            _ => nxt,
        }
    }

    /// Data up to `end` was written. From `start` on, pieces have `piece_bytes`. This is either the end of the last
    /// piece or its [beginning](Self::last_start), if it has grown.
    pub(in crate::tcp::sender) fn append(&mut self, nxt: u64, start: u64, end: u64, piece_bytes: u64) {
        self.forget(nxt);
        if self.cuts.first() == Some(&start) {
            // The rest is a run of its own now.
            self.cuts.remove(0);
        }
        if let Some(last) = self.runs.back_mut() {
            if last.piece_bytes == piece_bytes && (start - last.start).is_multiple_of(piece_bytes) {
                last.end = end;
                return;
            }
            last.end = start;
            if last.start == start {
                self.runs.pop_back();
            }
        }
        self.runs.push_back(Run { start, end, piece_bytes });
    }

    /// The end of the first piece, which begins at `nxt`.
    pub(in crate::tcp::sender) fn first_end(&self, nxt: u64) -> u64 {
        if let Some(cut) = self.cuts.iter().rev().find(|cut| **cut > nxt) {
            return *cut;
        }
        self.runs.iter().find(|run| run.end > nxt).map_or(nxt, |run| run.end_of_piece(nxt))
    }

    /// The first piece is cut at `end`.
    pub(in crate::tcp::sender) fn cut(&mut self, end: u64) {
        self.cuts.retain(|cut| *cut > end);
        self.cuts.push(end);
    }

    /// The number of pieces from `nxt` on.
    pub(in crate::tcp::sender) fn count(&self, nxt: u64) -> u64 {
        let mut count = self.cuts.iter().filter(|cut| **cut > nxt).count() as u64;
        for run in self.runs.iter().filter(|run| run.end > nxt) {
            count += run.count(nxt);
        }
        count
    }

    /// Everything up to `nxt` is sent.
    fn forget(&mut self, nxt: u64) {
        while self.runs.front().is_some_and(|run| run.end <= nxt) {
            self.runs.pop_front();
        }
    }
}

impl Run {
    fn last_start(&self) -> u64 {
        self.end - 1 - (self.end - 1 - self.start) % self.piece_bytes
    }

    /// The end of the piece to which the byte at `position` belongs.
    fn end_of_piece(&self, position: u64) -> u64 {
        let whole = (position - self.start) / self.piece_bytes + 1;
        self.end.min(self.start + whole * self.piece_bytes)
    }

    /// The number of pieces that end after `position`.
    fn count(&self, position: u64) -> u64 {
        (self.end - self.start).div_ceil(self.piece_bytes) - position.saturating_sub(self.start) / self.piece_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ends of the pieces from `nxt` on.
    fn ends(pieces: &Pieces, nxt: u64, end: u64) -> Vec<u64> {
        let mut ends = vec![];
        let mut from = nxt;
        while from < end {
            from = pieces.first_end(from);
            ends.push(from);
        }
        assert_eq!(ends.is_empty(), end <= nxt);
        ends
    }

    #[test]
    fn a_write_makes_pieces_of_its_size_and_the_last_may_be_smaller() {
        let mut pieces = Pieces::default();
        pieces.append(1, 1, 251, 100);
        assert_eq!((pieces.count(1), pieces.last_start(1)), (3, 201));
        assert_eq!(ends(&pieces, 1, 251), [101, 201, 251]);
    }

    #[test]
    fn earlier_pieces_keep_their_size_when_the_goal_grows() {
        let mut pieces = Pieces::default();
        pieces.append(1, 1, 251, 100);
        // The last piece grows from 50 to 300 bytes, and is followed by one of 150.
        pieces.append(1, pieces.last_start(1), 651, 300);
        assert_eq!((pieces.count(1), pieces.last_start(1)), (4, 501));
        assert_eq!(ends(&pieces, 1, 651), [101, 201, 501, 651]);
    }

    #[test]
    fn the_rest_of_a_cut_piece_grows_to_the_full_size_only_if_it_is_the_last() {
        let mut pieces = Pieces::default();
        pieces.append(1, 1, 101, 100);
        // 20 bytes are sent.
        assert_eq!((pieces.count(21), pieces.last_start(21)), (1, 21));
        pieces.append(21, 21, 321, 100);
        assert_eq!(pieces.count(21), 3);
        // 30 more bytes are sent. 70 bytes of this piece are left, and it does not grow, because others follow it.
        assert_eq!((pieces.count(51), pieces.last_start(51)), (3, 221));
        pieces.append(51, 321, 401, 100);
        assert_eq!(ends(&pieces, 51, 401), [121, 221, 321, 401]);
    }

    #[test]
    fn a_piece_is_cut_even_if_its_beginning_is_not_sent_yet() {
        let mut pieces = Pieces::default();
        pieces.append(1, 1, 101, 100);
        pieces.cut(31);
        assert_eq!((pieces.count(1), pieces.last_start(1), pieces.first_end(1)), (2, 31, 31));
        pieces.append(1, 31, 131, 100);
        assert_eq!((pieces.count(1), pieces.count(31)), (2, 1));
    }

    #[test]
    fn what_was_cut_off_and_not_sent_can_be_cut_again() {
        let mut pieces = Pieces::default();
        pieces.append(1, 1, 101, 100);
        pieces.cut(61);
        pieces.cut(21);
        assert_eq!((pieces.count(1), pieces.last_start(1)), (3, 61));
        assert_eq!(ends(&pieces, 1, 101), [21, 61, 101]);
        assert_eq!(pieces.count(21), 2);
        // The rest after the first cut grows; the piece between the cuts does not.
        pieces.append(21, 61, 161, 100);
        assert_eq!(ends(&pieces, 21, 161), [61, 161]);
    }

    #[test]
    fn nothing_is_kept_of_what_is_sent() {
        let mut pieces = Pieces::default();
        for n in 0..10 {
            pieces.append(1 + 50 * n, 1 + 50 * n, 51 + 50 * n, 100 + n);
        }
        assert_eq!((pieces.runs.len(), pieces.count(501), pieces.last_start(501)), (1, 0, 501));
    }
}
