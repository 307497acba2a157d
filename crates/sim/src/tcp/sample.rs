//! The state of a connection that is visible from outside, as `ss -ti` shows it.

use crate::transport::congestion::State;

/// A snapshot of an endpoint's sending side, including the receive window that the peer advertises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Slow-start threshold; `None` while it has never been set.
    pub ssthresh_bytes: Option<u64>,
    /// Data that was sent and is neither acknowledged, nor selectively acknowledged, nor believed lost.
    pub inflight_bytes: u64,
    /// Smoothed round-trip time; `None` before the first measurement.
    pub srtt_ns: Option<u64>,
    /// Smallest round-trip time of the last five minutes; `None` before the first measurement.
    pub min_rtt_ns: Option<u64>,
    /// Receive window as last advertised by the peer.
    pub rwnd_bytes: u64,
    /// Pacing rate in bits per second; `None` where the sender does not pace, or has no rate yet.
    pub pacing_bps: Option<u64>,
    /// The last measured delivery rate, in bits of payload per second; `None` before the first measurement.
    pub delivery_rate_bps: Option<u64>,
    /// The application limited the sender while that rate was measured.
    pub app_limited: bool,
    /// Payload bytes acknowledged cumulatively since the start.
    pub delivered_bytes: u64,
    /// Segments retransmitted since the start.
    pub retransmits: u64,
    /// Currently outstanding segments that are believed lost.
    pub lost: u64,
    /// The largest distance in packets by which the path is believed to reorder (`tcpi_reordering`).
    pub reordering: u32,
    /// Packets delivered, in order or not, including the handshake's (`tcpi_delivered`).
    pub delivered: u64,
    /// Those delivered packets that were marked with congestion (`tcpi_delivered_ce`).
    pub delivered_ce: u64,
    /// Payload bytes that the application has written and that are not sent yet (`tcpi_notsent_bytes`).
    pub notsent_bytes: u64,
    /// Time since the start during which data was waiting to be sent or acknowledged (`tcpi_busy_time`).
    pub busy_ns: u64,
    /// The part of that time during which the receiver's window was the limit (`tcpi_rwnd_limited`).
    pub rwnd_limited_ns: u64,
    /// The part of that time during which the send buffer was the limit (`tcpi_sndbuf_limited`).
    pub sndbuf_limited_ns: u64,
    /// The congestion state.
    pub state: State,
}
