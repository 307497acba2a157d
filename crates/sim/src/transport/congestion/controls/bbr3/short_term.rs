//! The short-term bounds. After losses, the rate and the amount in flight are bounded by what was delivered in the
//! round with the losses, or by 0.7 times the previous bound. They hold until the next probe (section 5.5.10.3).

use super::{Bbr3, Sample};
use crate::transport::congestion::State;
use crate::transport::congestion::helpers::bandwidth::{Bandwidth, Gain};
use crate::transport::congestion::{Context, Window};

/// The share left after losses: 0.7 (BBR.Beta), as 1 minus 0.3.
pub(super) const BETA: Gain = Gain::of(3, 10).complement();

/// Bounds that losses set, and the measurements behind them.
#[derive(Debug)]
pub(super) struct ShortTerm {
    /// BBR.bw_shortterm
    pub(super) bandwidth: Bandwidth,
    /// BBR.inflight_shortterm; `u32::MAX`: no bound.
    pub(super) in_flight: u32,
    /// Largest bandwidth and most packets delivered, of this round (BBR.bw_latest, BBR.inflight_latest).
    latest_bandwidth: Bandwidth,
    pub(super) latest_in_flight: u32,
    /// Something was lost in this round.
    pub(super) loss_in_round: bool,
    /// The round ends with the first packet that was sent after at least this much had been delivered.
    round_end: u64,
    /// The current acknowledgement begins a round.
    pub(super) round_begins: bool,
}

impl ShortTerm {
    /// No bounds.
    pub(super) fn new() -> Self {
        Self {
            bandwidth: Bandwidth::UNBOUNDED,
            in_flight: u32::MAX,
            latest_bandwidth: Bandwidth::ZERO,
            latest_in_flight: 0,
            loss_in_round: false,
            round_end: 0,
            round_begins: false,
        }
    }

    /// UpdateLatestDeliverySignals
    pub(super) fn update(&mut self, context: &Context, sample: &Sample) {
        self.round_begins = false;
        let Some(prior_delivered) = sample.prior_delivered else { return };
        self.latest_bandwidth = self.latest_bandwidth.max(sample.bandwidth);
        self.latest_in_flight = self.latest_in_flight.max(sample.delivered);
        if prior_delivered >= self.round_end {
            self.round_end = context.delivered;
            self.round_begins = true;
        }
    }

    /// AdvanceLatestDeliverySignals
    pub(super) fn advance(&mut self, sample: &Sample) {
        if self.round_begins {
            self.latest_bandwidth = sample.bandwidth;
            self.latest_in_flight = sample.delivered;
        }
    }

    /// ResetCongestionSignals
    pub(super) fn forget_signals(&mut self) {
        self.loss_in_round = false;
        self.latest_bandwidth = Bandwidth::ZERO;
        self.latest_in_flight = 0;
    }

    /// ResetShortTermModel
    pub(super) fn lift_bounds(&mut self) {
        self.bandwidth = Bandwidth::UNBOUNDED;
        self.in_flight = u32::MAX;
    }

    /// LossLowerBounds
    fn cut(&mut self) {
        self.bandwidth = self.bandwidth.times(BETA).max(self.latest_bandwidth);
        self.in_flight = BETA.times(self.in_flight).max(self.latest_in_flight);
    }
}

impl Bbr3 {
    /// NoteLoss
    pub(super) fn note_loss(&mut self, window: &Window, context: &Context) {
        if !self.short.loss_in_round {
            self.short.round_end = context.delivered;
            self.save_upon_loss(window, context);
        }
        self.short.loss_in_round = true;
    }

    /// A round of losses may end (UpdateCongestionSignals, AdaptLowerBoundsFromCongestion).
    pub(super) fn end_loss_round(&mut self, window: &Window, context: &Context) {
        if std::mem::take(&mut self.short.loss_in_round) && !self.phase.looks_for_more() {
            self.begin_bounds(window, context);
            self.short.cut();
        }
    }

    /// InitLowerBounds. After a timeout it uses the window before the timeout, as in Google's implementation: the one
    /// packet sent since is no measure of the path.
    fn begin_bounds(&mut self, window: &Window, context: &Context) {
        if self.short.bandwidth == Bandwidth::UNBOUNDED {
            self.short.bandwidth = self.path.max_bandwidth();
        }
        if self.short.in_flight == u32::MAX {
            let timed_out = context.state == State::Loss;
            self.short.in_flight = if timed_out { self.saved.restored(window.cwnd) } else { window.cwnd };
        }
    }
}
