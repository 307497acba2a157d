//! The traffic that opens TCP connections.

use serde::{Deserialize, Serialize};

use super::{OnOff, TrafficKind, is_default};
use crate::congestion::Congestion;

/// TCP connections that send data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpTraffic {
    /// Number of concurrent connections; may be 0.
    pub flows: u32,
    /// How much later each of them begins than the one before it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stagger_ns: u64,
    /// Payload that each connection sends before it closes; `None`: as much as fits until `stop`.
    pub bytes: Option<u64>,
    /// Transfers of `bytes` that each flow makes one after the other, each over a connection of its own.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub transfers: u32,
    /// Payload that the application writes in bits per second; `None`: as much as the connection takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// When the application writes; `None`: all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_off: Option<OnOff>,
    /// How the data is sent.
    #[serde(flatten)]
    pub sending: Sending,
}

/// How the data of a TCP connection is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sending {
    /// The congestion control of the host that sends the data.
    pub congestion: Congestion,
    /// The window of [`Congestion::Window`]; `None` for all others.
    pub window_packets: Option<u32>,
    /// The queueing delay that [`Congestion::Ledbat`] or [`Congestion::LedbatPlusPlus`] aims at; `None` for all others.
    pub target_ns: Option<u64>,
    /// Negotiate and use ECN (RFC 3168).
    pub ecn: bool,
    /// Pace packets even where the congestion control does not require it.
    pub pacing: bool,
}

/// Pages fetched at a fixed interval from `from` by `to`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WebTraffic {
    /// Time between the starts of two fetches; a fetch still under way does not hold up the next.
    pub interval_ns: u64,
    /// Size of the page, headers included. If the page has `objects`, this is the size of its document.
    pub bytes: u64,
    /// Size of the request.
    pub request_bytes: u32,
    /// The other objects of a page. `None`: there are none, and the page comes over one connection, which the server
    /// closes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<PageObjects>,
    /// How the data is sent.
    #[serde(flatten)]
    pub sending: Sending,
}

/// The objects that a page refers to. They are fetched after its document, over persistent connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageObjects {
    /// How many there are (never 0).
    pub count: u32,
    /// Size of each, headers included.
    pub bytes: u64,
    /// Maximum number of connections that fetch them.
    pub connections: u32,
}

/// A seed of a torrent, which sends to the peers that it does not choke.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BittorrentTraffic {
    /// Peers, each with a connection of its own; may be 0.
    pub peers: u32,
    /// Peers that may receive at a time.
    pub unchoked: u32,
    /// How the data is sent.
    #[serde(flatten)]
    pub sending: Sending,
}

impl TrafficKind {
    /// How its connections send their data; `None` for traffic that opens none.
    pub fn sending(&self) -> Option<Sending> {
        match self {
            Self::Tcp(tcp) => Some(tcp.sending),
            Self::Web(web) => Some(web.sending),
            Self::Bittorrent(bittorrent) => Some(bittorrent.sending),
            Self::Ping(_) | Self::Udp(_) | Self::Voip(_) | Self::Dns(_) | Self::Irtt(_) | Self::Netalyzr(_) => None,
        }
    }
}

fn one() -> u32 {
    1
}

fn is_one(count: &u32) -> bool {
    *count == 1
}
