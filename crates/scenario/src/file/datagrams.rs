//! `[[traffic]]` over UDP: plain datagrams, telephone calls, look-ups.

use schemars::JsonSchema;
use serde::Deserialize;

use super::link::Rate;
use super::traffic::TrafficCommon;
use super::turns::Turns;
use super::{Interval, defaults};
use crate::model::Pattern;
use crate::quantity::{Quantity, Sizes, Times};
use crate::sizes::{DATAGRAM_HEADER_BYTES, MTU_BYTES};
use crate::units::{MINUTE, MS};

/// UDP payload; from room for a number to what an Ethernet packet of 1500 bytes holds, as nothing is fragmented.
pub(crate) type DatagramSize = Quantity<Sizes, 16, { (MTU_BYTES - DATAGRAM_HEADER_BYTES) as u64 }>;
/// How long one attempt of a look-up is awaited.
pub(crate) type LookUpTimeout = Quantity<Times, MS, MINUTE>;

/// Datagrams at a rate, whatever becomes of them, as `iperf3 -u` sends them. A rate above the path's is a flood.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Udp {
    #[serde(flatten)]
    pub(crate) common: TrafficCommon,
    /// Bits of UDP payload a second that each flow sends while it is on, as `iperf3 -b`.
    #[schemars(example = &"2mbit")]
    pub(crate) rate: Rate,
    /// UDP payload of a datagram, as `iperf3 -l`; the IP packet is 28 bytes longer.
    #[serde(default = "defaults::udp_size")]
    pub(crate) size: DatagramSize,
    /// Number of flows, each with this rate.
    #[serde(default = "defaults::flows")]
    #[schemars(range(min = 0, max = 10_000))]
    pub(crate) flows: u32,
    /// How the datagrams follow one another: at equal distances, or as a Poisson process.
    #[serde(default)]
    pub(crate) pattern: Pattern,
    #[serde(flatten)]
    pub(crate) turns: Turns,
}

/// A telephone call with G.711 over RTP: 50 packets a second of 200 bytes, each way.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Voip {
    #[serde(flatten)]
    pub(crate) common: TrafficCommon,
    /// Whether `to` speaks too. If not, only `from` does.
    #[serde(default = "defaults::both_ways")]
    pub(crate) both_ways: bool,
}

/// Look-ups of names: `to` asks the server `from`, and asks again if no answer comes.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Dns {
    #[serde(flatten)]
    pub(crate) common: TrafficCommon,
    /// Time between the starts of two look-ups; the mean, if they are a Poisson process.
    #[serde(default = "defaults::dns_interval")]
    pub(crate) interval: Interval,
    /// How the look-ups follow one another: at equal distances, or as a Poisson process.
    #[serde(default)]
    pub(crate) pattern: Pattern,
    /// UDP payload of a question.
    #[serde(default = "defaults::dns_request")]
    pub(crate) request: DatagramSize,
    /// UDP payload of an answer.
    #[serde(default = "defaults::dns_response")]
    pub(crate) response: DatagramSize,
    /// How long an answer is awaited before the question is asked again, or given up.
    #[serde(default = "defaults::dns_timeout")]
    pub(crate) timeout: LookUpTimeout,
    /// How often a question is asked.
    #[serde(default = "defaults::dns_attempts")]
    #[schemars(range(min = 1, max = 10))]
    pub(crate) attempts: u32,
}
