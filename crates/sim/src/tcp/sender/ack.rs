//! Processes acknowledgements (the kernel's `tcp_ack`).

use super::super::journal::Trigger;
use super::super::timestamps;
use super::ack_summary::{AckSummary, extend};
use super::loss::probe::Answer;
use super::recovery::fast_retransmit::Retransmit;
use super::recovery::prr::Progress;
use super::sending::output::Output;
use super::timing::timer::Wait;
use super::{Sender, State};
use crate::network::segment::{SackBlock, SackBlocks, Segment};
use crate::transport::congestion::{Ack, Acked};

/// The state before an acknowledgement.
#[derive(Debug)]
struct Before {
    packets_out: u32,
    in_flight: u32,
    sacked: u32,
    lost: u64,
    /// End of the highest selective acknowledgement.
    highest_sacked: u64,
}

impl Sender {
    /// Processes an acknowledgement and retransmits the losses that it reveals. [`transmit`](Sender::transmit) sends
    /// new data.
    pub(crate) fn on_ack(&mut self, segment: &Segment, output: &mut Output) {
        if segment.ack > self.nxt {
            return;
        }
        let mut summary = AckSummary::of(segment, self.una);
        self.delivery.begin();
        if self.is_old(segment) {
            return self.on_old_ack(segment, summary, output);
        }
        if summary.advanced {
            self.frto.timeouts = 0;
        }
        let before = self.before();
        summary.predicted = self.predicts(segment) && output.receiver.expects(segment);
        self.update_peer_window(output.now_ns, segment, &mut summary);
        self.take_sack(output.now_ns, segment, &mut summary);
        if before.packets_out == 0 {
            return self.on_idle_ack(segment, summary, output);
        }
        self.take_cumulative(output.now_ns, segment.ack, before.highest_sacked, &mut summary);
        summary.ce_packets = self.marks.ce_delta(segment.flags, summary.delivered);
        summary.echo = self.marks.echoes(segment.flags, summary.ce_packets);
        self.delivery.count(summary.delivered, summary.ce_packets);
        let ack = self.measure(output.now_ns, &before, &summary);
        self.check_probe(output.now_ns, segment.ack, &summary);

        let mut retransmit = Retransmit::Nothing;
        if summary.is_dubious() || self.recovery.state() != State::Open {
            retransmit = self.fast_retransmit_alert(output.now_ns, &mut summary);
        }
        if self.sets_timer(output.now_ns, &summary) {
            self.restart_timer(output.now_ns);
        }
        let lost = (self.board.lost_total() - before.lost) as u32;
        let rate = self.delivery.sample(output.now_ns, summary.delivered, self.board.lost_total(), self.min_rtt_ns());
        self.adjust_window(output.now_ns, &summary, &Ack { lost, rate, ..ack });
        if self.board.packets_out() == 0 {
            self.note_idle(output.now_ns);
        }
        match retransmit {
            Retransmit::Nothing => {}
            Retransmit::Lost => self.retransmit_lost(output),
            Retransmit::NewFirst => self.send_new_first(output),
        }
    }

    /// An acknowledgement that was overtaken by others. Its selective acknowledgements still count.
    #[cold]
    fn on_old_ack(&mut self, segment: &Segment, mut summary: AckSummary, output: &mut Output) {
        if segment.sack.is_empty() {
            return;
        }
        summary.echo = self.marks.echoes(segment.flags, 0);
        self.take_sack(output.now_ns, segment, &mut summary);
        if self.fast_retransmit_alert(output.now_ns, &mut summary) == Retransmit::Lost {
            self.retransmit_lost(output);
        }
    }

    /// An acknowledgement while nothing is outstanding. It may be a late report of a duplicate, or open the window.
    fn on_idle_ack(&mut self, segment: &Segment, mut summary: AckSummary, output: &mut Output) {
        if summary.duplicate.is_some() {
            self.fast_retransmit_alert(output.now_ns, &mut summary);
        }
        self.check_persist(output.now_ns);
        self.check_probe(output.now_ns, segment.ack, &summary);
    }

    fn before(&self) -> Before {
        Before {
            packets_out: self.board.packets_out(),
            in_flight: self.board.in_flight(),
            sacked: self.board.sacked(),
            lost: self.board.lost_total(),
            highest_sacked: self.board.highest_sacked(self.una),
        }
    }

    /// Whether a later acknowledgement has arrived already.
    #[inline]
    pub(crate) fn is_old(&self, segment: &Segment) -> bool {
        segment.ack < self.una
    }

    /// Whether a segment acknowledges what is acknowledged already, and does not change the peer's window.
    pub(crate) fn is_repeated(&self, segment: &Segment) -> bool {
        segment.ack == self.una && !self.updates_peer_window(segment)
    }

    /// Whether the peer's window is what this segment says (`tcp_may_update_window`).
    fn updates_peer_window(&self, segment: &Segment) -> bool {
        let bytes = u64::from(segment.window_bytes);
        let newer = segment.ack > self.una || segment.seq > self.peer.updated_by;
        newer || (segment.seq == self.peer.updated_by && (bytes > self.peer.bytes || bytes == 0))
    }

    /// Whether a segment only acknowledges more, so that the kernel takes its fast path if the receiving half
    /// [expects](super::super::receiver::Receiver::expects) it ("header prediction" in `tcp_rcv_established`).
    #[inline]
    fn predicts(&self, segment: &Segment) -> bool {
        self.peer.is_predicted
            && u64::from(segment.window_bytes) == self.peer.bytes
            && segment.ack > self.una
            && segment.sack.is_empty()
            && segment.flags.only_acknowledge()
    }

    /// Updates the peer's window (RFC 9293, section 3.10.7.4, "ESTABLISHED STATE"; `tcp_ack_update_window`).
    fn update_peer_window(&mut self, now_ns: u64, segment: &Segment, summary: &mut AckSummary) {
        let bytes = u64::from(segment.window_bytes);
        let updates = self.updates_peer_window(segment);
        summary.repeats = segment.len == 0 && !updates && !summary.advanced;
        if updates {
            let differs = bytes != self.peer.bytes;
            self.peer.update(bytes, segment.seq);
            if differs && self.next_new().is_some() {
                self.restart_after_idle(now_ns);
            }
        }
    }

    #[inline]
    fn take_sack(&mut self, now_ns: u64, segment: &Segment, summary: &mut AckSummary) {
        if !segment.sack.is_empty() {
            self.take_sack_blocks(now_ns, segment, summary);
        }
    }

    /// Processes selective acknowledgements (`tcp_sacktag_write_queue`).
    #[inline(never)]
    fn take_sack_blocks(&mut self, now_ns: u64, segment: &Segment, summary: &mut AckSummary) {
        let mut blocks = [SackBlock { start: 0, end: 0 }; SackBlocks::MAX];
        segment.sack.iter(segment.ack).zip(&mut blocks).for_each(|(from, to)| *to = from);
        let mut blocks = &blocks[..segment.sack.len()];
        let mut overtaken = self.nxt;
        if is_duplicate_report(blocks, segment.ack) {
            overtaken = self.take_duplicate(blocks[0], segment.ack, summary);
            blocks = &blocks[1..];
        }
        let highest = self.board.highest_sacked(self.una);
        let state_end = self.recovery.end();
        let (rack, delivery, min_rtt_ns) = (&mut self.rack, &mut self.delivery, self.rtt.min_ns().unwrap_or(0));
        self.board.sack(blocks, |sent| {
            summary.delivered += 1;
            summary.sacked = true;
            rack.on_delivered(sent, now_ns, min_rtt_ns);
            delivery.on_delivered(&sent.transmission());
            if !sent.ever_retransmitted {
                extend(&mut summary.sacked_span, sent.sent_ns);
                summary.original_delivered |= sent.end() <= state_end;
                if sent.seq < highest {
                    overtaken = overtaken.min(sent.seq);
                }
            }
        });
        if self.recovery.state() != State::Loss || self.undo.is_possible() {
            self.note_reordering(overtaken);
        }
    }

    /// The receiver got `block` twice (`tcp_check_dsack`, `tcp_dsack_seen`). If the duplicate shows that a segment was
    /// overtaken, returns its first sequence number, otherwise SND.NXT.
    #[cold]
    fn take_duplicate(&mut self, block: SackBlock, ack: u64, summary: &mut AckSummary) -> u64 {
        let segments = (block.end - block.start).div_ceil(u64::from(self.mss_bytes)) as u32;
        self.duplicates += u64::from(segments);
        if self.duplicates > self.retransmits {
            // The network duplicated it, not this sender.
            return self.nxt;
        }
        summary.duplicate = Some(block);
        summary.delivered += segments;
        summary.probe_was_duplicate = segments == 1 && self.probe.repeated_end() == Some(block.end);
        if !summary.probe_was_duplicate {
            self.rack.on_duplicate();
        }
        if block.end <= summary.una_before {
            self.undo.on_duplicate(block.end, segments);
            return self.nxt;
        }
        if block.start <= ack && !self.undo.is_possible() {
            return self.nxt;
        }
        let mut overtaken = self.nxt;
        let undo = &mut self.undo;
        self.board.duplicate(block, |sent| {
            undo.on_duplicate(sent.end(), 1);
            if sent.sacked {
                overtaken = overtaken.min(sent.seq);
            }
        });
        overtaken
    }

    /// Processes the cumulative acknowledgement (`tcp_clean_rtx_queue`).
    fn take_cumulative(&mut self, now_ns: u64, ack: u64, highest_sacked: u64, summary: &mut AckSummary) {
        self.una = ack;
        let (min_rtt_ns, state_end) = (self.min_rtt_ns(), self.recovery.end());
        let mut overtaken = self.nxt;
        while let Some(sent) = self.board.pop_acked(ack) {
            summary.popped += 1;
            if !sent.sacked {
                summary.delivered += 1;
                let spurious =
                    sent.ever_retransmitted && timestamps::is_before(summary.ecr, timestamps::clock(sent.sent_ns));
                if !spurious {
                    self.rack.on_delivered(&sent, now_ns, min_rtt_ns);
                }
                self.delivery.on_delivered(&sent.transmission());
            }
            if sent.ever_retransmitted {
                summary.retransmission_acked = true;
            } else if !sent.sacked {
                extend(&mut summary.acked_span, sent.sent_ns);
                overtaken = overtaken.min(sent.seq);
                summary.original_delivered |= sent.end() <= state_end;
            }
        }
        if overtaken < highest_sacked {
            self.note_reordering(overtaken);
        }
    }

    /// The segment that starts at `start` arrived after later ones (`tcp_check_sack_reordering`).
    #[cold]
    pub(super) fn note_reordering(&mut self, start: u64) {
        let highest = self.board.highest_sacked(self.una);
        if start < highest {
            self.rack.on_reordering(highest - start, self.mss_bytes);
        }
    }

    /// Takes the measurements. Returns what the acknowledgement means for the congestion control.
    fn measure(&mut self, now_ns: u64, before: &Before, summary: &AckSummary) -> Ack {
        let one_alone = summary.popped == 1 && before.sacked == 0 && !summary.sacked && !summary.echo;
        let may_be_delayed = one_alone
            && self.una - summary.una_before < u64::from(self.mss_bytes)
            && self.delivery.prior_delivered().is_some_and(|prior| prior + 1 == self.delivery.delivered());
        let rtt_ns = self.take_rtt(now_ns, summary, may_be_delayed);
        let one_way_ms = summary.one_way_ms.filter(|_| summary.advanced);
        let (packets, ce_packets, predicted) = (summary.delivered, summary.ce_packets, summary.predicted);
        let acked = Acked { packets, rtt_ns, one_way_ms, ce_packets, predicted };
        self.cc.on_acked(&self.context(now_ns), &acked);
        if let Some(prior) = self.delivery.prior_delivered() {
            self.rack.update_window(prior, self.delivery.delivered());
        }
        Ack { acked: summary.delivered, prior_in_flight: before.in_flight, rtt_ns, may_be_delayed, ..Ack::NOTHING }
    }

    /// Measures the round trip on segments that were sent only once (Karn's rule, RFC 6298, section 3), and otherwise
    /// by the timestamp. Returns the round-trip time of the newest segment.
    fn take_rtt(&mut self, now_ns: u64, summary: &AckSummary, may_be_delayed: bool) -> Option<u64> {
        let acked = summary.acked_span.filter(|_| !summary.retransmission_acked);
        let (oldest, newest) = match (acked, summary.sacked_span) {
            (Some((first, last)), None) => (Some(first), Some(last)),
            (acked, Some((first, last))) => (acked.map(|(acked_first, _)| acked_first).or(Some(first)), Some(last)),
            (None, None) => (None, None),
        };
        let mut rtt_ns = oldest.map(|sent_ns| now_ns - sent_ns);
        let mut newest_ns = newest.map(|sent_ns| now_ns - sent_ns);
        if rtt_ns.is_none() && summary.popped > 0 {
            rtt_ns = timestamps::elapsed_ns(now_ns, summary.ecr);
            newest_ns = rtt_ns;
        }
        let (rtt_ns, newest_ns) = (rtt_ns?, newest_ns?);
        // A round trip that the receiver may have prolonged does not raise the minimum.
        if !may_be_delayed || newest_ns <= self.min_rtt_ns() {
            self.rtt.add_min(now_ns, newest_ns);
        }
        self.rtt.add(rtt_ns, self.una, self.nxt);
        self.timer.on_measured(&self.rtt);
        Some(newest_ns)
    }

    /// RFC 8985, section 7.4: a probe that repaired a loss is a sign of congestion that is already over
    /// (`tcp_process_tlp_ack`).
    fn check_probe(&mut self, now_ns: u64, ack: u64, summary: &AckSummary) {
        let answer =
            Answer { ack, duplicate: summary.probe_was_duplicate, pure_repeat: summary.repeats && !summary.sacked };
        if self.probe.on_ack(answer) {
            self.reduce_for_probe(now_ns);
        }
    }

    #[cold]
    fn reduce_for_probe(&mut self, now_ns: u64) {
        self.begin_reduction(now_ns, State::Cwr, Trigger::TailLossProbe);
        self.end_reduction(now_ns);
        self.keep_open(now_ns, None);
    }

    /// Whether the acknowledgement restarts the timer. Not if the timer now waits for reordered segments. Otherwise a
    /// cumulative acknowledgement of new data does. A selective acknowledgement does if it covers a segment sent before
    /// the last transmission of the head.
    fn sets_timer(&self, now_ns: u64, summary: &AckSummary) -> bool {
        if summary.waits_for_reordered {
            return false;
        }
        let head_ns = self.board.head().map(|head| head.sent_ns);
        let sacked_ns = summary.sacked_span.map(|(first, _)| first);
        summary.popped > 0
            || matches!((sacked_ns, head_ns), (Some(sacked), Some(head)) if now_ns - sacked > now_ns - head)
    }

    /// Restarts the timer (`tcp_set_xmit_timer`).
    fn restart_timer(&mut self, now_ns: u64) {
        if !self.schedule_probe(now_ns, self.timer.rto_ns()) {
            self.rearm_retransmit(now_ns);
        }
    }

    /// Shrinks or grows the window according to what was delivered (`tcp_cong_control`).
    fn adjust_window(&mut self, now_ns: u64, summary: &AckSummary, ack: &Ack) {
        // With reordering, selective acknowledgements also count as progress.
        let progress = ack.acked > 0 && (summary.popped > 0 || (self.rack.reorders() && summary.sacked));
        if self.cc.governs() {
            self.cc.on_ack(&self.context(now_ns), ack);
        } else if self.recovery.is_reducing() {
            self.reduce_window(Progress { delivered: ack.acked, lost: ack.lost, advanced: summary.advanced });
        } else if progress {
            self.cc.on_ack(&self.context(now_ns), ack);
            // This happens whether or not the window grows (`tcp_cong_avoid`), so the window of a slow application is
            // kept while acknowledgements arrive.
            self.usage.stamp(now_ns);
        }
        self.update_pacing(now_ns);
        if std::mem::take(&mut self.cc.window_mut().mark_app_limited) {
            self.delivery.mark_app_limited(self.board.in_flight());
        }
    }

    #[inline(never)]
    pub(super) fn reduce_window(&mut self, progress: Progress) {
        let ssthresh = self.cc.window().ssthresh;
        if let Some(cwnd) = self.recovery.reduced_cwnd(progress, self.board.in_flight(), ssthresh) {
            self.set_cwnd(cwnd);
        }
    }

    /// While the peer's window is closed: stops probing if it has opened far enough, and otherwise continues.
    fn check_persist(&mut self, now_ns: u64) {
        if self.timer.wait() != Some(Wait::Persist) {
            return;
        }
        match self.next_new() {
            Some((len, fin)) if !self.fits_peer_window(len, fin) => {
                self.timer.arm(Wait::Persist, now_ns, self.timer.persist_ns());
            }
            _ => self.timer.end_persist(),
        }
    }
}

/// Whether the first block is a duplicate report: below the acknowledgement, or inside the second block (RFC 2883,
/// section 4).
fn is_duplicate_report(blocks: &[SackBlock], ack: u64) -> bool {
    let inside = |outer: &SackBlock| outer.start <= blocks[0].start && blocks[0].end <= outer.end;
    blocks[0].start < ack || blocks.get(1).is_some_and(inside)
}
