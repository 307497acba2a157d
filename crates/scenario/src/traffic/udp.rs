//! `udp`: datagrams at a given rate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shared::keys::{self, Common, DatagramSize, Server};
use super::shared::on_off;
use super::{Demand, Entry, OnOff, Pattern, Source, Transport};
use crate::departures::{Departures, SECOND_NS};
use crate::error::{Problem, Problems};
use crate::file::Rate;
use crate::model::Traffic;
use crate::path::{join, of_traffic};
use crate::resolve::limits::MOST_ROWS;

/// Datagrams at a given rate, regardless of losses, as `iperf3 -u` sends them. A rate above that of the path is a flood.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    #[serde(flatten)]
    common: Common,
    #[serde(flatten)]
    server: Server,
    /// Rate of UDP payload that each flow sends while it is on, as with `iperf3 -b`.
    #[schemars(example = &"2mbit")]
    rate: Rate,
    /// UDP payload of a datagram, as with `iperf3 -l`. The IP packet is 28 bytes longer.
    #[serde(default = "size")]
    size: DatagramSize,
    /// Number of flows, each with this rate.
    #[serde(default = "keys::flows")]
    #[schemars(range(min = 0, max = 10_000))]
    flows: u32,
    /// Whether the datagrams follow one another at equal intervals, or as a Poisson process.
    #[serde(default)]
    pattern: Pattern,
    #[serde(flatten)]
    on_off: on_off::Keys,
}

/// What `iperf3 -u` uses on a path for packets of 1500 bytes: the segment size of its TCP connection.
fn size() -> DatagramSize {
    DatagramSize::new(1448)
}

/// Flows that send at their rate whether or not the datagrams arrive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UdpTraffic {
    /// Number of flows.
    pub flows: u32,
    /// Bits of payload a second that each flow sends while it is on; on average with the pattern `poisson`.
    pub rate_bps: u64,
    /// UDP payload of a datagram; the IP packet is 28 bytes longer.
    pub payload_bytes: u32,
    /// How the datagrams follow one another.
    pub pattern: Pattern,
    /// When each flow is on and off; `None`: always on.
    pub on_off: Option<OnOff>,
}

impl UdpTraffic {
    /// The range of random offsets between flows that start together. Without an offset, their datagrams would always
    /// leave together.
    pub fn phase_ns(&self) -> u64 {
        let distance_ns = self.bits_ns() / u128::from(self.rate_bps.max(1));
        self.pattern.phase_ns(u64::try_from(distance_ns).unwrap_or(u64::MAX))
    }

    /// The departures of one flow that begins at `start_ns`. Nothing departs at or after `stop_ns`.
    pub fn departures(&self, start_ns: u64, stop_ns: u64) -> Departures {
        Departures::new((self.bits_ns(), self.rate_bps.into()), self.pattern, start_ns, stop_ns)
            .with_periods(self.on_off)
    }

    /// The bits of a datagram, multiplied by the nanoseconds in a second.
    fn bits_ns(&self) -> u128 {
        u128::from(self.payload_bytes) * 8 * SECOND_NS
    }
}

impl Source for UdpTraffic {
    type Keys = Keys;

    const TRANSPORT: Option<Transport> = Some(Transport::Udp);
    const CARRIES: bool = true;

    fn common(keys: &Keys) -> &Common {
        &keys.common
    }

    fn port(keys: &Keys) -> Option<u16> {
        keys.server.port
    }

    fn resolve(keys: &Keys, entry: &Entry<'_>, problems: &mut Problems) -> Self {
        Self {
            flows: keys.flows,
            rate_bps: keys.rate.get(),
            payload_bytes: keys.size.get_u32(),
            pattern: keys.pattern,
            on_off: OnOff::resolve(&keys.on_off, entry.path, problems),
        }
    }

    /// Each datagram of a flood may be dropped, and each drop has a row.
    fn check_limits(&self, traffic: &Traffic, problems: &mut Problems) {
        let bits = u128::from(self.rate_bps) * u128::from(traffic.stop_ns - traffic.start_ns) / SECOND_NS;
        let whole = bits * u128::from(self.flows) / (8 * u128::from(self.payload_bytes));
        let datagrams = self.on_off.map_or(whole, |OnOff { on_ns, off_ns, .. }| {
            whole * u128::from(on_ns) / (u128::from(on_ns) + u128::from(off_ns))
        });
        if datagrams > u128::from(MOST_ROWS) {
            let path = join(&of_traffic(traffic), "rate");
            let found = format!("a rate that makes {datagrams} datagrams");
            let problem = || Problem::new(path, found, format!("at most {MOST_ROWS}"));
            problems.add(|| problem().hint("send less or for a shorter time"));
        }
    }

    fn flows(&self) -> Option<u32> {
        Some(self.flows)
    }

    fn demand(&self, lasts_ns: u64) -> Demand {
        let streams = u64::from(self.flows);
        let rate_bps = streams.saturating_mul(self.rate_bps);
        Demand::Datagrams { streams, rate_bps, payload_bytes: self.payload_bytes, lasts_ns }
    }

    #[cfg(feature = "testing")]
    const WEIGHT: u32 = 2;

    #[cfg(feature = "testing")]
    fn any(_: u64) -> Option<proptest::strategy::BoxedStrategy<Self>> {
        use proptest::prelude::*;
        let flows = (0..=4_u32, 1_000..=20_000_000_u64, 16..=1472_u32);
        let any = (flows, Pattern::any(), prop::option::of(OnOff::any())).prop_map(
            |((flows, rate_bps, payload_bytes), pattern, on_off)| {
                // Tiny datagrams at a high rate take long to simulate and show nothing.
                let rate_bps = rate_bps.min(u64::from(payload_bytes) * 100_000);
                Self { flows, rate_bps, payload_bytes, pattern, on_off }
            },
        );
        Some(any.boxed())
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{number, rate, size};
        let mut keys = vec![
            ("rate", rate(self.rate_bps)),
            ("size", size(self.payload_bytes)),
            ("flows", number(self.flows)),
            ("pattern", self.pattern.written()),
        ];
        keys.extend(self.on_off.into_iter().flat_map(OnOff::written));
        keys
    }
}
