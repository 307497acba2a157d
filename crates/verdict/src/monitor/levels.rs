//! The undisturbed path: its round trip, and the difference of the two clocks on it.

use std::collections::VecDeque;

use super::Later;
use crate::input::Echo;
use crate::statistics::{median, quantile, sorted};

const MINUTE_NS: i64 = 60_000_000_000;
/// Minutes that are remembered: a day, as the hours of an evening must not become the base.
const MINUTES: usize = 24 * 60;
/// The base is this quantile of the minutes' minima: not the minimum, which one wrong stamp would decide.
const BASE: f64 = 0.05;
/// The spread is this quantile of the minutes' spreads: that of quiet minutes.
const QUIET: f64 = 0.25;
/// Echoes after which a delay can be said to be longer.
const LEAST_ECHOES: usize = 10;
/// No shorter delay counts: a person does not notice it.
const LEAST_NS: f64 = 1e7;
/// Nor one shorter than this many times the spread of quiet minutes.
const SPREADS: f64 = 4.0;
/// An echo that is no later than this, or than the spread, has met no queue.
const UNDISTURBED_NS: f64 = 2e6;

/// The undisturbed round trip, and what counts as longer.
#[derive(Debug, Default)]
pub(super) struct Level {
    /// The minimum of each minute, and how much longer its median was.
    minutes: VecDeque<(f64, f64)>,
    minute: i64,
    values: Vec<f64>,
    base_ns: Option<f64>,
    spread_ns: f64,
}

impl Level {
    pub(super) fn take(&mut self, t_ns: i64, rtt_ns: f64) {
        let minute = t_ns.div_euclid(MINUTE_NS);
        if minute != self.minute && !self.values.is_empty() {
            self.close_minute();
        }
        self.minute = minute;
        self.values.push(rtt_ns);
        // Until the first minutes are over, all that is known is the present one.
        if self.minutes.len() < 2 && self.values.len() + self.minutes.len() * LEAST_ECHOES >= LEAST_ECHOES {
            let least = self.values.iter().copied().fold(f64::INFINITY, f64::min);
            self.base_ns = Some(self.minutes.front().map_or(least, |minute| minute.0.min(least)));
            if self.minutes.is_empty() {
                self.spread_ns = median(self.values.iter().copied()).map_or(0.0, |middle| middle - least);
            }
        }
    }

    fn close_minute(&mut self) {
        let values = sorted(std::mem::take(&mut self.values));
        let (Some(least), Some(middle)) = (values.first().copied(), quantile(&values, 0.5)) else { return };
        if self.minutes.len() >= MINUTES {
            self.minutes.pop_front();
        }
        self.minutes.push_back((least, middle - least));
        self.base_ns = quantile(&sorted(self.minutes.iter().map(|minute| minute.0)), BASE);
        self.spread_ns = quantile(&sorted(self.minutes.iter().map(|minute| minute.1)), QUIET).unwrap_or(0.0);
    }

    /// The undisturbed round trip.
    pub(super) fn base_ns(&self) -> Option<f64> {
        self.base_ns
    }

    /// What an echo must exceed the base by to be late.
    pub(super) fn limit_ns(&self) -> Option<f64> {
        self.base_ns.map(|_| LEAST_NS.max(SPREADS * self.spread_ns))
    }

    /// Whether an echo met no queue.
    pub(super) fn is_undisturbed(&self, rtt_ns: f64) -> bool {
        self.base_ns.is_some_and(|base| rtt_ns - base <= UNDISTURBED_NS.max(self.spread_ns))
    }

    /// The path is another one.
    pub(super) fn forget(&mut self) {
        *self = Self { minute: self.minute, ..Self::default() };
    }
}

/// Undisturbed echoes of so many minutes are used.
const ANCHORS: usize = 15;
/// The last of them decide the difference of the clocks.
const LAST: usize = 5;
/// The drift is known after so much time between them.
const LEAST_SPAN_NS: f64 = 120e9;
/// Before that, clocks may drift apart so fast (crystals are within 100 ppm of one another) ...
const UNKNOWN_DRIFT: f64 = 100e-6;
/// ... and afterwards the drift may change by this much, with the temperature and by NTP.
const CHANGING_DRIFT: f64 = 5e-6;
/// The stamps of undisturbed echoes differ by this much.
const STAMPS_NS: f64 = 1e6;
/// An undisturbed echo that is so far off shows that a clock was set.
const SET_NS: f64 = 5e7;

/// What the one-way values of undisturbed echoes are: the fastest echo of each minute is an anchor.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    anchors: VecDeque<Anchor>,
    drift: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Anchor {
    minute: i64,
    t_ns: f64,
    rtt_ns: i64,
    up_ns: f64,
    down_ns: f64,
}

impl Clocks {
    /// Takes an echo that met no queue.
    pub(super) fn take(&mut self, echo: &Echo) {
        let (Some(rtt_ns), Some(up_ns), Some(down_ns)) = (echo.rtt_ns, echo.up_ns, echo.down_ns) else { return };
        if let Some((up, _)) = self.expected(echo.t_ns as f64)
            && (up_ns as f64 - up).abs() > SET_NS
        {
            *self = Self::default();
        }
        let minute = echo.t_ns.div_euclid(MINUTE_NS);
        let anchor = Anchor { minute, t_ns: echo.t_ns as f64, rtt_ns, up_ns: up_ns as f64, down_ns: down_ns as f64 };
        match self.anchors.back_mut().filter(|last| last.minute == minute) {
            Some(last) if rtt_ns >= last.rtt_ns => return,
            Some(last) => *last = anchor,
            None => {
                if self.anchors.len() >= ANCHORS {
                    self.anchors.pop_front();
                }
                self.anchors.push_back(anchor);
            }
        }
        self.fit();
    }

    /// The drift is the median of the slopes between anchors (Theil-Sen), half the difference of the two directions.
    fn fit(&mut self) {
        let mut slopes = Vec::new();
        for (at, first) in self.anchors.iter().enumerate() {
            for second in self.anchors.range(at + 1..) {
                let span_ns = second.t_ns - first.t_ns;
                if span_ns >= LEAST_SPAN_NS {
                    let change = (second.up_ns - first.up_ns) - (second.down_ns - first.down_ns);
                    slopes.push(change / 2.0 / span_ns);
                }
            }
        }
        self.drift = median(slopes);
    }

    /// The one-way values of an undisturbed echo at a time, up and down.
    fn expected(&self, t_ns: f64) -> Option<(f64, f64)> {
        let drift = self.drift.unwrap_or(0.0);
        let last = || self.anchors.iter().rev().take(LAST);
        let up = median(last().map(|anchor| anchor.up_ns + drift * (t_ns - anchor.t_ns)))?;
        let down = median(last().map(|anchor| anchor.down_ns - drift * (t_ns - anchor.t_ns)))?;
        Some((up, down))
    }

    /// How much later an echo was than undisturbed ones.
    pub(super) fn later(&self, echo: &Echo) -> Later {
        let Some((up, down)) = self.expected(echo.t_ns as f64) else { return Later::default() };
        let (up, down) = (echo.up_ns.map(|value| value as f64 - up), echo.down_ns.map(|value| value as f64 - down));
        Later { up_ns: up.map(crate::statistics::whole), down_ns: down.map(crate::statistics::whole) }
    }

    /// The uncertainty of that at a time.
    pub(super) fn error_ns(&self, t_ns: i64) -> Option<f64> {
        let away_ns = (t_ns as f64 - self.anchors.back()?.t_ns).abs();
        let drift = if self.drift.is_some() { CHANGING_DRIFT } else { UNKNOWN_DRIFT };
        Some(STAMPS_NS + drift * away_ns)
    }
}
