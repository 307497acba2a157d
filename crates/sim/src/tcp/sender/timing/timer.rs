//! The sender's only timer. Like the kernel's `icsk_retransmit_timer`, it waits for one event at a time.

use crate::tcp::Timers;
use crate::tcp::sender::loss::probe::TailProbe;
use crate::tcp::sender::{Sender, State};
use crate::transport::rtt::{RTO_INITIAL_NS, RTO_MAX_NS, Rtt};

/// What the timer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The retransmission timeout (RFC 6298).
    Retransmit,
    /// The tail loss probe (RFC 8985, section 7).
    Probe,
    /// The end of the reordering window (RFC 8985, section 6.2, step 5).
    Reorder,
    /// The next probe of a closed window (RFC 9293, section 3.8.6.1).
    Persist,
}

/// The timer and how often its timeout has been doubled.
#[derive(Debug)]
pub(crate) struct Timer {
    timers: Timers,
    armed: Option<(Wait, u64)>,
    /// The retransmission timeout without backoff. It changes with each measurement, and is used several times in between.
    timeout_ns: u64,
    backoff: u32,
    /// Probes of the closed window that were not answered with an open one.
    probes: u32,
}

impl Timer {
    /// A timer that waits for nothing.
    pub(crate) fn new(timers: Timers) -> Self {
        Self { timers, armed: None, timeout_ns: timers.timeout_ns(RTO_INITIAL_NS), backoff: 0, probes: 0 }
    }

    /// Arms the timer for `delay_ns` from now. It no longer waits for anything else.
    pub(crate) fn arm(&mut self, wait: Wait, now_ns: u64, delay_ns: u64) {
        self.armed = Some((wait, self.timers.expiry_ns(now_ns, delay_ns)));
    }

    /// Waits for nothing.
    pub(crate) fn disarm(&mut self) {
        self.armed = None;
    }

    /// When the timer expires.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.armed.map(|(_, deadline_ns)| deadline_ns)
    }

    /// What the timer waits for.
    pub(crate) fn wait(&self) -> Option<Wait> {
        self.armed.map(|(wait, _)| wait)
    }

    /// What the timer waited for, if it has expired. As in the kernel, a wait for a probe or for reordered segments
    /// stays set while it is handled, and the handler must rearm the timer.
    pub(crate) fn expired(&mut self, now_ns: u64) -> Option<Wait> {
        let (wait, _) = self.armed.filter(|&(_, deadline_ns)| deadline_ns <= now_ns)?;
        if matches!(wait, Wait::Retransmit | Wait::Persist) {
            self.armed = None;
        }
        Some(wait)
    }

    /// The retransmission timeout, doubled once for each timeout since the last measurement (RFC 6298, rule 5.5).
    #[inline]
    pub(crate) fn rto_ns(&self) -> u64 {
        self.timeout_ns.checked_shl(self.backoff).unwrap_or(RTO_MAX_NS).min(RTO_MAX_NS)
    }

    /// Time until the next probe of a closed window: the timeout, doubled for every probe (`tcp_probe0_when`).
    pub(crate) fn persist_ns(&self) -> u64 {
        self.rto_ns().checked_shl(self.probes).unwrap_or(RTO_MAX_NS).min(RTO_MAX_NS)
    }

    /// A closed window was probed.
    pub(crate) fn on_persist(&mut self) {
        self.probes = (self.probes + 1).min(10);
    }

    /// The window has opened.
    pub(crate) fn end_persist(&mut self) {
        self.probes = 0;
        self.disarm();
    }

    /// How often the timeout has been doubled.
    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }

    /// How often a closed window has been probed.
    pub(crate) fn probes(&self) -> u32 {
        self.probes
    }

    /// Doubles the timeout.
    pub(crate) fn back_off(&mut self) {
        // 200 ms doubled ten times exceeds the maximum.
        self.backoff = (self.backoff + 1).min(10);
    }

    /// A new measurement: the timeout follows it, and is no longer backed off.
    #[inline]
    pub(crate) fn on_measured(&mut self, rtt: &Rtt) {
        self.timeout_ns = self.timers.timeout_ns(rtt.rto_ns());
        self.backoff = 0;
    }
}

impl Sender {
    /// Arms the timer for a tail loss probe, but no later than the timeout, which is due in `rto_ns`. Returns whether
    /// the timer was armed.
    pub(in crate::tcp::sender) fn schedule_probe(&mut self, now_ns: u64, rto_ns: u64) -> bool {
        if self.board.packets_out() == 0 || !matches!(self.recovery.state(), State::Open | State::Cwr) {
            return false;
        }
        let timeout_ns = TailProbe::timeout_ns(self.rtt.srtt_ns(), self.board.packets_out());
        self.arm_after(Wait::Probe, now_ns, timeout_ns.min(rto_ns));
        true
    }

    /// Arms the timer for a timeout counted from now, or disarms it when nothing is in flight (RFC 6298, rules 5.1 to
    /// 5.3). If the timer was waiting for a probe or for reordered segments, part of the timeout has already passed.
    pub(in crate::tcp::sender) fn rearm_retransmit(&mut self, now_ns: u64) {
        if self.board.packets_out() == 0 {
            return self.timer.disarm();
        }
        let rto_ns = match self.timer.wait() {
            Some(Wait::Probe | Wait::Reorder) => self.head_rto_ns(now_ns),
            _ => self.timer.rto_ns(),
        };
        self.arm_after(Wait::Retransmit, now_ns, rto_ns);
    }

    /// Arms the timer. The delay is longer if the pacer holds back the next packet (`tcp_reset_xmit_timer`).
    pub(in crate::tcp::sender) fn arm_after(&mut self, wait: Wait, now_ns: u64, delay_ns: u64) {
        self.timer.arm(wait, now_ns, delay_ns + self.pacer.delay_ns(now_ns));
    }

    /// Time left until the oldest segment times out.
    pub(in crate::tcp::sender) fn head_rto_ns(&self, now_ns: u64) -> u64 {
        let rto_ns = self.timer.rto_ns();
        match self.board.head() {
            Some(head) if head.sent_ns + rto_ns > now_ns => head.sent_ns + rto_ns - now_ns,
            Some(_) => 1,
            None => rto_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_doubles_up_to_two_minutes() {
        let mut timer = Timer::new(Timers::Exact);
        let seconds: Vec<u64> = (0..9)
            .map(|_| {
                let rto_ns = timer.rto_ns();
                timer.back_off();
                rto_ns / 1_000_000_000
            })
            .collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 120, 120]);
    }
}
