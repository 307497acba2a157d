//! Compression of selective acknowledgements (the kernel's `tcp_comp_sack_*`). While packets arrive out of order, the
//! first three are acknowledged at once. After that, one acknowledgement covers all packets that arrive within a
//! twentieth of the round-trip time and the timer's slack.
//!
//! The kernel programs the processor's timer for the end of the slack, and the acknowledgement is sent then, unless another
//! timer of that processor expires just before. Departs: none does.

/// The number of acknowledgements that are never held back (`TCP_FASTRETRANS_THRESH`).
const UNCOMPRESSED: u32 = 3;
/// The largest number of acknowledgements held back (`tcp_comp_sack_nr`).
const MOST: u32 = 44;
/// The longest time for which they are held back (`tcp_comp_sack_delay_ns`).
const LONGEST_NS: u64 = 1_000_000;

/// How much later the timer may expire (`tcp_comp_sack_slack_ns`).
const SLACK_NS: u64 = 100_000;

/// The acknowledgements that are held back.
#[derive(Debug, Default)]
pub(crate) struct Compression {
    /// The acknowledgement that is repeated (`compressed_ack_rcv_nxt`).
    ack: u64,
    /// How often it was sent (`dup_ack_counter`).
    repeats: u32,
    /// How many were held back since then (`compressed_ack`).
    held: u32,
}

impl Compression {
    /// Another packet has arrived beyond a gap. Returns how long its acknowledgement can be held back, if at all.
    /// `rtt_ns` is the round-trip time.
    pub(crate) fn hold(&mut self, ack: u64, rtt_ns: u64) -> Option<u64> {
        if ack != self.ack {
            (self.ack, self.repeats) = (ack, 0);
        }
        if self.held >= MOST {
            return None;
        }
        if self.repeats < UNCOMPRESSED {
            self.repeats += 1;
            return None;
        }
        self.held += 1;
        Some((rtt_ns / 20).min(LONGEST_NS) + SLACK_NS)
    }

    /// An acknowledgement was sent.
    #[inline]
    pub(crate) fn on_sent(&mut self) {
        self.held = 0;
    }

    /// Whether an acknowledgement is held back.
    pub(crate) fn is_holding(&self) -> bool {
        self.held > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_first_three_are_sent_and_those_that_follow_held_for_a_twentieth_of_the_round_trip_and_the_slack() {
        let mut compression = Compression::default();
        let held: Vec<_> = (0..5).map(|_| compression.hold(1000, 10 * MS)).collect();
        assert_eq!(held, [None, None, None, Some(MS * 6 / 10), Some(MS * 6 / 10)]);
        // A twentieth counts as 1 ms at most.
        assert_eq!(compression.hold(1000, 100 * MS), Some(MS * 11 / 10));
    }

    #[test]
    fn at_most_44_are_held_back() {
        let mut compression = Compression { ack: 1000, repeats: 3, held: 0 };
        assert_eq!((0..100).take_while(|_| compression.hold(1000, 10 * MS).is_some()).count(), 44);
    }

    #[test]
    fn progress_begins_anew() {
        let mut compression = Compression { ack: 1000, repeats: 3, held: 0 };
        assert_eq!(compression.hold(2000, 10 * MS), None);
    }
}
