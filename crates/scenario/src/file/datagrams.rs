//! `[[traffic]]` over UDP: plain datagrams, voice calls, DNS look-ups, probes.

use schemars::JsonSchema;
use serde::Deserialize;

use super::link::Rate;
use super::on_off::OnOffKeys;
use super::traffic::{PingTimeout, Server, TrafficCommon};
use super::{Duration, Interval, Moment, defaults};
use crate::model::Pattern;
use crate::quantity::{Quantity, Sizes, Times};
use crate::sizes::{DATAGRAM_HEADER_BYTES, MTU_BYTES};
use crate::units::{MINUTE, MS};

/// UDP payload. It holds at least the header that identifies a datagram, and at most fills an Ethernet packet of 1500
/// bytes, because nothing is fragmented.
pub(crate) type DatagramSize = Quantity<Sizes, 16, { (MTU_BYTES - DATAGRAM_HEADER_BYTES) as u64 }>;
/// Timeout of one attempt of a look-up.
pub(crate) type LookUpTimeout = Quantity<Times, MS, MINUTE>;

/// Datagrams at a given rate, regardless of losses, as `iperf3 -u` sends them. A rate above that of the path is a flood.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Udp {
    #[serde(flatten)]
    pub(crate) common: TrafficCommon,
    #[serde(flatten)]
    pub(crate) server: Server,
    /// Rate of UDP payload that each flow sends while it is on, as with `iperf3 -b`.
    #[schemars(example = &"2mbit")]
    pub(crate) rate: Rate,
    /// UDP payload of a datagram, as with `iperf3 -l`. The IP packet is 28 bytes longer.
    #[serde(default = "defaults::udp_size")]
    pub(crate) size: DatagramSize,
    /// Number of flows, each with this rate.
    #[serde(default = "defaults::flows")]
    #[schemars(range(min = 0, max = 10_000))]
    pub(crate) flows: u32,
    /// Whether the datagrams follow one another at equal intervals, or as a Poisson process.
    #[serde(default)]
    pub(crate) pattern: Pattern,
    #[serde(flatten)]
    pub(crate) on_off: OnOffKeys,
}

/// A voice call with G.711 over RTP: 50 packets of 200 bytes per second in each direction.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Voip {
    #[serde(flatten)]
    pub(crate) common: TrafficCommon,
    #[serde(flatten)]
    pub(crate) server: Server,
    /// Whether `to` sends too, and not only `from`.
    #[serde(default = "defaults::both_ways")]
    pub(crate) both_ways: bool,
}

/// DNS look-ups: `to` sends queries to the server `from`, and retries if no response comes.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Dns {
    #[serde(flatten)]
    pub(crate) common: TrafficCommon,
    #[serde(flatten)]
    pub(crate) server: Server,
    /// Time between the starts of two look-ups. With a Poisson process, the mean.
    #[serde(default = "defaults::dns_interval")]
    pub(crate) interval: Interval,
    /// Whether the look-ups follow one another at equal intervals, or as a Poisson process.
    #[serde(default)]
    pub(crate) pattern: Pattern,
    /// UDP payload of a query.
    #[serde(default = "defaults::dns_request")]
    pub(crate) request: DatagramSize,
    /// UDP payload of a response.
    #[serde(default = "defaults::dns_response")]
    pub(crate) response: DatagramSize,
    /// How long to wait for a response before the query is repeated or given up.
    #[serde(default = "defaults::dns_timeout")]
    pub(crate) timeout: LookUpTimeout,
    /// Maximum number of times that a query is sent.
    #[serde(default = "defaults::dns_attempts")]
    #[schemars(range(min = 1, max = 10))]
    pub(crate) attempts: u32,
}

/// Latency probes over UDP at a fixed interval, as `irtt` sends them. `to` answers each at once with a datagram of the same
/// size.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Irtt {
    #[serde(flatten)]
    pub(crate) common: TrafficCommon,
    #[serde(flatten)]
    pub(crate) server: Server,
    /// Time between two probes, as with `irtt client -i`.
    #[serde(default = "defaults::irtt_interval")]
    pub(crate) interval: Interval,
    /// UDP payload of a probe and of its answer, as with `irtt client -l`. The IP packet is 28 bytes longer.
    #[serde(default = "defaults::irtt_size")]
    pub(crate) size: DatagramSize,
    /// A probe that is not answered within this time counts as lost.
    #[serde(default = "defaults::ping_timeout")]
    pub(crate) timeout: PingTimeout,
}

/// Netalyzr's test of the path's buffers, over UDP: round trips without load, then a load from `to` to `from`, then one from
/// `from` to `to`. For each packet that returns, the client sends two more.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Netalyzr {
    #[serde(flatten)]
    pub(crate) common: TrafficCommon,
    #[serde(flatten)]
    pub(crate) server: Server,
    /// Number of small packets that measure the round trip without load.
    #[serde(default = "defaults::netalyzr_probes")]
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) probes: u32,
    /// Time between two of these packets.
    #[serde(default = "defaults::netalyzr_interval")]
    pub(crate) interval: Interval,
    /// Length of the load in each direction. The second half is measured.
    #[serde(default = "defaults::netalyzr_load")]
    pub(crate) load: Duration,
    /// Time between the two loads, in which queues drain.
    #[serde(default = "defaults::netalyzr_pause")]
    pub(crate) pause: Moment,
    /// UDP payload of the large packets.
    #[serde(default = "defaults::netalyzr_size")]
    pub(crate) size: DatagramSize,
    /// The highest rate of large packets that the client can send or ask for, in bits of payload per second.
    #[serde(default = "defaults::netalyzr_rate")]
    pub(crate) rate: Rate,
}
