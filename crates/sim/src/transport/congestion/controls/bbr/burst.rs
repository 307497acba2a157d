//! The number of packets in a burst, for which the window has to leave room.

use crate::network::truesize::MOST_PAYLOAD_BYTES;

/// A burst is what leaves in 1/1024 s (`sk_pacing_shift`), but no more than fits into one packet.
const BURST_SHIFT: u32 = 10;
const BURST_MAX_PACKETS: u64 = 0x7f;
/// From 1.2 Mbit/s on a burst has at least two packets (`bbr_min_tso_rate`).
const SINGLE_BELOW_BYTES_PER_S: u64 = 1_200_000 / 8;

/// Packets that the kernel would pass to the lower layer at once at this rate (`bbr_tso_segs_goal`).
pub(super) fn burst_packets(pacing_bytes_per_s: u64, mss_bytes: u32) -> u32 {
    let bytes = (pacing_bytes_per_s >> BURST_SHIFT).min(MOST_PAYLOAD_BYTES);
    let least = least_packets(pacing_bytes_per_s).into();
    (bytes / u64::from(mss_bytes)).max(least).min(BURST_MAX_PACKETS) as u32
}

/// The least number of packets in a burst (`bbr_min_tso_segs`).
pub(super) fn least_packets(pacing_bytes_per_s: u64) -> u32 {
    if pacing_bytes_per_s < SINGLE_BELOW_BYTES_PER_S { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_a_millisecond_long_but_two_packets_at_least() {
        // 100 Mbit/s: 12.5 MB/s / 1024 = 12207 bytes, 8 packets of 1448. At 10 Mbit/s it would be less than one packet.
        assert_eq!(burst_packets(12_500_000, 1448), 8);
        assert_eq!(burst_packets(1_250_000, 1448), 2);
        assert_eq!(burst_packets(150_000, 1448), 2);
        assert_eq!(burst_packets(149_999, 1448), 1);
        // 65215 / 1448 = 45.04; small packets: 127.
        assert_eq!(burst_packets(u64::MAX, 1448), 45);
        assert_eq!(burst_packets(u64::MAX, 100), 127);
    }
}
