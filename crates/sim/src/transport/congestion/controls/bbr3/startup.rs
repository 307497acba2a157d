//! Startup: the rate doubles each round trip until the pipe is full (section 5.3.1).

use super::ecn::Marks;
use super::long_term::is_too_high;
use super::{Bbr3, Phase, Sample};
use crate::transport::congestion::State;
use crate::transport::congestion::helpers::bandwidth::{Bandwidth, Gain};
use crate::transport::congestion::{Ack, Context, Window};

/// 4 ln 2 = 2.77, the smallest gain that lets a paced sender double its rate each round trip; rounded up.
pub(super) const PACING_GAIN: Gain = Gain::of(277, 100).next_up();
/// Growth by a quarter counts as growth.
const GROWTH: Gain = Gain::of(5, 4);
/// The pipe is full after this many rounds without growth.
const FULL_ROUNDS: u32 = 3;
/// The pipe is full of losses when losses show up this often in a round (BBRStartupFullLossCnt).
const FULL_LOSSES: u32 = 6;

/// Looks for the point where sending faster stops increasing the delivery rate, in startup and in every probe.
#[derive(Debug)]
pub(super) struct FullBandwidth {
    /// The bandwidth to compare with (BBR.full_bw).
    base: Bandwidth,
    /// Rounds without growth.
    rounds: u32,
    /// Reached since it was last looked for (BBR.full_bw_now).
    is_now: bool,
    /// Reached at some time.
    reached: bool,
}

/// Counted in startup alone.
#[derive(Debug, Default)]
pub(super) struct Startup {
    /// Acknowledgements in this round that showed losses.
    losses: u32,
    pub(super) marks: Marks,
}

impl Default for FullBandwidth {
    fn default() -> Self {
        Self { base: Bandwidth::ZERO, rounds: 0, is_now: false, reached: false }
    }
}

impl FullBandwidth {
    /// Whether the pipe was ever full.
    pub(super) fn is_reached(&self) -> bool {
        self.reached
    }

    /// Whether it is full now.
    pub(super) fn is_now(&self) -> bool {
        self.is_now
    }

    /// ResetFullBW, to look for growth over `base`.
    pub(super) fn restart(&mut self, base: Bandwidth) {
        *self = Self { base, reached: self.reached, ..Self::default() };
    }

    /// Takes back that it was full.
    pub(super) fn unreach(&mut self) {
        self.reached = false;
    }

    /// Losses show that the pipe is full.
    fn reach(&mut self) {
        (self.is_now, self.reached) = (true, true);
    }

    /// CheckFullBWReached, at the end of a round.
    fn on_round(&mut self, bandwidth: Bandwidth) {
        if self.is_now {
            return;
        }
        if bandwidth >= self.base.times(GROWTH) {
            return self.restart(bandwidth);
        }
        self.rounds += 1;
        if self.rounds >= FULL_ROUNDS {
            self.reach();
        }
    }
}

impl Bbr3 {
    /// Rounds limited by the application are ignored.
    pub(super) fn check_full_bandwidth(&mut self, sample: &Sample) {
        if self.path.round_begins && !sample.is_app_limited {
            self.full.on_round(sample.bandwidth);
        }
    }

    /// CheckStartupDone
    pub(super) fn check_startup_done(&mut self, window: &mut Window, context: &Context, ack: &Ack, sample: &Sample) {
        self.check_startup_losses(context, ack, sample);
        if self.phase == Phase::Startup && self.full.reached {
            self.enter_drain(window, context);
        }
    }

    /// CheckStartupHighLoss: at the end of a round of recovery (section 5.3.1.3).
    fn check_startup_losses(&mut self, context: &Context, ack: &Ack, sample: &Sample) {
        if self.full.reached {
            return;
        }
        self.startup.losses += u32::from(ack.lost > 0);
        if !self.short.round_begins {
            return;
        }
        let losses = std::mem::take(&mut self.startup.losses);
        let recovering = context.state == State::Recovery;
        if recovering && losses >= FULL_LOSSES && is_too_high(sample.lost, sample.tx_in_flight) {
            self.undo.note_phase(Phase::Startup);
            self.fill_startup();
        }
    }

    /// The pipe is overfull: the amount that it held is the bound from now on.
    pub(super) fn fill_startup(&mut self) {
        self.full.reach();
        self.long.in_flight = self.product(Gain::ONE).max(self.short.latest_in_flight);
    }
}
