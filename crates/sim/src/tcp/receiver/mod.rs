//! The half of an endpoint that receives data (the kernel's `tcp_data_queue`). It tracks which data has arrived
//! ([`reassembly`]), how much more may arrive ([`window`]), which segments are acceptable ([`validation`]), when to
//! acknowledge ([`delayed_ack`], [`compression`]), and which ECN marks arrived ([`ecn`]).
//!
//! The application reads all in-order data at once, except that an acknowledgement that its reading causes may be sent a
//! few microseconds later ([`delayed_ack`]). An acknowledgement that does not wait for the application is sent before it
//! reads: then the data still occupies the buffer, which has not grown yet.

mod compression;
mod delayed_ack;
pub(crate) mod ecn;
mod memory;
mod reassembly;
mod validation;
mod window;

use super::config::{Config, Role};
use super::ecn::Mode;
use super::timestamps;
use crate::network::segment::{Flags, SackBlocks, Segment};
use crate::network::traffic_class::Ecn;
use delayed_ack::{DelayedAck, Pace, Urgency};
use ecn::Echo;
use memory::Storage;
use reassembly::{Arrival, Reassembly};
use window::ReceiveWindow;
pub use window::window_scale;

/// The number of blocks that reliably reach the sender, since segments carry three and acknowledgements may be lost
/// (`TCP_SACK_BLOCKS_EXPECTED`).
const BLOCKS_SURELY_REPORTED: usize = 2;

/// The receiving half of an endpoint.
#[derive(Debug)]
pub(crate) struct Receiver {
    mss_bytes: u32,
    reassembly: Reassembly,
    window: ReceiveWindow,
    delayed: DelayedAck,
    /// Memory of packets that the application has not read when the next acknowledgement is sent.
    unread_bytes: u64,
    /// When such packets came, and up to where the application reads first.
    read: Option<(u64, u64)>,
    /// Sequence number after the peer's FIN, once the FIN was seen.
    fin_end: Option<u64>,
    /// The peer's clock to be echoed (TS.Recent, RFC 7323, section 4.3).
    ts_recent: u32,
    /// The last acknowledgement sent (Last.ACK.sent).
    acked: u64,
    /// When an invalid segment without payload was last answered.
    answered_invalid_ns: Option<u64>,
    echo: Echo,
}

/// The part of every segment that reports about the receiving half.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgement {
    /// Next sequence number expected.
    pub(crate) ack: u64,
    /// Window from `ack` on.
    pub(crate) window_bytes: u32,
    /// The peer's clock.
    pub(crate) ts_ecr: u32,
    /// What arrived out of order.
    pub(crate) sack: SackBlocks,
    /// ACK, and the congestion flags.
    pub(crate) flags: Flags,
}

/// The sending half's timing, which the receiving half uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrip {
    /// Smoothed round-trip time.
    pub(crate) srtt_ns: Option<u64>,
    /// Retransmission timeout.
    pub(crate) rto_ns: u64,
}

/// The SYN takes one sequence number.
const AFTER_SYN: u64 = 1;

impl Receiver {
    /// A receiver that waits for the handshake.
    pub(crate) fn new(config: &Config, role: Role) -> Self {
        let storage = if config.gso_max_segs > 1 { Storage::Paged } else { Storage::Linear };
        // A client does not know yet that timestamps will be used, so it assumes segments that are 12 bytes longer.
        let mss_bytes = config.mss_bytes + if role == Role::Client { 12 } else { 0 };
        Self {
            mss_bytes: config.mss_bytes,
            reassembly: Reassembly::new(AFTER_SYN, storage),
            window: ReceiveWindow::new(mss_bytes, config.rmem_default_bytes, config.rmem_max_bytes),
            delayed: DelayedAck::new(config.timers),
            unread_bytes: 0,
            read: None,
            fin_end: None,
            ts_recent: 0,
            acked: 0,
            answered_invalid_ns: None,
            echo: Echo::default(),
        }
    }

    /// The window of our SYN.
    pub(crate) fn syn_window(&mut self) -> u32 {
        self.window.of_syn(AFTER_SYN)
    }

    /// The peer's SYN arrived.
    pub(crate) fn on_syn(&mut self, segment: &Segment) {
        self.ts_recent = segment.ts_val;
        self.acked = AFTER_SYN;
    }

    /// The peer's clock, to be echoed.
    pub(crate) fn ts_recent(&self) -> u32 {
        self.ts_recent
    }

    /// Notes the peer's clock by an acceptable segment, before anything is sent for it (RFC 7323, section 4.3;
    /// `tcp_replace_ts_recent`).
    #[inline]
    pub(crate) fn note_clock(&mut self, segment: &Segment) {
        if segment.seq <= self.acked && !timestamps::is_before(segment.ts_val, self.ts_recent) {
            self.ts_recent = segment.ts_val;
        }
    }

    /// The handshake is complete.
    pub(crate) fn establish(&mut self, now_ns: u64, ecn: Mode, of_syn_ack: Option<Ecn>) {
        self.echo.establish(ecn, of_syn_ack);
        self.window.start(now_ns, AFTER_SYN);
    }

    /// Payload received in order.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.reassembly.next() - AFTER_SYN - u64::from(self.is_finished())
    }

    /// Whether everything has arrived up to and including the peer's FIN.
    pub(crate) fn is_finished(&self) -> bool {
        self.fin_end.is_some_and(|end| self.reassembly.next() >= end)
    }

    /// Whether the segment is the next one, and nothing waits for a gap to be filled.
    #[inline]
    pub(crate) fn expects(&self, segment: &Segment) -> bool {
        segment.seq == self.reassembly.next() && !self.reassembly.has_gap()
    }

    /// Whether a pending acknowledgement must be sent before this segment, with this codepoint, is processed. It must
    /// if the segment changes the congestion to report (RFC 8257, section 3.2), or if it changes the order of the
    /// blocks (`tcp_sack_new_ofo_skb`), because the later blocks might never be reported if acknowledgements are lost.
    #[inline]
    pub(crate) fn owes_before(&self, segment: &Segment, codepoint: Ecn) -> bool {
        (self.echo.changes(codepoint) && self.delayed.is_waiting())
            || (self.delayed.is_holding() && self.reaches_older_block(segment))
    }

    #[cold]
    fn reaches_older_block(&self, segment: &Segment) -> bool {
        self.reassembly.recency(segment.seq, segment.end()).is_some_and(|later| later >= BLOCKS_SURELY_REPORTED)
    }

    /// Processes the payload and FIN of an acceptable segment. Returns whether an acknowledgement now waits for the
    /// application to read.
    pub(crate) fn on_segment(&mut self, now_ns: u64, segment: &Segment, ecn: Ecn, round_trip: RoundTrip) -> bool {
        let marks = self.echo.on_packet(segment, ecn);
        if segment.end() == segment.seq {
            return false;
        }
        self.window.measure_rtt(now_ns, segment.ts_ecr, segment.len);
        let pace = self.pace(round_trip);
        if marks.hurry {
            self.delayed.hurry_briefly(pace);
        }
        let had_gap = self.reassembly.has_gap();
        let held_bytes = self.reassembly.held_bytes();
        let arrival = self.reassembly.insert(segment.seq, segment.end());
        let memory_bytes = memory::unread(u64::from(segment.len));
        let unread_bytes = held_bytes + memory_bytes;
        let read = match arrival {
            Arrival::InOrder => Some(segment.seq + u64::from(segment.len)),
            Arrival::FilledGap { read } => Some(read),
            Arrival::OutOfOrder => {
                if self.window.open(segment.len, memory_bytes, held_bytes) {
                    self.delayed.one_quick();
                }
                None
            }
            Arrival::Duplicate => {
                self.delayed.hurry(pace);
                None
            }
        };
        if read.is_some() {
            self.on_data(now_ns, segment, pace, unread_bytes);
        }
        if segment.flags.fin() {
            self.fin_end = Some(segment.end());
        }
        // RFC 5681, section 4.2: acknowledge at once when the last gap is filled.
        let filled = had_gap && !self.reassembly.has_gap();
        let held_bytes = self.reassembly.held_bytes();
        let unread_bytes = if read.is_some() { unread_bytes.saturating_sub(held_bytes) } else { 0 };
        let next = self.reassembly.next();
        let has_second_segment = next - self.acked > u64::from(self.mss_bytes);
        let at_once =
            marks.at_once || filled || (has_second_segment && self.window.keeps_size(held_bytes + unread_bytes));
        let urgency = if at_once {
            Urgency::AtOnce
        } else if self.reassembly.has_gap() {
            let rtt_ns = self.window.rtt_ns();
            let rtt_ns = round_trip.srtt_ns.map_or(rtt_ns, |srtt_ns| srtt_ns.min(rtt_ns));
            Urgency::Repeats { ack: next, rtt_ns }
        } else {
            Urgency::Normal
        };
        if self.is_finished() {
            self.delayed.on_finish();
        }
        self.delayed.owe(now_ns, urgency, pace);
        // Other acknowledgements are sent when the application has read the data, or later.
        let waits = !self.delayed.is_due(now_ns);
        self.unread_bytes = if waits { 0 } else { unread_bytes };
        if let Some(read) = read {
            self.read = Some((now_ns, read));
            if waits {
                self.adjust_window();
            }
        }
        read.is_some() && {
            let is_much_to_report = has_second_segment || self.window.has_doubled(next, held_bytes);
            self.delayed.on_data_ready(now_ns, is_much_to_report)
        }
    }

    /// The application has read everything, and the acknowledgement that waited for this is owed now.
    pub(crate) fn on_read(&mut self) {
        self.delayed.on_read();
    }

    /// The acknowledgement for a segment that is sent now. Only segments without payload carry SACK blocks (the kernel
    /// shortens the payload to make room for them). After a segment with payload, gaps must therefore still be
    /// reported.
    #[inline]
    pub(crate) fn acknowledge(&mut self, pure: bool) -> Acknowledgement {
        let ack = self.reassembly.next();
        self.acked = ack;
        if pure || !self.reassembly.has_blocks() {
            self.delayed.on_sent();
        }
        let unread_bytes = std::mem::take(&mut self.unread_bytes);
        let window_bytes = self.window.offer(ack, self.reassembly.held_bytes() + unread_bytes);
        self.adjust_window();
        Acknowledgement {
            ack,
            window_bytes,
            ts_ecr: self.ts_recent,
            sack: if pure { self.reassembly.take_blocks() } else { SackBlocks::NONE },
            flags: Flags::ACK | self.echo.flags(),
        }
    }

    /// An acknowledgement is owed at once.
    pub(crate) fn owe_at_once(&mut self, now_ns: u64, round_trip: RoundTrip) {
        let pace = self.pace(round_trip);
        self.delayed.owe(now_ns, Urgency::AtOnce, pace);
    }

    /// Data is sent.
    #[inline]
    pub(crate) fn on_data_sent(&mut self, now_ns: u64) {
        self.delayed.on_data_sent(now_ns);
    }

    /// Whether a pure acknowledgement must be sent now.
    #[inline]
    pub(crate) fn owes(&self, now_ns: u64) -> bool {
        self.delayed.is_due(now_ns)
    }

    /// When a delayed acknowledgement must be sent.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.delayed.deadline()
    }

    /// The delay is over.
    pub(crate) fn on_delay_over(&mut self, now_ns: u64, round_trip: RoundTrip) {
        self.delayed.on_delay_over(now_ns, round_trip.rto_ns);
    }

    /// Data has arrived in order. It takes `unread_bytes` of memory, with the data behind the gap that it filled.
    fn on_data(&mut self, now_ns: u64, segment: &Segment, pace: Pace, unread_bytes: u64) {
        if segment.len > 0 {
            self.delayed.on_data(now_ns, segment.len >= self.mss_bytes, segment.flags.psh(), pace);
        }
        let memory_bytes = self.reassembly.storage().without_headers(u64::from(segment.len));
        if self.window.open_in_order(segment.len, memory_bytes, unread_bytes) {
            self.delayed.one_quick();
        }
    }

    /// The application reads what it has not read yet.
    #[inline]
    fn adjust_window(&mut self) {
        if let Some((now_ns, read)) = self.read.take() {
            self.window.adjust(now_ns, read);
        }
    }

    fn pace(&self, round_trip: RoundTrip) -> Pace {
        Pace {
            srtt_ns: round_trip.srtt_ns,
            rto_ns: round_trip.rto_ns,
            window_bytes: self.window.offered(self.reassembly.next()),
            mss_bytes: self.mss_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const MS: u64 = 1_000_000;
    pub(super) const ROUND_TRIP: RoundTrip = RoundTrip { srtt_ns: Some(20 * MS), rto_ns: 220 * MS };

    /// A receiver with the window fully open, after its quick acknowledgements.
    pub(super) fn receiver() -> Receiver {
        let config = Config { rmem_default_bytes: 100_000, rmem_max_bytes: 100_000, ..Config::default() };
        let mut receiver = Receiver::new(&config, Role::Server);
        receiver.acked = AFTER_SYN;
        receiver.establish(0, Mode::Off, None);
        receiver.acknowledge(true);
        for n in 0..20 {
            arrive(&mut receiver, n, n);
            receiver.acknowledge(true);
        }
        receiver
    }

    /// The `n`th full segment, sent at `sent_ms`.
    pub(super) fn full(n: u64, sent_ms: u32) -> Segment {
        let len = Config::default().mss_bytes;
        let (sack, flags) = (SackBlocks::NONE, Flags::ACK);
        let seq = AFTER_SYN + n * u64::from(len);
        Segment { seq, ack: 1, len, window_bytes: 0, ts_val: sent_ms, ts_ecr: 1, sack, flags }
    }

    /// The `n`th full segment, which was sent and arrives at `at_ms`.
    fn arrive(receiver: &mut Receiver, at_ms: u64, n: u64) {
        let segment = full(n, at_ms as u32);
        assert!(receiver.accepts(at_ms * MS, &segment, ROUND_TRIP, |_| false));
        receiver.note_clock(&segment);
        receiver.on_segment(at_ms * MS, &segment, Ecn::NotEct, ROUND_TRIP);
    }

    #[test]
    fn a_single_segment_waits_but_not_if_it_closes_a_gap() {
        let mut receiver = receiver();
        arrive(&mut receiver, 20, 20);
        assert!(!receiver.owes(20 * MS));
        receiver.acknowledge(true);
        arrive(&mut receiver, 21, 22);
        assert!(receiver.owes(21 * MS));
        receiver.acknowledge(true);
        // RFC 5681, section 4.2.
        arrive(&mut receiver, 22, 21);
        assert!(receiver.owes(22 * MS));
    }

    #[test]
    fn if_unread_data_limits_the_window_a_second_segment_is_acknowledged_when_it_has_been_read() {
        let mut receiver = Receiver::new(&Config::default(), Role::Server);
        receiver.acked = AFTER_SYN;
        receiver.establish(0, Mode::Off, None);
        let acknowledge = |receiver: &mut Receiver, ms: u64, segments: std::ops::Range<u64>| {
            for n in segments {
                arrive(receiver, ms, n);
                receiver.acknowledge(true);
            }
        };
        // The buffer grows once, and the window opens as far as a packet that has not been read lets it.
        acknowledge(&mut receiver, 51, 0..12);
        acknowledge(&mut receiver, 102, 12..200);
        arrive(&mut receiver, 103, 200);
        assert!(!receiver.owes(103 * MS));
        arrive(&mut receiver, 103, 201);
        assert!(receiver.owes(103 * MS));
        receiver.acknowledge(true);
        // A packet beyond a gap opens it further. The whole buffer is offered by an acknowledgement that was delayed until
        // everything was read; an unread packet makes the window smaller than that.
        acknowledge(&mut receiver, 104, 203..204);
        acknowledge(&mut receiver, 104, 202..203);
        acknowledge(&mut receiver, 105, 204..205);
        arrive(&mut receiver, 150, 205);
        arrive(&mut receiver, 150, 206);
        assert_eq!(receiver.deadline(), Some(150 * MS + 10_000));
        assert!(!receiver.owes(150 * MS) && receiver.owes(150 * MS + 10_000));
    }

    #[test]
    fn beyond_a_gap_the_fourth_acknowledgement_is_held_back() {
        let mut receiver = receiver();
        let held: Vec<bool> = (21..26)
            .map(|n| {
                arrive(&mut receiver, 20, n);
                let owes = receiver.owes(20 * MS);
                if owes {
                    receiver.acknowledge(true);
                }
                !owes
            })
            .collect();
        assert_eq!(held, [false, false, false, true, true]);
        // It is held back for a twentieth of the round-trip time, which is 20 ms at most.
        assert!(receiver.deadline().is_some_and(|at_ns| at_ns <= 21 * MS));
    }

    #[test]
    fn data_does_not_replace_the_acknowledgement_that_reports_a_gap() {
        let mut receiver = receiver();
        arrive(&mut receiver, 20, 21);
        assert!(receiver.acknowledge(false).sack.is_empty());
        assert!(receiver.owes(20 * MS));
        assert_eq!(receiver.acknowledge(true).sack.len(), 1);
        assert!(!receiver.owes(20 * MS));
    }

    #[test]
    fn a_delayed_acknowledgement_echoes_the_clock_of_the_first_segment_it_is_for() {
        // The sender's measurement has to include the delay (RFC 7323, section 4.3, case A).
        let mut receiver = receiver();
        arrive(&mut receiver, 20, 20);
        arrive(&mut receiver, 30, 21);
        assert_eq!(receiver.acknowledge(true).ts_ecr, 20);
        arrive(&mut receiver, 40, 22);
        assert_eq!(receiver.acknowledge(true).ts_ecr, 40);
    }

    #[test]
    fn when_a_gap_closes_the_round_trip_that_ends_has_read_the_first_packet_only() {
        let config = Config { rmem_default_bytes: 131_072, rmem_max_bytes: 6 << 20, ..Config::default() };
        let mut receiver = Receiver::new(&config, Role::Server);
        receiver.acked = AFTER_SYN;
        receiver.establish(0, Mode::Off, None);
        let mut at = |ms: u64, segments: std::ops::Range<u64>| {
            for n in segments {
                arrive(&mut receiver, ms, n);
                receiver.acknowledge(true);
            }
        };
        // Round trips take 51 ms. The first ends with the first segment. In the second, one segment arrives last, and
        // 19 wait for it.
        at(51, 0..10);
        at(60, 11..30);
        at(102, 10..11);
        // Ten segments were read in it, no more than assumed. In the third round, the 19 and one more are read: 2 * 20
        // + 16 segments, plus twice that number for the growth from 10 by 10, make 168. As soon as the window is open:
        at(153, 30..31);
        at(154, 31..131);
        // The last segment takes memory when the acknowledgement is sent, and half of that is no longer offered.
        let window_bytes = 168 * 1460 - memory::unread(u64::from(receiver.mss_bytes)) / 2;
        assert_eq!(u64::from(receiver.acknowledge(true).window_bytes), window_bytes.next_multiple_of(128));
    }
}
