//! Enters and leaves the congestion states, and changes the window and its threshold accordingly (the kernel's
//! `tcp_init_cwnd_reduction`, `tcp_end_cwnd_reduction` and `tcp_set_ca_state`).

use crate::tcp::journal::{Transition, Trigger};
use crate::tcp::sender::{Sender, State};
use crate::transport::congestion::Event;

impl Sender {
    /// Congestion was noticed: sets the threshold and begins to reduce the window towards it
    /// (`tcp_init_cwnd_reduction`).
    pub(in crate::tcp::sender) fn begin_reduction(&mut self, now_ns: u64, state: State, trigger: Trigger) {
        let cwnd = self.cc.window().cwnd;
        self.recovery.begin_reduction(cwnd);
        self.probe.cancel();
        self.cc.window_mut().prior_cwnd = cwnd;
        self.reduce_threshold(now_ns);
        self.enter(now_ns, state, self.nxt, trigger);
    }

    /// Sets the threshold after congestion, and notifies the peer.
    pub(in crate::tcp::sender) fn reduce_threshold(&mut self, now_ns: u64) {
        let ssthresh = self.cc.ssthresh(&self.context(now_ns));
        let window = self.cc.window_mut();
        window.ssthresh = ssthresh;
        window.credit = 0;
        self.marks.on_reduction();
    }

    /// The reduction is over. The window keeps the value to which it was reduced (`tcp_end_cwnd_reduction`).
    pub(in crate::tcp::sender) fn end_reduction(&mut self, now_ns: u64) {
        if self.cc.governs() {
            return;
        }
        let ssthresh = self.cc.window().ssthresh;
        if ssthresh < u32::MAX && (self.recovery.state() == State::Cwr || self.undo.is_possible()) {
            self.set_cwnd(ssthresh);
            self.usage.stamp(now_ns);
        }
        self.cc.on_event(&self.context(now_ns), Event::ReductionComplete);
    }

    /// Enters a state that lasts until `end` is acknowledged.
    pub(in crate::tcp::sender) fn enter(&mut self, now_ns: u64, state: State, end: u64, trigger: Trigger) {
        let old = self.recovery.state();
        self.cc.on_state(&self.context(now_ns), state);
        self.recovery.enter(state, end);
        if old != state {
            self.note(|change| Transition::Congestion { old, new: state, trigger, change });
        }
    }

    /// Enters a state that lasts as long as the one it replaces.
    pub(in crate::tcp::sender) fn set_state(&mut self, now_ns: u64, state: State, trigger: Trigger) {
        self.enter(now_ns, state, self.recovery.end(), trigger);
    }
}
