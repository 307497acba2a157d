//! `game`: an online game, with small packets both ways at the rate of its ticks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shared::keys::{Common, DatagramSize, Server};
use super::{Demand, Entry, Source, Transport};
use crate::error::Problems;
use crate::file::Interval;
use crate::model::Traffic;
use crate::resolve::limits::{MOST_ROWS, check_starts};

/// An online game: at each tick the player `from` sends its commands to the server `to`, and the server sends an update of
/// the game.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    #[serde(flatten)]
    common: Common,
    #[serde(flatten)]
    server: Server,
    /// Time between two packets of each end.
    #[serde(default = "tick")]
    tick: Interval,
    /// UDP payload of the player's packets. The IP packet is 28 bytes longer.
    #[serde(default = "command")]
    command: DatagramSize,
    /// UDP payload of the server's packets.
    #[serde(default = "update")]
    update: DatagramSize,
    /// A tick is late if its packet arrives this much later than on an idle path, or never. Default: one tick.
    #[schemars(example = &"30ms")]
    late: Option<Interval>,
}

/// 64 ticks per second, as the servers of Counter-Strike 2 and of Counter-Strike: Global Offensive.
fn tick() -> Interval {
    Interval::new(15_625_000)
}

/// The mean payload that a server of Counter-Strike receives, rounded: Feng, Chang, Feng and Walpole, "Provisioning on-line
/// games", IMW 2002.
fn command() -> DatagramSize {
    DatagramSize::new(40)
}

/// About the mean payload that it sends to each player, 130 bytes (the same).
fn update() -> DatagramSize {
    DatagramSize::new(128)
}

/// A player and a server that send to each other at each tick.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GameTraffic {
    /// Time between two packets of each end.
    pub tick_ns: u64,
    /// UDP payload of the packets from `from`, the player; the IP packet is 28 bytes longer.
    pub command_bytes: u32,
    /// UDP payload of the packets from `to`, the server.
    pub update_bytes: u32,
    /// A tick is late if its packet arrives this much later than on an idle path.
    pub late_ns: u64,
}

impl GameTraffic {
    /// A packet that takes longer counts as lost. No game waits that long, and the records have to be closed.
    pub const TIMEOUT_NS: u64 = 60_000_000_000;
}

impl Source for GameTraffic {
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
        Self {
            tick_ns: keys.tick.get(),
            command_bytes: keys.command.get_u32(),
            update_bytes: keys.update.get_u32(),
            late_ns: keys.late.unwrap_or(keys.tick).get(),
        }
    }

    /// Each tick has two rows.
    fn check_limits(&self, traffic: &Traffic, problems: &mut Problems) {
        check_starts(traffic, "tick", self.tick_ns, MOST_ROWS / 2, "ticks", problems);
    }

    fn demand(&self, _: u64) -> Demand {
        Demand::Little
    }

    #[cfg(feature = "testing")]
    fn any(_: u64) -> Option<proptest::strategy::BoxedStrategy<Self>> {
        use proptest::prelude::*;

        use crate::units::MS;
        let any = (1..=200_u64, 16..=1472_u32, 16..=1472_u32, 1..=500_u64);
        let game = |(tick_ms, command_bytes, update_bytes, late_ms)| Self {
            tick_ns: tick_ms * MS,
            command_bytes,
            update_bytes,
            late_ns: late_ms * MS,
        };
        Some(any.prop_map(game).boxed())
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{size, time};
        vec![
            ("tick", time(self.tick_ns)),
            ("command", size(self.command_bytes)),
            ("update", size(self.update_bytes)),
            ("late", time(self.late_ns)),
        ]
    }
}
