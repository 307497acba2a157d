//! When an acknowledgement is sent (RFC 9293, section 3.8.6.3; RFC 5681, section 4.2; the kernel's `__tcp_ack_snd_check`,
//! `tcp_event_data_recv` and `tcp_send_delayed_ack`).
//!
//! Every second full segment is acknowledged at once, a lone one after the delay. The delay is 40 ms or more, following the
//! gaps between arrivals. At the start, after a long silence, and when something is wrong, every segment is acknowledged at
//! once ("quick" acknowledgements), so that the sender's window grows fast.
//!
//! Departs: no "pingpong" mode (a connection that answers requests still acknowledges quickly at its start), no compression
//! of selective acknowledgements (`tcp_comp_sack_*`).

/// Smallest delay (`TCP_ATO_MIN`, `TCP_DELACK_MIN`).
const DELAY_MIN_NS: u64 = 40_000_000;
/// Largest delay for a connection that is not interactive (`HZ / 2`).
const DELAY_MAX_NS: u64 = 500_000_000;
/// Most quick acknowledgements in a row (`TCP_MAX_QUICKACKS`).
const MAX_QUICK: u64 = 16;

/// The pending acknowledgement and the habits behind it.
#[derive(Debug, Default)]
pub(crate) struct DelayedAck {
    due: Due,
    /// Acknowledgements that will still be sent at once.
    quick: u64,
    /// How long to wait (`ato`); `None` before the first data.
    delay_ns: Option<u64>,
    last_data_ns: u64,
}

/// Whether an acknowledgement is owed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Due {
    #[default]
    No,
    At(u64),
    Now,
}

/// What the delays adapt to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Smoothed round-trip time, if this side has measured one.
    pub(crate) srtt_ns: Option<u64>,
    /// This side's retransmission timeout: a longer silence means that the sender has restarted.
    pub(crate) rto_ns: u64,
    /// Segments that half of the window offered would hold.
    pub(crate) half_window_segments: u64,
}

impl DelayedAck {
    /// Data arrived: follows the gaps between arrivals.
    #[inline]
    pub(crate) fn on_data(&mut self, now_ns: u64, pace: Pace) {
        let gap_ns = now_ns - self.last_data_ns;
        self.last_data_ns = now_ns;
        let Some(delay_ns) = self.delay_ns else {
            self.acknowledge_quickly(MAX_QUICK, pace);
            self.delay_ns = Some(DELAY_MIN_NS);
            return;
        };
        if gap_ns <= DELAY_MIN_NS / 2 {
            self.delay_ns = Some(delay_ns / 2 + DELAY_MIN_NS / 2);
        } else if gap_ns < delay_ns {
            self.delay_ns = Some(delay_ns / 2 + gap_ns);
        } else if gap_ns > pace.rto_ns {
            self.acknowledge_quickly(MAX_QUICK, pace);
        }
    }

    /// Up to `most` of the next acknowledgements are sent at once.
    fn acknowledge_quickly(&mut self, most: u64, pace: Pace) {
        let wanted = if pace.half_window_segments == 0 { 2 } else { pace.half_window_segments };
        self.quick = self.quick.max(wanted.min(most));
    }

    /// Something is wrong: the sender should hear of the next segments at once (`tcp_enter_quickack_mode`).
    pub(crate) fn hurry(&mut self, pace: Pace) {
        self.acknowledge_quickly(MAX_QUICK, pace);
        self.delay_ns = Some(DELAY_MIN_NS);
    }

    /// As [`hurry`](Self::hurry), for the next two segments only: congestion was experienced.
    pub(crate) fn hurry_briefly(&mut self, pace: Pace) {
        self.acknowledge_quickly(2, pace);
        self.delay_ns = Some(DELAY_MIN_NS);
    }

    /// At least one more is sent at once: the window has just been opened.
    pub(crate) fn one_quick(&mut self) {
        self.quick |= 1;
    }

    /// An acknowledgement is owed, at once if `urgent`.
    #[inline]
    pub(crate) fn owe(&mut self, now_ns: u64, urgent: bool, pace: Pace) {
        if urgent || self.quick > 0 {
            self.due = Due::Now;
            return;
        }
        let mut delay_ns = self.delay_ns.unwrap_or(DELAY_MIN_NS);
        if delay_ns > DELAY_MIN_NS {
            let most_ns = pace.srtt_ns.map_or(DELAY_MAX_NS, |srtt_ns| srtt_ns.clamp(DELAY_MIN_NS, DELAY_MAX_NS));
            delay_ns = delay_ns.min(most_ns);
        }
        let at_ns = now_ns + delay_ns;
        self.due = match self.due {
            Due::Now => Due::Now,
            // One that is nearly due is sent along.
            Due::At(earlier_ns) if earlier_ns <= now_ns + delay_ns / 4 => Due::Now,
            Due::At(earlier_ns) => Due::At(earlier_ns.min(at_ns)),
            Due::No => Due::At(at_ns),
        };
    }

    /// A segment that acknowledges everything leaves.
    #[inline]
    pub(crate) fn on_sent(&mut self) {
        if self.due != Due::No && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.delay_ns = Some(DELAY_MIN_NS);
            }
        }
        self.due = Due::No;
    }

    /// Has an acknowledgement to leave now?
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        match self.due {
            Due::No => false,
            Due::At(at_ns) => at_ns <= now_ns,
            Due::Now => true,
        }
    }

    /// When the delay ends.
    pub(crate) fn deadline(&self) -> Option<u64> {
        match self.due {
            Due::At(at_ns) => Some(at_ns),
            Due::No | Due::Now => None,
        }
    }

    /// The delay ended without a second segment: waits longer next time (`tcp_delack_timer_handler`).
    pub(crate) fn on_delay_over(&mut self, rto_ns: u64) {
        self.delay_ns = self.delay_ns.map(|delay_ns| (2 * delay_ns).min(rto_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const PACE: Pace = Pace { srtt_ns: Some(20 * MS), rto_ns: 220 * MS, half_window_segments: 22 };

    /// After the quick acknowledgements of the start, data at 1000 ms.
    fn settled() -> DelayedAck {
        DelayedAck { delay_ns: Some(40 * MS), last_data_ns: 1000 * MS, ..DelayedAck::default() }
    }

    #[test]
    fn a_lone_segment_waits_40_ms() {
        let mut ack = settled();
        ack.owe(1000 * MS, false, PACE);
        assert_eq!(ack.deadline(), Some(1040 * MS));
        assert!(!ack.is_due(1039 * MS) && ack.is_due(1040 * MS));
    }

    #[test]
    fn the_first_sixteen_are_sent_at_once() {
        let mut ack = DelayedAck::default();
        let at_once = (0..30u64)
            .take_while(|&ms| {
                ack.on_data(ms * MS, PACE);
                ack.owe(ms * MS, false, PACE);
                let due = ack.is_due(ms * MS);
                ack.on_sent();
                due
            })
            .count();
        assert_eq!(at_once, 16);
    }

    #[test]
    fn a_small_window_allows_fewer_quick_ones() {
        let mut ack = DelayedAck::default();
        ack.on_data(0, Pace { half_window_segments: 5, ..PACE });
        assert_eq!(ack.quick, 5);
    }

    #[test]
    fn a_silence_longer_than_the_timeout_makes_it_quick_again() {
        let mut ack = settled();
        ack.on_data(1220 * MS, PACE);
        assert_eq!(ack.quick, 0);
        ack.on_data(1441 * MS, PACE);
        assert_eq!(ack.quick, 16);
    }

    #[test]
    fn one_that_is_nearly_due_goes_with_the_next_segment() {
        let mut ack = settled();
        ack.owe(1000 * MS, false, PACE);
        // 40 / 4 = 10 ms before it is due: at 1030.
        ack.owe(1029 * MS, false, PACE);
        assert!(!ack.is_due(1029 * MS));
        ack.owe(1030 * MS, false, PACE);
        assert!(ack.is_due(1030 * MS));
    }

    #[test]
    fn a_delay_in_vain_doubles_the_next_but_not_beyond_the_round_trip() {
        let mut ack = settled();
        ack.on_delay_over(220 * MS);
        assert_eq!(ack.delay_ns, Some(80 * MS));
        ack.owe(2000 * MS, false, Pace { srtt_ns: Some(60 * MS), ..PACE });
        assert_eq!(ack.deadline(), Some(2060 * MS));
    }
}
