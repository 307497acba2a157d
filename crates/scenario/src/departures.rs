//! When the datagrams of a flow leave. All engines share this arithmetic, so that a scenario means the same on each of
//! them.
//!
//! Constant intervals are exact however long a flow lasts: the n-th datagram leaves n intervals after the first,
//! rounded down to a nanosecond once. An on/off flow has a clock that stops while it is off. Intervals are
//! measured by that clock, as in ns-3's OnOffApplication, so the duty cycle and the rate hold whatever the lengths are.

use crate::traffic::{OnOff, Pattern, Periods};

/// Nanoseconds of a second.
pub(crate) const SECOND_NS: u128 = 1_000_000_000;
/// Number of fractional bits in the result of [`exponential`].
const EXPONENTIAL_BITS: u32 = 32;

/// The departures of one flow, computed one at a time. Random numbers are 64 uniform bits per draw, from the caller.
#[derive(Clone, Debug)]
pub struct Departures {
    start_ns: u64,
    stop_ns: u64,
    /// Interval between two datagrams in nanoseconds of the flow's own clock, as a fraction.
    distance: (u128, u128),
    pattern: Pattern,
    /// Departures so far.
    number: u64,
    /// The time of the last departure on the flow's own clock, if the intervals are random.
    last_ns: u64,
    periods: Option<OnOffPeriods>,
}

/// The periods of an on/off flow.
#[derive(Clone, Debug)]
struct OnOffPeriods {
    lengths: OnOff,
    /// The current on period: its start, its start on the flow's own clock, and its length. `None` before the first
    /// one.
    now: Option<[u64; 3]>,
}

impl Periods {
    /// The length of a period whose mean is `mean_ns`.
    pub fn length_ns(self, mean_ns: u64, draw: &mut impl FnMut() -> u64) -> u64 {
        match self {
            Self::Fixed => mean_ns,
            Self::Exponential => ((u128::from(exponential(draw)) * u128::from(mean_ns)) >> EXPONENTIAL_BITS) as u64,
        }
    }
}

impl Pattern {
    /// The range of random offsets between flows that start together and have this interval. With constant intervals,
    /// the range is the whole interval; without offsets, the flows would always send together. Random intervals need no
    /// offset.
    pub(crate) fn phase_ns(self, distance_ns: u64) -> u64 {
        match self {
            Self::Constant => distance_ns,
            Self::Poisson => 0,
        }
    }
}

impl Departures {
    /// Those of a flow that begins at `start_ns`. Nothing departs at or after `stop_ns`. `distance` is the (mean) interval
    /// in nanoseconds, as a fraction.
    pub(crate) fn new(distance: (u128, u128), pattern: Pattern, start_ns: u64, stop_ns: u64) -> Self {
        Self { start_ns, stop_ns, distance, pattern, number: 0, last_ns: 0, periods: None }
    }

    /// The same, with pauses.
    pub(crate) fn with_periods(self, on_off: Option<OnOff>) -> Self {
        Self { periods: on_off.map(|lengths| OnOffPeriods { lengths, now: None }), ..self }
    }

    /// The flow stops earlier than planned: there is no departure at or after `stop_ns`.
    pub fn bring_stop_forward(&mut self, stop_ns: u64) {
        self.stop_ns = self.stop_ns.min(stop_ns);
    }

    /// Time of the next departure; `None`: the flow has stopped.
    pub fn next(&mut self, draw: &mut impl FnMut() -> u64) -> Option<u64> {
        let (numerator, denominator) = self.distance;
        let own_ns = match self.pattern {
            Pattern::Constant => u128::from(self.number) * numerator / denominator.max(1),
            Pattern::Poisson => {
                let gap = u128::from(exponential(draw)) * numerator / (denominator.max(1) << EXPONENTIAL_BITS);
                u128::from(self.last_ns) + gap
            }
        };
        self.number += 1;
        self.last_ns = u64::try_from(own_ns).ok()?;
        let since_ns = match &mut self.periods {
            None => self.last_ns,
            Some(periods) => periods.time(self.last_ns, self.stop_ns.saturating_sub(self.start_ns), draw)?,
        };
        self.start_ns.checked_add(since_ns).filter(|&at_ns| at_ns < self.stop_ns)
    }
}

impl OnOffPeriods {
    /// The time at which the flow's own clock shows `own_ns`; `None` if that is not before `end_ns`.
    fn time(&mut self, own_ns: u64, end_ns: u64, draw: &mut impl FnMut() -> u64) -> Option<u64> {
        let OnOff { on_ns, off_ns, periods } = self.lengths;
        let mut length = |mean_ns| periods.length_ns(mean_ns, draw);
        let [mut start_ns, mut own_start_ns, mut length_ns] = self.now.unwrap_or_else(|| [0, 0, length(on_ns)]);
        while own_ns - own_start_ns >= length_ns {
            start_ns = start_ns.saturating_add(length_ns).saturating_add(length(off_ns));
            own_start_ns += length_ns;
            length_ns = length(on_ns);
            if start_ns >= end_ns {
                return None;
            }
        }
        self.now = Some([start_ns, own_start_ns, length_ns]);
        Some(start_ns + (own_ns - own_start_ns))
    }
}

/// An exponentially distributed number of mean 1, with [`EXPONENTIAL_BITS`] fractional bits. The method is von
/// Neumann's ("Various techniques used in connection with random digits", 1951). It only compares numbers, so every
/// machine gets the same result.
///
/// A run of falling uniform numbers has odd length with the probability 1 - 1/e that the result is below 1; each run of
/// even length adds one to the result.
fn exponential(draw: &mut impl FnMut() -> u64) -> u64 {
    let mut whole = 0;
    loop {
        let first = draw();
        let (mut last, mut is_odd) = (first, true);
        loop {
            let next = draw();
            if next >= last {
                break;
            }
            (last, is_odd) = (next, !is_odd);
        }
        if is_odd {
            return (whole << EXPONENTIAL_BITS) + (first >> (u64::BITS - EXPONENTIAL_BITS));
        }
        whole += 1;
    }
}

#[cfg(test)]
mod tests;
