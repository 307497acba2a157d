//! `[[traffic]]`: who sends what to whom, and when.

use schemars::JsonSchema;
use serde::Deserialize;

use super::datagrams::{Dns, Irtt, Netalyzr, Udp, Voip};
use super::flent_tests::{LoadTest, Streams};
use super::streams::{Bittorrent, Tcp, Web};
use super::{Interval, Moment, defaults};
use crate::dscp::Dscp;
use crate::model::PingTiming;
use crate::quantity::{Quantity, Sizes, Times};
use crate::text::{Name, TrafficName};
use crate::units::{MINUTE, MS};

/// ICMP payload; with headers it must fit an Ethernet packet of 1500 bytes, as nothing is fragmented.
pub(crate) type Payload = Quantity<Sizes, 0, 1472>;
/// How long to wait for an answer.
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
    Irtt(Irtt),
    Netalyzr(Netalyzr),
    /// Flent's *Realtime Response Under Load*: four TCP uploads and four downloads, marked BE, BK (CS1), CS5 and EF, under
    /// probes over UDP (marked EF, BK and BE) and ICMP.
    Rrul(LoadTest),
    /// Flent's `rrul_be`: as `rrul`, but without marks.
    #[serde(rename = "rrul_be")]
    RrulBe(LoadTest),
    /// Flent's `tcp_bidirectional`: one TCP upload and one download, and pings.
    #[serde(rename = "tcp_bidirectional")]
    TcpBidirectional(LoadTest),
    /// Flent's `tcp_ndown`: some TCP downloads, and pings.
    #[serde(rename = "tcp_ndown")]
    TcpDown(Streams),
    /// Flent's `tcp_nup`: some TCP uploads, and pings.
    #[serde(rename = "tcp_nup")]
    TcpUp(Streams),
}

/// Endpoints and times: keys of every kind of traffic.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Placement {
    /// Its name in the records, metrics and key paths (`traffic.NAME.start`).
    #[schemars(example = &"bulk")]
    pub(crate) name: TrafficName,
    /// The node that sends the data: for tcp and udp the sender, for ping the prober, for web and dns the server, for voip the
    /// caller, for bittorrent the seed, for netalyzr and Flent's tests the client.
    #[schemars(example = &"h1")]
    pub(crate) from: Name,
    /// The node that receives it.
    #[schemars(example = &"h2")]
    pub(crate) to: Name,
    /// When it begins.
    #[serde(default = "defaults::start")]
    pub(crate) start: Moment,
    /// When it ends: no new transfer, probe or page starts after that. Default: the experiment's duration.
    #[schemars(example = &"30s")]
    pub(crate) stop: Option<Moment>,
}

/// Keys of all kinds of traffic whose packets have a single code point.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct TrafficCommon {
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
    /// Port at which its server listens: `to` for tcp, udp, voip, bittorrent, irtt and netalyzr, `from` for web and dns. Clients have
    /// ports from 20000 on. Default: one from 5001 on that no other entry uses.
    #[schemars(range(min = 1, max = 19_999), example = 443)]
    pub(crate) port: Option<u16>,
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
    /// Endpoints and times.
    pub(crate) fn placement(&self) -> &Placement {
        match self {
            Self::Rrul(test) | Self::RrulBe(test) | Self::TcpBidirectional(test) => &test.placement,
            Self::TcpDown(streams) | Self::TcpUp(streams) => &streams.test.placement,
            _ => &self.common().expect("the other kinds have a single code point").placement,
        }
    }

    /// The keys of traffic whose packets have a single code point.
    pub(crate) fn common(&self) -> Option<&TrafficCommon> {
        match self {
            Self::Tcp(tcp) => Some(&tcp.common),
            Self::Ping(ping) => Some(&ping.common),
            Self::Web(web) => Some(&web.common),
            Self::Udp(udp) => Some(&udp.common),
            Self::Voip(voip) => Some(&voip.common),
            Self::Dns(dns) => Some(&dns.common),
            Self::Bittorrent(bittorrent) => Some(&bittorrent.common),
            Self::Irtt(irtt) => Some(&irtt.common),
            Self::Netalyzr(netalyzr) => Some(&netalyzr.common),
            Self::Rrul(_) | Self::RrulBe(_) | Self::TcpBidirectional(_) | Self::TcpDown(_) | Self::TcpUp(_) => None,
        }
    }

    /// The port of its server, if the file names one.
    pub(crate) fn port(&self) -> Option<u16> {
        match self {
            Self::Tcp(tcp) => tcp.server.port,
            Self::Web(web) => web.server.port,
            Self::Udp(udp) => udp.server.port,
            Self::Voip(voip) => voip.server.port,
            Self::Dns(dns) => dns.server.port,
            Self::Bittorrent(bittorrent) => bittorrent.server.port,
            Self::Irtt(irtt) => irtt.server.port,
            Self::Netalyzr(netalyzr) => netalyzr.server.port,
            _ => None,
        }
    }
}
