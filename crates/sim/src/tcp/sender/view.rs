//! The views of a sender's state that others get: the records, the congestion control, and loss detection.

use super::super::journal::Windows;
use super::super::sample::Sample;
use super::super::thresholds::Ending;
use super::loss::rack;
use super::{Sender, State};
use crate::transport::congestion::{Context, UNPACED};

impl Sender {
    /// A snapshot.
    pub(crate) fn sample(&self, now_ns: u64) -> Sample {
        let window = self.cc.window();
        let Windows { cwnd_bytes, ssthresh_bytes } = self.windows();
        let [free_ns, rwnd_limited_ns, sndbuf_limited_ns] = self.chronograph.times_ns(now_ns);
        Sample {
            cwnd_bytes,
            ssthresh_bytes,
            inflight_bytes: self.bytes(self.board.in_flight()),
            srtt_ns: self.rtt.srtt_ns(),
            min_rtt_ns: self.rtt.min_ns(),
            rwnd_bytes: self.peer.bytes,
            pacing_bps: (self.pacer.is_enabled() && window.pacing_bytes_per_s != UNPACED)
                .then(|| window.pacing_bytes_per_s.saturating_mul(8)),
            delivery_rate_bps: self.delivery.rate_bps(self.mss_bytes),
            app_limited: self.delivery.rate_is_app_limited(),
            delivered_bytes: self.acked_bytes(),
            retransmits: self.retransmits,
            lost: u64::from(self.board.lost()),
            reordering: self.rack.reordering_packets(),
            delivered: self.delivery.delivered(),
            delivered_ce: self.delivery.delivered_ce(),
            notsent_bytes: self.unsent_bytes(),
            busy_ns: free_ns + rwnd_limited_ns + sndbuf_limited_ns,
            rwnd_limited_ns,
            sndbuf_limited_ns,
            state: self.recovery.state(),
        }
    }

    /// The window and its threshold.
    #[inline]
    pub(super) fn windows(&self) -> Windows {
        let window = self.cc.window();
        Windows {
            cwnd_bytes: self.bytes(window.cwnd),
            ssthresh_bytes: (window.ssthresh != u32::MAX).then(|| self.bytes(window.ssthresh)),
        }
    }

    fn bytes(&self, packets: u32) -> u64 {
        u64::from(packets) * u64::from(self.mss_bytes)
    }

    /// The state to remember now that the connection has ended.
    pub(crate) fn ending(&self) -> Ending {
        let window = self.cc.window();
        Ending { cwnd: window.cwnd, ssthresh: window.ssthresh, is_open: self.recovery.state() == State::Open }
    }

    /// The state for the congestion control.
    #[inline]
    pub(super) fn context(&self, now_ns: u64) -> Context {
        Context {
            now_ns,
            mss_bytes: self.mss_bytes,
            acked_bytes: self.una,
            sent_bytes: self.nxt,
            in_flight: self.board.in_flight(),
            packets_out: self.board.packets_out(),
            delivered: self.delivery.delivered(),
            delivered_ce: self.delivery.delivered_ce(),
            delivered_ns: self.delivery.delivered_ns(),
            lost: self.board.lost_total(),
            srtt_ns: self.rtt.srtt_ns(),
            min_rtt_ns: self.rtt.min_ns(),
            state: self.recovery.state(),
            cwnd_limited: self.is_cwnd_limited(),
            window_full: self.usage.is_full(),
            app_limited: self.delivery.is_app_limited(),
            paced: self.pacer.is_enabled(),
            pacing_percent: self.pacing_percent,
            next_send_ns: self.pacer.next_ns(),
            last_sent_ns: self.last_sent_ns,
        }
    }

    /// The state for the search for losses.
    pub(super) fn situation(&self, now_ns: u64) -> rack::Situation {
        rack::Situation {
            now_ns,
            min_rtt_ns: self.min_rtt_ns(),
            srtt_ns: self.rtt.srtt_ns().unwrap_or(0),
            recovering: self.recovery.state() >= State::Recovery,
        }
    }
}
