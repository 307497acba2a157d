//! Tracks whether the congestion window is used. A window that is not used must not grow, and it shrinks over time (RFC
//! 2861, RFC 7661 in spirit; the kernel's `tcp_cwnd_validate`, `tcp_cwnd_application_limited` and `tcp_cwnd_restart`).

use crate::tcp::journal::Transition;
use crate::tcp::sender::{Sender, State};
use crate::transport::congestion::Event;

/// How much of the window was used.
#[derive(Debug, Default)]
pub(crate) struct WindowUsage {
    /// The window was the limit, not the application or the peer (`is_cwnd_limited`).
    limited: bool,
    /// Most packets that were out (`max_packets_out`).
    max_packets_out: u32,
    /// The observation is valid until this sequence number is acknowledged (`cwnd_usage_seq`).
    until: u64,
    /// Most packets that were out since `stamp_ns` while the window was not the limit (`snd_cwnd_used`).
    used: u32,
    /// When the window was last in full use, set, or could have been raised by an acknowledgement (`snd_cwnd_stamp`).
    stamp_ns: u64,
}

impl WindowUsage {
    /// The window was used up at some time in the last round trip.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.limited
    }

    /// The window was set, or an acknowledgement could have raised it.
    pub(crate) fn stamp(&mut self, now_ns: u64) {
        self.stamp_ns = now_ns;
    }
}

impl Sender {
    /// Whether the window was used enough to grow. In slow start, using half of it is enough, because slow start
    /// doubles it (`tcp_is_cwnd_limited`).
    #[inline]
    pub(in crate::tcp::sender) fn is_cwnd_limited(&self) -> bool {
        let window = self.cc.window();
        self.usage.limited || (window.in_slow_start() && window.cwnd < 2 * self.usage.max_packets_out)
    }

    /// `sent` packets have just been sent (0 if none could be sent). `waits_for_more` says that data waits for more
    /// room in the window, even if there is some.
    pub(in crate::tcp::sender) fn validate_window(&mut self, now_ns: u64, sent: u32, waits_for_more: bool) {
        let limited = waits_for_more || self.board.in_flight() >= self.cc.window().cwnd;
        if sent == 0 && !limited {
            return;
        }
        let packets_out = self.board.packets_out();
        let usage = &mut self.usage;
        let more = !usage.limited && packets_out > usage.max_packets_out;
        if self.una >= usage.until || limited || more {
            (usage.limited, usage.max_packets_out, usage.until) = (limited, packets_out, self.nxt);
        }
        if self.is_cwnd_limited() {
            self.usage.used = 0;
            self.usage.stamp_ns = now_ns;
            return;
        }
        self.usage.used = self.usage.used.max(packets_out);
        if self.slow_start_after_idle && now_ns - self.usage.stamp_ns >= self.timer.rto_ns() && !self.cc.governs() {
            self.shrink_unused_window(now_ns);
        }
        self.note_buffer_limit(now_ns);
    }

    /// The window was not the limit for a whole timeout. It shrinks halfway to the part that was used, but not below
    /// the initial window. If the application waits for room in the send buffer, the application is not the limit, and
    /// the window does not shrink.
    #[cold]
    fn shrink_unused_window(&mut self, now_ns: u64) {
        if self.recovery.state() == State::Open && !self.buffer.is_full() {
            let used = self.usage.used.max(self.initial_window_packets);
            let window = self.cc.window_mut();
            if used < window.cwnd {
                window.ssthresh = window.current_ssthresh(false);
                window.cwnd = (window.cwnd + used) / 2;
                self.note(|change| Transition::WindowUnused { change });
            }
            self.usage.used = 0;
        }
        self.usage.stamp_ns = now_ns;
    }

    /// There is data to send. If nothing was sent for longer than a timeout, the window is halved once for each timeout
    /// that has passed, but not below its initial size (`tcp_slow_start_after_idle_check`).
    pub(in crate::tcp::sender) fn restart_after_idle(&mut self, now_ns: u64) {
        if !self.slow_start_after_idle || self.board.packets_out() > 0 || self.cc.governs() {
            return;
        }
        let rto_ns = self.timer.rto_ns();
        let idle_ns = now_ns - self.last_sent_ns;
        if self.last_sent_ns == 0 || idle_ns <= rto_ns {
            return;
        }
        self.cc.on_event(&self.context(now_ns), Event::Restart);
        let reducing = self.recovery.is_reducing();
        let window = self.cc.window_mut();
        window.ssthresh = window.current_ssthresh(reducing);
        let restart = self.initial_window_packets.min(window.cwnd);
        let halvings = ((idle_ns - 1) / rto_ns).min(31) as u32;
        window.cwnd = (window.cwnd >> halvings).max(restart);
        self.usage.used = 0;
        self.usage.stamp_ns = now_ns;
        self.note(|change| Transition::IdleRestart { idle_ns, change });
    }
}
