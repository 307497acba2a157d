//! `codel`: controlled delay. Drops packets from the head when packets have waited too long.
//!
//! Source: Nichols and Jacobson, RFC 8289, as implemented in Linux (`include/net/codel_impl.h`,
//! `net/sched/sch_codel.c`). Linux differs from the RFC's pseudocode, and this file follows Linux:
//! - the clock counts units of 1024 ns in 32 bits, compared by signed difference;
//! - `1/sqrt(count)` is a 16-bit fraction, improved by a single Newton step per drop. It lags behind the exact value:
//!   after the first gap of 100 ms, the gaps are 50, 56 and 49 ms where the RFC's law gives 71, 58 and 50 ms;
//! - when dropping resumes within 16 intervals, `count` starts from the number of drops of the last time, not from one;
//! - no packet is dropped while at most one MTU's worth of bytes remains in the queue.
//!
//! Departures: none known. (Since 2025 some kernels stop after 256 drops for a single packet sent; this is not
//! modelled.)

use bufferscope_scenario::sizes::MTU_BYTES;
use bufferscope_scenario::{self as scenario, Reason};

use super::{Dequeued, Discipline, Fates, Place, drop_surplus, tail_drop};
use crate::network::pool::{Backlog, Fifo, PacketId, Pool};
use crate::network::xmit::Xmit;

/// A point or span of time in units of 1024 ns, modulo 2^32.
type Ticks = u32;

#[derive(Debug)]
pub(crate) struct Codel {
    queue: Fifo,
    limit_packets: u32,
    target: Ticks,
    interval: Ticks,
    ecn: bool,
    ce_threshold: Option<Ticks>,
    mtu_bytes: u64,
    /// Roughly the number of packets dropped (or marked) since dropping began; see [`Codel::start_dropping`].
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

impl Discipline for Codel {
    type Parameters = scenario::Codel;

    fn new(parameters: &scenario::Codel, place: Place) -> Result<Self, String> {
        Ok(Self {
            queue: Fifo::new(),
            limit_packets: parameters.limit_packets,
            target: span(parameters.target_ns),
            interval: span(parameters.interval_ns),
            ecn: parameters.ecn,
            ce_threshold: parameters.ce_threshold_ns.map(span),
            mtu_bytes: u64::from(MTU_BYTES + place.overhead_bytes),
            count: 0,
            last_count: 0,
            dropping: false,
            inverse_sqrt: 0,
            above_for_interval_at: None,
            drop_next: 0,
            delay: 0,
        })
    }

    fn enqueue(&mut self, packet: PacketId, _now_ns: u64, pool: &mut Pool, fates: &mut Fates) -> Xmit {
        let fits = self.queue.packets() < self.limit_packets;
        tail_drop(fits, packet, &mut self.queue, pool, fates)
    }

    // Without inlining, the result is returned through memory, and a run with one flow is 1.5 % slower.
    #[inline]
    fn dequeue(&mut self, now_ns: u64, pool: &mut Pool, fates: &mut Fates) -> Dequeued {
        let now = ticks(now_ns);
        let Some(packet) = self.queue.pop(pool) else {
            self.dropping = false;
            return Dequeued::Nothing;
        };
        let may_drop = self.may_drop(Some(packet), now, pool);
        let (packet, marked) = match (self.dropping, may_drop) {
            (false, false) => (Some(packet), false),
            (false, true) => self.start_dropping(packet, now, pool, fates),
            (true, true) => self.keep_dropping(packet, now, pool, fates),
            (true, false) => {
                self.dropping = false;
                (Some(packet), false)
            }
        };
        let late = self.ce_threshold.is_some_and(|threshold| is_after(self.delay, threshold));
        if let (Some(packet), true, false) = (packet, late, marked) {
            fates.mark(packet, Reason::CODEL_MARK, pool);
        }
        packet.into()
    }

    fn idle_since(&mut self, _at_ns: u64) {
        self.dropping = false;
    }

    /// `codel_change`: the state of the control law stays, and packets over a lowered limit are dropped from the head.
    fn change(&mut self, to: Self, pool: &Pool, fates: &mut Fates) {
        self.limit_packets = to.limit_packets;
        self.target = to.target;
        self.interval = to.interval;
        self.ecn = to.ecn;
        self.ce_threshold = to.ce_threshold;
        drop_surplus(self.limit_packets, &mut self.queue, pool, fates);
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.queue.iter(pool).for_each(visit);
    }
}

impl Codel {
    /// Whether delay has been above target for a whole interval, judged when `packet` leaves the queue.
    fn may_drop(&mut self, packet: Option<PacketId>, now: Ticks, pool: &Pool) -> bool {
        let Some(packet) = packet else {
            self.above_for_interval_at = None;
            return false;
        };
        self.delay = now.wrapping_sub(ticks(pool.header(packet).at_ns));
        if is_after(self.target, self.delay) || self.queue.bytes() <= self.mtu_bytes {
            self.above_for_interval_at = None;
            return false;
        }
        match self.above_for_interval_at {
            Some(at) => is_after(now, at),
            None => {
                self.above_for_interval_at = Some(now.wrapping_add(self.interval));
                false
            }
        }
    }

    /// Drops or marks one packet and schedules the next drop. Returns the packet to send and whether it was marked.
    fn start_dropping(
        &mut self,
        packet: PacketId,
        now: Ticks,
        pool: &mut Pool,
        fates: &mut Fates,
    ) -> (Option<PacketId>, bool) {
        let marked = self.mark(packet, pool, fates);
        let packet = if marked { Some(packet) } else { self.replace(packet, now, pool, fates).0 };
        self.dropping = true;
        // If packets were dropped recently, the rate of dropping that was needed then is a better start than the
        // lowest.
        let drops_last_time = self.count.wrapping_sub(self.last_count);
        let recent = is_after(self.interval.wrapping_mul(16), now.wrapping_sub(self.drop_next));
        if drops_last_time > 1 && recent {
            self.count = drops_last_time;
            self.newton_step();
        } else {
            self.count = 1;
            self.inverse_sqrt = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = self.control_law(now);
        (packet, marked)
    }

    /// Drops or marks as many packets as are due. Returns the packet to send and whether it was marked.
    fn keep_dropping(
        &mut self,
        packet: PacketId,
        now: Ticks,
        pool: &mut Pool,
        fates: &mut Fates,
    ) -> (Option<PacketId>, bool) {
        let mut packet = packet;
        while !is_after(self.drop_next, now) {
            self.count = self.count.wrapping_add(1);
            self.newton_step();
            if self.mark(packet, pool, fates) {
                self.drop_next = self.control_law(self.drop_next);
                return (Some(packet), true);
            }
            let (next, may_drop) = self.replace(packet, now, pool, fates);
            let Some(next) = next.filter(|_| may_drop) else {
                self.dropping = false;
                return (next, false);
            };
            packet = next;
            self.drop_next = self.control_law(self.drop_next);
        }
        (Some(packet), false)
    }

    fn mark(&self, packet: PacketId, pool: &mut Pool, fates: &mut Fates) -> bool {
        self.ecn && fates.mark(packet, Reason::CODEL_MARK, pool)
    }

    /// Drops the packet. Returns the next packet and whether it may also be dropped.
    fn replace(&mut self, packet: PacketId, now: Ticks, pool: &Pool, fates: &mut Fates) -> (Option<PacketId>, bool) {
        fates.drop(packet, Reason::CODEL);
        let next = self.queue.pop(pool);
        (next, self.may_drop(next, now, pool))
    }

    /// `from + interval / sqrt(count)`.
    fn control_law(&self, from: Ticks) -> Ticks {
        from.wrapping_add(((u64::from(self.interval) * u64::from(self.inverse_sqrt)) >> 16) as Ticks)
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

#[cfg(test)]
#[path = "codel_tests.rs"]
mod tests;
