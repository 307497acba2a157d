//! Keys that several kinds of traffic have.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::dscp::Dscp;
use crate::file::Moment;
use crate::quantity::{Quantity, Sizes, Times};
use crate::sizes::{DATAGRAM_HEADER_BYTES, MTU_BYTES};
use crate::text::{Name, TrafficName};
use crate::units::{GB, KB, MINUTE, MS};

/// How long to wait for the answer to a probe.
pub(crate) type ProbeTimeout = Quantity<Times, MS, { 10 * MINUTE }>;
/// UDP payload. It holds at least the header that identifies a datagram, and at most fills an Ethernet packet of 1500
/// bytes, because nothing is fragmented.
pub(crate) type DatagramSize = Quantity<Sizes, 16, { (MTU_BYTES - DATAGRAM_HEADER_BYTES) as u64 }>;
/// Bytes of a transfer.
pub(crate) type TransferSize = Quantity<Sizes, 1, { 10 * GB }>;

/// Bytes of a request over HTTP.
pub(crate) type RequestSize = Quantity<Sizes, 1, { 64 * KB }>;

/// Endpoints and times: keys of every kind of traffic.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Placement {
    /// Its name in the records, metrics and key paths (`traffic.NAME.start`).
    #[schemars(example = &"bulk")]
    pub(crate) name: TrafficName,
    /// The node that sends the data: for tcp and udp the sender, for ping the prober, for web, video and dns the server, for
    /// voip the caller, for bittorrent the seed, for netalyzr and Flent's tests the client.
    #[schemars(example = &"h1")]
    pub(crate) from: Name,
    /// The node that receives it.
    #[schemars(example = &"h2")]
    pub(crate) to: Name,
    /// When it begins.
    #[serde(default = "start")]
    pub(crate) start: Moment,
    /// When it ends: no new transfer, probe or page starts after that. Default: the experiment's duration.
    #[schemars(example = &"30s")]
    pub(crate) stop: Option<Moment>,
}

/// Keys of all kinds of traffic whose packets have a single code point.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Common {
    #[serde(flatten)]
    pub(crate) placement: Placement,
    /// Differentiated services code point of all its packets in both directions, as a number or a name: `be`, `cs0` to
    /// `cs7`, `af11` to `af43`, `va`, `ef` or `le`.
    #[serde(default)]
    #[schemars(example = &"ef", example = &"cs1", example = 46)]
    pub(crate) dscp: Dscp,
}

/// The server's end of traffic over TCP or UDP.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Server {
    /// Port at which its server listens: `to` for tcp, udp, voip, bittorrent, irtt and netalyzr, `from` for web, video and dns. Clients
    /// have ports from 20000 on. Default: one from 5001 on that no other entry uses.
    #[schemars(range(min = 1, max = 19_999), example = 443)]
    pub(crate) port: Option<u16>,
}

fn start() -> Moment {
    Moment::new(0)
}

/// Of `request`, in the kinds that have this key.
pub(crate) fn request() -> RequestSize {
    RequestSize::new(200)
}

/// Of `flows`, in the kinds that have this key.
pub(crate) fn flows() -> u32 {
    1
}
