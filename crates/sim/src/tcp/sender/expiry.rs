//! What happens when the sender's timer expires (the kernel's `tcp_timer.c`).

use super::super::congestion::RttSample;
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
        // The threshold is set once for a flight of data, however often it times out.
        if self.recovery.state() <= State::Disorder || self.una >= self.recovery.end() {
            self.cc.on_congestion();
            self.ecn.cwr_due = self.ecn.enabled;
        }
        self.cc.set_cwnd(self.board.in_flight() + 1);
        self.cc.on_timeout(&RttSample { now_ns, rtt_ns: 0, una: self.una, nxt: self.nxt });
        self.recovery.enter(State::Loss, self.nxt);
        self.probe.cancel();
    }

    /// The reordering window has passed: what it protected is lost now.
    fn on_reorder_timeout(&mut self, output: &mut Output) {
        let lost_before = self.board.lost_total();
        let situation = self.situation(output.now_ns);
        let look_again = self.rack.detect(&mut self.board, situation);
        if self.board.lost_total() > lost_before {
            if self.recovery.state() < State::Recovery {
                self.enter_recovery();
            }
            self.reduce_window(Progress { delivered: 1, lost: 0, advanced: false });
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
