//! Medians, percentiles and spreads.

use crate::verdict::Spread;

/// The standard deviation of a normal distribution per median absolute deviation.
pub(crate) const SIGMA_PER_MAD: f64 = 1.4826;

/// Sorts the finite values.
pub(crate) fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// A quantile of sorted values, linearly interpolated.
pub(crate) fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    quantile_of(sorted, 0, q)
}

/// A quantile of sorted values and as many infinite ones as are `lost`; `None` if it falls among the latter.
fn quantile_of(sorted: &[f64], lost: usize, q: f64) -> Option<f64> {
    let last = (sorted.len() + lost).checked_sub(1)?;
    let position = q * last as f64;
    let below = (position.floor() as usize).min(last);
    let part = position - below as f64;
    let low = *sorted.get(below)?;
    if part <= 0.0 {
        return Some(low);
    }
    let high = *sorted.get(below + 1)?;
    Some(low + part * (high - low))
}

/// The median.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    quantile(&sorted(values), 0.5)
}

/// The median absolute deviation from `center`.
pub(crate) fn mad(values: impl IntoIterator<Item = f64>, center: f64) -> Option<f64> {
    median(values.into_iter().map(|value| (value - center).abs()))
}

/// The distribution of delays, of which some are lost.
pub(crate) fn spread(values: impl IntoIterator<Item = f64>, lost: usize) -> Spread {
    let sorted = sorted(values);
    let at = |q| quantile_of(&sorted, lost, q).map(whole);
    let [p50_ns, p95_ns, p99_ns] = [0.5, 0.95, 0.99].map(at);
    let count = (sorted.len() + lost) as u64;
    let max_ns = sorted.last().copied().map(whole);
    Spread { count, lost: lost as u64, p50_ns, p95_ns, p99_ns, max_ns, censored: count > 0 && p99_ns.is_none() }
}

/// Mean and standard deviation (of a population); `None` without values.
pub(crate) fn mean_and_deviation(values: &[f64]) -> Option<(f64, f64)> {
    if values.is_empty() {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    Some((mean, variance.sqrt()))
}

/// A delay as integer nanoseconds.
pub(crate) fn whole(value: f64) -> i64 {
    value.round() as i64
}

/// A number with six decimals, or without decimals if it is large: read back from JSON unchanged.
pub(crate) fn rounded(value: f64) -> f64 {
    const LARGE: f64 = 1e6;
    const MOST: f64 = 1e15;
    let value = value.clamp(-MOST, MOST);
    if value.abs() < LARGE { (value * 1e6).round() / 1e6 } else { value.round() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_neighbours_and_lost_probes_count_as_infinite() {
        // Five values: p50 is the third; p95 is at position 3.8 of 0..=4: 40 + 0.8 * 10.
        let whole = spread([10.0, 20.0, 30.0, 40.0, 50.0], 0);
        assert_eq!((whole.p50_ns, whole.p95_ns, whole.max_ns, whole.censored), (Some(30), Some(48), Some(50), false));
        // With one lost, position 2.5 of 0..=5 is between 30 and 40, and p95 (4.75) between 50 and infinity.
        let lossy = spread([10.0, 20.0, 30.0, 40.0, 50.0], 1);
        assert_eq!((lossy.p50_ns, lossy.p95_ns, lossy.max_ns, lossy.censored), (Some(35), None, Some(50), true));
    }

    #[test]
    fn nothing_has_no_percentile() {
        assert_eq!(spread([], 0), Spread::default());
        assert_eq!(spread([], 2).p50_ns, None);
        assert_eq!(median([f64::NAN]), None);
    }

    #[test]
    fn the_median_absolute_deviation_ignores_an_outlier() {
        assert_eq!(mad([1.0, 2.0, 3.0, 4.0, 1000.0], 3.0), Some(1.0));
    }
}
