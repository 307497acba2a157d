//! BBR's usual phase, in cycles of eight parts of one round trip each. It sends a quarter faster to look for more
//! bandwidth, then a quarter slower to drain the queue that this built up, and then at the rate at which the path
//! delivers.

use bufferscope_programs::Uniform;

use super::burst::burst_packets;
use super::{Bbr, Phase};
use crate::transport::congestion::helpers::bandwidth::Gain;
use crate::transport::congestion::{Ack, Context, Window};

/// Twice the bandwidth-delay product, so that delayed and bunched acknowledgements do not bring the sender to a halt
/// (`bbr_cwnd_gain`).
pub(super) const CWND_GAIN: Gain = Gain::of(2, 1);
/// The gains of a cycle (`bbr_pacing_gain`).
const PACING_GAINS: [Gain; 8] = {
    let (probe, drain, cruise) = (Gain::of(5, 4), Gain::of(3, 4), Gain::ONE);
    [probe, drain, cruise, cruise, cruise, cruise, cruise, cruise]
};
/// The cycle begins in any part but the second, which drains the queue of the first (`bbr_cycle_rand`).
const BEGINNINGS: u64 = 7;

/// The sender's phase in the cycle.
#[derive(Debug, Default)]
pub(super) struct Cycle {
    index: usize,
    /// When this part began.
    since_ns: u64,
}

impl Cycle {
    /// Gain of this part.
    pub(super) fn pacing_gain(&self) -> Gain {
        PACING_GAINS[self.index]
    }

    /// Whether this is the part that looks for more bandwidth.
    pub(super) fn is_probing(&self) -> bool {
        self.index == 0
    }

    /// Whether this is the part that drains the queue of the one before.
    pub(super) fn is_draining(&self) -> bool {
        self.index == 1
    }

    fn advance(&mut self, now_ns: u64) {
        self.index = (self.index + 1) % PACING_GAINS.len();
        self.since_ns = now_ns;
    }
}

impl Bbr {
    /// Randomised, so that flows that began together do not probe together (`bbr_reset_probe_bw_mode`).
    pub(super) fn enter_probe_bw(&mut self, context: &Context) {
        self.phase = Phase::ProbeBw;
        self.cycle.index = PACING_GAINS.len() - 1 - self.random.below(BEGINNINGS) as usize;
        self.cycle.advance(context.delivered_ns);
    }

    /// `bbr_update_cycle_phase`
    pub(super) fn update_cycle(&mut self, window: &Window, context: &Context, ack: &Ack) {
        if self.phase == Phase::ProbeBw && self.is_part_over(window, context, ack) {
            self.cycle.advance(context.delivered_ns);
        }
    }

    /// Each part takes a round trip, with two exceptions (`bbr_is_next_cycle_phase`). Probing continues until as much
    /// is in flight as it aims at, or losses show that this does not fit. Draining ends as soon as the queue is gone.
    fn is_part_over(&self, window: &Window, context: &Context, ack: &Ack) -> bool {
        let elapsed_ns = context.delivered_ns.saturating_sub(self.cycle.since_ns);
        let is_full_length = self.path.min_rtt_ns.is_some_and(|rtt_ns| elapsed_ns > rtt_ns);
        if self.pacing_gain == Gain::ONE {
            return is_full_length;
        }
        let in_network = self.in_network_at_next_send(ack.prior_in_flight, window, context);
        let in_flight_of = |gain| self.in_flight_of(gain, window, context.mss_bytes);
        if self.pacing_gain > Gain::ONE {
            is_full_length && (ack.lost > 0 || in_network >= in_flight_of(self.pacing_gain))
        } else {
            is_full_length || in_network <= in_flight_of(Gain::ONE)
        }
    }

    /// What will be in the network when the next packet leaves, including that packet if the window is to grow
    /// (`bbr_packets_in_net_at_edt`).
    pub(super) fn in_network_at_next_send(&self, in_flight: u32, window: &Window, context: &Context) -> u32 {
        let accelerates = self.pacing_gain > Gain::ONE;
        let burst = if accelerates { burst_packets(window.pacing_bytes_per_s, context.mss_bytes) } else { 0 };
        self.bandwidth().left_at_next_send(in_flight + burst, context)
    }
}
