//! Round-trip time and retransmission timeout (RFC 6298; the kernel's `tcp_rtt_estimator`).
//!
//! As in the kernel, the mean deviation reacts slowly when the round-trip time falls. The largest deviation of each
//! round trip is used, and its term never falls below the minimum timeout: RTO = SRTT + max(200 ms, 4 mdev).

use crate::transport::extremes::MinFilter;

/// Smallest variance term, and so nearly the smallest timeout (`TCP_RTO_MIN`; RFC 6298, rule 2.4, asks for 1 s).
pub(crate) const RTO_MIN_NS: u64 = 200_000_000;
/// Largest timeout (`TCP_RTO_MAX`; RFC 6298, rule 2.5).
pub(crate) const RTO_MAX_NS: u64 = 120_000_000_000;
/// Timeout before the first measurement (RFC 6298, rule 2.1).
pub(crate) const RTO_INITIAL_NS: u64 = 1_000_000_000;
/// The smallest round-trip time is forgotten after this time (`tcp_min_rtt_wlen`).
const MIN_RTT_WINDOW_NS: u64 = 300_000_000_000;

/// Estimates from round-trip measurements.
#[derive(Debug)]
pub(crate) struct Rtt {
    smoothed: Option<Smoothed>,
    min: MinFilter,
}

/// Smoothed values, scaled as in the kernel, so that shifts lose no precision.
#[derive(Debug)]
struct Smoothed {
    /// 8 times the smoothed round-trip time.
    srtt8: i64,
    /// 4 times the mean deviation.
    mdev4: i64,
    /// Largest `mdev4` since `round_end` was set.
    mdev_max4: i64,
    /// The timeout's variance term.
    variance: i64,
    /// The round ends when more bytes than this are acknowledged.
    round_end: u64,
}

impl Rtt {
    /// The estimates before any measurement.
    pub(crate) fn new() -> Self {
        Self { smoothed: None, min: MinFilter::new(MIN_RTT_WINDOW_NS) }
    }

    /// Adds a measurement. So far, `acked` bytes were acknowledged, and `sent` bytes sent: these end the next round.
    pub(crate) fn add(&mut self, rtt_ns: u64, acked: u64, sent: u64) {
        match &mut self.smoothed {
            Some(smoothed) => smoothed.add(rtt_ns as i64, acked, sent),
            none => *none = Some(Smoothed::first(rtt_ns as i64, sent)),
        }
    }

    /// Adds a measurement for the minimum, taken from the newest acknowledged packet.
    pub(crate) fn add_min(&mut self, now_ns: u64, rtt_ns: u64) {
        self.min.add(now_ns, rtt_ns);
    }

    /// Smoothed round-trip time; `None` before the first measurement.
    pub(crate) fn srtt_ns(&self) -> Option<u64> {
        self.smoothed.as_ref().map(|s| (s.srtt8 >> 3) as u64)
    }

    /// Smallest round-trip time of the last 5 minutes.
    pub(crate) fn min_ns(&self) -> Option<u64> {
        self.min.value()
    }

    /// Retransmission timeout without backoff.
    pub(crate) fn rto_ns(&self) -> u64 {
        self.smoothed.as_ref().map_or(RTO_INITIAL_NS, |s| ((s.srtt8 >> 3) + s.variance) as u64).min(RTO_MAX_NS)
    }
}

impl Smoothed {
    /// RFC 6298, rule 2.2.
    fn first(rtt: i64, sent: u64) -> Self {
        let variance = (rtt * 2).max(RTO_MIN_NS as i64);
        Self { srtt8: rtt * 8, mdev4: rtt * 2, mdev_max4: variance, variance, round_end: sent }
    }

    /// RFC 6298, rule 2.3.
    fn add(&mut self, rtt: i64, acked: u64, sent: u64) {
        let error = rtt - (self.srtt8 >> 3);
        self.srtt8 += error;
        let mut excess = error.abs() - (self.mdev4 >> 2);
        if error < 0 && excess > 0 {
            // The path has become faster, which is no reason to wait longer.
            excess >>= 3;
        }
        self.mdev4 += excess;
        if self.mdev4 > self.mdev_max4 {
            self.mdev_max4 = self.mdev4;
            self.variance = self.variance.max(self.mdev_max4);
        }
        if acked > self.round_end {
            if self.mdev_max4 < self.variance {
                self.variance -= (self.variance - self.mdev_max4) >> 2;
            }
            self.round_end = sent;
            self.mdev_max4 = RTO_MIN_NS as i64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_first_measurement_sets_everything() {
        let mut rtt = Rtt::new();
        assert_eq!((rtt.srtt_ns(), rtt.rto_ns()), (None, 1000 * MS));
        rtt.add(300 * MS, 1, 2);
        // RTO = 300 + 4 * (300 / 2) = 900 ms.
        assert_eq!((rtt.srtt_ns(), rtt.rto_ns()), (Some(300 * MS), 900 * MS));
    }

    #[test]
    fn a_steady_path_has_a_timeout_of_rtt_plus_200_ms() {
        let mut rtt = Rtt::new();
        (0..1000).for_each(|i| rtt.add(20 * MS, 10 * i, 10 * i + 5));
        assert_eq!((rtt.srtt_ns(), rtt.rto_ns()), (Some(20 * MS), 220 * MS));
    }

    #[test]
    fn the_mean_moves_by_an_eighth() {
        let mut rtt = Rtt::new();
        rtt.add(80 * MS, 1, 2);
        rtt.add(160 * MS, 1, 2);
        assert_eq!(rtt.srtt_ns(), Some(90 * MS));
    }

    #[test]
    fn a_slower_path_raises_the_deviation_more_than_a_faster_one() {
        // mdev4 starts at 2 * 400 = 800 ms, a mean deviation of 200 ms. An error of 1000 ms adds 1000 - 200 = 800 ms if
        // the path became slower, and an eighth of that, 100 ms, if it became faster.
        let rto_after = |sample: u64| {
            let mut rtt = Rtt::new();
            rtt.add(400 * MS, 1, 10);
            rtt.add(sample * MS, 5, 10);
            (rtt.srtt_ns().unwrap() / MS, rtt.rto_ns() / MS)
        };
        // SRTT 400 + 1000 / 8 = 525; RTO = 525 + 1600.
        assert_eq!(rto_after(1400), (525, 2125));
        // SRTT 400 - 399 / 8 = 350.1. |error| - 200 = 199, of which an eighth is 24.9. RTO = 350.1 + 824.9.
        assert_eq!(rto_after(1), (350, 1175));
    }

    #[test]
    fn the_variance_decays_by_a_quarter_a_round_trip() {
        let mut rtt = Rtt::new();
        rtt.add(400 * MS, 1, 10);
        // Each round has one sample, and all are equal. With each, the deviation (4 mdev = 800 ms at first) loses a
        // quarter. The variance loses a quarter of its excess over the round's largest deviation. In floating point, by
        // the rules:
        let mut expected = (800.0_f64, 800.0_f64, 800.0_f64);
        for round in 1..10u64 {
            let (mut mdev4, mut largest, mut variance) = expected;
            mdev4 -= mdev4 / 4.0;
            largest = largest.max(mdev4);
            variance = variance.max(largest);
            variance -= (variance - largest).max(0.0) / 4.0;
            expected = (mdev4, 200.0, variance);
            rtt.add(400 * MS, 10 * round + 1, 10 * round + 10);
            let rto_ms = rtt.rto_ns() as f64 / MS as f64;
            assert!((rto_ms - 400.0 - variance).abs() < 0.01, "round {round}: {rto_ms}");
        }
    }
}
