//! A SYN or SYN-ACK that waits for its answer (RFC 6298, rules 2.1 and 5.5; the kernel's `tcp_retransmit_timer` and
//! `reqsk_timer_handler`).

use super::sender::{RTO_INITIAL_NS, RTO_MAX_NS};
use super::{Timers, timestamps};

/// It, and how often it was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    timers: Timers,
    first_ns: u64,
    /// Times it was sent again.
    pub(super) resent: u32,
    /// Times the timer went off.
    timeouts: u32,
    /// When it goes off next.
    pub(super) due_ns: u64,
}

impl Attempt {
    /// It is sent now, for the first time.
    pub(super) fn first(now_ns: u64, timers: Timers) -> Self {
        Self { timers, first_ns: now_ns, resent: 0, timeouts: 0, due_ns: 0 }.wait(now_ns)
    }

    /// It is sent again since there was no answer.
    pub(super) fn on_timeout(self, now_ns: u64) -> Self {
        Self { resent: self.resent + 1, timeouts: self.timeouts + 1, ..self }.wait(now_ns)
    }

    /// A SYN-ACK is sent again since the SYN was: the timer begins anew (`tcp_check_req`).
    pub(super) fn on_repeated_syn(self, now_ns: u64) -> Self {
        Self { resent: self.resent + 1, ..self }.wait(now_ns)
    }

    /// The round-trip time, given the timestamp that the answer echoes: by it if anything was sent again (RFC 6298, section 3).
    pub(super) fn rtt_ns(&self, now_ns: u64, ts_ecr: u32) -> Option<u64> {
        if self.resent == 0 { Some(now_ns - self.first_ns) } else { timestamps::elapsed_ns(now_ns, ts_ecr) }
    }

    /// Did more than one get lost? Not if it is the first that is answered (`tcp_try_undo_spurious_syn`).
    pub(super) fn lost_several(&self, ts_ecr: u32) -> bool {
        self.resent > 1 && self.timeouts > 0 && ts_ecr != timestamps::clock(self.first_ns)
    }

    fn wait(self, now_ns: u64) -> Self {
        let timeout_ns = RTO_INITIAL_NS.checked_shl(self.timeouts.min(10)).unwrap_or(RTO_MAX_NS).min(RTO_MAX_NS);
        Self { due_ns: self.timers.expiry_ns(now_ns, timeout_ns), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn each_timeout_doubles_the_next_up_to_two_minutes() {
        let mut attempt = Attempt::first(0, Timers::Exact);
        let due: Vec<u64> = (0..9)
            .map(|_| {
                let waited_ns = attempt.due_ns;
                attempt = attempt.on_timeout(waited_ns);
                (attempt.due_ns - waited_ns) / S
            })
            .collect();
        assert_eq!(due, [2, 4, 8, 16, 32, 64, 120, 120, 120]);
    }

    #[test]
    fn a_repeated_syn_puts_the_timer_off_without_doubling_it() {
        let attempt = Attempt::first(0, Timers::Exact).on_repeated_syn(S / 2);
        assert_eq!((attempt.due_ns, attempt.resent), (S + S / 2, 1));
    }

    #[test]
    fn two_are_forgiven_if_no_timeout_sent_them_or_the_first_is_answered() {
        let later = timestamps::clock(S);
        let by_syns = Attempt::first(0, Timers::Exact).on_repeated_syn(S / 2).on_repeated_syn(S);
        assert!(!by_syns.lost_several(later));
        let by_both = Attempt::first(0, Timers::Exact).on_timeout(S).on_repeated_syn(S);
        assert!(by_both.lost_several(later));
        assert!(!by_both.lost_several(timestamps::clock(0)));
    }
}
