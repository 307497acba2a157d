//! The window: a multiple of the bandwidth-delay product, within the bounds that losses set (section 5.6.4).

use super::{Bbr3, Phase};
use crate::transport::congestion::State;
use crate::transport::congestion::helpers::bandwidth::Gain;
use crate::transport::congestion::{Context, Window};

/// BBR.DefaultCwndGain, and the gain while probing up.
pub(super) const GAIN: Gain = Gain::of(2, 1);
pub(super) const UP_GAIN: Gain = Gain::of(9, 4);
/// At least this many are in flight: two for each end, as every other packet is acknowledged (BBR.MinPipeCwnd).
pub(super) const MIN_WINDOW_PACKETS: u32 = 4;

/// The last window that neither a recovery nor ProbeRTT had cut (BBR.prior_cwnd).
#[derive(Debug, Default)]
pub(super) struct Saved {
    cwnd: u32,
}

impl Saved {
    /// RestoreCwnd
    pub(super) fn restored(&self, cwnd: u32) -> u32 {
        cwnd.max(self.cwnd)
    }
}

impl Bbr3 {
    /// SaveCwnd
    pub(super) fn save_window(&mut self, cwnd: u32, context: &Context) {
        let is_good = context.state < State::Recovery && self.phase != Phase::ProbeRtt;
        self.saved.cwnd = if is_good { cwnd } else { self.saved.cwnd.max(cwnd) };
    }

    /// SetCwnd; an acknowledgement of nothing new can only lower the bounds.
    pub(super) fn update_window(&mut self, window: &mut Window, context: &Context, acked: u32) {
        if acked > 0 {
            window.cwnd = self.approach_target(window, context, acked);
        }
        if self.phase == Phase::ProbeRtt {
            window.cwnd = window.cwnd.min(self.dip_window());
        }
        window.cwnd = window.cwnd.min(self.bound());
    }

    /// Grows by what was acknowledged, up to the target; shrinks to the target at once if the pipe was ever full.
    fn approach_target(&self, window: &Window, context: &Context, acked: u32) -> u32 {
        let target = self.max_in_flight(window, context.mss_bytes);
        let cwnd = if self.full.is_reached() {
            (window.cwnd + acked).min(target)
        } else if window.cwnd < target || context.delivered < u64::from(self.path.initial_window) {
            window.cwnd + acked
        } else {
            window.cwnd
        };
        cwnd.max(MIN_WINDOW_PACKETS)
    }

    /// BoundCwndForModel
    fn bound(&self) -> u32 {
        let long = match self.phase {
            Phase::Down | Phase::Refill | Phase::Up => self.long.in_flight,
            Phase::Cruise | Phase::ProbeRtt => self.long.with_headroom(),
            Phase::Startup | Phase::Drain => u32::MAX,
        };
        long.min(self.short.in_flight).max(MIN_WINDOW_PACKETS)
    }
}
