//! ProbeRTT: if BBR has not seen a round trip as short as the shortest known one for 10 s, it keeps next to nothing in
//! flight for 200 ms. Its queue and those of other BBR flows drain, so it can measure the path's true round-trip time.

use super::window::MIN_WINDOW_PACKETS;
use super::{Bbr, Phase};
use crate::transport::congestion::{Ack, Context, Window};

/// The minimum round-trip time is valid for this long (`bbr_min_rtt_win_sec`).
const MIN_RTT_WINDOW_NS: u64 = 10_000_000_000;
/// Little is in flight for this long (`bbr_probe_rtt_mode_ms`), and for at least one round trip.
const PROBE_RTT_NS: u64 = 200_000_000;

/// The state of ProbeRTT.
#[derive(Debug, Default)]
pub(super) struct Dip {
    /// When it may end; `None` while there is still too much in flight.
    until_ns: Option<u64>,
    /// A round trip has passed.
    round_done: bool,
}

impl Bbr {
    /// `bbr_update_min_rtt`
    pub(super) fn update_min_rtt(&mut self, window: &mut Window, context: &Context, ack: &Ack) {
        let expired = context.now_ns > self.path.min_rtt_at_ns + MIN_RTT_WINDOW_NS;
        if let Some(rtt_ns) = ack.rtt_ns {
            let shorter = self.path.min_rtt_ns.is_none_or(|min_ns| rtt_ns < min_ns);
            if shorter || (expired && !ack.may_be_delayed) {
                (self.path.min_rtt_ns, self.path.min_rtt_at_ns) = (Some(rtt_ns), context.now_ns);
            }
        }
        if expired && !self.idle_restart && self.phase != Phase::ProbeRtt {
            self.phase = Phase::ProbeRtt;
            self.save_window(window.cwnd);
            self.dip.until_ns = None;
        }
        if self.phase == Phase::ProbeRtt {
            self.dip(window, context);
        }
        if ack.rate.is_some_and(|sample| sample.delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn dip(&mut self, window: &mut Window, context: &Context) {
        // The delivery rate with so little in flight says nothing about the path.
        window.mark_app_limited = true;
        if self.dip.until_ns.is_none() {
            if context.in_flight <= MIN_WINDOW_PACKETS {
                self.dip = Dip { until_ns: Some(context.now_ns + PROBE_RTT_NS), round_done: false };
                self.path.restart_round(context);
            }
            return;
        }
        self.dip.round_done |= self.path.round_begins;
        if self.dip.round_done {
            self.end_dip_if_over(window, context);
        }
    }

    /// `bbr_check_probe_rtt_done`
    pub(super) fn end_dip_if_over(&mut self, window: &mut Window, context: &Context) {
        if self.dip.until_ns.is_some_and(|until_ns| context.now_ns > until_ns) {
            self.path.min_rtt_at_ns = context.now_ns;
            window.cwnd = window.cwnd.max(self.saved.cwnd);
            self.resume(context);
        }
    }
}
