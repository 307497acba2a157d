//! Derives BBR's pacing rate from its bandwidth. Until the bandwidth is known, the rate is estimated from the initial
//! window (`bbr_init_pacing_rate_from_rtt`, `bbr_set_pacing_rate`; draft-ietf-ccwg-bbr-06, section 5.6.2).

use super::bandwidth::{Bandwidth, Gain};
use crate::transport::congestion::{Context, Window};

/// The round trip assumed until one is measured.
const NOMINAL_RTT_NS: u64 = 1_000_000;

/// Sets the pacing rate of a connection.
#[derive(Debug)]
pub(crate) struct PacingRate {
    startup_gain: Gain,
    /// The estimate is based on a measured round trip (`has_seen_rtt`).
    has_seen_rtt: bool,
}

impl PacingRate {
    /// For a control whose startup has this gain.
    pub(crate) fn new(startup_gain: Gain) -> Self {
        Self { startup_gain, has_seen_rtt: false }
    }

    /// The first rate: startup's gain times one window per round trip.
    pub(crate) fn begin(&mut self, window: &mut Window, context: &Context) {
        self.has_seen_rtt = context.srtt_ns.is_some();
        let rtt_ns = context.srtt_ns.unwrap_or(NOMINAL_RTT_NS).max(1_000);
        if let Some(bandwidth) = Bandwidth::of(u64::from(window.cwnd), rtt_ns) {
            window.pacing_bytes_per_s = bandwidth.pacing_bytes_per_s(self.startup_gain, context.mss_bytes);
        }
    }

    /// Sets the rate to `gain` times `bandwidth`. Until the pipe has been full once, the rate only rises, because
    /// samples are small when little was sent.
    pub(crate) fn update(
        &mut self,
        window: &mut Window,
        context: &Context,
        (bandwidth, gain): (Bandwidth, Gain),
        full_pipe: bool,
    ) {
        if !self.has_seen_rtt && context.srtt_ns.is_some() {
            self.begin(window, context);
        }
        let rate = bandwidth.pacing_bytes_per_s(gain, context.mss_bytes);
        if full_pipe || rate > window.pacing_bytes_per_s {
            window.pacing_bytes_per_s = rate;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn without_a_measured_round_trip_it_is_one_millisecond() {
        let (mut rate, mut window) = (PacingRate::new(Gain::ONE), Window::new(10));
        rate.begin(&mut window, &Context::EMPTY);
        // 10 packets in 1 ms: 10 * 2^24 / 1000 = 167772; 167772 * 1448 * 0.99 * 10^6 / 2^24 = 14335186.
        assert_eq!(window.pacing_bytes_per_s, 14_335_186);
        // The first measurement replaces it: 10 packets in 100 ms, 1677 units.
        let context = Context { srtt_ns: Some(100 * MS), ..Context::EMPTY };
        rate.update(&mut window, &context, (Bandwidth::ZERO, Gain::ONE), false);
        assert_eq!(window.pacing_bytes_per_s, 143_290);
    }

    #[test]
    fn the_rate_falls_only_once_the_pipe_was_full() {
        let (mut rate, mut window) = (PacingRate::new(Gain::ONE), Window::new(10));
        let context = Context { srtt_ns: Some(10 * MS), ..Context::EMPTY };
        rate.begin(&mut window, &context);
        let (first, slow) = (window.pacing_bytes_per_s, Bandwidth::of(100, 1_000 * MS).unwrap());
        rate.update(&mut window, &context, (slow, Gain::ONE), false);
        assert_eq!(window.pacing_bytes_per_s, first);
        rate.update(&mut window, &context, (slow, Gain::ONE), true);
        assert!(window.pacing_bytes_per_s < first / 9);
    }
}
