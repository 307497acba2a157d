//! The information that a congestion control gets about the connection, an acknowledgement, or a lost packet.
//!
//! All of it is plain values, so that a test can construct them. Names in brackets are the kernel's.

// This is an interface: a field that no control reads yet is not superfluous.
#![allow(dead_code)]

use super::State;

/// The connection at the moment a hook is called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    /// Now (`tcp_mstamp`).
    pub(crate) now_ns: u64,
    /// Payload of a full segment (`mss_cache`).
    pub(crate) mss_bytes: u32,
    /// Bytes acknowledged cumulatively since the connection began. TCP's SYN and FIN count as one each (`snd_una`).
    pub(crate) acked_bytes: u64,
    /// Bytes sent since then, each counted once (`snd_nxt`).
    pub(crate) sent_bytes: u64,
    /// Packets believed to be in the network (`tcp_packets_in_flight`).
    pub(crate) in_flight: u32,
    /// Packets sent and not acknowledged cumulatively (`packets_out`).
    pub(crate) packets_out: u32,
    /// Packets delivered so far, each counted once (`delivered`).
    pub(crate) delivered: u64,
    /// Those of them that the peer reported as marked (`delivered_ce`).
    pub(crate) delivered_ce: u64,
    /// When the last of them was reported (`delivered_mstamp`).
    pub(crate) delivered_ns: u64,
    /// Packets ever marked lost (`lost`).
    pub(crate) lost: u64,
    /// Smoothed round-trip time; `None` before the first measurement (`srtt_us`).
    pub(crate) srtt_ns: Option<u64>,
    /// Smallest round-trip time of the last 5 minutes (`tcp_min_rtt`).
    pub(crate) min_rtt_ns: Option<u64>,
    /// State of the congestion machinery; in [`Control::on_state`](super::Control::on_state) the one that ends.
    pub(crate) state: State,
    /// The window was in full use (`tcp_is_cwnd_limited`): only then may it grow.
    pub(crate) cwnd_limited: bool,
    /// The window was used up at some time in the last round trip (`is_cwnd_limited`); unlike above, also below the
    /// threshold.
    pub(crate) window_full: bool,
    /// The application has not supplied enough data for the time that the packets in flight are under way
    /// (`app_limited`).
    pub(crate) app_limited: bool,
    /// The sender paces its packets.
    pub(crate) paced: bool,
    /// Pacing rate in per cent of one window per round trip, for controls that set none: in slow start, and from half
    /// of the threshold on.
    pub(crate) pacing_percent: [u32; 2],
    /// When the pacer allows the next packet; in the past if it is not holding any back (`tcp_wstamp_ns`).
    pub(crate) next_send_ns: u64,
    /// When data was last sent (`lsndtime`).
    pub(crate) last_sent_ns: u64,
}

/// The packets that an acknowledgement newly acknowledged, before losses are detected (`struct ack_sample`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    /// Packets, cumulatively or selectively acknowledged for the first time; may be 0.
    pub(crate) packets: u32,
    /// Round-trip time of the newest of them; `None` if unknown.
    pub(crate) rtt_ns: Option<u64>,
    /// The peer's clock when it sent the acknowledgement, minus our clock when the newly acknowledged data was sent, in
    /// ms. This is the delay of that direction plus the offset of the two clocks. `None` if unknown.
    pub(crate) one_way_ms: Option<u32>,
    /// Packets that the peer reports as marked; with classic or exact ECN, all packets that an echo acknowledges.
    pub(crate) ce_packets: u32,
    /// The acknowledgement only advanced and the kernel takes its fast path for it (no `CA_ACK_SLOWPATH`).
    pub(crate) predicted: bool,
}

/// A whole acknowledgement, after losses were detected (`struct rate_sample`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack {
    /// Packets newly delivered (`acked_sacked`).
    pub(crate) acked: u32,
    /// Packets newly marked lost (`losses`).
    pub(crate) lost: u32,
    /// Packets in flight before it arrived (`prior_in_flight`).
    pub(crate) prior_in_flight: u32,
    /// Round-trip time of the newest packet delivered (`rtt_us`).
    pub(crate) rtt_ns: Option<u64>,
    /// The receiver may have delayed the acknowledgement, so its round-trip time may be too long (`is_ack_delayed`).
    pub(crate) may_be_delayed: bool,
    /// The delivery rate; `None` if nothing was delivered.
    pub(crate) rate: Option<RateSample>,
}

/// How fast packets were delivered since the newest packet delivered was sent
/// (draft-ietf-ccwg-bbr, section 4.1.1; the kernel's `tcp_rate.c`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateSample {
    /// Packets delivered in the interval (`delivered`).
    pub(crate) delivered: u32,
    /// Those of them that met congestion (`delivered_ce`).
    pub(crate) delivered_ce: u32,
    /// Packets marked lost in the interval (BBRv3's `rs.lost`).
    pub(crate) lost: u32,
    /// The interval: the longer of the time taken to send these packets and the time taken to acknowledge them. `None`
    /// if shorter than the smallest round-trip time: the sample then says nothing about the path.
    pub(crate) interval_ns: Option<u64>,
    /// Packets delivered in all when the newest packet was sent (`prior_delivered`).
    pub(crate) prior_delivered: u64,
    /// Packets in flight just after it was sent, itself included (BBRv3's `tx_in_flight`).
    pub(crate) tx_in_flight: u32,
    /// It was sent while the application, not the network, was the limit (`is_app_limited`).
    pub(crate) is_app_limited: bool,
    /// It had been retransmitted (`is_retrans`).
    pub(crate) is_retransmission: bool,
}

/// A packet that has just been marked lost, with the state from when it was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostPacket {
    /// Packets in flight just after it was sent, itself included.
    pub(crate) tx_in_flight: u32,
    /// Packets marked lost since it was sent, itself included.
    pub(crate) lost_since: u32,
    /// It was sent while the application was the limit.
    pub(crate) is_app_limited: bool,
}

/// Events in the sending of a connection (`enum tcp_ca_event`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Data is sent while nothing is in flight (`CA_EVENT_TX_START`); [`Context::last_sent_ns`] is the time since when.
    TxStart,
    /// The window has been cut after an idle time (`CA_EVENT_CWND_RESTART`).
    Restart,
    /// The reduction of the window is complete (`CA_EVENT_COMPLETE_CWR`).
    ReductionComplete,
    /// A retransmission timeout, before the window is set for it (`CA_EVENT_LOSS`).
    Timeout,
}

impl RateSample {
    /// Packets per second, multiplied by `scale`; `None` if the sample says nothing about the path.
    pub(crate) fn packets_per_s(&self, scale: u64) -> Option<u64> {
        let interval_ns = self.interval_ns.filter(|&ns| ns > 0)?;
        let scaled = u128::from(self.delivered) * u128::from(scale) * 1_000_000_000;
        u64::try_from(scaled / u128::from(interval_ns)).ok()
    }
}

#[cfg(test)]
impl Context {
    /// A connection that has sent and received nothing, for tests to fill in.
    pub(crate) const EMPTY: Self = Self {
        now_ns: 0,
        mss_bytes: 1448,
        acked_bytes: 1,
        sent_bytes: 1,
        in_flight: 0,
        packets_out: 0,
        delivered: 0,
        delivered_ce: 0,
        delivered_ns: 0,
        lost: 0,
        srtt_ns: None,
        min_rtt_ns: None,
        state: State::Open,
        cwnd_limited: true,
        window_full: true,
        app_limited: false,
        paced: false,
        pacing_percent: [200, 120],
        next_send_ns: 0,
        last_sent_ns: 0,
    };
}

impl Ack {
    /// An acknowledgement of nothing.
    pub(crate) const NOTHING: Self =
        Self { acked: 0, lost: 0, prior_in_flight: 0, rtt_ns: None, may_be_delayed: false, rate: None };
}

#[cfg(test)]
impl Ack {
    /// An acknowledgement of `acked` packets and nothing else.
    pub(crate) const fn of(acked: u32) -> Self {
        Self { acked, prior_in_flight: acked, ..Self::NOTHING }
    }
}
