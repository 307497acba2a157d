//! The token bucket of a link with a `boost`, the same on every engine.
//!
//! A link with a boost has two rates: it fills the bucket at the lower one, and sends frames at the higher one. A frame
//! may begin while the bucket is not in debt, and takes its bits out of it, even if there are fewer: then the next
//! frame waits until the debt is paid. This is the rule of Linux' HTB for a class with `rate`, `burst` and `ceil`. TBF
//! with `peakrate`, and DOCSIS with its maximum sustained rate, maximum traffic burst and peak rate (MULPI, annex
//! C.2.2.7), require all of a frame's tokens before it begins. With frames of one size, their bucket behaves like one
//! here that is smaller by one frame.

use crate::model::{Boost, RateStep};

/// A bucket is recorded as empty until this share of it is filled again.
const REFILLED_SHARE: i128 = 10;
const BITS_PER_BYTE: i128 = 8;
const NS_PER_S: i128 = 1_000_000_000;

/// Tokens that arrive at a rate, up to the size of the bucket.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    boost_bps: u64,
    fill_bps: u64,
    /// Its size and contents in billionths of a bit, of which `fill_bps` arrive in a nanosecond.
    size: i128,
    level: i128,
    /// The time of `level`.
    at_ns: u64,
    /// Whether the link sends at the boost's rate, as far as [`rates`](Self::rates) shows.
    boosting: bool,
    rates: Vec<RateStep>,
}

impl TokenBucket {
    /// A full bucket at time 0, filled at `fill_bps`.
    pub fn new(boost: Boost, fill_bps: u64) -> Self {
        let size = i128::from(boost.bytes) * BITS_PER_BYTE * NS_PER_S;
        Self {
            boost_bps: boost.rate_bps,
            fill_bps,
            size,
            level: size,
            at_ns: 0,
            boosting: true,
            rates: vec![RateStep { from_ns: 0, bits_per_second: boost.rate_bps }],
        }
    }

    /// The bucket fills at another rate from `now_ns` on.
    pub fn set_fill(&mut self, fill_bps: u64, now_ns: u64) {
        self.advance(now_ns);
        self.fill_bps = fill_bps;
        if !self.boosting {
            self.note_rate(now_ns, fill_bps);
        }
    }

    /// A frame takes its tokens. Returns the time from which the next frame may begin: `now_ns`, unless the bucket is in
    /// debt.
    #[inline]
    pub fn take(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.advance(now_ns);
        self.level -= i128::from(bytes) * BITS_PER_BYTE * NS_PER_S;
        now_ns + self.debt_ns()
    }

    /// The link sent `bytes` since the last call. They may have been ahead of the tokens by what a sample does not
    /// show.
    pub fn saw_sent(&mut self, now_ns: u64, bytes: u64) {
        let restart_ns = self.take(now_ns, bytes);
        if restart_ns > now_ns {
            self.ran_empty(now_ns);
        }
    }

    /// The link has to wait for tokens from `now_ns` on.
    #[inline]
    pub fn ran_empty(&mut self, now_ns: u64) {
        if self.boosting {
            self.boosting = false;
            self.note_rate(now_ns, self.fill_bps);
        }
    }

    /// The rate at `now_ns`: that of the boost until the bucket has run empty, and again when a tenth of it is filled.
    pub fn rate_bps(&self, now_ns: u64) -> u64 {
        if self.boosting || self.is_refilled(self.arrived(now_ns)) { self.boost_bps } else { self.fill_bps }
    }

    /// The steps of the rate up to `now_ns` that were not yet taken, in order of time.
    pub fn take_rates(&mut self, now_ns: u64) -> impl Iterator<Item = RateStep> {
        self.advance(now_ns);
        let begun = self.rates.partition_point(|step| step.from_ns <= now_ns);
        self.rates.drain(..begun)
    }

    /// Tokens arrive until `now_ns`.
    #[inline]
    fn advance(&mut self, now_ns: u64) {
        let arrived = self.arrived(now_ns);
        if !self.boosting && self.is_refilled(arrived) {
            let missing = (self.size / REFILLED_SHARE - self.level).max(0);
            self.boosting = true;
            self.note_rate(self.at_ns + div_ceil(missing, self.fill_bps), self.boost_bps);
        }
        self.level = (self.level + arrived).min(self.size);
        self.at_ns = self.at_ns.max(now_ns);
    }

    /// Tokens that arrive until `now_ns`.
    fn arrived(&self, now_ns: u64) -> i128 {
        i128::from(now_ns.saturating_sub(self.at_ns)) * i128::from(self.fill_bps)
    }

    fn is_refilled(&self, arrived: i128) -> bool {
        (self.level + arrived) * REFILLED_SHARE >= self.size
    }

    fn note_rate(&mut self, from_ns: u64, bits_per_second: u64) {
        let from_ns = self.rates.last().map_or(0, |step| step.from_ns).max(from_ns);
        self.rates.push(RateStep { from_ns, bits_per_second });
    }

    fn debt_ns(&self) -> u64 {
        if self.level < 0 { div_ceil(-self.level, self.fill_bps) } else { 0 }
    }
}

/// How long `tokens`, which are not negative, take to arrive.
fn div_ceil(tokens: i128, fill_bps: u64) -> u64 {
    u64::try_from(tokens.unsigned_abs().div_ceil(u128::from(fill_bps))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// 10,000 bytes, filled at 2 Mbit/s: 250 bytes a millisecond, 40 ms to fill it.
    fn bucket() -> TokenBucket {
        TokenBucket::new(Boost { rate_bps: 10_000_000, bytes: 10_000 }, 2_000_000)
    }

    fn rates(bucket: &mut TokenBucket, now_ns: u64) -> Vec<(u64, u64)> {
        bucket.take_rates(now_ns).map(|step| (step.from_ns, step.bits_per_second)).collect()
    }

    #[test]
    fn a_full_bucket_lets_its_size_pass_and_then_what_arrives() {
        let mut bucket = bucket();
        assert_eq!(bucket.take(0, 10_000), 0, "empty, but not in debt");
        // In debt by 1000 bytes, which arrive in 4 ms.
        assert_eq!(bucket.take(0, 1000), 4 * MS);
        assert_eq!(bucket.take(4 * MS, 1000), 8 * MS);
        assert_eq!(bucket.take(100 * MS, 11_000), 104 * MS, "full again after 40 ms, and no fuller");
    }

    #[test]
    fn what_a_wait_was_rounded_up_by_is_not_lost() {
        // 1 byte at 7 Mbit/s takes 1142.86 ns, as on a link of that rate.
        let mut bucket = TokenBucket::new(Boost { rate_bps: 10_000_000, bytes: 1 }, 7_000_000);
        let mut now_ns = bucket.take(0, 1);
        let ends: Vec<u64> = (0..7)
            .map(|_| {
                now_ns = bucket.take(now_ns, 1);
                now_ns
            })
            .collect();
        assert_eq!(ends, [1143, 2286, 3429, 4572, 5715, 6858, 8000]);
    }

    #[test]
    fn the_rate_is_the_boosts_until_the_bucket_runs_empty_and_after_a_tenth_is_filled() {
        let mut bucket = bucket();
        assert_eq!(rates(&mut bucket, 0), [(0, 10_000_000)]);
        assert_eq!(bucket.take(MS, 10_000), MS);
        let restart_ns = bucket.take(MS, 500);
        assert_eq!(restart_ns, 3 * MS);
        bucket.ran_empty(MS);
        assert_eq!((bucket.rate_bps(2 * MS), rates(&mut bucket, 2 * MS)), (2_000_000, vec![(MS, 2_000_000)]));
        // In debt by 500 bytes at 1 ms: a tenth, 1000 bytes, is there 6 ms later.
        assert_eq!((bucket.rate_bps(6 * MS), rates(&mut bucket, 6 * MS)), (2_000_000, vec![]));
        assert_eq!((bucket.rate_bps(50 * MS), rates(&mut bucket, 50 * MS)), (10_000_000, vec![(7 * MS, 10_000_000)]));
    }

    #[test]
    fn a_bucket_that_fills_at_another_rate_keeps_what_it_has() {
        let mut bucket = bucket();
        assert_eq!(bucket.take(0, 10_500), 2 * MS);
        bucket.ran_empty(0);
        // After 1 ms, 250 bytes are still owed, and 1000 more are taken: 1250 bytes at 1 Mbit/s take 10 ms.
        bucket.set_fill(1_000_000, MS);
        assert_eq!(bucket.take(MS, 1000), 11 * MS);
        assert_eq!(rates(&mut bucket, 2 * MS), [(0, 10_000_000), (0, 2_000_000), (MS, 1_000_000)]);
    }
}
