//! The two ways in which congestion controls count round trips.

/// Rounds by deliveries: a round ends when a packet that was sent after the round began is delivered
/// (draft-ietf-ccwg-bbr-06, section 5.5.1; BBR's `next_rtt_delivered`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeliveryRounds {
    count: u64,
    /// The round ends with the first packet that was sent after at least this much had been delivered.
    next: u64,
}

impl DeliveryRounds {
    /// Adds a rate sample: `delivered` packets in total, of which `prior_delivered` before the newest one was sent.
    /// Returns whether this begins a new round.
    pub(crate) fn advance(&mut self, delivered: u64, prior_delivered: u64) -> bool {
        let begins = prior_delivered >= self.next;
        if begins {
            self.count += 1;
            self.next = delivered;
        }
        begins
    }

    /// Begins a round now, without counting it.
    pub(crate) fn restart(&mut self, delivered: u64) {
        self.next = delivered;
    }

    /// Rounds that have begun.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }
}

/// Rounds by bytes: a round ends when everything that had been sent when it began is acknowledged (Vegas'
/// `beg_snd_nxt`, DCTCP's `next_seq`).
#[allow(dead_code)] // for controls that count so
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ByteRounds {
    end: u64,
}

#[allow(dead_code)] // as above
impl ByteRounds {
    /// Processes an acknowledgement, after which `acked` bytes are acknowledged of the `sent` bytes. Returns whether this
    /// ends a round.
    pub(crate) fn advance(&mut self, acked: u64, sent: u64) -> bool {
        let ended = acked >= self.end;
        if ended {
            self.end = sent;
        }
        ended
    }

    /// Begins a round now, when so many bytes have been sent.
    pub(crate) fn restart(&mut self, sent: u64) {
        self.end = sent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_round_lasts_until_something_sent_in_it_is_delivered() {
        let mut rounds = DeliveryRounds::default();
        // 10 packets were sent with nothing delivered: the first delivery begins round 1, the others belong to it.
        assert_eq!([1, 2, 10].map(|delivered| rounds.advance(delivered, 0)), [true, false, false]);
        // Packets sent after the first delivery.
        assert_eq!([11, 12].map(|delivered| rounds.advance(delivered, delivered - 10)), [true, false]);
        assert_eq!(rounds.count(), 2);
    }

    #[test]
    fn a_round_of_bytes_lasts_until_what_was_sent_is_acknowledged() {
        let mut rounds = ByteRounds::default();
        rounds.restart(1000);
        assert_eq!(
            [999, 1000, 1999, 2000].map(|acked| rounds.advance(acked, acked + 1000)),
            [false, true, false, true]
        );
    }
}
