//! When flows and pages begin.

use bufferscope_scenario::Traffic;

use crate::random::Uniform;

/// A flow or page begins later than planned by up to this much.
///
/// Programs started "at the same time" open their connections within about a millisecond of one another: forking,
/// loading and name look-up take that long. Without this jitter, flows with equal parameters would send every packet in
/// the same nanosecond.
pub const START_JITTER_NS: u64 = 1_000_000;

/// The times at which an entry of traffic starts flows, pages or probes.
#[derive(Debug)]
pub(crate) struct Starts<U> {
    start_ns: u64,
    pub(crate) stop_ns: u64,
    jitter: U,
}

impl<U: Uniform> Starts<U> {
    pub(crate) fn new(traffic: &Traffic, jitter: U) -> Self {
        Self { start_ns: traffic.start_ns, stop_ns: traffic.stop_ns, jitter }
    }

    /// When to begin something that is planned for this time after the entry's start; `None` if that is too late. The
    /// result is always before the entry's stop.
    pub(crate) fn after(&mut self, after_ns: u64) -> Option<u64> {
        let nominal_ns = self.start_ns.saturating_add(after_ns);
        let is_early = nominal_ns < self.stop_ns;
        is_early.then(|| late_ns(nominal_ns, START_JITTER_NS, self.stop_ns, &mut self.jitter))
    }

    /// When to begin something that was decided on at `now_ns`, at the earliest when the traffic starts.
    pub(crate) fn soon(&mut self, now_ns: u64) -> Option<u64> {
        self.after(now_ns.saturating_sub(self.start_ns))
    }
}

/// When something happens that is planned for `nominal_ns` and is late by less than `most_ns`. It is always before
/// `stop_ns`.
pub fn late_ns(nominal_ns: u64, most_ns: u64, stop_ns: u64, random: &mut impl Uniform) -> u64 {
    (nominal_ns + random.below(most_ns)).min(stop_ns - 1)
}
