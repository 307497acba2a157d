//! Processes acknowledgements (the kernel's `tcp_ack`).

use super::super::congestion::{Ack, Acked};
use super::super::timestamps;
use super::loss::probe::Answer;
use super::news::{News, extend};
use super::recovery::alarm::Repair;
use super::recovery::prr::Progress;
use super::sending::output::Output;
use super::timing::timer::Wait;
use super::{PeerWindow, Sender, State};
use crate::network::segment::{SackBlock, SackBlocks, Segment};

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
    /// Processes an acknowledgement and repairs the losses that it reveals. [`transmit`](Sender::transmit) sends new
    /// data.
    pub(crate) fn on_ack(&mut self, segment: &Segment, output: &mut Output) {
        if segment.ack > self.nxt {
            return;
        }
        let mut news = News::of(segment, self.una);
        self.delivery.begin();
        if segment.ack < self.una {
            return self.on_old_ack(segment, news, output);
        }
        if news.advanced {
            self.frto.timeouts = 0;
        }
        let before = self.before();
        self.update_peer_window(output.now_ns, segment, &mut news);
        self.take_sack(output.now_ns, segment, &mut news);
        if before.packets_out == 0 {
            return self.on_idle_ack(segment, news, output);
        }
        self.take_cumulative(output.now_ns, segment.ack, before.highest_sacked, &mut news);
        news.ce_packets = self.marks.told(segment.flags, news.delivered);
        news.echo = self.marks.echoes(segment.flags, news.ce_packets);
        self.delivery.count(news.delivered, news.ce_packets);
        let ack = self.measure(output.now_ns, &before, &news);
        self.check_probe(output.now_ns, segment.ack, &news);

        let mut repair = Repair::Nothing;
        if news.is_alarming() || self.recovery.state() != State::Open {
            repair = self.on_alarm(output.now_ns, &mut news);
        }
        if self.sets_timer(output.now_ns, &news) {
            self.restart_timer(output.now_ns);
        }
        let lost = (self.board.lost_total() - before.lost) as u32;
        let rate = self.delivery.sample(output.now_ns, news.delivered, self.board.lost_total(), self.min_rtt_ns());
        self.adjust_window(output.now_ns, &news, &Ack { lost, rate, ..ack });
        if self.board.packets_out() == 0 {
            self.note_idle(output.now_ns);
        }
        match repair {
            Repair::Nothing => {}
            Repair::Lost => self.repair(output),
            Repair::NewFirst => self.send_new_first(output),
        }
    }

    /// An acknowledgement that was overtaken by others. Its selective acknowledgements still count.
    #[cold]
    fn on_old_ack(&mut self, segment: &Segment, mut news: News, output: &mut Output) {
        if segment.sack.is_empty() {
            return;
        }
        news.echo = self.marks.echoes(segment.flags, 0);
        self.take_sack(output.now_ns, segment, &mut news);
        if self.on_alarm(output.now_ns, &mut news) == Repair::Lost {
            self.repair(output);
        }
    }

    /// An acknowledgement while nothing is outstanding. It may be a late report of a duplicate, or open the window.
    fn on_idle_ack(&mut self, segment: &Segment, mut news: News, output: &mut Output) {
        if news.duplicate.is_some() {
            self.on_alarm(output.now_ns, &mut news);
        }
        self.check_persist(output.now_ns);
        self.check_probe(output.now_ns, segment.ack, &news);
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

    /// Updates the peer's window (RFC 9293, section 3.10.7.4, "ESTABLISHED STATE"; `tcp_ack_update_window`).
    fn update_peer_window(&mut self, now_ns: u64, segment: &Segment, news: &mut News) {
        let bytes = u64::from(segment.window_bytes);
        let newer = segment.ack > self.una || segment.seq > self.peer.updated_by;
        let changed = segment.seq == self.peer.updated_by && (bytes > self.peer.bytes || bytes == 0);
        let updates = newer || changed;
        news.repeats = segment.len == 0 && !updates && !news.advanced;
        if updates {
            let differs = bytes != self.peer.bytes;
            self.peer = PeerWindow { bytes, updated_by: segment.seq };
            if differs && self.next_new().is_some() {
                self.restart_after_idle(now_ns);
            }
        }
    }

    #[inline]
    fn take_sack(&mut self, now_ns: u64, segment: &Segment, news: &mut News) {
        if !segment.sack.is_empty() {
            self.take_sack_blocks(now_ns, segment, news);
        }
    }

    /// Processes selective acknowledgements (`tcp_sacktag_write_queue`).
    #[inline(never)]
    fn take_sack_blocks(&mut self, now_ns: u64, segment: &Segment, news: &mut News) {
        let mut blocks = [SackBlock { start: 0, end: 0 }; SackBlocks::MAX];
        segment.sack.iter(segment.ack).zip(&mut blocks).for_each(|(from, to)| *to = from);
        let mut blocks = &blocks[..segment.sack.len()];
        let mut overtaken = self.nxt;
        if is_duplicate_report(blocks, segment.ack) {
            overtaken = self.take_duplicate(blocks[0], segment.ack, news);
            blocks = &blocks[1..];
        }
        let highest = self.board.highest_sacked(self.una);
        let state_end = self.recovery.end();
        let (rack, delivery, min_rtt_ns) = (&mut self.rack, &mut self.delivery, self.rtt.min_ns().unwrap_or(0));
        self.board.sack(blocks, |sent| {
            news.delivered += 1;
            news.sacked = true;
            rack.on_delivered(sent, now_ns, min_rtt_ns);
            delivery.on_delivered(sent);
            if !sent.ever_retransmitted {
                extend(&mut news.sacked_span, sent.sent_ns);
                news.original_delivered |= sent.end() <= state_end;
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
    fn take_duplicate(&mut self, block: SackBlock, ack: u64, news: &mut News) -> u64 {
        let segments = (block.end - block.start).div_ceil(u64::from(self.mss_bytes)) as u32;
        self.duplicates += u64::from(segments);
        if self.duplicates > self.retransmits {
            // The network duplicated it, not this sender.
            return self.nxt;
        }
        news.duplicate = Some(block);
        news.delivered += segments;
        news.probe_was_duplicate = segments == 1 && self.probe.repeated_end() == Some(block.end);
        if !news.probe_was_duplicate {
            self.rack.on_duplicate();
        }
        if block.end <= news.una_before {
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
    fn take_cumulative(&mut self, now_ns: u64, ack: u64, highest_sacked: u64, news: &mut News) {
        self.una = ack;
        let (min_rtt_ns, state_end) = (self.min_rtt_ns(), self.recovery.end());
        let mut overtaken = self.nxt;
        while let Some(sent) = self.board.pop_acked(ack) {
            news.popped += 1;
            if !sent.sacked {
                news.delivered += 1;
                let spurious =
                    sent.ever_retransmitted && timestamps::is_before(news.ecr, timestamps::clock(sent.sent_ns));
                if !spurious {
                    self.rack.on_delivered(&sent, now_ns, min_rtt_ns);
                }
                self.delivery.on_delivered(&sent);
            }
            if sent.ever_retransmitted {
                news.repair_acked = true;
            } else if !sent.sacked {
                extend(&mut news.acked_span, sent.sent_ns);
                overtaken = overtaken.min(sent.seq);
                news.original_delivered |= sent.end() <= state_end;
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
    fn measure(&mut self, now_ns: u64, before: &Before, news: &News) -> Ack {
        let one_alone = news.popped == 1 && before.sacked == 0 && !news.sacked && !news.echo;
        let may_be_delayed = one_alone
            && self.una - news.una_before < u64::from(self.mss_bytes)
            && self.delivery.prior_delivered().is_some_and(|prior| prior + 1 == self.delivery.delivered());
        let rtt_ns = self.take_rtt(now_ns, news, may_be_delayed);
        let one_way_ms = news.one_way_ms.filter(|_| news.advanced);
        let acked = Acked { packets: news.delivered, rtt_ns, one_way_ms, ce_packets: news.ce_packets };
        self.cc.on_acked(&self.context(now_ns), &acked);
        if let Some(prior) = self.delivery.prior_delivered() {
            self.rack.update_window(prior, self.delivery.delivered());
        }
        Ack { acked: news.delivered, prior_in_flight: before.in_flight, rtt_ns, may_be_delayed, ..Ack::NOTHING }
    }

    /// Measures the round trip on segments that were sent only once (Karn's rule, RFC 6298, section 3), and otherwise
    /// by the timestamp. Returns the round-trip time of the newest segment.
    fn take_rtt(&mut self, now_ns: u64, news: &News, may_be_delayed: bool) -> Option<u64> {
        let acked = news.acked_span.filter(|_| !news.repair_acked);
        let (oldest, newest) = match (acked, news.sacked_span) {
            (Some((first, last)), None) => (Some(first), Some(last)),
            (acked, Some((first, last))) => (acked.map(|(acked_first, _)| acked_first).or(Some(first)), Some(last)),
            (None, None) => (None, None),
        };
        let mut rtt_ns = oldest.map(|sent_ns| now_ns - sent_ns);
        let mut newest_ns = newest.map(|sent_ns| now_ns - sent_ns);
        if rtt_ns.is_none() && news.popped > 0 {
            rtt_ns = timestamps::elapsed_ns(now_ns, news.ecr);
            newest_ns = rtt_ns;
        }
        let (rtt_ns, newest_ns) = (rtt_ns?, newest_ns?);
        // A round trip that the receiver may have prolonged does not raise the minimum.
        if !may_be_delayed || newest_ns <= self.min_rtt_ns() {
            self.rtt.add_min(now_ns, newest_ns);
        }
        self.rtt.add(rtt_ns, self.una, self.nxt);
        self.timer.reset_backoff();
        Some(newest_ns)
    }

    /// RFC 8985, section 7.4: a probe that repaired a loss is a sign of congestion that is already over
    /// (`tcp_process_tlp_ack`).
    fn check_probe(&mut self, now_ns: u64, ack: u64, news: &News) {
        let answer = Answer { ack, duplicate: news.probe_was_duplicate, pure_repeat: news.repeats && !news.sacked };
        if self.probe.on_ack(answer) {
            self.reduce_for_probe(now_ns);
        }
    }

    #[cold]
    fn reduce_for_probe(&mut self, now_ns: u64) {
        self.begin_reduction(now_ns, State::Cwr);
        self.end_reduction(now_ns);
        self.keep_open(now_ns);
    }

    /// Does the acknowledgement restart the timer? Not if the timer now waits for reordered segments. Otherwise a
    /// cumulative acknowledgement of new data does. A selective acknowledgement does if it covers a segment sent before
    /// the last transmission of the head.
    fn sets_timer(&self, now_ns: u64, news: &News) -> bool {
        if news.waits_for_reordered {
            return false;
        }
        let head_ns = self.board.head().map(|head| head.sent_ns);
        let sacked_ns = news.sacked_span.map(|(first, _)| first);
        news.popped > 0 || matches!((sacked_ns, head_ns), (Some(sacked), Some(head)) if now_ns - sacked > now_ns - head)
    }

    /// Restarts the timer (`tcp_set_xmit_timer`).
    fn restart_timer(&mut self, now_ns: u64) {
        if !self.schedule_probe(now_ns, self.timer.rto_ns(&self.rtt)) {
            self.rearm_retransmit(now_ns);
        }
    }

    /// Shrinks or grows the window according to what was delivered (`tcp_cong_control`).
    fn adjust_window(&mut self, now_ns: u64, news: &News, ack: &Ack) {
        // With reordering, selective acknowledgements also count as progress.
        let progress = ack.acked > 0 && (news.popped > 0 || (self.rack.reorders() && news.sacked));
        if self.cc.governs() {
            self.cc.on_ack(&self.context(now_ns), ack);
        } else if self.recovery.is_reducing() {
            self.reduce_window(Progress { delivered: ack.acked, lost: ack.lost, advanced: news.advanced });
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
                self.timer.arm(Wait::Persist, now_ns, self.timer.persist_ns(&self.rtt));
            }
            _ => self.timer.end_persist(),
        }
    }
}

/// Is the first block a duplicate report: below the acknowledgement, or inside the second block (RFC 2883, section 4)?
fn is_duplicate_report(blocks: &[SackBlock], ack: u64) -> bool {
    let inside = |outer: &SackBlock| outer.start <= blocks[0].start && blocks[0].end <= outer.end;
    blocks[0].start < ack || blocks.get(1).is_some_and(inside)
}
