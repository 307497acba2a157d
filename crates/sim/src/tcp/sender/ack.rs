//! What an acknowledgement means (the kernel's `tcp_ack` and `tcp_fastretrans_alert`).

use super::super::congestion::{Ack, Acked};
use super::super::segment::{SackBlock, SackBlocks, Segment};
use super::super::timestamps;
use super::probe::Answer;
use super::recovery::Progress;
use super::timer::Wait;
use super::transmit::Output;
use super::{PeerWindow, Sender, State};

/// Shortest wait for reordered segments (`TCP_TIMEOUT_MIN`, two jiffies of 1 ms).
const REORDER_SLACK_NS: u64 = 2_000_000;

/// What one acknowledgement brought to light.
#[derive(Debug, Default)]
struct News {
    /// SND.UNA advanced.
    advanced: bool,
    /// Packets acknowledged, cumulatively or selectively, for the first time.
    delivered: u32,
    /// Some of them selectively.
    sacked: bool,
    /// A retransmitted segment was acknowledged cumulatively.
    retransmission_acked: bool,
    /// The receiver reports a duplicate (RFC 2883).
    duplicate: Option<SackBlock>,
    /// The receiver saw congestion experienced (RFC 3168).
    echo: bool,
    /// A retransmission was lost.
    retransmission_lost: bool,
    /// Nothing at all is new.
    repeats: bool,
    /// When the first and last of the segments newly acknowledged and sent once were sent.
    acked_span: Option<(u64, u64)>,
    /// The same of those selectively acknowledged.
    sacked_span: Option<(u64, u64)>,
    /// Start of the lowest segment that was overtaken by others.
    overtaken: Option<u64>,
}

impl Sender {
    /// Takes an acknowledgement in, and repairs what it shows to be lost. Sending new data is left to
    /// [`transmit`](Sender::transmit).
    pub(crate) fn on_ack(&mut self, segment: &Segment, output: &mut Output) {
        if segment.ack > self.nxt {
            return;
        }
        let (packets_before, prior_in_flight) = (self.board.packets_out(), self.board.in_flight());
        let lost_before = self.board.lost_total();
        let highest_before = self.board.highest_sacked(self.una);
        let mut news = News { echo: segment.flags.ece() && self.ecn.enabled, ..News::default() };
        self.delivery.begin();
        self.update_peer_window(segment, &mut news);
        self.take_sack(output.now_ns, segment, &mut news);
        self.take_cumulative(output.now_ns, segment.ack, highest_before, &mut news);
        self.delivery.count(news.delivered, news.echo);
        let rtt_ns = self.take_rtt(output.now_ns, segment.ts_ecr, &news);
        if packets_before > 0 {
            let acked = Acked { packets: news.delivered, rtt_ns, echo: news.echo };
            self.cc.on_acked(&self.context(output.now_ns), &acked);
        }
        self.check_probe(output.now_ns, segment, &news);

        let mut reorder_wait = false;
        if news.is_alarming() || self.recovery.state() != State::Open {
            reorder_wait = self.on_alarm(output.now_ns, &mut news);
        }
        if news.advanced && !reorder_wait && !self.schedule_probe(output.now_ns, self.timer.rto_ns(&self.rtt)) {
            self.rearm_retransmit(output.now_ns);
        }
        if packets_before > 0 {
            let lost = (self.board.lost_total() - lost_before) as u32;
            let ack = self.summary(output.now_ns, &news, Ack { lost, prior_in_flight, rtt_ns, ..Ack::NOTHING });
            self.adjust_window(output.now_ns, &news, &ack);
        }
        if self.recovery.state() >= State::Recovery {
            self.repair(output);
        }
        self.check_persist(output.now_ns);
    }

    /// RFC 9293, section 3.10.7.4, "ESTABLISHED STATE".
    fn update_peer_window(&mut self, segment: &Segment, news: &mut News) {
        let bytes = u64::from(segment.window_bytes);
        let newer = segment.ack > self.una || segment.seq > self.peer.updated_by;
        news.repeats = segment.len == 0 && segment.ack <= self.una && bytes == self.peer.bytes;
        let changed = segment.seq == self.peer.updated_by && (bytes > self.peer.bytes || bytes == 0);
        if segment.ack >= self.una && (newer || changed) {
            self.peer = PeerWindow { bytes, updated_by: segment.seq };
        }
    }

    fn take_sack(&mut self, now_ns: u64, segment: &Segment, news: &mut News) {
        if segment.sack.is_empty() {
            return;
        }
        let mut blocks = [SackBlock { start: 0, end: 0 }; SackBlocks::MAX];
        segment.sack.iter(segment.ack).zip(&mut blocks).for_each(|(from, to)| *to = from);
        let mut blocks = &blocks[..segment.sack.len()];
        if is_duplicate_report(blocks, segment.ack) {
            news.duplicate = Some(blocks[0]);
            if self.retransmits > 0 {
                self.rack.on_duplicate(self.una, self.nxt);
            }
            blocks = &blocks[1..];
        }
        let highest = self.board.highest_sacked(self.una);
        let (rack, delivery, min_rtt_ns) = (&mut self.rack, &mut self.delivery, self.rtt.min_ns().unwrap_or(0));
        self.board.sack(blocks, |sent| {
            news.delivered += 1;
            news.sacked = true;
            rack.on_delivered(sent, now_ns, min_rtt_ns);
            delivery.on_delivered(sent);
            if !sent.ever_retransmitted {
                extend(&mut news.sacked_span, sent.sent_ns);
                if sent.seq < highest {
                    news.overtaken = Some(news.overtaken.map_or(sent.seq, |low| low.min(sent.seq)));
                }
            }
        });
    }

    fn take_cumulative(&mut self, now_ns: u64, ack: u64, highest_sacked: u64, news: &mut News) {
        if ack > self.una {
            news.advanced = true;
            self.una = ack;
        }
        let min_rtt_ns = self.rtt.min_ns().unwrap_or(0);
        while let Some(sent) = self.board.pop_acked(ack) {
            if !sent.sacked {
                news.delivered += 1;
                self.rack.on_delivered(&sent, now_ns, min_rtt_ns);
                self.delivery.on_delivered(&sent);
            }
            if sent.ever_retransmitted {
                news.retransmission_acked = true;
            } else if !sent.sacked {
                extend(&mut news.acked_span, sent.sent_ns);
                if sent.seq < highest_sacked {
                    news.overtaken = Some(news.overtaken.map_or(sent.seq, |low| low.min(sent.seq)));
                }
            }
        }
        if let Some(start) = news.overtaken {
            let extent = self.board.highest_sacked(self.una).saturating_sub(start);
            self.rack.on_reordering(extent, self.mss_bytes);
        }
    }

    /// Measures the round trip on segments that were sent once (Karn's rule: RFC 6298, section 3), or else by timestamp.
    /// Returns that of the newest segment.
    fn take_rtt(&mut self, now_ns: u64, ts_ecr: u32, news: &News) -> Option<u64> {
        let acked = news.acked_span.filter(|_| !news.retransmission_acked);
        let (oldest, newest) = match (acked, news.sacked_span) {
            (Some((first, last)), None) => (Some(first), Some(last)),
            (acked, Some((first, last))) => (acked.map(|(acked_first, _)| acked_first).or(Some(first)), Some(last)),
            (None, None) => (None, None),
        };
        let mut rtt_ns = oldest.map(|sent_ns| now_ns - sent_ns);
        let mut newest_ns = newest.map(|sent_ns| now_ns - sent_ns);
        if rtt_ns.is_none() && news.advanced {
            rtt_ns = timestamps::elapsed_ns(now_ns, ts_ecr);
            newest_ns = rtt_ns;
        }
        let (rtt_ns, newest_ns) = (rtt_ns?, newest_ns?);
        self.rtt.add_min(now_ns, newest_ns);
        self.rtt.add(rtt_ns, self.una, self.nxt);
        self.timer.reset_backoff();
        Some(newest_ns)
    }

    /// RFC 8985, section 7.4: a probe that repaired a loss is congestion, and over at once.
    fn check_probe(&mut self, now_ns: u64, segment: &Segment, news: &News) {
        let duplicate = news.duplicate.is_some_and(|block| Some(block.end) == self.probe.repeated_end());
        let pure_repeat = news.repeats && !news.sacked && news.duplicate.is_none();
        if self.probe.on_ack(Answer { ack: segment.ack, duplicate, pure_repeat }) && !self.recovery.is_reducing() {
            self.begin_reduction(now_ns, State::Cwr);
            self.end_reduction(now_ns);
            self.enter(now_ns, self.undisturbed_state(), self.nxt);
        }
    }

    /// Something is or was amiss: leaves states that are over, looks for losses, enters states that begin. Returns whether
    /// the timer now waits for reordered segments.
    fn on_alarm(&mut self, now_ns: u64, news: &mut News) -> bool {
        self.leave_finished_state(now_ns);
        let retransmitted_before = self.board.retransmitted();
        let situation = self.situation(now_ns);
        let look_again = self.rack.detect_after_ack(&mut self.board, situation);
        self.report_losses(now_ns);
        news.retransmission_lost = self.board.retransmitted() < retransmitted_before;
        if let Some(look_again_ns) = look_again {
            self.timer.arm(Wait::Reorder, look_again_ns.max(now_ns) + REORDER_SLACK_NS);
        }
        match self.recovery.state() {
            State::Recovery => {}
            State::Loss if !news.retransmission_lost => {}
            _ if self.board.lost() > 0 => self.enter_recovery(now_ns),
            _ => self.stay_open(now_ns, news.echo),
        }
        look_again.is_some()
    }

    /// A state that lasts until a sequence number is acknowledged may be over.
    fn leave_finished_state(&mut self, now_ns: u64) {
        let (state, end) = (self.recovery.state(), self.recovery.end());
        match state {
            // One more must be acknowledged, so that the CWR flag has reached the receiver.
            State::Cwr if self.una > end => self.end_reduction(now_ns),
            State::Recovery if self.una >= end => {
                self.end_reduction(now_ns);
                self.rack.on_recovered();
            }
            State::Loss if self.una >= end => self.rack.on_recovered(),
            _ => return,
        }
        self.enter(now_ns, self.undisturbed_state(), self.nxt);
    }

    /// Fast recovery begins. A reduction for an ECN echo that is under way goes on: the window is reduced once.
    pub(super) fn enter_recovery(&mut self, now_ns: u64) {
        if self.recovery.is_reducing() {
            self.enter(now_ns, State::Recovery, self.recovery.end());
        } else {
            self.begin_reduction(now_ns, State::Recovery);
        }
    }

    /// Tells the congestion control which packets were marked lost, if it wants to know.
    pub(super) fn report_losses(&mut self, now_ns: u64) {
        if self.cc.watches_losses() {
            for lost in self.board.take_losses() {
                self.cc.on_lost(&self.context(now_ns), &lost);
            }
        }
    }

    /// Nothing is lost: reduces the window if the peer echoed congestion, else notes whether anything is out of order.
    fn stay_open(&mut self, now_ns: u64, echo: bool) {
        if self.recovery.state() >= State::Cwr {
            return;
        }
        if echo {
            return self.begin_reduction(now_ns, State::Cwr);
        }
        let state = self.undisturbed_state();
        if state != self.recovery.state() {
            self.enter(now_ns, state, self.nxt);
        }
    }

    /// Open, or disorder while anything was selectively acknowledged, lost or sent again.
    fn undisturbed_state(&self) -> State {
        let untidy = self.board.sacked() + self.board.lost() + self.board.retransmitted() > 0
            || self.board.head().is_some_and(|head| head.ever_retransmitted);
        if untidy { State::Disorder } else { State::Open }
    }

    /// What the acknowledgement comes to for the congestion control.
    fn summary(&mut self, now_ns: u64, news: &News, ack: Ack) -> Ack {
        let min_rtt_ns = self.rtt.min_ns().unwrap_or(0);
        let rate = self.delivery.sample(now_ns, news.delivered, self.board.lost_total(), min_rtt_ns);
        Ack { acked: news.delivered, rate, ..ack }
    }

    /// Lets the window shrink or grow by what was delivered (`tcp_cong_control`).
    fn adjust_window(&mut self, now_ns: u64, news: &News, ack: &Ack) {
        // With reordering, selective acknowledgements are progress too.
        let progress = ack.acked > 0 && (news.advanced || (self.rack.reorders() && news.sacked));
        if self.cc.governs() {
            self.cc.on_ack(&self.context(now_ns), ack);
        } else if self.recovery.is_reducing() {
            self.reduce_window(Progress { delivered: ack.acked, lost: ack.lost, advanced: news.advanced });
        } else if progress {
            self.cc.on_ack(&self.context(now_ns), ack);
        }
        self.update_pacing(now_ns);
        if std::mem::take(&mut self.cc.window_mut().mark_app_limited) {
            self.delivery.mark_app_limited(self.board.in_flight());
        }
    }

    pub(super) fn reduce_window(&mut self, progress: Progress) {
        let ssthresh = self.cc.window().ssthresh;
        if let Some(cwnd) = self.recovery.reduced_cwnd(progress, self.board.in_flight(), ssthresh) {
            self.set_cwnd(cwnd);
        }
    }

    /// A window that was not used up must not grow; in slow start half of it is enough, since it doubles.
    pub(super) fn is_cwnd_limited(&self) -> bool {
        let window = self.cc.window();
        self.usage.limited || (window.in_slow_start() && window.cwnd < 2 * self.usage.max_packets_out)
    }

    /// While the window is closed: stops probing when it has opened far enough, else goes on.
    fn check_persist(&mut self, now_ns: u64) {
        if self.timer.wait() != Some(Wait::Persist) {
            return;
        }
        match self.next_new() {
            Some((len, fin)) if !self.fits_peer_window(len, fin) => {
                self.timer.arm(Wait::Persist, now_ns + self.timer.rto_ns(&self.rtt));
            }
            _ => {
                self.timer.reset_backoff();
                self.timer.disarm();
            }
        }
    }
}

impl News {
    fn is_alarming(&self) -> bool {
        self.sacked || self.echo || self.duplicate.is_some()
    }
}

/// Is the first block a duplicate report: below the acknowledgement, or inside the second block (RFC 2883, section 4)?
fn is_duplicate_report(blocks: &[SackBlock], ack: u64) -> bool {
    let inside = |outer: &SackBlock| outer.start <= blocks[0].start && blocks[0].end <= outer.end;
    blocks[0].start < ack || blocks.get(1).is_some_and(inside)
}

/// Extends a span of times that only ever grows at its end.
fn extend(span: &mut Option<(u64, u64)>, at_ns: u64) {
    *span = Some(span.map_or((at_ns, at_ns), |(first, _)| (first, at_ns)));
}
