//! Retransmissions (the kernel's `tcp_xmit_retransmit_queue` and `__tcp_retransmit_skb`).

use crate::network::segment::Flags;
use crate::tcp::sender::Sender;
use crate::tcp::sender::loss::scoreboard::SentId;
use crate::tcp::sender::sending::output::Output;
use crate::tcp::sender::timing::timer::Wait;
use crate::tcp::timestamps;

impl Sender {
    /// Retransmits lost segments, oldest first, as far as the congestion window allows.
    #[inline(never)]
    pub(crate) fn retransmit_lost(&mut self, output: &mut Output) {
        while let Some(quota) = self.cc.window().cwnd.checked_sub(self.board.in_flight()).filter(|&quota| quota > 0) {
            let Some(id) = self.board.next_to_retransmit() else { return };
            let len = self.board.get(id).map_or(0, |sent| u32::from(sent.len));
            let held_back =
                self.pacer.holds_back(output.now_ns) || self.retransmission_awaits_departure(output.now_ns, len);
            if held_back || self.still_in_host_queue(id) {
                return;
            }
            if !self.retransmit(id, quota, output) {
                return;
            }
            if id == self.board.ids().start && self.timer.wait() != Some(Wait::Reorder) {
                self.arm_after(Wait::Retransmit, output.now_ns, self.timer.rto_ns());
            }
        }
    }

    /// Retransmits a segment, together with other lost segments that left in the same packet, up to `most` in all.
    /// Returns whether the host accepted them.
    pub(in crate::tcp::sender) fn retransmit(&mut self, id: SentId, most: u32, output: &mut Output) -> bool {
        let now_ns = output.now_ns;
        let segments = match self.gso_max_segs {
            1 => 1,
            _ => self.board.lost_together(id, most.min(self.packet_segments(now_ns))),
        };
        let is_sent = self.send_again(id, segments, output);
        let note = self.delivery.note(now_ns, false, self.board.lost_total(), self.board.in_flight() + 1);
        let app_limited = self.delivery.is_app_limited();
        for repeated in id..id + u64::from(segments) {
            let sent = if is_sent {
                self.board.retransmit(repeated, now_ns, note, app_limited, repeated > id)
            } else {
                self.board.record_dropped_retransmission(repeated, now_ns)
            };
            self.undo.on_retransmission(timestamps::clock(now_ns));
            self.rack.on_retransmit(repeated, &sent);
        }
        if is_sent {
            self.recovery.on_sent(segments);
        }
        is_sent
    }

    /// Sends the last segment again, as a tail loss probe. That does not count as a retransmission in flight. Returns
    /// whether the host accepted it.
    pub(in crate::tcp::sender) fn repeat_last(&mut self, id: SentId, output: &mut Output) -> bool {
        let now_ns = output.now_ns;
        let is_sent = self.send_again(id, 1, output);
        let note = self.delivery.note(now_ns, false, self.board.lost_total(), self.board.in_flight());
        let sent = if is_sent {
            self.board.repeat(id, now_ns, note, self.delivery.is_app_limited(), false)
        } else {
            self.board.record_dropped_retransmission(id, now_ns)
        };
        self.rack.on_retransmit(id, &sent);
        is_sent
    }

    /// Passes `segments` segments from `id` on to the host once more, as one packet. Returns whether the host accepted
    /// them. They count as retransmitted even if it did not (`__tcp_retransmit_skb`).
    fn send_again(&mut self, id: SentId, segments: u32, output: &mut Output) -> bool {
        self.retransmits += u64::from(segments);
        self.hand_down(self.board.parcel(id, segments), Flags::NONE, self.marks.other(), output)
    }
}
