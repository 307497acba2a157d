//! What is sent, and when (the kernel's `tcp_output.c`).

use super::super::congestion::Event;
use super::super::receiver::Receiver;
use super::super::segment::{Flags, Outbox, Outgoing, Segment};
use super::super::timestamps;
use super::offload::Packet;
use super::probe::TailProbe;
use super::scoreboard::{Sent, SentId};
use super::timer::Wait;
use super::{Sender, State};
use crate::packet;

/// Where segments leave: the outbox, and the receiving half, whose acknowledgement each segment carries.
pub(crate) struct Output<'a> {
    /// Now.
    pub(crate) now_ns: u64,
    /// The endpoint's other half.
    pub(crate) receiver: &'a mut Receiver,
    /// Segments sent.
    pub(crate) out: &'a mut Outbox,
}

/// May segments go beyond the congestion window?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// No.
    Cwnd,
    /// One may (a tail loss probe).
    OneMore,
}

impl Output<'_> {
    /// Sends a segment with `len` bytes of payload.
    pub(crate) fn send(&mut self, seq: u64, len: u32, flags: Flags, ecn: packet::Ecn) {
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
        self.out.push(Outgoing { segment, ecn });
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
            self.retransmit(id, quota, output);
            if id == self.board.ids().start && self.timer.wait() != Some(Wait::Reorder) {
                self.arm_after(Wait::Retransmit, output.now_ns, self.timer.rto_ns(&self.rtt));
            }
        }
    }

    /// Retransmits a segment, and with it up to `most` in all that left in the same packet and are lost, too.
    pub(super) fn retransmit(&mut self, id: SentId, most: u32, output: &mut Output) {
        let now_ns = output.now_ns;
        self.before_sending(now_ns);
        let note = self.delivery.note(now_ns, false, self.board.lost_total(), self.board.in_flight() + 1);
        let segments = if self.gso_max_segs > 1 { self.board.lost_together(id, most) } else { 1 };
        let app_limited = self.delivery.is_app_limited();
        let first = self.board.retransmit(id, now_ns, note, app_limited, false);
        let (mut bytes, mut fin) = (u32::from(first.len), first.fin);
        self.note_repair(id, &first, now_ns);
        for id in (id..).take(segments as usize).skip(1) {
            let sent = self.board.retransmit(id, now_ns, note, app_limited, true);
            self.note_repair(id, &sent, now_ns);
            bytes += u32::from(sent.len);
            fin |= sent.fin;
        }
        self.recovery.on_sent(segments);
        self.send_again(first.seq, bytes, fin, segments, output);
    }

    fn note_repair(&mut self, id: SentId, sent: &Sent, now_ns: u64) {
        self.undo.on_repair(timestamps::clock(now_ns));
        self.rack.on_retransmit(id, sent);
    }

    /// Sends the last segment again, as a tail loss probe. That does not count as a retransmission in flight.
    fn repeat_last(&mut self, id: SentId, output: &mut Output) {
        self.before_sending(output.now_ns);
        let note = self.delivery.note(output.now_ns, false, self.board.lost_total(), self.board.in_flight());
        let sent = self.board.repeat(id, output.now_ns, note, self.delivery.is_app_limited(), false);
        self.rack.on_retransmit(id, &sent);
        self.send_again(sent.seq, u32::from(sent.len), sent.fin, 1, output);
    }

    fn send_again(&mut self, seq: u64, bytes: u32, fin: bool, segments: u32, output: &mut Output) {
        self.retransmits += u64::from(segments);
        self.after_sending(output.now_ns, bytes, segments);
        output.send(seq, bytes, finishing(fin), self.marks.other());
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
        self.repeat_last(last, output);
        self.probe.sent(self.nxt, true);
        true
    }

    /// Probes a closed window: one segment that the peer must answer (the kernel's `tcp_write_wakeup`).
    pub(super) fn probe_window(&mut self, output: &mut Output) {
        let Some((len, fin)) = self.next_new() else { return };
        let room = self.room();
        if room > 0 && len > 0 {
            // There is room, only less than for a whole segment.
            let part = len.min(room as u32);
            self.send_new((part, fin && part == len && u64::from(len) < room), 1, output);
            self.rearm_retransmit(output.now_ns);
        } else {
            output.send(self.una - 1, 0, Flags::NONE, self.marks.other());
            self.timer.on_persist();
            self.arm_after(Wait::Persist, output.now_ns, self.timer.persist_ns(&self.rtt));
        }
    }

    /// Does the next segment fit the window that the peer offers?
    pub(super) fn fits_peer_window(&self, len: u32, fin: bool) -> bool {
        u64::from(len) + u64::from(fin) <= self.room()
    }

    /// Payload and FIN of the next new segment, whether or not it may be sent; `None` if there is nothing to send.
    pub(super) fn next_new(&self) -> Option<(u32, bool)> {
        let left = self.unsent_bytes();
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
            sent += self.send_new((len, fin), segments, output);
            if limit == Limit::OneMore {
                break;
            }
        }
        self.note_window_limit(output.now_ns, window_limits);
        self.validate_window(output.now_ns, sent, cwnd_limits);
        self.check_space(output.now_ns, sent);
        sent
    }

    /// Sends a packet of new data, or a FIN: a segment, and up to `most` in all as far as they are there and fit the peer's window.
    /// Returns how many.
    fn send_new(&mut self, segment: (u32, bool), most: u32, output: &mut Output) -> u32 {
        let now_ns = output.now_ns;
        self.before_sending(now_ns);
        let (seq, first) = (self.nxt, self.board.packets_out() == 0);
        let note = self.delivery.note(now_ns, first, self.board.lost_total(), self.board.in_flight() + most);
        let app_limited = self.delivery.is_app_limited();
        let (mut segments, mut bytes) = (0, 0);
        let mut next = Some(segment);
        while let Some((len, fin)) = next {
            let sent = Sent { app_limited, ..Sent::new(self.nxt, len, fin, now_ns, note) };
            self.board.push(sent, segments > 0);
            segments += 1;
            bytes += len;
            self.nxt += u64::from(len) + u64::from(fin);
            self.data.fin_sent |= fin;
            if len < self.mss_bytes {
                self.data.small_end = self.nxt;
            }
            next = if segments < most { self.next_new().filter(|&more| self.may_join(more)) } else { None };
        }
        // The FIN comes last.
        let mut flags = finishing(self.data.fin_sent);
        let mut codepoint = self.marks.other();
        if bytes > 0 {
            flags |= self.marks.of_new_data();
            codepoint = self.marks.data();
        }
        if self.data.pushes.take(seq + u64::from(bytes)) {
            flags |= Flags::PSH;
        }
        output.send(seq, bytes, flags, codepoint);
        self.after_sending(now_ns, bytes, segments);
        self.recovery.on_sent(segments);
        if first || self.timer.wait() == Some(Wait::Probe) {
            self.rearm_retransmit(now_ns);
        }
        segments
    }

    /// May a further segment leave in the same packet?
    fn may_join(&self, (len, fin): (u32, bool)) -> bool {
        self.fits_peer_window(len, fin) && !self.is_held_back(len)
    }

    fn before_sending(&mut self, now_ns: u64) {
        if self.board.in_flight() == 0 {
            self.cc.on_event(&self.context(now_ns), Event::TxStart);
        }
    }

    fn after_sending(&mut self, now_ns: u64, len: u32, segments: u32) {
        self.last_sent_ns = now_ns;
        self.small_queue.on_sent(len);
        self.pacer.on_sent(now_ns, len, segments, self.cc.window().pacing_bytes_per_s);
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
