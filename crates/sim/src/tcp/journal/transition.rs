//! The changes that a log of TCP shows, in the terms of the RFCs and of Linux.

use super::connection::ConnectionState;
use crate::tcp::Sample;
use crate::transport::congestion::{Epoch, SlowStartSign, State};

/// A change in one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transition {
    /// The state of the connection.
    Connection {
        /// The one that ends.
        old: ConnectionState,
        /// The one that begins.
        new: ConnectionState,
    },
    /// The congestion state (`tcp_set_ca_state`).
    Congestion {
        /// The one that ends.
        old: State,
        /// The one that begins.
        new: State,
        /// Why.
        trigger: Trigger,
        /// What becomes of the window at once. Fast recovery then reduces it packet by packet.
        change: WindowChange,
    },
    /// Segments were marked lost.
    Lost {
        /// How many.
        packets: u32,
        /// By which rule.
        trigger: Trigger,
    },
    /// A timer expired.
    Expired {
        /// Which.
        timer: Expiry,
        /// How often its timeout had been doubled before, or, of a closed window, how often it had been probed.
        backoff: u32,
        /// That timeout; `None` where it isn't one.
        timeout_ns: Option<u64>,
    },
    /// A tail loss probe was sent.
    Probed {
        /// It has new data. Otherwise it repeats the last segment.
        new_data: bool,
    },
    /// A reduction was unfounded, and is undone. Where congestion was certain for another reason, the window stays.
    Undone {
        /// What has shown that.
        sign: Sign,
        /// What becomes of the window.
        change: WindowChange,
    },
    /// The window is no longer below its threshold.
    SlowStartEnded {
        /// Why.
        reason: SlowStartEnd,
        /// The window and its threshold now.
        windows: Windows,
    },
    /// The window is below its threshold again.
    SlowStartBegan {
        /// The window and its threshold now.
        windows: Windows,
    },
    /// The window was reduced before sending after an idle time.
    IdleRestart {
        /// That time.
        idle_ns: u64,
        /// What becomes of the window.
        change: WindowChange,
    },
    /// The window was reduced because the application did not use it.
    WindowUnused {
        /// What becomes of the window.
        change: WindowChange,
    },
    /// The congestion control's own phase.
    Phase {
        /// The one that ends; `None` at the beginning.
        old: Option<&'static str>,
        /// The one that begins.
        new: &'static str,
    },
    /// CUBIC begins to grow along a new curve.
    Epoch(Epoch),
    /// What limits the sender (`tcp_chrono_start`).
    Limit {
        /// What did so far.
        old: Limit,
        /// What does now.
        new: Limit,
    },
    /// The measurements, after anything else has changed, and otherwise once per round trip.
    Metrics(Metrics),
}

/// The window and its threshold, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Slow-start threshold; `None` while it is unlimited.
    pub ssthresh_bytes: Option<u64>,
}

/// The windows before and after something. *Before* is the end of the previous action or of what was noted last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowChange {
    /// Before.
    pub before: Windows,
    /// After.
    pub after: Windows,
}

/// The measurements of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// The window and its threshold.
    pub windows: Windows,
    /// Payload in flight.
    pub inflight_bytes: u64,
    /// Smoothed round-trip time.
    pub srtt_ns: Option<u64>,
    /// Smallest round-trip time of the last five minutes.
    pub min_rtt_ns: Option<u64>,
    /// Pacing rate in bits per second; `None` where the sender does not pace.
    pub pacing_bps: Option<u64>,
}

/// Why a state changes, or segments are marked lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Enough segments were selectively acknowledged (RFC 8985, section 6.2, step 4: `DupThresh`).
    ReorderingThreshold,
    /// A segment that was sent later has arrived, and the reordering window has passed (RACK).
    TimeThreshold,
    /// The reordering window has passed, without an acknowledgement.
    ReorderingTimer,
    /// The retransmission timeout.
    Timeout,
    /// A tail loss probe has repaired a loss.
    TailLossProbe,
    /// The receiver echoes congestion.
    EcnEcho,
    /// The queue of the sender's own host is too long.
    HostQueue,
    /// Segments have arrived out of order, or are still to be acknowledged after a retransmission.
    OutOfOrder,
    /// What was outstanding has been acknowledged.
    Acknowledged,
    /// A reduction was undone.
    Undone,
}

/// A timer that expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// Of a SYN or SYN-ACK.
    Handshake,
    /// The retransmission timeout.
    Retransmission,
    /// The end of RACK's reordering window.
    Reordering,
    /// The next probe of a closed window.
    Persist,
}

/// What shows that a reduction was unfounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// The receiver has reported every retransmission as a duplicate (RFC 3708).
    Duplicates,
    /// An acknowledgement echoes a time before the first retransmission (Eifel, RFC 3522).
    Timestamps,
    /// F-RTO (RFC 5682): a segment that was sent only once has arrived after the timeout.
    ForwardRto,
}

/// Why slow start ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStartEnd {
    /// HyStart: the acknowledgements of a round come in for as long as the path is.
    AckTrain,
    /// HyStart: the round-trip time has risen.
    DelayIncrease,
    /// The threshold was set, because of congestion or by the congestion control.
    Threshold,
    /// The window has grown to the threshold.
    Grown,
}

/// What limits a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// It has nothing to send.
    Idle,
    /// The congestion window, or the path.
    Path,
    /// The receiver's window.
    ReceiveWindow,
    /// The send buffer.
    SendBuffer,
}

impl Windows {
    pub(super) fn of(sample: &Sample) -> Self {
        Self { cwnd_bytes: sample.cwnd_bytes, ssthresh_bytes: sample.ssthresh_bytes }
    }
}

impl Metrics {
    pub(super) fn of(sample: &Sample) -> Self {
        Self {
            windows: Windows::of(sample),
            inflight_bytes: sample.inflight_bytes,
            srtt_ns: sample.srtt_ns,
            min_rtt_ns: sample.min_rtt_ns,
            pacing_bps: sample.pacing_bps,
        }
    }

    /// Whether what the congestion control has set differs, which is worth reporting; the measurements always differ.
    pub fn is_set_otherwise(&self, other: &Self) -> bool {
        (self.windows, self.pacing_bps) != (other.windows, other.pacing_bps)
    }
}

impl From<SlowStartSign> for SlowStartEnd {
    fn from(sign: SlowStartSign) -> Self {
        match sign {
            SlowStartSign::AckTrain => Self::AckTrain,
            SlowStartSign::DelayIncrease => Self::DelayIncrease,
        }
    }
}
