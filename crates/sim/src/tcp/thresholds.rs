//! What hosts remember of connections that have ended: for each destination, the slow-start threshold with which the
//! next connection to it begins (`tcp_update_metrics` and `tcp_init_metrics` of `tcp_metrics.c`).
//!
//! Departs: only the threshold is remembered, not round-trip times or reordering. A connection looks it up when it is
//! created, not when its handshake is complete. Entries do not expire after an hour.

use std::collections::BTreeMap;

use bufferscope_scenario::NodeIndex;

/// The thresholds that the hosts remember.
#[derive(Debug, Default)]
pub(crate) struct Thresholds(BTreeMap<AddressPair, u32>);

/// A host, and the row of its destination in the routing table.
pub(crate) type AddressPair = (NodeIndex, u16);

/// The state of a sender at the end of its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    /// Congestion window in packets.
    pub(crate) cwnd: u32,
    /// Slow-start threshold in packets; `u32::MAX` if there never was any congestion.
    pub(crate) ssthresh: u32,
    /// The congestion state is `TCP_CA_Open`.
    pub(crate) is_open: bool,
}

impl Thresholds {
    /// The threshold for the next connection, `u32::MAX` if nothing is known.
    pub(crate) fn of(&self, pair: AddressPair) -> u32 {
        self.0.get(&pair).copied().unwrap_or(u32::MAX)
    }

    /// A connection has ended. A threshold from congestion avoidance replaces the known one; any other only if it is
    /// larger.
    pub(crate) fn learn(&mut self, pair: AddressPair, ending: Ending) {
        let Ending { cwnd, ssthresh, is_open } = ending;
        let learnt = if ssthresh == u32::MAX {
            self.raised(pair, cwnd / 2)
        } else if cwnd >= ssthresh && is_open {
            Some(ssthresh.max(cwnd / 2))
        } else {
            self.raised(pair, ssthresh)
        };
        self.0.extend(learnt.map(|threshold| (pair, threshold)));
    }

    /// Returns the threshold if a smaller one is known.
    fn raised(&self, pair: AddressPair, threshold: u32) -> Option<u32> {
        self.0.get(&pair).is_some_and(|&known| threshold > known).then_some(threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: AddressPair = (0, 1);

    fn learnt(endings: &[(u32, u32, bool)]) -> u32 {
        let mut thresholds = Thresholds::default();
        for &(cwnd, ssthresh, is_open) in endings {
            thresholds.learn(HERE, Ending { cwnd, ssthresh, is_open });
        }
        assert_eq!(thresholds.of((1, 0)), u32::MAX, "of another pair nothing is known");
        thresholds.of(HERE)
    }

    #[test]
    fn what_congestion_avoidance_found_is_remembered() {
        assert_eq!(learnt(&[(30, 20, true)]), 20);
        assert_eq!(learnt(&[(50, 20, true)]), 25, "half of the window, where that has grown since");
        assert_eq!(learnt(&[(30, 20, true), (12, 8, true)]), 8);
    }

    #[test]
    fn connections_without_congestion_only_raise_what_is_known() {
        assert_eq!(learnt(&[(100, u32::MAX, true)]), u32::MAX);
        assert_eq!(learnt(&[(30, 20, true), (100, u32::MAX, true)]), 50);
        assert_eq!(learnt(&[(30, 20, true), (38, u32::MAX, true)]), 20);
    }

    #[test]
    fn an_end_in_recovery_or_slow_start_only_raises_what_is_known() {
        assert_eq!(learnt(&[(8, 8, false)]), u32::MAX);
        assert_eq!(learnt(&[(30, 20, true), (5, 8, true)]), 20);
        assert_eq!(learnt(&[(30, 20, true), (5, 30, true)]), 30);
    }
}
