//! `ping`: ICMP echo at an interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shared::keys::{Common, ProbeTimeout};
use super::{Demand, Entry, Source, Transport};
use crate::error::{Problem, Problems};
use crate::file::Interval;
use crate::model::{Traffic, is_default};
use crate::path::join;
use crate::quantity::{Quantity, Sizes};
use crate::resolve::limits::{MOST_ROWS, check_starts};
use crate::units::{MS, SECOND};

/// ICMP payload; with headers it must fit an Ethernet packet of 1500 bytes, as nothing is fragmented.
type Payload = Quantity<Sizes, 0, 1472>;

/// Latency probes (ICMP echo), sent at an interval whether or not earlier ones were answered.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    #[serde(flatten)]
    common: Common,
    /// Time between two probes.
    #[serde(default = "interval")]
    interval: Interval,
    /// Payload, as with `ping -s`. The IP packet is 28 bytes longer.
    #[serde(default = "size")]
    size: Payload,
    /// A probe that is not answered within this time counts as lost, as with `ping -W`.
    #[serde(default = "timeout")]
    timeout: ProbeTimeout,
    /// When probes are sent. `exact`: at every multiple of the interval. `iputils`: as `ping -i` of iputils sends them; the
    /// interval must then be whole milliseconds, and comes out up to 4 % longer.
    #[serde(default)]
    timing: PingTiming,
}

fn interval() -> Interval {
    Interval::new(100 * MS)
}

/// ping(8), `-s`.
fn size() -> Payload {
    Payload::new(56)
}

/// Longer than any delay that an experiment is expected to cause, so that a late answer does not count as lost.
pub(super) fn timeout() -> ProbeTimeout {
    ProbeTimeout::new(60 * SECOND)
}

/// When a prober sends its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PingTiming {
    /// At each multiple of the interval.
    #[default]
    Exact,
    /// As `ping -i` of iputils, whose waits end late: it sends fewer requests than the interval implies, and each
    /// answer that arrives during a wait reduces the difference.
    Iputils,
}

/// ICMP echo requests at an interval, whether or not earlier ones were answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PingTraffic {
    /// Time between two requests.
    pub interval_ns: u64,
    /// ICMP payload (`ping -s`); the IP packet is 28 bytes longer.
    pub payload_bytes: u32,
    /// A request that is not answered within this time counts as lost (`ping -W`).
    pub timeout_ns: u64,
    /// When requests are sent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub timing: PingTiming,
}

impl PingTraffic {
    /// Requests at this interval, otherwise with the defaults.
    pub(crate) fn every(interval_ns: u64) -> Self {
        let (payload_bytes, timeout_ns) = (size().get_u32(), timeout().get());
        Self { interval_ns, payload_bytes, timeout_ns, timing: PingTiming::Exact }
    }
}

impl Source for PingTraffic {
    type Keys = Keys;

    const TRANSPORT: Option<Transport> = None;

    fn common(keys: &Keys) -> &Common {
        &keys.common
    }

    fn port(_: &Keys) -> Option<u16> {
        None
    }

    fn resolve(keys: &Keys, entry: &Entry<'_>, problems: &mut Problems) -> Self {
        if keys.timing == PingTiming::Iputils && !keys.interval.get().is_multiple_of(MS) {
            let allowed = "whole milliseconds, in which iputils counts (timing = \"iputils\")";
            problems.add(|| Problem::new(join(entry.path, "interval"), keys.interval.to_string(), allowed));
        }
        Self {
            interval_ns: keys.interval.get(),
            payload_bytes: keys.size.get_u32(),
            timeout_ns: keys.timeout.get(),
            timing: keys.timing,
        }
    }

    fn check_limits(&self, traffic: &Traffic, problems: &mut Problems) {
        check_starts(traffic, "interval", self.interval_ns, MOST_ROWS, "probes", problems);
    }

    fn demand(&self, _: u64) -> Demand {
        Demand::Little
    }

    #[cfg(feature = "testing")]
    const WEIGHT: u32 = 2;

    #[cfg(feature = "testing")]
    fn any(_: u64) -> Option<proptest::strategy::BoxedStrategy<Self>> {
        use proptest::prelude::*;
        let timing = prop::sample::select(vec![PingTiming::Exact, PingTiming::Iputils]);
        let any = (1..=500_u64, 0..=1472_u32, 10..=5000_u64, timing);
        let ping = |(interval_ms, payload_bytes, timeout_ms, timing)| Self {
            interval_ns: interval_ms * MS,
            payload_bytes,
            timeout_ns: timeout_ms * MS,
            timing,
        };
        Some(any.prop_map(ping).boxed())
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{size, time};
        let timing = match self.timing {
            PingTiming::Exact => "exact",
            PingTiming::Iputils => "iputils",
        };
        vec![
            ("interval", time(self.interval_ns)),
            ("size", size(self.payload_bytes)),
            ("timeout", time(self.timeout_ns)),
            ("timing", timing.into()),
        ]
    }
}
