//! Byte queue limits: how many bytes a driver's ring may hold (Linux' `lib/dynamic_queue_limits.c`).
//!
//! The limit is to be just large enough for the device to stay busy from one completion to the next. A device that had
//! nothing left to send although the limit was exceeded was starved, so the limit grows. If some of what the limit allows
//! was never needed during the hold time, the limit shrinks by that much.
//!
//! The kernel's counters wrap around after 2^32 bytes, which it takes into account; these have 64 bits.

use bufferscope_scenario as scenario;

use crate::timers::Timers;

/// The limit of one queue, and the history that it is computed from. All sizes are in bytes.
#[derive(Debug)]
pub(super) struct ByteLimits {
    parameters: scenario::ByteLimits,
    timers: Timers,
    limit: u64,
    /// Bytes that the driver may have accepted since the start before it is over the limit.
    most_queued: u64,
    /// Accepted by the driver since the start, and completed.
    queued: u64,
    completed: u64,
    /// The size of the last packet.
    last_bytes: u64,
    /// The values at the last completion: how far the queue was above its limit, the bytes accepted, and the size of
    /// the last packet.
    last_excess: u64,
    last_queued: u64,
    last_packet_bytes: u64,
    /// The minimum of the bytes that were not needed since `slack_since_ns`; `None`: nothing seen yet.
    least_slack: Option<u64>,
    slack_since_ns: u64,
}

impl ByteLimits {
    /// The limits of a queue that is created now.
    pub(super) fn new(parameters: scenario::ByteLimits, timers: Timers, now_ns: u64) -> Self {
        Self {
            parameters,
            timers,
            // `min` applies from the first completion on, as in the kernel, where it is set after the queue was created.
            limit: 0,
            most_queued: 0,
            queued: 0,
            completed: 0,
            last_bytes: 0,
            last_excess: 0,
            last_queued: 0,
            last_packet_bytes: 0,
            least_slack: None,
            slack_since_ns: timers.clock_ns(now_ns),
        }
    }

    /// The driver has accepted a packet.
    pub(super) fn queue(&mut self, bytes: u32) {
        self.last_bytes = bytes.into();
        self.queued += u64::from(bytes);
    }

    /// Whether the driver has accepted more than the limit allows.
    pub(super) fn is_exceeded(&self) -> bool {
        self.queued > self.most_queued
    }

    pub(super) fn limit_bytes(&self) -> u64 {
        self.limit
    }

    /// Accepted and not completed.
    pub(super) fn inflight_bytes(&self) -> u64 {
        self.queued - self.completed
    }

    /// The device has reported packets as sent. Computes the limit anew.
    pub(super) fn complete(&mut self, bytes: u64, now_ns: u64) {
        debug_assert!(bytes <= self.inflight_bytes(), "more was completed than the driver had accepted");
        let completed = self.completed + bytes;
        let excess = self.inflight_bytes().saturating_sub(self.limit);
        let is_idle = completed == self.queued;
        // What was in the ring at the last completion is now completed, too: the device may have been idle.
        let had_gap = completed >= self.last_queued;
        let had_work = self.last_queued > self.completed;
        let mut limit = self.limit;
        if excess > 0 && is_idle || self.last_excess > 0 && had_gap {
            limit += completed.saturating_sub(self.last_queued) + self.last_excess;
            self.restart(now_ns);
        } else if !is_idle && had_work && !had_gap {
            limit = self.without_slack(bytes, now_ns);
        }
        limit = limit.clamp(self.parameters.min_bytes, self.parameters.max_bytes);
        let has_changed = limit != self.limit;
        self.limit = limit;
        self.most_queued = limit + completed;
        self.last_excess = if has_changed { 0 } else { excess };
        self.last_packet_bytes = self.last_bytes;
        self.completed = completed;
        self.last_queued = self.queued;
    }

    /// The limit at a completion through which the device was busy: shorter by the slack if the hold time is over.
    fn without_slack(&mut self, completed_bytes: u64, now_ns: u64) -> u64 {
        // Twice what was completed at once is enough to stay busy. But the part of the last packet that exceeded the
        // limit cannot be taken back.
        let unneeded = (self.limit + self.last_excess).saturating_sub(2 * completed_bytes);
        let below_limit =
            if self.last_excess > 0 { self.last_packet_bytes.saturating_sub(self.last_excess) } else { 0 };
        let slack = unneeded.max(below_limit);
        let least = self.least_slack.map_or(slack, |least| least.min(slack));
        self.least_slack = Some(least);
        if self.timers.clock_ns(now_ns) <= self.slack_since_ns + self.parameters.hold_ns {
            return self.limit;
        }
        self.restart(now_ns);
        self.limit.saturating_sub(least)
    }

    /// Slack is observed from now on.
    fn restart(&mut self, now_ns: u64) {
        self.slack_since_ns = self.timers.clock_ns(now_ns);
        self.least_slack = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1000 * MS;
    const FRAME: u64 = 1514;
    /// How long a full frame takes at 10 Mbit/s.
    const FRAME_NS: u64 = 1_211_200;

    fn limits(parameters: scenario::ByteLimits) -> ByteLimits {
        ByteLimits::new(parameters, Timers::Exact, 0)
    }

    /// Lets in full frames until the limit is exceeded.
    fn fill(limits: &mut ByteLimits) {
        while !limits.is_exceeded() {
            limits.queue(FRAME as u32);
        }
    }

    #[test]
    fn a_busy_queue_needs_two_full_frames_when_they_are_reported_one_by_one() {
        // Before any report, one frame is let in. Below, q and c are the frames accepted and completed since the start,
        // and x is the excess that is remembered. Each line is one report.
        //   limit 0: q = 1, c = 1: idle and over the limit: limit = 1 - 0 = 1, x = 0. Let in: q = 3 (over c + limit = 2).
        //   limit 1: q = 3, c = 2: x = 2 - 1 = 1, had no work before: unchanged. q = 4.
        //   limit 1: q = 4, c = 3: x was 1 and all 3 of then are completed: limit = 1 + 0 + 1 = 2, x = 0. q = 6.
        //   limit 2: q = 6, c = 4: x = 3 - 2 = 1, but all 4 of then are completed: unchanged. q = 7.
        //   limit 2: q = 7, c = 5: 6 of then are not completed: slack is (2 + 1) - 2 * 1 = 1. And so on.
        // The limit grew last at the third report, so the slack of a frame is taken off at the first report that is more
        // than a second later, number 829 (828.6 frames take a second and 3.6336 ms). Then q = c + 2 without room, and
        // after that a frame is let in per report:
        //   limit 1, number 830: x = 2 - 1 = 1, slack 0: unchanged.
        //   limit 1, number 831: all of then are completed: limit = 1 + 0 + 1 = 2.
        let mut limits = limits(scenario::ByteLimits::DEFAULT);
        let mut seen = vec![0];
        for n in 1..=840 {
            fill(&mut limits);
            limits.complete(FRAME, n * FRAME_NS);
            seen.push(limits.limit_bytes() / FRAME);
        }
        assert_eq!(seen[..5], [0, 1, 1, 2, 2]);
        assert!(seen[5..829].iter().all(|&limit| limit == 2));
        assert_eq!(seen[829..834], [1, 1, 2, 2, 2]);
        fill(&mut limits);
        assert_eq!(limits.inflight_bytes(), 3 * FRAME);
    }

    #[test]
    fn a_queue_whose_frames_are_reported_by_eight_needs_sixteen() {
        // The device reports eight frames, or what it has when it is idle. In frames, with q, c and x as above:
        //   1 in the ring, idle: limit = 0 + 1 = 1. Let in: 2.
        //   2 in the ring, idle, over the limit: limit = 1 + 2 = 3. Let in: 4.
        //   4 in the ring, likewise: limit = 3 + 4 = 7; 8 in the ring: limit = 7 + 8 = 15. Let in: 16.
        //   q = 31, c = 15 + 8 = 23: x = 16 - 15 = 1, had no work before: unchanged. q = 39.
        //   c = 31: x was 1, and all 31 of then are completed: limit = 15 + 0 + 1 = 16. q = 48.
        //   c = 39: all 39 of then are completed, but x was 0: unchanged, x = 17 - 16 = 1.
        //   c = 47: 48 of then: slack is (16 + 1) - 2 * 8 = 1.
        let mut limits = limits(scenario::ByteLimits::DEFAULT);
        let mut seen = Vec::new();
        for n in 0..8 {
            fill(&mut limits);
            limits.complete(limits.inflight_bytes().min(8 * FRAME), n * MS);
            seen.push(limits.limit_bytes() / FRAME);
        }
        assert_eq!(seen, [1, 3, 7, 15, 15, 16, 16, 16]);
        assert_eq!(limits.least_slack, Some(FRAME));
    }

    #[test]
    fn the_limit_keeps_within_its_bounds() {
        let default = scenario::ByteLimits::DEFAULT;
        for (bounds, expected) in [
            (scenario::ByteLimits { max_bytes: 1000, ..default }, 1000),
            (scenario::ByteLimits { min_bytes: 9000, ..default }, 9000),
            (default, FRAME),
        ] {
            let mut limits = limits(bounds);
            assert_eq!(limits.limit_bytes(), 0, "nothing is computed before the first report");
            fill(&mut limits);
            assert_eq!(limits.inflight_bytes(), FRAME);
            limits.complete(FRAME, 0);
            assert_eq!(limits.limit_bytes(), expected);
        }
    }

    /// The limit after packets of 2000, 200 and 800 bytes are reported as sent, the last at `at_ns`. They are followed by one
    /// of 1500 bytes.
    fn after_small_ones(timers: Timers, start_ns: u64, at_ns: u64) -> u64 {
        let mut limits = ByteLimits::new(scenario::ByteLimits::DEFAULT, timers, 0);
        limits.queue(2000);
        // Idle and over the limit: limit = 2000 - 0, so 4000 bytes may be accepted in all.
        limits.complete(2000, start_ns);
        for bytes in [200, 800, 1500] {
            assert!(!limits.is_exceeded());
            limits.queue(bytes);
        }
        assert!(limits.is_exceeded(), "4500 bytes");
        // 2500 - 2000 = 500 above the limit, had no work before.
        limits.complete(200, start_ns);
        assert_eq!(limits.limit_bytes(), 2000);
        // Of the limit and the excess of 500, twice 800 bytes are needed: 900 are not. But 1500 - 500 = 1000 bytes of the
        // last packet were below the limit.
        limits.complete(800, at_ns);
        limits.limit_bytes()
    }

    #[test]
    fn slack_is_at_least_the_part_of_the_last_packet_below_the_limit() {
        assert_eq!(after_small_ones(Timers::Exact, 0, SECOND), 2000, "the hold time is not over");
        assert_eq!(after_small_ones(Timers::Exact, 0, SECOND + 1), 1000);
    }

    #[test]
    fn the_hold_time_is_counted_in_jiffies() {
        // The limit grew at 3.9 ms, in jiffy 0. A second is 250 jiffies, so it is over in jiffy 251, from 1.004 s on.
        let young = Timers::Jiffies { age_ns: 0 };
        let start_ns = 3_900_000;
        assert_eq!(after_small_ones(young, start_ns, 1004 * MS - 1), 2000);
        assert_eq!(after_small_ones(young, start_ns, 1004 * MS), 1000);
    }
}
