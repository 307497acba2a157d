//! When frames leave a wire.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bufferscope_plan::Wire;
use bufferscope_scenario::Encapsulation;
use bufferscope_scenario::sizes::ETHERNET_HEADER_BYTES;

/// Computes when frames leave a wire. They are sent one after the other, and each then propagates.
pub(super) struct Sending {
    pub(super) rate_bps: Arc<AtomicU64>,
    encapsulation: Encapsulation,
    delay_ns: u64,
    free_at_ns: u64,
}

impl Sending {
    pub(super) fn new(wire: Wire) -> Self {
        let Wire { rate_bps, encapsulation, delay_ns } = wire;
        Self { rate_bps: Arc::new(rate_bps.unwrap_or(0).into()), encapsulation, delay_ns, free_at_ns: 0 }
    }

    /// When a frame that arrives at `now_ns` will leave. `max` also keeps the order of frames if the real-time clock is
    /// set back.
    pub(super) fn send(&mut self, now_ns: u64, frame_bytes: usize) -> u64 {
        let ip_bytes = (frame_bytes as u32).saturating_sub(ETHERNET_HEADER_BYTES);
        let bits = u64::from(self.encapsulation.frame_bytes(ip_bytes)) * 8;
        let sent_ns = (bits * 1_000_000_000).checked_div(self.rate_bps.load(Relaxed)).unwrap_or(0);
        self.free_at_ns = self.free_at_ns.max(now_ns) + sent_ns;
        self.free_at_ns + self.delay_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(rate_bps: Option<u64>, overhead_bytes: u32) -> Sending {
        Sending::new(Wire { rate_bps, encapsulation: Encapsulation::adding(overhead_bytes), delay_ns: 5_000_000 })
    }

    #[test]
    fn frames_are_sent_one_after_the_other_and_then_propagate() {
        // 1514 bytes take 1,211,200 ns at 10 Mbit/s.
        let mut wire = wire(Some(10_000_000), 14);
        assert_eq!(wire.send(100, 1514), 100 + 1_211_200 + 5_000_000);
        assert_eq!(wire.send(200, 1514), 100 + 2 * 1_211_200 + 5_000_000, "it waits for the one before");
        assert_eq!(wire.send(9_000_000, 1514), 9_000_000 + 1_211_200 + 5_000_000, "the wire was idle");
    }

    #[test]
    fn overhead_counts_and_a_new_rate_holds_from_the_next_frame_on() {
        // 1500 bytes plus 38 of the link layer: 1538 bytes are 12,304 bits.
        let mut wire = wire(Some(1_000_000), 38);
        assert_eq!(wire.send(0, 1514), 12_304_000 + 5_000_000);
        wire.rate_bps.store(100_000_000, Relaxed);
        assert_eq!(wire.send(0, 1514), 12_304_000 + 123_040 + 5_000_000);
    }

    #[test]
    fn a_wire_without_a_rate_only_delays() {
        let mut wire = wire(None, 0);
        assert_eq!((wire.send(1, 1514), wire.send(2, 1514)), (5_000_001, 5_000_002));
        assert_eq!(wire.send(3, 4), 5_000_003, "no frame is shorter than nothing");
    }

    #[test]
    fn frames_keep_their_order_if_the_clock_is_set_back() {
        let mut wire = wire(None, 0);
        let first_ns = wire.send(9_000_000, 1514);
        assert_eq!(wire.send(1, 1514), first_ns);
        assert!(wire.send(9_000_001, 1514) > first_ns);
    }
}
