//! Limits of what a server's load connections send and receive.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::time::{SECOND, monotonic_ns};

/// The bytes that all connections of a session may use together.
#[derive(Debug)]
pub struct Budget(AtomicU64);

impl Budget {
    /// So many.
    pub fn new(bytes: u64) -> Self {
        Self(AtomicU64::new(bytes))
    }

    /// Takes these from it.
    pub fn spend(&self, bytes: u64) {
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(bytes)));
    }

    /// What is left.
    pub fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// After a pause, so much time's worth of bytes may leave at once.
const BURST_NS: u64 = SECOND / 200;

/// The rate at which all connections of a server send together.
#[derive(Debug)]
pub struct Pace {
    bps: u64,
    /// When the bytes sent so far would have left at this rate.
    due_ns: Mutex<u64>,
}

impl Pace {
    /// So many bits per second.
    pub fn new(bps: u64) -> Self {
        Self { bps: bps.max(1), due_ns: Mutex::new(0) }
    }

    /// How long a connection must wait before it sends; `None`: not at all.
    pub fn wait(&self) -> Option<Duration> {
        self.wait_at(monotonic_ns())
    }

    /// These bytes were sent.
    pub fn spend(&self, bytes: u64) {
        self.spend_at(bytes, monotonic_ns());
    }

    fn wait_at(&self, now_ns: u64) -> Option<Duration> {
        let due_ns = *self.due_ns.lock().unwrap_or_else(PoisonError::into_inner);
        due_ns.checked_sub(now_ns).filter(|&wait_ns| wait_ns > 0).map(Duration::from_nanos)
    }

    fn spend_at(&self, bytes: u64, now_ns: u64) {
        let mut due_ns = self.due_ns.lock().unwrap_or_else(PoisonError::into_inner);
        let takes_ns = u128::from(bytes) * 8 * u128::from(SECOND) / u128::from(self.bps);
        let from_ns = (*due_ns).max(now_ns.saturating_sub(BURST_NS));
        *due_ns = from_ns.saturating_add(u64::try_from(takes_ns).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MS;

    #[test]
    fn a_budget_ends_at_nothing() {
        let budget = Budget::new(10);
        budget.spend(7);
        assert_eq!(budget.left(), 3);
        budget.spend(7);
        assert_eq!(budget.left(), 0);
    }

    #[test]
    fn bytes_leave_at_the_rate_also_after_a_pause() {
        // 8 Mbit/s: a thousand bytes are one millisecond.
        let pace = Pace::new(8_000_000);
        let mut sent = 0;
        for ms in 1000..2000 {
            while pace.wait_at(ms * MS).is_none() {
                pace.spend_at(1000, ms * MS);
                sent += 1000;
            }
        }
        assert!((1_000_000..1_010_000).contains(&sent), "{sent}");
        pace.spend_at(1000, 60_000 * MS);
        assert_eq!(pace.wait_at(60_000 * MS), None, "within the burst");
        pace.spend_at(5000, 60_000 * MS);
        assert_eq!(pace.wait_at(60_000 * MS), Some(Duration::from_millis(1)));
    }
}
