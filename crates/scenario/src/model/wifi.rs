//! Wi-Fi: links that share one radio channel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LinkIndex, NodeIndex};

/// An access point and its stations, which take turns on one channel. The rates of the links' ports are PHY rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wifi {
    /// Its name in the file.
    pub name: String,
    /// Index of the access point, at one end of the link of each station.
    pub access_point: NodeIndex,
    /// The stations, at least one.
    pub stations: Vec<Station>,
    /// Where packets queue for the channel.
    pub queueing: WifiQueueing,
    /// Limits of an aggregate (A-MPDU).
    pub aggregate: Aggregate,
    /// Number of retries before a frame is dropped.
    pub retries: u32,
}

/// A station of a Wi-Fi network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Station {
    /// Index of its link to the access point.
    pub link: LinkIndex,
    /// The probability that a frame is lost on the air, in both directions.
    pub error_rate: f64,
}

/// Where packets queue for the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum WifiQueueing {
    /// In one queueing discipline for each interface, and in the driver below it. The access point's ports have the
    /// same one; its samples are those of the port to the first station.
    Fifo {
        /// Packets that a driver holds at most, for all stations together.
        size_packets: u32,
    },
    /// In queues for each station: the disciplines of the ports. The driver takes an aggregate at a time.
    Mac80211 {
        /// Whether the access point gives its stations equal shares of the air time.
        airtime_fairness: bool,
    },
}

/// Limits of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Aggregate {
    /// Frames.
    pub frames: u32,
    /// Bytes, with the headers of each frame.
    pub bytes: u32,
    /// Time on the air, without the preamble.
    pub time_ns: u64,
}
