//! When a phase has lasted long enough.

use crate::time::{MS, SECOND};

/// No loaded phase is shorter, so that each hop has answered often enough.
pub const AT_LEAST_NS: u64 = 10 * SECOND;
/// The last part of a phase is compared with all before it.
const LAST_NS: u64 = 4 * SECOND;
/// The delay has levelled off if it grows by no more than this share and this much.
const GROWTH: f64 = 0.05;
const GROWTH_NS: f64 = MS as f64;
/// The upper envelope is this quantile: a sawtooth's peaks, but not a single late answer.
const ENVELOPE: f64 = 0.95;

/// Whether the upper envelope of the round trips has stopped to grow. `samples` are the phase's, as time since its
/// beginning and round trip, in order of time.
pub fn has_levelled(samples: &[(u64, u64)], elapsed_ns: u64) -> bool {
    if elapsed_ns < AT_LEAST_NS {
        return false;
    }
    let split = samples.partition_point(|(t_ns, _)| *t_ns + LAST_NS < elapsed_ns);
    let (before, last) = samples.split_at(split);
    match (envelope(before), envelope(last)) {
        (Some(before), Some(last)) => last <= before * (1.0 + GROWTH) + GROWTH_NS,
        // Without answers nothing has levelled off.
        _ => false,
    }
}

fn envelope(samples: &[(u64, u64)]) -> Option<f64> {
    let mut delays: Vec<u64> = samples.iter().map(|(_, rtt_ns)| *rtt_ns).collect();
    let at = (delays.len().checked_sub(1)? as f64 * ENVELOPE) as usize;
    Some(*delays.select_nth_unstable(at).1 as f64)
}

/// Decides how many connections a load needs.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    rate_bps: f64,
    next_ns: u64,
}

/// Connections are added as long as they make the load this much faster.
const FASTER: f64 = 1.05;
/// The first decision: slow start is over on most paths.
const FIRST_NS: u64 = 3 * SECOND;
/// Time that new connections get to grow.
const TRIAL_NS: u64 = 2 * SECOND;

impl Default for Growth {
    fn default() -> Self {
        Self { rate_bps: 0.0, next_ns: FIRST_NS }
    }
}

impl Growth {
    /// Whether connections shall be added now, from the rate of the last second.
    pub fn is_wanted(&mut self, elapsed_ns: u64, rate_bps: f64) -> bool {
        if elapsed_ns < self.next_ns {
            return false;
        }
        let is_faster = rate_bps > self.rate_bps * FASTER;
        self.next_ns = if is_faster { elapsed_ns + TRIAL_NS } else { u64::MAX };
        self.rate_bps = rate_bps;
        is_faster
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(seconds: u64, rtt_ms: impl Fn(f64) -> f64) -> Vec<(u64, u64)> {
        (0..seconds * 50).map(|n| (n * 20 * MS, (rtt_ms(n as f64 / 50.0) * MS as f64) as u64)).collect()
    }

    #[test]
    fn a_constant_delay_and_a_sawtooth_have_levelled_after_ten_seconds() {
        for rtt_ms in [|_| 30.0, |t: f64| 20.0 + 50.0 * (t % 3.0)] as [fn(f64) -> f64; 2] {
            let samples = samples(10, rtt_ms);
            assert!(has_levelled(&samples, 10 * SECOND));
            assert!(!has_levelled(&samples, 9 * SECOND), "too short");
        }
    }

    #[test]
    fn a_queue_that_still_grows_has_not() {
        assert!(!has_levelled(&samples(10, |t| 20.0 + 100.0 * t), 10 * SECOND));
        assert!(!has_levelled(&samples(25, |t| 20.0 + 100.0 * t), 25 * SECOND));
        assert!(!has_levelled(&[], 20 * SECOND));
    }

    #[test]
    fn connections_are_added_until_they_no_longer_help() {
        let mut growth = Growth::default();
        assert!(!growth.is_wanted(SECOND, 1e6));
        assert!(growth.is_wanted(3 * SECOND, 10e6), "the first rate is faster than none");
        assert!(!growth.is_wanted(4 * SECOND, 20e6), "too early");
        assert!(growth.is_wanted(5 * SECOND, 20e6));
        assert!(!growth.is_wanted(7 * SECOND, 20.5e6));
        assert!(!growth.is_wanted(20 * SECOND, 90e6), "decided");
    }
}
