//! The retransmission timeout and its consequences: everything outstanding is lost, unless F-RTO finds that the timeout
//! was spurious (RFC 6298, rules 5.4 to 5.6; RFC 5682; the kernel's `tcp_enter_loss` and `tcp_process_loss`).

use crate::tcp::journal::{Expiry, Trigger};
use crate::tcp::sender::ack_summary::AckSummary;
use crate::tcp::sender::recovery::fast_retransmit::Retransmit;
use crate::tcp::sender::sending::output::{HOST_BUSY_NS, Output};
use crate::tcp::sender::timing::timer::Wait;
use crate::tcp::sender::{Sender, State};
use crate::transport::congestion::Event;

/// If this many segments are selectively acknowledged at a timeout, reordering was overestimated (`tcp_reordering`).
const REORDERING_DEFAULT: u32 = 3;

/// State of F-RTO, in the variant with selective acknowledgements (RFC 5682, section 3.1).
#[derive(Debug, Default)]
pub(crate) struct Frto {
    /// The timeout may still turn out to be spurious.
    suspects: bool,
    /// Timeouts since SND.UNA last advanced (`icsk_retransmits`).
    pub(crate) timeouts: u32,
}

impl Sender {
    /// Handles a retransmission timeout.
    pub(in crate::tcp::sender) fn on_timeout(&mut self, output: &mut Output) {
        if self.board.packets_out() == 0 {
            return;
        }
        output.out.rehash();
        self.note_expiry(Expiry::Retransmission);
        self.enter_loss(output.now_ns);
        self.frto.timeouts += 1;
        let head = self.board.ids().start;
        if !self.still_in_host_queue(head) && !self.retransmit(head, 1, output) {
            return self.timer.arm(Wait::Retransmit, output.now_ns, HOST_BUSY_NS);
        }
        self.timer.back_off();
        self.timer.arm(Wait::Retransmit, output.now_ns, self.timer.rto_ns());
    }

    /// Marks everything outstanding lost, unless it was sent very recently. The window restarts from one packet.
    fn enter_loss(&mut self, now_ns: u64) {
        let state = self.recovery.state();
        self.rack.detect_after_timeout(&mut self.board, now_ns);
        self.report_losses(now_ns, Some(Trigger::Timeout));
        // The threshold is set only once for a flight of data, however often it times out (RFC 5681, section 3.1).
        let first = state == State::Loss && self.frto.timeouts == 0;
        if state <= State::Disorder || self.una >= self.recovery.end() || first {
            let window = self.cc.window_mut();
            let prior = window.current_ssthresh(state >= State::Cwr && state != State::Loss);
            window.prior_cwnd = window.cwnd;
            self.reduce_threshold(now_ns);
            self.cc.on_event(&self.context(now_ns), Event::Timeout);
            self.undo.begin(self.una, self.retransmissions_under_way(), Some(prior));
        }
        self.set_cwnd(self.board.in_flight() + 1);
        self.cc.window_mut().credit = 0;
        self.usage.stamp(now_ns);
        if state <= State::Disorder && self.board.sacked() >= REORDERING_DEFAULT {
            self.rack.limit_reordering(REORDERING_DEFAULT);
        }
        self.enter(now_ns, State::Loss, self.nxt, Trigger::Timeout);
        self.probe.cancel();
        self.marks.on_reduction();
        self.frto.suspects = state < State::Recovery || self.frto.timeouts > 0;
    }

    /// Handles an acknowledgement after a timeout.
    pub(in crate::tcp::sender) fn process_loss(&mut self, now_ns: u64, summary: &AckSummary) -> Retransmit {
        let recovered = self.una >= self.recovery.end();
        if summary.advanced && self.undo_timeout(now_ns, summary.ecr, false) {
            return Retransmit::Nothing;
        }
        if self.frto.suspects {
            // Step 3.b: a segment that was never retransmitted has arrived, so not everything was lost.
            if summary.original_delivered && self.undo_timeout(now_ns, summary.ecr, true) {
                return Retransmit::Nothing;
            }
            if self.nxt > self.recovery.end() {
                if summary.sacked {
                    // Step 3.a: the loss was real.
                    self.frto.suspects = false;
                }
            } else if summary.advanced && !recovered {
                // Step 2.b: new data decides, if there is any and it has room in the peer's window.
                self.recovery.extend(self.nxt);
                if self.next_new().is_some() && self.una + self.peer.bytes > self.nxt {
                    return Retransmit::NewFirst;
                }
                self.frto.suspects = false;
            }
        }
        if recovered {
            // Step 2.a, and the first part of 3.a.
            self.finish_recovery(now_ns, summary.ecr);
            return Retransmit::Nothing;
        }
        Retransmit::Lost
    }

    /// F-RTO, step 2.b: sends new data instead of retransmitting; if nothing could be sent, retransmits instead.
    pub(in crate::tcp::sender) fn send_new_first(&mut self, output: &mut Output) {
        self.transmit(output);
        if self.nxt <= self.recovery.end() {
            self.frto.suspects = false;
            self.retransmit_lost(output);
        }
    }
}
