//! How long the sender was busy, and what limited it (the kernel's `tcp_chrono_start` and `tcp_chrono_stop`).
//!
//! Departs: precise to the nanosecond (the kernel counts jiffies).

use super::Sender;

/// What the sender is doing. If two apply, the greater one counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Chrono {
    /// There is nothing to send or to be acknowledged.
    #[default]
    Idle,
    /// There is data to send or to be acknowledged (`TCP_CHRONO_BUSY`).
    Busy,
    /// More could be sent if the receiver's window allowed it (`TCP_CHRONO_RWND_LIMITED`).
    WindowLimited,
    /// More could be sent if the send buffer let the application write it (`TCP_CHRONO_SNDBUF_LIMITED`).
    BufferLimited,
}

/// Stopwatches, at most one of which is running.
#[derive(Debug, Default)]
pub(crate) struct Chronograph {
    running: Chrono,
    since_ns: u64,
    /// Time spent so far in each state except [`Chrono::Idle`].
    busy_ns: u64,
    window_limited_ns: u64,
    buffer_limited_ns: u64,
}

impl Chronograph {
    /// Which one is running.
    #[inline]
    pub(crate) fn running(&self) -> Chrono {
        self.running
    }

    /// Stops the one that runs and starts another.
    #[cold]
    pub(crate) fn run(&mut self, now_ns: u64, chrono: Chrono) {
        [self.busy_ns, self.window_limited_ns, self.buffer_limited_ns] = self.times_ns(now_ns);
        (self.running, self.since_ns) = (chrono, now_ns);
    }

    /// Three times: while the sender was busy and limited only by the congestion window or the path; while the
    /// receiver's window was the limit; and while the send buffer was.
    pub(crate) fn times_ns(&self, now_ns: u64) -> [u64; 3] {
        let lap_ns = |chrono| if self.running == chrono { now_ns - self.since_ns } else { 0 };
        [
            self.busy_ns + lap_ns(Chrono::Busy),
            self.window_limited_ns + lap_ns(Chrono::WindowLimited),
            self.buffer_limited_ns + lap_ns(Chrono::BufferLimited),
        ]
    }
}

impl Sender {
    /// There is data to send (the first data in `tcp_add_write_queue_tail`).
    pub(super) fn note_busy(&mut self, now_ns: u64) {
        let established = self.una > 0;
        if established
            && self.chronograph.running() == Chrono::Idle
            && (self.board.packets_out() > 0 || self.next_new().is_some())
        {
            self.chronograph.run(now_ns, Chrono::Busy);
        }
    }

    /// All that was sent is acknowledged; if nothing is left to send, the sender is idle.
    #[cold]
    pub(super) fn note_idle(&mut self, now_ns: u64) {
        if self.next_new().is_none() {
            self.chronograph.run(now_ns, Chrono::Idle);
        }
    }

    /// Only the receiver's window holds back the next segment, or this is no longer so (`tcp_write_xmit`).
    #[inline]
    pub(super) fn note_window_limit(&mut self, now_ns: u64, limits: bool) {
        if limits != (self.chronograph.running() == Chrono::WindowLimited) {
            self.note_limit(now_ns, if limits { Chrono::WindowLimited } else { Chrono::Busy });
        }
    }

    /// The window has room, and all is sent that the buffer let the application write (`tcp_cwnd_validate`).
    pub(super) fn note_buffer_limit(&mut self, now_ns: u64) {
        if self.buffer.is_full() && self.next_new().is_none() {
            self.note_limit(now_ns, Chrono::BufferLimited);
        }
    }

    /// The buffer lets the application continue (`tcp_check_space`).
    pub(super) fn note_buffer_room(&mut self, now_ns: u64) {
        if self.chronograph.running() == Chrono::BufferLimited {
            self.note_limit(now_ns, Chrono::Busy);
        }
    }

    /// A greater limit that is already known stays.
    #[cold]
    fn note_limit(&mut self, now_ns: u64, chrono: Chrono) {
        if chrono == Chrono::Busy || self.chronograph.running() < chrono {
            self.chronograph.run(now_ns, chrono);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_counts_for_what_limited_then() {
        let mut chronograph = Chronograph::default();
        assert_eq!(chronograph.times_ns(5), [0; 3], "idle");
        chronograph.run(10, Chrono::Busy);
        chronograph.run(30, Chrono::WindowLimited);
        assert_eq!(chronograph.times_ns(35), [20, 5, 0], "also while it runs");
        chronograph.run(40, Chrono::Busy);
        chronograph.run(41, Chrono::BufferLimited);
        chronograph.run(44, Chrono::Idle);
        assert_eq!(chronograph.times_ns(100), [21, 10, 3]);
    }
}
