//! CoDel's control law, for one queue or for each of several.
//!
//! Source: Nichols and Jacobson, RFC 8289, as implemented in Linux (`include/net/codel_impl.h`). Linux differs from the
//! RFC's pseudocode, and this file follows Linux:
//! - the clock counts units of 1024 ns in 32 bits, compared by signed difference;
//! - `1/sqrt(count)` is a 16-bit fraction, improved by a single Newton step per drop. It lags behind the exact value:
//!   after the first gap of 100 ms, the gaps are 50, 56 and 49 ms where the RFC's law gives 71, 58 and 50 ms;
//! - when dropping resumes within 16 intervals, `count` starts from the number of drops of the last time, not from one;
//! - no packet is dropped while at most one MTU's worth of bytes remains in the discipline, in all its queues. That is
//!   the device's MTU and Ethernet header (`psched_mtu`), whatever overhead the link has.
//!
//! Departures: none known. (Since 2025 some kernels stop after 256 drops for a single packet sent; this is not
//! modelled.)

use bufferscope_scenario::sizes::FRAME_BYTES;
use bufferscope_scenario::{DsFilter, Reason};

use super::flow_queues::TurnQueue;
use crate::network::pool::{Fifo, PacketId, Pool};
use crate::network::qdisc::QdiscEvents;

/// A point or span of time in units of 1024 ns, modulo 2^32.
type Ticks = u32;

/// The parameters of the law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law {
    target: Ticks,
    interval: Ticks,
    ecn: bool,
    ce_threshold: Option<Ticks>,
    /// Which packets `ce_threshold` concerns.
    pub(crate) ce_filter: Option<DsFilter>,
}

/// The state of the law for a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State {
    /// Roughly the number of packets dropped (or marked) since dropping began; see [`State::start_dropping`].
    count: u32,
    /// `count` when dropping last began.
    last_count: u32,
    dropping: bool,
    /// About `2^16 / sqrt(count)`.
    inverse_sqrt: u16,
    /// When delay will have been above target for a whole interval; `None` while it is below.
    above_for_interval_at: Option<Ticks>,
    /// When to drop the next packet. While not dropping: when the next drop would have been.
    drop_next: Ticks,
    /// How long the last packet was in the queue.
    delay: Ticks,
}

/// A queue under the law.
pub(crate) trait Source {
    /// Takes the oldest packet.
    fn pop(&mut self, pool: &Pool) -> Option<PacketId>;

    /// Bytes that remain in the whole discipline.
    fn remaining_bytes(&self) -> u64;
}

impl Source for Fifo {
    #[inline]
    fn pop(&mut self, pool: &Pool) -> Option<PacketId> {
        Self::pop(self, pool)
    }

    #[inline]
    fn remaining_bytes(&self) -> u64 {
        self.bytes()
    }
}

impl Source for TurnQueue<'_> {
    #[inline]
    fn pop(&mut self, pool: &Pool) -> Option<PacketId> {
        TurnQueue::pop(self, pool)
    }

    #[inline]
    fn remaining_bytes(&self) -> u64 {
        self.total().bytes
    }
}

impl Law {
    /// The law with this target and interval.
    pub(crate) fn new((target_ns, interval_ns): (u64, u64), ecn: bool, ce_threshold_ns: Option<u64>) -> Self {
        Self {
            target: span(target_ns),
            interval: span(interval_ns),
            ecn,
            ce_threshold: ce_threshold_ns.map(span),
            ce_filter: None,
        }
    }
}

impl State {
    /// Takes the next packet, and drops or marks those that are due (`codel_dequeue`).
    #[inline]
    pub(crate) fn dequeue(
        &mut self,
        law: &Law,
        source: &mut impl Source,
        now_ns: u64,
        pool: &mut Pool,
        events: &mut QdiscEvents,
    ) -> Option<PacketId> {
        let now = ticks(now_ns);
        let Some(packet) = source.pop(pool) else {
            self.on_empty();
            return None;
        };
        let may_drop = self.may_drop(law, Some(packet), source, now, pool);
        let (packet, marked) = match (self.dropping, may_drop) {
            (false, false) => (Some(packet), false),
            (false, true) => self.start_dropping(law, packet, source, now, pool, events),
            (true, true) => self.keep_dropping(law, packet, source, now, pool, events),
            (true, false) => {
                self.dropping = false;
                (Some(packet), false)
            }
        };
        let late = law.ce_threshold.is_some_and(|threshold| is_after(self.delay, threshold));
        if let (Some(packet), true, false) = (packet, late, marked)
            && law.ce_filter.is_none_or(|filter| filter.passes(pool.header(packet).class.byte()))
        {
            events.mark(packet, Reason::CODEL_MARK, pool);
        }
        packet
    }

    /// Called when the queue is found empty. Before the next drop, the delay must be above target for a whole interval
    /// again. So packets that come one at a time are never dropped.
    #[inline]
    pub(crate) fn on_empty(&mut self) {
        self.dropping = false;
        self.above_for_interval_at = None;
    }

    /// Drops more often from now on: this many packets were dropped for another reason.
    pub(crate) fn add_drops(&mut self, packets: u32) {
        self.count = self.count.wrapping_add(packets);
    }

    /// Whether delay has been above target for a whole interval, judged when `packet` leaves the queue.
    fn may_drop(&mut self, law: &Law, packet: Option<PacketId>, source: &impl Source, now: Ticks, pool: &Pool) -> bool {
        let Some(packet) = packet else {
            self.above_for_interval_at = None;
            return false;
        };
        self.delay = now.wrapping_sub(ticks(pool.header(packet).at_ns));
        if is_after(law.target, self.delay) || source.remaining_bytes() <= FRAME_BYTES.into() {
            self.above_for_interval_at = None;
            return false;
        }
        match self.above_for_interval_at {
            Some(at) => is_after(now, at),
            None => {
                self.above_for_interval_at = Some(now.wrapping_add(law.interval));
                false
            }
        }
    }

    /// Drops or marks one packet and schedules the next drop. Returns the packet to send and whether it was marked.
    fn start_dropping(
        &mut self,
        law: &Law,
        packet: PacketId,
        source: &mut impl Source,
        now: Ticks,
        pool: &mut Pool,
        events: &mut QdiscEvents,
    ) -> (Option<PacketId>, bool) {
        let marked = mark(law, packet, pool, events);
        let packet = if marked { Some(packet) } else { self.replace(law, packet, source, now, pool, events).0 };
        self.dropping = true;
        // If packets were dropped recently, the rate of dropping that was needed then is a better start than the
        // lowest.
        let drops_last_time = self.count.wrapping_sub(self.last_count);
        let recent = is_after(law.interval.wrapping_mul(16), now.wrapping_sub(self.drop_next));
        if drops_last_time > 1 && recent {
            self.count = drops_last_time;
            self.newton_step();
        } else {
            self.count = 1;
            self.inverse_sqrt = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = self.control_law(law, now);
        (packet, marked)
    }

    /// Drops or marks as many packets as are due. Returns the packet to send and whether it was marked.
    fn keep_dropping(
        &mut self,
        law: &Law,
        packet: PacketId,
        source: &mut impl Source,
        now: Ticks,
        pool: &mut Pool,
        events: &mut QdiscEvents,
    ) -> (Option<PacketId>, bool) {
        let mut packet = packet;
        while !is_after(self.drop_next, now) {
            self.count = self.count.wrapping_add(1);
            self.newton_step();
            if mark(law, packet, pool, events) {
                self.drop_next = self.control_law(law, self.drop_next);
                return (Some(packet), true);
            }
            let (next, may_drop) = self.replace(law, packet, source, now, pool, events);
            let Some(next) = next.filter(|_| may_drop) else {
                self.dropping = false;
                return (next, false);
            };
            packet = next;
            self.drop_next = self.control_law(law, self.drop_next);
        }
        (Some(packet), false)
    }

    /// Drops the packet. Returns the next packet and whether it may also be dropped.
    fn replace(
        &mut self,
        law: &Law,
        packet: PacketId,
        source: &mut impl Source,
        now: Ticks,
        pool: &Pool,
        events: &mut QdiscEvents,
    ) -> (Option<PacketId>, bool) {
        events.drop(packet, Reason::CODEL);
        let next = source.pop(pool);
        (next, self.may_drop(law, next, source, now, pool))
    }

    /// `from + interval / sqrt(count)`.
    fn control_law(&self, law: &Law, from: Ticks) -> Ticks {
        from.wrapping_add(((u64::from(law.interval) * u64::from(self.inverse_sqrt)) >> 16) as Ticks)
    }

    /// One step of Newton's method towards `y = 1 / sqrt(count)`: `y (3 - count y^2) / 2`, with `y` as a 32-bit
    /// fraction.
    fn newton_step(&mut self) {
        let y = u64::from(self.inverse_sqrt) << 16;
        let y_squared = (y * y) >> 32;
        // As in the kernel, a negative difference wraps. Two bits are shifted out to make room for the product.
        let bracket = (3_u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(y_squared)) >> 2;
        self.inverse_sqrt = (bracket.wrapping_mul(y) >> 31 >> 16) as u16;
    }
}

/// Marks the packet instead of dropping it, if both sides agree.
fn mark(law: &Law, packet: PacketId, pool: &mut Pool, events: &mut QdiscEvents) -> bool {
    law.ecn && events.mark(packet, Reason::CODEL_MARK, pool)
}

/// A point in time as the kernel's CoDel sees it.
fn ticks(ns: u64) -> Ticks {
    (ns >> 10) as Ticks
}

/// A parameter as it reaches the kernel: `tc` passes whole microseconds.
fn span(ns: u64) -> Ticks {
    ((ns / 1000 * 1000) >> 10) as Ticks
}

/// Whether `a` is later than `b`, in a clock that wraps.
fn is_after(a: Ticks, b: Ticks) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}
