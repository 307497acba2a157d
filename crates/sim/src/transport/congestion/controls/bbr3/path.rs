//! The long-term model of the path: its delivery rate, its minimum round-trip time, its aggregation of
//! acknowledgements; and the window that follows from them (sections 5.5.1 to 5.5.9 and 5.6.4.2).

use super::window::MIN_WINDOW_PACKETS;
use super::{Bbr3, Phase};
use crate::transport::congestion::helpers::aggregation::AckEpoch;
use crate::transport::congestion::helpers::bandwidth::{Bandwidth, Gain};
use crate::transport::congestion::helpers::rounds::DeliveryRounds;
use crate::transport::congestion::{Ack, Context, Window};
use crate::transport::extremes::MaxFilter;

/// Round trips for which the largest excess is kept (BBR.ExtraAckedFilterLen); only one in startup.
const AGGREGATION_ROUNDS: u64 = 10;
const STARTUP_AGGREGATION_ROUNDS: u64 = 1;
/// A burst is what leaves in 1 ms, at most 64 KiB and at least two packets (C.send_quantum, section 5.6.3).
const BURSTS_PER_S: u64 = 1_000;
const BURST_MAX_BYTES: u64 = 65_536;
pub(super) const BURST_MIN_PACKETS: u64 = 2;
/// Bursts for which the window leaves room: in the sender's queue, in its network card, and at the receiver
/// (BBR.offload_budget, section 5.5.8.1).
const BURSTS: u64 = 3;
/// Room to probe on short paths (QuantizationBudget).
const UP_PACKETS: u32 = 2;

/// The model of the path.
#[derive(Debug)]
pub(super) struct Path {
    /// Largest bandwidth of the last cycle and of this one (BBR.max_bw_filter).
    bandwidth: [Bandwidth; 2],
    rounds: DeliveryRounds,
    /// The current acknowledgement begins a round (BBR.round_start).
    pub(super) round_begins: bool,
    /// Smallest round-trip time of the last 10 s; `None` before the first.
    pub(super) min_rtt_ns: Option<u64>,
    epoch: AckEpoch,
    excess: MaxFilter,
    /// The initial window of the connection.
    pub(super) initial_window: u32,
}

impl Path {
    /// Nothing known.
    pub(super) fn new() -> Self {
        Self {
            bandwidth: [Bandwidth::ZERO; 2],
            rounds: DeliveryRounds::default(),
            round_begins: false,
            min_rtt_ns: None,
            epoch: AckEpoch::default(),
            excess: MaxFilter::new(STARTUP_AGGREGATION_ROUNDS),
            initial_window: 0,
        }
    }

    /// The handshake has measured a first round trip.
    pub(super) fn begin(&mut self, window: &Window, context: &Context) {
        self.min_rtt_ns = context.min_rtt_ns;
        self.rounds.restart(context.delivered);
        self.epoch.restart(context.now_ns);
        self.initial_window = window.cwnd;
    }

    /// Largest bandwidth of this cycle and the one before (BBR.max_bw).
    pub(super) fn max_bandwidth(&self) -> Bandwidth {
        self.bandwidth[0].max(self.bandwidth[1])
    }

    /// A sample limited by the application counts only if it exceeds the known bandwidth (section 5.5.5).
    pub(super) fn add_bandwidth(&mut self, bandwidth: Bandwidth, is_app_limited: bool) {
        if !is_app_limited || bandwidth >= self.max_bandwidth() {
            self.bandwidth[1] = self.bandwidth[1].max(bandwidth);
        }
    }

    /// AdvanceMaxBwFilter: forgets the cycle before last. A cycle without any sample does not count (as in Google's
    /// implementation).
    pub(super) fn advance_cycle(&mut self) {
        if self.bandwidth[1] > Bandwidth::ZERO {
            self.bandwidth = [self.bandwidth[1], Bandwidth::ZERO];
        }
    }

    /// Takes in a sample; returns whether it begins a round.
    pub(super) fn advance_round(&mut self, delivered: u64, prior_delivered: u64) -> bool {
        self.round_begins = self.rounds.advance(delivered, prior_delivered);
        self.round_begins
    }

    /// StartRound
    pub(super) fn restart_round(&mut self, context: &Context) {
        self.rounds.restart(context.delivered);
    }

    /// Rounds so far.
    pub(super) fn round(&self) -> u64 {
        self.rounds.count()
    }

    /// UpdateACKAggregation
    pub(super) fn update_aggregation(&mut self, bandwidth: Bandwidth, cwnd: u32, context: &Context, ack: &Ack) {
        if ack.acked > 0 {
            let excess = self.epoch.excess(bandwidth, context.delivered_ns, ack.acked).min(cwnd);
            self.excess.add(self.rounds.count(), u64::from(excess));
        }
    }

    /// Startup is over: from now on aggregation is remembered for longer.
    pub(super) fn remember_aggregation(&mut self) {
        self.excess.set_window(AGGREGATION_ROUNDS);
    }

    /// After an idle time.
    pub(super) fn restart_aggregation(&mut self, now_ns: u64) {
        self.epoch.restart(now_ns);
    }

    /// BBR.extra_acked
    fn excess_packets(&self) -> u32 {
        self.excess.value().map_or(0, |packets| u32::try_from(packets).unwrap_or(u32::MAX))
    }
}

impl Bbr3 {
    /// BDPMultiple, with the bandwidth in use.
    pub(super) fn product(&self, gain: Gain) -> u32 {
        self.product_of(self.bandwidth(), gain)
    }

    fn product_of(&self, bandwidth: Bandwidth, gain: Gain) -> u32 {
        self.path.min_rtt_ns.map_or(self.path.initial_window, |rtt_ns| bandwidth.window(rtt_ns, gain))
    }

    /// Inflight(1.0): packets in flight that fully use the path.
    pub(super) fn in_flight_for(&self, bandwidth: Bandwidth, window: &Window, mss_bytes: u32) -> u32 {
        self.with_budget(self.product_of(bandwidth, Gain::ONE), window, mss_bytes)
    }

    /// BBR.max_inflight
    pub(super) fn max_in_flight(&self, window: &Window, mss_bytes: u32) -> u32 {
        let wanted = self.product(self.phase.cwnd_gain()).saturating_add(self.path.excess_packets());
        self.with_budget(wanted, window, mss_bytes)
    }

    /// QuantizationBudget
    fn with_budget(&self, packets: u32, window: &Window, mss_bytes: u32) -> u32 {
        let mss_bytes = u64::from(mss_bytes);
        let burst = (window.pacing_bytes_per_s / BURSTS_PER_S).min(BURST_MAX_BYTES).max(BURST_MIN_PACKETS * mss_bytes);
        let bursts = (BURSTS * burst / mss_bytes) as u32;
        let up = if self.phase == Phase::Up { UP_PACKETS } else { 0 };
        packets.max(bursts).max(MIN_WINDOW_PACKETS).saturating_add(up)
    }
}
