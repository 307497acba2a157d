//! What the two ends record during a test.

use bufferscope_verdict::input::Direction;
pub use bufferscope_verdict::input::{AnswerKind, Stage};
use serde::{Deserialize, Serialize};

use crate::local::{EndFacts, LocalSample};

/// An answer to a probe with a limited TTL.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LadderRow {
    /// When the probe was sent, on the sender's clock.
    pub t_ns: u64,
    /// Its TTL.
    pub ttl: u8,
    /// The address that answered; `None`: there was no answer.
    pub address: Option<String>,
    /// Time until the answer; `None`: none came.
    pub rtt_ns: Option<u64>,
    /// What kind of answer it was.
    pub kind: AnswerKind,
    /// Whether the answer shows that the probe was in an MPLS tunnel.
    pub mpls: bool,
}

/// How long a packet was in a part of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageRow {
    /// When it was sent.
    pub t_ns: u64,
    /// The part.
    pub stage: Stage,
    /// How long.
    pub delay_ns: u64,
}

/// A sample of the sender of a load connection, in the words of Linux' `tcp_info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRow {
    /// When.
    pub t_ns: u64,
    /// The connection's number among those of its direction.
    pub flow: u16,
    /// The smoothed round-trip time.
    pub srtt_ns: u64,
    /// The smallest one so far; `None`: none measured.
    pub min_rtt_ns: Option<u64>,
    /// The congestion window.
    pub cwnd_bytes: u64,
    /// Written and not sent.
    pub notsent_bytes: u64,
    /// Acknowledged so far.
    pub delivered_bytes: u64,
    /// Segments retransmitted so far.
    pub retransmits: u64,
    /// Segments whose acknowledgement reported congestion so far.
    pub delivered_ce: u64,
    /// Time with something to send.
    pub busy_us: u64,
    /// The part of it that the receiver's window limited.
    pub rwnd_limited_us: u64,
    /// The part of it that the send buffer limited.
    pub sndbuf_limited_us: u64,
}

/// Bytes of the load that the receiver has got so far in the present phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoodputRow {
    /// When.
    pub t_ns: u64,
    /// How many, over all connections of the direction and of the session.
    pub bytes: u64,
}

/// A request that reached the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrivalRow {
    /// Its number.
    pub seq: u64,
    /// When the server's kernel received it.
    pub arrived_ns: u64,
}

/// A sample of an end's own queues.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocalRow {
    /// When.
    pub t_ns: u64,
    /// The sample.
    #[serde(flatten)]
    pub sample: LocalSample,
}

/// A flood, at the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FloodRow {
    /// Its direction.
    pub direction: Direction,
    /// The highest rate that it was to have, in bit/s, headers included.
    pub peak_bps: u64,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Packets that were sent; downwards: up to the last one that arrived.
    pub sent_packets: u64,
    /// Packets that arrived.
    pub received_packets: u64,
    /// Bytes that had arrived by times of the receiver's clock, headers included.
    pub received: Vec<(u64, u64)>,
}

impl Default for FloodRow {
    fn default() -> Self {
        Self {
            direction: Direction::Up,
            peak_bps: 0,
            start_ns: 0,
            end_ns: 0,
            sent_packets: 0,
            received_packets: 0,
            received: Vec::new(),
        }
    }
}

/// What one end has recorded of its own sending and of its machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndRecords {
    /// The answers to its probes with a limited TTL.
    pub ladder: Vec<LadderRow>,
    /// The answers to its SYNs with a limited TTL.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tcp_ladder: Vec<LadderRow>,
    /// How long its packets were in its own buffers.
    pub stages: Vec<StageRow>,
    /// Its load connections, as sender.
    pub flows: Vec<FlowRow>,
    /// What it has received of the load.
    pub goodput: Vec<GoodputRow>,
    /// Its own queues.
    pub local: Vec<LocalRow>,
    /// Its floods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub floods: Vec<FloodRow>,
    /// Why connections of the load failed, in words.
    pub failures: Vec<String>,
    /// The congestion control of its load connections, as the kernel reports it.
    pub congestion: Option<String>,
}

/// What the server sends at the end of a test. Its times are those of its real-time clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerRecords {
    /// What is known of its end of the path.
    pub facts: EndFacts,
    /// What it has recorded.
    pub end: EndRecords,
    /// The client's requests that arrived.
    pub arrivals: Vec<ArrivalRow>,
    /// Whether another test ran at the same time.
    pub shared: bool,
    /// The times in which tests ran while a monitor watched: from and to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<[u64; 2]>,
}
