//! A link whose rate is a random walk: its logarithm is a normal process with an exponential autocorrelation, sampled at equal steps
//! (an autoregressive process of order one). Shadowing of radio links is described so (Gudmundson, "Correlation model for
//! shadow fading in mobile radio systems", 1991); here it is the rate that has such a distribution. In outages, which come and go
//! independently, the rate is zero.
//!
//! The bits of a frame are sent at the rates that apply meanwhile, unlike those of a link whose rate follows a schedule: a
//! frame that begins in an outage ends soon after it, and not only after a time at the rate of its first bit.

use std::collections::VecDeque;

use bufferscope_programs::Uniform;
use bufferscope_scenario::{self as scenario, RateStep};

use super::{BITS_PER_BYTE, NS_PER_S};
use crate::random::Random;

/// A link with such a rate.
#[derive(Debug)]
pub(super) struct Walking {
    walk: Walk,
    now: Segment,
    /// The rounding error so far in this busy period, in billionths of a bit.
    credit: u128,
    rates: VecDeque<RateStep>,
    recorded_bps: u64,
}

/// A period with a constant rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    until_ns: u64,
    bits_per_second: u64,
}

impl Walking {
    pub(super) fn new(parameters: &scenario::Walk, random: Random) -> Self {
        let mut walk = Walk::new(parameters, random);
        let now = walk.next();
        let rates = VecDeque::from([RateStep { from_ns: 0, bits_per_second: now.bits_per_second }]);
        Self { walk, now, credit: 0, rates, recorded_bps: now.bits_per_second }
    }

    /// When the last bit of a frame that begins now will have been sent. `idle` says that no frame ended just now.
    pub(super) fn send(&mut self, now_ns: u64, bytes: u32, idle: bool) -> u64 {
        self.advance(now_ns);
        let mut owed = u128::from(u64::from(bytes) * BITS_PER_BYTE * NS_PER_S);
        owed = owed.saturating_sub(if idle { 0 } else { self.credit });
        let mut from_ns = now_ns;
        loop {
            let rate = u128::from(self.now.bits_per_second);
            let possible = u128::from(self.now.until_ns - from_ns) * rate;
            if owed <= possible {
                let ns = if rate == 0 { 0 } else { owed.div_ceil(rate) };
                self.credit = ns * rate - owed;
                return from_ns + ns as u64;
            }
            owed -= possible;
            from_ns = self.now.until_ns;
            self.step();
        }
    }

    /// The rate at a time that is not before the last recorded one.
    pub(super) fn rate_bps(&self, now_ns: u64) -> u64 {
        let begun = self.rates.iter().take_while(|step| step.from_ns <= now_ns).last();
        begun.map_or(self.recorded_bps, |step| step.bits_per_second)
    }

    /// The steps of the rate up to `now_ns` that were not yet taken.
    pub(super) fn take_rates(&mut self, now_ns: u64) -> impl Iterator<Item = RateStep> {
        self.advance(now_ns);
        self.recorded_bps = self.rate_bps(now_ns);
        let begun = self.rates.partition_point(|step| step.from_ns <= now_ns);
        self.rates.drain(..begun)
    }

    fn advance(&mut self, now_ns: u64) {
        while self.now.until_ns <= now_ns {
            self.step();
        }
    }

    fn step(&mut self) {
        let from_ns = self.now.until_ns;
        let before = std::mem::replace(&mut self.now, self.walk.next());
        if before.bits_per_second != self.now.bits_per_second {
            self.rates.push_back(RateStep { from_ns, bits_per_second: self.now.bits_per_second });
        }
    }
}

/// The random process.
#[derive(Debug)]
struct Walk {
    random: Random,
    /// The mean and the standard deviation of the rate's logarithm.
    log_mean: f64,
    log_deviation: f64,
    /// The correlation of the logarithms of two steps.
    correlation: f64,
    max_bps: u64,
    every_ns: u64,
    /// The normal process with mean 0 and variance 1, and when its value ends.
    value: f64,
    value_until_ns: u64,
    outages: Option<Outages>,
    /// The end of the last segment.
    at_ns: u64,
}

/// The state of a walk with outages.
#[derive(Debug)]
struct Outages {
    parameters: scenario::Outages,
    is_out: bool,
    until_ns: u64,
}

impl Walk {
    /// The process begins in its stationary distribution.
    fn new(parameters: &scenario::Walk, mut random: Random) -> Self {
        let [mean, deviation] = [parameters.mean_bps, parameters.deviation_bps].map(|bps| bps as f64);
        // Of a log-normal distribution with these moments.
        let log_variance = (deviation / mean).powi(2).ln_1p();
        let value = normal(&mut random);
        let outages = parameters.outages.map(|parameters| {
            let [up, down] = [parameters.every_ns, parameters.lasts_ns].map(|ns| ns as f64);
            let is_out = uniform(&mut random) * (up + down) < down;
            let mut outages = Outages { parameters, is_out, until_ns: 0 };
            outages.until_ns = outages.length_ns(&mut random);
            outages
        });
        Self {
            random,
            log_mean: mean.ln() - log_variance / 2.0,
            log_deviation: log_variance.sqrt(),
            correlation: (-(parameters.every_ns as f64) / parameters.coherence_ns as f64).exp(),
            max_bps: parameters.max_bps,
            every_ns: parameters.every_ns,
            value,
            value_until_ns: parameters.every_ns,
            outages,
            at_ns: 0,
        }
    }

    /// The next segment, which is not empty.
    fn next(&mut self) -> Segment {
        if self.value_until_ns <= self.at_ns {
            let fresh = (1.0 - self.correlation.powi(2)).sqrt();
            self.value = self.correlation * self.value + fresh * normal(&mut self.random);
            self.value_until_ns += self.every_ns;
        }
        let Self { outages, random, at_ns, .. } = self;
        if let Some(outages) = outages.as_mut().filter(|outages| outages.until_ns <= *at_ns) {
            outages.is_out = !outages.is_out;
            outages.until_ns = *at_ns + outages.length_ns(random);
        }
        let (is_out, outage_ns) = self.outages.as_ref().map_or((false, u64::MAX), |out| (out.is_out, out.until_ns));
        self.at_ns = self.value_until_ns.min(outage_ns);
        let bits_per_second = if is_out { 0 } else { self.rate_bps() };
        Segment { until_ns: self.at_ns, bits_per_second }
    }

    fn rate_bps(&self) -> u64 {
        let rate = (self.log_mean + self.log_deviation * self.value).exp();
        (rate.round() as u64).clamp(1, self.max_bps)
    }
}

impl Outages {
    /// How long the outage lasts, or the time until the next.
    fn length_ns(&self, random: &mut Random) -> u64 {
        let mean_ns = if self.is_out { self.parameters.lasts_ns } else { self.parameters.every_ns };
        // With 64 random bits, the result is at most 45 times the mean.
        (mean_ns as f64 * -(1.0 - uniform(random)).ln()).round().max(1.0) as u64
    }
}

/// In `[0, 1)`.
fn uniform(random: &mut Random) -> f64 {
    (random.bits() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A number with mean 0 and variance 1 (Box and Muller, 1958).
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - uniform(random)).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(random)).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    const SECOND: u64 = 1_000_000_000;
    const MS: u64 = 1_000_000;

    fn parameters(outages: Option<scenario::Outages>) -> scenario::Walk {
        scenario::Walk {
            preset: None,
            mean_bps: 2_000_000,
            deviation_bps: 1_000_000,
            coherence_ns: SECOND,
            every_ns: 100 * MS,
            max_bps: 400_000_000_000,
            outages,
        }
    }

    fn random(seed: u64) -> Random {
        Random::new(seed, Stream::Link(0))
    }

    /// The rates of whole steps.
    fn rates(parameters: &scenario::Walk, steps: usize, seed: u64) -> Vec<f64> {
        let mut walk = Walk::new(parameters, random(seed));
        (0..steps).map(|_| walk.next().bits_per_second as f64).collect()
    }

    fn mean(numbers: impl ExactSizeIterator<Item = f64>) -> f64 {
        let count = numbers.len() as f64;
        numbers.sum::<f64>() / count
    }

    /// 200,000 steps are 20,000 s, about 10,000 independent ones (twice the coherence of 1 s each): the standard error of the mean is
    /// 1 % of the deviation, that of the variance about three times as large, because a log-normal distribution has a long tail.
    #[test]
    fn its_moments_and_its_coherence_are_those_that_were_asked_for() {
        let rates = rates(&parameters(None), 200_000, 1);
        let average = mean(rates.iter().copied());
        let deviation = mean(rates.iter().map(|rate| (rate - average).powi(2))).sqrt();
        assert!((average / 2e6 - 1.0).abs() < 0.03, "{average}");
        assert!((deviation / 1e6 - 1.0).abs() < 0.09, "{deviation}");
        let logs: Vec<f64> = rates.iter().map(|rate| rate.ln()).collect();
        let log_mean = mean(logs.iter().copied());
        let variance = mean(logs.iter().map(|log| (log - log_mean).powi(2)));
        let covariance = mean(logs.windows(11).map(|pair| (pair[0] - log_mean) * (pair[10] - log_mean)));
        assert!((covariance / variance - (-1.0_f64).exp()).abs() < 0.03, "{}", covariance / variance);
    }

    #[test]
    fn the_rate_is_never_above_its_bound() {
        let bounded = scenario::Walk { max_bps: 2_100_000, ..parameters(None) };
        let rates = rates(&bounded, 10_000, 1);
        assert!(rates.iter().all(|rate| *rate <= 2_100_000.0));
        assert!(rates.contains(&2_100_000.0), "the bound is reached");
    }

    /// Of 30,000 s, 1/11 are outages of 1 s on average: about 2700 of them, so that the standard error of their mean is 2 %.
    #[test]
    fn outages_have_the_share_and_the_length_that_were_asked_for() {
        let mut walk =
            Walk::new(&parameters(Some(scenario::Outages { every_ns: 10 * SECOND, lasts_ns: SECOND })), random(1));
        let (mut out_ns, mut count, mut was_out) = (0, 0, false);
        while walk.at_ns < 30_000 * SECOND {
            let from_ns = walk.at_ns;
            let segment = walk.next();
            let is_out = segment.bits_per_second == 0;
            count += u64::from(is_out && !was_out);
            out_ns += if is_out { segment.until_ns - from_ns } else { 0 };
            was_out = is_out;
        }
        let length_s = out_ns as f64 / SECOND as f64 / count as f64;
        assert!((length_s - 1.0).abs() < 0.06, "{length_s}");
        let share = out_ns as f64 / (30_000 * SECOND) as f64;
        assert!((share * 11.0 - 1.0).abs() < 0.08, "{share}");
    }

    /// A frame of 1500 bytes has 12,000 bits. Each of these segments lasts 1 ms.
    #[test]
    fn a_frame_is_sent_at_the_rates_that_apply_meanwhile() {
        let mut link = Walking::new(&parameters(None), random(1));
        let first = link.now;
        let end_ns = link.send(0, 1500, true);
        assert_eq!(u128::from(end_ns), 12_000_u128 * u128::from(SECOND) / u128::from(first.bits_per_second) + 1);
        // A frame that lasts for several segments: the bits of all of them together are its own.
        let bytes = 100_000;
        let mut link = Walking::new(&parameters(None), random(1));
        let end_ns = link.send(0, bytes, true);
        let steps: Vec<RateStep> = link.take_rates(end_ns).collect();
        assert!(steps.len() > 2, "{steps:?}");
        let ends = steps.iter().skip(1).map(|step| step.from_ns).chain([end_ns]);
        let sent: u128 = steps
            .iter()
            .zip(ends)
            .map(|(step, until_ns)| u128::from(until_ns - step.from_ns) * u128::from(step.bits_per_second))
            .sum();
        let owed = u128::from(bytes) * 8 * u128::from(SECOND);
        assert!(sent >= owed && sent - owed < u128::from(steps.last().unwrap().bits_per_second), "{sent} of {owed}");
    }

    #[test]
    fn nothing_is_sent_in_an_outage() {
        let mut link =
            Walking::new(&parameters(Some(scenario::Outages { every_ns: SECOND, lasts_ns: SECOND })), random(3));
        let (mut now_ns, mut last_before) = (0, None);
        while now_ns < 100 * SECOND {
            let end_ns = link.send(now_ns, 1500, true);
            let steps: Vec<RateStep> = link.take_rates(end_ns).collect();
            let last = steps.iter().rfind(|step| step.from_ns < end_ns).copied().or(last_before).unwrap();
            assert!(last.bits_per_second > 0, "sent at {end_ns}");
            last_before = steps.last().copied().or(last_before);
            now_ns = end_ns;
        }
    }
}
