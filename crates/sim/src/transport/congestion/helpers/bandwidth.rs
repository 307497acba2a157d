//! Bandwidths and gains in fixed point, and the windows and pacing rates computed from them. The arithmetic is that of
//! the kernel's `tcp_bbr.c`; both versions of BBR share it.

use crate::transport::congestion::{Context, RateSample};

/// Fractional bits of a bandwidth in packets per µs (`BW_SCALE`): the unit is some 715 bit/s.
const BANDWIDTH_SHIFT: u32 = 24;
/// Fractional bits of a gain (`BBR_SCALE`).
const GAIN_SHIFT: u32 = 8;
const NS_PER_US: u64 = 1_000;
const US_PER_S: u128 = 1_000_000;
/// Packets leave at a rate this many per cent below the bandwidth, so that queues do not grow
/// (`bbr_pacing_margin_percent`; draft-ietf-ccwg-bbr-06, section 5.6.2).
const PACING_MARGIN_PERCENT: u128 = 1;

/// A factor in units of 1/256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Gain(u32);

/// A delivery rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bandwidth(u64);

impl Gain {
    /// 1.
    pub(crate) const ONE: Self = Self(1 << GAIN_SHIFT);

    /// `numerator / denominator`, rounded down to 1/256.
    pub(crate) const fn of(numerator: u32, denominator: u32) -> Self {
        Self((numerator << GAIN_SHIFT) / denominator)
    }

    /// The next larger gain, by 1/256.
    pub(crate) const fn next_up(self) -> Self {
        Self(self.0 + 1)
    }

    /// 1 minus this gain.
    pub(crate) const fn complement(self) -> Self {
        Self(Self::ONE.0 - self.0)
    }

    /// `packets` times this gain, rounded down.
    pub(crate) fn times(self, packets: u32) -> u32 {
        clamp((u128::from(packets) * u128::from(self.0)) >> GAIN_SHIFT)
    }

    /// `packets` times this gain, rounded up.
    pub(crate) fn times_rounded_up(self, packets: u32) -> u32 {
        clamp((u128::from(packets) * u128::from(self.0)).div_ceil(1 << GAIN_SHIFT))
    }

    /// `packets` divided by this gain, rounded down.
    pub(crate) fn divide(self, packets: u32) -> u32 {
        clamp((u128::from(packets) << GAIN_SHIFT) / u128::from(self.0))
    }
}

impl Bandwidth {
    /// Unknown.
    pub(crate) const ZERO: Self = Self(0);
    /// No limit.
    pub(crate) const UNBOUNDED: Self = Self(u64::MAX);

    /// Packets over time, rounded down; `None` for less than 1 µs.
    pub(crate) fn of(packets: u64, interval_ns: u64) -> Option<Self> {
        (packets << BANDWIDTH_SHIFT).checked_div(interval_ns / NS_PER_US).map(Self)
    }

    /// The bandwidth of a sample, rounded down; `None` if the sample says nothing about the path.
    pub(crate) fn sampled(sample: &RateSample) -> Option<Self> {
        Self::of(u64::from(sample.delivered), sample.interval_ns?)
    }

    /// The next larger bandwidth.
    pub(crate) fn next_up(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// As a plain number, to be stored in a filter.
    pub(crate) fn raw(self) -> u64 {
        self.0
    }

    /// From the plain number stored in a filter.
    pub(crate) fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// This bandwidth times `gain`.
    pub(crate) fn times(self, gain: Gain) -> Self {
        Self(u64::try_from((u128::from(self.0) * u128::from(gain.0)) >> GAIN_SHIFT).unwrap_or(u64::MAX))
    }

    /// Difference between two.
    pub(crate) fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }

    /// The midpoint between two.
    pub(crate) fn midpoint(self, other: Self) -> Self {
        Self(self.0.midpoint(other.0))
    }

    /// Whole packets delivered in that time.
    pub(crate) fn packets_in(self, time_ns: u64) -> u32 {
        clamp((u128::from(self.0) * u128::from(time_ns / NS_PER_US)) >> BANDWIDTH_SHIFT)
    }

    /// The packets of `gain` bandwidth-delay products, rounded up so that a window cannot shrink by its own rounding
    /// (`bbr_bdp`).
    pub(crate) fn window(self, rtt_ns: u64, gain: Gain) -> u32 {
        let product = u128::from(self.0) * u128::from(rtt_ns / NS_PER_US);
        clamp((product.saturating_mul(u128::from(gain.0)) >> GAIN_SHIFT).div_ceil(1 << BANDWIDTH_SHIFT))
    }

    /// Pacing rate in payload bytes per second (`bbr_rate_bytes_per_sec`).
    pub(crate) fn pacing_bytes_per_s(self, gain: Gain, mss_bytes: u32) -> u64 {
        let scaled = (u128::from(self.0) * u128::from(mss_bytes) * u128::from(gain.0)) >> GAIN_SHIFT;
        let bytes = scaled.saturating_mul(US_PER_S / 100 * (100 - PACING_MARGIN_PERCENT)) >> BANDWIDTH_SHIFT;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// How much of `in_flight` is still in the network when the pacer releases the next packet, if the network drains
    /// at this bandwidth (`bbr_packets_in_net_at_edt`).
    pub(crate) fn left_at_next_send(self, in_flight: u32, context: &Context) -> u32 {
        in_flight.saturating_sub(self.packets_in(context.next_send_ns.saturating_sub(context.now_ns)))
    }
}

fn clamp(packets: u128) -> u32 {
    u32::try_from(packets).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_bandwidth_times_a_round_trip_is_a_window_rounded_up() {
        // 100 packets in 100 ms are 1000 a second: 20 in 20 ms. In 1/2^24 packets per µs: 0.001 * 16777216 = 16777.2, rounded
        // down to 16777, and 16777 * 20000 / 2^24 = 19.9997, rounded up.
        let bandwidth = Bandwidth::of(100, 100 * MS).unwrap();
        assert_eq!(bandwidth.raw(), 16_777);
        assert_eq!(bandwidth.window(20 * MS, Gain::ONE), 20);
        // 1.25 * 19.9997 = 24.9996; 2885/1000 is 738/256 = 2.883: 57.66.
        assert_eq!(bandwidth.window(20 * MS, Gain::of(5, 4)), 25);
        assert_eq!(bandwidth.window(20 * MS, Gain::of(2885, 1000)), 58);
        assert_eq!(bandwidth.packets_in(20 * MS), 19);
    }

    #[test]
    fn packets_leave_one_per_cent_slower_than_the_bandwidth() {
        // 16777 * 1448 * 0.99 * 10^6 / 2^24 = 1433501.2 (1000 packets a second would be 1433520).
        let bandwidth = Bandwidth::of(100, 100 * MS).unwrap();
        assert_eq!(bandwidth.pacing_bytes_per_s(Gain::ONE, 1448), 1_433_501);
    }

    #[test]
    fn what_the_network_delivers_until_the_next_departure_is_not_in_it_any_more() {
        // 1000 packets a second; the next one leaves in 5 ms: 4 whole packets (4.9999) fewer.
        let bandwidth = Bandwidth::of(100, 100 * MS).unwrap();
        let context = Context { now_ns: 10 * MS, next_send_ns: 15 * MS, ..Context::EMPTY };
        assert_eq!(bandwidth.left_at_next_send(20, &context), 16);
        assert_eq!(bandwidth.left_at_next_send(3, &context), 0);
        assert_eq!(bandwidth.left_at_next_send(20, &Context { next_send_ns: 0, ..context }), 20);
    }

    #[test]
    fn nothing_overflows_on_paths_without_a_rate() {
        let bandwidth = Bandwidth::of(u64::from(u32::MAX), 1_000).unwrap();
        assert_eq!(Bandwidth::of(1, 999), None);
        assert_eq!(bandwidth.window(u64::MAX, Gain::of(1000, 1)), u32::MAX);
        assert_eq!(Bandwidth::UNBOUNDED.window(u64::MAX, Gain::of(1000, 1)), u32::MAX);
        assert_eq!(Bandwidth::UNBOUNDED.pacing_bytes_per_s(Gain::of(3, 1), 65_000), u64::MAX);
        assert_eq!(Bandwidth::UNBOUNDED.times(Gain::of(3, 1)), Bandwidth::UNBOUNDED);
    }

    #[test]
    fn gains_are_parts_of_256() {
        // 0.7 is 179/256: 179 * 100 / 256 = 69.9.
        assert_eq!((Gain::of(7, 10).times(100), Gain::of(7, 10).times_rounded_up(100)), (69, 70));
        assert_eq!(Gain::of(7, 10).complement().times(256), 77);
        assert_eq!(Gain::of(1, 2).divide(10), 20);
    }
}
