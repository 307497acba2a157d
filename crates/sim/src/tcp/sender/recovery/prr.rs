//! The congestion states and how the window is reduced: proportional rate reduction (RFC 9937, before RFC 6937; the
//! kernel's `tcp_cwnd_reduction`).

use crate::transport::congestion::State;

/// The congestion state, and the reduction of the window that belongs to it.
#[derive(Debug)]
pub(crate) struct Recovery {
    state: State,
    /// The state lasts until this sequence number is acknowledged (the RFCs' RecoveryPoint).
    end: u64,
    reduction: Reduction,
}

/// One reduction of the window: the variables of RFC 9937, section 6.
#[derive(Debug, Default)]
struct Reduction {
    /// Window when it began (RecoverFS).
    prior_cwnd: u32,
    /// Packets delivered since.
    delivered: u32,
    /// Packets sent since.
    sent: u32,
}

/// The effect of one acknowledgement, as far as the reduction is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// Packets delivered, cumulatively or selectively.
    pub(crate) delivered: u32,
    /// Packets newly marked lost.
    pub(crate) lost: u32,
    /// The cumulative acknowledgement advanced.
    pub(crate) advanced: bool,
}

impl Recovery {
    /// No congestion.
    pub(crate) fn new() -> Self {
        Self { state: State::Open, end: 0, reduction: Reduction::default() }
    }

    /// The state.
    #[inline]
    pub(crate) fn state(&self) -> State {
        self.state
    }

    /// Sequence number that ends the state.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// The state lasts until `end`.
    pub(crate) fn extend(&mut self, end: u64) {
        self.end = end;
    }

    /// Whether the window is being reduced, packet by packet.
    #[inline]
    pub(crate) fn is_reducing(&self) -> bool {
        matches!(self.state, State::Cwr | State::Recovery)
    }

    /// Enters a state that lasts until `end`.
    pub(crate) fn enter(&mut self, state: State, end: u64) {
        self.state = state;
        self.end = end;
    }

    /// Begins a reduction from `cwnd` packets.
    pub(crate) fn begin_reduction(&mut self, cwnd: u32) {
        self.reduction = Reduction { prior_cwnd: cwnd, delivered: 0, sent: 0 };
    }

    /// Packets were sent.
    pub(crate) fn on_sent(&mut self, packets: u32) {
        if self.is_reducing() {
            self.reduction.sent += packets;
        }
    }

    /// The window after an acknowledgement during a reduction towards `ssthresh`; `None` leaves it as it is.
    pub(crate) fn reduced_cwnd(&mut self, progress: Progress, in_flight: u32, ssthresh: u32) -> Option<u32> {
        if progress.delivered == 0 || self.reduction.prior_cwnd == 0 {
            return None;
        }
        Some(in_flight + self.reduction.allowance(progress, in_flight, ssthresh))
    }
}

impl Reduction {
    /// Packets that may be sent now (RFC 9937, section 6).
    fn allowance(&mut self, progress: Progress, in_flight: u32, ssthresh: u32) -> u32 {
        self.delivered += progress.delivered;
        let allowance = if in_flight > ssthresh {
            // In proportion: ssthresh packets are sent for every prior_cwnd packets delivered.
            let due = (u64::from(ssthresh) * u64::from(self.delivered)).div_ceil(u64::from(self.prior_cwnd));
            (due as u32).saturating_sub(self.sent)
        } else {
            // Below the threshold: keep what is in flight, or slow-start back to the threshold if nothing more was
            // lost.
            let kept = self.delivered.saturating_sub(self.sent).max(progress.delivered);
            let growing = u32::from(progress.advanced && progress.lost == 0);
            (kept + growing).min(ssthresh - in_flight)
        };
        // The fast retransmit itself is never held back.
        allowance.max(u32::from(self.sent == 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivered(packets: u32) -> Progress {
        Progress { delivered: packets, lost: 0, advanced: false }
    }

    /// Of 20 packets in flight, one is lost and 19 are acknowledged one by one. Returns the number sent for each.
    fn sent_per_ack(ssthresh: u32) -> Vec<u32> {
        let mut recovery = Recovery::new();
        recovery.begin_reduction(20);
        recovery.enter(State::Recovery, 0);
        let mut in_flight = 19;
        let mut sent = vec![];
        for _ in 0..19 {
            in_flight -= 1;
            let cwnd = recovery.reduced_cwnd(delivered(1), in_flight, ssthresh).unwrap();
            let now = cwnd - in_flight;
            recovery.on_sent(now);
            in_flight += now;
            sent.push(now);
        }
        sent
    }

    #[test]
    fn reno_sends_for_every_other_acknowledgement() {
        // ceil(10 n / 20) in total after n acknowledgements: one at n = 1, 3, 5, ...
        let sent = sent_per_ack(10);
        assert_eq!(sent[..6], [1, 0, 1, 0, 1, 0]);
        assert_eq!(sent.iter().sum::<u32>(), 10);
    }

    #[test]
    fn cubic_sends_for_seven_out_of_ten() {
        // ceil(14 n / 20) = 1, 2, 3, 3, 4, 5, 5, 6, 7, 7
        assert_eq!(sent_per_ack(14)[..10], [1, 1, 1, 0, 1, 1, 0, 1, 1, 0]);
    }

    #[test]
    fn after_heavy_loss_it_grows_back_to_the_threshold() {
        let mut recovery = Recovery::new();
        recovery.begin_reduction(20);
        recovery.enter(State::Recovery, 0);
        // 4 packets are in flight, and the threshold is 10. One is delivered, and the cumulative acknowledgement
        // advances: 1 packet replaces it, plus 1 more.
        let progress = Progress { delivered: 1, lost: 0, advanced: true };
        assert_eq!(recovery.reduced_cwnd(progress, 4, 10), Some(6));
        recovery.on_sent(2);
        // More was lost: only packets that left are replaced.
        assert_eq!(recovery.reduced_cwnd(Progress { lost: 1, ..progress }, 4, 10), Some(5));
        // Never beyond the threshold.
        assert_eq!(recovery.reduced_cwnd(Progress { delivered: 8, ..progress }, 9, 10), Some(10));
    }

    #[test]
    fn the_fast_retransmit_is_never_held_back() {
        // As many packets as the threshold are in flight. There is no room, but the first segment is sent nevertheless.
        let mut recovery = Recovery::new();
        recovery.begin_reduction(20);
        recovery.enter(State::Recovery, 0);
        assert_eq!(recovery.reduced_cwnd(delivered(1), 10, 10), Some(11));
        recovery.on_sent(1);
        assert_eq!(recovery.reduced_cwnd(delivered(1), 10, 10), Some(10));
    }
}
