//! Undoing an unfounded reduction of the window (the kernel's `tcp_try_undo_*`).
//!
//! A reduction is unfounded if nothing was lost. There are two signs of that. First, every retransmission of the
//! episode is reported as a duplicate (RFC 3708). Second, the acknowledgement that ends the episode echoes a clock
//! value older than the first retransmission, so the original has arrived (the Eifel algorithm, RFC 3522; RFC 4015 for
//! the response). A reduction after an ECN echo is never undone.

use crate::tcp::journal::{Sign, Transition, Trigger};
use crate::tcp::sender::{Sender, State};
use crate::tcp::timestamps;

/// What is needed to undo the current reduction.
#[derive(Debug, Default)]
pub(crate) struct Undo {
    /// SND.UNA when the reduction began; `None` if there is nothing to undo (`undo_marker`).
    marker: Option<u64>,
    /// Number of retransmissions not yet reported as duplicates; `None` until the first retransmission
    /// (`undo_retrans`).
    unproven: Option<u32>,
    /// The threshold to return to; `None` if the reduction was justified (`prior_ssthresh`).
    prior_ssthresh: Option<u32>,
    /// The timestamp of the first retransmission (`retrans_stamp`).
    first_retransmission: Option<u32>,
}

impl Undo {
    /// A reduction begins. `in_flight` retransmissions are in flight, which may still be reported as duplicates.
    pub(crate) fn begin(&mut self, una: u64, in_flight: u32, prior_ssthresh: Option<u32>) {
        self.marker = Some(una);
        self.unproven = Some(in_flight).filter(|&count| count > 0);
        self.prior_ssthresh = prior_ssthresh;
    }

    /// Whether a reduction can be undone.
    pub(crate) fn is_possible(&self) -> bool {
        self.marker.is_some()
    }

    /// The reduction of the window can no longer be undone.
    pub(crate) fn rule_out(&mut self) {
        self.marker = None;
        self.prior_ssthresh = None;
    }

    /// Congestion is certain. The window and threshold stay reduced, even if the losses turn out to be spurious.
    pub(crate) fn keep_reduced(&mut self) {
        self.prior_ssthresh = None;
    }

    /// No retransmission is in flight, so the next one will be the first.
    pub(crate) fn forget_first_retransmission(&mut self) {
        self.first_retransmission = None;
    }

    /// A segment was retransmitted with the timestamp `clock`.
    pub(crate) fn on_retransmission(&mut self, clock: u32) {
        self.first_retransmission.get_or_insert(clock);
        self.unproven = Some(self.unproven.unwrap_or(0) + 1);
    }

    /// `segments`, ending at `end`, are reported as duplicates.
    pub(crate) fn on_duplicate(&mut self, end: u64, segments: u32) {
        if let (Some(marker), Some(unproven)) = (self.marker, &mut self.unproven)
            && end > marker
        {
            *unproven = unproven.saturating_sub(segments);
        }
    }

    /// All retransmissions were duplicates.
    fn is_disproved(&self) -> bool {
        self.is_possible() && self.unproven == Some(0)
    }

    /// The echo `ecr` is older than the first retransmission, or there was none (`tcp_packet_delayed`).
    fn was_only_delayed(&self, ecr: u32) -> bool {
        self.first_retransmission.is_none_or(|first| timestamps::is_before(ecr, first))
    }

    /// Whether there is either of the two signs, and which.
    fn disproof(&self, ecr: u32) -> Option<Sign> {
        if self.is_disproved() {
            return Some(Sign::Duplicates);
        }
        (self.is_possible() && self.was_only_delayed(ecr)).then_some(Sign::Timestamps)
    }
}

impl Sender {
    /// Recovery is over. It is undone if it was unfounded (`tcp_try_undo_recovery`).
    pub(in crate::tcp::sender) fn finish_recovery(&mut self, now_ns: u64, ecr: u32) {
        let trigger = match self.undo.disproof(ecr) {
            Some(sign) => {
                self.undo_reduction(now_ns, false, sign);
                Trigger::Undone
            }
            None => {
                self.rack.on_recovered();
                Trigger::Acknowledged
            }
        };
        self.set_state(now_ns, State::Open, trigger);
    }

    /// Undoes the reduction if all retransmissions are reported as duplicates (`tcp_try_undo_dsack`). Returns whether
    /// it did.
    pub(in crate::tcp::sender) fn undo_by_duplicates(&mut self, now_ns: u64) -> bool {
        let disproved = self.undo.is_disproved();
        if disproved {
            self.rack.on_disproved();
            self.undo_reduction(now_ns, false, Sign::Duplicates);
        }
        disproved
    }

    /// Undoes a timeout that F-RTO or the acknowledgement shows to be spurious (`tcp_try_undo_loss`).
    pub(in crate::tcp::sender) fn undo_timeout(&mut self, now_ns: u64, ecr: u32, by_frto: bool) -> bool {
        let sign = if by_frto { Some(Sign::ForwardRto) } else { self.undo.disproof(ecr) };
        if let Some(sign) = sign {
            self.undo_reduction(now_ns, true, sign);
            self.frto.timeouts = 0;
            self.set_state(now_ns, State::Open, Trigger::Undone);
        }
        sign.is_some()
    }

    /// Whether the hole was filled by the delayed original, and not by its retransmission (`tcp_try_undo_partial`).
    pub(in crate::tcp::sender) fn was_delayed(&self, ecr: u32) -> bool {
        self.undo.is_possible() && self.undo.was_only_delayed(ecr)
    }

    /// Undoes a reduction (`tcp_undo_cwnd_reduction`). With `unmark`, no segment counts as lost any more.
    pub(in crate::tcp::sender) fn undo_reduction(&mut self, now_ns: u64, unmark: bool, sign: Sign) {
        if unmark {
            self.board.unmark_losses();
        }
        if let Some(prior) = self.undo.prior_ssthresh {
            let cwnd = self.cc.undo(&self.context(now_ns));
            self.set_cwnd(cwnd);
            let window = self.cc.window_mut();
            if prior > window.ssthresh {
                window.ssthresh = prior;
                self.marks.withdraw();
            }
        }
        self.usage.stamp(now_ns);
        self.undo.marker = None;
        self.rack.look_again();
        self.note(|change| Transition::Undone { sign, change });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reduction that began at sequence number 1000, with `retransmissions` retransmissions at clock 50.
    fn reduced(retransmissions: u32) -> Undo {
        let mut undo = Undo::default();
        undo.begin(1000, 0, Some(20));
        (0..retransmissions).for_each(|_| undo.on_retransmission(50));
        undo
    }

    #[test]
    fn duplicates_of_all_retransmissions_disprove_the_loss() {
        let mut undo = reduced(2);
        undo.on_duplicate(1500, 1);
        assert!(!undo.is_disproved());
        undo.on_duplicate(2000, 1);
        assert!(undo.is_disproved());
    }

    #[test]
    fn a_duplicate_of_something_older_proves_nothing() {
        let mut undo = reduced(1);
        undo.on_duplicate(1000, 1);
        assert!(!undo.is_disproved());
    }

    #[test]
    fn before_anything_was_retransmitted_nothing_is_disproved() {
        assert!(!reduced(0).is_disproved());
        // But then an acknowledgement that ends the episode shows that the segment was only delayed.
        assert_eq!(reduced(0).disproof(60), Some(Sign::Timestamps));
    }

    #[test]
    fn an_echo_from_before_the_first_retransmission_is_the_originals() {
        assert_eq!(reduced(3).disproof(49), Some(Sign::Timestamps));
        assert_eq!(reduced(3).disproof(50), None);
        // 0 means that there is no echo.
        assert_eq!(reduced(3).disproof(0), None);
    }

    #[test]
    fn a_retransmission_already_under_way_counts() {
        let mut undo = Undo::default();
        undo.begin(1000, 1, Some(20));
        undo.on_duplicate(1500, 1);
        assert!(undo.is_disproved());
    }
}
