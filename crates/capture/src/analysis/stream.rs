//! One direction of a connection, as seen from one vantage point: the sender's data and its acknowledgements.

use std::collections::VecDeque;

use bufferscope_records::RetransmissionKind;

use super::ranges::{Covered, Range, Ranges, unwrap};
use super::rounds::Rounds;
use super::stamps::{Stamps, later};
use crate::{Flags, Segment};

/// A jump in sequence numbers that is larger than any window: it is another connection, or the segments are nonsense.
const JUMP_BYTES: i64 = 1 << 30;
/// Linux' minimum retransmission timeout, less a tick of a slow clock.
const TIMEOUT_NS: i64 = 190_000_000;
/// Without other evidence, a segment that arrives at most this long after its successor was reordered, not
/// retransmitted.
const REORDERED_NS: i64 = 3_000_000;
/// Without captured acknowledgements, one byte that is repeated after this time is a keep-alive.
const SILENCE_NS: i64 = 1_000_000_000;
/// Maximum number of retransmissions of one stream that may still turn out to be spurious.
const MOST_OPEN: usize = 1024;

/// The classification of a segment with payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// New bytes.
    New,
    /// Bytes that later ones overtook.
    Reordered,
    /// The same packet again, captured twice or duplicated by the network.
    Duplicate,
    /// At most one byte, just before the next expected one (RFC 9293, section 3.8.4).
    KeepAlive,
    /// A probe that is sent while the receiver's window is zero (RFC 9293, section 3.8.6.1).
    WindowProbe,
    /// A retransmission.
    Again(RetransmissionKind),
}

/// A retransmission, until it is known whether it was needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Again {
    pub(super) t_ns: i64,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) bytes: u32,
    pub(super) kind: RetransmissionKind,
    pub(super) stamp: Option<u32>,
    pub(super) spurious: bool,
}

/// Why the sender is retransmitting, and up to which sequence number.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    kind: RetransmissionKind,
    until: i64,
}

/// An acknowledgement of this stream, from the header of a segment of the other direction.
#[derive(Debug)]
pub(super) struct Acknowledgement<'a> {
    pub(super) segment: &'a Segment,
    /// The window of its sender, scaled; `None`: the scale is not known.
    pub(super) window_bytes: Option<u64>,
}

/// The state of one direction.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The sequence number of the first known byte of payload; `None`: no segment was seen yet.
    first: Option<i64>,
    /// Whether a segment of the sender was seen, and not just acknowledgements.
    synchronized: bool,
    /// The first byte that was not sent yet.
    pub(super) next: i64,
    /// The first byte that is not acknowledged; `None`: no acknowledgement was seen.
    pub(super) una: Option<i64>,
    /// The end of the stream, with the FIN.
    fin: Option<i64>,
    syn: Option<u32>,
    /// When the SYN left, until it is acknowledged; `None` if it was retransmitted.
    syn_ns: Option<i64>,
    /// Whether segments before the last one may have been missed.
    pub(super) after_gap: bool,
    /// The bytes of the last zero-window probes.
    probed: Option<(i64, i64)>,
    ranges: Ranges,
    highest_sacked: i64,
    duplicate_acks: u32,
    recovery: Option<Recovery>,
    open: VecDeque<Again>,
    pub(super) stamps: Stamps,
    rounds: Rounds,
    pub(super) mss_bytes: u32,
    pub(super) sack_permitted: bool,
    /// When data was last sent, or acknowledged.
    active_ns: i64,
    /// The window that the receiver advertised last, scaled.
    pub(super) window_bytes: Option<u64>,
    pub(super) counts: Counts,
}

/// The counters of a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) segments: u64,
    pub(super) delivered_packets: u64,
    pub(super) retransmissions: u64,
    pub(super) reordered: u64,
    pub(super) duplicates: u64,
    pub(super) keep_alives: u64,
    pub(super) window_probes: u64,
    pub(super) unseen_bytes: u64,
    pub(super) jumbos: u64,
    pub(super) zero_windows: u64,
    pub(super) jumps: u64,
    pub(super) ce: u64,
    pub(super) ece: u64,
    pub(super) cwr: u64,
    pub(super) largest_flight_bytes: u64,
}

impl Stream {
    /// Processes a segment of this direction. Returns its classification, if it occupies sequence numbers.
    pub(super) fn sent(&mut self, segment: &Segment) -> Option<Sent> {
        self.counts.segments += 1;
        self.counts.ce += u64::from(segment.ecn == 3);
        let syn = segment.flags.has(Flags::SYN);
        self.counts.ece += u64::from(segment.flags.has(Flags::ECE) && !syn);
        self.counts.cwr += u64::from(segment.flags.has(Flags::CWR) && !syn);
        if syn {
            return self.syn(segment);
        }
        if segment.flags.has(Flags::RST) {
            return None;
        }
        let was_synchronized = self.synchronized;
        let start = self.position(segment.seq);
        self.after_gap = !was_synchronized || start > self.next;
        let fin = segment.flags.has(Flags::FIN);
        let end = start + i64::from(segment.payload_bytes) + i64::from(fin);
        let is_closed = self.window_bytes == Some(0);
        if self.is_keep_alive(segment, start) {
            *(if is_closed { &mut self.counts.window_probes } else { &mut self.counts.keep_alives }) += 1;
            return Some(if is_closed { Sent::WindowProbe } else { Sent::KeepAlive });
        }
        if end == start {
            return None;
        }
        if is_closed && !fin && self.probes(segment, start, end) {
            return Some(Sent::WindowProbe);
        }
        if fin {
            self.fin = Some(end);
        }
        let sent = self.data(segment, start, end);
        self.active_ns = segment.t_ns;
        Some(sent)
    }

    /// Whether a segment has at most one byte, just before the next expected one. Without acknowledgements, only a
    /// preceding silence distinguishes it from a retransmission.
    fn is_keep_alive(&self, segment: &Segment, start: i64) -> bool {
        let is_short = segment.payload_bytes <= 1 && !segment.flags.has(Flags::FIN) && start + 1 == self.next;
        is_short && self.una.map_or(segment.t_ns - self.active_ns >= SILENCE_NS, |una| una >= self.next)
    }

    /// Whether a segment is a zero-window probe: it has the first byte beyond the window, or data that was sent before
    /// the window closed and that the receiver had to drop. Data that selective acknowledgements show to be lost is a
    /// retransmission, not a probe.
    fn probes(&mut self, segment: &Segment, start: i64, end: i64) -> bool {
        let is_new = start == self.next && segment.payload_bytes == 1;
        let is_old = end <= self.next && self.highest_sacked <= start;
        if self.una != Some(start) || !(is_new || is_old) {
            return false;
        }
        if is_new {
            self.fresh(segment, start, end);
        } else {
            self.seen_again(segment, start, end, 2);
        }
        self.counts.window_probes += 1;
        let known = self.probed.filter(|probed| probed.0 == start);
        self.probed = Some((start, known.map_or(end, |probed| probed.1.max(end))));
        true
    }

    fn syn(&mut self, segment: &Segment) -> Option<Sent> {
        self.mss_bytes = 0;
        let repeated = self.syn == Some(segment.seq);
        self.syn = Some(segment.seq);
        self.sack_permitted = segment.options.sack_permitted;
        if !repeated {
            self.next = unwrap(segment.seq, 1 << 32) + 1;
            self.first = Some(self.next);
            self.synchronized = true;
            self.active_ns = segment.t_ns;
            self.syn_ns = Some(segment.t_ns);
            if segment.payload_bytes == 0 {
                return None;
            }
            // TCP Fast Open (RFC 7413, section 3).
            self.fresh(segment, self.next, self.next + i64::from(segment.payload_bytes));
            return Some(Sent::New);
        }
        self.syn_ns = None;
        self.counts.retransmissions += 1;
        let start = self.first.unwrap_or(self.next);
        self.again(segment, start - 1, start, RetransmissionKind::Syn);
        Some(Sent::Again(RetransmissionKind::Syn))
    }

    /// The 64-bit position of a sequence number in the stream. If the number is not near any known one, the stream
    /// starts anew with it.
    fn position(&mut self, sequence: u32) -> i64 {
        if self.first.is_none() {
            self.next = unwrap(sequence, 1 << 32);
            self.first = Some(self.next);
        }
        let start = unwrap(sequence, self.next);
        if !self.synchronized && (start - self.next).abs() <= JUMP_BYTES {
            // The bytes in between were sent before the capture began.
            self.next = start;
        }
        if !self.synchronized {
            // Acknowledgements of data that was sent before the capture began do not count as goodput.
            self.first = self.first.max(Some(start));
        }
        self.synchronized = true;
        if (start - self.next).abs() > JUMP_BYTES {
            self.counts.jumps += 1;
            self.ranges.clear();
            self.recovery = None;
            self.next = start;
            self.first = Some(start - (self.delivered_bytes() + self.counts.unseen_bytes) as i64);
            self.una = self.una.map(|_| start);
        }
        start
    }

    fn data(&mut self, segment: &Segment, start: i64, end: i64) -> Sent {
        if segment.payload_bytes > self.mss_bytes && segment.payload_bytes <= 9000 {
            self.mss_bytes = segment.payload_bytes;
        }
        self.counts.jumbos += u64::from(segment.payload_bytes > self.mss_bytes);
        let sent = if start >= self.next {
            Sent::New
        } else if self.probed.is_some_and(|probed| probed.0 <= start && end.min(self.next) <= probed.1) {
            // The window opened, and the data of the probes is now sent regularly.
            self.seen_again(segment, start, end.min(self.next), 2);
            if end > self.next { Sent::New } else { Sent::WindowProbe }
        } else {
            self.old(segment, start, end.min(self.next))
        };
        if end > self.next {
            self.fresh(segment, start.max(self.next), end);
        }
        sent
    }

    fn fresh(&mut self, segment: &Segment, start: i64, end: i64) {
        let range = Range {
            start,
            end,
            t_ns: segment.t_ns,
            seen: 1,
            sacked: false,
            ip_id: segment.ip_id.filter(|id| *id != 0),
            stamp: segment.options.timestamps.map(|stamps| stamps.0),
        };
        if start > self.next {
            self.ranges.push(Range { start: self.next, end: start, seen: 0, ..range });
        }
        self.next = end;
        if self.una.is_none_or(|una| end > una) {
            self.ranges.push(range);
        }
        let flight = self.flight_bytes();
        self.counts.largest_flight_bytes = self.counts.largest_flight_bytes.max(flight);
        let mss = u64::from(self.mss_bytes);
        let short = mss > 0 && !u64::from(segment.payload_bytes).is_multiple_of(mss);
        let no_room = self.window_bytes.is_some_and(|window| flight + mss > window);
        self.rounds.sent(flight, short || no_room);
    }

    /// Processes bytes below the highest that was sent.
    fn old(&mut self, segment: &Segment, start: i64, end: i64) -> Sent {
        let id = segment.ip_id.filter(|id| *id != 0);
        let stamp = segment.options.timestamps.map(|stamps| stamps.0);
        let (mut unseen, mut same, mut seen) = (true, id.is_some(), 0);
        for range in self.ranges.between(start, end) {
            unseen &= range.seen == 0;
            same &= range.ip_id == id && range.stamp == stamp && range.seen > 0;
            seen = seen.max(range.seen);
        }
        let unacknowledged = self.una.is_none_or(|una| end > una);
        let kind = match () {
            () if unacknowledged && unseen => {
                if self.was_overtaken(segment, id, stamp, end) {
                    self.counts.reordered += 1;
                    self.seen_again(segment, start, end, 1);
                    return Sent::Reordered;
                }
                RetransmissionKind::Late
            }
            () if unacknowledged && same => {
                self.counts.duplicates += 1;
                return Sent::Duplicate;
            }
            () => self.cause(segment.t_ns, start, end, seen),
        };
        // As the sender counts them: an offloaded segment counts as several.
        self.counts.retransmissions += u64::from(segment.payload_bytes.div_ceil(self.mss_bytes.max(1)).max(1));
        self.seen_again(segment, start, end, 2);
        self.again(segment, start, end, kind);
        Sent::Again(kind)
    }

    fn seen_again(&mut self, segment: &Segment, start: i64, end: i64, least: u16) {
        for range in self.ranges.between(start, end) {
            range.seen = range.seen.saturating_add(1).max(least);
            range.t_ns = segment.t_ns;
        }
    }

    /// Whether a segment that fills a hole was sent before those that already arrived. This is decided by the IP
    /// identification, which a host increments, by the timestamps, or else by the time.
    fn was_overtaken(&self, segment: &Segment, id: Option<u16>, stamp: Option<u32>, end: i64) -> bool {
        let Some(after) = self.ranges.seen_after(end) else { return false };
        match (id, after.ip_id, stamp, after.stamp) {
            (Some(id), Some(other), ..) => (id.wrapping_sub(other) as i16) < 0,
            (_, _, Some(stamp), Some(other)) if stamp != other => later(other, stamp),
            _ => segment.t_ns - after.t_ns < REORDERED_NS,
        }
    }

    /// The cause of a retransmission of bytes that were seen before.
    fn cause(&mut self, t_ns: i64, start: i64, end: i64, seen: u16) -> RetransmissionKind {
        let head = self.una.is_none_or(|una| start <= una);
        let evidence = self.highest_sacked > start || self.duplicate_acks > 0;
        let quiet = t_ns - self.active_ns >= TIMEOUT_NS;
        let recovery = self.recovery.filter(|recovery| start < recovery.until);
        let tail = end == self.next && seen <= 1 && !evidence && recovery.is_none();
        let kind = match recovery {
            _ if tail && (!head || self.sack_permitted) => return RetransmissionKind::TailLossProbe,
            _ if head && quiet => RetransmissionKind::Timeout,
            Some(recovery) => return recovery.kind,
            None if evidence || !quiet => RetransmissionKind::Fast,
            None => RetransmissionKind::Timeout,
        };
        self.recovery = Some(Recovery { kind, until: self.next });
        kind
    }

    fn again(&mut self, segment: &Segment, start: i64, end: i64, kind: RetransmissionKind) {
        let stamp = segment.options.timestamps.map(|stamps| stamps.0);
        let bytes = segment.payload_bytes;
        self.open.push_back(Again { t_ns: segment.t_ns, start, end, bytes, kind, stamp, spurious: false });
    }

    /// Removes the oldest retransmission, if there are too many or at the end.
    pub(super) fn settled(&mut self, at_end: bool) -> Option<Again> {
        if at_end || self.open.len() > MOST_OPEN { self.open.pop_front() } else { None }
    }

    /// Processes an acknowledgement. Returns the time since the newest segment that it covers was sent, if that is
    /// known.
    pub(super) fn acknowledged(&mut self, acknowledgement: &Acknowledgement<'_>) -> Option<u64> {
        let segment = acknowledgement.segment;
        self.window_bytes = acknowledgement.window_bytes;
        self.counts.zero_windows += u64::from(segment.window == 0 && !segment.flags.has(Flags::RST));
        if self.first.is_none() {
            // Its data was not seen, or has not been seen yet.
            self.next = unwrap(segment.ack, 1 << 32);
            self.first = Some(self.next);
        }
        let ack = unwrap(segment.ack, self.next);
        if (ack - self.next).abs() > JUMP_BYTES {
            return None;
        }
        let before = self.una;
        let advances = before.is_none_or(|una| ack > una);
        let blocks = self.blocks(segment, ack);
        // Answers to zero-window probes are not duplicate acknowledgements (RFC 5681, section 2).
        let repeats = before == Some(ack) && segment.payload_bytes == 0 && segment.window > 0;
        if repeats && self.next > ack {
            self.duplicate_acks += u64::from(blocks.0 > 0 || !self.sack_permitted) as u32;
        }
        let repeated = self.duplicate_acks > 0 && !self.sack_permitted;
        let mut covered = Covered::default();
        if advances {
            covered = self.advance(segment, ack, before);
        }
        let selected = self.ranges.select(&blocks.1[..blocks.0]);
        self.counts.delivered_packets += covered.ranges + selected.ranges;
        if covered.ranges + selected.ranges > 0 {
            self.active_ns = segment.t_ns;
        }
        let flight = self.flight_bytes();
        if advances {
            self.rounds.acknowledged(ack, self.next, flight);
        }
        let newest = if covered.retransmitted || repeated { None } else { covered.newest_ns };
        let opened = self.opened(segment, ack, before);
        let since = newest.max(selected.newest_ns).or(opened)?;
        u64::try_from(segment.t_ns - since).ok()
    }

    /// When the SYN left, if this acknowledges the SYN alone.
    fn opened(&mut self, segment: &Segment, ack: i64, before: Option<i64>) -> Option<i64> {
        let is_answer = before.is_none() && self.first == Some(ack) && segment.payload_bytes == 0;
        self.syn_ns.take().filter(|_| is_answer)
    }

    fn advance(&mut self, segment: &Segment, ack: i64, before: Option<i64>) -> Covered {
        if ack > self.next {
            // The capture missed what is acknowledged here.
            self.counts.unseen_bytes += (ack - self.next) as u64;
            self.next = ack;
        }
        if before.is_none() && self.syn_ns.is_some() && self.first == Some(ack) {
            // Only the SYN was accepted. Its data is sent again after the handshake, and counts as sent for the first
            // time.
            self.ranges.clear();
            self.next = ack;
        }
        self.una = Some(ack);
        self.duplicate_acks = 0;
        self.recovery = self.recovery.filter(|recovery| ack < recovery.until);
        self.probed = self.probed.filter(|probed| ack < probed.1);
        let covered = self.ranges.acknowledge(ack);
        self.counts.unseen_bytes += covered.unseen_bytes;
        if covered.retransmitted
            && let Some((_, echo)) = segment.options.timestamps
        {
            self.judge_by_echo(before.unwrap_or(ack), ack, echo);
        }
        covered
    }

    /// Eifel detection (RFC 3522): the acknowledgement of a retransmission echoes an earlier timestamp, so the original
    /// caused it.
    fn judge_by_echo(&mut self, from: i64, ack: i64, echo: u32) {
        for again in self.open.iter_mut().rev().take_while(|again| again.end > from) {
            let first_covered = again.start <= from && again.end <= ack;
            again.spurious |= first_covered && again.stamp.is_some_and(|stamp| later(stamp, echo));
        }
    }

    /// The blocks of a selective acknowledgement above `ack`. A first block below `ack` reports a duplicate (RFC 2883).
    fn blocks(&mut self, segment: &Segment, ack: i64) -> (usize, [(i64, i64); 4]) {
        let options = &segment.options;
        let mut blocks = [(0, 0); 4];
        let mut count = 0;
        let received = &options.sack[..usize::from(options.sack_blocks).min(options.sack.len())];
        for (index, &(left, right)) in received.iter().enumerate() {
            let block = (unwrap(left, self.next), unwrap(right, self.next));
            if block.0 >= block.1 || block.1 > self.next || self.next - block.0 > JUMP_BYTES {
                continue;
            }
            let inside = received.get(1).is_some_and(|&(left, right)| {
                unwrap(left, self.next) <= block.0 && block.1 <= unwrap(right, self.next)
            });
            if index == 0 && (block.1 <= ack || inside) {
                self.judge_by_duplicate(block);
            } else if block.1 > ack {
                blocks[count] = (block.0.max(ack), block.1);
                count += 1;
                self.highest_sacked = self.highest_sacked.max(block.1);
            }
        }
        (count, blocks)
    }

    fn judge_by_duplicate(&mut self, block: (i64, i64)) {
        let open = self.open.iter_mut().rev().take(64);
        for again in open.filter(|again| again.start < block.1 && again.end > block.0) {
            again.spurious = true;
        }
    }

    /// Bytes sent and not yet acknowledged, cumulatively or selectively.
    pub(super) fn flight_bytes(&self) -> u64 {
        let una = self.una.or(self.first).unwrap_or(self.next);
        let ahead = u64::try_from(self.payload_end(self.next) - self.payload_end(una)).unwrap_or(0);
        ahead.saturating_sub(self.ranges.sacked_bytes())
    }

    /// Payload acknowledged since the first segment, except bytes that the capture missed.
    pub(super) fn delivered_bytes(&self) -> u64 {
        let (Some(first), Some(una)) = (self.first, self.una) else { return 0 };
        u64::try_from(self.payload_end(una) - first).unwrap_or(0).saturating_sub(self.counts.unseen_bytes)
    }

    /// A sequence number, without counting the FIN.
    fn payload_end(&self, sequence: i64) -> i64 {
        if self.fin.is_some_and(|fin| sequence >= fin) { sequence - 1 } else { sequence }
    }

    /// Number of segments that are missing below the highest selectively acknowledged one and were not retransmitted.
    pub(super) fn lost_packets(&self) -> u64 {
        self.ranges.missing_before(self.highest_sacked, u64::from(self.mss_bytes.max(1)))
    }

    /// The congestion window estimated from the last round trip.
    pub(super) fn cwnd_bytes(&self) -> Option<u64> {
        self.rounds.cwnd_bytes()
    }

    /// Whether all that was sent is acknowledged, and the end of the stream was sent.
    pub(super) fn is_over(&self) -> bool {
        self.fin.is_some_and(|fin| self.una.is_some_and(|una| una >= fin))
    }

    /// Number of ranges in memory.
    pub(super) fn held(&self) -> usize {
        self.ranges.len()
    }
}
