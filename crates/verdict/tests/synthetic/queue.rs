//! A queue that varies as those of congestion controls do. Times and delays are in milliseconds.

use super::random::Random;

/// How much a queue varies within 100 ms, as a part of its longest delay.
const NOISE: f64 = 0.15;

/// A queue that the load fills: from 0 to `most_ms` in `fill_ms`, then a sawtooth between `low` x `most_ms` and `most_ms`.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    /// The link from the client, from 1 on; 0 is the sender's queueing discipline.
    pub(crate) link: usize,
    pub(crate) most_ms: f64,
    low: f64,
    fill_ms: f64,
    period_ms: f64,
    phase: f64,
}

impl Queue {
    pub(crate) fn random(random: &mut Random, link: usize, most_ms: f64, fill_ms: f64) -> Self {
        let period_ms = random.magnitude(500.0, 6000.0).max(4.0 * most_ms);
        Self { link, most_ms, low: random.within(0.3, 0.9), fill_ms, period_ms, phase: random.unit() }
    }

    /// The delay at a time of a load from `start` to `end`.
    pub(crate) fn delay(&self, t: f64, start: f64, end: f64) -> f64 {
        let filled = |t: f64| {
            let since = t - start;
            if since < self.fill_ms {
                return self.most_ms * since / self.fill_ms;
            }
            let part = ((since - self.fill_ms) / self.period_ms + self.phase).fract();
            (self.most_ms * (self.low + (1.0 - self.low) * part + self.noise(t))).max(0.0)
        };
        if t < start {
            0.0
        } else if t <= end {
            filled(t)
        } else {
            // It drains as fast as the link sends.
            (filled(end) - (t - end)).max(0.0)
        }
    }

    /// Bursts of several flows: random from 100 ms to 100 ms, and linear in between.
    fn noise(&self, t: f64) -> f64 {
        let at = |tenth: f64| Random::new(tenth as u64 + (self.phase * 1e9) as u64).within(-NOISE, NOISE);
        let (tenth, part) = ((t / 100.0).floor(), (t / 100.0).fract());
        at(tenth) * (1.0 - part) + at(tenth + 1.0) * part
    }

    /// The median when it has filled.
    pub(crate) fn median(&self) -> f64 {
        self.most_ms * (1.0 + self.low) / 2.0
    }
}
