//! When an acknowledgement is sent (RFC 9293, section 3.8.6.3; RFC 5681, section 4.2; the kernel's
//! `__tcp_ack_snd_check`, `tcp_event_data_recv`, `tcp_send_delayed_ack` and `__tcp_cleanup_rbuf`).
//!
//! Every second full segment is acknowledged at once, or, if unread data makes the window smaller than the last one
//! offered, when the application has read it. A lone segment is acknowledged after a delay. The delay is at least 40 ms and
//! adapts to the gaps between arrivals. At the start, after a long silence, and when something is wrong, every segment
//! is acknowledged at once ("quick" acknowledgements), so that the sender's window grows fast. The end of each write of
//! the peer's application is also acknowledged at once, as soon as it has been read. A connection that answers the data
//! that it receives ("pingpong" mode) does neither: its acknowledgements travel with its answers.

use super::super::Timers;
use super::compression::Compression;
use crate::timers::earlier;

/// Smallest delay (`TCP_ATO_MIN`, `TCP_DELACK_MIN`).
const DELAY_MIN_NS: u64 = 40_000_000;
/// Largest delay (`icsk_delack_max`; it is below the `HZ / 2` of the same function).
const DELAY_MAX_NS: u64 = 200_000_000;
/// Most quick acknowledgements in a row (`TCP_MAX_QUICKACKS`).
const MAX_QUICK: u64 = 16;
/// How long after a packet's arrival the application has read it, and an acknowledgement that waits for this is sent. It
/// is 10.8 us in the guest, where the kernel's own acknowledgements are sent after 7.5 us (docs/transports.md). The
/// packets that arrive meanwhile are processed first.
const READ_NS: u64 = 10_000;

/// The pending acknowledgement and the state that decides when to send it.
#[derive(Debug)]
pub(crate) struct DelayedAck {
    timers: Timers,
    due: Due,
    /// The next acknowledgement reports something new (`inet_csk_ack_scheduled`).
    has_news: bool,
    /// Quick acknowledgements left.
    quick: u64,
    /// The current delay (`ato`); `None` before the first data.
    delay_ns: Option<u64>,
    last_data_ns: u64,
    /// The connection answers the data that it receives (`pingpong`).
    answers: bool,
    pushed: Pushed,
    compression: Compression,
    /// When the pending acknowledgement is sent that is held back, or that waits for the application.
    held_until_ns: Option<u64>,
}

/// How many ends of the peer application's writes have arrived since the last acknowledgement (`ICSK_ACK_PUSHED`,
/// `PUSHED2`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Pushed {
    #[default]
    No,
    Once,
    Twice,
}

/// How urgent an acknowledgement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// It can be delayed.
    Normal,
    /// It repeats `ack` and reports packets beyond a gap. The round-trip time is `rtt_ns`.
    Repeats { ack: u64, rtt_ns: u64 },
    /// It has to be sent at once.
    AtOnce,
}

/// Whether an acknowledgement is owed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Due {
    #[default]
    No,
    At(u64),
    Now,
}

/// The state to which the delays adapt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Smoothed round-trip time, if this side has measured one.
    pub(crate) srtt_ns: Option<u64>,
    /// This side's retransmission timeout: a longer silence means that the sender has restarted.
    pub(crate) rto_ns: u64,
    /// The offered window.
    pub(crate) window_bytes: u64,
    /// Payload of a full segment.
    pub(crate) mss_bytes: u32,
}

impl Pace {
    /// The number of segments that fit into half of the offered window. Few acknowledgements need it, so that the others
    /// are spared a division.
    fn half_window_segments(self) -> u64 {
        self.window_bytes / (2 * u64::from(self.mss_bytes))
    }
}

impl DelayedAck {
    /// Nothing has arrived yet.
    pub(crate) fn new(timers: Timers) -> Self {
        Self {
            timers,
            due: Due::No,
            has_news: false,
            quick: 0,
            delay_ns: None,
            last_data_ns: 0,
            answers: false,
            pushed: Pushed::No,
            compression: Compression::default(),
            held_until_ns: None,
        }
    }

    /// Data has arrived in order: adapts the delay to the gap between arrivals. A segment that is not `full` or that
    /// carries the push flag ends a write of the peer's application (`tcp_measure_rcv_mss`).
    #[inline]
    pub(crate) fn on_data(&mut self, now_ns: u64, full: bool, pushes: bool, pace: Pace) {
        if !full && self.pushed > Pushed::No {
            self.pushed = Pushed::Twice;
        } else if !full || pushes {
            self.pushed = self.pushed.max(Pushed::Once);
        }
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
            self.delay_ns = Some((delay_ns / 2 + gap_ns).min(pace.rto_ns));
        } else if gap_ns > pace.rto_ns {
            self.acknowledge_quickly(MAX_QUICK, pace);
        }
    }

    /// Sends up to `most` of the next acknowledgements at once.
    #[cold]
    fn acknowledge_quickly(&mut self, most: u64, pace: Pace) {
        let segments = pace.half_window_segments();
        let wanted = if segments == 0 { 2 } else { segments };
        self.quick = self.quick.max(wanted.min(most));
    }

    /// Something is wrong, so the next segments should be acknowledged at once (`tcp_enter_quickack_mode`).
    pub(crate) fn hurry(&mut self, pace: Pace) {
        self.acknowledge_quickly(MAX_QUICK, pace);
        self.answers = false;
        self.delay_ns = Some(DELAY_MIN_NS);
    }

    /// Like [`hurry`](Self::hurry), but only for the next two segments, because congestion was experienced.
    pub(crate) fn hurry_briefly(&mut self, pace: Pace) {
        self.acknowledge_quickly(2, pace);
        self.answers = false;
        self.delay_ns = Some(DELAY_MIN_NS);
    }

    /// Data is sent. It counts as an answer if data was received shortly before (`tcp_event_data_sent`).
    #[inline]
    pub(crate) fn on_data_sent(&mut self, now_ns: u64) {
        if self.delay_ns.is_some_and(|delay_ns| now_ns - self.last_data_ns < delay_ns) {
            self.answers = true;
        }
    }

    /// The other side has finished, so all data sent from now on counts as answers.
    pub(crate) fn on_finish(&mut self) {
        self.answers = true;
    }

    /// At least one more acknowledgement is sent at once, because the window has just opened.
    pub(crate) fn one_quick(&mut self) {
        self.quick |= 1;
    }

    /// An acknowledgement is owed.
    #[inline]
    pub(crate) fn owe(&mut self, now_ns: u64, urgency: Urgency, pace: Pace) {
        self.has_news = true;
        if urgency == Urgency::AtOnce || self.is_quick() {
            self.due = Due::Now;
            return;
        }
        match urgency {
            Urgency::Repeats { ack, rtt_ns } => match self.compression.hold(ack, rtt_ns) {
                Some(hold_ns) => _ = self.held_until_ns.get_or_insert(now_ns + hold_ns),
                None => self.due = Due::Now,
            },
            Urgency::Normal | Urgency::AtOnce => self.delay(now_ns, pace),
        }
    }

    /// The last acknowledgement is sent again, now, although there is nothing new to report. That does not use up a quick
    /// acknowledgement.
    pub(crate) fn repeat(&mut self) {
        self.due = Due::Now;
    }

    /// Whether data is acknowledged at once (`tcp_in_quickack_mode`).
    #[inline]
    pub(crate) fn is_quick(&self) -> bool {
        self.quick > 0 && !self.answers
    }

    fn delay(&mut self, now_ns: u64, pace: Pace) {
        // Before the first data there is no delay.
        let mut delay_ns = self.delay_ns.unwrap_or(0);
        if delay_ns > DELAY_MIN_NS {
            let rtt_ns = pace.srtt_ns.map_or(DELAY_MAX_NS, |srtt_ns| srtt_ns.max(DELAY_MIN_NS));
            delay_ns = delay_ns.min(DELAY_MAX_NS).min(rtt_ns);
        }
        let at_ns = self.timers.expiry_ns(now_ns, delay_ns);
        self.due = match self.due {
            Due::Now => Due::Now,
            // An acknowledgement that is nearly due is sent now.
            Due::At(earlier_ns) if earlier_ns <= now_ns + delay_ns / 4 => Due::Now,
            Due::At(earlier_ns) => Due::At(earlier_ns.min(at_ns)),
            Due::No => Due::At(at_ns),
        };
    }

    /// The application will have read everything in a moment, and it is then acknowledged if there `is_much_to_report`, or
    /// if a write has ended and the connection is not one that answers. Returns whether it will be.
    #[inline]
    pub(crate) fn on_data_ready(&mut self, now_ns: u64, is_much_to_report: bool) -> bool {
        let has_ended = self.pushed == Pushed::Twice || (self.pushed == Pushed::Once && !self.answers);
        let waits = self.due != Due::Now && (is_much_to_report || (has_ended && self.due != Due::No));
        if waits {
            self.held_until_ns = earlier(self.held_until_ns, Some(now_ns + READ_NS));
        }
        waits
    }

    /// The application has read everything, and it is acknowledged now.
    pub(crate) fn on_read(&mut self) {
        self.due = Due::Now;
    }

    /// A segment is sent that acknowledges everything. If it reports something new, it uses up a quick acknowledgement
    /// (`tcp_dec_quickack_mode`).
    #[inline]
    pub(crate) fn on_sent(&mut self) {
        if std::mem::take(&mut self.has_news) && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.delay_ns = Some(DELAY_MIN_NS);
            }
        }
        self.due = Due::No;
        self.pushed = Pushed::No;
        self.held_until_ns = None;
        self.compression.on_sent();
    }

    /// Whether an acknowledgement is delayed or held back.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.due, Due::At(_)) || self.is_holding()
    }

    /// Whether an acknowledgement of packets beyond a gap is held back.
    pub(crate) fn is_holding(&self) -> bool {
        self.compression.is_holding()
    }

    /// Whether an acknowledgement must be sent now.
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        self.due == Due::Now || self.deadline().is_some_and(|at_ns| at_ns <= now_ns)
    }

    /// When the delay ends.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<u64> {
        let delayed_ns = match self.due {
            Due::At(at_ns) => Some(at_ns),
            Due::No | Due::Now => None,
        };
        earlier(delayed_ns, self.held_until_ns)
    }

    /// The delay has ended without a second segment, so the next delay is longer. If an answer was expected and did not
    /// come, answers are no longer expected (`tcp_delack_timer_handler`).
    pub(crate) fn on_delay_over(&mut self, now_ns: u64, rto_ns: u64) {
        if !matches!(self.due, Due::At(at_ns) if at_ns <= now_ns) {
            return;
        }
        if std::mem::take(&mut self.answers) {
            self.delay_ns = Some(DELAY_MIN_NS);
        } else {
            self.delay_ns = self.delay_ns.map(|delay_ns| (2 * delay_ns).min(rto_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const MSS_BYTES: u32 = 1448;
    const PACE: Pace =
        Pace { srtt_ns: Some(20 * MS), rto_ns: 220 * MS, window_bytes: 44 * MSS_BYTES as u64, mss_bytes: MSS_BYTES };

    /// The state after the quick acknowledgements of the start. The last data arrived at 1000 ms.
    fn settled() -> DelayedAck {
        DelayedAck { delay_ns: Some(40 * MS), last_data_ns: 1000 * MS, ..DelayedAck::new(Timers::Exact) }
    }

    #[test]
    fn a_lone_segment_waits_40_ms() {
        let mut ack = settled();
        ack.owe(1000 * MS, Urgency::Normal, PACE);
        assert_eq!(ack.deadline(), Some(1040 * MS));
        assert!(!ack.is_due(1039 * MS) && ack.is_due(1040 * MS));
    }

    #[test]
    fn the_first_sixteen_are_sent_at_once() {
        let mut ack = DelayedAck::new(Timers::Exact);
        let at_once = (0..30u64)
            .take_while(|&ms| {
                ack.on_data(ms * MS, true, false, PACE);
                ack.owe(ms * MS, Urgency::Normal, PACE);
                let due = ack.is_due(ms * MS);
                ack.on_sent();
                due
            })
            .count();
        assert_eq!(at_once, 16);
    }

    #[test]
    fn a_small_window_allows_fewer_quick_ones() {
        let mut ack = DelayedAck::new(Timers::Exact);
        ack.on_data(0, true, false, Pace { window_bytes: 10 * u64::from(MSS_BYTES), ..PACE });
        assert_eq!(ack.quick, 5);
    }

    #[test]
    fn an_acknowledgement_that_reports_nothing_new_is_not_one_of_the_quick_ones() {
        let mut ack = DelayedAck { quick: 16, ..settled() };
        ack.repeat();
        assert!(ack.is_due(1000 * MS));
        ack.on_sent();
        assert_eq!((ack.quick, ack.is_due(1000 * MS)), (16, false));
        ack.owe(1000 * MS, Urgency::Normal, PACE);
        ack.repeat();
        ack.on_sent();
        assert_eq!(ack.quick, 15);
    }

    #[test]
    fn a_silence_longer_than_the_timeout_makes_it_quick_again() {
        let mut ack = settled();
        ack.on_data(1220 * MS, true, false, PACE);
        assert_eq!(ack.quick, 0);
        ack.on_data(1441 * MS, true, false, PACE);
        assert_eq!(ack.quick, 16);
    }

    #[test]
    fn one_that_is_nearly_due_goes_with_the_next_segment() {
        let mut ack = settled();
        ack.owe(1000 * MS, Urgency::Normal, PACE);
        // It leaves up to 40 / 4 = 10 ms before it is due, so from 1030 ms on.
        ack.owe(1029 * MS, Urgency::Normal, PACE);
        assert!(!ack.is_due(1029 * MS));
        ack.owe(1030 * MS, Urgency::Normal, PACE);
        assert!(ack.is_due(1030 * MS));
    }

    #[test]
    fn a_useless_delay_doubles_the_next_but_not_beyond_the_round_trip() {
        let mut ack = settled();
        ack.owe(1000 * MS, Urgency::Normal, PACE);
        ack.on_delay_over(1040 * MS, 220 * MS);
        ack.on_sent();
        assert_eq!(ack.delay_ns, Some(80 * MS));
        ack.owe(2000 * MS, Urgency::Normal, Pace { srtt_ns: Some(60 * MS), ..PACE });
        assert_eq!(ack.deadline(), Some(2060 * MS));
    }

    #[test]
    fn no_delay_is_longer_than_200_ms_however_long_the_round_trip() {
        for srtt_ns in [None, Some(600 * MS)] {
            let mut ack = DelayedAck { delay_ns: Some(400 * MS), ..settled() };
            ack.owe(1000 * MS, Urgency::Normal, Pace { srtt_ns, rto_ns: 800 * MS, ..PACE });
            assert_eq!(ack.deadline(), Some(1200 * MS));
        }
    }

    #[test]
    fn the_end_of_a_write_is_acknowledged_when_it_is_read() {
        // A segment that is not full, and a full one with the push flag.
        for (full, pushes) in [(false, false), (true, true)] {
            let mut ack = settled();
            ack.on_data(1000 * MS, full, pushes, PACE);
            ack.owe(1000 * MS, Urgency::Normal, PACE);
            assert!(ack.on_data_ready(1000 * MS, false));
            assert!(!ack.is_due(1000 * MS));
            assert!(ack.is_due(1000 * MS + READ_NS));
        }
        let mut ack = settled();
        ack.on_data(1000 * MS, true, false, PACE);
        ack.owe(1000 * MS, Urgency::Normal, PACE);
        assert!(!ack.on_data_ready(1000 * MS, false));
        assert!(!ack.is_due(1039 * MS));
    }

    #[test]
    fn who_answers_acknowledges_with_the_answer() {
        let mut ack = DelayedAck { quick: 16, ..settled() };
        ack.on_data_sent(1010 * MS);
        ack.on_data(1020 * MS, false, true, PACE);
        ack.owe(1020 * MS, Urgency::Normal, PACE);
        assert!(!ack.on_data_ready(1020 * MS, false));
        assert_eq!(ack.deadline(), Some(1060 * MS));
        // No answer came, so none is expected the next time.
        ack.on_delay_over(1060 * MS, 220 * MS);
        assert!(!ack.answers);
    }

    #[test]
    fn data_sent_long_after_some_was_received_is_no_answer() {
        let mut ack = settled();
        ack.on_data_sent(1040 * MS);
        assert!(!ack.answers);
    }
}
