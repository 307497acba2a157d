//! A flow: a direction of a connection that carries data. Its samples, and its summary at the end.

use bufferscope_records::{FlowRow, Name};
use serde::Serialize;

use super::halves::Halves;
use super::stream::Stream;
use crate::Endpoint;

/// The state of a flow besides that of its stream.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) number: u32,
    pub(super) name: Name,
    pub(super) from: Endpoint,
    pub(super) to: Endpoint,
    pub(super) first_ns: i64,
    next_sample_ns: i64,
    pub(super) halves: Halves,
    pub(super) kinds: Kinds,
}

/// Retransmissions by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kinds {
    /// Retransmissions of a SYN.
    pub syn: u64,
    /// After duplicate or selective acknowledgements.
    pub fast: u64,
    /// After the retransmission timer expired.
    pub timeout: u64,
    /// Of the last segment, as a probe.
    pub tail_loss_probe: u64,
    /// Retransmissions whose first copy was lost before the vantage point.
    pub late: u64,
    /// How many of all these are known to be spurious.
    pub spurious: u64,
}

/// An end of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct End {
    /// Its address.
    pub address: String,
    /// Its port.
    pub port: u16,
}

impl From<Endpoint> for End {
    fn from(end: Endpoint) -> Self {
        Self { address: end.address.to_string(), port: end.port }
    }
}

/// The summary of a flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowSummary {
    /// `tcp/<number>`.
    pub name: String,
    /// The sender of the data.
    pub from: End,
    /// Its receiver.
    pub to: End,
    /// The vantage point from which the rows come: the nearest to the sender, by the time to live.
    #[serde(rename = "place")]
    pub vantage_point: u16,
    /// Other vantage points that saw the same flow.
    #[serde(rename = "other_places")]
    pub other_vantage_points: Vec<u16>,
    /// When its first segment with data was seen, since the start.
    pub first_ns: u64,
    /// When its last segment was seen.
    pub last_ns: u64,
    /// Segments of its sender, with data or without.
    pub segments: u64,
    /// Payload acknowledged; `None`: no acknowledgement was captured.
    pub delivered_bytes: Option<u64>,
    /// The largest number of bytes in flight; `None`: no acknowledgement was captured.
    pub largest_flight_bytes: Option<u64>,
    /// The largest payload of an ordinary (not offloaded) segment.
    pub mss_bytes: u32,
    /// Retransmissions by kind.
    pub retransmissions: Kinds,
    /// Segments that arrived late because others overtook them.
    pub reordered: u64,
    /// Packets that were captured twice.
    pub duplicates: u64,
    /// Keep-alives.
    pub keep_alives: u64,
    /// Probes of a window of zero.
    pub window_probes: u64,
    /// Bytes that were acknowledged and never seen: the capture lost them.
    pub unseen_bytes: u64,
    /// Segments larger than a packet, because of offload.
    pub jumbos: u64,
    /// Times at which the receiver advertised a window of zero.
    pub zero_windows: u64,
    /// Times at which sequence numbers jumped further than any window.
    pub jumps: u64,
    /// Packets of the sender marked with Congestion Experienced before the vantage point.
    pub ce_marks: u64,
    /// Acknowledgements with ECE.
    pub ece: u64,
    /// Segments with CWR.
    pub cwr: u64,
    /// Whether the scale of the receiver's window is known: the handshake was captured.
    pub window_scale_known: bool,
    /// Whether both directions were captured.
    pub both_directions: bool,
    /// The skew of the second vantage point's clock relative to the first's, as a fraction; `None`: not known.
    pub clock_skew: Option<f64>,
}

impl Flow {
    pub(super) fn new(number: u32, name: Name, [from, to]: [Endpoint; 2], t_ns: i64, interval_ns: i64) -> Self {
        Self {
            number,
            name,
            from,
            to,
            first_ns: t_ns,
            next_sample_ns: (t_ns.div_euclid(interval_ns) + 1) * interval_ns,
            halves: Halves::default(),
            kinds: Kinds::default(),
        }
    }

    /// The times before `t_ns` at which samples are due. If there are several, only the first and the last: the state
    /// was the same at all of them.
    pub(super) fn due(&mut self, t_ns: i64, interval_ns: i64) -> [Option<i64>; 2] {
        if t_ns < self.next_sample_ns {
            return [None; 2];
        }
        let first = self.next_sample_ns;
        let last = t_ns.div_euclid(interval_ns) * interval_ns;
        self.next_sample_ns = last + interval_ns;
        [Some(first), (last > first).then_some(last)]
    }

    /// A sample. `at_end`: it is the last one, so a few round trips are enough for an estimate.
    pub(super) fn row(&self, t_ns: i64, stream: &Stream, at_end: bool) -> FlowRow {
        let path = self.halves.path(at_end);
        let sees_all = path.is_none_or(|path| path.at_sender);
        FlowRow {
            t_ns: u64::try_from(t_ns).unwrap_or(0),
            flow: self.name,
            cwnd_bytes: stream.cwnd_bytes().filter(|_| sees_all),
            ssthresh_bytes: None,
            inflight_bytes: stream.flight_bytes(),
            srtt_ns: path.map(|path| path.smoothed_ns),
            min_rtt_ns: path.map(|path| path.least_ns),
            rwnd_bytes: stream.window_bytes,
            pacing_bps: None,
            delivery_rate_bps: None,
            app_limited: None,
            delivered_bytes: stream.delivered_bytes(),
            delivered_packets: stream.counts.delivered_packets,
            delivered_ce_packets: None,
            retransmits: Some(stream.counts.retransmissions),
            lost: stream.lost_packets(),
            reordering: None,
            notsent_bytes: None,
            busy_ns: None,
            rwnd_limited_ns: None,
            sndbuf_limited_ns: None,
            state: None,
        }
    }
}
