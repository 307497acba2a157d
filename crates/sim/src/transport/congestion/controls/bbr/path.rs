//! BBR's model of the path: its delivery rate, its minimum round-trip time, its aggregation of acknowledgements; and
//! the window that follows from them.

use super::burst::burst_packets;
use super::{Bbr, Phase};
use crate::transport::congestion::helpers::aggregation::AckEpoch;
use crate::transport::congestion::helpers::bandwidth::{Bandwidth, Gain};
use crate::transport::congestion::helpers::rounds::DeliveryRounds;
use crate::transport::congestion::{Ack, Context, Window};
use crate::transport::extremes::MaxFilter;

/// The bandwidth is the maximum over this many round trips: a cycle and two more (`bbr_bw_rtts`).
const BANDWIDTH_WINDOW_ROUNDS: u64 = 10;
/// The window before the first measurement of the round trip (`TCP_INIT_CWND`).
const BLIND_WINDOW_PACKETS: u32 = 10;
/// The largest excess is kept for at least this many round trips, and at most twice as many
/// (`bbr_extra_acked_win_rtts`).
const AGGREGATION_ROUNDS: u32 = 5;
/// For aggregation the window grows by at most what the path delivers in this time (`bbr_extra_acked_max_us`).
const AGGREGATION_MAX_NS: u64 = 100_000_000;

/// The model of the path.
#[derive(Debug)]
pub(super) struct Path {
    bandwidth: MaxFilter,
    rounds: DeliveryRounds,
    /// The current acknowledgement begins a round (`round_start`).
    pub(super) round_begins: bool,
    /// Smallest round-trip time of the last 10 s; `None` before the first.
    pub(super) min_rtt_ns: Option<u64>,
    /// When it was measured.
    pub(super) min_rtt_at_ns: u64,
    epoch: AckEpoch,
    /// Largest excess of the current period of round trips, and of the one before; which of them is the current one.
    excess: [u32; 2],
    excess_index: usize,
    excess_rounds: u32,
}

impl Path {
    /// A model before the first sample of the path.
    pub(super) fn new() -> Self {
        Self {
            bandwidth: MaxFilter::new(BANDWIDTH_WINDOW_ROUNDS),
            rounds: DeliveryRounds::default(),
            round_begins: false,
            min_rtt_ns: None,
            min_rtt_at_ns: 0,
            epoch: AckEpoch::default(),
            excess: [0; 2],
            excess_index: 0,
            excess_rounds: 0,
        }
    }

    /// The handshake has measured a first round trip.
    pub(super) fn begin(&mut self, context: &Context) {
        self.min_rtt_ns = context.min_rtt_ns;
        self.min_rtt_at_ns = context.now_ns;
        self.rounds.restart(context.delivered);
        self.epoch.restart(context.now_ns);
    }

    /// Largest bandwidth of the last rounds.
    pub(super) fn max_bandwidth(&self) -> Bandwidth {
        self.bandwidth.value().map_or(Bandwidth::ZERO, Bandwidth::from_raw)
    }

    /// Adds a sample; returns whether it begins a round.
    pub(super) fn advance_round(&mut self, delivered: u64, prior_delivered: u64) -> bool {
        self.round_begins = self.rounds.advance(delivered, prior_delivered);
        self.round_begins
    }

    /// Begins a round now.
    pub(super) fn restart_round(&mut self, context: &Context) {
        self.rounds.restart(context.delivered);
    }

    /// Adds a bandwidth. A sample taken while the application was the limit underestimates the path, so it counts only
    /// if it exceeds the known bandwidth.
    pub(super) fn add_bandwidth(&mut self, bandwidth: Bandwidth, is_app_limited: bool) {
        if !is_app_limited || bandwidth >= self.max_bandwidth() {
            self.bandwidth.add(self.rounds.count(), bandwidth.raw());
        }
    }

    /// `bbr_update_ack_aggregation`
    pub(super) fn update_aggregation(&mut self, bandwidth: Bandwidth, cwnd: u32, context: &Context, ack: &Ack) {
        if ack.acked == 0 || ack.rate.is_none_or(|sample| sample.interval_ns.is_none()) {
            return;
        }
        if self.round_begins {
            self.excess_rounds += 1;
            if self.excess_rounds >= AGGREGATION_ROUNDS {
                self.excess_rounds = 0;
                self.excess_index ^= 1;
                self.excess[self.excess_index] = 0;
            }
        }
        let excess = self.epoch.excess(bandwidth, context.delivered_ns, ack.acked).min(cwnd);
        let largest = &mut self.excess[self.excess_index];
        *largest = excess.max(*largest);
    }

    /// After an idle time.
    pub(super) fn restart_aggregation(&mut self, now_ns: u64) {
        self.epoch.restart(now_ns);
    }

    /// Packets by which the window grows for aggregation (`bbr_ack_aggregation_cwnd`).
    fn aggregation_packets(&self, bandwidth: Bandwidth) -> u32 {
        self.excess[0].max(self.excess[1]).min(bandwidth.packets_in(AGGREGATION_MAX_NS))
    }

    /// `bbr_bdp`
    fn window(&self, bandwidth: Bandwidth, gain: Gain) -> u32 {
        self.min_rtt_ns.map_or(BLIND_WINDOW_PACKETS, |rtt_ns| bandwidth.window(rtt_ns, gain))
    }
}

impl Bbr {
    /// Packets in flight that amount to `gain` bandwidth-delay products (`bbr_inflight`).
    pub(super) fn in_flight_of(&self, gain: Gain, window: &Window, mss_bytes: u32) -> u32 {
        self.with_budget(self.path.window(self.path.max_bandwidth(), gain), window, mss_bytes)
    }

    /// The target window.
    pub(super) fn target_window(&self, window: &Window, mss_bytes: u32) -> u32 {
        let bandwidth = self.bandwidth();
        let mut target = self.path.window(bandwidth, self.cwnd_gain);
        if self.full_pipe.is_reached() {
            target = target.saturating_add(self.path.aggregation_packets(bandwidth));
        }
        self.with_budget(target, window, mss_bytes)
    }

    /// Leaves room for bursts at both ends, for acknowledgements of two packets each, and for probing on short paths
    /// (`bbr_quantization_budget`).
    fn with_budget(&self, packets: u32, window: &Window, mss_bytes: u32) -> u32 {
        let packets = packets.saturating_add(3 * burst_packets(window.pacing_bytes_per_s, mss_bytes));
        let even = packets.saturating_add(packets & 1);
        let probes = self.phase == Phase::ProbeBw && self.cycle.is_probing();
        even.saturating_add(if probes { 2 } else { 0 })
    }
}
