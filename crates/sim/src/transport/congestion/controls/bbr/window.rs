//! BBR's window. Normally it is a multiple of the bandwidth-delay product. In the first round of a recovery it is
//! limited to the packets delivered; after the recovery, the previous window is restored.

use super::{Bbr, Phase};
use crate::transport::congestion::State;
use crate::transport::congestion::{Ack, Context, Window};

/// At least this many are in flight: two for each end, as every other packet is acknowledged (`bbr_cwnd_min_target`).
pub(super) const MIN_WINDOW_PACKETS: u32 = 4;
/// The window always grows until this much was delivered (`TCP_INIT_CWND`).
const FIRST_PACKETS: u64 = 10;

/// The saved window, and why it is not in use.
#[derive(Debug)]
pub(super) struct Saved {
    /// The last window that neither a recovery nor ProbeRTT had cut (`prior_cwnd`).
    pub(super) cwnd: u32,
    /// State at the last acknowledgement (`prev_ca_state`).
    state: State,
    /// In the first round of a recovery: one packet is sent for each one delivered (`packet_conservation`).
    conserving: bool,
}

impl Saved {
    pub(super) fn new() -> Self {
        Self { cwnd: 0, state: State::Open, conserving: false }
    }

    /// A round has ended.
    pub(super) fn end_conservation(&mut self) {
        self.conserving = false;
    }

    /// The retransmission timer has expired.
    pub(super) fn after_timeout(&mut self) {
        self.state = State::Loss;
    }
}

impl Bbr {
    /// Saves the window, to be restored later (`bbr_save_cwnd`).
    pub(super) fn save_window(&mut self, cwnd: u32) {
        let is_good = self.saved.state < State::Recovery && self.phase != Phase::ProbeRtt;
        self.saved.cwnd = if is_good { cwnd } else { self.saved.cwnd.max(cwnd) };
    }

    /// `bbr_set_cwnd`
    pub(super) fn update_window(&mut self, window: &mut Window, context: &Context, ack: &Ack) {
        if ack.acked > 0 {
            let cwnd = self.recover_or_restore(window.cwnd, context, ack);
            window.cwnd = if self.saved.conserving {
                cwnd.max(context.in_flight + ack.acked)
            } else {
                self.approach_target(cwnd, window, context, ack.acked)
            };
        }
        if self.phase == Phase::ProbeRtt {
            window.cwnd = window.cwnd.min(MIN_WINDOW_PACKETS);
        }
    }

    /// Grows by the number of acknowledged packets, up to the target. Shrinks to the target at once if the pipe was
    /// ever full.
    fn approach_target(&self, cwnd: u32, window: &Window, context: &Context, acked: u32) -> u32 {
        let target = self.target_window(window, context.mss_bytes);
        let cwnd = if self.full_pipe.is_reached() {
            (cwnd + acked).min(target)
        } else if cwnd < target || context.delivered < FIRST_PACKETS {
            cwnd + acked
        } else {
            cwnd
        };
        cwnd.max(MIN_WINDOW_PACKETS)
    }

    /// `bbr_set_cwnd_to_recover_or_restore`
    fn recover_or_restore(&mut self, cwnd: u32, context: &Context, ack: &Ack) -> u32 {
        let before = std::mem::replace(&mut self.saved.state, context.state);
        if context.state == State::Recovery && before != State::Recovery {
            self.saved.conserving = true;
            self.path.restart_round(context);
            // Cuts off the unused part of the window.
            context.in_flight + ack.acked
        } else if before >= State::Recovery && context.state < State::Recovery {
            self.saved.conserving = false;
            cwnd.saturating_sub(ack.lost).max(1).max(self.saved.cwnd)
        } else {
            cwnd.saturating_sub(ack.lost).max(1)
        }
    }
}
