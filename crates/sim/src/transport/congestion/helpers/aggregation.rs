//! Counts how many more packets are acknowledged at once than the bandwidth explains. On links that send in bursts, and
//! for receivers that acknowledge rarely, the window must be larger by that number (the kernel's
//! `bbr_update_ack_aggregation`; draft-ietf-ccwg-bbr-06, section 5.5.9). Both versions of BBR count this way; they
//! differ in how long they remember the result.

use super::bandwidth::Bandwidth;

/// Packets after which counting starts anew (`bbr_ack_epoch_acked_reset_thresh`).
const EPOCH_MAX_PACKETS: u32 = 1 << 20;

/// Counts acknowledgements since they last fell behind the bandwidth.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckEpoch {
    start_ns: u64,
    acked: u32,
}

impl AckEpoch {
    /// Starts counting now.
    pub(crate) fn restart(&mut self, now_ns: u64) {
        *self = Self { start_ns: now_ns, acked: 0 };
    }

    /// Records that `acked` more packets were delivered. Returns by how many packets the deliveries since the epoch
    /// began exceed those that `bandwidth` explains.
    pub(crate) fn excess(&mut self, bandwidth: Bandwidth, now_ns: u64, acked: u32) -> u32 {
        let mut expected = bandwidth.packets_in(now_ns.saturating_sub(self.start_ns));
        if self.acked <= expected || self.acked + acked >= EPOCH_MAX_PACKETS {
            self.restart(now_ns);
            expected = 0;
        }
        self.acked = (self.acked + acked).min(EPOCH_MAX_PACKETS - 1);
        self.acked.saturating_sub(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_burst_is_excess_until_the_bandwidth_has_caught_up() {
        // 1000 packets a second are one a millisecond (4.9999 in 5 ms, which is 4).
        let bandwidth = Bandwidth::of(100, 100 * MS).unwrap();
        let mut epoch = AckEpoch::default();
        epoch.restart(0);
        // 10 at once at 5 ms begin an epoch: all of them are excess. 5 more 5 ms later: 15 less 4.
        assert_eq!(epoch.excess(bandwidth, 5 * MS, 10), 10);
        assert_eq!(epoch.excess(bandwidth, 10 * MS, 5), 11);
        // Nothing arrives for 20 ms: 24 were expected since the epoch began, and 15 came. The next 2 begin a new epoch.
        assert_eq!(epoch.excess(bandwidth, 30 * MS, 2), 2);
    }

    #[test]
    fn an_epoch_is_never_endless() {
        let mut epoch = AckEpoch::default();
        assert_eq!(epoch.excess(Bandwidth::ZERO, 0, EPOCH_MAX_PACKETS - 1), EPOCH_MAX_PACKETS - 1);
        assert_eq!(epoch.excess(Bandwidth::ZERO, MS, 1), 1);
    }
}
