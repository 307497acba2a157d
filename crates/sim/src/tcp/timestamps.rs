//! The clock of the timestamps option (RFC 7323), in milliseconds as on Linux.

const NS_PER_MS: u64 = 1_000_000;

/// The clock at `now_ns`. It starts at 1, because an echo of 0 means that there was nothing to echo.
pub(crate) fn clock(now_ns: u64) -> u32 {
    (now_ns / NS_PER_MS + 1) as u32
}

/// Time since the clock showed `echo`, at least 1 ms; `None` if nothing was echoed.
pub(crate) fn elapsed_ns(now_ns: u64, echo: u32) -> Option<u64> {
    (echo != 0).then(|| u64::from(clock(now_ns).wrapping_sub(echo)).max(1) * NS_PER_MS)
}

/// Whether the clock value `echo` is earlier than `clock`. False if nothing was echoed.
pub(crate) fn is_before(echo: u32, clock: u32) -> bool {
    echo != 0 && (echo.wrapping_sub(clock) as i32) < 0
}

/// The peer's clock value `value` minus our clock value `echo`, in ms; `None` if nothing was echoed. The difference
/// wraps as the clocks do.
pub(crate) fn one_way_ms(value: u32, echo: u32) -> Option<u32> {
    (echo != 0).then(|| value.wrapping_sub(echo))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_gives_the_round_trip_time_to_the_millisecond() {
        assert_eq!(elapsed_ns(52_900_000, clock(10_100_000)), Some(42_000_000));
        assert_eq!(elapsed_ns(10_200_000, clock(10_100_000)), Some(1_000_000));
        assert_eq!(elapsed_ns(10_200_000, 0), None);
    }

    #[test]
    fn the_clock_may_wrap() {
        // 2^32 ms are 49.7 days.
        let start_ns = ((1u64 << 32) - 5) * NS_PER_MS;
        assert_eq!(elapsed_ns(start_ns + 20 * NS_PER_MS, clock(start_ns)), Some(20_000_000));
    }
}
