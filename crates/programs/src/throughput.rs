//! The bit rate of a video's next segment, by the throughput of the last ones: the `ThroughputRule` of dash.js, the DASH
//! Industry Forum's player, with the mean that its settings call `BYTE_SIZE_WEIGHTED_HARMONIC_MEAN`. That is the size of
//! the last segments divided by the time that they took. Jiang, Sekar and Zhang (FESTIVE, 2012) say why a harmonic
//! mean: a single fast segment hardly changes it.
//!
//! Departures from dash.js: the time of a segment is that from its request to its last byte, because the program does not
//! see the first one; dash.js subtracts the latency. It also looks at more segments if their throughput varies much. Its
//! other rules are not modelled: BOLA, and those that abandon a request or count dropped frames.

use std::collections::VecDeque;

/// `sampleSettings.vod` of dash.js.
const SEGMENTS: usize = 4;
/// `bandwidthSafetyFactor` of dash.js, in tenths.
const SAFETY_TENTHS: u128 = 9;
/// The bit rate that dash.js looks for before it has measured anything (`DEFAULT_VIDEO_BITRATE`).
const INITIAL_BPS: u64 = 1_000_000;
/// Bits of a byte, times nanoseconds of a second.
const BIT_NS: u128 = 8_000_000_000;

/// The sizes of the last segments, and the times that they took.
#[derive(Debug, Default)]
pub(crate) struct Throughput(VecDeque<(u64, u64)>);

impl Throughput {
    /// A segment has arrived.
    pub(crate) fn measured(&mut self, bytes: u64, took_ns: u64) {
        if self.0.len() == SEGMENTS {
            self.0.pop_front();
        }
        self.0.push_back((bytes, took_ns));
    }

    /// The highest of the bit rates that can be expected to arrive in time, or else the lowest. They are in ascending
    /// order.
    pub(crate) fn choose(&self, rates_bps: &[u64]) -> u64 {
        let safe_bps = self.safe_bps();
        let fitting = rates_bps.partition_point(|rate_bps| u128::from(*rate_bps) <= safe_bps);
        rates_bps.get(fitting.saturating_sub(1)).copied().unwrap_or_default()
    }

    fn safe_bps(&self) -> u128 {
        if self.0.is_empty() {
            return INITIAL_BPS.into();
        }
        let sum = |part: fn(&(u64, u64)) -> u64| self.0.iter().map(|each| u128::from(part(each))).sum::<u128>();
        sum(|(bytes, _)| *bytes) * BIT_NS * SAFETY_TENTHS / (10 * sum(|(_, took_ns)| *took_ns).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const RATES: [u64; 4] = [400_000, 900_000, 1_800_000, 3_600_000];

    #[test]
    fn the_first_segment_has_at_most_a_megabit_per_second() {
        assert_eq!(Throughput::default().choose(&RATES), 900_000);
        assert_eq!(Throughput::default().choose(&[1_000_000, 1_000_001]), 1_000_000);
        assert_eq!(Throughput::default().choose(&[5_000_000]), 5_000_000, "there is no lower one");
    }

    #[test]
    fn nine_tenths_of_the_throughput_are_used() {
        let chosen = |bytes| {
            let mut throughput = Throughput::default();
            throughput.measured(bytes, 1000 * MS);
            throughput.choose(&RATES)
        };
        // 500,000 bytes in a second are 4 Mbit/s, of which 3.6 may be used; 499,999 are a little less.
        assert_eq!([500_000, 499_999, 1].map(chosen), [3_600_000, 1_800_000, 400_000]);
    }

    #[test]
    fn the_mean_is_that_of_the_last_four_by_their_size() {
        let mut throughput = Throughput::default();
        throughput.measured(1_000_000, 10 * MS);
        // 250 kB in 0.5 s, three times, and 50 kB in 0.1 s: 4 Mbit/s each, so the first one is forgotten.
        for (bytes, took_ms) in [(250_000, 500), (250_000, 500), (250_000, 500), (50_000, 100)] {
            throughput.measured(bytes, took_ms * MS);
        }
        assert_eq!(throughput.choose(&[3_600_000, 3_600_001]), 3_600_000);
        // 250 kB in 2 s instead of the oldest: 800 kB in 3.1 s, 2.0645 Mbit/s. An arithmetic mean would be 3.25.
        throughput.measured(250_000, 2000 * MS);
        assert_eq!(throughput.choose(&[1_858_064, 1_858_065]), 1_858_064);
    }
}
