//! Traffic over UDP: what an engine needs of each kind.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Flows that send at their rate whether or not the datagrams arrive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UdpTraffic {
    /// Number of flows.
    pub flows: u32,
    /// Bits of payload a second that each flow sends while it is on; on average with [`Pattern::Poisson`].
    pub rate_bps: u64,
    /// UDP payload of a datagram; the IP packet is 28 bytes longer.
    pub payload_bytes: u32,
    /// How the datagrams follow one another.
    pub pattern: Pattern,
    /// When each flow is on and off; `None`: always on.
    pub on_off: Option<OnOff>,
}

/// The intervals between successive datagrams or look-ups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Equal intervals.
    #[default]
    Constant,
    /// Exponentially distributed intervals: a Poisson process.
    Poisson,
}

/// A flow that is on and off alternately, beginning with on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnOff {
    /// Length of the on periods; their mean length, if the lengths differ.
    pub on_ns: u64,
    /// Length of the off periods; their mean length, if the lengths differ.
    pub off_ns: u64,
    /// Whether the lengths differ.
    pub periods: Periods,
}

/// How long the periods of an on/off flow are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Periods {
    /// All the same.
    #[default]
    Fixed,
    /// Exponentially distributed, each flow on its own.
    Exponential,
}

/// A voice call with G.711 over RTP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VoipTraffic {
    /// Whether `to` sends too, or `from` alone.
    pub both_ways: bool,
}

impl VoipTraffic {
    /// Time between two packets: 20 ms of speech, RFC 3551's default.
    pub const INTERVAL_NS: u64 = 20_000_000;
    /// UDP payload: 160 bytes of G.711 (64 kbit/s, RFC 3551, section 4.5.14) and 12 of RTP header (RFC 3550, section
    /// 5.1). The IP packet has 200.
    pub const PAYLOAD_BYTES: u32 = 172;
    /// A packet that takes longer counts as lost. No listener waits that long, and the records have to be closed.
    pub const TIMEOUT_NS: u64 = 60_000_000_000;

    /// Number of streams: one per direction.
    pub fn streams(&self) -> u32 {
        if self.both_ways { 2 } else { 1 }
    }
}

/// DNS look-ups: a query to a server, and its response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DnsTraffic {
    /// Time between the starts of two look-ups; on average with [`Pattern::Poisson`].
    pub interval_ns: u64,
    /// How the look-ups follow one another.
    pub pattern: Pattern,
    /// UDP payload of a query; the IP packet is 28 bytes longer.
    pub request_bytes: u32,
    /// UDP payload of an answer.
    pub response_bytes: u32,
    /// How long to wait for the answer to one attempt before the next one.
    pub timeout_ns: u64,
    /// How many times a query is sent before the look-up fails.
    pub attempts: u32,
}

/// Round trips over UDP: requests at a fixed interval, answered at once with as many bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IrttTraffic {
    /// Time between two requests.
    pub interval_ns: u64,
    /// UDP payload of a request and of its answer; the IP packet is 28 bytes longer.
    pub payload_bytes: u32,
    /// A request that is not answered within this time counts as lost.
    pub timeout_ns: u64,
}

/// A test of the path's buffers as Netalyzr makes it: round trips without load, then a load in each direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetalyzrTraffic {
    /// Number of small packets that measure the round trip without load.
    pub probes: u32,
    /// Time between two of these packets.
    pub interval_ns: u64,
    /// Length of the load in each direction. The second half is measured.
    pub load_ns: u64,
    /// Time between the two loads.
    pub pause_ns: u64,
    /// UDP payload of the large packets; the IP packet is 28 bytes longer.
    pub payload_bytes: u32,
    /// The highest rate of large packets, in bits of payload per second.
    pub rate_bps: u64,
}

impl NetalyzrTraffic {
    /// UDP payload of the small packets. Their size is not published; the client's messages have a time, a number and a
    /// size in digits.
    pub const SMALL_BYTES: u32 = 32;

    /// Time between two large packets at the highest rate.
    pub fn spacing_ns(&self) -> u64 {
        u64::from(self.payload_bytes) * 8 * 1_000_000_000 / self.rate_bps
    }

    /// Length of the whole test.
    pub fn lasts_ns(&self) -> u64 {
        u64::from(self.probes) * self.interval_ns + 2 * self.load_ns + self.pause_ns
    }
}
