//! How long frames take on the air.
//!
//! Source: the model of Høiland-Jørgensen, Kazior, Täht, Hurtig and Brunstrom, "Ending the Anomaly: Achieving Low
//! Latency and Airtime Fairness in WiFi" (USENIX ATC 2017), after IEEE 802.11-2012 for 5 GHz (OFDM, clause
//! 18; HT, clause 20) and for DSSS (clause 16).
//!
//! An aggregate of frames takes a preamble and then its bits at the station's rate. Its block acknowledgement, too,
//! is sent at the station's rate. Rates that 802.11n does not have are those of older stations, which send single
//! frames: below 6 Mbit/s DSSS with a long preamble, and from 6 Mbit/s on OFDM.
//!
//! Departures: symbols are not rounded up to whole ones. A station with DSSS makes no other station wait longer than
//! with OFDM: slot, SIFS and DIFS are those of 5 GHz for all, and there is no protection (RTS/CTS). Acknowledgements of
//! single frames have the frame's own rate.

use bufferscope_scenario::Aggregate;

const BITS_PER_BYTE: u64 = 8;
const NS_PER_S: u64 = 1_000_000_000;
const US: u64 = 1_000;

/// A slot of the backoff.
pub(super) const SLOT_NS: u64 = 9 * US;
/// Between a frame and its acknowledgement.
const SIFS_NS: u64 = 16 * US;
/// How long the channel must be idle before the backoff continues.
pub(super) const DIFS_NS: u64 = 34 * US;
/// The contention window in slots: the initial one, and the largest.
pub(super) const CW_MIN: u32 = 15;
pub(super) const CW_MAX: u32 = 1023;

/// MAC header with its LLC part, and frame check sequence.
const MAC_BYTES: u32 = 34 + 4;
/// The delimiter before each frame of an aggregate, and the multiple to which frames are padded.
const DELIMITER_BYTES: u32 = 4;
const PADDED_TO_BYTES: u32 = 4;
/// A block acknowledgement and an acknowledgement. (The paper's block acknowledgement; it includes the PHY's service
/// bits.)
const BLOCK_ACK_BYTES: u32 = 58;
const ACK_BYTES: u32 = 14;

/// The lowest rate of 802.11n (MCS 0, 20 MHz, long guard interval), and of OFDM.
const LOWEST_HT_BPS: u64 = 6_500_000;
const LOWEST_OFDM_BPS: u64 = 6_000_000;

/// How a station sends at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Phy {
    rate_bps: u64,
    preamble_ns: u64,
    /// Whether it aggregates frames, and acknowledges them together.
    pub(super) aggregates: bool,
}

impl Phy {
    pub(super) fn at(rate_bps: u64) -> Self {
        let (preamble_ns, aggregates) = match rate_bps {
            LOWEST_HT_BPS.. => (32 * US, true),
            LOWEST_OFDM_BPS.. => (20 * US, false),
            _ => (192 * US, false),
        };
        Self { rate_bps, preamble_ns, aggregates }
    }

    /// Size on the air of a frame with an IP packet of this many bytes.
    pub(super) fn frame_bytes(self, ip_bytes: u32) -> u32 {
        let frame = ip_bytes + MAC_BYTES;
        if self.aggregates { (frame + DELIMITER_BYTES).next_multiple_of(PADDED_TO_BYTES) } else { frame }
    }

    /// The most that an aggregate may hold.
    pub(super) fn most_bytes(self, limits: &Aggregate) -> u64 {
        let in_time = u128::from(self.rate_bps) * u128::from(limits.time_ns) / u128::from(NS_PER_S * BITS_PER_BYTE);
        u64::from(limits.bytes).min(u64::try_from(in_time).unwrap_or(u64::MAX))
    }

    /// How long frames of this many bytes in total take.
    pub(super) fn data_ns(self, bytes: u64) -> u64 {
        self.preamble_ns + self.bits_ns(bytes)
    }

    /// From the end of the data to the end of the acknowledgement. If none comes, the sender waits as long.
    pub(super) fn acknowledgement_ns(self) -> u64 {
        match self.aggregates {
            // One SIFS before and one after the block acknowledgement, which the paper's overhead has.
            true => 2 * SIFS_NS + self.bits_ns(BLOCK_ACK_BYTES.into()),
            false => SIFS_NS + self.preamble_ns + self.bits_ns(ACK_BYTES.into()),
        }
    }

    fn bits_ns(self, bytes: u64) -> u64 {
        (bytes * BITS_PER_BYTE * NS_PER_S).div_ceil(self.rate_bps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBIT: u64 = 1_000_000;
    /// Half of the contention window, which is how long a sender without competitors waits on average.
    const MEAN_BACKOFF_NS: u64 = SLOT_NS * CW_MIN as u64 / 2;

    /// Payload (IP packets of 1500 bytes) per second of a sender that has the channel to itself.
    fn alone_mbit(packets: f64, rate_bps: u64) -> f64 {
        let phy = Phy::at(rate_bps);
        let bytes = packets * f64::from(phy.frame_bytes(1500));
        let data_ns = phy.data_ns(bytes as u64);
        let cycle_ns = data_ns + phy.acknowledgement_ns() + DIFS_NS + MEAN_BACKOFF_NS;
        packets * 1500.0 * 8.0 / cycle_ns as f64 * 1e3
    }

    #[test]
    fn a_sender_alone_has_the_rate_of_the_papers_model() {
        // Table 1 of the paper: mean size of an aggregate, PHY rate, and the rate that follows from them.
        for (packets, rate_bps, expected_mbit) in [
            (4.47, 144_400_000, 97.3),
            (5.08, 144_400_000, 101.1),
            (1.89, 7_200_000, 6.5),
            (18.44, 144_400_000, 126.7),
            (18.52, 144_400_000, 126.8),
        ] {
            let found = alone_mbit(packets, rate_bps);
            assert!((found / expected_mbit - 1.0).abs() < 0.01, "{packets} packets: {found} Mbit/s, {expected_mbit}");
        }
    }

    #[test]
    fn an_aggregate_takes_its_preamble_and_its_bits() {
        // 2 frames of 1544 bytes: 24704 bits at 7.2 Mbit/s are 3431.1 us, and the preamble takes 32 us.
        let phy = Phy::at(7_200_000);
        assert_eq!(phy.frame_bytes(1500), 1544, "1500 + 34 + 4 + 4, padded to a multiple of 4");
        assert_eq!(phy.data_ns(2 * 1544), 3_463_112);
        // 58 bytes are 464 bits: 64.4 us.
        assert_eq!(phy.acknowledgement_ns(), 96_445);
    }

    #[test]
    fn an_aggregate_is_bounded_by_time_where_the_rate_is_low() {
        let limits = Aggregate { frames: 64, bytes: 65_535, time_ns: 4_000_000 };
        assert_eq!(Phy::at(7_200_000).most_bytes(&limits), 3600, "two full frames");
        assert_eq!(Phy::at(144_400_000).most_bytes(&limits), 65_535, "42 full frames");
    }

    #[test]
    fn old_stations_send_single_frames() {
        // 1538 bytes at 1 Mbit/s: 12.304 ms after a long preamble; the acknowledgement: 16 + 192 + 112 us.
        let phy = Phy::at(MBIT);
        assert!(!phy.aggregates);
        assert_eq!(phy.data_ns(phy.frame_bytes(1500).into()), 12_496_000);
        assert_eq!(phy.acknowledgement_ns(), 320_000);
        assert!(!Phy::at(6 * MBIT).aggregates);
        assert!(Phy::at(6_500_000).aggregates);
    }
}
