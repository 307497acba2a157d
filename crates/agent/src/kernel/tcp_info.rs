//! `TCP_INFO`: the kernel's view of a connection.

use super::netlink::{read_u32, read_u64};

/// Room for the structure of kernels to come; older ones fill less.
pub(crate) const TCP_INFO_BYTES: usize = 512;
/// The kernel's "no slow-start threshold yet" (`TCP_INFINITE_SSTHRESH`).
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// What is used of `struct tcp_info` (`include/uapi/linux/tcp.h`), by its names without the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpInfo {
    pub(crate) ca_state: u8,
    pub(crate) snd_mss: u32,
    pub(crate) unacked: u32,
    pub(crate) sacked: u32,
    pub(crate) lost: u32,
    pub(crate) retrans: u32,
    pub(crate) rtt_us: u32,
    /// Segments; `None`: still unlimited.
    pub(crate) snd_ssthresh: Option<u32>,
    pub(crate) snd_cwnd: u32,
    pub(crate) total_retrans: u32,
    pub(crate) bytes_acked: u64,
    pub(crate) snd_wnd: u32,
}

impl TcpInfo {
    /// Reads the structure as far as this kernel fills it; `None` if that is not far enough (before Linux 5.4).
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at| read_u32(bytes, at);
        Some(Self {
            ca_state: *bytes.get(1)?,
            snd_mss: word(16)?,
            unacked: word(24)?,
            sacked: word(28)?,
            lost: word(32)?,
            retrans: word(36)?,
            rtt_us: word(68)?,
            snd_ssthresh: Some(word(76)?).filter(|&segments| segments < INFINITE_SSTHRESH),
            snd_cwnd: word(80)?,
            total_retrans: word(100)?,
            bytes_acked: read_u64(bytes, 120)?,
            snd_wnd: word(228)?,
        })
    }

    /// Segments in the network (`tcp_packets_in_flight`).
    pub(crate) fn in_flight(&self) -> u64 {
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

    #[test]
    fn an_unlimited_threshold_is_none() {
        assert_eq!(TcpInfo::parse(&with(&[(76, 0x7fff_ffff)])).unwrap().snd_ssthresh, None);
        assert_eq!(TcpInfo::parse(&with(&[(76, 12)])).unwrap().snd_ssthresh, Some(12));
    }

    #[test]
    fn a_kernel_that_fills_too_little_is_refused() {
        assert_eq!(TcpInfo::parse(&[0; 231]), None);
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
