//! Pacing: packets leave one after the other at a rate, instead of in bursts as acknowledgements allow (the kernel's internal
//! pacing, `tcp_pacing_check` and `tcp_update_skb_after_send`).
//!
//! The congestion control sets the rate if it governs; otherwise the rate is a little more than a window per round
//! trip, so that the window stays the limit.

use super::super::congestion::{Context, UNPACED, Window};

/// Segments that leave unpaced at the start of a connection.
const UNPACED_SEGMENTS: u32 = 10;
const NS_PER_S: u64 = 1_000_000_000;

/// When the next packet may leave.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    enabled: bool,
    /// The next packet leaves at this time or later (`tcp_wstamp_ns`).
    next_ns: u64,
    /// Data segments sent so far, counted up to [`UNPACED_SEGMENTS`].
    segments: u32,
    /// When sending resumes, if the pacer holds something back.
    wake_ns: Option<u64>,
}

impl Pacer {
    /// A pacer that spaces packets if `enabled`.
    pub(crate) fn new(enabled: bool) -> Self {
        Self { enabled, ..Self::default() }
    }

    /// Does it pace packets at all?
    #[inline]
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// When it allows the next packet.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Must the next packet wait? If so, sending resumes at [`wake_ns`](Self::wake_ns).
    #[inline]
    pub(crate) fn holds_back(&mut self, now_ns: u64) -> bool {
        let waits = self.enabled && self.next_ns > now_ns;
        if waits {
            self.wake_ns = Some(self.next_ns);
        }
        waits
    }

    /// When to resume sending.
    pub(crate) fn wake_ns(&self) -> Option<u64> {
        self.wake_ns
    }

    /// Is it time to resume sending?
    pub(crate) fn wakes(&mut self, now_ns: u64) -> bool {
        self.wake_ns.take_if(|at_ns| *at_ns <= now_ns).is_some()
    }

    /// How long the next packet still has to wait: timers that wait for its answer are extended by this.
    #[inline]
    pub(crate) fn delay_ns(&self, now_ns: u64) -> u64 {
        self.next_ns.saturating_sub(now_ns)
    }

    /// A packet leaves, with `len` bytes of payload in `segments` segments.
    #[inline]
    pub(crate) fn on_sent(&mut self, now_ns: u64, len: u32, segments: u32, bytes_per_s: u64) {
        if self.enabled {
            self.space(now_ns, len, segments, bytes_per_s);
        }
    }

    fn space(&mut self, now_ns: u64, len: u32, segments: u32, bytes_per_s: u64) {
        let before_ns = self.next_ns;
        self.next_ns = before_ns.max(now_ns);
        self.segments = (self.segments + segments).min(UNPACED_SEGMENTS);
        if self.segments < UNPACED_SEGMENTS || bytes_per_s == UNPACED || bytes_per_s == 0 {
            return;
        }
        let length_ns = u64::from(len) * NS_PER_S / bytes_per_s;
        // Up to half of the spacing makes up for a packet that was sent late.
        let late_ns = self.next_ns - before_ns;
        self.next_ns += length_ns - late_ns.min(length_ns / 2);
    }
}

/// The rate that keeps up with the window, in bytes a second (`tcp_update_pacing_rate`).
pub(crate) fn rate_of_window(window: &Window, context: &Context) -> u64 {
    let Some(srtt_ns) = context.srtt_ns.filter(|&ns| ns > 0) else { return UNPACED };
    let percent = u64::from(context.pacing_percent[usize::from(window.cwnd >= window.ssthresh / 2)]);
    let packets = u64::from(window.cwnd.max(context.packets_out));
    let bytes = u128::from(packets * u64::from(context.mss_bytes) * percent / 100);
    u64::try_from(bytes * u128::from(NS_PER_S) / u128::from(srtt_ns)).unwrap_or(UNPACED)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A pacer past the first segments.
    fn pacer() -> Pacer {
        Pacer { segments: UNPACED_SEGMENTS, ..Pacer::new(true) }
    }

    #[test]
    fn packets_are_spaced_by_their_length_over_the_rate() {
        let mut pacer = pacer();
        // The first comes 100 ms late and gains half of its spacing: 1000 B / (1 MB/s) = 1 ms, so 0.5 ms.
        pacer.on_sent(100 * MS, 1000, 1, 1_000_000);
        assert_eq!(pacer.next_ns(), 100 * MS + MS / 2);
        // Those that leave in time get all of it.
        pacer.on_sent(100 * MS + MS / 2, 1000, 1, 1_000_000);
        assert_eq!(pacer.next_ns(), 101 * MS + MS / 2);
        assert!(pacer.holds_back(101 * MS));
        assert_eq!(pacer.wake_ns(), Some(101 * MS + MS / 2));
    }

    #[test]
    fn the_first_ten_leave_at_once() {
        let mut pacer = Pacer::new(true);
        let held = (0..12).take_while(|_| {
            let held = pacer.holds_back(MS);
            pacer.on_sent(MS, 1000, 1, 1_000_000);
            !held
        });
        assert_eq!(held.count(), 10);
    }

    #[test]
    fn without_pacing_nothing_waits() {
        let mut pacer = Pacer { segments: UNPACED_SEGMENTS, ..Pacer::new(false) };
        pacer.on_sent(0, 1000, 1, 1);
        assert!(!pacer.holds_back(0));
    }

    #[test]
    fn twice_the_window_a_round_trip_in_slow_start_and_a_fifth_more_above() {
        // 10 packets of 1448 bytes in 100 ms: 144,800 B/s.
        let context = Context { srtt_ns: Some(100 * MS), ..Context::EMPTY };
        assert_eq!(rate_of_window(&Window::new(10), &context), 289_600);
        assert_eq!(rate_of_window(&Window { ssthresh: 20, ..Window::new(10) }, &context), 173_760);
        // More than the window may be in flight, after it was reduced.
        let context = Context { packets_out: 20, ..context };
        assert_eq!(rate_of_window(&Window { ssthresh: 10, ..Window::new(10) }, &context), 347_520);
    }
}
