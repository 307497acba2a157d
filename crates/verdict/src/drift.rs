//! The drift between the clocks of the two ends, from the one-way delays of echoes that met no queue.
//!
//! Queues and radio channels only add delay, so the lower envelope of the one-way values of an idle path is a straight
//! line whose slope is the drift, with opposite signs in the two directions. The line is fitted with a Theil-Sen
//! estimator through the minima of short bins.

use crate::input::{Direction, Echo};
use crate::statistics::{SIGMA_PER_MAD, mad, median};

/// The shortest length of a bin.
const BIN_NS: f64 = 5e8;
/// The largest number of bins.
const BINS: f64 = 120.0;
/// A larger drift is not a drift: a clock was set. Crystals are within 100 ppm of one another, and NTP slews by up to 500.
const MOST: f64 = 1e-3;

/// A fitted drift.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drift {
    /// Nanoseconds of the upward one-way value per nanosecond.
    pub(crate) slope: f64,
    from_ns: f64,
    to_ns: f64,
    /// The uncertainty of the line where it was fitted.
    error_ns: f64,
}

impl Drift {
    /// Fits the drift to the echoes that met no queue: those whose round-trip time is at most `rtt_limit_ns`.
    pub(crate) fn fit<'a>(echoes: impl Iterator<Item = &'a Echo>, rtt_limit_ns: f64) -> Option<Self> {
        let mut points: Vec<(f64, f64, f64)> = echoes
            .filter(|echo| echo.rtt_ns.is_some_and(|rtt| rtt as f64 <= rtt_limit_ns))
            .filter_map(|echo| Some((echo.t_ns as f64, echo.up_ns? as f64, echo.down_ns? as f64)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (from_ns, to_ns) = (points.first()?.0, points.last()?.0);
        let bin_ns = BIN_NS.max((to_ns - from_ns) / BINS);
        let up = envelope(points.iter().map(|point| (point.0, point.1)), from_ns, bin_ns);
        let down = envelope(points.iter().map(|point| (point.0, point.2)), from_ns, bin_ns);
        let slope = (slope(&up)? - slope(&down)?) / 2.0;
        if slope.abs() > MOST {
            return None;
        }
        let scatter = |bins: &[(f64, f64)], slope: f64| {
            let rest: Vec<f64> = bins.iter().map(|bin| bin.1 - slope * (bin.0 - from_ns)).collect();
            let center = median(rest.iter().copied())?;
            mad(rest, center)
        };
        let scatter = scatter(&up, slope)?.max(scatter(&down, -slope)?) * SIGMA_PER_MAD;
        Some(Self { slope, from_ns, to_ns, error_ns: 2.0 * scatter / (up.len() as f64 / 2.0).sqrt().max(1.0) })
    }

    /// A one-way value without the drift.
    pub(crate) fn removed(&self, t_ns: i64, direction: Direction, value_ns: f64) -> f64 {
        let sign = if direction == Direction::Up { 1.0 } else { -1.0 };
        value_ns - sign * self.slope * (t_ns as f64 - self.from_ns)
    }

    /// The uncertainty at a time. It grows with the distance from the first and the last echo that was used.
    pub(crate) fn error_ns(&self, t_ns: i64) -> f64 {
        let t_ns = t_ns as f64;
        let outside = (self.from_ns - t_ns).max(t_ns - self.to_ns).max(0.0);
        self.error_ns * (1.0 + 2.0 * outside / (self.to_ns - self.from_ns).max(1.0))
    }
}

/// The minimum of each bin, with its time. The points are in the order of time.
fn envelope(points: impl Iterator<Item = (f64, f64)>, from_ns: f64, bin_ns: f64) -> Vec<(f64, f64)> {
    let mut bins: Vec<(f64, f64)> = Vec::new();
    let mut current = -1.0;
    for (t_ns, value) in points {
        let bin = ((t_ns - from_ns) / bin_ns).floor();
        if bin > current {
            bins.push((t_ns, value));
            current = bin;
        } else if let Some(last) = bins.last_mut()
            && value < last.1
        {
            *last = (t_ns, value);
        }
    }
    bins
}

/// The median slope between bins at least a third of the whole time apart.
fn slope(bins: &[(f64, f64)]) -> Option<f64> {
    let apart = (bins.last()?.0 - bins.first()?.0) / 3.0;
    let pairs = bins.iter().enumerate().flat_map(|(index, a)| bins[index + 1..].iter().map(move |b| (a, b)));
    median(pairs.filter(|(a, b)| b.0 > a.0 && b.0 - a.0 >= apart).map(|(a, b)| (b.1 - a.1) / (b.0 - a.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// An echo every 20 ms, where the server's clock gains 50 ppm: 1 us per 20 ms.
    fn echo(index: i64, queue_ns: i64) -> Echo {
        let (t_ns, drift_ns) = (index * 20 * MS, index * 1000);
        Echo {
            t_ns,
            rtt_ns: Some(20 * MS + queue_ns),
            up_ns: Some(7 * MS + drift_ns + queue_ns),
            down_ns: Some(13 * MS - drift_ns),
            lost: None,
        }
    }

    #[test]
    fn a_drift_of_50_ppm_is_found_under_queues_that_come_and_go() {
        let echoes: Vec<Echo> = (0..250).map(|index| echo(index, (index * 7 % 5) * MS)).collect();
        let drift = Drift::fit(echoes.iter(), f64::MAX).unwrap();
        assert!((drift.slope - 50e-6).abs() < 1e-6, "{drift:?}");
        // After 30 s the clock has gained 1.5 ms.
        assert!((drift.removed(30_000 * MS, Direction::Up, 8.5e6) - 7e6).abs() < 3e4);
        assert!((drift.removed(30_000 * MS, Direction::Down, 11.5e6) - 13e6).abs() < 3e4);
    }

    #[test]
    fn a_clock_that_was_set_is_not_a_drift() {
        let mut echoes: Vec<Echo> = (0..250).map(|index| echo(index, 0)).collect();
        for echo in &mut echoes[125..] {
            echo.up_ns = echo.up_ns.map(|up| up + 3_600_000 * MS);
            echo.down_ns = echo.down_ns.map(|down| down - 3_600_000 * MS);
        }
        assert!(Drift::fit(echoes.iter(), f64::MAX).is_none());
    }
}
