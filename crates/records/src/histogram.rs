//! A histogram that keeps the sojourn times of many packets in little memory.

use std::fmt;

use crate::names::Name;
use crate::rows::SojournRow;
use crate::value::Layer;

/// Buckets per power of two, as a power of two: the widest bucket is 1/1024 (0.1 %) of its lower end, so that the first
/// three digits of a percentile are those of a packet.
const PRECISION_BITS: u32 = 10;
const BUCKETS_PER_OCTAVE: usize = 1 << PRECISION_BITS;
/// Octave 0 has a bucket for each time from 0 to 1023 ns; each other octave covers one power of two, up to 2^64.
const OCTAVES: usize = (u64::BITS - PRECISION_BITS + 1) as usize;

/// Counts packets by sojourn time in logarithmic buckets of at most 0.1 %.
///
/// Each bucket is reported as its midpoint, so a reported time is within 0.05 % of the time of every packet in it. Only
/// integer arithmetic is involved: the same packets give the same rows on every machine. An octave is allocated when
/// its first packet arrives and is kept from then on, so recording allocates nothing in steady state and costs a few
/// instructions.
pub struct SojournHistogram {
    octaves: [Option<Box<[u32; BUCKETS_PER_OCTAVE]>>; OCTAVES],
    /// Bit `i` is set if octave `i` counts any packets. Draining visits only these octaves.
    occupied: u64,
}

impl SojournHistogram {
    /// A histogram without packets.
    pub fn new() -> Self {
        Self { octaves: [const { None }; OCTAVES], occupied: 0 }
    }

    /// Counts one packet.
    #[inline]
    pub fn record(&mut self, sojourn_ns: u64) {
        let (octave, bucket) = position(sojourn_ns);
        self.occupied |= 1 << octave;
        let counts = match &mut self.octaves[octave] {
            Some(counts) => counts,
            empty => allocate(empty),
        };
        counts[bucket] = counts[bucket].saturating_add(1);
    }

    /// Whether no packet was counted since the last [`drain`](Self::drain).
    pub fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// Yields one row for each bucket that counts packets, shortest time first, and starts over.
    pub fn drain(&mut self, t_ns: u64, port: Name, layer: Layer, mut each: impl FnMut(SojournRow)) {
        for (octave, counts) in self.octaves.iter_mut().enumerate().filter(|(o, _)| self.occupied >> o & 1 == 1) {
            for (bucket, count) in counts.iter_mut().flat_map(|counts| counts.iter_mut().enumerate()) {
                if *count > 0 {
                    let packets = u64::from(std::mem::take(count));
                    each(SojournRow { t_ns, port, layer, sojourn_ns: middle(octave, bucket), packets });
                }
            }
        }
        self.occupied = 0;
    }
}

impl Default for SojournHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SojournHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packets: u64 = self.octaves.iter().flatten().flat_map(|counts| counts.iter()).map(|&c| u64::from(c)).sum();
        f.debug_struct("SojournHistogram").field("packets", &packets).finish_non_exhaustive()
    }
}

/// Apart from [`SojournHistogram::record`], so that counting a packet does not pay for the call.
#[cold]
fn allocate(octave: &mut Option<Box<[u32; BUCKETS_PER_OCTAVE]>>) -> &mut [u32; BUCKETS_PER_OCTAVE] {
    octave.get_or_insert_with(|| Box::new([0; BUCKETS_PER_OCTAVE]))
}

/// Octave and bucket of a time: its leading bit, and the ten bits after it.
#[inline]
fn position(ns: u64) -> (usize, usize) {
    let in_first_octave = BUCKETS_PER_OCTAVE as u64 - 1;
    let octave = (ns | in_first_octave).ilog2() - (PRECISION_BITS - 1);
    let shift = octave.saturating_sub(1);
    (octave as usize, (ns >> shift) as usize % BUCKETS_PER_OCTAVE)
}

/// The time in the middle of a bucket, rounded down.
fn middle(octave: usize, bucket: usize) -> u64 {
    let Some(shift) = octave.checked_sub(1) else { return bucket as u64 };
    let lowest = ((BUCKETS_PER_OCTAVE + bucket) as u64) << shift;
    lowest + ((1_u64 << shift) - 1) / 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::names::Names;

    fn drained(histogram: &mut SojournHistogram) -> Vec<(u64, u64)> {
        let port = Names::default().intern("r1>h2");
        let mut rows = Vec::new();
        histogram.drain(0, port, Layer::Qdisc, |row| rows.push((row.sojourn_ns, row.packets)));
        rows
    }

    #[test]
    fn the_longest_time_has_the_last_bucket() {
        assert_eq!(position(u64::MAX), (OCTAVES - 1, BUCKETS_PER_OCTAVE - 1));
    }

    #[test]
    fn times_below_two_microseconds_are_exact() {
        let mut histogram = SojournHistogram::new();
        (0..2048).for_each(|ns| histogram.record(ns));
        let expected: Vec<_> = (0..2048).map(|ns| (ns, 1)).collect();
        assert_eq!(drained(&mut histogram), expected);
    }

    #[test]
    fn packets_of_one_bucket_share_a_row_and_draining_starts_over() {
        let mut histogram = SojournHistogram::new();
        (0..1000).for_each(|_| histogram.record(120_000_000));
        let rows = drained(&mut histogram);
        assert_eq!(rows.iter().map(|row| row.1).collect::<Vec<_>>(), [1000]);
        assert!(histogram.is_empty());
        assert_eq!(drained(&mut histogram), []);
    }

    /// Three queues whose 95th percentiles differ by 0.2 % each had one and the same before.
    #[test]
    fn times_that_differ_by_a_fifth_of_a_percent_have_buckets_of_their_own() {
        let mut histogram = SojournHistogram::new();
        [5_672_000, 5_683_000, 5_695_000].into_iter().for_each(|ns| histogram.record(ns));
        assert_eq!(drained(&mut histogram).len(), 3);
    }

    /// Times as in a queue: all orders of magnitude are equally likely.
    fn times() -> impl Strategy<Value = u64> {
        (0..u64::BITS, any::<u64>()).prop_map(|(shift, bits)| bits >> shift)
    }

    proptest! {
        #[test]
        fn a_reported_time_is_within_a_twentieth_of_a_percent(ns in times()) {
            let mut histogram = SojournHistogram::new();
            histogram.record(ns);
            let rows = drained(&mut histogram);
            prop_assert_eq!(rows.len(), 1);
            prop_assert!(u128::from(rows[0].0.abs_diff(ns)) * 2000 <= u128::from(ns), "{} reported as {}", ns, rows[0].0);
        }

        #[test]
        fn no_packet_is_lost_and_rows_ascend(mut times in prop::collection::vec(times(), 0..500)) {
            let mut histogram = SojournHistogram::new();
            times.iter().for_each(|&ns| histogram.record(ns));
            let rows = drained(&mut histogram);
            prop_assert_eq!(rows.iter().map(|row| row.1).sum::<u64>(), times.len() as u64);
            prop_assert!(rows.windows(2).all(|pair| pair[0].0 < pair[1].0));

            times.sort_unstable();
            let reported = rows.iter().flat_map(|&(ns, packets)| (0..packets).map(move |_| ns));
            for (reported, exact) in reported.zip(times) {
                prop_assert!(u128::from(reported.abs_diff(exact)) * 2000 <= u128::from(exact));
            }
        }
    }
}
