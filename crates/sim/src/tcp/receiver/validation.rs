//! Which segments are acceptable, and the answer to the others (the kernel's `tcp_validate_incoming`).
//!
//! Departs: a connection that is idle for 24 days still rejects old timestamps.

use super::{Receiver, RoundTrip};
use crate::network::segment::Segment;
use crate::tcp::timestamps;

/// By how much a timestamp may be older than the newest one (`TCP_PAWS_WINDOW`).
const OLDER_MS: u32 = 1;
/// Invalid segments without payload are answered no more often than this (`net.ipv4.tcp_invalid_ratelimit`).
const ANSWER_GAP_NS: u64 = 500_000_000;

impl Receiver {
    /// Whether the segment is no old duplicate by its timestamp (PAWS: RFC 7323, section 5.3) and lies in the window
    /// (RFC 9293, section 3.10.7.4, first check). If not, it is dropped, and an acknowledgement may now be due.
    /// `repeats` says whether the segment acknowledges the same as the one before and offers the same window.
    #[inline]
    pub(crate) fn accepts(
        &mut self,
        now_ns: u64,
        segment: &Segment,
        round_trip: RoundTrip,
        repeats: impl FnOnce(&Segment) -> bool,
    ) -> bool {
        let next = self.reassembly.next();
        let is_old = timestamps::is_before(segment.ts_val, self.ts_recent)
            && self.is_old_duplicate(segment, round_trip, repeats);
        let is_in_window = segment.end() >= self.acked && segment.seq <= next + self.window.offered(next);
        if !is_old && is_in_window {
            return true;
        }
        self.answer_invalid(now_ns, segment, round_trip);
        false
    }

    /// Whether a segment with an earlier timestamp is to be dropped (`tcp_paws_discard`). An acknowledgement that was
    /// overtaken and says nothing new is kept (`tcp_disordered_ack`).
    #[cold]
    fn is_old_duplicate(
        &self,
        segment: &Segment,
        round_trip: RoundTrip,
        repeats: impl FnOnce(&Segment) -> bool,
    ) -> bool {
        let older_ms = self.ts_recent.wrapping_sub(segment.ts_val);
        let is_overtaken = || {
            // As in the kernel, a timeout in ms is multiplied by 1024 / 1000.
            let most_ms = round_trip.rto_ns / 1_000_000 * 1024 / 1000;
            segment.seq == self.reassembly.next()
                && segment.end() == segment.seq
                && u64::from(older_ms) <= most_ms
                && repeats(segment)
        };
        older_ms > OLDER_MS && !is_overtaken()
    }

    /// Acknowledges what has arrived, in answer to a segment that is dropped (`tcp_send_dupack`).
    #[cold]
    fn answer_invalid(&mut self, now_ns: u64, segment: &Segment, round_trip: RoundTrip) {
        if segment.end() == segment.seq {
            if self.answered_invalid_ns.is_some_and(|at_ns| now_ns < at_ns + ANSWER_GAP_NS) {
                return;
            }
            self.answered_invalid_ns = Some(now_ns);
        } else if segment.seq < self.reassembly.next() {
            self.reassembly.report_duplicate(segment.seq, segment.end().min(self.reassembly.next()));
            self.delayed.hurry(self.pace(round_trip));
        }
        self.delayed.repeat();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{MS, ROUND_TRIP, full, receiver};
    use super::*;
    use crate::network::traffic_class::Ecn;

    /// The first segment that has not arrived is this one.
    const NEXT: u64 = 20;
    /// When the newest segment in order arrived, which is also when it was sent.
    const NEWEST_MS: u32 = 19;

    fn pure(sent_ms: u32) -> Segment {
        Segment { len: 0, ..full(NEXT, sent_ms) }
    }

    fn accepts(receiver: &mut Receiver, at_ms: u64, segment: &Segment, repeats: bool) -> bool {
        receiver.accepts(at_ms * MS, segment, ROUND_TRIP, |_| repeats)
    }

    /// The blocks of the acknowledgement that is sent now.
    fn reported(receiver: &mut Receiver) -> Vec<(u64, u64)> {
        let answer = receiver.acknowledge(true);
        answer.sack.iter(answer.ack).map(|block| (block.start, block.end)).collect()
    }

    #[test]
    fn data_that_was_sent_before_the_newest_is_dropped_and_not_selectively_acknowledged() {
        let mut receiver = receiver();
        assert!(accepts(&mut receiver, 20, &full(NEXT + 1, NEWEST_MS - 1), true));
        assert!(!receiver.owes(20 * MS));
        assert!(!accepts(&mut receiver, 20, &full(NEXT + 1, NEWEST_MS - 2), true));
        assert!(receiver.owes(20 * MS));
        assert!(receiver.acknowledge(true).sack.is_empty());
    }

    #[test]
    fn an_old_duplicate_is_reported() {
        let mut receiver = receiver();
        let old = full(3, NEWEST_MS - 10);
        assert!(!accepts(&mut receiver, 20, &old, true));
        assert_eq!(reported(&mut receiver), [(old.seq, old.end())]);
    }

    #[test]
    fn of_old_data_that_also_brings_new_only_what_had_arrived_is_a_duplicate() {
        let mut receiver = receiver();
        let old = Segment { len: 2 * 1448, ..full(NEXT - 1, NEWEST_MS - 10) };
        assert!(!accepts(&mut receiver, 20, &old, true));
        assert_eq!(reported(&mut receiver), [(old.seq, full(NEXT, 0).seq)]);
    }

    #[test]
    fn an_overtaken_acknowledgement_is_kept_if_it_says_nothing_new_and_is_not_too_old() {
        let mut receiver = receiver();
        assert!(accepts(&mut receiver, 20, &pure(NEWEST_MS - 10), true));
        assert!(!accepts(&mut receiver, 20, &pure(NEWEST_MS - 10), false));
        // The timeout is 220 ms, and 225 on the kernel's scale.
        assert!(accepts(&mut receiver, 20, &pure(NEWEST_MS.wrapping_sub(225)), true));
        assert!(!accepts(&mut receiver, 20, &pure(NEWEST_MS.wrapping_sub(226)), true));
    }

    #[test]
    fn invalid_segments_without_payload_are_answered_twice_a_second() {
        let mut receiver = receiver();
        let mut answers = |at_ms: u64, segment: &Segment| {
            assert!(!accepts(&mut receiver, at_ms, segment, false));
            let owes = receiver.owes(at_ms * MS);
            receiver.acknowledge(true);
            owes
        };
        let overtaken = pure(NEWEST_MS - 10);
        assert!(answers(20, &overtaken));
        assert!(!answers(519, &overtaken));
        assert!(answers(519, &full(NEXT + 1, NEWEST_MS - 10)));
        assert!(answers(520, &overtaken));
    }

    #[test]
    fn the_clock_that_is_echoed_never_goes_back() {
        let mut receiver = receiver();
        let slightly_older = full(NEXT, NEWEST_MS - 1);
        assert!(accepts(&mut receiver, 20, &slightly_older, true));
        receiver.note_clock(&slightly_older);
        receiver.on_segment(20 * MS, &slightly_older, Ecn::NotEct, ROUND_TRIP);
        let answer = receiver.acknowledge(true);
        assert_eq!((answer.ack, answer.ts_ecr), (slightly_older.end(), NEWEST_MS));
    }
}
