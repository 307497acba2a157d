//! Reverts the effects of spurious losses on the model (section 5.5.11).
//!
//! The draft's pseudocode saves the state at the first loss of every round, and again when recovery begins; that would
//! overwrite the state from before the earlier losses. The code follows the draft's text instead, "when a loss recovery
//! episode starts": it saves once per episode.

use super::{Bbr3, Phase};
use crate::transport::congestion::helpers::bandwidth::Bandwidth;
use crate::transport::congestion::{Context, Window};

/// The model before the losses.
#[derive(Debug)]
pub(super) struct Undo {
    /// In loss recovery. The other fields then hold the state before these losses.
    in_episode: bool,
    bandwidth: Bandwidth,
    short_in_flight: u32,
    long_in_flight: u32,
    /// The phase that the losses ended (BBR.undo_state).
    phase: Option<Phase>,
}

impl Default for Undo {
    fn default() -> Self {
        Self { in_episode: false, bandwidth: Bandwidth::ZERO, short_in_flight: 0, long_in_flight: 0, phase: None }
    }
}

impl Undo {
    /// Losses have ended a phase.
    pub(super) fn note_phase(&mut self, phase: Phase) {
        self.phase = Some(phase);
    }

    /// Loss recovery is complete.
    pub(super) fn end_episode(&mut self) {
        self.in_episode = false;
    }
}

impl Bbr3 {
    /// SaveStateUponLoss
    pub(super) fn save_upon_loss(&mut self, window: &Window, context: &Context) {
        self.save_window(window.cwnd, context);
        if !self.undo.in_episode {
            self.undo = Undo {
                in_episode: true,
                bandwidth: self.short.bandwidth,
                short_in_flight: self.short.in_flight,
                long_in_flight: self.long.in_flight,
                phase: None,
            };
        }
    }

    /// HandleSpuriousLossDetection, except for the window.
    pub(super) fn take_back(&mut self, context: &Context) {
        self.short.loss_in_round = false;
        self.full.restart(Bandwidth::ZERO);
        self.short.bandwidth = self.short.bandwidth.max(self.undo.bandwidth);
        self.short.in_flight = self.short.in_flight.max(self.undo.short_in_flight);
        self.long.in_flight = self.long.in_flight.max(self.undo.long_in_flight);
        let in_dip = self.phase == Phase::ProbeRtt;
        match self.undo.phase.take() {
            Some(Phase::Startup) if self.phase != Phase::Startup => {
                self.full.unreach();
                self.phase = if in_dip { Phase::ProbeRtt } else { Phase::Startup };
            }
            Some(Phase::Up) if self.phase != Phase::Up && !in_dip => self.start_refill(context),
            _ => {}
        }
    }
}
