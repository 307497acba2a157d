//! What happens when the sender's timer expires (the kernel's `tcp_timer.c`).

use super::super::congestion::Event;
use super::recovery::Progress;
use super::timer::Wait;
use super::transmit::Output;
use super::{Sender, State};

impl Sender {
    /// Does what is due.
    pub(crate) fn on_timer(&mut self, output: &mut Output) {
        match self.timer.expire(output.now_ns) {
            Some(Wait::Retransmit) => self.on_timeout(output),
            Some(Wait::Probe) => self.send_probe(output),
            Some(Wait::Reorder) => self.on_reorder_timeout(output),
            Some(Wait::Persist) => self.probe_window(output),
            None => {}
        }
        if self.pacer.wakes(output.now_ns) {
            self.on_pace(output);
        }
    }

    /// The pacer lets go: repairs come first (`tcp_tsq_write`).
    fn on_pace(&mut self, output: &mut Output) {
        if self.recovery.state() >= State::Recovery {
            self.repair(output);
        }
        self.transmit(output);
    }

    /// The retransmission timeout (RFC 6298, rules 5.4 to 5.6; RFC 5681, section 3.1, equation 4).
    fn on_timeout(&mut self, output: &mut Output) {
        if self.board.packets_out() == 0 {
            return;
        }
        self.enter_loss(output.now_ns);
        let head = self.board.ids().start;
        self.retransmit(head, output);
        self.timer.back_off();
        self.timer.arm(Wait::Retransmit, output.now_ns + self.timer.rto_ns(&self.rtt));
    }

    /// Everything outstanding is lost, unless it was sent just now; the window starts from one packet.
    fn enter_loss(&mut self, now_ns: u64) {
        self.rack.detect_after_timeout(&mut self.board, now_ns);
        self.report_losses(now_ns);
        // The threshold is set once for a flight of data, however often it times out.
        if self.recovery.state() <= State::Disorder || self.una >= self.recovery.end() {
            let window = self.cc.window_mut();
            window.prior_cwnd = window.cwnd;
            self.reduce_threshold(now_ns);
            self.cc.on_event(&self.context(now_ns), Event::Timeout);
        }
        self.set_cwnd(self.board.in_flight() + 1);
        self.cc.window_mut().credit = 0;
        self.enter(now_ns, State::Loss, self.nxt);
        self.probe.cancel();
    }

    /// The reordering window has passed: what it protected is lost now.
    fn on_reorder_timeout(&mut self, output: &mut Output) {
        let lost_before = self.board.lost_total();
        let situation = self.situation(output.now_ns);
        let look_again = self.rack.detect(&mut self.board, situation);
        self.report_losses(output.now_ns);
        if self.board.lost_total() > lost_before {
            if self.recovery.state() < State::Recovery {
                self.enter_recovery(output.now_ns);
            }
            if !self.cc.governs() {
                self.reduce_window(Progress { delivered: 1, lost: 0, advanced: false });
            }
            self.repair(output);
        }
        if let Some(look_again_ns) = look_again {
            self.timer.arm(Wait::Reorder, look_again_ns);
        }
        if self.timer.wait().is_none() {
            self.rearm_retransmit(output.now_ns);
        }
    }
}
