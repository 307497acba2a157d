//! `voip`: a voice call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shared::keys::{Common, Server};
use super::{Demand, Entry, Source, Transport};
use crate::error::Problems;
use crate::model::Traffic;

/// A voice call with G.711 over RTP: 50 packets of 200 bytes per second in each direction.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    #[serde(flatten)]
    common: Common,
    #[serde(flatten)]
    server: Server,
    /// Whether `to` sends too, and not only `from`.
    #[serde(default = "both_ways")]
    both_ways: bool,
}

fn both_ways() -> bool {
    true
}

/// A voice call with G.711 over RTP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VoipTraffic {
    /// Whether `to` sends too, or `from` alone.
    pub both_ways: bool,
}

impl VoipTraffic {
    /// Time between two packets: 20 ms of speech, RFC 3551's default.
    pub const INTERVAL_NS: u64 = 20_000_000;
    /// UDP payload: 160 bytes of G.711 (64 kbit/s, RFC 3551, section 4.5.14) and 12 of RTP header (RFC 3550, section
    /// 5.1). The IP packet has 200.
    pub const PAYLOAD_BYTES: u32 = 172;
    /// A packet that takes longer counts as lost. No listener waits that long, and the records have to be closed.
    pub const TIMEOUT_NS: u64 = 60_000_000_000;

    /// Number of streams: one per direction.
    pub fn streams(&self) -> u32 {
        if self.both_ways { 2 } else { 1 }
    }
}

impl Source for VoipTraffic {
    type Keys = Keys;

    const TRANSPORT: Option<Transport> = Some(Transport::Udp);
    const ONE_WAY: bool = true;

    fn common(keys: &Keys) -> &Common {
        &keys.common
    }

    fn port(keys: &Keys) -> Option<u16> {
        keys.server.port
    }

    fn resolve(keys: &Keys, _: &Entry<'_>, _: &mut Problems) -> Self {
        Self { both_ways: keys.both_ways }
    }

    /// Even a day of speech has fewer rows than the limit.
    fn check_limits(&self, _: &Traffic, _: &mut Problems) {}

    fn demand(&self, _: u64) -> Demand {
        Demand::Little
    }

    #[cfg(feature = "testing")]
    fn any(_: u64) -> Option<proptest::strategy::BoxedStrategy<Self>> {
        use proptest::prelude::*;
        Some(any::<bool>().prop_map(|both_ways| Self { both_ways }).boxed())
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        vec![("both_ways", self.both_ways.into())]
    }
}
