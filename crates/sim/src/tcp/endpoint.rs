//! One end of a TCP connection (RFC 9293): the handshake, the close, and, between them, the sending and receiving
//! halves.
//!
//! Departs: the parameters that SYNs negotiate (MSS, window scale, SACK, timestamps) are the same for all hosts; there
//! is no RST and no TIME-WAIT timer.

use super::ecn::Mode;
use super::handshake::Attempt;
use super::journal::{ConnectionState, Ends, Journal, Transition};
use super::receiver::{Receiver, RoundTrip};
use super::sender::{Established, Output, Sender};
use super::thresholds::Ending;
use super::{Config, Egress, Outgoing, Role, Sample, Timers, timestamps};
use crate::network::segment::{Flags, SackBlocks, Segment};
use crate::network::traffic_class::Ecn;
use crate::network::xmit::Xmit;
use crate::timers::earlier;

/// One end of a connection.
///
/// ```
/// use bufferscope_sim::Ecn;
/// use bufferscope_sim::tcp::{Config, Endpoint, Role};
///
/// let mut client = Endpoint::new(&Config::default(), Role::Client);
/// let mut server = Endpoint::new(&Config::default(), Role::Server);
/// let (mut from_client, mut from_server) = (vec![], vec![]);
/// client.connect(0, &mut from_client);
/// client.offer(0, 100_000, &mut from_client);
/// for ms in (10..200u64).step_by(20) {
///     for sent in std::mem::take(&mut from_client) {
///         server.on_segment(ms * 1_000_000, &sent.segment, Ecn::NotEct, &mut from_server);
///     }
///     for sent in std::mem::take(&mut from_server) {
///         client.on_segment((ms + 10) * 1_000_000, &sent.segment, Ecn::NotEct, &mut from_client);
///     }
/// }
/// assert_eq!(server.received_bytes(), 100_000);
/// ```
#[derive(Debug)]
pub struct Endpoint {
    phase: Phase,
    role: Role,
    timers: Timers,
    syn_linear_timeouts: u32,
    sender: Sender,
    receiver: Receiver,
}

/// How far the handshake has progressed (RFC 9293, section 3.3.2). The two halves track everything after it.
#[derive(Debug)]
enum Phase {
    /// Closed (client) or listening (server).
    Idle,
    /// The SYN was sent.
    SynSent(Attempt),
    /// The SYN-ACK was sent. The second field has what the SYN asked for.
    SynReceived(Attempt, PeerSyn),
    /// Both ends have answered.
    Established,
}

/// What the server learned from the SYN.
#[derive(Clone, Copy, Debug)]
struct PeerSyn {
    window_bytes: u32,
    ecn: Mode,
    /// Codepoint that it arrived with.
    codepoint: Ecn,
}

impl Endpoint {
    /// An endpoint before the handshake: a client waits for [`connect`](Self::connect), a server for a SYN.
    pub fn new(config: &Config, role: Role) -> Self {
        Self {
            phase: Phase::Idle,
            role,
            timers: config.timers,
            syn_linear_timeouts: config.syn_linear_timeouts,
            sender: Sender::new(config),
            receiver: Receiver::new(config, role),
        }
    }

    /// Sends the SYN (client).
    pub fn connect(&mut self, now_ns: u64, out: &mut dyn Egress) {
        if self.role == Role::Client && matches!(self.phase, Phase::Idle) {
            self.phase = Phase::SynSent(Attempt::syn(now_ns, self.timers, self.syn_linear_timeouts));
            self.send_syn(now_ns, out);
        }
    }

    /// The application has `bytes` more payload, which it writes as the send buffer accepts it. `u64::MAX` means
    /// an endless supply. Ignored once the application has finished.
    pub fn offer(&mut self, now_ns: u64, bytes: u64, out: &mut dyn Egress) {
        self.sender.offer(bytes);
        self.transmit(now_ns, out);
    }

    /// The application has no more data to offer. A FIN follows the data offered so far.
    pub fn finish_sending(&mut self, now_ns: u64, out: &mut dyn Egress) {
        self.sender.finish(now_ns);
        self.transmit(now_ns, out);
    }

    /// The application withdraws the data that the send buffer has not accepted yet. It may offer more later.
    pub fn hold(&mut self) {
        self.sender.hold();
    }

    /// A segment arrived, in an IP packet with codepoint `ecn`.
    pub fn on_segment(&mut self, now_ns: u64, segment: &Segment, ecn: Ecn, out: &mut dyn Egress) {
        match &mut self.phase {
            Phase::Idle if self.role == Role::Server && segment.flags.syn() => {
                self.on_syn(now_ns, segment, ecn, out);
            }
            Phase::Idle => {}
            Phase::SynSent(attempt) if segment.flags.contains(Flags::SYN | Flags::ACK) => {
                let attempt = *attempt;
                self.on_syn_ack(now_ns, segment, ecn, attempt, out);
            }
            Phase::SynSent(_) => {}
            Phase::SynReceived(attempt, _) if segment.flags.syn() => {
                *attempt = attempt.on_repeated_syn(now_ns);
                self.send_syn(now_ns, out);
            }
            Phase::SynReceived(attempt, syn) => {
                let (attempt, syn) = (*attempt, *syn);
                self.establish(now_ns, segment, attempt, syn);
                self.on_established(now_ns, segment, ecn, out);
            }
            Phase::Established => self.on_established(now_ns, segment, ecn, out),
        }
    }

    /// Does what is due at [`deadline`](Self::deadline). Calling it early is harmless.
    pub fn on_timer(&mut self, now_ns: u64, out: &mut dyn Egress) {
        match &mut self.phase {
            Phase::SynSent(attempt) | Phase::SynReceived(attempt, _) => {
                if attempt.due_ns <= now_ns {
                    self.sender.note_handshake_expiry(attempt.timeouts());
                    *attempt = attempt.on_timeout(now_ns);
                    out.rehash();
                    let xmit = self.send_syn(now_ns, out);
                    if let (Phase::SynSent(attempt), Xmit::Dropped) = (&mut self.phase, xmit) {
                        *attempt = attempt.on_dropped(now_ns);
                    }
                }
            }
            Phase::Idle => {}
            Phase::Established => {
                self.sender.on_timer(&mut Output { now_ns, receiver: &mut self.receiver, out });
                if self.receiver.owes(now_ns) {
                    self.receiver.on_delay_over(now_ns, self.round_trip());
                    self.send_owed_ack(now_ns, out);
                }
            }
        }
    }

    /// A [charged](Segment::is_charged) segment with `len` bytes of payload has left the queue of the host's port, or
    /// was dropped from it. It had been [queued](Xmit::Queued) before.
    pub fn on_left_host(&mut self, now_ns: u64, len: u32) {
        self.sender.on_left_host(now_ns, len);
    }

    /// When [`on_timer`](Self::on_timer) must be called next if nothing arrives earlier.
    #[inline]
    pub fn deadline(&self) -> Option<u64> {
        match &self.phase {
            Phase::Idle => None,
            Phase::SynSent(attempt) | Phase::SynReceived(attempt, _) => Some(attempt.due_ns),
            Phase::Established => earlier(self.sender.deadline(), self.receiver.deadline()),
        }
    }

    /// Whether the handshake is complete, as far as this end knows.
    pub fn is_established(&self) -> bool {
        matches!(self.phase, Phase::Established)
    }

    /// Payload bytes received in order. The application has read them at once.
    pub fn received_bytes(&self) -> u64 {
        self.receiver.received_bytes()
    }

    /// Payload bytes sent by this endpoint and acknowledged cumulatively.
    pub fn acked_bytes(&self) -> u64 {
        self.sender.acked_bytes()
    }

    /// Whether everything that the peer will ever send has arrived, including its FIN.
    pub fn peer_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    /// Whether the FINs of both ends have arrived, as far as this end knows. A closed endpoint still answers a repeated
    /// FIN (as in TIME-WAIT), so keep it until its peer is closed too.
    pub fn is_closed(&self) -> bool {
        self.receiver.is_finished() && self.sender.fin_acked()
    }

    /// The state of the sending side.
    pub fn sample(&self, now_ns: u64) -> Sample {
        self.sender.sample(now_ns)
    }

    /// From now on, notes what changes, for [`take_transitions`](Self::take_transitions). An endpoint acts the same
    /// whether or not it does so.
    pub fn keep_journal(&mut self) {
        self.sender.keep_journal(Journal::new(self.idle_state()));
    }

    /// Passes on what has changed since the last call, in order; nothing without a
    /// [journal](Self::keep_journal). To be called after each action, with its time.
    pub fn take_transitions(&mut self, now_ns: u64, see: &mut dyn FnMut(&Transition)) {
        let phase = match self.phase {
            Phase::Idle => self.idle_state(),
            Phase::SynSent(_) => ConnectionState::SynSent,
            Phase::SynReceived(..) => ConnectionState::SynReceived,
            Phase::Established => ConnectionState::Established,
        };
        let ends = Ends {
            finishing: self.sender.is_finishing(),
            fin_acked: self.sender.fin_acked(),
            peer_finished: self.receiver.is_finished(),
        };
        self.sender.take_transitions(now_ns, phase, ends, see);
    }

    /// The state to remember once the connection [is closed](Self::is_closed).
    pub(crate) fn ending(&self) -> Ending {
        self.sender.ending()
    }

    fn idle_state(&self) -> ConnectionState {
        match self.role {
            Role::Client => ConnectionState::Closed,
            Role::Server => ConnectionState::Listen,
        }
    }

    fn on_syn(&mut self, now_ns: u64, segment: &Segment, codepoint: Ecn, out: &mut dyn Egress) {
        self.receiver.on_syn(segment);
        let ecn = self.sender.offer_of_ecn().on_syn(segment.flags);
        let syn = PeerSyn { window_bytes: segment.window_bytes, ecn, codepoint };
        self.phase = Phase::SynReceived(Attempt::syn_ack(now_ns, self.timers), syn);
        self.send_syn(now_ns, out);
    }

    fn on_syn_ack(&mut self, now_ns: u64, segment: &Segment, codepoint: Ecn, attempt: Attempt, out: &mut dyn Egress) {
        self.receiver.on_syn(segment);
        let ecn = self.sender.offer_of_ecn().on_syn_ack(segment.flags);
        self.establish(now_ns, segment, attempt, PeerSyn { window_bytes: segment.window_bytes, ecn, codepoint });
        self.receiver.owe_at_once(now_ns, self.round_trip());
        self.send_owed_ack(now_ns, out);
        self.transmit(now_ns, out);
    }

    fn establish(&mut self, now_ns: u64, segment: &Segment, attempt: Attempt, syn: PeerSyn) {
        self.sender.establish(
            now_ns,
            Established {
                role: self.role,
                window_bytes: syn.window_bytes,
                window_seq: segment.seq,
                rtt_ns: attempt.rtt_ns(now_ns, segment.ts_ecr),
                resent: attempt.resent,
                lost_several: attempt.lost_several(segment.ts_ecr),
                ecn: syn.ecn,
            },
        );
        let of_syn_ack = (self.role == Role::Client).then_some(syn.codepoint);
        self.receiver.establish(now_ns, syn.ecn, of_syn_ack);
        self.phase = Phase::Established;
    }

    /// Handles a segment in the kernel's order: its acknowledgement, its payload, then sending new data, and then an
    /// acknowledgement if no data carried it.
    fn on_established(&mut self, now_ns: u64, segment: &Segment, ecn: Ecn, out: &mut dyn Egress) {
        let round_trip = self.round_trip();
        if self.receiver.accepts(now_ns, segment, round_trip, |segment| self.sender.is_repeated(segment)) {
            let finished_before = self.receiver.is_finished();
            if !self.sender.is_old(segment) {
                self.receiver.note_clock(segment);
            }
            self.sender.on_ack(segment, &mut Output { now_ns, receiver: &mut self.receiver, out });
            if segment.len > 0 && self.receiver.owes_before(segment, ecn) {
                self.send_ack(now_ns, out);
            }
            let waits_for_application = self.receiver.on_segment(now_ns, segment, ecn, round_trip);
            // If nothing waits in the host's queue, a few microseconds make no difference, and are not worth a timer.
            if waits_for_application && out.is_empty() {
                self.receiver.on_read();
            }
            if self.sender.fin_sent() && self.receiver.is_finished() && !finished_before {
                // Both ends have finished, so no data will carry the acknowledgement.
                self.receiver.owe_at_once(now_ns, round_trip);
            }
            self.transmit(now_ns, out);
        }
        self.send_owed_ack(now_ns, out);
    }

    fn transmit(&mut self, now_ns: u64, out: &mut dyn Egress) {
        if matches!(self.phase, Phase::Established) {
            self.sender.transmit(&mut Output { now_ns, receiver: &mut self.receiver, out });
        }
    }

    fn send_owed_ack(&mut self, now_ns: u64, out: &mut dyn Egress) {
        if self.receiver.owes(now_ns) {
            self.send_ack(now_ns, out);
        }
    }

    fn send_ack(&mut self, now_ns: u64, out: &mut dyn Egress) {
        let codepoint = self.sender.codepoint();
        let mut output = Output { now_ns, receiver: &mut self.receiver, out };
        let xmit = output.send(self.sender.nxt(), 0, Flags::NONE, codepoint);
        self.sender.on_empty_sent(now_ns, xmit);
    }

    /// Sends the SYN or, once the peer's SYN has arrived, the SYN-ACK.
    fn send_syn(&mut self, now_ns: u64, out: &mut dyn Egress) -> Xmit {
        let (flags, ack) = match self.phase {
            Phase::SynReceived(_, syn) => (syn.ecn.syn_ack(syn.codepoint), 1),
            Phase::SynSent(attempt) => (self.sender.offer_of_ecn().syn(attempt.resent), 0),
            Phase::Idle | Phase::Established => unreachable!("only a handshake has SYNs"),
        };
        let segment = Segment {
            seq: 0,
            ack,
            len: 0,
            window_bytes: self.receiver.syn_window(),
            ts_val: timestamps::clock(now_ns),
            ts_ecr: self.receiver.ts_recent(),
            sack: SackBlocks::NONE,
            flags,
        };
        out.send(&Outgoing { segment, ecn: self.sender.offer_of_ecn().of_syn() })
    }

    fn round_trip(&self) -> RoundTrip {
        RoundTrip { srtt_ns: self.sender.srtt_ns(), rto_ns: self.sender.rto_ns() }
    }
}
