//! What happens when the sender's timer expires (the kernel's `tcp_timer.c`).

use super::timer::Wait;
use crate::tcp::journal::{Expiry, Trigger};
use crate::tcp::sender::recovery::prr::Progress;
use crate::tcp::sender::sending::output::Output;
use crate::tcp::sender::{Sender, State};

impl Sender {
    /// Does what is due.
    pub(crate) fn on_timer(&mut self, output: &mut Output) {
        match self.timer.expired(output.now_ns) {
            Some(Wait::Retransmit) => self.on_timeout(output),
            Some(Wait::Probe) => self.send_probe(output),
            Some(Wait::Reorder) => self.on_reorder_timeout(output),
            Some(Wait::Persist) => self.probe_window(output),
            None => {}
        }
        // Both may be due, and both are to be noted.
        let (paced, left) = (self.pacer.wakes(output.now_ns), self.small_queue.tasklet_runs(output.now_ns));
        if paced || left {
            self.resume(output);
        }
    }

    /// The pacer or the host's queue allows sending again. Retransmissions come first (`tcp_tsq_write`).
    fn resume(&mut self, output: &mut Output) {
        if self.recovery.state() >= State::Recovery {
            self.retransmit_lost(output);
        }
        self.transmit(output);
    }

    /// The reordering window has passed, so the segments that it protected now count as lost (`tcp_rack_reo_timeout`).
    fn on_reorder_timeout(&mut self, output: &mut Output) {
        let now_ns = output.now_ns;
        let (lost_before, in_flight) = (self.board.lost_total(), self.board.in_flight());
        let situation = self.situation(now_ns);
        self.rack.detect(&mut self.board, situation);
        self.note_expiry(Expiry::Reordering);
        self.report_losses(now_ns, Some(Trigger::TimeThreshold));
        if self.board.in_flight() != in_flight {
            if self.recovery.state() != State::Recovery {
                self.enter_recovery(now_ns, false, Trigger::ReorderingTimer);
                if !self.cc.governs() {
                    let lost = (self.board.lost_total() - lost_before) as u32;
                    self.reduce_window(Progress { delivered: 1, lost, advanced: false });
                }
            }
            self.retransmit_lost(output);
        }
        if self.timer.wait() != Some(Wait::Retransmit) {
            self.rearm_retransmit(now_ns);
        }
    }
}
