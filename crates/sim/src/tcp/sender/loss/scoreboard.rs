//! The segments in flight: one entry each, from the first unacknowledged to the last sent (RFC 6675, section 4).
//!
//! The scoreboard is a ring. Sending appends entries, and cumulative acknowledgements remove them from the front. A
//! sequence number is found by division, since nearly all segments are full. The counters are the kernel's
//! (`packets_out`, `sacked_out`, `lost_out`, `retrans_out`). They are updated with the marks, so that counting never
//! requires a walk over the ring.

use crate::network::segment::{Flags, SackBlock, SackBlocks};
use crate::tcp::sender::sending::output::Parcel;
use crate::transport::congestion::LostPacket;
use crate::transport::delivery_rate::{Note, Transmission};
use std::collections::VecDeque;

/// A segment's index in the order of first transmissions: 0, 1, 2, ... over the life of the connection.
pub(crate) type SentId = u64;

/// One transmitted segment that has not been acknowledged cumulatively.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// First sequence number.
    pub(crate) seq: u64,
    /// When it was last transmitted.
    pub(crate) sent_ns: u64,
    /// Number of the packet in which it was last transmitted, counted over the connection. It shows which of two
    /// transmissions was later, even if both have the same time.
    pub(crate) order: u64,
    /// The delivery-rate note of that transmission.
    pub(crate) note: Note,
    /// Payload bytes.
    pub(crate) len: u16,
    /// FIN, which takes one sequence number, and PSH. It keeps them when it is retransmitted.
    pub(crate) flags: Flags,
    /// Selectively acknowledged.
    pub(crate) sacked: bool,
    /// Considered lost. It stays so when it is retransmitted, until it is acknowledged.
    pub(crate) lost: bool,
    /// Its latest retransmission is considered to be in flight.
    pub(crate) retransmitted: bool,
    /// It was retransmitted at least once.
    pub(crate) ever_retransmitted: bool,
    /// The application was the limit at its last transmission.
    pub(crate) app_limited: bool,
}

/// The segments in flight.
#[derive(Debug)]
pub(crate) struct Scoreboard {
    ring: VecDeque<Sent>,
    first_id: SentId,
    mss_bytes: u32,
    sacked: u32,
    /// Pairs of neighbours that left in one packet or are both selectively acknowledged. The kernel joins these
    /// (`tcp_shift_skb_data`).
    joined: u32,
    lost: u32,
    retransmitted: u32,
    /// The number of segments to retransmit: lost, and not retransmitted since.
    to_retransmit: u32,
    /// No segment before this needs a retransmission.
    retransmit_from: SentId,
    /// Packets transmitted so far.
    transmissions: u64,
    /// How often a segment was marked lost.
    lost_total: u64,
    /// End of the highest block ever selectively acknowledged.
    highest_sacked: u64,
    /// The blocks of the last acknowledgement, which need not be walked again.
    known: [SackBlock; SackBlocks::MAX],
    /// The segments marked lost since they were last taken, if reporting is on.
    reported: Option<Vec<LostPacket>>,
}

const NO_BLOCK: SackBlock = SackBlock { start: 0, end: 0 };

impl Sent {
    /// Its last transmission, for the measurement of the delivery rate.
    #[inline]
    pub(crate) fn transmission(&self) -> Transmission {
        Transmission {
            sent_ns: self.sent_ns,
            order: self.order,
            note: self.note,
            app_limited: self.app_limited,
            is_retransmission: self.ever_retransmitted,
        }
    }

    /// A segment sent for the first time.
    pub(crate) fn new(seq: u64, len: u32, flags: Flags, sent_ns: u64, note: Note) -> Self {
        let len = u16::try_from(len).expect("a segment fits an IP packet");
        let [sacked, lost, retransmitted, ever_retransmitted, app_limited] = [false; 5];
        Self { seq, sent_ns, order: 0, note, len, flags, sacked, lost, retransmitted, ever_retransmitted, app_limited }
    }

    /// First sequence number after it.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.seq + u64::from(self.len) + u64::from(self.flags.fin())
    }
}

impl Scoreboard {
    /// An empty scoreboard for segments of up to `mss_bytes`. With `reports`, losses can be [taken](Self::take_losses).
    pub(crate) fn new(mss_bytes: u32, reports: bool) -> Self {
        Self {
            ring: VecDeque::new(),
            first_id: 0,
            mss_bytes,
            sacked: 0,
            joined: 0,
            lost: 0,
            retransmitted: 0,
            to_retransmit: 0,
            retransmit_from: 0,
            transmissions: 0,
            lost_total: 0,
            highest_sacked: 0,
            known: [NO_BLOCK; SackBlocks::MAX],
            reported: reports.then(Vec::new),
        }
    }

    /// Segments sent and not acknowledged cumulatively.
    #[inline]
    pub(crate) fn packets_out(&self) -> u32 {
        self.ring.len() as u32
    }

    /// Segments considered to be in the network: the "pipe" of RFC 6675, section 4.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        self.packets_out() - self.sacked - self.lost + self.retransmitted
    }

    /// Segments selectively acknowledged.
    pub(crate) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// The number of buffers that hold the outstanding segments. [Joined](Self::joined) segments share a buffer.
    pub(crate) fn buffers(&self) -> u32 {
        self.packets_out() - self.joined
    }

    /// Whether any segments share a buffer.
    #[inline]
    pub(crate) fn joins(&self) -> bool {
        self.joined > 0
    }

    /// Segments considered lost.
    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    /// Segments ever marked lost.
    pub(crate) fn lost_total(&self) -> u64 {
        self.lost_total
    }

    /// The number of packets transmitted so far, which is also the number of the last one.
    pub(crate) fn transmissions(&self) -> u64 {
        self.transmissions
    }

    /// Segments whose retransmission is in flight.
    pub(crate) fn retransmitted(&self) -> u32 {
        self.retransmitted
    }

    /// End of the highest block selectively acknowledged, at least `una`.
    pub(crate) fn highest_sacked(&self, una: u64) -> u64 {
        self.highest_sacked.max(una)
    }

    /// The oldest segment.
    #[inline]
    pub(crate) fn head(&self) -> Option<&Sent> {
        self.ring.front()
    }

    /// Ids of the segments, oldest first.
    pub(crate) fn ids(&self) -> std::ops::Range<SentId> {
        self.first_id..self.first_id + self.ring.len() as u64
    }

    /// The segment with this id; `None` once it is acknowledged.
    #[inline]
    pub(crate) fn get(&self, id: SentId) -> Option<&Sent> {
        self.ring.get(id.checked_sub(self.first_id)? as usize)
    }

    /// The number of segments from `id` on, up to `most`, that left in the same packet and must be retransmitted.
    pub(crate) fn lost_together(&self, id: SentId, most: u32) -> u32 {
        let order = self.get(id).map(|sent| sent.order);
        let belongs = |id: &SentId| {
            self.get(*id).is_some_and(|sent| Some(sent.order) == order && sent.lost && !sent.retransmitted)
        };
        (id + 1..).take(most as usize - 1).take_while(belongs).count() as u32 + 1
    }

    /// The combined contents of `segments` segments from `id` on.
    pub(crate) fn parcel(&self, id: SentId, segments: u32) -> Parcel {
        let sent = || self.ring.range((id - self.first_id) as usize..).take(segments as usize);
        Parcel {
            seq: sent().next().expect("what is retransmitted is outstanding").seq,
            bytes: sent().map(|sent| u32::from(sent.len)).sum(),
            ends: sent().fold(Flags::NONE, |flags, sent| flags | sent.flags),
            segments,
        }
    }

    /// A new segment was sent. If it `joins`, it is in the same packet as the previous segment.
    pub(crate) fn push(&mut self, sent: Sent, joins: bool) {
        debug_assert!(self.ring.back().is_none_or(|last| last.end() == sent.seq));
        self.transmissions += u64::from(!joins);
        self.joined += u32::from(joins);
        self.ring.push_back(Sent { order: self.transmissions, ..sent });
    }

    /// Removes the oldest segment if `ack` covers all of it.
    #[inline]
    pub(crate) fn pop_acked(&mut self, ack: u64) -> Option<Sent> {
        let sent = *self.ring.front().filter(|sent| sent.end() <= ack)?;
        if self.joined > 0 {
            self.joined -= self.pairs_at(0);
        }
        self.ring.pop_front();
        self.first_id += 1;
        self.sacked -= u32::from(sent.sacked);
        self.forget_marks(&sent);
        Some(sent)
    }

    /// Marks the segments that `blocks` newly acknowledge. Calls `on_sacked` with each of them in its previous state.
    pub(crate) fn sack(&mut self, blocks: &[SackBlock], mut on_sacked: impl FnMut(&Sent)) {
        for block in blocks {
            let mut from = block.start;
            while from < block.end {
                if let Some(known) = self.known.iter().find(|k| k.start <= from && from < k.end) {
                    from = known.end;
                    continue;
                }
                let to = self.known.iter().map(|k| k.start).filter(|&start| start > from).fold(block.end, u64::min);
                self.sack_range(from, to, &mut on_sacked);
                from = to;
            }
        }
        self.known = [0, 1, 2].map(|i| blocks.get(i).copied().unwrap_or(NO_BLOCK));
    }

    /// Marks a segment, or its retransmission, lost.
    pub(crate) fn mark_lost(&mut self, id: SentId) {
        let sent = &mut self.ring[(id - self.first_id) as usize];
        debug_assert!(!sent.sacked && (!sent.lost || sent.retransmitted));
        self.lost += u32::from(!sent.lost);
        self.retransmitted -= u32::from(sent.retransmitted);
        sent.lost = true;
        sent.retransmitted = false;
        self.to_retransmit += 1;
        self.retransmit_from = self.retransmit_from.min(id);
        self.lost_total += 1;
        if let Some(reported) = &mut self.reported {
            reported.push(LostPacket {
                tx_in_flight: sent.note.in_flight,
                lost_since: (self.lost_total as u32).wrapping_sub(sent.note.lost),
                is_app_limited: sent.app_limited,
            });
        }
    }

    /// The segments marked lost since the last call.
    pub(crate) fn take_losses(&mut self) -> Vec<LostPacket> {
        self.reported.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The oldest segment that was lost and has not been retransmitted since.
    pub(crate) fn next_to_retransmit(&mut self) -> Option<SentId> {
        if self.to_retransmit == 0 {
            self.retransmit_from = self.ids().end;
            return None;
        }
        let skip = self.retransmit_from.max(self.first_id) - self.first_id;
        let found = self.ring.iter().skip(skip as usize).position(|sent| sent.lost && !sent.retransmitted);
        self.retransmit_from = self.first_id + skip + found? as u64;
        Some(self.retransmit_from)
    }

    /// A segment was retransmitted. If it `joins`, it is in the same packet as the previous segment.
    pub(crate) fn retransmit(&mut self, id: SentId, now_ns: u64, note: Note, app_limited: bool, joins: bool) -> Sent {
        let sent = &mut self.ring[(id - self.first_id) as usize];
        self.to_retransmit -= u32::from(sent.lost && !sent.retransmitted);
        self.retransmitted += u32::from(!sent.retransmitted);
        sent.retransmitted = true;
        self.repeat(id, now_ns, note, app_limited, joins)
    }

    /// A tail loss probe repeated a segment. The repetition does not count as in flight.
    pub(crate) fn repeat(&mut self, id: SentId, now_ns: u64, note: Note, app_limited: bool, joins: bool) -> Sent {
        self.transmissions += u64::from(!joins);
        let index = (id - self.first_id) as usize;
        self.joined -= self.pairs_at(index);
        let sent = &mut self.ring[index];
        sent.ever_retransmitted = true;
        (sent.sent_ns, sent.order) = (now_ns, self.transmissions);
        (sent.note, sent.app_limited) = (note, app_limited);
        self.joined += self.pairs_at(index);
        self.ring[index]
    }

    /// The host dropped a retransmission: the segment can no longer serve to measure a round trip
    /// (`__tcp_retransmit_skb`).
    pub(crate) fn record_dropped_retransmission(&mut self, id: SentId, now_ns: u64) -> Sent {
        let sent = &mut self.ring[(id - self.first_id) as usize];
        (sent.ever_retransmitted, sent.sent_ns) = (true, now_ns);
        *sent
    }

    /// The receiver got the segments of `block` twice. Calls `on_duplicate` with each of them that had been
    /// retransmitted; its retransmission is then no longer in flight.
    pub(crate) fn duplicate(&mut self, block: SackBlock, mut on_duplicate: impl FnMut(&Sent)) {
        let first = self.index_of(block.start);
        for sent in self.ring.iter_mut().skip(first).take_while(|sent| sent.end() <= block.end) {
            if sent.seq >= block.start && sent.ever_retransmitted {
                on_duplicate(sent);
                if sent.retransmitted && !sent.lost {
                    sent.retransmitted = false;
                    self.retransmitted -= 1;
                }
            }
        }
    }

    /// Nothing is lost after all.
    pub(crate) fn unmark_losses(&mut self) {
        self.ring.iter_mut().for_each(|sent| sent.lost = false);
        self.lost = 0;
        self.to_retransmit = 0;
    }

    fn sack_range(&mut self, from: u64, to: u64, on_sacked: &mut impl FnMut(&Sent)) {
        let mut index = self.index_of(from);
        while let Some(&before) = self.ring.get(index).filter(|sent| sent.end() <= to) {
            if before.sacked || before.seq < from {
                index += 1;
                continue;
            }
            self.joined -= self.pairs_at(index);
            let sent = &mut self.ring[index];
            sent.sacked = true;
            if before.lost {
                // Only if the segment still counts as lost: after an undo, its retransmission remains in flight.
                (sent.lost, sent.retransmitted) = (false, false);
                self.forget_marks(&before);
            }
            self.sacked += 1;
            self.joined += self.pairs_at(index);
            self.highest_sacked = self.highest_sacked.max(before.end());
            index += 1;
            on_sacked(&before);
        }
    }

    /// How many of a segment's two neighbours it is joined with.
    fn pairs_at(&self, index: usize) -> u32 {
        let Some(sent) = self.ring.get(index) else { return 0 };
        let joins = |other: &Sent| other.order == sent.order || (other.sacked && sent.sacked);
        let neighbours = [index.wrapping_sub(1), index + 1];
        neighbours.map(|at| u32::from(self.ring.get(at).is_some_and(joins))).iter().sum()
    }

    /// Subtracts a segment's marks from the counters.
    fn forget_marks(&mut self, sent: &Sent) {
        self.lost -= u32::from(sent.lost);
        self.retransmitted -= u32::from(sent.retransmitted);
        self.to_retransmit -= u32::from(sent.lost && !sent.retransmitted);
    }

    /// Position of the segment that holds `seq`, or of the first one after it.
    fn index_of(&self, seq: u64) -> usize {
        let Some(first) = self.ring.front() else { return 0 };
        let guess = (seq.saturating_sub(first.seq) / u64::from(self.mss_bytes)) as usize;
        match self.ring.get(guess) {
            Some(sent) if sent.seq <= seq && seq < sent.end() => guess,
            _ => self.ring.partition_point(|sent| sent.end() <= seq),
        }
    }
}

#[cfg(test)]
mod tests;
