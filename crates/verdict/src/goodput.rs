//! Goodput at the receiver.

use crate::input::{Direction, Phase};
use crate::statistics::{mean_and_deviation, quantile, rounded, sorted};
use crate::verdict::Goodput;

/// One second.
pub(crate) const SECOND_NS: i64 = 1_000_000_000;
/// The beginning of a phase that does not count is at most this long.
const RAMP_NS: i64 = 2 * SECOND_NS;
/// The largest number of bins.
const BINS: i64 = 3600;

/// When the load of a phase counts as steady: after a fifth of it, at most 2 s.
pub(crate) fn steady_from(phase: &Phase) -> i64 {
    let fifth = phase.end_ns.saturating_sub(phase.start_ns).max(0) / 5;
    phase.start_ns.saturating_add(fifth.min(RAMP_NS))
}

/// The goodput of a direction; `None` without two samples.
pub(crate) fn goodput(phase: &Phase, direction: Direction) -> Option<Goodput> {
    let counts = counts(phase, direction);
    let (from, to) = (steady_from(phase).max(counts.first()?.0), counts.last()?.0);
    let seconds = to.saturating_sub(from) as f64 / SECOND_NS as f64;
    if seconds <= 0.0 {
        return None;
    }
    let mean = (at(&counts, to) - at(&counts, from)) * 8.0 / seconds;
    let bins = rates(&counts, from, to, SECOND_NS);
    let variation =
        mean_and_deviation(&bins).filter(|(mean, _)| *mean > 0.0 && bins.len() > 1).map(|(m, d)| rounded(d / m));
    Some(Goodput {
        mean_bps: mean.max(0.0) as u64,
        p10_bps: quantile(&sorted(bins), 0.1).map(|rate| rate.max(0.0) as u64),
        variation,
    })
}

/// The goodput in each whole interval of a phase, in bit/s.
pub(crate) fn by_interval(phase: &Phase, direction: Direction, interval_ns: i64) -> Vec<f64> {
    let counts = counts(phase, direction);
    match (counts.first(), counts.last()) {
        (Some(first), Some(last)) => rates(&counts, first.0, last.0, interval_ns),
        _ => Vec::new(),
    }
}

/// Fewer bins have no decile.
const FEWEST: usize = 3;

/// The lower decile of the goodput in bins of the steady part, in bit/s; `None` with fewer than three bins. The last bin
/// may be shorter, but not by more than half.
pub(crate) fn lower_decile(phase: &Phase, direction: Direction, bin_ns: i64) -> Option<f64> {
    let counts = counts(phase, direction);
    let (from, to) = (steady_from(phase).max(counts.first()?.0), counts.last()?.0);
    let bin_ns = bin_ns.max(1);
    let bins = to.saturating_sub(from).saturating_add(bin_ns / 2) / bin_ns;
    let edge = |bin: i64| from.saturating_add(bin.saturating_mul(bin_ns)).min(to);
    let rates: Vec<f64> = (0..bins.min(BINS))
        .map(|bin| (edge(bin), edge(bin + 1)))
        .filter(|(begin, end)| end > begin)
        .map(|(begin, end)| {
            ((at(&counts, end) - at(&counts, begin)) * 8.0 * SECOND_NS as f64 / (end - begin) as f64).max(0.0)
        })
        .collect();
    if rates.len() < FEWEST { None } else { quantile(&sorted(rates), 0.1) }
}

fn counts(phase: &Phase, direction: Direction) -> Vec<(i64, f64)> {
    let samples = phase.goodput.iter().filter(|sample| sample.direction == direction);
    let mut counts: Vec<_> = samples.map(|sample| (sample.t_ns, sample.bytes as f64)).collect();
    counts.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    counts
}

fn rates(counts: &[(i64, f64)], from: i64, to: i64, width_ns: i64) -> Vec<f64> {
    let width_ns = width_ns.clamp(1, SECOND_NS * BINS);
    let bins = (to.saturating_sub(from) / width_ns).min(BINS);
    let edge = |bin: i64| at(counts, from.saturating_add(bin.saturating_mul(width_ns)));
    let seconds = width_ns as f64 / SECOND_NS as f64;
    (0..bins).map(|bin| ((edge(bin + 1) - edge(bin)) * 8.0 / seconds).max(0.0)).collect()
}

/// The count at a time, linearly interpolated.
fn at(counts: &[(i64, f64)], t_ns: i64) -> f64 {
    let next = counts.partition_point(|count| count.0 < t_ns);
    match (next.checked_sub(1).and_then(|index| counts.get(index)), counts.get(next)) {
        (Some(before), Some(after)) => {
            let part = t_ns.saturating_sub(before.0) as f64 / after.0.saturating_sub(before.0).max(1) as f64;
            before.1 + part * (after.1 - before.1)
        }
        (Some(only), None) | (None, Some(only)) => only.1,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::GoodputSample;

    #[test]
    fn goodput_is_bytes_over_time_without_the_first_fifth() {
        // Nothing in the first second, then 1,250,000 bytes a second: 10 Mbit/s.
        let sample = |second: i64| GoodputSample {
            t_ns: second * SECOND_NS,
            direction: Direction::Down,
            bytes: (second - 1).max(0) as u64 * 1_250_000,
        };
        let phase = Phase { end_ns: 10 * SECOND_NS, goodput: (0..=10).map(sample).collect(), ..Phase::default() };
        let found = goodput(&phase, Direction::Down).unwrap();
        assert_eq!((found.mean_bps, found.p10_bps, found.variation), (10_000_000, Some(10_000_000), Some(0.0)));
        assert!(goodput(&phase, Direction::Up).is_none());
        assert_eq!(lower_decile(&phase, Direction::Down, 2 * SECOND_NS), Some(1e7));
        assert_eq!(lower_decile(&phase, Direction::Down, 3 * SECOND_NS), Some(1e7), "the last one has two seconds");
        assert_eq!(lower_decile(&phase, Direction::Down, 4 * SECOND_NS), None, "two bins");
    }
}
