//! BBR's second phase: it drains the queue that startup built up, in about a round trip.

use super::{Bbr, Phase};
use crate::transport::congestion::helpers::bandwidth::Gain;
use crate::transport::congestion::{Context, Window};

/// 1/2.885, the inverse of startup's gain.
pub(super) const PACING_GAIN: Gain = Gain::of(1000, 2885);

impl Bbr {
    /// Begins when the pipe is full, and ends when no more is in flight than the path holds (`bbr_check_drain`).
    pub(super) fn check_drained(&mut self, window: &mut Window, context: &Context) {
        if self.phase == Phase::Startup && self.full_pipe.is_reached() {
            self.phase = Phase::Drain;
            // BBR itself does not use a threshold, but it is visible from outside.
            window.ssthresh = self.in_flight_of(Gain::ONE, window, context.mss_bytes);
        }
        if self.phase == Phase::Drain
            && self.in_network_at_next_send(context.in_flight, window, context)
                <= self.in_flight_of(Gain::ONE, window, context.mss_bytes)
        {
            self.enter_probe_bw(context);
        }
    }
}
