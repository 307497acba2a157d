//! `[[traffic]]` that opens TCP connections.

use schemars::JsonSchema;
use serde::Deserialize;

use super::link::Rate;
use super::on_off::OnOffKeys;
use super::traffic::{Server, TrafficCommon};
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
    /// Number of packets in flight. Only for the congestion control `window`, which requires it.
    #[schemars(example = &"40p")]
    pub(crate) window: Option<FixedWindow>,
    /// Target queueing delay of `ledbat` and `ledbat++`. Default: 100ms for `ledbat`, 60ms for `ledbat++`.
    #[schemars(example = &"60ms")]
    pub(crate) target: Option<DelayTarget>,
    /// Negotiate and use ECN (RFC 3168).
    #[serde(default)]
    pub(crate) ecn: bool,
    /// Pace packets even if the congestion control does not ask for it, as Linux does for a socket with
    /// `SO_MAX_PACING_RATE`.
    #[serde(default)]
    pub(crate) pacing: bool,
}

/// Data over TCP: as much as fits, files of a given size, or what an application writes at given times or at a given rate.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Tcp {
    #[serde(flatten)]
    pub(crate) common: TrafficCommon,
    #[serde(flatten)]
    pub(crate) server: Server,
    /// Number of simultaneous connections. 0 disables the traffic, which is useful in a sweep.
    #[serde(default = "defaults::flows")]
    #[schemars(range(min = 0, max = 10_000))]
    pub(crate) flows: u32,
    /// Time between the starts of successive flows.
    #[serde(default = "defaults::stagger")]
    pub(crate) stagger: Moment,
    /// Payload that each connection sends before it closes. Default: unlimited.
    #[schemars(example = &"32mb")]
    pub(crate) bytes: Option<TransferSize>,
    /// How many times each flow sends `bytes`, one transfer after the other, each over a new connection.
    #[serde(default = "defaults::transfers")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) transfers: u32,
    /// Rate at which the application writes payload. Default: as fast as the connection accepts it.
    #[schemars(example = &"5mbit")]
    pub(crate) rate: Option<Rate>,
    #[serde(flatten)]
    pub(crate) on_off: OnOffKeys,
    /// Congestion control of the sender. Default: that of the host `from`.
    pub(crate) congestion: Option<Congestion>,
    #[serde(flatten)]
    pub(crate) sending: Sending,
}

/// Web pages that the client `to` fetches from the server `from` at a fixed interval, each over new TCP connections.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Web {
    #[serde(flatten)]
    pub(crate) common: TrafficCommon,
    #[serde(flatten)]
    pub(crate) server: Server,
    /// Time between the starts of two fetches.
    #[serde(default = "defaults::web_interval")]
    pub(crate) interval: Interval,
    /// Size of a page, including headers. If the page has `objects`, the size of its document.
    #[schemars(example = 177_669)]
    pub(crate) bytes: TransferSize,
    /// Size of a request.
    #[serde(default = "defaults::web_request")]
    pub(crate) request: RequestSize,
    /// Number of further objects of a page, requested once its document has arrived. Default: none.
    #[schemars(range(min = 0, max = 10_000), example = 30)]
    pub(crate) objects: Option<u32>,
    /// Size of each object, including headers.
    #[schemars(example = &"15kb")]
    pub(crate) object_bytes: Option<TransferSize>,
    /// Maximum number of connections that fetch a page's objects. Each fetches one object at a time. Default: 6.
    #[schemars(range(min = 1, max = 1000), example = 6)]
    pub(crate) connections: Option<u32>,
    /// Congestion control of the sender. Default: that of the host `from`.
    pub(crate) congestion: Option<Congestion>,
    #[serde(flatten)]
    pub(crate) sending: Sending,
}

/// A BitTorrent seed `from` that sends to its peers at `to`, a few at a time. Every ten seconds it chokes all peers except those
/// that download fastest and one more, which changes in turn (BEP 3).
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Bittorrent {
    #[serde(flatten)]
    pub(crate) common: TrafficCommon,
    #[serde(flatten)]
    pub(crate) server: Server,
    /// Number of peers, each with its own connection. 0 disables the traffic.
    #[serde(default = "defaults::peers")]
    #[schemars(range(min = 0, max = 10_000))]
    pub(crate) peers: u32,
    /// Number of peers that may download at a time, including the one that changes in turn.
    #[serde(default = "defaults::unchoked")]
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) unchoked: u32,
    /// Congestion control of the sender. BitTorrent programs choose their own.
    #[serde(default = "defaults::bittorrent_congestion")]
    pub(crate) congestion: Congestion,
    #[serde(flatten)]
    pub(crate) sending: Sending,
}
