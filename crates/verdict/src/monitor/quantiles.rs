//! Percentiles of any number of delays in bounded memory.

use crate::statistics::whole;
use crate::verdict::Spread;

/// Bins for each doubling: a percentile is exact to within 0.6 %.
const PER_DOUBLING: f64 = 64.0;
/// The shortest delay that has a bin of its own.
const SHORTEST_NS: f64 = 1e3;
/// From a microsecond to 19 hours.
const BINS: usize = 26 * 64;

/// Counts delays in logarithmic bins.
#[derive(Debug)]
pub(super) struct Quantiles {
    bins: Vec<u64>,
    answered: u64,
    lost: u64,
    max_ns: i64,
}

impl Default for Quantiles {
    fn default() -> Self {
        Self { bins: vec![0; BINS], answered: 0, lost: 0, max_ns: 0 }
    }
}

impl Quantiles {
    /// Takes a delay, or a loss.
    pub(super) fn take(&mut self, delay_ns: Option<i64>) {
        let Some(delay_ns) = delay_ns else {
            self.lost += 1;
            return;
        };
        let at = ((delay_ns as f64 / SHORTEST_NS).max(1.0).log2() * PER_DOUBLING) as usize;
        self.bins[at.min(BINS - 1)] += 1;
        self.answered += 1;
        self.max_ns = self.max_ns.max(delay_ns);
    }

    /// The distribution so far; lost probes count as infinitely long.
    pub(super) fn spread(&self) -> Spread {
        let [p50_ns, p95_ns, p99_ns] = [0.5, 0.95, 0.99].map(|q| self.quantile(q));
        Spread {
            count: self.answered + self.lost,
            lost: self.lost,
            p50_ns,
            p95_ns,
            p99_ns,
            max_ns: (self.answered > 0).then_some(self.max_ns),
            censored: self.answered + self.lost > 0 && p99_ns.is_none(),
        }
    }

    fn quantile(&self, q: f64) -> Option<i64> {
        let last = (self.answered + self.lost).checked_sub(1)?;
        let rank = (q * last as f64).round() as u64;
        let mut below = 0;
        for (at, count) in self.bins.iter().enumerate() {
            below += count;
            if below > rank {
                let middle = SHORTEST_NS * ((at as f64 + 0.5) / PER_DOUBLING).exp2();
                return Some(whole(middle).min(self.max_ns));
            }
        }
        None
    }
}
