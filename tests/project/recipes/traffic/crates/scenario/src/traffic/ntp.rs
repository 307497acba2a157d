//! `ntp`: a client of the Network Time Protocol.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shared::keys::{Common, ProbeTimeout, Server};
use super::{Demand, Entry, Source, Transport};
use crate::error::Problems;
use crate::model::Traffic;
use crate::resolve::limits::{MOST_ROWS, check_starts};
use crate::units::SECOND;

/// A client of the Network Time Protocol: `from` sends a request to the server `to` at each poll, which answers at once.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    #[serde(flatten)]
    common: Common,
    #[serde(flatten)]
    server: Server,
    /// Time between two requests. An answer that comes after the next request counts as lost.
    #[serde(default = "poll")]
    poll: ProbeTimeout,
}

/// ntp.conf(5): the default of `minpoll` is 2^6 s.
fn poll() -> ProbeTimeout {
    ProbeTimeout::new(64 * SECOND)
}

/// A client that polls a time server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NtpTraffic {
    /// Time between two requests, and the longest wait for an answer: the client ignores one whose origin timestamp is not
    /// that of its last request (RFC 5905, section 8).
    pub poll_ns: u64,
}

impl NtpTraffic {
    /// UDP payload of a request and of its answer: the header without extensions (RFC 5905, section 7.3).
    pub const PAYLOAD_BYTES: u32 = 48;
}

impl Source for NtpTraffic {
    type Keys = Keys;

    const TRANSPORT: Option<Transport> = Some(Transport::Udp);

    fn common(keys: &Keys) -> &Common {
        &keys.common
    }

    fn port(keys: &Keys) -> Option<u16> {
        keys.server.port
    }

    fn resolve(keys: &Keys, _: &Entry<'_>, _: &mut Problems) -> Self {
        Self { poll_ns: keys.poll.get() }
    }

    fn check_limits(&self, traffic: &Traffic, problems: &mut Problems) {
        check_starts(traffic, "poll", self.poll_ns, MOST_ROWS, "requests", problems);
    }

    fn demand(&self, _: u64) -> Demand {
        Demand::Little
    }

    #[cfg(feature = "testing")]
    fn any(_: u64) -> Option<proptest::strategy::BoxedStrategy<Self>> {
        use proptest::prelude::*;

        use crate::units::MS;
        Some((1..=500_u64).prop_map(|poll_ms| Self { poll_ns: poll_ms * MS }).boxed())
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        vec![("poll", crate::testing::text::time(self.poll_ns))]
    }
}
