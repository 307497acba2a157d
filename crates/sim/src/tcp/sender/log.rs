//! What a sender notes of its changes, if they are to be logged ([`journal`](crate::tcp::journal)).

use super::Sender;
use super::timing::chrono::Chrono;
use crate::tcp::journal::{
    AVAILABLE, ConnectionState, Ends, Expiry, Journal, Limit, Now, Transition, Trigger, WindowChange,
};

impl Sender {
    pub(crate) fn keep_journal(&mut self, journal: Journal) {
        if !AVAILABLE {
            return;
        }
        self.journal = Some(Box::new(journal));
    }

    /// Notes a change, if there is a journal. The window is already what it will be.
    #[inline]
    pub(super) fn note(&mut self, transition: impl FnOnce(WindowChange) -> Transition) {
        if !AVAILABLE {
            return;
        }
        let windows = self.windows();
        if let Some(journal) = &mut self.journal {
            journal.note(windows, transition);
        }
    }

    /// Notes the segments that have been marked lost since the last call.
    #[cold]
    pub(super) fn note_losses(&mut self, trigger: Trigger) {
        if !AVAILABLE {
            return;
        }
        let lost = self.board.lost_total();
        let before = self.journal.as_mut().map_or(lost, |journal| std::mem::replace(&mut journal.lost, lost));
        if lost > before {
            self.note(|_| Transition::Lost { packets: (lost - before) as u32, trigger });
        }
    }

    /// Notes that a timer has expired, before it is handled.
    pub(super) fn note_expiry(&mut self, timer: Expiry) {
        let (backoff, timeout_ns) = match timer {
            Expiry::Persist => (self.timer.probes(), Some(self.timer.persist_ns())),
            Expiry::Handshake | Expiry::Reordering => (0, None),
            Expiry::Retransmission => (self.timer.backoff(), Some(self.timer.rto_ns())),
        };
        self.note(|_| Transition::Expired { timer, backoff, timeout_ns });
    }

    /// Notes that the timer of a SYN or SYN-ACK has expired, `timeouts` times before.
    pub(crate) fn note_handshake_expiry(&mut self, timeouts: u32) {
        self.note(|_| Transition::Expired { timer: Expiry::Handshake, backoff: timeouts, timeout_ns: None });
    }

    /// Passes on what has changed since the last call.
    pub(crate) fn take_transitions(
        &mut self,
        now_ns: u64,
        handshake: ConnectionState,
        ends: Ends,
        see: &mut dyn FnMut(&Transition),
    ) {
        if !AVAILABLE {
            return;
        }
        let Some(mut journal) = self.journal.take() else { return };
        journal.advance(handshake, ends);
        journal.conclude(self.now(now_ns), see);
        self.journal = Some(journal);
    }

    fn now(&self, now_ns: u64) -> Now {
        Now {
            report: self.cc.report(),
            limit: match self.chronograph.running() {
                Chrono::Idle => Limit::Idle,
                Chrono::Busy => Limit::Path,
                Chrono::WindowLimited => Limit::ReceiveWindow,
                Chrono::BufferLimited => Limit::SendBuffer,
            },
            in_slow_start: self.cc.window().in_slow_start() && !self.cc.governs() && !self.recovery.is_reducing(),
            sample: self.sample(now_ns),
            una: self.una,
            nxt: self.nxt,
        }
    }
}
