//! Queueing delay: the current delay minus the smallest delay of the last minutes (RFC 6817, section 2.4.2).

/// The smallest delay is remembered for this many minutes (`BASE_HISTORY`; section 2.5: 10).
const BASE_HISTORY: usize = 10;
/// The smallest of this many delays counts as the current delay; none of them is older than a round trip
/// (`CURRENT_FILTER`: at least four). So a delayed acknowledgement does not look like a queue.
const CURRENT_FILTER: usize = 4;
const MINUTE_NS: u64 = 60_000_000_000;

/// The delays measured so far, in ns. Their zero point does not matter, as long as it stays the same.
#[derive(Debug)]
pub(crate) struct QueueingDelay {
    /// The smallest of each minute, the current one last.
    base_ns: [i64; BASE_HISTORY],
    /// The current minute, counted from the start.
    minute: Option<u64>,
    /// The last ones, with the time at which they were measured; the newest is the one before `next`.
    current: [(u64, i64); CURRENT_FILTER],
    next: usize,
}

impl QueueingDelay {
    /// Nothing measured yet.
    pub(crate) fn new() -> Self {
        Self { base_ns: [i64::MAX; BASE_HISTORY], minute: None, current: [(0, i64::MAX); CURRENT_FILTER], next: 0 }
    }

    /// Takes a delay in.
    pub(crate) fn add(&mut self, now_ns: u64, delay_ns: i64) {
        let minute = Some(now_ns / MINUTE_NS);
        if self.minute != minute {
            self.minute = minute;
            self.base_ns.rotate_left(1);
            self.base_ns[BASE_HISTORY - 1] = i64::MAX;
        }
        let last = &mut self.base_ns[BASE_HISTORY - 1];
        *last = delay_ns.min(*last);
        self.current[self.next] = (now_ns, delay_ns);
        self.next = (self.next + 1) % CURRENT_FILTER;
    }

    /// The delay without a queue; `None` before the first measurement.
    pub(crate) fn base_ns(&self) -> Option<i64> {
        self.base_ns.iter().copied().min().filter(|_| self.minute.is_some())
    }

    /// The queue's part of the current delay, which is the smallest of the newest measurement and those of the last
    /// `rtt_ns`. `None` before the first measurement.
    pub(crate) fn now_ns(&self, now_ns: u64, rtt_ns: u64) -> Option<u64> {
        let base_ns = self.base_ns()?;
        let newest = (self.next + CURRENT_FILTER - 1) % CURRENT_FILTER;
        let is_recent = |&(index, (at_ns, _)): &(usize, (u64, i64))| index == newest || at_ns + rtt_ns >= now_ns;
        let current =
            self.current.into_iter().enumerate().filter(is_recent).map(|(_, (_, delay_ns))| delay_ns).min()?;
        Some(u64::try_from(current - base_ns).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const MS_DELAY: i64 = 1_000_000;

    /// Delays in ms, one every 10 ms from a time on.
    fn add(delays: &mut QueueingDelay, from_ns: u64, all_ms: &[i64]) {
        (0u64..).zip(all_ms).for_each(|(n, &ms)| delays.add(from_ns + 10 * MS * n, ms * MS_DELAY));
    }

    #[test]
    fn the_smallest_of_four_less_the_smallest_of_all() {
        let mut delays = QueueingDelay::new();
        assert_eq!(delays.now_ns(0, 100 * MS), None);
        add(&mut delays, 0, &[10, 90, 40, 80, 90]);
        // 90, 40, 80, 90 are the last four.
        assert_eq!(delays.now_ns(40 * MS, 100 * MS), Some(30 * MS));
    }

    #[test]
    fn a_delay_longer_ago_than_a_round_trip_says_nothing_of_now() {
        let mut delays = QueueingDelay::new();
        add(&mut delays, 0, &[10, 20, 90, 80]);
        // At 30 ms, with a round trip of 15 ms: those of 20 and 30 ms.
        assert_eq!(delays.now_ns(30 * MS, 15 * MS), Some(70 * MS));
        // The newest always counts.
        assert_eq!(delays.now_ns(300 * MS, 15 * MS), Some(70 * MS));
    }

    #[test]
    fn the_origin_does_not_matter() {
        let mut delays = QueueingDelay::new();
        add(&mut delays, 0, &[-500, -480, -480, -480, -480]);
        assert_eq!(delays.now_ns(40 * MS, 100 * MS), Some(20 * MS));
    }

    #[test]
    fn a_longer_path_is_believed_after_ten_minutes() {
        let mut delays = QueueingDelay::new();
        add(&mut delays, 0, &[10]);
        let queue_after = |delays: &mut QueueingDelay, minute: u64| {
            delays.add(minute * MINUTE_NS, 50 * MS_DELAY);
            delays.now_ns(minute * MINUTE_NS, 100 * MS)
        };
        // The route has become 40 ms longer. For the rest of the ten minutes, this looks like a queue.
        assert!((1..10).all(|minute| queue_after(&mut delays, minute) == Some(40 * MS)));
        assert_eq!(queue_after(&mut delays, 10), Some(0));
        // A shorter one is trusted at once.
        delays.add(10 * MINUTE_NS + 1, 30 * MS_DELAY);
        assert_eq!(delays.base_ns(), Some(30 * MS_DELAY));
    }
}
