//! `irtt`: round trips over UDP at an interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ping;
use super::shared::keys::{Common, DatagramSize, ProbeTimeout, Server};
use super::{Demand, Entry, Source, Transport};
use crate::error::Problems;
use crate::file::Interval;
use crate::model::Traffic;
use crate::resolve::limits::{MOST_ROWS, check_starts};
use crate::units::SECOND;

/// Latency probes over UDP at a fixed interval, as `irtt` sends them. `to` answers each at once with a datagram of the same
/// size.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    #[serde(flatten)]
    common: Common,
    #[serde(flatten)]
    server: Server,
    /// Time between two probes, as with `irtt client -i`.
    #[serde(default = "interval")]
    interval: Interval,
    /// UDP payload of a probe and of its answer, as with `irtt client -l`. The IP packet is 28 bytes longer.
    #[serde(default = "size")]
    size: DatagramSize,
    /// A probe that is not answered within this time counts as lost.
    #[serde(default = "ping::timeout")]
    timeout: ProbeTimeout,
}

/// irtt-client(1), `-i`.
fn interval() -> Interval {
    Interval::new(SECOND)
}

/// What `irtt client` sends if nothing makes it longer: 16 bytes of header, 12 of the server's counts and 32 of time stamps.
fn size() -> DatagramSize {
    DatagramSize::new(60)
}

/// Round trips over UDP: requests at a fixed interval, answered at once with as many bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IrttTraffic {
    /// Time between two requests.
    pub interval_ns: u64,
    /// UDP payload of a request and of its answer; the IP packet is 28 bytes longer.
    pub payload_bytes: u32,
    /// A request that is not answered within this time counts as lost.
    pub timeout_ns: u64,
}

impl IrttTraffic {
    /// Requests at this interval, otherwise with the defaults.
    pub(crate) fn every(interval_ns: u64) -> Self {
        Self { interval_ns, payload_bytes: size().get_u32(), timeout_ns: ping::timeout().get() }
    }
}

impl Source for IrttTraffic {
    type Keys = Keys;

    const TRANSPORT: Option<Transport> = Some(Transport::Udp);

    fn common(keys: &Keys) -> &Common {
        &keys.common
    }

    fn port(keys: &Keys) -> Option<u16> {
        keys.server.port
    }

    fn resolve(keys: &Keys, _: &Entry<'_>, _: &mut Problems) -> Self {
        Self { interval_ns: keys.interval.get(), payload_bytes: keys.size.get_u32(), timeout_ns: keys.timeout.get() }
    }

    fn check_limits(&self, traffic: &Traffic, problems: &mut Problems) {
        check_starts(traffic, "interval", self.interval_ns, MOST_ROWS, "probes", problems);
    }

    fn demand(&self, _: u64) -> Demand {
        Demand::Little
    }

    #[cfg(feature = "testing")]
    fn any(_: u64) -> Option<proptest::strategy::BoxedStrategy<Self>> {
        use proptest::prelude::*;

        use crate::units::MS;
        let any = (1..=500_u64, 16..=1472_u32, 10..=5000_u64);
        let irtt = |(interval_ms, payload_bytes, timeout_ms)| Self {
            interval_ns: interval_ms * MS,
            payload_bytes,
            timeout_ns: timeout_ms * MS,
        };
        Some(any.prop_map(irtt).boxed())
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{size, time};
        vec![
            ("interval", time(self.interval_ns)),
            ("size", size(self.payload_bytes)),
            ("timeout", time(self.timeout_ns)),
        ]
    }
}
