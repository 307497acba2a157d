//! `tcp`: data over TCP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shared::keys::{self, Common, Server, TransferSize};
use super::shared::{on_off, sending};
use super::{Demand, Entry, OnOff, Sending, Source, Transport};
use crate::congestion::Congestion;
use crate::error::{Problem, Problems};
use crate::file::{Moment, Rate};
use crate::model::{Traffic, is_default};
use crate::path::{join, of_traffic};
use crate::resolve::limits::MOST_CONNECTIONS;
use crate::units::TIME;

/// Data over TCP: as much as fits, files of a given size, or what an application writes at given times or at a given rate.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    #[serde(flatten)]
    common: Common,
    #[serde(flatten)]
    server: Server,
    /// Number of simultaneous connections. 0 disables the traffic, which is useful in a sweep.
    #[serde(default = "keys::flows")]
    #[schemars(range(min = 0, max = 10_000))]
    flows: u32,
    /// Time between the starts of successive flows.
    #[serde(default = "stagger")]
    stagger: Moment,
    /// Payload that each connection sends before it closes. Default: unlimited.
    #[schemars(example = &"32mb")]
    bytes: Option<TransferSize>,
    /// How many times each flow sends `bytes`, one transfer after the other, each over a new connection.
    #[serde(default = "transfers")]
    #[schemars(range(min = 1, max = 1_000_000))]
    transfers: u32,
    /// Rate at which the application writes payload. Default: as fast as the connection accepts it.
    #[schemars(example = &"5mbit")]
    rate: Option<Rate>,
    #[serde(flatten)]
    on_off: on_off::Keys,
    /// Congestion control of the sender. Default: that of the host `from`.
    congestion: Option<Congestion>,
    #[serde(flatten)]
    sending: sending::Keys,
}

fn stagger() -> Moment {
    Moment::new(0)
}

fn transfers() -> u32 {
    1
}

/// TCP connections that send data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TcpTraffic {
    /// Number of concurrent connections; may be 0.
    pub flows: u32,
    /// How much later each of them begins than the one before it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stagger_ns: u64,
    /// Payload that each connection sends before it closes; `None`: as much as fits until `stop`.
    pub bytes: Option<u64>,
    /// Transfers of `bytes` that each flow makes one after the other, each over a connection of its own.
    #[serde(default = "transfers", skip_serializing_if = "is_one")]
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

fn is_one(count: &u32) -> bool {
    *count == 1
}

impl Source for TcpTraffic {
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
        check_stagger(keys, entry, problems);
        if keys.transfers > 1 && keys.bytes.is_none() {
            let found = format!("{} without bytes", keys.transfers);
            problems.add(|| {
                let allowed = "1, or set bytes as well: the size of a transfer";
                Problem::new(join(entry.path, "transfers"), found, allowed)
            });
        }
        let congestion = keys.congestion.unwrap_or(entry.hosts[0].congestion);
        Self {
            flows: keys.flows,
            stagger_ns: keys.stagger.get(),
            bytes: keys.bytes.map(|bytes| bytes.get()),
            transfers: keys.transfers,
            rate_bps: keys.rate.map(|rate| rate.get()),
            on_off: on_off(keys, entry.path, problems),
            sending: Sending::resolve(congestion, &keys.sending, entry.path, problems),
        }
    }

    fn check_limits(&self, traffic: &Traffic, problems: &mut Problems) {
        let transfers = u64::from(self.flows) * u64::from(self.transfers);
        if self.transfers > 1 && transfers > MOST_CONNECTIONS {
            let path = join(&of_traffic(traffic), "transfers");
            let found = format!("{} for each of {} flows", self.transfers, self.flows);
            problems.add(|| Problem::new(path, found, format!("at most {MOST_CONNECTIONS} in all")));
        }
    }

    fn flows(&self) -> Option<u32> {
        Some(self.flows)
    }

    fn sending(&self) -> Option<Sending> {
        Some(self.sending)
    }

    fn demand(&self, _: u64) -> Demand {
        let flows = u64::from(self.flows);
        Demand::Connections {
            // The last connection of a flow is still closing when the next begins.
            at_a_time: flows * u64::from(self.transfers.min(2)),
            senders: flows,
            begun: flows * u64::from(self.transfers),
            window_packets: self.sending.window_packets,
            bytes: self.bytes,
        }
    }

    /// A flow that makes several transfers has one account for all of them.
    fn connections_are_flows(&self) -> bool {
        self.transfers == 1
    }

    #[cfg(feature = "testing")]
    const WEIGHT: u32 = 3;

    #[cfg(feature = "testing")]
    fn any(lasts_ns: u64) -> Option<proptest::strategy::BoxedStrategy<Self>> {
        use proptest::prelude::*;

        use crate::units::MS;
        let files = (1..=200_000_u64, 1..=5_u32).prop_map(|(bytes, transfers)| (Some(bytes), transfers, None));
        let endless = prop::option::of(OnOff::any()).prop_map(|on_off| (None, 1, on_off));
        let rate_bps = prop::option::of(10_000..=20_000_000_u64);
        let any = (0..=5_u32, 0..=lasts_ns / MS / 5, prop_oneof![files, endless], rate_bps, Sending::any()).prop_map(
            |(flows, stagger_ms, (bytes, transfers, on_off), rate_bps, sending)| Self {
                flows,
                stagger_ns: stagger_ms * MS,
                bytes,
                transfers,
                rate_bps,
                on_off,
                sending,
            },
        );
        Some(any.boxed())
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{number, rate, size, time};
        let mut keys = vec![
            ("flows", number(self.flows)),
            ("stagger", time(self.stagger_ns)),
            ("transfers", number(self.transfers)),
        ];
        keys.extend(self.bytes.map(|bytes| ("bytes", size(bytes))));
        keys.extend(self.rate_bps.map(|rate_bps| ("rate", rate(rate_bps))));
        keys.extend(self.on_off.into_iter().flat_map(OnOff::written));
        keys.extend(self.sending.written());
        keys
    }
}

/// The last flow too must begin before the traffic stops.
fn check_stagger(keys: &Keys, entry: &Entry<'_>, problems: &mut Problems) {
    let later = u64::from(keys.flows.saturating_sub(1));
    let room_ns = entry.stop_ns.saturating_sub(keys.common.placement.start.get());
    if later.saturating_mul(keys.stagger.get()) < room_ns.max(1) {
        return;
    }
    let most_ns = (room_ns - 1) / later;
    let found = format!("{} with flows = {}", keys.stagger, keys.flows);
    let stop = TIME.display(entry.stop_ns);
    let allowed = format!("at most {}, for the last to begin before stop = {stop}", TIME.display(most_ns));
    problems.add(|| Problem::new(join(entry.path, "stagger"), found, allowed));
}

/// On and off times. Traffic that has them ends only when it stops, so it cannot have `bytes`.
fn on_off(keys: &Keys, path: &str, problems: &mut Problems) -> Option<OnOff> {
    let on_off = OnOff::resolve(&keys.on_off, path, problems);
    if let (Some(bytes), Some(_)) = (keys.bytes, on_off) {
        let found = format!("{bytes} with on and off");
        let allowed = "no such key (an on/off source ends only at stop)";
        problems.add(|| Problem::new(join(path, "bytes"), found, allowed));
    }
    on_off
}
