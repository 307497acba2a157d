//! Pacing: packets leave spaced out at a rate, instead of in bursts when acknowledgements arrive (the kernel's internal
//! pacing, `tcp_pacing_check` and `tcp_update_skb_after_send`).
//!
//! The congestion control sets the rate if it governs. Otherwise the rate is a little more than a window per round
//! trip, so that the window remains the limit.

use crate::transport::congestion::UNPACED;

/// Segments that leave unpaced at the start of a connection.
const UNPACED_SEGMENTS: u32 = 10;
const NS_PER_S: u64 = 1_000_000_000;

/// When the next packet may leave.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    enabled: bool,
    /// The next packet leaves at this time or later (`tcp_wstamp_ns`).
    next_ns: u64,
    /// Data segments sent so far, or dropped by the host, counted up to [`UNPACED_SEGMENTS`].
    segments: u32,
    /// When sending resumes, if the pacer holds packets back.
    wake_ns: Option<u64>,
}

impl Pacer {
    /// A pacer that spaces packets if `enabled`.
    pub(crate) fn new(enabled: bool) -> Self {
        Self { enabled, ..Self::default() }
    }

    /// Whether it paces packets at all.
    #[inline]
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// When the next packet may leave.
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Whether the next packet must wait. If so, sending resumes at [`wake_ns`](Self::wake_ns).
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

    /// Whether it is time to resume sending.
    pub(crate) fn wakes(&mut self, now_ns: u64) -> bool {
        self.wake_ns.take_if(|at_ns| *at_ns <= now_ns).is_some()
    }

    /// How long the next packet still has to wait. Timers that wait for the answer to it are extended by this time.
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

    /// The host dropped a packet of `segments` segments. It is not spaced from the next one, but its time counts as that
    /// of the last packet, so the next one is not late by more than the time since then (`__tcp_transmit_skb` sets
    /// `tcp_wstamp_ns` before it knows the result).
    #[cold]
    pub(crate) fn on_dropped(&mut self, now_ns: u64, segments: u32) {
        self.on_unpaced(now_ns);
        self.segments = (self.segments + segments).min(UNPACED_SEGMENTS);
    }

    /// A segment without payload leaves. It does not wait, but the next packet counts as late only from then on.
    #[inline]
    pub(crate) fn on_unpaced(&mut self, now_ns: u64) {
        if self.enabled {
            self.next_ns = self.next_ns.max(now_ns);
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
        // After a packet that was sent late, the spacing shrinks by up to half to make up for it.
        let late_ns = self.next_ns - before_ns;
        self.next_ns += length_ns - late_ns.min(length_ns / 2);
    }
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
        // The first is 100 ms late and makes up for half of its spacing. The spacing is 1000 B / (1 MB/s) = 1 ms.
        pacer.on_sent(100 * MS, 1000, 1, 1_000_000);
        assert_eq!(pacer.next_ns(), 100 * MS + MS / 2);
        // Packets that leave in time get the full spacing.
        pacer.on_sent(100 * MS + MS / 2, 1000, 1, 1_000_000);
        assert_eq!(pacer.next_ns(), 101 * MS + MS / 2);
        assert!(pacer.holds_back(101 * MS));
        assert_eq!(pacer.wake_ns(), Some(101 * MS + MS / 2));
    }

    #[test]
    fn a_dropped_packet_is_the_last_that_the_next_may_be_late_to() {
        let mut pacer = pacer();
        pacer.on_sent(100 * MS, 1000, 1, 1_000_000);
        // 100 ms after it was due, a packet is dropped; 0.2 ms later, another is accepted, which makes up for that much.
        pacer.on_dropped(200 * MS, 1);
        assert!(!pacer.holds_back(200 * MS), "the next attempt need not wait");
        pacer.on_sent(200 * MS + MS / 5, 1000, 1, 1_000_000);
        assert_eq!(pacer.next_ns(), 201 * MS);
    }

    #[test]
    fn an_acknowledgement_in_between_shortens_the_lateness() {
        let mut pacer = pacer();
        pacer.on_sent(100 * MS, 1000, 1, 1_000_000);
        pacer.on_unpaced(200 * MS);
        pacer.on_sent(200 * MS + MS / 5, 1000, 1, 1_000_000);
        assert_eq!(pacer.next_ns(), 201 * MS);
    }

    #[test]
    fn dropped_segments_count_towards_the_first_ten() {
        let mut pacer = Pacer::new(true);
        (0..5).for_each(|_| pacer.on_dropped(MS, 2));
        pacer.on_sent(MS, 1000, 1, 1_000_000);
        assert!(pacer.holds_back(MS));
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
}
