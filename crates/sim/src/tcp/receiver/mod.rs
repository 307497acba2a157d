//! The half of an endpoint that receives data: what has arrived ([`reassembly`]), how much more may come ([`window`]), and
//! when to say so ([`delayed_ack`]); the kernel's `tcp_data_queue`.
//!
//! The application reads everything in order at once, so nothing in order ever occupies the buffer.

mod delayed_ack;
mod reassembly;
mod window;

use super::config::{Config, Role};
use super::segment::{Flags, SackBlocks, Segment};
use crate::packet;
use delayed_ack::{DelayedAck, Pace};
use reassembly::{Arrival, Reassembly};
use window::ReceiveWindow;

/// The receiving half of an endpoint.
#[derive(Debug)]
pub(crate) struct Receiver {
    mss_bytes: u32,
    reassembly: Reassembly,
    window: ReceiveWindow,
    delayed: DelayedAck,
    /// Sequence number after the peer's FIN, once it was seen.
    fin_end: Option<u64>,
    /// The peer's clock to be echoed (TS.Recent, RFC 7323, section 4.3).
    ts_recent: u32,
    /// The last acknowledgement sent (Last.ACK.sent).
    acked: u64,
    ecn: EcnEcho,
}

/// The receiver's part of ECN (RFC 3168, section 6.1.3).
#[derive(Debug, Default)]
struct EcnEcho {
    /// Both ends agreed.
    enabled: bool,
    /// Congestion was experienced, and the sender has not said yet that it reduced its window.
    echoing: bool,
}

/// What every segment tells about the receiving half.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgement {
    /// Next sequence number expected.
    pub(crate) ack: u64,
    /// Window from there on.
    pub(crate) window_bytes: u32,
    /// The peer's clock.
    pub(crate) ts_ecr: u32,
    /// What arrived out of order.
    pub(crate) sack: SackBlocks,
    /// ACK, and ECE while congestion is echoed.
    pub(crate) flags: Flags,
}

/// What the receiving half borrows from the sending half's clock.
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
        // A client does not know yet that timestamps will be used: it counts on segments that are 12 bytes longer.
        let mss_bytes = config.mss_bytes + if role == Role::Client { 12 } else { 0 };
        Self {
            mss_bytes: config.mss_bytes,
            reassembly: Reassembly::new(AFTER_SYN),
            window: ReceiveWindow::new(mss_bytes, config.rmem_default_bytes, config.rmem_max_bytes),
            delayed: DelayedAck::default(),
            fin_end: None,
            ts_recent: 0,
            acked: 0,
            ecn: EcnEcho::default(),
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

    /// The handshake is complete.
    pub(crate) fn establish(&mut self, now_ns: u64, ecn: bool) {
        self.ecn.enabled = ecn;
        self.window.start(now_ns, AFTER_SYN);
    }

    /// Payload received in order.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.reassembly.next() - AFTER_SYN - u64::from(self.is_finished())
    }

    /// Has everything arrived up to and including the peer's FIN?
    pub(crate) fn is_finished(&self) -> bool {
        self.fin_end.is_some_and(|end| self.reassembly.next() >= end)
    }

    /// Does the segment lie in the window (RFC 9293, section 3.10.7.4, first check)? If not, it is worth no more than the
    /// acknowledgement that is now owed.
    pub(crate) fn accepts(&mut self, now_ns: u64, segment: &Segment, round_trip: RoundTrip) -> bool {
        let next = self.reassembly.next();
        if segment.end() >= self.acked && segment.seq <= next + self.window.offered(next) {
            return true;
        }
        if segment.end() > segment.seq && segment.end() <= next {
            self.reassembly.report_duplicate(segment.seq, segment.end());
        }
        let pace = self.pace(round_trip);
        self.delayed.hurry(pace);
        self.delayed.owe(now_ns, true, pace);
        false
    }

    /// Takes in an acceptable segment's payload and FIN.
    pub(crate) fn on_segment(&mut self, now_ns: u64, segment: &Segment, ecn: packet::Ecn, round_trip: RoundTrip) {
        if segment.seq <= self.acked {
            self.ts_recent = segment.ts_val;
        }
        if segment.end() == segment.seq {
            return;
        }
        if segment.len >= self.mss_bytes {
            self.window.measure_rtt(now_ns, segment.ts_ecr);
        }
        let pace = self.pace(round_trip);
        let had_reduced = self.note_congestion(segment, ecn, pace);
        if segment.flags.fin() {
            self.fin_end = Some(segment.end());
        }
        let arrival = self.reassembly.insert(segment.seq, segment.end());
        if arrival == Arrival::Duplicate {
            self.delayed.hurry(pace);
        } else {
            self.delayed.on_data(now_ns, pace);
        }
        let in_order = matches!(arrival, Arrival::InOrder | Arrival::FilledGap);
        if in_order {
            self.on_read(now_ns, segment.len);
        }
        let urgent = had_reduced || arrival != Arrival::InOrder || self.reassembly.has_gap() || self.has_much_to_tell();
        self.delayed.owe(now_ns, urgent, pace);
    }

    /// The acknowledgement that leaves with a segment now. SACK blocks go only where there is no payload (the kernel shortens
    /// the payload by them): with payload, what is missing still has to be told.
    #[inline]
    pub(crate) fn acknowledge(&mut self, pure: bool) -> Acknowledgement {
        let ack = self.reassembly.next();
        self.acked = ack;
        if pure || !self.reassembly.has_blocks() {
            self.delayed.on_sent();
        }
        Acknowledgement {
            ack,
            window_bytes: self.window.offer(ack, self.reassembly.held_bytes()),
            ts_ecr: self.ts_recent,
            sack: if pure { self.reassembly.take_blocks() } else { SackBlocks::NONE },
            flags: if self.ecn.echoing { Flags::ACK | Flags::ECE } else { Flags::ACK },
        }
    }

    /// An acknowledgement is owed at once.
    pub(crate) fn owe_at_once(&mut self, now_ns: u64, round_trip: RoundTrip) {
        let pace = self.pace(round_trip);
        self.delayed.owe(now_ns, true, pace);
    }

    /// Has a pure acknowledgement to leave now?
    #[inline]
    pub(crate) fn owes(&self, now_ns: u64) -> bool {
        self.delayed.is_due(now_ns)
    }

    /// When a delayed acknowledgement has to leave.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.delayed.deadline()
    }

    /// The delay is over.
    pub(crate) fn on_delay_over(&mut self, round_trip: RoundTrip) {
        self.delayed.on_delay_over(round_trip.rto_ns);
    }

    /// Marks and what the sender says about them. Returns whether the sender has just reduced its window: that may be so
    /// small that it waits for this very acknowledgement.
    fn note_congestion(&mut self, segment: &Segment, ecn: packet::Ecn, pace: Pace) -> bool {
        if !self.ecn.enabled {
            return false;
        }
        let had_reduced = segment.flags.cwr() && segment.len > 0;
        if had_reduced {
            self.ecn.echoing = false;
        }
        if ecn == packet::Ecn::Ce {
            if !self.ecn.echoing {
                self.delayed.hurry_briefly(pace);
            }
            self.ecn.echoing = true;
        }
        had_reduced
    }

    /// The application reads what is in order.
    fn on_read(&mut self, now_ns: u64, len: u32) {
        let held_bytes = self.reassembly.held_bytes();
        if len >= self.mss_bytes && self.window.open(held_bytes) {
            self.delayed.one_quick();
        }
        self.window.adjust(now_ns, self.reassembly.next());
    }

    /// More than a full segment is unacknowledged, or the window would at least double.
    fn has_much_to_tell(&self) -> bool {
        let next = self.reassembly.next();
        next - self.acked > u64::from(self.mss_bytes) || self.window.has_doubled(next, self.reassembly.held_bytes())
    }

    fn pace(&self, round_trip: RoundTrip) -> Pace {
        let offered = self.window.offered(self.reassembly.next());
        Pace {
            srtt_ns: round_trip.srtt_ns,
            rto_ns: round_trip.rto_ns,
            half_window_segments: offered / (2 * u64::from(self.mss_bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const ROUND_TRIP: RoundTrip = RoundTrip { srtt_ns: Some(20 * MS), rto_ns: 220 * MS };

    /// A receiver past its quick acknowledgements, with a window that is open as far as it goes.
    fn receiver() -> Receiver {
        let config = Config { rmem_default_bytes: 100_000, rmem_max_bytes: 100_000, ..Config::default() };
        let mut receiver = Receiver::new(&config, Role::Server);
        receiver.acked = AFTER_SYN;
        receiver.establish(0, false);
        receiver.acknowledge(true);
        for i in 0..20 {
            arrive(&mut receiver, i, 1 + 500 * i, 500);
            receiver.acknowledge(true);
        }
        receiver
    }

    /// A segment that was sent and arrives at `at_ms`.
    fn arrive(receiver: &mut Receiver, at_ms: u64, seq: u64, len: u32) {
        let ts_val = at_ms as u32;
        let sack = SackBlocks::NONE;
        let segment = Segment { seq, ack: 1, len, window_bytes: 0, ts_val, ts_ecr: 1, sack, flags: Flags::ACK };
        assert!(receiver.accepts(at_ms * MS, &segment, ROUND_TRIP));
        receiver.on_segment(at_ms * MS, &segment, packet::Ecn::NotEct, ROUND_TRIP);
    }

    #[test]
    fn less_than_two_segments_wait_but_not_if_they_close_a_gap() {
        let mut receiver = receiver();
        arrive(&mut receiver, 20, 10_001, 500);
        assert!(!receiver.owes(20 * MS));
        receiver.acknowledge(true);
        arrive(&mut receiver, 21, 11_001, 500);
        assert!(receiver.owes(21 * MS));
        receiver.acknowledge(true);
        // 1000 bytes in order at once: less than a segment, but the sender waits for them (RFC 5681, section 4.2).
        arrive(&mut receiver, 22, 10_501, 500);
        assert!(receiver.owes(22 * MS));
    }

    #[test]
    fn data_does_not_replace_the_acknowledgement_that_reports_a_gap() {
        let mut receiver = receiver();
        arrive(&mut receiver, 20, 11_001, 500);
        assert!(receiver.acknowledge(false).sack.is_empty());
        assert!(receiver.owes(20 * MS));
        assert_eq!(receiver.acknowledge(true).sack.len(), 1);
        assert!(!receiver.owes(20 * MS));
    }

    #[test]
    fn a_delayed_acknowledgement_echoes_the_clock_of_the_first_segment_it_is_for() {
        // So that the sender's measurement includes the delay (RFC 7323, section 4.3, case A).
        let mut receiver = receiver();
        arrive(&mut receiver, 20, 10_001, 500);
        arrive(&mut receiver, 30, 10_501, 500);
        assert_eq!(receiver.acknowledge(true).ts_ecr, 20);
        arrive(&mut receiver, 40, 11_001, 500);
        assert_eq!(receiver.acknowledge(true).ts_ecr, 40);
    }
}
