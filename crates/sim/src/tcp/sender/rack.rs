//! Loss detection by time: RACK (RFC 8985, section 6; the kernel's `tcp_recovery.c`).
//!
//! A segment is lost when one sent after it has been delivered and the time a delivery takes has passed, plus a reordering
//! window. The window is nothing once three segments are selectively acknowledged, unless reordering was seen.
//!
//! First transmissions are in order of sequence number and of time at once, so a cursor into the scoreboard replaces the
//! kernel's time-sorted list; only retransmissions are queued.

use super::scoreboard::{Scoreboard, Sent, SentId};
use std::collections::VecDeque;

/// Selectively acknowledged segments that make a loss (RFC 5681, section 3.2), before any reordering is seen.
const DUP_THRESHOLD: u32 = 3;
/// Most packets of reordering that are believed (`tcp_max_reordering`).
const MAX_REORDERING: u64 = 300;
/// Recoveries for which a widened reordering window is kept (RFC 8985, section 6.2, step 4).
const WIDENED_RECOVERIES: u32 = 16;
const MAX_STEPS: u64 = 255;

/// State of RACK (RFC 8985, section 5.2).
#[derive(Debug)]
pub(crate) struct Rack {
    /// The latest transmission of which the segment was delivered (what RACK.xmit_ts and RACK.end_seq approximate).
    newest: u64,
    /// Its round-trip time (RACK.rtt).
    rtt_ns: u64,
    /// Something was delivered since losses were last looked for.
    advanced: bool,
    /// First transmissions before this one are delivered, lost, or sent again.
    first_open: SentId,
    /// Retransmissions, each with the number of its transmission; entries that no longer hold are skipped.
    retransmissions: VecDeque<(SentId, u64)>,
    reordering: Reordering,
}

/// What is known about the path's reordering.
#[derive(Debug)]
struct Reordering {
    seen: bool,
    /// Largest extent, in packets.
    packets: u32,
    /// Reordering window in quarters of the smallest round-trip time (RACK.reo_wnd_mult).
    steps: u64,
    /// Recoveries after which `steps` returns to one (RACK.reo_wnd_persist).
    recoveries_left: u32,
    /// A duplicate counts again from this sequence number on (RACK.dsack_round).
    round_end: u64,
}

/// What a search for losses needs to know.
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
    /// Nothing delivered yet.
    pub(crate) fn new() -> Self {
        Self {
            newest: 0,
            rtt_ns: 0,
            advanced: false,
            first_open: 0,
            retransmissions: VecDeque::new(),
            reordering: Reordering { seen: false, packets: DUP_THRESHOLD, steps: 1, recoveries_left: 0, round_end: 0 },
        }
    }

    /// A segment was sent again.
    pub(crate) fn on_retransmit(&mut self, id: SentId, sent: &Sent) {
        self.retransmissions.push_back((id, sent.order));
    }

    /// A segment was delivered (RFC 8985, section 6.2, step 2).
    #[inline]
    pub(crate) fn on_delivered(&mut self, sent: &Sent, now_ns: u64, min_rtt_ns: u64) {
        let rtt_ns = now_ns - sent.sent_ns;
        if sent.ever_retransmitted && rtt_ns < min_rtt_ns {
            // Too early for the retransmission: it was the original that arrived.
            return;
        }
        self.advanced = true;
        self.rtt_ns = rtt_ns;
        self.newest = self.newest.max(sent.order);
    }

    /// A segment that was sent once arrived after others that were sent later (step 3).
    pub(crate) fn on_reordering(&mut self, extent_bytes: u64, mss_bytes: u32) {
        let packets = extent_bytes.div_ceil(u64::from(mss_bytes)).min(MAX_REORDERING) as u32;
        self.reordering.packets = self.reordering.packets.max(packets);
        self.reordering.seen = true;
    }

    /// The receiver got something twice, so a retransmission was unnecessary: widens the window, once a round trip (step 4).
    pub(crate) fn on_duplicate(&mut self, una: u64, nxt: u64) {
        let reordering = &mut self.reordering;
        if una >= reordering.round_end {
            reordering.round_end = nxt;
            reordering.steps = (reordering.steps + 1).min(MAX_STEPS);
            reordering.recoveries_left = WIDENED_RECOVERIES;
        }
    }

    /// A recovery has ended (step 4).
    pub(crate) fn on_recovered(&mut self) {
        let reordering = &mut self.reordering;
        reordering.recoveries_left = reordering.recoveries_left.saturating_sub(1);
        if reordering.recoveries_left == 0 {
            reordering.steps = 1;
        }
    }

    /// Has more reordering been seen than duplicate acknowledgements allow for?
    pub(crate) fn reorders(&self) -> bool {
        self.reordering.packets > DUP_THRESHOLD
    }

    /// Marks what is lost (step 5). Returns the time at which to look again, if something may yet turn out to be lost. Does
    /// nothing if nothing was delivered since the last time.
    pub(crate) fn detect_after_ack(&mut self, board: &mut Scoreboard, situation: Situation) -> Option<u64> {
        std::mem::take(&mut self.advanced).then(|| self.detect(board, situation)).flatten()
    }

    /// As [`detect_after_ack`](Self::detect_after_ack), in any case.
    pub(crate) fn detect(&mut self, board: &mut Scoreboard, situation: Situation) -> Option<u64> {
        let patience_ns = self.rtt_ns + self.window_ns(board, situation);
        let originals = self.detect_originals(board, situation.now_ns, patience_ns);
        let repeated = self.detect_retransmissions(board, situation.now_ns, patience_ns);
        originals.max(repeated)
    }

    /// After a timeout everything is lost that was not sent so recently that it may yet arrive (RFC 8985, section 6.3).
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
            let current = board.get(id).filter(|sent| sent.retransmitted && sent.order == order);
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
