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

/// The three clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Readings {
    /// The real-time clock.
    pub realtime_ns: u64,
    /// The monotonic clock.
    pub monotonic_ns: u64,
    /// The clock that also runs while the machine is suspended.
    pub boot_ns: u64,
}

impl Readings {
    /// Those of now.
    pub fn now() -> Self {
        Self { realtime_ns: realtime_ns(), monotonic_ns: monotonic_ns(), boot_ns: boot_ns() }
    }

    fn suspended_ns(self) -> u64 {
        self.boot_ns.saturating_sub(self.monotonic_ns)
    }

    /// The real-time clock minus the one that never stops.
    fn ahead_ns(self) -> i64 {
        self.realtime_ns.wrapping_sub(self.boot_ns) as i64
    }
}

/// What falsifies differences of the clock's readings, or breaks a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// The machine was suspended for so many nanoseconds.
    Suspended(u64),
    /// The real-time clock was set by so many nanoseconds.
    Set(i64),
}

impl std::fmt::Display for Break {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Suspended(ns) => write!(to, "this machine was suspended for {} s", ns.div_ceil(SECOND)),
            Self::Set(ns) => write!(to, "this machine's clock was set by {} ms", ns / MS as i64),
        }
    }
}

/// Notices whether the machine was suspended, or its real-time clock was set.
#[derive(Clone, Copy, Debug)]
pub struct ClockWatch {
    then: Readings,
}

/// A clock that is slewed runs faster or slower by at most this much (adjtimex(2)).
const SLEW: f64 = 500e-6;
/// Readings of two clocks one after the other may differ by this much beside.
const READING_NS: f64 = 2e6;
/// Shorter suspensions are not distinguished from readings that are far apart.
const SUSPENDED_NS: u64 = 500 * MS;

impl ClockWatch {
    /// Begins to watch.
    pub fn start() -> Self {
        Self::at(Readings::now())
    }

    /// Begins to watch with these readings.
    pub fn at(then: Readings) -> Self {
        Self { then }
    }

    /// What has happened since then.
    pub fn since(&self, now: Readings) -> Option<Break> {
        let suspended_ns = now.suspended_ns().saturating_sub(self.then.suspended_ns());
        if suspended_ns > SUSPENDED_NS {
            return Some(Break::Suspended(suspended_ns));
        }
        let step_ns = now.ahead_ns().wrapping_sub(self.then.ahead_ns());
        let elapsed_ns = now.boot_ns.saturating_sub(self.then.boot_ns) as f64;
        (step_ns.unsigned_abs() as f64 > READING_NS + SLEW * elapsed_ns).then_some(Break::Set(step_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: Readings =
        Readings { realtime_ns: 1_800_000_000 * SECOND, monotonic_ns: 70 * SECOND, boot_ns: 90 * SECOND };

    /// So much later, of which the machine was suspended for a part, with the real-time clock set by so many milliseconds.
    fn later(seconds: u64, suspended: u64, set_ms: i64) -> Readings {
        Readings {
            realtime_ns: (THEN.realtime_ns + seconds * SECOND).wrapping_add_signed(set_ms * MS as i64),
            monotonic_ns: THEN.monotonic_ns + (seconds - suspended) * SECOND,
            boot_ns: THEN.boot_ns + seconds * SECOND,
        }
    }

    #[test]
    fn a_suspended_machine_is_no_clock_that_was_set() {
        let found = ClockWatch::at(THEN).since(later(130, 120, 0));
        assert_eq!(found, Some(Break::Suspended(120 * SECOND)));
        assert_eq!(found.unwrap().to_string(), "this machine was suspended for 120 s");
        // The clock is often set, too, when the machine wakes.
        assert_eq!(ClockWatch::at(THEN).since(later(130, 120, 900)), Some(Break::Suspended(120 * SECOND)));
    }

    #[test]
    fn a_clock_that_was_set_is_noticed_in_both_directions() {
        for set_ms in [3_600_000, -3_600_000, 10, -10] {
            assert_eq!(ClockWatch::at(THEN).since(later(1, 0, set_ms)), Some(Break::Set(set_ms * MS as i64)));
        }
        assert_eq!(Break::Set(-3 * SECOND as i64).to_string(), "this machine's clock was set by -3000 ms");
    }

    #[test]
    fn slewing_a_stopped_program_and_the_present_are_no_break() {
        let watch = ClockWatch::at(THEN);
        // 500 ppm of an hour are 1.8 s.
        assert_eq!(watch.since(later(3600, 0, 1790)), None);
        assert_eq!(watch.since(later(3600, 0, -1790)), None);
        // While the program is stopped, all clocks go on.
        assert_eq!(watch.since(later(60, 0, 0)), None);
        assert_eq!(ClockWatch::start().since(Readings::now()), None);
    }
}
