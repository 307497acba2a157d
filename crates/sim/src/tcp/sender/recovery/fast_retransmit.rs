//! The congestion states: processes acknowledgements while there is, or was, a sign of loss or congestion (the kernel's
//! `tcp_fastretrans_alert`).

use crate::tcp::journal::{Sign, Trigger};
use crate::tcp::sender::ack_summary::AckSummary;
use crate::tcp::sender::timing::timer::Wait;
use crate::tcp::sender::{Sender, State};

/// Shortest wait for reordered segments (`TCP_TIMEOUT_MIN_US`).
const REORDER_SLACK_NS: u64 = 2_000_000;

/// What to send after an acknowledgement, before new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retransmit {
    /// No retransmission.
    Nothing,
    /// The lost segments.
    Lost,
    /// New data, to find out whether anything is lost (F-RTO).
    NewFirst,
}

impl Sender {
    /// Leaves states that are over, undoes unfounded reductions, looks for losses, and enters new states.
    #[inline(never)]
    pub(in crate::tcp::sender) fn fast_retransmit_alert(
        &mut self,
        now_ns: u64,
        summary: &mut AckSummary,
    ) -> Retransmit {
        if summary.echo {
            self.undo.keep_reduced();
        }
        if self.recovery.state() == State::Open {
            self.undo.forget_first_retransmission();
        } else if self.una >= self.recovery.end() {
            self.leave_finished_state(now_ns, summary);
        }
        match self.recovery.state() {
            State::Recovery => self.in_recovery(now_ns, summary),
            State::Loss => self.in_loss(now_ns, summary),
            State::Open | State::Disorder | State::Cwr => self.undisturbed(now_ns, summary),
        }
    }

    /// Everything that was outstanding when the state began has been acknowledged.
    fn leave_finished_state(&mut self, now_ns: u64, summary: &AckSummary) {
        match self.recovery.state() {
            // One more segment must be acknowledged, to be sure that the CWR flag has reached the receiver.
            State::Cwr if self.una > self.recovery.end() => {
                self.end_reduction(now_ns);
                self.set_state(now_ns, State::Open, Trigger::Acknowledged);
            }
            State::Recovery => {
                self.finish_recovery(now_ns, summary.ecr);
                self.end_reduction(now_ns);
            }
            _ => {}
        }
    }

    fn in_recovery(&mut self, now_ns: u64, summary: &mut AckSummary) -> Retransmit {
        if summary.advanced && self.was_delayed(summary.ecr) {
            // A delayed packet fills the hole. If no retransmission is in flight, there was no loss at all. Otherwise,
            // no further segment is considered lost until the retransmissions are answered.
            self.note_reordering(summary.una_before);
            if self.board.retransmitted() > 0 {
                return Retransmit::Nothing;
            }
            self.forget_retransmissions_if_none();
            self.undo_reduction(now_ns, true, Sign::Timestamps);
            self.keep_open(now_ns, Some(Trigger::Undone));
        }
        if self.undo_by_duplicates(now_ns) {
            self.try_to_open(now_ns, summary.echo);
        }
        self.find_losses(now_ns, summary);
        if self.recovery.state() != State::Recovery {
            // The recovery is undone. If a loss is evident, another recovery begins.
            if self.board.lost() == 0 {
                return Retransmit::Nothing;
            }
            self.enter_recovery(now_ns, summary.echo, self.loss_trigger());
        }
        Retransmit::Lost
    }

    fn in_loss(&mut self, now_ns: u64, summary: &mut AckSummary) -> Retransmit {
        let retransmit = self.process_loss(now_ns, summary);
        self.find_losses(now_ns, summary);
        if self.recovery.state() == State::Open || summary.retransmission_lost {
            return self.undisturbed(now_ns, summary);
        }
        retransmit
    }

    fn undisturbed(&mut self, now_ns: u64, summary: &mut AckSummary) -> Retransmit {
        if self.recovery.state() <= State::Disorder {
            self.undo_by_duplicates(now_ns);
        }
        self.find_losses(now_ns, summary);
        if self.board.lost() == 0 {
            self.try_to_open(now_ns, summary.echo);
            return Retransmit::Nothing;
        }
        self.enter_recovery(now_ns, summary.echo, self.loss_trigger());
        Retransmit::Lost
    }

    /// Lets RACK search for losses (`tcp_identify_packet_loss`).
    fn find_losses(&mut self, now_ns: u64, summary: &mut AckSummary) {
        let retransmitted_before = self.board.retransmitted();
        let situation = self.situation(now_ns);
        let look_again = self.rack.detect_after_ack(&mut self.board, situation);
        self.report_losses(now_ns, None);
        summary.retransmission_lost |= self.board.retransmitted() < retransmitted_before;
        if let Some(look_again_ns) = look_again {
            let delay_ns = look_again_ns.saturating_sub(now_ns) + REORDER_SLACK_NS;
            self.timer.arm(Wait::Reorder, now_ns, delay_ns.min(self.timer.rto_ns()));
            summary.waits_for_reordered = true;
        }
    }

    /// Begins fast recovery. A reduction for an ECN echo that has already begun continues, so that the window is
    /// reduced only once.
    pub(in crate::tcp::sender) fn enter_recovery(&mut self, now_ns: u64, echo: bool, trigger: Trigger) {
        self.forget_retransmissions_if_none();
        let reducing = self.recovery.is_reducing();
        let prior = (!reducing && !echo).then(|| self.cc.window().current_ssthresh(false));
        self.undo.begin(self.una, self.retransmissions_under_way(), prior);
        if reducing {
            self.set_state(now_ns, State::Recovery, trigger);
        } else {
            self.begin_reduction(now_ns, State::Recovery, trigger);
        }
    }

    /// The number of retransmissions that may still be reported as duplicates.
    pub(in crate::tcp::sender) fn retransmissions_under_way(&self) -> u32 {
        self.board.retransmitted() + u32::from(self.probe.repeated_end().is_some())
    }

    /// The rule by which an acknowledgement has shown a loss.
    fn loss_trigger(&self) -> Trigger {
        if self.rack.counts_packets(&self.board) { Trigger::ReorderingThreshold } else { Trigger::TimeThreshold }
    }

    /// Notifies the congestion control of the packets that were marked lost, if it asks for that. They were found by
    /// `trigger`, or by an acknowledgement.
    pub(in crate::tcp::sender) fn report_losses(&mut self, now_ns: u64, trigger: Option<Trigger>) {
        if self.journal.is_some() {
            self.note_losses(trigger.unwrap_or_else(|| self.loss_trigger()));
        }
        if self.cc.watches_losses() {
            for lost in self.board.take_losses() {
                self.cc.on_lost(&self.context(now_ns), &lost);
            }
        }
    }

    /// Nothing is lost. Reduces the window if the peer echoed congestion; otherwise notes whether anything is out of
    /// order (`tcp_try_to_open`).
    fn try_to_open(&mut self, now_ns: u64, echo: bool) {
        self.forget_retransmissions_if_none();
        if echo {
            self.enter_cwr(now_ns, Trigger::EcnEcho);
        }
        if self.recovery.state() != State::Cwr {
            self.keep_open(now_ns, None);
        }
    }

    /// Congestion without loss: reduces the window unless a reduction is already under way. This reduction is never
    /// undone (`tcp_enter_cwr`).
    #[cold]
    pub(in crate::tcp::sender) fn enter_cwr(&mut self, now_ns: u64, trigger: Trigger) {
        self.undo.keep_reduced();
        if self.recovery.state() < State::Cwr {
            self.undo.rule_out();
            self.begin_reduction(now_ns, State::Cwr, trigger);
        }
    }

    /// Enters `Disorder` if any segment is selectively acknowledged, lost or retransmitted, and otherwise `Open`
    /// (`tcp_try_keep_open`).
    pub(in crate::tcp::sender) fn keep_open(&mut self, now_ns: u64, trigger: Option<Trigger>) {
        let untidy = self.board.sacked() + self.board.lost() > 0 || self.any_retransmission();
        let (state, reason) =
            if untidy { (State::Disorder, Trigger::OutOfOrder) } else { (State::Open, Trigger::Acknowledged) };
        if state != self.recovery.state() {
            self.enter(now_ns, state, self.nxt, trigger.unwrap_or(reason));
        }
    }

    fn forget_retransmissions_if_none(&mut self) {
        if !self.any_retransmission() {
            self.undo.forget_first_retransmission();
        }
    }

    /// Whether any outstanding segment was retransmitted (`tcp_any_retrans_done`).
    fn any_retransmission(&self) -> bool {
        self.board.retransmitted() > 0 || self.board.head().is_some_and(|head| head.ever_retransmitted)
    }
}
