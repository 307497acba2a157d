//! First transmissions: what is sent, and when (the kernel's `tcp_write_xmit` and `tcp_write_wakeup`).

use super::offload::Packet;
use super::output::{HOST_BUSY_NS, Output, Parcel};
use crate::network::segment::Flags;
use crate::network::xmit::Xmit;
use crate::tcp::journal::Expiry;
use crate::tcp::sender::Sender;
use crate::tcp::sender::loss::scoreboard::Sent;
use crate::tcp::sender::timing::timer::Wait;

/// Whether segments may exceed the congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp::sender) enum Limit {
    /// No.
    Cwnd,
    /// No, and only one packet is sent (`tcp_push_one`). It does not wait to become larger.
    OnePacket,
    /// One segment may (a tail loss probe).
    OneMore,
}

impl Sender {
    /// Sends as much as the windows allow, and lets the application continue if there is room now. The tasklet of the small
    /// queue runs before the application.
    pub(crate) fn transmit(&mut self, output: &mut Output) {
        self.send_written(output, Limit::Cwnd);
        if !self.small_queue.continues(output.now_ns) {
            self.run_application(output);
        }
    }

    /// Sends written data, as far as the windows and `limit` allow.
    pub(in crate::tcp::sender) fn send_written(&mut self, output: &mut Output, limit: Limit) {
        let sent = self.transmit_new(output, limit);
        if sent > 0 {
            self.schedule_probe(output.now_ns, self.head_rto_ns(output.now_ns));
        }
        if self.board.packets_out() == 0 && self.timer.wait().is_none() && self.next_new().is_some() {
            // There is data to send but nothing in flight, so the peer's window is (nearly) closed.
            self.arm_after(Wait::Persist, output.now_ns, self.timer.persist_ns());
        }
    }

    /// Probes a closed window with one segment, which the peer must answer (the kernel's `tcp_write_wakeup`).
    pub(in crate::tcp::sender) fn probe_window(&mut self, output: &mut Output) {
        let Some((len, fin)) = self.next_new() else { return };
        self.note_expiry(Expiry::Persist);
        let room = self.room();
        if room > 0 && len > 0 {
            // There is room, but only for part of a segment.
            let part = len.min(room as u32);
            if self.send_new(part, fin && part == len && u64::from(len) < room, output) > 0 {
                return self.rearm_retransmit(output.now_ns);
            }
        } else {
            let xmit = output.send(self.una - 1, 0, Flags::NONE, self.marks.other());
            self.on_empty_sent(output.now_ns, xmit);
            if xmit != Xmit::Dropped {
                self.timer.on_persist();
                return self.arm_after(Wait::Persist, output.now_ns, self.timer.persist_ns());
            }
        }
        self.arm_after(Wait::Persist, output.now_ns, HOST_BUSY_NS);
    }

    /// Whether the next segment fits the window that the peer offers.
    pub(in crate::tcp::sender) fn fits_peer_window(&self, len: u32, fin: bool) -> bool {
        u64::from(len) + u64::from(fin) <= self.room()
    }

    /// Payload and FIN of the next new segment, whether or not it may be sent; `None` if there is nothing to send.
    #[inline]
    pub(in crate::tcp::sender) fn next_new(&self) -> Option<(u32, bool)> {
        let len = self.unsent_bytes().min(u64::from(self.mss_bytes)) as u32;
        let fin = self.has_fin(len);
        (len > 0 || fin).then_some((len, fin))
    }

    /// Whether the FIN belongs to the packet with the next `bytes`.
    #[inline]
    fn has_fin(&self, bytes: u32) -> bool {
        let is_last = self.unsent_bytes() == u64::from(bytes) && self.data.end == self.data.offered;
        self.data.finish && !self.data.fin_sent && is_last
    }

    pub(in crate::tcp::sender) fn transmit_new(&mut self, output: &mut Output, limit: Limit) -> u32 {
        let (mut sent, mut window_limits, mut cwnd_limits) = (0, false, false);
        while let Some((mut len, mut fin)) = self.next_new() {
            if self.has_offload() {
                (len, fin) = self.within_piece(len, fin);
            }
            // The kernel does not hold back a lone FIN either.
            let may_exceed = limit == Limit::OneMore || fin;
            let has_room = self.board.in_flight() < self.cc.window().cwnd || may_exceed;
            if self.pacer.holds_back(output.now_ns) || !has_room {
                break;
            }
            window_limits = !self.fits_peer_window(len, fin);
            let held_back = limit != Limit::OneMore && self.is_held_back(len);
            if window_limits || held_back {
                break;
            }
            let mut bytes = len;
            if self.has_offload() && limit != Limit::OneMore {
                match self.next_packet(output.now_ns, limit == Limit::Cwnd) {
                    Packet::Of(more) => {
                        (bytes, fin) = (more, self.has_fin(more) && self.fits_peer_window(more, true));
                    }
                    Packet::Waits(for_cwnd) => {
                        (cwnd_limits, window_limits) = (for_cwnd, !for_cwnd && self.room() < self.unsent_bytes());
                        break;
                    }
                }
            }
            if self.awaits_departure(output.now_ns, bytes) {
                break;
            }
            let newly_sent = self.send_new(bytes, fin, output);
            sent += newly_sent;
            if newly_sent == 0 || limit != Limit::Cwnd {
                break;
            }
            if self.has_offload() {
                self.check_space_between_packets(output.now_ns);
            }
        }
        // Together, as in the kernel: if one of them has begun a reduction because the host's queue is full, those before
        // it count too.
        self.recovery.on_sent(sent);
        self.note_window_limit(output.now_ns, window_limits);
        self.validate_window(output.now_ns, sent, cwnd_limits);
        self.check_space(output.now_ns, sent);
        sent
    }

    /// Sends a packet of new data, or a FIN. Returns how many segments were sent. If the host dropped the packet, that is
    /// 0, and its data counts as unsent.
    fn send_new(&mut self, bytes: u32, fin: bool, output: &mut Output) -> u32 {
        let now_ns = output.now_ns;
        let begins = self.board.packets_out() == 0;
        let seq = self.nxt;
        let segments = if bytes > self.mss_bytes { bytes.div_ceil(self.mss_bytes) } else { 1 };
        let end = seq + u64::from(bytes);
        let mut ends = if fin { Flags::FIN } else { Flags::NONE };
        if self.data.pushes.holds(end) {
            ends |= Flags::PSH;
        }
        let parcel = Parcel { seq, bytes, ends, segments };
        let has_data = bytes > 0;
        let (flags, ecn) =
            if has_data { (self.marks.of_new_data(), self.marks.data()) } else { (Flags::NONE, self.marks.other()) };
        if !self.hand_down(parcel, flags, ecn, output) {
            return 0;
        }
        self.data.pushes.forget(end);
        let note = self.delivery.note(now_ns, begins, self.board.lost_total(), self.board.in_flight() + segments);
        let app_limited = self.delivery.is_app_limited();
        for number in 0..segments {
            let len = (end - self.nxt).min(u64::from(self.mss_bytes)) as u32;
            let flags = if self.nxt + u64::from(len) == end { ends } else { Flags::NONE };
            self.board.push(Sent { app_limited, ..Sent::new(self.nxt, len, flags, now_ns, note) }, number > 0);
            self.nxt += u64::from(len) + u64::from(flags.fin());
            if len < self.mss_bytes {
                self.data.small_end = self.nxt;
            }
        }
        self.data.fin_sent |= fin;
        if begins || self.timer.wait() == Some(Wait::Probe) {
            self.rearm_retransmit(now_ns);
        }
        segments
    }

    /// Whether Nagle's rule holds back a segment of this length. Data may still be added only to the last one.
    fn is_held_back(&self, len: u32) -> bool {
        len < self.mss_bytes && self.nxt + u64::from(len) == self.data.end && self.waits_for_small()
    }

    /// Nagle's rule in Minshall's variant (RFC 9293, section 3.7.4): a segment that is not full waits while another
    /// such segment is in flight, unless it is the last segment or the application has disabled the rule.
    pub(in crate::tcp::sender) fn waits_for_small(&self) -> bool {
        !self.no_delay && !self.data.finish && self.data.small_end > self.una
    }

    /// The number of bytes that fit into the peer's window.
    pub(in crate::tcp::sender) fn room(&self) -> u64 {
        (self.una + self.peer.bytes).saturating_sub(self.nxt)
    }
}
