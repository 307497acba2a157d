//! Drain: sends the queue that startup built up, in about a round trip (section 5.3.2).

use super::{Bbr3, Phase};
use crate::transport::congestion::helpers::bandwidth::Gain;
use crate::transport::congestion::{Context, Window};

/// BBR.DrainPacingGain
pub(super) const PACING_GAIN: Gain = Gain::of(1, 2);
/// Drain always ends after this many rounds: the bandwidth was then overestimated.
const MAX_ROUNDS: u64 = 3;

impl Bbr3 {
    /// EnterDrain
    pub(super) fn enter_drain(&mut self, window: &mut Window, context: &Context) {
        self.phase = Phase::Drain;
        self.drain_began = self.path.round();
        self.path.remember_aggregation();
        // As in Google's implementation: BBR itself does not use a threshold, but it is visible from outside. And
        // startup's losses are no reason to send less from now on.
        window.ssthresh = self.in_flight_for(self.path.max_bandwidth(), window, context.mss_bytes);
        self.short.forget_signals();
    }

    /// CheckDrainDone
    pub(super) fn check_drained(&mut self, window: &Window, context: &Context) {
        if self.phase == Phase::Drain
            && (context.in_flight <= self.in_flight_for(self.bandwidth(), window, context.mss_bytes)
                || self.path.round() > self.drain_began + MAX_ROUNDS)
        {
            self.start_down(context);
        }
    }
}
