//! `ring = { size = "256p", bql = true }`: the transmit ring of a driver.

use schemars::JsonSchema;
use serde::Deserialize;

use super::defaults;
use crate::model::{self, Accounting};
use crate::quantity::{Packets, Quantity, Sizes, Times};
use crate::units::{MINUTE, SECOND};

/// Size of a ring, up to the largest of any driver.
pub(crate) type RingSize = Quantity<Packets, 1, 65_536>;
/// How long byte queue limits observe slack.
pub(super) type HoldTime = Quantity<Times, 0, MINUTE>;
/// A limit of the bytes in a ring.
pub(super) type RingBytes = Quantity<Sizes, 0, { model::ByteLimits::LARGEST_BYTES }>;

/// The driver's transmit ring, between the queueing discipline and the wire. Without a ring, the wire takes packets from
/// the discipline one by one.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Ring {
    /// Its size, as `ethtool -G` sets it.
    #[schemars(example = &"256p")]
    pub(crate) size: RingSize,
    /// Whether byte queue limits (BQL) keep only as much in the ring as the wire needs to stay busy. A table sets their
    /// parameters.
    #[schemars(example = &true)]
    pub(crate) bql: Bql,
    /// When the device reports completions, which free descriptors of the ring: after a number of packets (or when it
    /// has nothing left to send), or a time after the first of them was sent (interrupt moderation). Default: after
    /// each packet.
    #[schemars(example = &"8p", example = &"100us")]
    pub(crate) completion: Option<Completion>,
    /// How the driver counts the descriptors of its ring.
    #[serde(default)]
    pub(crate) accounting: Accounting,
}

/// A number of packets, or a time.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Completion {
    Packets(RingSize),
    After(Quantity<Times, 1, SECOND>),
}

/// Byte queue limits with the kernel's parameters or with others, or none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Bql {
    Switch(bool),
    Set(ByteLimits),
}

/// Byte queue limits with other parameters than the kernel's, as in `/sys/class/net/DEVICE/queues/tx-0/byte_queue_limits`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct ByteLimits {
    /// How long the limit is larger than necessary before it shrinks (`hold_time`).
    #[serde(default = "defaults::hold_time")]
    pub(crate) hold_time: HoldTime,
    /// The smallest limit (`limit_min`).
    #[serde(default = "defaults::limit_min")]
    pub(crate) min: RingBytes,
    /// The largest limit (`limit_max`). Default: the largest that the kernel accepts.
    pub(crate) max: Option<RingBytes>,
}
