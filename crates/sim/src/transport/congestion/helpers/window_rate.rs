//! The pacing rate of the controls that set only their window.

use crate::transport::congestion::{Context, UNPACED, Window};

const NS_PER_S: u64 = 1_000_000_000;

/// The rate that keeps up with the window, in bytes a second (`tcp_update_pacing_rate`).
pub(crate) fn rate_of_window(window: &Window, context: &Context) -> u64 {
    let Some(srtt_ns) = context.srtt_ns.filter(|&ns| ns > 0) else { return UNPACED };
    let percent = u64::from(context.pacing_percent[usize::from(window.cwnd >= window.ssthresh / 2)]);
    let packets = u64::from(window.cwnd.max(context.packets_out));
    let bytes = u128::from(packets * u64::from(context.mss_bytes) * percent / 100);
    u64::try_from(bytes * u128::from(NS_PER_S) / u128::from(srtt_ns)).unwrap_or(UNPACED)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn twice_the_window_a_round_trip_in_slow_start_and_a_fifth_more_above() {
        // 10 packets of 1448 bytes in 100 ms: 144,800 B/s.
        let context = Context { srtt_ns: Some(100 * MS), ..Context::EMPTY };
        assert_eq!(rate_of_window(&Window::new(10), &context), 289_600);
        assert_eq!(rate_of_window(&Window { ssthresh: 20, ..Window::new(10) }, &context), 173_760);
        // More than the window may be in flight, after it was reduced.
        let context = Context { packets_out: 20, ..context };
        assert_eq!(rate_of_window(&Window { ssthresh: 10, ..Window::new(10) }, &context), 347_520);
    }
}
