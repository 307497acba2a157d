//! `bittorrent`: a seed of a torrent and its peers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shared::keys::{Common, Server};
use super::shared::sending;
use super::{Demand, Entry, Sending, Source, Transport};
use crate::congestion::Congestion;
use crate::error::Problems;
use crate::model::Traffic;

/// A BitTorrent seed `from` that sends to its peers at `to`, a few at a time. Every ten seconds it chokes all peers except those
/// that download fastest and one more, which changes in turn (BEP 3).
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    #[serde(flatten)]
    common: Common,
    #[serde(flatten)]
    server: Server,
    /// Number of peers, each with its own connection. 0 disables the traffic.
    #[serde(default = "peers")]
    #[schemars(range(min = 0, max = 10_000))]
    peers: u32,
    /// Number of peers that may download at a time, including the one that changes in turn.
    #[serde(default = "unchoked")]
    #[schemars(range(min = 1, max = 10_000))]
    unchoked: u32,
    /// Congestion control of the sender. BitTorrent programs choose their own.
    #[serde(default = "congestion")]
    congestion: Congestion,
    #[serde(flatten)]
    sending: sending::Keys,
}

fn peers() -> u32 {
    10
}

/// BEP 3.
fn unchoked() -> u32 {
    4
}

/// uTP's congestion control (BEP 29), which was later published as RFC 6817.
fn congestion() -> Congestion {
    Congestion::Ledbat
}

/// A seed of a torrent, which sends to the peers that it does not choke.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BittorrentTraffic {
    /// Peers, each with a connection of its own; may be 0.
    pub peers: u32,
    /// Peers that may receive at a time.
    pub unchoked: u32,
    /// How the data is sent.
    #[serde(flatten)]
    pub sending: Sending,
}

impl Source for BittorrentTraffic {
    type Keys = Keys;

    const TRANSPORT: Option<Transport> = Some(Transport::Tcp);
    const CARRIES: bool = true;

    fn common(keys: &Keys) -> &Common {
        &keys.common
    }

    fn port(keys: &Keys) -> Option<u16> {
        keys.server.port
    }

    fn resolve(keys: &Keys, entry: &Entry<'_>, problems: &mut Problems) -> Self {
        Self {
            peers: keys.peers,
            unchoked: keys.unchoked,
            sending: Sending::resolve(keys.congestion, &keys.sending, entry.path, problems),
        }
    }

    /// Its connections are its flows, whose number is limited for all traffic together.
    fn check_limits(&self, _: &Traffic, _: &mut Problems) {}

    fn flows(&self) -> Option<u32> {
        Some(self.peers)
    }

    fn sending(&self) -> Option<Sending> {
        Some(self.sending)
    }

    fn demand(&self, _: u64) -> Demand {
        let peers = u64::from(self.peers);
        let senders = peers.min(u64::from(self.unchoked));
        Demand::Connections { at_a_time: peers, senders, begun: peers, window_packets: None, bytes: None }
    }

    fn connections_are_flows(&self) -> bool {
        true
    }

    #[cfg(feature = "testing")]
    fn any(_: u64) -> Option<proptest::strategy::BoxedStrategy<Self>> {
        use proptest::prelude::*;
        let any = (0..=8_u32, 1..=5_u32, Sending::any());
        Some(any.prop_map(|(peers, unchoked, sending)| Self { peers, unchoked, sending }).boxed())
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::number;
        let mut keys = vec![("peers", number(self.peers)), ("unchoked", number(self.unchoked))];
        keys.extend(self.sending.written());
        keys
    }
}
