//! A link with a boost: frames are sent at the boost's rate, and wait for tokens that arrive at the link's.
//!
//! The bucket is [`TokenBucket`]: a frame may begin while it is not in debt. The link is stopped while a frame is being
//! sent, and while the bucket is in debt. So packets that wait for tokens are queued, as in Linux' HTB.

use bufferscope_scenario::{Boost, RateStep, TokenBucket};

use super::Constant;

#[derive(Debug)]
pub(super) struct Boosted {
    fast: Constant,
    bucket: TokenBucket,
    /// When the last bit of the last frame is, or was, sent.
    end_ns: u64,
}

/// A frame that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// When its last bit will have been sent.
    pub(super) end_ns: u64,
    /// When the next frame can begin.
    pub(super) restarts_at_ns: u64,
}

impl Boosted {
    pub(super) fn new(boost: Boost, rate_bps: u64) -> Self {
        Self { fast: Constant::new(boost.rate_bps), bucket: TokenBucket::new(boost, rate_bps), end_ns: 0 }
    }

    /// The bucket fills at another rate from now on.
    pub(super) fn set_rate(&mut self, rate_bps: u64, now_ns: u64) {
        self.bucket.set_fill(rate_bps, now_ns);
    }

    pub(super) fn send(&mut self, now_ns: u64, bytes: u32) -> Sent {
        let end_ns = now_ns + self.fast.duration_ns(bytes, now_ns > self.end_ns);
        self.end_ns = end_ns;
        let restarts_at_ns = self.bucket.take(now_ns, bytes.into()).max(end_ns);
        if restarts_at_ns > end_ns {
            self.bucket.ran_empty(end_ns);
        }
        Sent { end_ns, restarts_at_ns }
    }

    pub(super) fn rate_bps(&self, now_ns: u64) -> u64 {
        self.bucket.rate_bps(now_ns)
    }

    pub(super) fn take_rates(&mut self, now_ns: u64) -> impl Iterator<Item = RateStep> {
        self.bucket.take_rates(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 Mbit/s for 3028 bytes, then 2 Mbit/s. A full frame of 1514 bytes takes 1.2112 ms and 6.056 ms at these rates.
    fn link() -> Boosted {
        Boosted::new(Boost { rate_bps: 10_000_000, bytes: 3028 }, 2_000_000)
    }

    #[test]
    fn frames_are_sent_at_the_boosts_rate_until_the_bucket_is_in_debt_and_then_as_tokens_arrive() {
        let mut link = link();
        let mut now_ns = 0;
        let sent: Vec<(u64, u64)> = (0..6)
            .map(|_| {
                let sent = link.send(now_ns, 1514);
                let begun_ns = std::mem::replace(&mut now_ns, sent.restarts_at_ns);
                (begun_ns, sent.end_ns)
            })
            .collect();
        // The tokens of the first n frames are all taken at n * 6.056 ms - 12.112 ms, so frame n + 1 may begin then: the
        // second and third at once after the one before, the fourth at 6.056 ms.
        let begun = [0, 1_211_200, 2_422_400, 6_056_000, 12_112_000, 18_168_000];
        assert_eq!(sent, begun.map(|begun_ns| (begun_ns, begun_ns + 1_211_200)));
    }

    #[test]
    fn an_idle_link_has_its_boost_again() {
        let mut link = link();
        let mut now_ns = 0;
        for _ in 0..10 {
            now_ns = link.send(now_ns, 1514).restarts_at_ns;
        }
        // The bucket is empty now, and full again 12.112 ms later.
        let later_ns = now_ns + 12_112_000;
        assert_eq!(
            link.send(later_ns, 3028),
            Sent { end_ns: later_ns + 2_422_400, restarts_at_ns: later_ns + 2_422_400 }
        );
    }

    #[test]
    fn its_rates_are_the_boosts_the_links_and_the_boosts_again() {
        let mut link = link();
        let first = link.send(0, 1514);
        let second = link.send(first.restarts_at_ns, 1514);
        let third = link.send(second.restarts_at_ns, 1514);
        assert_eq!(third.end_ns, 3_633_600);
        let rates: Vec<_> = link.take_rates(10_000_000).map(|step| (step.from_ns, step.bits_per_second)).collect();
        // The bucket is out of debt at 6.056 ms, and a tenth of it, 302.8 bytes, arrives in 1.2112 ms.
        assert_eq!(rates, [(0, 10_000_000), (3_633_600, 2_000_000), (7_267_200, 10_000_000)]);
    }
}
