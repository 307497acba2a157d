//! Loss detection by time: RACK (RFC 8985, section 6; the kernel's `tcp_recovery.c`).
//!
//! A segment is lost if a segment sent after it has been delivered, and the time that a delivery takes plus a
//! reordering window has passed. The window is zero once three segments are selectively acknowledged, unless reordering
//! was seen.
//!
//! First transmissions are ordered both by sequence number and by time. So a cursor into the scoreboard replaces the
//! kernel's time-sorted list, and only retransmissions are queued.

use super::scoreboard::{Scoreboard, Sent, SentId};
use std::collections::VecDeque;

/// Number of selectively acknowledged segments that indicates a loss (RFC 5681, section 3.2), before any reordering is
/// seen.
const DUP_THRESHOLD: u32 = 3;
/// Upper limit of the reordering estimate, in packets (`tcp_max_reordering`).
const MAX_REORDERING: u64 = 300;
/// Recoveries for which a widened reordering window is kept (RFC 8985, section 6.2, step 4).
const WIDENED_RECOVERIES: u32 = 16;
const MAX_STEPS: u64 = 255;

/// State of RACK (RFC 8985, section 5.2).
#[derive(Debug)]
pub(crate) struct Rack {
    /// The latest transmission of a delivered segment (RACK.xmit_ts and RACK.end_seq approximate it).
    newest: u64,
    /// Its round-trip time (RACK.rtt).
    rtt_ns: u64,
    /// A segment was delivered since the last search for losses.
    advanced: bool,
    /// First transmissions before this one are delivered, lost, or retransmitted.
    first_open: SentId,
    /// Retransmissions, each with the number of its transmission; obsolete entries are skipped.
    retransmissions: VecDeque<(SentId, u64)>,
    reordering: Reordering,
}

/// The knowledge about the path's reordering.
#[derive(Debug)]
struct Reordering {
    seen: bool,
    /// Largest extent, in packets.
    packets: u32,
    /// Reordering window in quarters of the smallest round-trip time (RACK.reo_wnd_mult).
    steps: u64,
    /// Recoveries after which `steps` returns to one (RACK.reo_wnd_persist).
    recoveries_left: u32,
    /// A duplicate was reported, which widens the window (`dsack_seen`).
    duplicate: bool,
    /// Packets delivered when it was last widened (`last_delivered`; RACK.dsack_round).
    widened_at: u64,
}

/// The state that a search for losses needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation {
    /// Now.
    pub(crate) now_ns: u64,
    /// Smallest round-trip time.
    pub(crate) min_rtt_ns: u64,
    /// Smoothed round-trip time.
    pub(crate) srtt_ns: u64,
    /// Fast recovery or loss recovery is under way.
    pub(crate) recovering: bool,
}

impl Rack {
    /// The state before anything was delivered.
    pub(crate) fn new() -> Self {
        Self {
            newest: 0,
            rtt_ns: 0,
            advanced: false,
            first_open: 0,
            retransmissions: VecDeque::new(),
            reordering: Reordering {
                seen: false,
                packets: DUP_THRESHOLD,
                steps: 1,
                recoveries_left: 0,
                duplicate: false,
                widened_at: 0,
            },
        }
    }

    /// A segment was retransmitted.
    pub(crate) fn on_retransmit(&mut self, id: SentId, sent: &Sent) {
        self.retransmissions.push_back((id, sent.order));
    }

    /// A segment was delivered (RFC 8985, section 6.2, step 2).
    #[inline]
    pub(crate) fn on_delivered(&mut self, sent: &Sent, now_ns: u64, min_rtt_ns: u64) {
        let rtt_ns = now_ns - sent.sent_ns;
        if sent.ever_retransmitted && rtt_ns < min_rtt_ns {
            // Too early for the retransmission, so it is the original that arrived.
            return;
        }
        self.advanced = true;
        self.rtt_ns = rtt_ns;
        self.newest = self.newest.max(sent.order);
    }

    /// A segment that was sent only once has arrived after segments that were sent later (step 3).
    pub(crate) fn on_reordering(&mut self, extent_bytes: u64, mss_bytes: u32) {
        let packets = extent_bytes.div_ceil(u64::from(mss_bytes)).min(MAX_REORDERING) as u32;
        self.reordering.packets = self.reordering.packets.max(packets);
        self.reordering.seen = true;
    }

    /// The receiver got a segment twice. If the path reorders, the retransmission may have been too early.
    pub(crate) fn on_duplicate(&mut self) {
        self.reordering.duplicate |= self.reordering.seen;
    }

    /// Widens the window after a duplicate, at most once per round trip (step 4; `tcp_rack_update_reo_wnd`).
    /// `prior_delivered` is the number of packets that had been delivered when the newest delivered packet was sent;
    /// `delivered` is the current number.
    #[inline]
    pub(crate) fn update_window(&mut self, prior_delivered: u64, delivered: u64) {
        let reordering = &mut self.reordering;
        if std::mem::take(&mut reordering.duplicate) && prior_delivered >= reordering.widened_at {
            reordering.steps = (reordering.steps + 1).min(MAX_STEPS);
            reordering.widened_at = delivered;
            reordering.recoveries_left = WIDENED_RECOVERIES;
        } else if reordering.recoveries_left == 0 {
            reordering.steps = 1;
        }
    }

    /// A recovery that was not undone has ended (step 4).
    pub(crate) fn on_recovered(&mut self) {
        self.reordering.recoveries_left = self.reordering.recoveries_left.saturating_sub(1);
    }

    /// A recovery was undone because all of its retransmissions were duplicates.
    pub(crate) fn on_disproved(&mut self) {
        self.reordering.recoveries_left = (self.reordering.recoveries_left + 1).min(WIDENED_RECOVERIES);
    }

    /// The next acknowledgement triggers a search for losses, even if it delivers nothing.
    pub(crate) fn look_again(&mut self) {
        self.advanced = true;
    }

    /// Lowers the reordering estimate to at most `packets`.
    pub(crate) fn limit_reordering(&mut self, packets: u32) {
        self.reordering.packets = self.reordering.packets.min(packets);
    }

    /// The estimated number of packets by which the path reorders.
    pub(crate) fn reordering_packets(&self) -> u32 {
        self.reordering.packets
    }

    /// Whether enough segments are selectively acknowledged for others to be lost at once.
    pub(crate) fn counts_packets(&self, board: &Scoreboard) -> bool {
        board.sacked() >= self.reordering.packets && !self.reordering.seen
    }

    /// Whether more reordering was seen than duplicate acknowledgements allow for.
    pub(crate) fn reorders(&self) -> bool {
        self.reordering.packets > DUP_THRESHOLD
    }

    /// Marks lost segments (step 5). Returns when to search again, if more segments may turn out to be lost. Does
    /// nothing if nothing was delivered since the last search.
    pub(crate) fn detect_after_ack(&mut self, board: &mut Scoreboard, situation: Situation) -> Option<u64> {
        std::mem::take(&mut self.advanced).then(|| self.detect(board, situation)).flatten()
    }

    /// Like [`detect_after_ack`](Self::detect_after_ack), but unconditionally.
    pub(crate) fn detect(&mut self, board: &mut Scoreboard, situation: Situation) -> Option<u64> {
        let patience_ns = self.rtt_ns + self.window_ns(board, situation);
        let originals = self.detect_originals(board, situation.now_ns, patience_ns);
        let repeated = self.detect_retransmissions(board, situation.now_ns, patience_ns);
        originals.max(repeated)
    }

    /// After a timeout, marks everything lost except segments sent so recently that they may still arrive (RFC 8985,
    /// section 6.3).
    pub(crate) fn detect_after_timeout(&mut self, board: &mut Scoreboard, now_ns: u64) {
        let head = board.ids().start;
        for id in board.ids() {
            let Some(sent) = board.get(id) else { break };
            let recent = id != head && sent.sent_ns + self.rtt_ns > now_ns;
            let known = sent.sacked || (sent.lost && !sent.retransmitted);
            if !recent && !known {
                board.mark_lost(id);
            }
        }
    }

    /// The reordering window.
    fn window_ns(&self, board: &Scoreboard, situation: Situation) -> u64 {
        let hurried = situation.recovering || board.sacked() >= self.reordering.packets;
        if hurried && !self.reordering.seen {
            return 0;
        }
        (situation.min_rtt_ns / 4 * self.reordering.steps).min(situation.srtt_ns)
    }

    fn detect_originals(&mut self, board: &mut Scoreboard, now_ns: u64, patience_ns: u64) -> Option<u64> {
        let ids = board.ids();
        let mut look_again = None;
        for id in self.first_open.max(ids.start)..ids.end {
            let Some(sent) = board.get(id) else { break };
            let settled = sent.sacked || sent.lost || sent.ever_retransmitted;
            if !settled && sent.order >= self.newest {
                break;
            }
            let gives_up_ns = sent.sent_ns + patience_ns;
            if !settled && gives_up_ns > now_ns {
                look_again = Some(gives_up_ns);
            } else if !settled {
                board.mark_lost(id);
            }
            if look_again.is_none() {
                self.first_open = id + 1;
            }
        }
        look_again
    }

    fn detect_retransmissions(&mut self, board: &mut Scoreboard, now_ns: u64, patience_ns: u64) -> Option<u64> {
        let mut look_again = None;
        let mut settled = 0;
        for &(id, order) in &self.retransmissions {
            let waits = |sent: &&Sent| !sent.sacked && sent.order == order && (sent.retransmitted || !sent.lost);
            let current = board.get(id).filter(waits);
            if let Some(sent) = current {
                if order >= self.newest {
                    break;
                }
                let gives_up_ns = sent.sent_ns + patience_ns;
                if gives_up_ns > now_ns {
                    look_again = Some(gives_up_ns);
                    continue;
                }
                board.mark_lost(id);
            }
            settled += usize::from(look_again.is_none());
        }
        self.retransmissions.drain(..settled);
        look_again
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::segment::Flags;
    use crate::tcp::SackBlock;
    use crate::transport::delivery_rate::Note;

    const MS: u64 = 1_000_000;
    const RTT_NS: u64 = 100 * MS;

    /// Ten segments of 100 bytes, one sent every millisecond from time 0.
    fn flight() -> (Rack, Scoreboard) {
        let mut board = Scoreboard::new(100, false);
        (0..10).for_each(|n| board.push(Sent::new(1 + 100 * n, 100, Flags::NONE, n * MS, Note::default()), false));
        (Rack::new(), board)
    }

    /// Segment `n` is selectively acknowledged one round trip after it was sent.
    fn deliver(rack: &mut Rack, board: &mut Scoreboard, n: u64) -> u64 {
        let now_ns = board.get(n).unwrap().sent_ns + RTT_NS;
        let block = SackBlock { start: 1 + 100 * n, end: 101 + 100 * n };
        board.sack(&[block], |sent| rack.on_delivered(sent, now_ns, RTT_NS));
        now_ns
    }

    fn at(now_ns: u64) -> Situation {
        Situation { now_ns, min_rtt_ns: RTT_NS, srtt_ns: RTT_NS, recovering: false }
    }

    fn lost(board: &Scoreboard) -> Vec<SentId> {
        board.ids().filter(|&id| board.get(id).is_some_and(|sent| sent.lost)).collect()
    }

    #[test]
    fn what_three_later_ones_overtook_is_lost() {
        let (mut rack, mut board) = flight();
        for (n, expected) in [(2, vec![]), (4, vec![]), (6, vec![0, 1, 3, 5])] {
            let now_ns = deliver(&mut rack, &mut board, n);
            rack.detect_after_ack(&mut board, at(now_ns));
            assert_eq!(lost(&board), expected, "after {n}");
        }
    }

    #[test]
    fn with_fewer_it_is_lost_after_a_quarter_of_the_round_trip_more() {
        let (mut rack, mut board) = flight();
        let now_ns = deliver(&mut rack, &mut board, 2);
        // Segments 0 and 1 are overtaken. Segment 1 was sent at 1 ms: 1 + 100 + 25.
        assert_eq!(rack.detect_after_ack(&mut board, at(now_ns)), Some(126 * MS));
        assert_eq!(rack.detect(&mut board, at(125 * MS)), Some(126 * MS));
        assert_eq!(lost(&board), [0]);
        assert_eq!(rack.detect(&mut board, at(126 * MS)), None);
        assert_eq!(lost(&board), [0, 1]);
    }

    #[test]
    fn every_unnecessary_retransmission_widens_the_window_once_a_round_trip() {
        let (mut rack, mut board) = flight();
        rack.on_reordering(300, 100);
        // The first duplicate is reported when 10 packets have been delivered. The packet that reports the second was
        // sent before that.
        rack.on_duplicate();
        rack.update_window(5, 10);
        rack.on_duplicate();
        rack.update_window(9, 15);
        let now_ns = deliver(&mut rack, &mut board, 1);
        // The window is two quarters, not three: 0 + 100 + 50.
        assert_eq!(rack.detect_after_ack(&mut board, at(now_ns)), Some(150 * MS));
        // It lasts for 16 recoveries.
        (0..15).for_each(|_| rack.on_recovered());
        rack.update_window(20, 25);
        assert_eq!(rack.detect(&mut board, at(now_ns)), Some(150 * MS));
        rack.on_recovered();
        rack.update_window(30, 35);
        assert_eq!(rack.detect(&mut board, at(now_ns)), Some(125 * MS));
    }

    #[test]
    fn a_retransmission_overtaken_by_a_later_one_is_lost_again() {
        let (mut rack, mut board) = flight();
        for n in 7..10 {
            deliver(&mut rack, &mut board, n);
        }
        rack.detect(&mut board, at(109 * MS));
        assert_eq!(lost(&board), [0, 1, 2, 3, 4, 5, 6]);
        for id in [0, 1] {
            let sent = board.retransmit(id, 110 * MS, Note::default(), false, false);
            rack.on_retransmit(id, &sent);
        }
        // The second arrives, which was sent at the same time as the first but after it.
        let now_ns = deliver(&mut rack, &mut board, 1);
        rack.detect_after_ack(&mut board, Situation { recovering: true, ..at(now_ns) });
        assert_eq!((board.next_to_retransmit(), board.retransmitted()), (Some(0), 0));
    }

    #[test]
    fn a_tail_probe_that_repeated_what_had_arrived_is_never_lost() {
        let (mut rack, mut board) = flight();
        deliver(&mut rack, &mut board, 9);
        // The probe repeats the last segment, which was selectively acknowledged; new data sent after it arrives.
        let probe = board.retransmit(9, 110 * MS, Note::default(), false, false);
        rack.on_retransmit(9, &probe);
        board.push(Sent::new(1001, 100, Flags::NONE, 111 * MS, Note::default()), false);
        let now_ns = deliver(&mut rack, &mut board, 10);
        rack.detect(&mut board, Situation { recovering: true, ..at(now_ns + RTT_NS) });
        assert_eq!(lost(&board), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn an_answer_too_early_for_a_retransmission_does_not_date_it() {
        let (mut rack, mut board) = flight();
        board.mark_lost(0);
        board.retransmit(0, 200 * MS, Note::default(), false, false);
        let sent = *board.get(0).unwrap();
        rack.on_delivered(&sent, 250 * MS, RTT_NS);
        assert!(!rack.advanced);
    }

    #[test]
    fn a_timeout_spares_what_was_sent_within_the_last_round_trip() {
        let (mut rack, mut board) = flight();
        deliver(&mut rack, &mut board, 5);
        // At 104 ms, segments sent from 5 ms on may still arrive. Segment 4 has had its 100 ms.
        rack.detect_after_timeout(&mut board, 104 * MS);
        assert_eq!(lost(&board), [0, 1, 2, 3, 4]);
    }
}
