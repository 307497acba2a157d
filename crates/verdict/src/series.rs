//! A quantity over time, such as the delay that echoes found.

use crate::statistics::median;

/// Samples this close to a time belong to it.
pub(crate) const NEAR_NS: i64 = 50_000_000;
/// Beyond this distance a sample says nothing about a time ...
const FAR_NS: i64 = 200_000_000;
/// ... or this many times the usual time between two samples, if that is longer: handshakes under load take long.
const SPACINGS: i64 = 2;
/// But never beyond this.
const FARTHEST_NS: i64 = 1_000_000_000;
/// More neighbours do not make a median better.
const NEIGHBOURS: usize = 15;

/// Samples in the order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    points: Vec<(i64, f64)>,
    far_ns: i64,
}

impl Series {
    pub(crate) fn new(points: impl IntoIterator<Item = (i64, f64)>) -> Self {
        let mut points: Vec<_> = points.into_iter().filter(|point| point.1.is_finite()).collect();
        points.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let spacings = points.windows(2).map(|pair| distance(pair[0].0, pair[1].0) as f64);
        let usual_ns = median(spacings).unwrap_or(0.0) as i64;
        let far_ns = usual_ns.saturating_mul(SPACINGS).clamp(FAR_NS, FARTHEST_NS);
        Self { points, far_ns }
    }

    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }

    pub(crate) fn points(&self) -> &[(i64, f64)] {
        &self.points
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.points.iter().map(|point| point.1)
    }

    /// The values from a time on.
    pub(crate) fn values_from(&self, from_ns: i64) -> impl Iterator<Item = f64> + '_ {
        self.points.iter().filter(move |point| point.0 >= from_ns).map(|point| point.1)
    }

    /// The value at a time: the median of the samples near it, or interpolated between two that are not too far.
    pub(crate) fn at(&self, t_ns: i64) -> Option<f64> {
        let next = self.points.partition_point(|point| point.0 < t_ns);
        let low = next.saturating_sub(NEIGHBOURS / 2);
        let high = (next + NEIGHBOURS / 2 + 1).min(self.points.len());
        let near = self.points[low..high].iter().filter(|point| distance(point.0, t_ns) <= NEAR_NS);
        if let Some(value) = median(near.map(|point| point.1)) {
            return Some(value);
        }
        let before = next.checked_sub(1).and_then(|index| self.points.get(index));
        let (before, after) = (before?, self.points.get(next)?);
        if distance(before.0, t_ns).max(distance(after.0, t_ns)) > self.far_ns {
            return None;
        }
        let part = distance(before.0, t_ns) as f64 / distance(before.0, after.0).max(1) as f64;
        Some(before.1 + part * (after.1 - before.1))
    }
}

fn distance(a_ns: i64, b_ns: i64) -> i64 {
    a_ns.saturating_sub(b_ns).saturating_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_value_is_the_median_of_its_neighbours_or_interpolated() {
        let series = Series::new([(0, 10.0), (20 * MS, 12.0), (40 * MS, 90.0), (200 * MS, 30.0)]);
        assert_eq!(series.at(10 * MS), Some(12.0));
        // 120 ms is more than 50 ms from both neighbours, and half way between them.
        assert_eq!(series.at(120 * MS), Some(60.0));
        assert_eq!(series.at(500 * MS), None);
        let sparse = Series::new((0..5).map(|n| (n * 400 * MS, 10.0 * n as f64)));
        assert_eq!(sparse.at(1000 * MS), Some(25.0));
    }
}
