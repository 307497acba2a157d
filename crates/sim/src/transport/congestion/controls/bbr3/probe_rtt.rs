//! ProbeRTT: if BBR has not seen a round trip as short as the shortest known one for 5 s, it keeps half as much in
//! flight for 200 ms. Its queue and those of other BBR flows drain, so it can measure the path's true round-trip time
//! (section 5.3.4).

use super::probe_bw::Acks;
use super::window::MIN_WINDOW_PACKETS;
use super::{Bbr3, Phase, Sample};
use crate::transport::congestion::helpers::bandwidth::Gain;
use crate::transport::congestion::{Ack, Context, Window};

/// BBR.ProbeRTTCwndGain
pub(super) const CWND_GAIN: Gain = Gain::of(1, 2);
/// The minimum round-trip time is probed this often (BBR.ProbeRTTInterval), and valid for this long
/// (BBR.MinRTTFilterLen).
const INTERVAL_NS: u64 = 5_000_000_000;
const MIN_RTT_WINDOW_NS: u64 = 10_000_000_000;
/// Less is in flight for this long (BBR.ProbeRTTDuration), and for at least one round trip.
const PROBE_RTT_NS: u64 = 200_000_000;

/// The state of ProbeRTT.
#[derive(Debug, Default)]
pub(super) struct Dip {
    /// Smallest round-trip time of the last 5 s, and when it was measured.
    shortest_ns: Option<u64>,
    shortest_at_ns: u64,
    /// That measurement is too old.
    expired: bool,
    /// When the smallest round-trip time of the last 10 s was measured.
    min_rtt_at_ns: u64,
    /// When ProbeRTT may end; `None` while there is still too much in flight.
    until_ns: Option<u64>,
    /// A round trip has passed.
    round_done: bool,
}

impl Dip {
    /// The handshake has measured a first round trip.
    pub(super) fn begin(&mut self, context: &Context) {
        self.shortest_ns = context.min_rtt_ns;
        (self.shortest_at_ns, self.min_rtt_at_ns) = (context.now_ns, context.now_ns);
    }
}

impl Bbr3 {
    /// UpdateMinRTT. A round trip that the receiver may have prolonged does not replace an older one, as in Google's
    /// implementation.
    pub(super) fn update_min_rtt(&mut self, context: &Context, ack: &Ack) {
        let (now_ns, dip) = (context.now_ns, &mut self.dip);
        dip.expired = now_ns > dip.shortest_at_ns + INTERVAL_NS;
        if let Some(rtt_ns) = ack.rtt_ns {
            let shorter = dip.shortest_ns.is_none_or(|shortest_ns| rtt_ns < shortest_ns);
            if shorter || (dip.expired && !ack.may_be_delayed) {
                (dip.shortest_ns, dip.shortest_at_ns) = (Some(rtt_ns), now_ns);
            }
        }
        let min_rtt_expired = now_ns > dip.min_rtt_at_ns + MIN_RTT_WINDOW_NS;
        let Some(shortest_ns) = dip.shortest_ns else { return };
        if min_rtt_expired || self.path.min_rtt_ns.is_none_or(|min_ns| shortest_ns < min_ns) {
            self.path.min_rtt_ns = Some(shortest_ns);
            dip.min_rtt_at_ns = dip.shortest_at_ns;
        }
    }

    /// CheckProbeRTT
    pub(super) fn check_probe_rtt(&mut self, window: &mut Window, context: &Context, sample: &Sample) {
        if self.phase != Phase::ProbeRtt && self.dip.expired && !self.idle_restart {
            self.phase = Phase::ProbeRtt;
            self.save_window(window.cwnd, context);
            self.dip.until_ns = None;
            self.probe.acks = Acks::Stopping;
            self.path.restart_round(context);
        }
        if self.phase == Phase::ProbeRtt {
            self.dip(window, context);
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// HandleProbeRTT
    fn dip(&mut self, window: &mut Window, context: &Context) {
        // The delivery rate with so little in flight says nothing about the path.
        window.mark_app_limited = true;
        if self.dip.until_ns.is_none() {
            if context.in_flight <= self.dip_window() {
                self.dip.until_ns = Some(context.now_ns + PROBE_RTT_NS);
                self.dip.round_done = false;
                self.path.restart_round(context);
            }
            return;
        }
        self.dip.round_done |= self.path.round_begins;
        if self.dip.round_done {
            self.end_dip_if_over(window, context);
        }
    }

    /// ProbeRTTCwnd
    pub(super) fn dip_window(&self) -> u32 {
        self.product(CWND_GAIN).max(MIN_WINDOW_PACKETS)
    }

    /// CheckProbeRTTDone, ExitProbeRTT
    pub(super) fn end_dip_if_over(&mut self, window: &mut Window, context: &Context) {
        if self.dip.until_ns.is_none_or(|until_ns| context.now_ns <= until_ns) {
            return;
        }
        self.dip.shortest_at_ns = context.now_ns;
        window.cwnd = self.saved.restored(window.cwnd);
        self.short.lift_bounds();
        if self.full.is_reached() {
            // Refilling the pipe may cause losses, so the next probe waits its full time. There is nothing to drain.
            self.start_down(context);
            self.phase = Phase::Cruise;
        } else {
            self.phase = Phase::Startup;
        }
    }
}
