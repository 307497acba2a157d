//! `[[traffic]]`: who sends what to whom, and when.

use schemars::JsonSchema;
use serde::Deserialize;

use super::datagrams::{Dns, Udp, Voip};
use super::{Interval, Moment, defaults};
use crate::congestion::Congestion;
use crate::dscp::Dscp;
use crate::quantity::{Packets, Quantity, Sizes, Times};
use crate::text::Name;
use crate::units::{GB, KB, MINUTE, MS};

/// Bytes of a transfer.
pub(crate) type TransferSize = Quantity<Sizes, 1, { 10 * GB }>;
/// A congestion window that never changes.
pub(crate) type FixedWindow = Quantity<Packets, 1, 1_000_000>;
/// A queueing delay to aim at; RFC 6817, section 2.5, allows no more.
pub(crate) type DelayTarget = Quantity<Times, MS, { 100 * MS }>;
/// Bytes of a request.
pub(crate) type RequestSize = Quantity<Sizes, 1, { 64 * KB }>;
/// ICMP payload; with headers it must fit an Ethernet packet of 1500 bytes, as nothing is fragmented.
pub(crate) type Payload = Quantity<Sizes, 0, 1472>;
/// How long an answer is awaited.
pub(crate) type PingTimeout = Quantity<Times, MS, { 10 * MINUTE }>;

/// One source of traffic.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Traffic {
    Tcp(Tcp),
    Ping(Ping),
    Web(Web),
    Udp(Udp),
    Voip(Voip),
    Dns(Dns),
}

/// What every kind of traffic has.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct TrafficCommon {
    /// Its name in the records, metrics and key paths (`traffic.NAME.start`).
    #[schemars(example = &"bulk")]
    pub(crate) name: Name,
    /// The node that sends the data: the sender for tcp and udp, the prober for ping, the server for web and dns, the caller for
    /// voip.
    #[schemars(example = &"h1")]
    pub(crate) from: Name,
    /// The node that receives it.
    #[schemars(example = &"h2")]
    pub(crate) to: Name,
    /// When it begins.
    #[serde(default = "defaults::start")]
    pub(crate) start: Moment,
    /// When it ends: nothing new is begun from then on. Default: the experiment's duration.
    #[schemars(example = &"30s")]
    pub(crate) stop: Option<Moment>,
    /// Differentiated services code point of all its packets, in both directions, by number or by name: `be`, `cs0` to `cs7`,
    /// `af11` to `af43`, `va`, `ef` or `le`.
    #[serde(default)]
    #[schemars(example = &"ef", example = &"cs1", example = 46)]
    pub(crate) dscp: Dscp,
}

/// How the data of a TCP connection is sent.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Sending {
    /// The congestion control of the host that sends the data.
    #[serde(default = "defaults::congestion")]
    pub(crate) congestion: Congestion,
    /// Packets in flight with the congestion control `window`, which needs it.
    #[schemars(example = &"40p")]
    pub(crate) window: Option<FixedWindow>,
    /// Queueing delay that `ledbat` adds where it is alone. Default: 100ms.
    #[schemars(example = &"60ms")]
    pub(crate) target: Option<DelayTarget>,
    /// Negotiate and use ECN (RFC 3168).
    #[serde(default)]
    pub(crate) ecn: bool,
    /// Space packets over the round trip, as Linux does for a socket with `SO_MAX_PACING_RATE`, also where the congestion
    /// control does not need it.
    #[serde(default)]
    pub(crate) pacing: bool,
}

/// Bulk data over TCP.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Tcp {
    #[serde(flatten)]
    pub(crate) common: TrafficCommon,
    /// Number of connections that start together; 0 leaves the traffic out, as a point of a sweep may.
    #[serde(default = "defaults::flows")]
    #[schemars(range(min = 0, max = 10_000))]
    pub(crate) flows: u32,
    /// Payload that each connection sends before it closes. Default: as much as it can.
    #[schemars(example = &"32mb")]
    pub(crate) bytes: Option<TransferSize>,
    #[serde(flatten)]
    pub(crate) sending: Sending,
}

/// Latency probes (ICMP echo), sent at a fixed interval whether or not earlier ones were answered.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Ping {
    #[serde(flatten)]
    pub(crate) common: TrafficCommon,
    /// Time between two probes.
    #[serde(default = "defaults::ping_interval")]
    pub(crate) interval: Interval,
    /// Payload, as `ping -s`; the IP packet is 28 bytes longer.
    #[serde(default = "defaults::ping_size")]
    pub(crate) size: Payload,
    /// A probe without answer after this time counts as lost, as `ping -W`.
    #[serde(default = "defaults::ping_timeout")]
    pub(crate) timeout: PingTimeout,
}

/// Pages fetched at a fixed interval, each over a TCP connection of its own, from the server `from` by the client `to`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Web {
    #[serde(flatten)]
    pub(crate) common: TrafficCommon,
    /// Time between the starts of two fetches.
    #[serde(default = "defaults::web_interval")]
    pub(crate) interval: Interval,
    /// Size of a page, headers included.
    #[schemars(example = 177_669)]
    pub(crate) bytes: TransferSize,
    /// Size of a request.
    #[serde(default = "defaults::web_request")]
    pub(crate) request: RequestSize,
    #[serde(flatten)]
    pub(crate) sending: Sending,
}

impl Traffic {
    pub(crate) fn common(&self) -> &TrafficCommon {
        match self {
            Self::Tcp(tcp) => &tcp.common,
            Self::Ping(ping) => &ping.common,
            Self::Web(web) => &web.common,
            Self::Udp(udp) => &udp.common,
            Self::Voip(voip) => &voip.common,
            Self::Dns(dns) => &dns.common,
        }
    }
}
