//! Congestion marks (ECN).
//!
//! The draft leaves the response open, but a mark must count as congestion (section 3.7). Here a mark is treated like a
//! lost packet, as in RFC 3168: once per round trip, when the sender enters the state that responds to an echo, one
//! loss is recorded. As in Google's implementation, startup ends when half of the delivered packets are marked for two
//! rounds.
//!
//! A tail loss probe that repaired a loss leads to the same state, and also counts as one loss (as in Google's
//! implementation).

use super::Bbr3;
use super::long_term::is_too_high;
use crate::transport::congestion::{Context, Window};

/// Startup ends after this many rounds with many marks (`bbr_full_ecn_cnt`).
const FULL_ROUNDS: u32 = 2;

/// Counts marked rounds of startup.
#[derive(Debug, Default)]
pub(super) struct Marks {
    delivered: u64,
    marked: u64,
    /// Consecutive rounds in which half or more was marked (`bbr_ecn_thresh`).
    rounds: u32,
}

impl Marks {
    /// A round has ended. Returns whether marks show that the pipe is full.
    fn on_round(&mut self, context: &Context) -> bool {
        let delivered = context.delivered - self.delivered;
        let marked = context.delivered_ce - self.marked;
        let many = marked > 0 && 2 * marked >= delivered;
        self.rounds = if many { self.rounds + 1 } else { 0 };
        (self.delivered, self.marked) = (context.delivered, context.delivered_ce);
        self.rounds >= FULL_ROUNDS
    }
}

impl Bbr3 {
    /// At the beginning of a round.
    pub(super) fn watch_marks(&mut self, context: &Context) {
        if !self.full.is_reached() && self.startup.marks.on_round(context) {
            self.fill_startup();
        }
    }

    /// Congestion that is not tied to a particular packet: an echo of marks, or a loss that a probe repaired.
    pub(super) fn on_single_loss(&mut self, window: &Window, context: &Context) {
        self.note_loss(window, context);
        let in_flight = self.short.latest_in_flight + 1;
        if self.probe.is_sample && is_too_high(1, in_flight) {
            self.handle_too_high(window, context, in_flight, context.app_limited);
        }
    }
}
