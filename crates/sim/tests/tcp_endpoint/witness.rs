//! Invariants of one end, on any path. They are checked from outside, by the segments that it sends and receives and by
//! the state that it reports.

use crate::net::MSS;
use bufferscope_sim::tcp::{Endpoint, Flags, Sample, Segment, State};
use std::collections::BTreeMap;

/// An independent observer of one end.
#[derive(Default)]
pub(crate) struct Witness {
    /// The ranges of sequence numbers that it has received, merged: start to end.
    delivered: BTreeMap<u64, u64>,
    /// Highest right edge of the window that it was offered.
    pub(crate) edge: u64,
    /// Next new sequence number it will send.
    nxt: u64,
    received_bytes: u64,
    acked_bytes: u64,
    /// What it has sent since the last check.
    burst: Burst,
    /// The tail loss probe that went beyond the window is not answered until this is acknowledged.
    probed_until: u64,
    /// The last acknowledgement that it sent.
    acked: u64,
    /// The newest clock of the peer that is to be echoed (RFC 7323, section 4.3).
    newest_clock: u32,
}

/// Segments with payload or a FIN.
#[derive(Clone, Copy, Debug, Default)]
struct Burst {
    segments: u64,
    /// Those of them that have a FIN.
    fins: u64,
    /// End of the first.
    oldest_end: Option<u64>,
}

impl Witness {
    pub(crate) fn on_delivery(&mut self, segment: &Segment, end: &Endpoint) {
        if self.is_old_duplicate(segment, end) {
            return;
        }
        if segment.flags.contains(Flags::ACK) {
            self.edge = self.edge.max(segment.ack + u64::from(segment.window_bytes));
        }
        let (mut start, mut end) = (segment.seq, segment.end());
        if segment.flags.syn() {
            self.edge = self.edge.max(1 + u64::from(segment.window_bytes));
        }
        if start == end {
            return;
        }
        while let Some((&other, &other_end)) = self.delivered.range(..=end).next_back().filter(|(_, e)| **e >= start) {
            (start, end) = (start.min(other), end.max(other_end));
            self.delivered.remove(&other);
        }
        self.delivered.insert(start, end);
    }

    /// Whether the segment has payload or a FIN and a clock that is more than 1 ms older than the newest
    /// (PAWS: RFC 7323, section 5.3).
    fn is_old_duplicate(&mut self, segment: &Segment, end: &Endpoint) -> bool {
        let is_old = segment.ts_val + 1 < self.newest_clock;
        let una = 1 + end.acked_bytes();
        if !is_old && segment.seq <= self.acked && segment.ack >= una && segment.end() >= self.acked {
            self.newest_clock = self.newest_clock.max(segment.ts_val);
        }
        is_old && segment.end() > segment.seq
    }

    /// Whether the segment was sent before.
    pub(crate) fn knows(&self, segment: &Segment) -> bool {
        segment.end() > segment.seq && segment.seq < self.nxt
    }

    pub(crate) fn on_sent(&mut self, segment: &Segment) {
        self.acked = segment.ack;
        if segment.end() > self.nxt {
            assert_eq!(segment.seq, self.nxt, "new data follows what was sent");
            assert!(segment.flags.syn() || segment.end() <= self.edge, "beyond the window: {segment:?}, {}", self.edge);
            self.nxt = segment.end();
        }
        if segment.len > 0 || segment.flags.fin() {
            self.burst.segments += 1;
            self.burst.oldest_end.get_or_insert(segment.end());
            self.burst.fins += u64::from(segment.flags.fin());
        }
    }

    /// Checks that exactly the data without a gap counts as received, that nothing is taken back, and that no segment
    /// was sent beyond the window.
    pub(crate) fn check(&mut self, end: &Endpoint, now_ns: u64, by_timer: bool) {
        let delivered_to = self.delivered.get(&0).copied().unwrap_or(1);
        assert_eq!(end.received_bytes() + 1 + u64::from(end.peer_finished()), delivered_to, "in order");
        assert!(end.received_bytes() >= self.received_bytes && end.acked_bytes() >= self.acked_bytes);
        (self.received_bytes, self.acked_bytes) = (end.received_bytes(), end.acked_bytes());
        let burst = std::mem::take(&mut self.burst);
        let una = 1 + end.acked_bytes();
        assert!(burst.oldest_end.is_none_or(|end| end > una), "acknowledged already: {burst:?}, {una}");
        self.check_window(&end.sample(now_ns), una, burst, by_timer);
    }

    /// After anything was sent, new or again, in whatever state, there is no more in flight than the congestion window allows.
    /// As in the kernel two segments may go beyond it: the last one, that carries the FIN (`tcp_cwnd_test`), and
    /// a tail loss probe, which is sent alone, by the timer, when no other is under way (`tcp_send_loss_probe`; a reduction of
    /// the window that begins forgets it: `tcp_init_cwnd_reduction`). Limited transmit and the recovery are no exceptions: what
    /// was selectively acknowledged is not in flight any more.
    ///
    /// (Without anything being sent the window may shrink below what is under way, and an undone loss be in flight again.)
    fn check_window(&mut self, sample: &Sample, una: u64, burst: Burst, by_timer: bool) {
        let reduced = sample.inflight_bytes <= sample.cwnd_bytes || !by_timer;
        if sample.state >= State::Cwr && reduced {
            // It may have begun just now, after an acknowledgement ended another one.
            self.probed_until = 0;
        }
        if burst.segments > burst.fins && sample.inflight_bytes > sample.cwnd_bytes + burst.fins * MSS {
            let may_be_probe = by_timer && burst.segments == 1 && una >= self.probed_until;
            assert!(may_be_probe, "{burst:?} beyond the window, by the timer: {by_timer}, {sample:?}");
            self.probed_until = self.nxt;
        }
        if sample.state == State::Open {
            // The acknowledgement of a FIN is not visible here.
            let outstanding = self.nxt.saturating_sub(una + 1);
            assert!(sample.inflight_bytes >= outstanding, "{outstanding} bytes are outstanding: {sample:?}");
        }
    }
}
