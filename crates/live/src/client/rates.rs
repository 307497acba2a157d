//! The rates of the load, for the display and for the number of connections.

use crate::time::SECOND;

/// A load is steady after this time.
const STEADY_NS: u64 = 2 * SECOND;

/// The rates of the last second, from counts of bytes.
#[derive(Debug, Default)]
pub(super) struct Rates {
    counts: std::collections::VecDeque<(u64, [u64; 2])>,
    /// The first count of the steady load.
    steady: Option<(u64, [u64; 2])>,
}

impl Rates {
    pub(super) fn take(&mut self, t_ns: u64, down: u64, up: u64) {
        self.counts.push_back((t_ns, [down, up]));
        if t_ns >= STEADY_NS {
            self.steady.get_or_insert((t_ns, [down, up]));
        }
        while self.counts.len() > 2 && self.counts[1].0 + SECOND <= t_ns {
            self.counts.pop_front();
        }
    }

    /// Bit/s downwards and upwards.
    pub(super) fn last_second(&self) -> [Option<f64>; 2] {
        self.since(self.counts.front())
    }

    /// The means of the steady load, in bit/s downwards and upwards.
    pub(super) fn mean(&self) -> [Option<f64>; 2] {
        self.since(self.steady.as_ref())
    }

    fn since(&self, first: Option<&(u64, [u64; 2])>) -> [Option<f64>; 2] {
        let (Some(first), Some(last)) = (first, self.counts.back()) else { return [None; 2] };
        let span_ns = last.0 - first.0;
        let rate = |at: usize| {
            let bits = last.1[at].saturating_sub(first.1[at]) as f64 * 8.0;
            (span_ns > 0).then(|| bits / (span_ns as f64 / SECOND as f64))
        };
        [rate(0), rate(1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rates_are_those_of_the_last_second() {
        let mut rates = Rates::default();
        assert_eq!(rates.last_second(), [None; 2]);
        for tenth in 0..=30 {
            // 1 MB/s down; up only in the last second, 2 MB/s.
            let up = 200_000 * u64::saturating_sub(tenth, 20);
            rates.take(tenth * SECOND / 10, 100_000 * tenth, up);
        }
        assert_eq!(rates.last_second(), [Some(8e6), Some(16e6)]);
        assert_eq!(rates.mean(), [Some(8e6), Some(16e6)]);
        rates.take(4 * SECOND, 4_000_000, 2_000_000);
        assert_eq!(rates.mean(), [Some(8e6), Some(8e6)]);
    }
}
