//! The parameters, and the times at which packets leave.

use bufferscope_scenario::{self as scenario, NetemRate};

use super::drawing::{Correlated, deviating, fraction};
use super::loss::Chain;
use super::slot::Slot;
use super::tables;
use crate::random::Random;

const NS_PER_S: u64 = 1_000_000_000;

/// The parameters, and the state that the kernel resets with them.
#[derive(Debug)]
pub(in crate::network) struct Settings {
    pub(super) limit_packets: u64,
    pub(in crate::network) delay_ns: i64,
    pub(super) jitter_ns: i64,
    pub(super) delay: Correlated,
    pub(super) table: Option<&'static [i16]>,
    pub(in crate::network) loss: Option<Chain>,
    pub(super) ecn: bool,
    pub(super) duplicate: Option<(u32, Correlated)>,
    pub(super) corrupt: Option<(u32, Correlated)>,
    pub(in crate::network) reorder: Option<Reorder>,
    pub(super) rate: Option<NetemRate>,
    pub(super) slot: Option<Slot>,
}

#[derive(Debug)]
pub(in crate::network) struct Reorder {
    probability: u32,
    correlated: Correlated,
    gap: u32,
    /// Packets since the last that went first.
    counter: u32,
}

impl Settings {
    pub(in crate::network) fn new(parameters: &scenario::Netem, now_ns: u64, random: &mut Random) -> Self {
        let loss = parameters.loss.map(|loss| Chain::new(loss, random));
        let reorder = parameters.reorder.map(|reorder| Reorder {
            probability: fraction(reorder.probability),
            correlated: Correlated::new(reorder.correlation, random),
            gap: reorder.gap,
            counter: 0,
        });
        let delay = Correlated::new(parameters.correlation, random);
        let mut part = |[probability, rho]: [f64; 2]| (fraction(probability), Correlated::new(rho, random));
        Self {
            limit_packets: parameters.limit_packets.into(),
            delay_ns: parameters.delay_ns as i64,
            jitter_ns: parameters.jitter_ns.min(i32::MAX as u64) as i64,
            delay,
            table: tables::of(parameters.distribution),
            loss,
            ecn: parameters.ecn,
            duplicate: parameters.duplicate.map(&mut part),
            corrupt: parameters.corrupt.map(&mut part),
            reorder,
            rate: parameters.rate,
            slot: parameters.slot.map(|parameters| Slot::new(parameters, now_ns)),
        }
    }

    /// When a packet that arrives now leaves. With a rate, it follows the packet that leaves last.
    pub(super) fn time_to_send(
        &mut self,
        now_ns: u64,
        frame_bytes: u32,
        last_ns: Option<u64>,
        random: &mut Random,
    ) -> u64 {
        let mut delay_ns = self.drawn_delay_ns(random);
        let mut from_ns = now_ns;
        if let Some(rate) = &self.rate {
            if let Some(last_ns) = last_ns {
                delay_ns = (delay_ns - (last_ns as i64 - now_ns as i64)).max(0);
                from_ns = last_ns;
            }
            delay_ns += duration_ns(rate, frame_bytes) as i64;
        }
        from_ns.saturating_add_signed(delay_ns)
    }

    pub(in crate::network) fn drawn_delay_ns(&mut self, random: &mut Random) -> i64 {
        if self.jitter_ns == 0 {
            return self.delay_ns;
        }
        deviating(self.delay_ns, self.jitter_ns, self.table, self.delay.next(random))
    }
}

impl Reorder {
    pub(in crate::network) fn goes_first(&mut self, random: &mut Random) -> bool {
        let is_delayed = self.counter < self.gap - 1 || self.probability < self.correlated.next(random);
        self.counter = if is_delayed { self.counter.saturating_add(1) } else { 0 };
        !is_delayed
    }
}

/// How long a packet takes at a rate (`packet_time_ns`).
pub(super) fn duration_ns(rate: &NetemRate, frame_bytes: u32) -> u64 {
    rate.counted_bytes(frame_bytes) * NS_PER_S / (rate.rate_bps / 8).max(1)
}
