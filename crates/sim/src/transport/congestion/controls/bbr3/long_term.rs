//! The long-term bound on the amount in flight. It is the amount at which a probe for bandwidth lost more than 2 % of
//! its packets. It applies until a later probe finds room (sections 5.3.3.5, 5.3.3.9 and 5.5.10.2).

use super::probe_bw::Acks;
use super::short_term::BETA;
use super::window::MIN_WINDOW_PACKETS;
use super::{Bbr3, Phase, Sample};
use crate::transport::congestion::helpers::bandwidth::Gain;
use crate::transport::congestion::{Ack, Context, LostPacket, Window};

/// At most this share of the packets in flight may be lost (BBR.LossThresh).
const LOSS_THRESHOLD: Gain = Gain::of(2, 100);
/// Cruising leaves this share of the bound free (BBR.Headroom).
const HEADROOM: Gain = Gain::of(15, 100);
/// The bound grows by at most 2 to this power packets a round.
const GROWTH_ROUNDS_MAX: u32 = 30;

/// The bound, and how it grows.
#[derive(Debug)]
pub(super) struct LongTerm {
    /// BBR.inflight_longterm; `u32::MAX`: no bound.
    pub(super) in_flight: u32,
    /// Packets acknowledged since it last grew, and how many make it grow by one.
    acked: u32,
    acked_per_packet: u32,
    /// Rounds of growth (BBR.bw_probe_up_rounds).
    rounds: u32,
}

impl LongTerm {
    /// No bound.
    pub(super) fn new() -> Self {
        Self { in_flight: u32::MAX, acked: 0, acked_per_packet: u32::MAX, rounds: 0 }
    }

    /// A probe begins soon.
    pub(super) fn restart_growth(&mut self) {
        (self.rounds, self.acked) = (0, 0);
    }

    /// The probe is over.
    pub(super) fn stop_growth(&mut self) {
        self.acked_per_packet = u32::MAX;
    }

    /// RaiseInflightLongtermSlope: by 1, 2, 4, ... packets a round.
    pub(super) fn raise_slope(&mut self, cwnd: u32) {
        self.acked_per_packet = (cwnd >> self.rounds).max(1);
        self.rounds = (self.rounds + 1).min(GROWTH_ROUNDS_MAX);
    }

    /// ProbeInflightLongtermUpward
    fn grow(&mut self, acked: u32, round_begins: bool, cwnd: u32) {
        self.acked += acked;
        self.in_flight = self.in_flight.saturating_add(self.acked / self.acked_per_packet);
        self.acked %= self.acked_per_packet;
        if round_begins {
            self.raise_slope(cwnd);
        }
    }

    /// InflightWithHeadroom
    pub(super) fn with_headroom(&self) -> u32 {
        if self.in_flight == u32::MAX {
            return u32::MAX;
        }
        let headroom = HEADROOM.times(self.in_flight).max(1);
        self.in_flight.saturating_sub(headroom).max(MIN_WINDOW_PACKETS)
    }
}

impl Bbr3 {
    /// AdaptLongTermModel. Returns whether a phase has begun with it.
    pub(super) fn adapt_long_term(&mut self, window: &Window, context: &Context, ack: &Ack, sample: &Sample) -> bool {
        if self.path.round_begins && self.advance_acks(context, sample) {
            return true;
        }
        if is_too_high(sample.lost, sample.tx_in_flight) || self.long.in_flight == u32::MAX {
            return false;
        }
        // An amount in flight that did no harm is no bound.
        self.long.in_flight = self.long.in_flight.max(sample.tx_in_flight);
        if self.phase == Phase::Up && self.is_bound_in_use(window, context) {
            self.long.grow(ack.acked, self.path.round_begins, window.cwnd);
        }
        false
    }

    /// Whether the bound limits sending.
    pub(super) fn is_bound_in_use(&self, window: &Window, context: &Context) -> bool {
        context.window_full && window.cwnd >= self.long.in_flight
    }

    /// A round has ended: decides what acknowledgements mean from now on. Returns whether a phase has begun.
    fn advance_acks(&mut self, context: &Context, sample: &Sample) -> bool {
        match self.probe.acks {
            Acks::Starting => self.probe.acks = Acks::Feedback,
            Acks::Stopping => {
                self.probe.is_sample = false;
                self.probe.acks = Acks::Init;
                if self.phase.is_probe_bw() && !sample.is_app_limited {
                    self.path.advance_cycle();
                }
                // The last probe was cut short as a precaution, and went well: start a full one now.
                if self.phase.is_probe_bw() && self.probe.was_precautionary && !self.probe.was_too_high {
                    self.start_refill(context);
                    return true;
                }
            }
            Acks::Init | Acks::Refilling | Acks::Feedback => {}
        }
        false
    }

    /// HandleLostPacket, for a packet sent while probing.
    pub(super) fn check_lost_packet(&mut self, window: &mut Window, context: &Context, lost: &LostPacket) {
        if is_too_high(lost.lost_since, lost.tx_in_flight) {
            let in_flight = in_flight_at_loss(lost.lost_since, lost.tx_in_flight);
            self.handle_too_high(window, context, in_flight, lost.is_app_limited);
        }
    }

    /// HandleInflightTooHigh
    pub(super) fn handle_too_high(&mut self, window: &Window, context: &Context, in_flight: u32, is_app_limited: bool) {
        self.probe.was_too_high = true;
        // Once per probe.
        self.probe.is_sample = false;
        if !is_app_limited {
            self.long.in_flight = BETA.times(self.target_in_flight(window)).max(in_flight);
        }
        if self.phase == Phase::Up {
            self.undo.note_phase(Phase::Up);
            self.start_down(context);
        }
    }

    /// TargetInflight
    pub(super) fn target_in_flight(&self, window: &Window) -> u32 {
        self.product(Gain::ONE).min(window.cwnd)
    }
}

/// IsInflightTooHigh: are `lost` of `tx_in_flight` more than 2 %?
pub(super) fn is_too_high(lost: u32, tx_in_flight: u32) -> bool {
    tx_in_flight > 0 && lost > LOSS_THRESHOLD.times(tx_in_flight)
}

/// InflightAtLoss: how many were in flight when losses reached 2 %. The packet with `tx_in_flight` in flight is the one
/// that raised the losses to `lost`.
fn in_flight_at_loss(lost: u32, tx_in_flight: u32) -> u32 {
    let (before, lost_before) = (tx_in_flight.saturating_sub(1), lost.saturating_sub(1));
    let allowed = LOSS_THRESHOLD.times_rounded_up(before);
    before + LOSS_THRESHOLD.complement().divide(allowed.saturating_sub(lost_before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_two_per_cent_is_too_much() {
        // 5/256 of 200 is 3.9: 3.
        assert_eq!([3, 4].map(|lost| is_too_high(lost, 200)), [false, true]);
        // Below 52 packets a single one is.
        assert_eq!([51, 52].map(|in_flight| is_too_high(1, in_flight)), [true, false]);
        assert!(!is_too_high(0, 1) && !is_too_high(1, 0));
    }

    #[test]
    fn the_bound_is_where_losses_crossed_the_threshold() {
        // 99 before it, of which 1 + 99 * 5/256 = 1.93 rounded up, 2, might be lost; 2 were already.
        assert_eq!(in_flight_at_loss(3, 100), 99);
        // None was: (2 - 0) / (1 - 5/256) = 2.04 more would fit.
        assert_eq!(in_flight_at_loss(1, 100), 101);
        assert_eq!(in_flight_at_loss(1, 0), 0);
    }

    #[test]
    fn the_bound_grows_by_one_two_and_four_packets_a_round() {
        let mut long = LongTerm { in_flight: 40, ..LongTerm::new() };
        long.raise_slope(40);
        let grown: Vec<u32> = (0..3)
            .map(|_| {
                (0..39).for_each(|_| long.grow(1, false, 40));
                long.grow(1, true, 40);
                long.in_flight
            })
            .collect();
        assert_eq!(grown, [41, 43, 47]);
    }

    #[test]
    fn a_seventh_is_left_free() {
        // 38/256 of 100 is 14.8: 14; of 5: 0, but 1 at least; and 4 are always in flight.
        let with_headroom = |in_flight| LongTerm { in_flight, ..LongTerm::new() }.with_headroom();
        assert_eq!([100, 5, 4].map(with_headroom), [86, 4, 4]);
        assert_eq!(with_headroom(u32::MAX), u32::MAX);
    }
}
