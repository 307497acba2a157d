//! The half of an endpoint that sends data and processes acknowledgements.
//!
//! Each task has a directory: detecting losses ([`loss`]), retransmitting and reducing the window ([`recovery`]),
//! sending ([`sending`]), and measuring times and running the timer ([`timing`]). The congestion control decides how the
//! window otherwise changes. [`ack`] processes acknowledgements in the order of the kernel's `tcp_ack`;
//! [`ack_summary`] collects what one acknowledgement reveals, and [`marks`] evaluates its ECN feedback.
//! [`sending::transmit`] follows the order of `tcp_write_xmit`. [`view`] has the views of the sender's state that
//! others get, and [`log`] notes what changes.
//!
//! Departs: a receiver never reneges on selective acknowledgements.

mod ack;
mod ack_summary;
mod log;
mod loss;
mod marks;
mod recovery;
mod sending;
mod timing;
mod view;

/// The memory that a sender needs for each segment in flight.
pub(crate) const SENT_BYTES: u64 = size_of::<loss::scoreboard::Sent>() as u64;

pub(crate) use crate::transport::rtt::{RTO_INITIAL_NS, RTO_MAX_NS};
pub(crate) use sending::output::{HOST_BUSY_NS, Output};

use super::config::{Config, Role};
use super::ecn::{Mode, Offer};
use super::journal::Journal;
use crate::timers::earlier;
use crate::transport::congestion::{Controller, EcnUse, State, rate_of_window};
use crate::transport::delivery_rate::Delivery;
use crate::transport::pacing::Pacer;
use crate::transport::rtt::Rtt;
use loss::probe::TailProbe;
use loss::rack::Rack;
use loss::scoreboard::Scoreboard;
use loss::timeout::Frto;
use marks::Marks;
use recovery::prr::Recovery;
use recovery::undo::Undo;
use sending::buffer::SendBuffer;
use sending::cwnd_validation::WindowUsage;
use sending::pieces::Pieces;
use sending::push::Pushes;
use sending::small_queue::SmallQueue;
use timing::chrono::Chronograph;
use timing::timer::Timer;

use crate::network::traffic_class::Ecn;

/// The sending half of an endpoint.
#[derive(Debug)]
pub(crate) struct Sender {
    mss_bytes: u32,
    data: Data,
    buffer: SendBuffer,
    /// First unacknowledged sequence number (SND.UNA).
    una: u64,
    /// Next sequence number to send (SND.NXT).
    nxt: u64,
    peer: PeerWindow,
    board: Scoreboard,
    cc: Controller,
    usage: WindowUsage,
    recovery: Recovery,
    undo: Undo,
    frto: Frto,
    rack: Rack,
    probe: TailProbe,
    rtt: Rtt,
    delivery: Delivery,
    pacer: Pacer,
    small_queue: SmallQueue,
    timer: Timer,
    marks: Marks,
    chronograph: Chronograph,
    /// How this end uses ECN.
    offer: Offer,
    last_sent_ns: u64,
    /// Retransmitted segments.
    retransmits: u64,
    /// Segments that the peer reported as duplicates.
    duplicates: u64,
    initial_window_packets: u32,
    slow_start_after_idle: bool,
    no_delay: bool,
    gso_max_segs: u32,
    min_tso_segs: u32,
    pacing_percent: [u32; 2],
    /// What changes, if it is to be logged.
    journal: Option<Box<Journal>>,
}

/// The data that the application wants to send.
#[derive(Debug, Default)]
struct Data {
    /// Sequence number after the last byte that the application has offered.
    offered: u64,
    /// Sequence number after the last byte that the application has written, which is all that can be sent for now
    /// (`write_seq`).
    end: u64,
    /// The pieces of the unsent data.
    pieces: Pieces,
    /// The ends of the application's unsent writes.
    pushes: Pushes,
    /// A FIN follows.
    finish: bool,
    /// The FIN has been sent.
    fin_sent: bool,
    /// End of the last segment sent that was not full (Minshall's variant of Nagle's rule).
    small_end: u64,
}

/// The window that the peer offers (RFC 9293, section 3.8.6).
#[derive(Debug, Default)]
struct PeerWindow {
    /// Bytes from SND.UNA on (SND.WND).
    bytes: u64,
    /// Sequence number of the segment that last updated the window (SND.WL1).
    updated_by: u64,
    /// The largest window so far.
    most_bytes: u64,
    /// The next segment is expected to offer the same window (`pred_flags`).
    is_predicted: bool,
}

impl PeerWindow {
    /// A segment with this sequence number offers this window.
    fn update(&mut self, bytes: u64, seq: u64) {
        let is_predicted = self.is_predicted || bytes != self.bytes;
        *self = Self { bytes, updated_by: seq, most_bytes: self.most_bytes.max(bytes), is_predicted };
    }
}

/// The result of the handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Established {
    /// Which end this is.
    pub(crate) role: Role,
    /// Window offered by the peer.
    pub(crate) window_bytes: u32,
    /// Sequence number of the segment that offered the window.
    pub(crate) window_seq: u64,
    /// Round-trip time.
    pub(crate) rtt_ns: Option<u64>,
    /// How often the SYN or SYN-ACK was retransmitted.
    pub(crate) resent: u32,
    /// The SYN or SYN-ACK was lost more than once.
    pub(crate) lost_several: bool,
    /// The ECN mode agreed on.
    pub(crate) ecn: Mode,
}

/// Sequence number of the first payload byte.
const FIRST_BYTE: u64 = 1;

impl Sender {
    /// A sender that waits for the handshake.
    pub(crate) fn new(config: &Config) -> Self {
        let cc = Controller::new(&config.control());
        let offer = Offer::new(config, cc.ecn());
        Self {
            mss_bytes: config.mss_bytes,
            data: Data { offered: FIRST_BYTE, end: FIRST_BYTE, ..Data::default() },
            una: 0,
            nxt: FIRST_BYTE,
            peer: PeerWindow::default(),
            board: Scoreboard::new(config.mss_bytes, cc.watches_losses()),
            buffer: SendBuffer::new(config, cc.buffered_windows()),
            pacer: Pacer::new(config.pacing || config.congestion.paces()),
            min_tso_segs: config.min_tso_segs,
            cc,
            usage: WindowUsage::default(),
            recovery: Recovery::new(),
            undo: Undo::default(),
            frto: Frto::default(),
            rack: Rack::new(),
            probe: TailProbe::default(),
            rtt: Rtt::new(),
            delivery: Delivery::default(),
            small_queue: SmallQueue::default(),
            timer: Timer::new(config.timers),
            marks: Marks::new(),
            chronograph: Chronograph::default(),
            offer,
            last_sent_ns: 0,
            retransmits: 0,
            duplicates: 0,
            initial_window_packets: config.initial_window_packets,
            slow_start_after_idle: config.slow_start_after_idle,
            no_delay: config.no_delay,
            gso_max_segs: config.gso_max_segs,
            pacing_percent: config.pacing_percent,
            journal: None,
        }
    }

    /// The handshake is complete.
    pub(crate) fn establish(&mut self, now_ns: u64, handshake: Established) {
        self.una = FIRST_BYTE;
        self.peer.update(u64::from(handshake.window_bytes), handshake.window_seq);
        // A client waits for a scaled window (`tcp_finish_connect`).
        self.peer.is_predicted = handshake.role == Role::Server;
        self.marks.establish(handshake.ecn, self.offer.codepoints());
        if handshake.ecn == Mode::Off && self.cc.ecn() == EcnUse::Exact {
            // `dctcp_init`.
            self.cc.fall_back_to_reno();
        }
        self.retransmits = u64::from(handshake.resent);
        if handshake.lost_several {
            // RFC 5681, section 3.1, requires a window of one segment after any loss. Because its initial timeout is
            // only 1 s, the kernel tolerates the first loss.
            self.set_cwnd(1);
        }
        if let Some(rtt_ns) = handshake.rtt_ns {
            self.rtt.add(rtt_ns, self.una, self.nxt);
            self.timer.on_measured(&self.rtt);
            self.rtt.add_min(now_ns, rtt_ns);
        }
        // The segment that opened the connection (`tcp_rcv_state_process`, `tcp_clean_rtx_queue`).
        self.delivery.count(1, 0);
        self.cc.init(&self.context(now_ns));
        self.update_pacing(now_ns);
        self.open_buffer();
        self.note_busy(now_ns);
    }

    /// The application has `bytes` more to send. Has no effect after [`finish`](Self::finish).
    pub(crate) fn offer(&mut self, bytes: u64) {
        if !self.data.finish {
            self.data.offered = self.data.offered.saturating_add(bytes);
        }
    }

    /// Nothing more will be offered.
    pub(crate) fn finish(&mut self, now_ns: u64) {
        self.data.finish = true;
        self.note_busy(now_ns);
    }

    /// Payload that the application has not been able to write yet is withdrawn.
    pub(crate) fn hold(&mut self) {
        self.data.offered = self.data.end;
    }

    /// How this end uses ECN.
    pub(crate) fn offer_of_ecn(&self) -> Offer {
        self.offer
    }

    /// Codepoint of segments without payload.
    pub(crate) fn codepoint(&self) -> Ecn {
        self.marks.other()
    }

    /// Next sequence number to send.
    pub(crate) fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Whether the application has announced that it will send no more.
    pub(crate) fn is_finishing(&self) -> bool {
        self.data.finish
    }

    /// Whether the FIN was sent.
    pub(crate) fn fin_sent(&self) -> bool {
        self.data.fin_sent
    }

    /// Whether the FIN was acknowledged.
    pub(crate) fn fin_acked(&self) -> bool {
        self.data.fin_sent && self.una == self.nxt
    }

    /// Payload acknowledged cumulatively.
    pub(crate) fn acked_bytes(&self) -> u64 {
        self.una.saturating_sub(FIRST_BYTE) - u64::from(self.fin_acked())
    }

    /// When [`on_timer`](Self::on_timer) is due.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<u64> {
        earlier(earlier(self.timer.deadline(), self.pacer.wake_ns()), self.small_queue.deadline())
    }

    /// Smoothed round-trip time.
    pub(crate) fn srtt_ns(&self) -> Option<u64> {
        self.rtt.srtt_ns()
    }

    /// Retransmission timeout.
    pub(crate) fn rto_ns(&self) -> u64 {
        self.timer.rto_ns()
    }

    fn min_rtt_ns(&self) -> u64 {
        self.rtt.min_ns().unwrap_or(0)
    }

    fn set_cwnd(&mut self, packets: u32) {
        self.cc.window_mut().cwnd = packets.max(1);
    }

    /// Keeps the pacing rate in step with the window, unless the control sets the rate itself.
    fn update_pacing(&mut self, now_ns: u64) {
        if self.pacer.is_enabled() && !self.cc.governs() {
            let rate = rate_of_window(self.cc.window(), &self.context(now_ns));
            self.cc.window_mut().pacing_bytes_per_s = rate;
        }
    }

    /// Checks whether the application has kept the sender waiting, when it writes more (`tcp_rate_check_app_limited`).
    fn check_app_limited(&mut self) {
        let in_flight = self.board.in_flight();
        let repaired = self.board.lost() <= self.board.retransmitted();
        let sent = self.small_queue.is_empty();
        if self.unsent_bytes() < u64::from(self.mss_bytes) && sent && in_flight < self.cc.window().cwnd && repaired {
            self.delivery.mark_app_limited(in_flight);
        }
    }
}
