//! The worst case of buffers, from floods.

use crate::baseline::Baseline;
use crate::input::{Flood, Observations};
use crate::series::Series;
use crate::statistics::{median, rounded, whole};
use crate::verdict::WorstCase;

/// The delay stands if it lasts this long.
const BIN_NS: i64 = 250_000_000;
/// Fewer echoes of that time do not count.
const LEAST_ECHOES: usize = 3;
/// From here on, the buffer is as good as full, and packets arrive at the rate of its link.
const FULL: f64 = 0.9;
/// The rate needs counts over at least this time.
const LEAST_RATE_NS: i64 = 200_000_000;
/// The delay has stopped growing if its last two bins differ by no more than this part.
const LEVEL: f64 = 0.05;
const LEVEL_NS: f64 = 1e6;
/// Losses that are fewer show no full buffer.
const LEAST_LOSS: f64 = 0.005;

/// The worst case in each direction that was flooded.
pub(crate) fn worst_cases(observations: &Observations, baseline: &Baseline) -> Vec<WorstCase> {
    let base_ns = baseline.rtt_ns;
    observations.floods.iter().filter_map(|flood| worst_case(flood, base_ns?)).collect()
}

fn worst_case(flood: &Flood, base_ns: f64) -> Option<WorstCase> {
    let added = Series::new(flood.rtts.iter().filter_map(|&(t_ns, rtt)| Some((t_ns, rtt? as f64 - base_ns))));
    let bin = |t_ns: i64| t_ns.saturating_sub(flood.start_ns) / BIN_NS;
    let bins: Vec<(i64, f64)> = added
        .points()
        .chunk_by(|a, b| bin(a.0) == bin(b.0))
        .filter(|points| points.len() >= LEAST_ECHOES)
        .filter_map(|points| Some((points[0].0, median(points.iter().map(|point| point.1))?)))
        .collect();
    let delay_ns = bins.iter().map(|bin| bin.1).reduce(f64::max)?.max(0.0);
    let full_from = bins.iter().find(|bin| bin.1 >= FULL * delay_ns).map_or(flood.start_ns, |bin| bin.0);
    let rate_bps = rate(flood, full_from);
    let sent = flood.sent_packets.max(1) as f64;
    let loss = (1.0 - flood.received_packets as f64 / sent).clamp(0.0, 1.0);
    // Echoes of the last bins may have met a queue that drains again.
    let before_the_end: Vec<f64> =
        bins.iter().filter(|bin| bin.0 <= flood.end_ns.saturating_sub(BIN_NS)).map(|bin| bin.1).collect();
    let is_level = match before_the_end[..] {
        [.., before, last] => last <= before * (1.0 + LEVEL) + LEVEL_NS,
        _ => false,
    };
    Some(WorstCase {
        direction: flood.direction,
        delay_ns: whole(delay_ns),
        rate_bps: rate_bps.map(|rate| rate.round() as u64),
        bytes: rate_bps.map(|rate| (rate / 8.0 * delay_ns / 1e9).round() as u64),
        loss: rounded(loss),
        full: is_level && loss >= LEAST_LOSS,
    })
}

/// The rate at which packets arrived while the buffer was full.
fn rate(flood: &Flood, from_ns: i64) -> Option<f64> {
    let while_full = || flood.received.iter().filter(|(t_ns, _)| (from_ns..=flood.end_ns).contains(t_ns));
    let (first, last) = (while_full().min_by_key(|count| count.0)?, while_full().max_by_key(|count| count.0)?);
    let time_ns = last.0.saturating_sub(first.0);
    (time_ns >= LEAST_RATE_NS).then(|| last.1.saturating_sub(first.1) as f64 * 8e9 / time_ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{Direction, Echo, Phase};
    use crate::judge;

    const MS: i64 = 1_000_000;

    /// A path of 20 ms, and a flood of 20 Mbit/s through 10 Mbit/s and a buffer that is full after `full_ms` of growth by 1 ms/ms.
    fn flooded(full_ms: i64, length_ms: i64) -> WorstCase {
        let rtt = |at_ms: i64| Some((20 + at_ms.min(full_ms)) * MS);
        let idle = (0..200).map(|at| Echo { t_ns: at * 20 * MS, rtt_ns: Some(20 * MS), ..Echo::default() });
        let flood = Flood {
            direction: Direction::Up,
            peak_bps: 20_000_000,
            start_ns: 10_000 * MS,
            end_ns: (10_000 + length_ms) * MS,
            sent_packets: 1000,
            received_packets: if full_ms < length_ms { 600 } else { 1000 },
            rtts: (0..length_ms / 20).map(|at| ((10_000 + at * 20) * MS, rtt(at * 20))).collect(),
            received: (0..length_ms / 20).map(|at| ((10_000 + at * 20) * MS, at as u64 * 25_000)).collect(),
        };
        let phase = Phase { end_ns: 4000 * MS, echoes: idle.collect(), ..Phase::default() };
        let observations = Observations { phases: vec![phase], floods: vec![flood], ..Observations::default() };
        judge(&observations).worst_cases[0]
    }

    #[test]
    fn the_worst_case_is_the_longest_standing_delay_times_the_rate() {
        let worst = flooded(300, 3000);
        assert_eq!((worst.delay_ns, worst.rate_bps, worst.bytes), (300 * MS, Some(10_000_000), Some(375_000)));
        assert!(worst.full && (worst.loss - 0.4).abs() < 1e-9, "{worst:?}");
    }

    #[test]
    fn a_buffer_that_is_still_filling_is_not_full() {
        let worst = flooded(10_000, 3000);
        assert!(!worst.full && worst.delay_ns > 2500 * MS, "{worst:?}");
    }

    #[test]
    fn a_flood_without_echoes_or_counts_shows_nothing() {
        let flood = Flood {
            direction: Direction::Down,
            peak_bps: 0,
            start_ns: i64::MIN,
            end_ns: i64::MAX,
            sent_packets: 0,
            received_packets: u64::MAX,
            rtts: vec![(i64::MIN, None), (i64::MAX, Some(i64::MAX))],
            received: vec![(i64::MAX, 0), (i64::MIN, u64::MAX)],
        };
        let observations = Observations { floods: vec![flood], ..Observations::default() };
        assert!(judge(&observations).worst_cases.is_empty());
    }
}
