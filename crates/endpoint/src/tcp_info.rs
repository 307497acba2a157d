//! `TCP_INFO`: the kernel's view of a connection.

use crate::bytes::{read_u32, read_u64};

/// Room for the structure of future kernels; older ones fill less.
pub(crate) const TCP_INFO_BYTES: usize = 512;
/// The kernel's "no slow-start threshold yet" (`TCP_INFINITE_SSTHRESH`).
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;
/// A pacing rate in bytes per second that means no limit. Setting it requests pacing without a limit. Until the kernel
/// has computed a rate, it reports this one or a higher one.
pub(crate) const UNLIMITED_RATE: u64 = u64::MAX - 1;

/// The fields of `struct tcp_info` (`include/uapi/linux/tcp.h`) that are used here, by their names without the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// The state of loss recovery (`enum tcp_ca_state`).
    pub ca_state: u8,
    /// The options that the two ends agreed on, such as [`Self::TIMESTAMPS`].
    pub options: u8,
    /// Payload of a full segment.
    pub snd_mss: u32,
    /// Segments sent and not acknowledged ...
    pub unacked: u32,
    /// ... those of them that have arrived out of order ...
    pub sacked: u32,
    /// ... those that count as lost ...
    pub lost: u32,
    /// ... and retransmissions that are under way.
    pub retrans: u32,
    /// The smoothed round-trip time.
    pub rtt_us: u32,
    /// Its smoothed deviation.
    pub rttvar_us: u32,
    /// The smallest round-trip time; `None`: not measured yet.
    pub min_rtt_us: Option<u32>,
    /// The slow-start threshold in segments; `None`: still unlimited.
    pub snd_ssthresh: Option<u32>,
    /// The congestion window in segments.
    pub snd_cwnd: u32,
    /// Segments by which packets are expected to be reordered.
    pub reordering: u32,
    /// Segments retransmitted so far.
    pub total_retrans: u32,
    /// Written and not sent yet.
    pub notsent_bytes: u32,
    /// Acknowledged so far.
    pub bytes_acked: u64,
    /// Received and acknowledged so far.
    pub bytes_received: u64,
    /// Sent so far, those sent again included ...
    pub bytes_sent: u64,
    /// ... and those sent again alone.
    pub bytes_retrans: u64,
    /// Bytes per second at which packets leave, if they are paced; `None`: unlimited.
    pub pacing_rate: Option<u64>,
    /// Bytes per second; `None`: not measured yet.
    pub delivery_rate: Option<u64>,
    /// Whether that rate was limited by the program.
    pub delivery_rate_app_limited: bool,
    /// Segments delivered so far ...
    pub delivered: u32,
    /// ... and those of them whose acknowledgements reported congestion.
    pub delivered_ce: u32,
    /// Time in which there was data to send or to be acknowledged ...
    pub busy_us: u64,
    /// ... the part of it in which the peer's window allowed no more ...
    pub rwnd_limited_us: u64,
    /// ... and the part in which more could have been sent if the program had supplied it in time.
    pub sndbuf_limited_us: u64,
    /// The peer's window.
    pub snd_wnd: u32,
}

impl TcpInfo {
    /// `TCPI_OPT_TIMESTAMPS`.
    pub const TIMESTAMPS: u8 = 1;
    /// `TCPI_OPT_SACK`.
    pub const SACK: u8 = 2;
    /// `TCPI_OPT_WSCALE`.
    pub const WINDOW_SCALING: u8 = 4;
    /// `TCPI_OPT_ECN`.
    pub const ECN: u8 = 8;
    /// Those bits of `options` that are negotiated in the handshake; the others may change later.
    const AGREED: u8 = Self::TIMESTAMPS | Self::SACK | Self::WINDOW_SCALING | Self::ECN;

    /// Reads the structure as far as this kernel fills it; `None` if the kernel fills too little (before Linux 5.4).
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at| read_u32(bytes, at);
        Some(Self {
            ca_state: *bytes.get(1)?,
            options: *bytes.get(5)? & Self::AGREED,
            snd_mss: word(16)?,
            unacked: word(24)?,
            sacked: word(28)?,
            lost: word(32)?,
            retrans: word(36)?,
            rtt_us: word(68)?,
            rttvar_us: word(72)?,
            min_rtt_us: Some(word(148)?).filter(|&us| us != u32::MAX),
            snd_ssthresh: Some(word(76)?).filter(|&segments| segments < INFINITE_SSTHRESH),
            snd_cwnd: word(80)?,
            reordering: word(88)?,
            total_retrans: word(100)?,
            notsent_bytes: word(144)?,
            bytes_acked: read_u64(bytes, 120)?,
            bytes_received: read_u64(bytes, 128)?,
            bytes_sent: read_u64(bytes, 200)?,
            bytes_retrans: read_u64(bytes, 208)?,
            pacing_rate: Some(read_u64(bytes, 104)?).filter(|&rate| rate < UNLIMITED_RATE),
            delivery_rate: Some(read_u64(bytes, 160)?).filter(|&rate| rate > 0),
            delivery_rate_app_limited: *bytes.get(7)? & 1 == 1,
            delivered: word(192)?,
            delivered_ce: word(196)?,
            busy_us: read_u64(bytes, 168)?,
            rwnd_limited_us: read_u64(bytes, 176)?,
            sndbuf_limited_us: read_u64(bytes, 184)?,
            snd_wnd: word(228)?,
        })
    }

    /// Segments in the network (`tcp_packets_in_flight`).
    pub fn in_flight(&self) -> u64 {
        let left_network = u64::from(self.sacked) + u64::from(self.lost);
        (u64::from(self.unacked) + u64::from(self.retrans)).saturating_sub(left_network)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with(fields: &[(usize, u32)]) -> Vec<u8> {
        let mut bytes = vec![0; 232];
        for &(at, value) in fields {
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn segments_in_flight_are_counted_as_the_kernel_does() {
        let info = TcpInfo::parse(&with(&[(24, 20), (28, 5), (32, 3), (36, 2)])).unwrap();
        assert_eq!(info.in_flight(), 20 - 5 - 3 + 2);
    }

    /// `TCPI_OPT_ECN_SEEN` and the bits beyond it are not negotiated but observed.
    #[test]
    fn options_are_those_of_the_handshake() {
        assert_eq!(TcpInfo::parse(&with(&[(4, 0x0000_3f00)])).unwrap().options, 0x0f);
    }

    #[test]
    fn an_unlimited_threshold_is_none() {
        assert_eq!(TcpInfo::parse(&with(&[(76, 0x7fff_ffff)])).unwrap().snd_ssthresh, None);
        assert_eq!(TcpInfo::parse(&with(&[(76, 12)])).unwrap().snd_ssthresh, Some(12));
    }

    #[test]
    fn a_pacing_rate_has_64_bits() {
        assert_eq!(
            TcpInfo::parse(&with(&[(104, 1_250_000), (108, 1)])).unwrap().pacing_rate,
            Some((1 << 32) + 1_250_000)
        );
        assert_eq!(TcpInfo::parse(&with(&[(104, u32::MAX), (108, u32::MAX)])).unwrap().pacing_rate, None);
    }

    /// `struct tcp_info` of Linux 6.1, by `offsetof`.
    #[test]
    fn every_field_is_read_from_its_offset() {
        let fields = [(4, 0x0100_0000), (88, 3), (144, 4), (148, 5), (160, 6), (176, 7), (184, 8), (192, 9), (196, 10)];
        let info = TcpInfo::parse(&with(&fields)).unwrap();
        assert!(info.delivery_rate_app_limited);
        assert_eq!((info.reordering, info.notsent_bytes, info.min_rtt_us), (3, 4, Some(5)));
        assert_eq!((info.delivery_rate, info.rwnd_limited_us, info.sndbuf_limited_us), (Some(6), 7, 8));
        assert_eq!((info.delivered, info.delivered_ce), (9, 10));
        let info = TcpInfo::parse(&with(&[(68, 1), (72, 2), (120, 3), (128, 4), (200, 5), (208, 6)])).unwrap();
        assert_eq!((info.rtt_us, info.rttvar_us, info.bytes_acked, info.bytes_received), (1, 2, 3, 4));
        assert_eq!((info.bytes_sent, info.bytes_retrans), (5, 6));
    }

    #[test]
    fn what_was_not_measured_is_none() {
        let info = TcpInfo::parse(&with(&[(148, u32::MAX)])).unwrap();
        assert_eq!((info.min_rtt_us, info.delivery_rate), (None, None));
    }

    #[test]
    fn a_kernel_that_fills_too_little_is_refused() {
        assert_eq!(TcpInfo::parse(&[0; 231]), None);
    }

    #[test]
    fn a_structure_cut_anywhere_is_refused() {
        let whole = with(&[(24, 20), (228, 1)]);
        assert!(TcpInfo::parse(&whole).is_some());
        for length in 0..whole.len() {
            assert_eq!(TcpInfo::parse(&whole[..length]), None, "cut at {length}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Some(info) = TcpInfo::parse(&bytes) {
                let _ = info.in_flight();
            }
        }
    }
}
