//! A SYN or SYN-ACK that has not been answered yet (RFC 6298, rules 2.1 and 5.5; the kernel's `tcp_retransmit_timer`
//! and `reqsk_timer_handler`).

use super::sender::{HOST_BUSY_NS, RTO_INITIAL_NS, RTO_MAX_NS};
use super::{Timers, timestamps};

/// The attempts to send a SYN or SYN-ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    timers: Timers,
    /// Number of timeouts before doubling starts.
    linear_timeouts: u32,
    first_ns: u64,
    /// Number of retransmissions.
    pub(super) resent: u32,
    /// Number of timer expiries.
    timeouts: u32,
    /// When the timer expires next.
    pub(super) due_ns: u64,
}

impl Attempt {
    /// A SYN is sent now, for the first time. Its first `linear_timeouts` timeouts are not doubled
    /// (`net.ipv4.tcp_syn_linear_timeouts`).
    pub(super) fn syn(now_ns: u64, timers: Timers, linear_timeouts: u32) -> Self {
        Self { timers, linear_timeouts, first_ns: now_ns, resent: 0, timeouts: 0, due_ns: 0 }.wait(now_ns)
    }

    /// A SYN-ACK is sent now, for the first time. Each of its timeouts is doubled.
    pub(super) fn syn_ack(now_ns: u64, timers: Timers) -> Self {
        Self::syn(now_ns, timers, 0)
    }

    /// The segment is retransmitted because there was no answer.
    pub(super) fn on_timeout(self, now_ns: u64) -> Self {
        Self { resent: self.resent + 1, timeouts: self.timeouts + 1, ..self }.wait(now_ns)
    }

    /// The host dropped a retransmitted SYN. The next attempt follows after half a second, and the timeout is not
    /// doubled (`TCP_RESOURCE_PROBE_INTERVAL`).
    pub(super) fn on_dropped(self, now_ns: u64) -> Self {
        let due_ns = self.timers.expiry_ns(now_ns, HOST_BUSY_NS);
        Self { linear_timeouts: self.linear_timeouts + 1, due_ns, ..self }
    }

    /// The SYN-ACK is retransmitted because the SYN arrived again. The timer restarts (`tcp_check_req`).
    pub(super) fn on_repeated_syn(self, now_ns: u64) -> Self {
        Self { resent: self.resent + 1, ..self }.wait(now_ns)
    }

    /// The round-trip time. If the segment was retransmitted, it is computed from the timestamp that the answer echoes
    /// (RFC 6298, section 3).
    pub(super) fn rtt_ns(&self, now_ns: u64, ts_ecr: u32) -> Option<u64> {
        if self.resent == 0 { Some(now_ns - self.first_ns) } else { timestamps::elapsed_ns(now_ns, ts_ecr) }
    }

    /// Number of timer expiries so far.
    pub(super) fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// Whether the segment was lost more than once. It was not if the answer is to its first transmission
    /// (`tcp_try_undo_spurious_syn`).
    pub(super) fn lost_several(&self, ts_ecr: u32) -> bool {
        self.resent > 1 && self.timeouts > 0 && ts_ecr != timestamps::clock(self.first_ns)
    }

    fn wait(self, now_ns: u64) -> Self {
        let doublings = self.timeouts.saturating_sub(self.linear_timeouts).min(10);
        let timeout_ns = RTO_INITIAL_NS.checked_shl(doublings).unwrap_or(RTO_MAX_NS).min(RTO_MAX_NS);
        Self { due_ns: self.timers.expiry_ns(now_ns, timeout_ns), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// The seconds from each transmission to the next, for ten timeouts.
    fn waits(mut attempt: Attempt) -> Vec<u64> {
        let mut sent_ns = 0;
        let wait = |_| {
            let due_ns = attempt.due_ns;
            attempt = attempt.on_timeout(due_ns);
            (due_ns - std::mem::replace(&mut sent_ns, due_ns)) / S
        };
        (0..10).map(wait).collect()
    }

    #[test]
    fn each_timeout_doubles_the_next_up_to_two_minutes() {
        assert_eq!(waits(Attempt::syn(0, Timers::Exact, 0)), [1, 2, 4, 8, 16, 32, 64, 120, 120, 120]);
        assert_eq!(waits(Attempt::syn_ack(0, Timers::Exact)), [1, 2, 4, 8, 16, 32, 64, 120, 120, 120]);
    }

    /// From `Documentation/networking/ip-sysctl.rst`, for the value 4: "1, 1, 1, 1, 1, 2, 4, ...".
    #[test]
    fn linear_timeouts_come_before_doubled_ones() {
        assert_eq!(waits(Attempt::syn(0, Timers::Exact, 4)), [1, 1, 1, 1, 1, 2, 4, 8, 16, 32]);
        assert_eq!(waits(Attempt::syn(0, Timers::Exact, 1)), [1, 1, 2, 4, 8, 16, 32, 64, 120, 120]);
        assert_eq!(waits(Attempt::syn(0, Timers::Exact, 127)), [1; 10]);
    }

    #[test]
    fn a_repeated_syn_puts_the_timer_off_without_doubling_it() {
        let attempt = Attempt::syn_ack(0, Timers::Exact).on_repeated_syn(S / 2);
        assert_eq!((attempt.due_ns, attempt.resent), (S + S / 2, 1));
    }

    #[test]
    fn two_are_forgiven_if_no_timeout_sent_them_or_the_first_is_answered() {
        let later = timestamps::clock(S);
        let by_syns = Attempt::syn_ack(0, Timers::Exact).on_repeated_syn(S / 2).on_repeated_syn(S);
        assert!(!by_syns.lost_several(later));
        let by_both = Attempt::syn_ack(0, Timers::Exact).on_timeout(S).on_repeated_syn(S);
        assert!(by_both.lost_several(later));
        assert!(!by_both.lost_several(timestamps::clock(0)));
    }
}
