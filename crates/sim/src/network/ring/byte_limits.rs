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
    /// What these three were at the last completion: how far the queue was above its limit, what had been accepted, and
    /// the last packet.
    last_excess: u64,
    last_queued: u64,
    last_packet_bytes: u64,
    /// The least that was not needed since `slack_since_ns`; `None`: nothing seen yet.
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

    /// Has the driver accepted more than the limit allows?
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
        // Twice what was completed at once is enough to stay busy. But the end of the last packet that was let in above
        // the limit cannot be taken away.
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
