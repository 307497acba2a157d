//! `red`: random early detection. Drops arriving packets at random; the larger the *average* backlog, the more it
//! drops.
//!
//! Source: Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance" (1993), as implemented in
//! Linux (`include/net/red.h`, `net/sched/sch_red.c`), with the constants that `tc red` computes ([`Averaging`]):
//! - every arriving packet updates the average with the backlog that it finds; the average is a fixed-point number with
//!   `Wlog` fraction bits;
//! - while the average is between `min` and `max`, one uniform random number decides how many packets pass until the
//!   next drop, so that drops are spaced evenly and not clustered;
//! - from `max` on, every packet is dropped; there is no "gentle" part;
//! - the first packet after an idle time ages the average by a table and adds nothing to it;
//! - the hard limit is that of the inner `bfifo`.
//!
//! Departures: `harddrop`, `nodrop` and `adaptive` are not offered; a packet that is marked and then finds no room
//! counts only as dropped.

use bufferscope_scenario::{self as scenario, Averaging, IdleTable, Reason};

use super::{Dequeued, Discipline, Fates, Place};
use crate::network::pool::{Backlog, Fifo, PacketId, Pool};
use crate::network::xmit::Xmit;
use crate::random::{Random, Stream};

#[derive(Debug)]
pub(crate) struct Red {
    queue: Fifo,
    limit_bytes: u64,
    ecn: bool,
    average: Average,
    /// Thresholds of the average, as fixed-point numbers.
    min: u64,
    max: u64,
    /// The inverse slope of the marking probability: `2^32 P / (max - min)`.
    probability_per_byte: u32,
    random: Random,
    /// Packets since the last drop; `None` while the average is not between the thresholds.
    since_drop: Option<u64>,
    /// A random number, uniform in `[0, (max - min) / P)`.
    next_drop: u64,
}

/// The exponentially weighted moving average of the backlog.
#[derive(Debug)]
struct Average {
    /// The average in bytes, with `weight_log` fraction bits.
    value: u64,
    /// The newest backlog weighs `2^-weight_log`.
    weight_log: u32,
    /// Boxed to keep the discipline small.
    idle_table: Box<IdleTable>,
    /// Since when the queue has been empty and the wire free.
    idle_since_ns: Option<u64>,
}

/// What the average requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Early,
    Forced,
}

impl Discipline for Red {
    type Parameters = scenario::Red;

    fn new(parameters: &scenario::Red, place: Place) -> Result<Self, String> {
        let Averaging { shift: weight_log, idle } = parameters.averaging().map_err(|error| format!("red: {error}"))?;
        let range_bytes = parameters.max_bytes.saturating_sub(parameters.min_bytes).max(1);
        // As in the kernel, P is a 32-bit fraction, which is divided first and then inverted.
        let probability = (parameters.probability * 4_294_967_296.0).min(f64::from(u32::MAX)) as u64;
        Ok(Self {
            queue: Fifo::new(),
            limit_bytes: parameters.limit_bytes,
            ecn: parameters.ecn,
            average: Average { value: 0, weight_log, idle_table: Box::new(idle), idle_since_ns: Some(0) },
            min: parameters.min_bytes << weight_log,
            max: parameters.max_bytes << weight_log,
            probability_per_byte: (probability / range_bytes).max(1) as u32,
            random: Random::new(place.seed, Stream::Qdisc(place.port)),
            since_drop: None,
            next_drop: 0,
        })
    }

    fn enqueue(&mut self, packet: PacketId, now_ns: u64, pool: &mut Pool, fates: &mut Fates) -> Xmit {
        self.average.update(now_ns, self.queue.bytes());
        let verdict = self.verdict();
        let capable = self.ecn && pool.header(packet).class.ecn().is_capable();
        let fits = self.queue.bytes() + u64::from(pool.header(packet).frame_bytes) <= self.limit_bytes;
        match verdict {
            Verdict::Early if !capable => {
                fates.drop(packet, Reason::RED_EARLY);
                return Xmit::Congested;
            }
            Verdict::Forced if !capable => {
                fates.drop(packet, Reason::RED_FORCED);
                return Xmit::Congested;
            }
            _ if !fits => {
                fates.drop(packet, Reason::OVERLIMIT);
                return Xmit::Dropped;
            }
            Verdict::Pass => {}
            Verdict::Early | Verdict::Forced => {
                fates.mark(packet, Reason::RED_MARK, pool);
            }
        }
        self.queue.push(packet, pool);
        Xmit::Queued
    }

    fn dequeue(&mut self, _now_ns: u64, pool: &mut Pool, _fates: &mut Fates) -> Dequeued {
        self.queue.pop(pool).into()
    }

    fn idle_since(&mut self, at_ns: u64) {
        self.average.idle_since_ns.get_or_insert(at_ns);
    }

    /// `__red_change`: the average begins anew, and so does the inner `bfifo`. The packets of the old one are dropped.
    fn change(&mut self, to: Self, pool: &Pool, fates: &mut Fates) {
        fates.purge(&self.queue, pool);
        let Self { random, .. } = std::mem::replace(self, to);
        self.random = random;
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn peek(&self) -> Option<PacketId> {
        self.queue.front()
    }

    fn each_packet(&self, pool: &Pool, visit: &mut dyn FnMut(PacketId)) {
        self.queue.iter(pool).for_each(visit);
    }

    fn warning(&self) -> Option<String> {
        let weight_log = self.average.weight_log;
        (weight_log >= 10).then(|| {
            format!("red: `burst` seems too large: the average follows the queue with a weight of 1/2^{weight_log}")
        })
    }
}

impl Red {
    fn verdict(&mut self) -> Verdict {
        if self.average.value < self.min {
            self.since_drop = None;
            return Verdict::Pass;
        }
        if self.average.value >= self.max {
            self.since_drop = None;
            return Verdict::Forced;
        }
        let Some(since_drop) = &mut self.since_drop else {
            self.since_drop = Some(0);
            self.draw();
            return Verdict::Pass;
        };
        *since_drop += 1;
        let excess_bytes = (self.average.value - self.min) >> self.average.weight_log;
        if excess_bytes * *since_drop < self.next_drop {
            return Verdict::Pass;
        }
        *since_drop = 0;
        self.draw();
        Verdict::Early
    }

    fn draw(&mut self) {
        self.next_drop = u64::from(self.random.next_u32() / self.probability_per_byte);
    }
}

impl Average {
    /// Updates the average with the backlog that an arriving packet finds.
    fn update(&mut self, now_ns: u64, backlog_bytes: u64) {
        match self.idle_since_ns.take() {
            None => self.value = self.value - (self.value >> self.weight_log) + backlog_bytes,
            Some(since_ns) => self.value = self.idle_table.aged(self.value, (now_ns - since_ns) / 1000),
        }
    }
}

#[cfg(test)]
#[path = "red_tests.rs"]
mod tests;
