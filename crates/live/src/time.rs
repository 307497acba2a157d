//! The two clocks of a test. Packets are stamped with the real-time clock, by the kernel and by this program alike; what
//! is due, and how long something took here, goes by the monotonic clock.

use bufferscope_endpoint::clock::read;
use nix::time::ClockId;

/// A millisecond.
pub const MS: u64 = 1_000_000;
/// A second.
pub const SECOND: u64 = 1_000_000_000;

/// The real-time clock, in nanoseconds since 1970.
pub fn realtime_ns() -> u64 {
    read(ClockId::CLOCK_REALTIME)
}

/// The monotonic clock, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// The clock that also runs while the machine is suspended, in nanoseconds.
pub fn boot_ns() -> u64 {
    read(ClockId::CLOCK_BOOTTIME)
}

/// Notices whether the real-time clock was set during a test, which falsifies differences of its readings.
#[derive(Clone, Copy, Debug)]
pub struct ClockWatch {
    ahead_ns: i64,
    since_ns: u64,
}

/// A clock that is slewed runs faster or slower by at most this much (adjtimex(2)).
const SLEW: f64 = 500e-6;
/// Readings of two clocks one after the other may differ by this much beside.
const READING_NS: f64 = 2e6;

impl ClockWatch {
    /// Begins to watch.
    pub fn start() -> Self {
        Self { ahead_ns: ahead_ns(), since_ns: monotonic_ns() }
    }

    /// By how many nanoseconds the clock was set since then; `None`: not at all.
    pub fn step_ns(&self) -> Option<i64> {
        let step_ns = ahead_ns() - self.ahead_ns;
        let allowed_ns = READING_NS + SLEW * (monotonic_ns() - self.since_ns) as f64;
        (step_ns.unsigned_abs() as f64 > allowed_ns).then_some(step_ns)
    }
}

fn ahead_ns() -> i64 {
    realtime_ns() as i64 - monotonic_ns() as i64
}
