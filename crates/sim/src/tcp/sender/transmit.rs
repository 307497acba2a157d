//! What is sent, and when (the kernel's `tcp_output.c`).

use super::super::congestion::Event;
use super::super::egress::{Egress, Xmit};
use super::super::receiver::Receiver;
use super::super::segment::{Flags, Outgoing, Segment};
use super::super::timestamps;
use super::offload::Packet;
use super::probe::TailProbe;
use super::scoreboard::{Sent, SentId};
use super::timer::Wait;
use super::{Sender, State};
use crate::packet;

/// Where segments leave: the way out of the host, and the receiving half, whose acknowledgement each segment carries.
pub(crate) struct Output<'a> {
    /// Now.
    pub(crate) now_ns: u64,
    /// The endpoint's other half.
    pub(crate) receiver: &'a mut Receiver,
    /// Takes the segments.
    pub(crate) out: &'a mut (dyn Egress + 'a),
}

/// Wait until the next attempt where the host took neither a retransmission nor a probe of a closed window
/// (`TCP_RESOURCE_PROBE_INTERVAL`).
pub(crate) const HOST_BUSY_NS: u64 = 500_000_000;

/// May segments go beyond the congestion window?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// No.
    Cwnd,
    /// One may (a tail loss probe).
    OneMore,
}

impl Output<'_> {
    /// Sends a segment with `len` bytes of payload. Also one that the host drops carries what acknowledgement is owed, for the
    /// receiving half hears nothing of that.
    pub(crate) fn send(&mut self, seq: u64, len: u32, flags: Flags, ecn: packet::Ecn) -> Xmit {
        if len > 0 {
            self.receiver.on_data_sent(self.now_ns);
        }
        let ack = self.receiver.acknowledge(len == 0);
        let flags = flags | ack.flags;
        let segment = Segment {
            seq,
            ack: ack.ack,
            len,
            window_bytes: ack.window_bytes,
            ts_val: timestamps::clock(self.now_ns),
            ts_ecr: ack.ts_ecr,
            sack: ack.sack,
            flags,
        };
        self.out.send(&Outgoing { segment, ecn })
    }
}

impl Sender {
    /// Sends what the windows allow, and lets the application go on where there is room now.
    pub(crate) fn transmit(&mut self, output: &mut Output) {
        self.send_written(output);
        self.run_application(output);
    }

    /// Sends what was handed over, as far as the windows allow.
    pub(super) fn send_written(&mut self, output: &mut Output) {
        let sent = self.transmit_new(output, Limit::Cwnd);
        if sent > 0 {
            self.schedule_probe(output.now_ns, self.head_rto_ns(output.now_ns));
        }
        if self.board.packets_out() == 0 && self.timer.wait().is_none() && self.next_new().is_some() {
            // Something is left to send and nothing is under way: the peer's window is (nearly) closed.
            self.arm_after(Wait::Persist, output.now_ns, self.timer.persist_ns(&self.rtt));
        }
    }

    /// Retransmits lost segments, oldest first, as far as the congestion window allows.
    #[inline(never)]
    pub(crate) fn repair(&mut self, output: &mut Output) {
        while let Some(quota) = self.cc.window().cwnd.checked_sub(self.board.in_flight()).filter(|&quota| quota > 0) {
            let Some(id) = self.board.next_to_repair() else { return };
            let len = self.board.get(id).map_or(0, |sent| u32::from(sent.len));
            let held_back = self.pacer.holds_back(output.now_ns) || self.repair_awaits_departure(output.now_ns, len);
            if held_back || self.still_in_host_queue(id) {
                return;
            }
            if !self.retransmit(id, quota, output) {
                return;
            }
            if id == self.board.ids().start && self.timer.wait() != Some(Wait::Reorder) {
                self.arm_after(Wait::Retransmit, output.now_ns, self.timer.rto_ns(&self.rtt));
            }
        }
    }

    /// Retransmits a segment, and with it up to `most` in all that left in the same packet and are lost, too. Returns whether the
    /// host took them.
    pub(super) fn retransmit(&mut self, id: SentId, most: u32, output: &mut Output) -> bool {
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
                self.board.try_in_vain(repeated, now_ns)
            };
            self.undo.on_repair(timestamps::clock(now_ns));
            self.rack.on_retransmit(repeated, &sent);
        }
        if is_sent {
            self.recovery.on_sent(segments);
        }
        is_sent
    }

    /// Sends the last segment again, as a tail loss probe. That does not count as a retransmission in flight. Returns whether the
    /// host took it.
    fn repeat_last(&mut self, id: SentId, output: &mut Output) -> bool {
        let now_ns = output.now_ns;
        let is_sent = self.send_again(id, 1, output);
        let note = self.delivery.note(now_ns, false, self.board.lost_total(), self.board.in_flight());
        let sent = if is_sent {
            self.board.repeat(id, now_ns, note, self.delivery.is_app_limited(), false)
        } else {
            self.board.try_in_vain(id, now_ns)
        };
        self.rack.on_retransmit(id, &sent);
        is_sent
    }

    /// Hands `segments` from `id` on to the host once more, as one packet; returns whether it took them. They count as sent again if
    /// not, too (`__tcp_retransmit_skb`).
    fn send_again(&mut self, id: SentId, segments: u32, output: &mut Output) -> bool {
        self.before_sending(output.now_ns);
        self.retransmits += u64::from(segments);
        let (seq, bytes, fin) = self.board.span(id, segments);
        self.hand_down((seq, bytes, segments), finishing(fin), self.marks.other(), output)
    }

    /// Sends a tail loss probe: new data if there is some, else the last segment again (RFC 8985, section 7.3;
    /// `tcp_send_loss_probe`).
    pub(super) fn send_probe(&mut self, output: &mut Output) {
        if !self.probe.is_under_way() && self.send_probe_segment(output) {
            // The timeout counts from now, not from when the oldest segment was sent.
            self.timer.disarm();
        }
        self.rearm_retransmit(output.now_ns);
    }

    /// Returns whether a segment was sent.
    fn send_probe_segment(&mut self, output: &mut Output) -> bool {
        if self.next_new().is_some_and(|(len, fin)| self.fits_peer_window(len, fin)) {
            let sent = self.transmit_new(output, Limit::OneMore) > 0;
            if sent {
                self.probe.sent(self.nxt, false);
            }
            return sent;
        }
        let Some(last) = self.board.ids().next_back() else { return false };
        if self.still_in_host_queue(last) {
            return false;
        }
        let sent = self.repeat_last(last, output);
        if sent {
            self.probe.sent(self.nxt, true);
        }
        sent
    }

    /// Probes a closed window: one segment that the peer must answer (the kernel's `tcp_write_wakeup`).
    pub(super) fn probe_window(&mut self, output: &mut Output) {
        let Some((len, fin)) = self.next_new() else { return };
        let room = self.room();
        if room > 0 && len > 0 {
            // There is room, only less than for a whole segment.
            let part = len.min(room as u32);
            if self.send_new((part, fin && part == len && u64::from(len) < room), 1, output) > 0 {
                return self.rearm_retransmit(output.now_ns);
            }
        } else {
            let xmit = output.send(self.una - 1, 0, Flags::NONE, self.marks.other());
            self.heed(output.now_ns, xmit);
            if xmit != Xmit::Dropped {
                self.timer.on_persist();
                return self.arm_after(Wait::Persist, output.now_ns, self.timer.persist_ns(&self.rtt));
            }
        }
        self.arm_after(Wait::Persist, output.now_ns, HOST_BUSY_NS);
    }

    /// Does the next segment fit the window that the peer offers?
    pub(super) fn fits_peer_window(&self, len: u32, fin: bool) -> bool {
        u64::from(len) + u64::from(fin) <= self.room()
    }

    /// Payload and FIN of the next new segment, whether or not it may be sent; `None` if there is nothing to send.
    #[inline]
    pub(super) fn next_new(&self) -> Option<(u32, bool)> {
        self.new_after(0)
    }

    /// The same of the segment that follows when `taken_bytes` more have been sent.
    #[inline]
    fn new_after(&self, taken_bytes: u64) -> Option<(u32, bool)> {
        let left = self.unsent_bytes() - taken_bytes;
        let len = left.min(u64::from(self.mss_bytes)) as u32;
        let is_last = left == u64::from(len) && self.data.end == self.data.offered;
        let fin = self.data.finish && !self.data.fin_sent && is_last;
        (len > 0 || fin).then_some((len, fin))
    }

    /// Arms the timer for a tail loss probe, at the latest when a timeout is due in `rto_ns`. Returns whether it did.
    pub(super) fn schedule_probe(&mut self, now_ns: u64, rto_ns: u64) -> bool {
        if self.board.packets_out() == 0 || !matches!(self.recovery.state(), State::Open | State::Cwr) {
            return false;
        }
        let timeout_ns = TailProbe::timeout_ns(self.rtt.srtt_ns(), self.board.packets_out());
        self.arm_after(Wait::Probe, now_ns, timeout_ns.min(rto_ns));
        true
    }

    /// Arms the timer for a timeout counted from now, or disarms it when nothing is in flight (RFC 6298, rules 5.1 to 5.3).
    /// A probe or reordering wait that this replaces has used up part of the time already.
    pub(super) fn rearm_retransmit(&mut self, now_ns: u64) {
        if self.board.packets_out() == 0 {
            return self.timer.disarm();
        }
        let rto_ns = match self.timer.wait() {
            Some(Wait::Probe | Wait::Reorder) => self.head_rto_ns(now_ns),
            _ => self.timer.rto_ns(&self.rtt),
        };
        self.arm_after(Wait::Retransmit, now_ns, rto_ns);
    }

    /// Arms the timer, which waits longer where the pacer holds the next packet back (`tcp_reset_xmit_timer`).
    fn arm_after(&mut self, wait: Wait, now_ns: u64, delay_ns: u64) {
        self.timer.arm(wait, now_ns, delay_ns + self.pacer.delay_ns(now_ns));
    }

    /// Time left until the oldest segment times out.
    fn head_rto_ns(&self, now_ns: u64) -> u64 {
        let rto_ns = self.timer.rto_ns(&self.rtt);
        match self.board.head() {
            Some(head) if head.sent_ns + rto_ns > now_ns => head.sent_ns + rto_ns - now_ns,
            Some(_) => 1,
            None => rto_ns,
        }
    }

    fn transmit_new(&mut self, output: &mut Output, limit: Limit) -> u32 {
        let (mut sent, mut window_limits, mut cwnd_limits) = (0, false, false);
        while let Some((len, fin)) = self.next_new() {
            // The kernel does not hold back a lone FIN either.
            let may_exceed = limit == Limit::OneMore || fin;
            let has_room = self.board.in_flight() < self.cc.window().cwnd || may_exceed;
            if self.pacer.holds_back(output.now_ns) || !has_room {
                break;
            }
            window_limits = !self.fits_peer_window(len, fin);
            let held_back = limit == Limit::Cwnd && self.is_held_back(len);
            if window_limits || held_back {
                break;
            }
            let mut segments = 1;
            if self.gso_max_segs > 1 && limit == Limit::Cwnd {
                match self.next_packet(output.now_ns) {
                    Packet::Of(most) => segments = most,
                    Packet::Waits(for_cwnd) => {
                        (cwnd_limits, window_limits) = (for_cwnd, !for_cwnd && self.room() < self.unsent_bytes());
                        break;
                    }
                }
            }
            if self.awaits_departure(output.now_ns, len * segments) {
                break;
            }
            let newly_sent = self.send_new((len, fin), segments, output);
            sent += newly_sent;
            if newly_sent == 0 || limit == Limit::OneMore {
                break;
            }
        }
        self.note_window_limit(output.now_ns, window_limits);
        self.validate_window(output.now_ns, sent, cwnd_limits);
        self.check_space(output.now_ns, sent);
        sent
    }

    /// Sends a packet of new data, or a FIN: a segment, and up to `most` in all as far as they are there and fit the peer's window.
    /// Returns how many; 0 if the host dropped the packet, whose data then counts as not sent.
    fn send_new(&mut self, first: (u32, bool), most: u32, output: &mut Output) -> u32 {
        let now_ns = output.now_ns;
        self.before_sending(now_ns);
        let (seq, begins) = (self.nxt, self.board.packets_out() == 0);
        let (segments, bytes, fin) = self.gather(first, most);
        let end = seq + u64::from(bytes);
        let mut flags = finishing(fin);
        let mut codepoint = self.marks.other();
        if bytes > 0 {
            flags |= self.marks.of_new_data();
            codepoint = self.marks.data();
        }
        if self.data.pushes.holds(end) {
            flags |= Flags::PSH;
        }
        if !self.hand_down((seq, bytes, segments), flags, codepoint, output) {
            return 0;
        }
        self.data.pushes.forget(end);
        let note = self.delivery.note(now_ns, begins, self.board.lost_total(), self.board.in_flight() + segments);
        let app_limited = self.delivery.is_app_limited();
        for joins in [false].into_iter().chain(std::iter::repeat_n(true, segments as usize - 1)) {
            let len = (end - self.nxt).min(u64::from(self.mss_bytes)) as u32;
            let fin = fin && self.nxt + u64::from(len) == end;
            self.board.push(Sent { app_limited, ..Sent::new(self.nxt, len, fin, now_ns, note) }, joins);
            self.nxt += u64::from(len) + u64::from(fin);
            if len < self.mss_bytes {
                self.data.small_end = self.nxt;
            }
        }
        self.data.fin_sent |= fin;
        self.recovery.on_sent(segments);
        if begins || self.timer.wait() == Some(Wait::Probe) {
            self.rearm_retransmit(now_ns);
        }
        segments
    }

    /// Segments, payload and FIN of a packet of new data that begins with `first`.
    #[inline]
    fn gather(&self, (len, fin): (u32, bool), most: u32) -> (u32, u32, bool) {
        let mut packet = (1, len, fin);
        while packet.0 < most
            && let Some((len, fin)) = self.new_after(packet.1.into()).filter(|_| !packet.2)
            && self.fits_peer_window(packet.1 + len, fin)
            && !self.is_held_back(len)
        {
            packet = (packet.0 + 1, packet.1 + len, fin);
        }
        packet
    }

    /// Hands the host a packet of so many bytes of payload in so many segments; returns whether it took it.
    #[inline]
    fn hand_down(
        &mut self,
        (seq, bytes, segments): (u64, u32, u32),
        flags: Flags,
        codepoint: packet::Ecn,
        output: &mut Output,
    ) -> bool {
        let now_ns = output.now_ns;
        let pushes = if segments > 1 { Flags::PSH } else { Flags::NONE };
        let xmit = output.send(seq, bytes, flags | pushes, codepoint);
        self.last_sent_ns = now_ns;
        self.heed(now_ns, xmit);
        if xmit == Xmit::Queued {
            self.small_queue.on_queued(self.board.transmissions() + 1, bytes);
        }
        if xmit != Xmit::Dropped {
            self.pacer.on_sent(now_ns, bytes, segments, self.cc.window().pacing_bytes_per_s);
        }
        xmit != Xmit::Dropped
    }

    /// A packet was handed to the host: if its own queue is too long for it, that is congestion (`__tcp_transmit_skb`).
    #[inline]
    pub(crate) fn heed(&mut self, now_ns: u64, xmit: Xmit) {
        if xmit.is_congested() {
            self.enter_cwr(now_ns);
        }
    }

    fn before_sending(&mut self, now_ns: u64) {
        if self.board.in_flight() == 0 {
            self.cc.on_event(&self.context(now_ns), Event::TxStart);
        }
    }

    /// Nagle's rule in Minshall's variant: a segment that is not full waits while another such is in flight (RFC 9293,
    /// section 3.7.4), unless it is the last one or the application wants no delay.
    fn is_held_back(&self, len: u32) -> bool {
        len < self.mss_bytes && !self.no_delay && !self.data.finish && self.data.small_end > self.una
    }

    /// Bytes that the peer's window has room for.
    pub(super) fn room(&self) -> u64 {
        (self.una + self.peer.bytes).saturating_sub(self.nxt)
    }
}

fn finishing(fin: bool) -> Flags {
    if fin { Flags::FIN } else { Flags::NONE }
}
