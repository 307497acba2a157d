//! `netalyzr`: Netalyzr's test of the path's buffers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shared::keys::{Common, DatagramSize, Server};
use super::{Demand, Entry, Source, Transport};
use crate::error::{Problem, Problems};
use crate::file::{Duration, Interval, Moment, Rate};
use crate::model::Traffic;
use crate::path::{join, of_traffic};
use crate::resolve::limits::MOST_ROWS;
use crate::units::{MS, SECOND, TIME};

/// Netalyzr's test of the path's buffers, over UDP: round trips without load, then a load from `to` to `from`, then one from
/// `from` to `to`. For each packet that returns, the client sends two more.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    #[serde(flatten)]
    common: Common,
    #[serde(flatten)]
    server: Server,
    /// Number of small packets that measure the round trip without load.
    #[serde(default = "probes")]
    #[schemars(range(min = 1, max = 10_000))]
    probes: u32,
    /// Time between two of these packets.
    #[serde(default = "interval")]
    interval: Interval,
    /// Length of the load in each direction. The second half is measured.
    #[serde(default = "load")]
    load: Duration,
    /// Time between the two loads, in which queues drain.
    #[serde(default = "pause")]
    pause: Moment,
    /// UDP payload of the large packets.
    #[serde(default = "size")]
    size: DatagramSize,
    /// The highest rate of large packets that the client can send or ask for, in bits of payload per second.
    #[serde(default = "rate")]
    rate: Rate,
}

/// Kreibich et al., "Netalyzr: illuminating the edge network", IMC 2010, section 3.3: "a 10 Hz train of 200 small UDP packets".
fn probes() -> u32 {
    200
}

/// The same: 10 Hz.
fn interval() -> Interval {
    Interval::new(100 * MS)
}

/// The same: "exponentially ramping up (over 10 seconds)".
fn load() -> Duration {
    Duration::new(10 * SECOND)
}

/// The same: "waiting 5 seconds for queues to drain".
fn pause() -> Moment {
    Moment::new(5 * SECOND)
}

/// The same: "1000-byte replies".
fn size() -> DatagramSize {
    DatagramSize::new(1000)
}

/// The same: most Java implementations throttle sending to 20 Mbit/s.
fn rate() -> Rate {
    Rate::new(20_000_000)
}

/// A test of the path's buffers as Netalyzr makes it: round trips without load, then a load in each direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NetalyzrTraffic {
    /// Number of small packets that measure the round trip without load.
    pub probes: u32,
    /// Time between two of these packets.
    pub interval_ns: u64,
    /// Length of the load in each direction. The second half is measured.
    pub load_ns: u64,
    /// Time between the two loads.
    pub pause_ns: u64,
    /// UDP payload of the large packets; the IP packet is 28 bytes longer.
    pub payload_bytes: u32,
    /// The highest rate of large packets, in bits of payload per second.
    pub rate_bps: u64,
}

impl NetalyzrTraffic {
    /// UDP payload of the small packets. Their size is not published; the client's messages have a time, a number and a
    /// size in digits.
    pub const SMALL_BYTES: u32 = 32;

    /// Time between two large packets at the highest rate.
    pub fn spacing_ns(&self) -> u64 {
        u64::from(self.payload_bytes) * 8 * 1_000_000_000 / self.rate_bps
    }

    /// Length of the whole test.
    pub fn lasts_ns(&self) -> u64 {
        u64::from(self.probes) * self.interval_ns + 2 * self.load_ns + self.pause_ns
    }
}

impl Source for NetalyzrTraffic {
    type Keys = Keys;

    const TRANSPORT: Option<Transport> = Some(Transport::Udp);
    const ON_LINUX: bool = false;

    fn common(keys: &Keys) -> &Common {
        &keys.common
    }

    fn port(keys: &Keys) -> Option<u16> {
        keys.server.port
    }

    /// A test that can be completed between the entry's start and stop.
    fn resolve(keys: &Keys, entry: &Entry<'_>, problems: &mut Problems) -> Self {
        let test = Self {
            probes: keys.probes,
            interval_ns: keys.interval.get(),
            load_ns: keys.load.get(),
            pause_ns: keys.pause.get(),
            payload_bytes: keys.size.get_u32(),
            rate_bps: keys.rate.get(),
        };
        let time_ns = entry.stop_ns.saturating_sub(keys.common.placement.start.get());
        if test.lasts_ns() > time_ns {
            let found = format!("a time of {} from start to stop", TIME.display(time_ns));
            let allowed = format!("at least {} (probes * interval + 2 * load + pause)", TIME.display(test.lasts_ns()));
            let hint = "make the experiment's duration longer";
            problems.add(|| Problem::new(join(entry.path, "stop"), found, allowed).hint(hint));
        }
        test
    }

    /// Each packet of a load may be dropped.
    fn check_limits(&self, traffic: &Traffic, problems: &mut Problems) {
        let bits = 2 * u128::from(self.rate_bps) * u128::from(self.load_ns) / 1_000_000_000;
        let packets = bits / (8 * u128::from(self.payload_bytes.max(1)));
        if packets > u128::from(MOST_ROWS) {
            let path = join(&of_traffic(traffic), "rate");
            let found = format!("a rate that makes {packets} packets");
            let problem = || Problem::new(path, found, format!("at most {MOST_ROWS}"));
            problems.add(|| problem().hint("send less or for a shorter time"));
        }
    }

    fn demand(&self, _: u64) -> Demand {
        let &Self { rate_bps, payload_bytes, load_ns, .. } = self;
        Demand::Datagrams { streams: 1, rate_bps, payload_bytes, lasts_ns: load_ns }
    }

    #[cfg(feature = "testing")]
    fn any(lasts_ns: u64) -> Option<proptest::strategy::BoxedStrategy<Self>> {
        use proptest::prelude::*;
        // The shortest time between two probes, and the shortest load.
        let [interval_ns, shortest_ns] = [MS / 10, MS];
        if lasts_ns < 2 * shortest_ns + interval_ns {
            return None;
        }
        let most_probes = ((lasts_ns - 2 * shortest_ns) / interval_ns).min(5);
        let any = (1..=most_probes, 16..=1472_u32, 1_000..=20_000_000_u64);
        let test = move |(probes, payload_bytes, rate_bps): (u64, u32, u64)| {
            let left_ns = lasts_ns - probes * interval_ns;
            let load_ns = (left_ns / 3).max(shortest_ns);
            let pause_ns = left_ns - 2 * load_ns;
            Self { probes: probes as u32, interval_ns, load_ns, pause_ns, payload_bytes, rate_bps }
        };
        Some(any.prop_map(test).boxed())
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{number, rate, size, time};
        vec![
            ("probes", number(self.probes)),
            ("interval", time(self.interval_ns)),
            ("load", time(self.load_ns)),
            ("pause", time(self.pause_ns)),
            ("size", size(self.payload_bytes)),
            ("rate", rate(self.rate_bps)),
        ]
    }
}
