//! `tbf`: a token bucket filter. Passes packets on at a rate of its own, and after idle times a burst at once.
//!
//! Source: Linux `net/sched/sch_tbf.c`, with the conversion of lengths to times in `net/sched/sch_generic.c`
//! (`psched_ratecfg_precompute`):
//! - tokens are nanoseconds; a packet takes as many as its transmission at the rate;
//! - the backlog is in an inner discipline, of which only the first packet is peeked at;
//! - a packet that is larger than the bucket is dropped; one of several segments is segmented if these fit, and the
//!   sender gets their common result.
//!
//! Departs: if the link's overhead is not 14 bytes, the kernel ignores it for segments that it has split off.

use bufferscope_scenario::sizes::{FRAME_BYTES, MTU_BYTES};
use bufferscope_scenario::{self as scenario, Encapsulation, Reason};

use crate::network::pool::{Backlog, PacketId, Pool};
use crate::network::qdisc::shared::inner::Inner;
use crate::network::qdisc::shared::rate::Rate;
use crate::network::qdisc::shared::segments::each_segment;
use crate::network::qdisc::{Attachment, Dequeued, Discipline, QdiscEvents, inside};
use crate::network::xmit::Xmit;

#[derive(Debug)]
pub(crate) struct Tbf {
    inner: Inner,
    bucket: Bucket,
    peak: Option<Bucket>,
    /// Largest packet that finds enough tokens in a full bucket.
    max_bytes: u32,
    /// What the link adds to each packet.
    link: Encapsulation,
    /// When the buckets were last updated.
    updated_at_ns: u64,
}

/// A bucket of tokens. They are nanoseconds, of which one arrives each nanosecond.
#[derive(Debug)]
struct Bucket {
    rate: Rate,
    size_ns: i64,
    tokens_ns: i64,
}

impl Discipline for Tbf {
    type Parameters = scenario::Tbf;

    const KEEPS_TIME: bool = true;

    fn new(parameters: &scenario::Tbf, attachment: Attachment) -> Result<Self, String> {
        let (peak, limit_bytes) = (parameters.peak.as_ref(), parameters.limit_bytes);
        Ok(Self {
            inner: match &parameters.inner {
                Some(inner) => Inner::new(inner, attachment.inner(0))?,
                None => Inner::new(&scenario::Qdisc::Bfifo(scenario::Bfifo { limit_bytes }), attachment)?,
            },
            bucket: Bucket::new(parameters.rate_bps, parameters.burst_bytes),
            peak: peak.map(|peak| Bucket::new(peak.rate_bps, peak.mtu_bytes)),
            max_bytes: peak.map_or(u32::MAX, |peak| peak.mtu_bytes).min(parameters.burst_bytes),
            link: attachment.encapsulation,
            updated_at_ns: attachment.now_ns,
        })
    }

    fn enqueue(&mut self, packet: PacketId, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Xmit {
        let header = pool.header(packet);
        if header.frame_bytes <= self.max_bytes {
            return self.inner.enqueue(packet, now_ns, pool, events);
        }
        if header.load.frames() > 1 && self.link.frame_bytes(MTU_BYTES) <= self.max_bytes {
            // `tbf_segment`.
            let link = self.link;
            let xmit = each_segment(packet, &link, pool, events, |packet, pool, events| {
                self.inner.enqueue(packet, now_ns, pool, events)
            });
            return if xmit.is_queued() { xmit } else { Xmit::Dropped };
        }
        events.drop(packet, Reason::OVERSIZE);
        Xmit::Dropped
    }

    fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) -> Dequeued {
        let first = match self.inner.peek(now_ns, pool, events) {
            Dequeued::Packet(first) => first,
            nothing => return nothing,
        };
        let frame_bytes = pool.header(first).frame_bytes;
        let arrived_ns = i64::try_from(now_ns - self.updated_at_ns).unwrap_or(i64::MAX).min(self.bucket.size_ns);
        let left_ns = self.bucket.left_ns(arrived_ns, frame_bytes);
        let peak_left_ns = self.peak.as_ref().map_or(0, |peak| peak.left_ns(arrived_ns, frame_bytes));
        let missing_ns = -left_ns.min(peak_left_ns);
        if missing_ns > 0 {
            return Dequeued::NotBefore(now_ns + missing_ns as u64);
        }
        self.updated_at_ns = now_ns;
        self.bucket.tokens_ns = left_ns;
        if let Some(peak) = &mut self.peak {
            peak.tokens_ns = peak_left_ns;
        }
        self.inner.dequeue(now_ns, pool, events)
    }

    /// `tbf_change`: an inner discipline of the same kind keeps its packets, and the buckets are full.
    fn change(&mut self, to: Self, pool: &Pool, events: &mut QdiscEvents) {
        let Self { inner, bucket, peak, max_bytes, link: _, updated_at_ns: _ } = to;
        self.inner.change(inner, pool, events);
        (self.bucket, self.peak, self.max_bytes) = (bucket, peak, max_bytes);
    }

    fn backlog(&self) -> Backlog {
        self.inner.backlog()
    }

    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.inner.each_packet(pool, visit);
    }

    fn each_in_flow_queues(&self, pool: &Pool, visit: &mut dyn FnMut(u64, PacketId)) {
        self.inner.qdisc.each_in_flow_queues(pool, &mut |queue, packet| visit(inside(0, queue), packet));
    }

    /// While a packet waits for tokens, the inner discipline is not dequeued. While none waits, it is only peeked at.
    fn idle_since(&mut self, at_ns: u64) {
        if self.inner.backlog().packets == 0 {
            self.inner.qdisc.peeked_empty_since(at_ns);
        }
    }

    fn timer(&self) -> Option<u64> {
        self.inner.qdisc.timer()
    }

    fn on_timer(&mut self, now_ns: u64, pool: &mut Pool, events: &mut QdiscEvents) {
        self.inner.qdisc.on_timer(now_ns, pool, events);
    }

    fn warning(&self) -> Option<String> {
        (self.max_bytes < FRAME_BYTES).then(|| {
            format!(
                "tbf: a burst of {} bytes is lower than a full packet of {FRAME_BYTES} bytes, which never passes",
                self.max_bytes
            )
        })
    }
}

impl Bucket {
    /// A full bucket that holds enough for a packet of `bytes`.
    fn new(bits_per_second: u64, bytes: u32) -> Self {
        let rate = Rate::new(bits_per_second);
        let size_ns = rate.duration_ns(bytes);
        Self { rate, size_ns, tokens_ns: size_ns }
    }

    /// The tokens that are left if `arrived_ns` have arrived and a frame takes its own; negative if they are too few.
    fn left_ns(&self, arrived_ns: i64, frame_bytes: u32) -> i64 {
        (self.tokens_ns + arrived_ns).min(self.size_ns) - self.rate.duration_ns(frame_bytes)
    }
}

#[cfg(test)]
mod tests;
