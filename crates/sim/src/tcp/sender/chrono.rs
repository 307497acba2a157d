//! For how long the sender had something to do, and what kept it from doing more (the kernel's `tcp_chrono_start` and
//! `tcp_chrono_stop`).
//!
//! Departs: to the nanosecond (the kernel counts jiffies).

use super::Sender;

/// What the sender is about. Of two that hold the greater counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Chrono {
    /// Nothing is to be sent or to be acknowledged.
    #[default]
    Idle,
    /// Something is (`TCP_CHRONO_BUSY`).
    Busy,
    /// More could be sent if the receiver's window allowed it (`TCP_CHRONO_RWND_LIMITED`).
    WindowLimited,
}

/// Stopwatches, of which one runs at most.
#[derive(Debug, Default)]
pub(crate) struct Chronograph {
    running: Chrono,
    since_ns: u64,
    /// Time spent so far with each but [`Chrono::Idle`].
    busy_ns: u64,
    window_limited_ns: u64,
}

impl Chronograph {
    /// Which one runs.
    #[inline]
    pub(crate) fn running(&self) -> Chrono {
        self.running
    }

    /// Stops the one that runs and starts another.
    #[cold]
    pub(crate) fn run(&mut self, now_ns: u64, chrono: Chrono) {
        [self.busy_ns, self.window_limited_ns] = self.times_ns(now_ns);
        (self.running, self.since_ns) = (chrono, now_ns);
    }

    /// Time in which there was something to do and nothing but the congestion window or the path limited, and time in which the
    /// receiver's window did.
    pub(crate) fn times_ns(&self, now_ns: u64) -> [u64; 2] {
        let lap_ns = now_ns - self.since_ns;
        match self.running {
            Chrono::Idle => [self.busy_ns, self.window_limited_ns],
            Chrono::Busy => [self.busy_ns + lap_ns, self.window_limited_ns],
            Chrono::WindowLimited => [self.busy_ns, self.window_limited_ns + lap_ns],
        }
    }
}

impl Sender {
    /// There is something to do (the first data in `tcp_add_write_queue_tail`).
    pub(super) fn note_busy(&mut self, now_ns: u64) {
        let established = self.una > 0;
        if established
            && self.chronograph.running() == Chrono::Idle
            && (self.board.packets_out() > 0 || self.next_new().is_some())
        {
            self.chronograph.run(now_ns, Chrono::Busy);
        }
    }

    /// What was sent is acknowledged, all of it; if nothing is left to be sent there is nothing to do.
    #[cold]
    pub(super) fn note_idle(&mut self, now_ns: u64) {
        if self.next_new().is_none() {
            self.chronograph.run(now_ns, Chrono::Idle);
        }
    }

    /// The next segment could be sent but for the receiver's window, or this is not so any more (`tcp_write_xmit`).
    #[inline]
    pub(super) fn note_window_limit(&mut self, now_ns: u64, limits: bool) {
        if limits != (self.chronograph.running() == Chrono::WindowLimited) {
            self.chronograph.run(now_ns, if limits { Chrono::WindowLimited } else { Chrono::Busy });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_counts_for_what_limited_then() {
        let mut chronograph = Chronograph::default();
        assert_eq!(chronograph.times_ns(5), [0, 0], "idle");
        chronograph.run(10, Chrono::Busy);
        chronograph.run(30, Chrono::WindowLimited);
        assert_eq!(chronograph.times_ns(35), [20, 5], "also while it runs");
        chronograph.run(40, Chrono::Busy);
        chronograph.run(41, Chrono::Idle);
        assert_eq!(chronograph.times_ns(100), [21, 10]);
    }
}
