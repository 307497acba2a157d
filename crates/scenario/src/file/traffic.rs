//! `[[traffic]]`: who sends what to whom, and when.

use schemars::JsonSchema;
use serde::Deserialize;

use super::datagrams::{Dns, Udp, Voip};
use super::streams::{Bittorrent, Tcp, Web};
use super::{Interval, Moment, defaults};
use crate::dscp::Dscp;
use crate::model::PingTiming;
use crate::quantity::{Quantity, Sizes, Times};
use crate::text::{Name, TrafficName};
use crate::units::{MINUTE, MS};

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
    Bittorrent(Bittorrent),
}

/// Keys of every kind of traffic.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct TrafficCommon {
    /// Its name in the records, metrics and key paths (`traffic.NAME.start`).
    #[schemars(example = &"bulk")]
    pub(crate) name: TrafficName,
    /// The node that sends the data: for tcp and udp the sender, for ping the prober, for web and dns the server, for voip the
    /// caller, for bittorrent the seed.
    #[schemars(example = &"h1")]
    pub(crate) from: Name,
    /// The node that receives it.
    #[schemars(example = &"h2")]
    pub(crate) to: Name,
    /// When it begins.
    #[serde(default = "defaults::start")]
    pub(crate) start: Moment,
    /// When it ends: nothing new starts after that. Default: the experiment's duration.
    #[schemars(example = &"30s")]
    pub(crate) stop: Option<Moment>,
    /// Differentiated services code point of all its packets in both directions, as a number or a name: `be`, `cs0` to
    /// `cs7`, `af11` to `af43`, `va`, `ef` or `le`.
    #[serde(default)]
    #[schemars(example = &"ef", example = &"cs1", example = 46)]
    pub(crate) dscp: Dscp,
}

/// Latency probes (ICMP echo), sent at an interval whether or not earlier ones were answered.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Ping {
    #[serde(flatten)]
    pub(crate) common: TrafficCommon,
    /// Time between two probes.
    #[serde(default = "defaults::ping_interval")]
    pub(crate) interval: Interval,
    /// Payload, as with `ping -s`. The IP packet is 28 bytes longer.
    #[serde(default = "defaults::ping_size")]
    pub(crate) size: Payload,
    /// A probe that is not answered within this time counts as lost, as with `ping -W`.
    #[serde(default = "defaults::ping_timeout")]
    pub(crate) timeout: PingTimeout,
    /// When probes are sent. `exact`: at every multiple of the interval. `iputils`: as `ping -i` of iputils sends them; the
    /// interval must then be whole milliseconds, and comes out up to 4 % longer.
    #[serde(default)]
    pub(crate) timing: PingTiming,
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
            Self::Bittorrent(bittorrent) => &bittorrent.common,
        }
    }
}
