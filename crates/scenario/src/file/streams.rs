//! `[[traffic]]` that opens TCP connections.

use schemars::JsonSchema;
use serde::Deserialize;

use super::link::Rate;
use super::traffic::TrafficCommon;
use super::turns::Turns;
use super::{Interval, Moment, defaults};
use crate::congestion::Congestion;
use crate::quantity::{Packets, Quantity, Sizes, Times};
use crate::units::{GB, KB, MS};

/// Bytes of a transfer.
pub(crate) type TransferSize = Quantity<Sizes, 1, { 10 * GB }>;
/// A congestion window that never changes.
pub(crate) type FixedWindow = Quantity<Packets, 1, 1_000_000>;
/// A queueing delay to aim at; RFC 6817, section 2.5, allows no more.
pub(crate) type DelayTarget = Quantity<Times, MS, { 100 * MS }>;
/// Bytes of a request.
pub(crate) type RequestSize = Quantity<Sizes, 1, { 64 * KB }>;

/// How the data of a TCP connection is sent.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Sending {
    /// Packets in flight with the congestion control `window`, which needs it.
    #[schemars(example = &"40p")]
    pub(crate) window: Option<FixedWindow>,
    /// Queueing delay that `ledbat` and `ledbat++` add where they are alone. Default: 100ms and 60ms.
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

/// Data over TCP: as much as fits, files of a known size, or what an application writes at times or at a rate of its own.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Tcp {
    #[serde(flatten)]
    pub(crate) common: TrafficCommon,
    /// Number of connections at a time; 0 leaves the traffic out, as a point of a sweep may.
    #[serde(default = "defaults::flows")]
    #[schemars(range(min = 0, max = 10_000))]
    pub(crate) flows: u32,
    /// How much later than the one before it each of the flows begins.
    #[serde(default = "defaults::stagger")]
    pub(crate) stagger: Moment,
    /// Payload that each connection sends before it closes. Default: as much as it can.
    #[schemars(example = &"32mb")]
    pub(crate) bytes: Option<TransferSize>,
    /// How many times each of the flows sends `bytes`: one after the other, each time over a new connection.
    #[serde(default = "defaults::transfers")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) transfers: u32,
    /// Payload that the application writes in a second, by and by. Default: whatever the connection takes.
    #[schemars(example = &"5mbit")]
    pub(crate) rate: Option<Rate>,
    #[serde(flatten)]
    pub(crate) turns: Turns,
    /// The congestion control that the data is sent with. Default: that of the host `from`.
    pub(crate) congestion: Option<Congestion>,
    #[serde(flatten)]
    pub(crate) sending: Sending,
}

/// Pages fetched at a fixed interval from the server `from` by the client `to`, each over TCP connections of its own.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Web {
    #[serde(flatten)]
    pub(crate) common: TrafficCommon,
    /// Time between the starts of two fetches.
    #[serde(default = "defaults::web_interval")]
    pub(crate) interval: Interval,
    /// Size of a page, or of its document where it has `objects` besides; headers included.
    #[schemars(example = 177_669)]
    pub(crate) bytes: TransferSize,
    /// Size of a request.
    #[serde(default = "defaults::web_request")]
    pub(crate) request: RequestSize,
    /// Further objects of a page, which are asked for once its document has arrived. Default: none.
    #[schemars(range(min = 0, max = 10_000), example = 30)]
    pub(crate) objects: Option<u32>,
    /// Size of each of them, headers included.
    #[schemars(example = &"15kb")]
    pub(crate) object_bytes: Option<TransferSize>,
    /// Connections over which a page's objects are fetched, at most; each fetches one after the other. Default: 6.
    #[schemars(range(min = 1, max = 1000), example = 6)]
    pub(crate) connections: Option<u32>,
    /// The congestion control that the data is sent with. Default: that of the host `from`.
    pub(crate) congestion: Option<Congestion>,
    #[serde(flatten)]
    pub(crate) sending: Sending,
}

/// A BitTorrent seed `from` that sends to its peers at `to`, to a few of them at a time: every ten seconds it chokes all but
/// those that take most, and one more in turn (BEP 3).
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Bittorrent {
    #[serde(flatten)]
    pub(crate) common: TrafficCommon,
    /// Peers, each with a connection of its own; 0 leaves the traffic out.
    #[serde(default = "defaults::peers")]
    #[schemars(range(min = 0, max = 10_000))]
    pub(crate) peers: u32,
    /// Peers that may receive at a time, the one that it is the turn of included.
    #[serde(default = "defaults::unchoked")]
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) unchoked: u32,
    /// The congestion control that the data is sent with, which such programs choose themselves.
    #[serde(default = "defaults::bittorrent_congestion")]
    pub(crate) congestion: Congestion,
    #[serde(flatten)]
    pub(crate) sending: Sending,
}
