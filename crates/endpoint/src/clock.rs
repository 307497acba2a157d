//! The only time base of a run: nanoseconds since its start, on the monotonic clock.

use nix::time::{ClockId, clock_gettime};

/// Readings no further apart than this count as simultaneous; reading a clock takes some tens of nanoseconds.
const AT_ONCE_NS: u64 = 10_000;
/// If this many readings do not suffice, the closest pair is used.
const READINGS: usize = 5;

/// Counts from the start of the run.
#[derive(Clone, Copy, Debug)]
pub struct RunClock {
    start_ns: u64,
}

impl RunClock {
    /// The clock of a run that starts after `lead_ns`; until then its time is 0.
    pub fn starting_in(lead_ns: u64) -> Self {
        Self { start_ns: read(ClockId::CLOCK_MONOTONIC) + lead_ns }
    }

    /// The run's time.
    pub fn now_ns(&self) -> u64 {
        read(ClockId::CLOCK_MONOTONIC).saturating_sub(self.start_ns)
    }

    /// Whether a time of the run has been reached.
    pub fn has_come(&self, run_ns: u64) -> bool {
        read(ClockId::CLOCK_MONOTONIC) >= self.monotonic_ns(run_ns)
    }

    /// The monotonic clock's reading at a time of the run.
    pub fn monotonic_ns(&self, run_ns: u64) -> u64 {
        self.start_ns + run_ns
    }

    /// What the real-time clock showed at the run's start, judging from what it shows now.
    pub fn start_realtime_ns(&self) -> u64 {
        let (monotonic_ns, now_ns) = at_once();
        now_ns.wrapping_add(self.start_ns).wrapping_sub(monotonic_ns)
    }

    /// The time of the run at which the real-time clock showed `realtime_ns`. The kernel stamps packets with that
    /// clock. The result is exact only if the clock has not been set since then, so use it only for recent stamps.
    pub fn at_realtime(&self, realtime_ns: u64) -> u64 {
        let (monotonic_ns, now_ns) = at_once();
        let ago_ns = now_ns.saturating_sub(realtime_ns);
        monotonic_ns.saturating_sub(self.start_ns).saturating_sub(ago_ns)
    }
}

/// Reads the monotonic and the real-time clock at the same time. If this thread lost its CPU in between, it reads them
/// again.
pub fn at_once() -> (u64, u64) {
    let read_both = || {
        let before_ns = read(ClockId::CLOCK_MONOTONIC);
        let realtime_ns = read(ClockId::CLOCK_REALTIME);
        (read(ClockId::CLOCK_MONOTONIC) - before_ns, before_ns, realtime_ns)
    };
    let mut best = read_both();
    for _ in 1..READINGS {
        if best.0 <= AT_ONCE_NS {
            break;
        }
        best = best.min(read_both());
    }
    (best.1, best.2)
}

/// A clock's reading in nanoseconds.
pub fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("Linux has this clock, and the time lies after 1970");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

/// A time of the day and its date, in the time zone of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// Year, month (from 1) and day.
    pub date: [i32; 3],
    /// Hour, minute and second.
    pub time: [i32; 3],
}

impl std::fmt::Display for LocalTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ([year, month, day], [hour, minute, second]) = (self.date, self.time);
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
    }
}

/// The local time of a number of seconds since 1970; `None` if it has none (localtime_r(3)).
#[allow(unsafe_code)]
pub fn local_time(realtime_s: u64) -> Option<LocalTime> {
    let seconds = nix::libc::time_t::try_from(realtime_s).ok()?;
    // SAFETY: `tm` is plain data, for which zero is a valid value.
    let mut found: nix::libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are valid for the time of the call.
    let filled = unsafe { nix::libc::localtime_r(&seconds, &mut found) };
    (!filled.is_null()).then_some(LocalTime {
        date: [found.tm_year.saturating_add(1900), found.tm_mon + 1, found.tm_mday],
        time: [found.tm_hour, found.tm_min, found.tm_sec],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_time_is_within_a_day_of_the_universal_one() {
        // 2027-01-15 08:00:00 UTC.
        let found = local_time(1_800_000_000).unwrap();
        assert!(found.to_string().starts_with("2027-01-1"), "{found}");
        assert_eq!(found.to_string().len(), 19);
        assert_eq!(local_time(u64::MAX), None);
    }
}
