//! A summary of one acknowledgement (the kernel's flags of `tcp_ack`, and `tcp_sacktag_state`).

use super::super::timestamps;
use crate::network::segment::{SackBlock, Segment};

/// The contents of an acknowledgement, filled in step by step.
#[derive(Debug, Default)]
pub(crate) struct AckSummary {
    /// The peer's echo of our clock; 0 without echo.
    pub(crate) ecr: u32,
    /// The peer's clock minus that echo; `None` without echo.
    pub(crate) one_way_ms: Option<u32>,
    /// SND.UNA before the acknowledgement.
    pub(crate) una_before: u64,
    /// SND.UNA advanced.
    pub(crate) advanced: bool,
    /// Nothing else than that, so the kernel takes its fast path.
    pub(crate) predicted: bool,
    /// Packets acknowledged cumulatively, whether or not they were selectively acknowledged before.
    pub(crate) popped: u32,
    /// Packets delivered, cumulatively or selectively acknowledged for the first time, or reported as duplicates.
    pub(crate) delivered: u32,
    /// Some were selectively acknowledged for the first time.
    pub(crate) sacked: bool,
    /// A retransmitted segment was acknowledged cumulatively.
    pub(crate) retransmission_acked: bool,
    /// A segment that was outstanding when the current state began was acknowledged, and had never been retransmitted.
    pub(crate) original_delivered: bool,
    /// The receiver reports a duplicate (RFC 2883).
    pub(crate) duplicate: Option<SackBlock>,
    /// The duplicate is a tail loss probe.
    pub(crate) probe_was_duplicate: bool,
    /// Packets that were marked with congestion, as reported by the receiver.
    pub(crate) ce_packets: u32,
    /// The receiver reports congestion.
    pub(crate) echo: bool,
    /// A retransmission was lost.
    pub(crate) retransmission_lost: bool,
    /// The timer was set to wait for reordered segments.
    pub(crate) waits_for_reordered: bool,
    /// The segment has no data, no new window, and no new acknowledgement.
    pub(crate) repeats: bool,
    /// When the first and last of the newly acknowledged segments were sent, counting only those sent once.
    pub(crate) acked_span: Option<(u64, u64)>,
    /// The same for those selectively acknowledged.
    pub(crate) sacked_span: Option<(u64, u64)>,
}

impl AckSummary {
    /// The summary of `segment` before it is processed.
    pub(crate) fn of(segment: &Segment, una: u64) -> Self {
        let one_way_ms = timestamps::one_way_ms(segment.ts_val, segment.ts_ecr);
        let advanced = segment.ack > una;
        Self { ecr: segment.ts_ecr, one_way_ms, una_before: una, advanced, ..Self::default() }
    }

    /// Whether there is reason to suspect a loss or congestion (`tcp_ack_is_dubious`).
    #[inline]
    pub(crate) fn is_dubious(&self) -> bool {
        self.sacked || self.echo || self.duplicate.is_some()
    }
}

/// Extends a span of times that only ever grows at its end.
pub(crate) fn extend(span: &mut Option<(u64, u64)>, at_ns: u64) {
    *span = Some(span.map_or((at_ns, at_ns), |(first, _)| (first, at_ns)));
}
