//! The decisions of a congestion control: the window, its threshold, and how fast packets leave.
//!
//! Windows are counted in packets, as in the kernel.

/// A threshold does not fall below this many packets on congestion (RFC 5681, section 3.1, equation 4).
pub(crate) const MIN_SSTHRESH_PACKETS: u32 = 2;

/// Pacing rate of a sender that is not paced.
pub(crate) const UNPACED: u64 = u64::MAX;

/// The congestion window, and the values that belong to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Packets that may be in flight; at least 1 (`snd_cwnd`).
    pub(crate) cwnd: u32,
    /// Below this the window grows by slow start; `u32::MAX` until the first congestion (`snd_ssthresh`).
    pub(crate) ssthresh: u32,
    /// Packets acknowledged towards the next increment in congestion avoidance (`snd_cwnd_cnt`).
    pub(crate) credit: u32,
    /// The window before the last reduction or timeout began, which an undo restores (`prior_cwnd`); 0 before the
    /// first.
    pub(crate) prior_cwnd: u32,
    /// Pacing rate in payload bytes per second, where the sender paces (`sk_pacing_rate`); [`UNPACED`]: no limit.
    /// Controls that govern set it; for the others the sender does.
    pub(crate) pacing_bytes_per_s: u64,
    /// The control itself leaves the path underused: rate samples of what is in flight now should count as limited by
    /// the application (BBR during ProbeRTT). The sender reads and clears it.
    pub(crate) mark_app_limited: bool,
}

impl Window {
    /// The initial window of a connection.
    pub(crate) fn new(cwnd: u32) -> Self {
        Self {
            cwnd,
            ssthresh: u32::MAX,
            credit: 0,
            prior_cwnd: 0,
            pacing_bytes_per_s: UNPACED,
            mark_app_limited: false,
        }
    }

    /// Whether the window is below the threshold.
    #[inline]
    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// The threshold that an undo restores (`tcp_current_ssthresh`): unless a reduction is under way, at least three
    /// quarters of the window.
    pub(crate) fn current_ssthresh(&self, reducing: bool) -> u32 {
        if reducing { self.ssthresh } else { self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4) }
    }

    /// Grows by one packet for each packet acknowledged, up to the threshold (RFC 5681, section 3.1, with the
    /// appropriate byte counting of RFC 3465 without a limit, as in the kernel). Returns the packets left over for
    /// congestion avoidance.
    pub(crate) fn slow_start(&mut self, acked: u32) -> u32 {
        let grown = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let left = acked - (grown - self.cwnd);
        self.cwnd = grown;
        left
    }

    /// Grows by one packet for every `per_increment` acknowledged, counting across acknowledgements
    /// (`tcp_cong_avoid_ai`).
    pub(crate) fn grow(&mut self, per_increment: u32, acked: u32) {
        if self.credit >= per_increment {
            self.credit = 0;
            self.cwnd += 1;
        }
        self.credit += acked;
        let increments = self.credit / per_increment;
        self.credit -= increments * per_increment;
        self.cwnd += increments;
    }

    /// Reno's growth: slow start, then one packet per window (RFC 5681, section 3.1; `tcp_reno_cong_avoid`). Many
    /// controls use it and differ only in how they shrink.
    pub(crate) fn grow_as_reno(&mut self, acked: u32) {
        let left = if self.in_slow_start() { self.slow_start(acked) } else { acked };
        if left > 0 {
            self.grow(self.cwnd, left);
        }
    }

    /// Reno's threshold: half of the window (`tcp_reno_ssthresh`).
    pub(crate) fn half(&self) -> u32 {
        (self.cwnd / 2).max(MIN_SSTHRESH_PACKETS)
    }

    /// The window that undoing a reduction restores, for most controls (`tcp_reno_undo_cwnd`).
    pub(crate) fn undone(&self) -> u32 {
        self.cwnd.max(self.prior_cwnd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_stops_at_the_threshold_and_hands_on_the_rest() {
        let mut window = Window { ssthresh: 10, ..Window::new(8) };
        // 12 acknowledged: 2 bring 8 to the threshold 10, the other 10 are a full window: 11.
        window.grow_as_reno(12);
        assert_eq!(window.cwnd, 11);
    }

    #[test]
    fn the_threshold_to_come_back_to_is_three_quarters_of_a_window_that_is_not_being_reduced() {
        let window = Window { ssthresh: 10, ..Window::new(100) };
        // 100/2 + 100/4 = 75; during a reduction the threshold is the target itself.
        assert_eq!((window.current_ssthresh(false), window.current_ssthresh(true)), (75, 10));
    }
}
