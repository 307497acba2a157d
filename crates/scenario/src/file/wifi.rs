//! `[[wifi]]`: links that share one radio channel.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::defaults;
use crate::qdisc::Queue;
use crate::quantity::{Packets, Quantity, Sizes, Times};
use crate::text::Name;
use crate::units::{MS, US};

/// Packets that a driver holds for all stations together.
pub(crate) type FifoSize = Quantity<Packets, 1, 65_536>;
/// Frames of an aggregate. A block acknowledgement covers 64 (IEEE 802.11-2016, 9.3.1.9).
pub(crate) type AggregateFrames = Quantity<Packets, 1, 64>;
/// Bytes of an aggregate, up to the largest of 802.11n.
pub(crate) type AggregateBytes = Quantity<Sizes, 1, 65_535>;
/// Air time of an aggregate, up to the longest frame of 802.11n (5.484 ms).
pub(crate) type AggregateTime = Quantity<Times, { 100 * US }, { 5_484 * US }>;
/// Number of retries of a frame.
pub(crate) type Retries = u32;

/// A Wi-Fi network: an access point and its stations, which take turns on one channel. A link's `rate` is its PHY rate.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Wifi {
    /// Its name in key paths (`wifi.NAME.queueing`).
    #[schemars(example = &"wlan")]
    pub(crate) name: Name,
    /// The access point: a node at one end of each of its links.
    #[schemars(example = &"ap")]
    pub(crate) access_point: Name,
    /// The links between the access point and its stations.
    #[schemars(length(min = 1), example = json!(["fast1", "fast2", "slow"]))]
    pub(crate) links: Vec<Name>,
    /// Where packets queue for the channel. Default: as in mac80211 since Linux 4.11, with airtime fairness.
    #[schemars(example = json!({ "kind": "fifo", "size": "256p" }))]
    pub(crate) queueing: Option<Queueing>,
    /// Limits of an aggregate.
    #[serde(default)]
    pub(crate) aggregate: Aggregate,
    /// The probability that a frame is lost on the air, by link, in both directions. Default: none is.
    #[serde(default)]
    #[schemars(extend("additionalProperties" = { "type": "number", "exclusiveMinimum": 0, "maximum": 0.95 }))]
    #[schemars(example = json!({ "slow": 0.1 }))]
    pub(crate) errors: IndexMap<String, f64>,
    /// Number of retries before a frame is dropped. Default: as ath9k.
    #[serde(default = "defaults::wifi_retries")]
    #[schemars(range(min = 0, max = 100))]
    pub(crate) retries: Retries,
}

/// Where packets queue for the channel, in the access point and in the stations.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Queueing {
    /// A driver before Linux 4.10: below the queueing discipline, it has one buffer for the packets of all stations.
    Fifo(Box<FifoKeys>),
    /// Linux since 4.10: queues for each station in mac80211, from which the driver takes an aggregate at a time.
    Mac80211(Mac80211Keys),
}

/// A queueing discipline above a driver's buffer.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct FifoKeys {
    /// Packets that the driver holds at most, for all stations together.
    #[serde(default = "defaults::wifi_fifo")]
    pub(crate) size: FifoSize,
    /// The queueing discipline of the access point's interface, for all stations together. Default: pfifo with its
    /// default limit.
    #[schemars(example = json!({ "qdisc": "fq_codel" }))]
    pub(crate) queue: Option<Box<Queue>>,
}

/// Queues for each station.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Mac80211Keys {
    /// Whether the access point gives its stations equal shares of the air time. If not, they are served round-robin.
    #[serde(default = "defaults::airtime_fairness")]
    pub(crate) airtime_fairness: bool,
}

/// Limits of an aggregate (A-MPDU). At rates that 802.11n does not have, below 6.5 Mbit/s, frames are sent singly.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Aggregate {
    /// Frames.
    pub(crate) frames: AggregateFrames,
    /// Bytes, with the headers of each frame.
    pub(crate) bytes: AggregateBytes,
    /// Time on the air, without the preamble.
    pub(crate) time: AggregateTime,
}

impl Default for Aggregate {
    /// A block acknowledgement's window, the largest A-MPDU of 802.11n, and the 4 ms of ath9k.
    fn default() -> Self {
        Self { frames: AggregateFrames::new(64), bytes: AggregateBytes::new(65_535), time: AggregateTime::new(4 * MS) }
    }
}
