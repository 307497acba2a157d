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

/// What every kind of traffic has.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct TrafficCommon {
    /// Its name in the records, metrics and key paths (`traffic.NAME.start`).
    #[schemars(example = &"bulk")]
    pub(crate) name: TrafficName,
    /// The node that sends the data: the sender for tcp and udp, the prober for ping, the server for web and dns, the caller for
    /// voip, the seed for bittorrent.
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

/// Latency probes (ICMP echo), sent at an interval whether or not earlier ones were answered.
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
    /// When probes are sent: `exact`, at each multiple of the interval, or `iputils`, as `ping -i` of iputils does, whose interval
    /// must be whole milliseconds and comes out up to 4 % longer.
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
