//! How long the sender was busy, and what limited it (the kernel's `tcp_chrono_start` and `tcp_chrono_stop`).
//!
//! Departs: precise to the nanosecond (the kernel counts jiffies).

use crate::tcp::sender::Sender;

/// What the sender is doing. If several apply, the greatest counts.
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

    /// Stops the running stopwatch and starts another.
    #[cold]
    pub(crate) fn run(&mut self, now_ns: u64, chrono: Chrono) {
        [self.busy_ns, self.window_limited_ns, self.buffer_limited_ns] = self.times_ns(now_ns);
        (self.running, self.since_ns) = (chrono, now_ns);
    }

    /// Three times: how long the sender was busy and limited only by the congestion window or the path, how long the
    /// receiver's window was the limit, and how long the send buffer was the limit.
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
    pub(in crate::tcp::sender) fn note_busy(&mut self, now_ns: u64) {
        let established = self.una > 0;
        if established
            && self.chronograph.running() == Chrono::Idle
            && (self.board.packets_out() > 0 || self.next_new().is_some())
        {
            self.chronograph.run(now_ns, Chrono::Busy);
        }
    }

    /// All sent data is acknowledged. If nothing is left to send, the sender is idle.
    #[cold]
    pub(in crate::tcp::sender) fn note_idle(&mut self, now_ns: u64) {
        if self.next_new().is_none() {
            self.chronograph.run(now_ns, Chrono::Idle);
        }
    }

    /// Notes whether only the receiver's window holds back the next segment (`tcp_write_xmit`).
    #[inline]
    pub(in crate::tcp::sender) fn note_window_limit(&mut self, now_ns: u64, limits: bool) {
        if limits != (self.chronograph.running() == Chrono::WindowLimited) {
            self.note_limit(now_ns, if limits { Chrono::WindowLimited } else { Chrono::Busy });
        }
    }

    /// The window has room, and all data that the buffer let the application write is sent (`tcp_cwnd_validate`).
    pub(in crate::tcp::sender) fn note_buffer_limit(&mut self, now_ns: u64) {
        if self.buffer.is_full() && self.next_new().is_none() {
            self.note_limit(now_ns, Chrono::BufferLimited);
        }
    }

    /// The buffer lets the application continue (`tcp_check_space`).
    pub(in crate::tcp::sender) fn note_buffer_room(&mut self, now_ns: u64) {
        if self.chronograph.running() == Chrono::BufferLimited {
            self.note_limit(now_ns, Chrono::Busy);
        }
    }

    /// Notes a limit, unless a greater one is already noted.
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
