//! `queue = { qdisc = "...", ... }`: a queueing discipline and its parameters, named as tc names them.

use schemars::JsonSchema;
use serde::Deserialize;

use super::defaults;
use super::link::Rate;
use crate::quantity::{Packets, Quantity, Sizes, Times};
use crate::units::{GB, KB, MINUTE, US};

/// Limit of a queue in packets.
pub(crate) type PacketLimit = Quantity<Packets, 1, 10_000_000>;
/// Limit or threshold of a queue in bytes.
pub(crate) type ByteLimit = Quantity<Sizes, 1, { 10 * GB }>;
/// Size of a packet.
pub(crate) type PacketSize = Quantity<Sizes, 1, { 64 * KB - 1 }>;
/// A time of CoDel's.
pub(crate) type CodelTime = Quantity<Times, US, MINUTE>;
/// In (0, 1].
pub(crate) type Probability = f64;

/// A queueing discipline.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "qdisc", rename_all = "lowercase")]
pub(crate) enum Queue {
    Pfifo(PfifoQueue),
    Bfifo(BfifoQueue),
    Red(RedQueue),
    Codel(CodelQueue),
}

/// First in, first out, bounded in packets: tail drop.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct PfifoQueue {
    /// A packet that finds this many waiting is dropped.
    #[serde(default = "defaults::pfifo_limit")]
    pub(crate) limit: PacketLimit,
}

impl Default for PfifoQueue {
    fn default() -> Self {
        Self { limit: defaults::pfifo_limit() }
    }
}

/// First in, first out, bounded in bytes: tail drop.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct BfifoQueue {
    /// A packet that would bring the queue above this is dropped.
    #[schemars(example = &"150kb")]
    pub(crate) limit: ByteLimit,
}

/// Random early detection, as Linux' sch_red; what is left out is derived as tc-red(8) does.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct RedQueue {
    /// Hard limit of the queue.
    #[schemars(example = 1_000_000)]
    pub(crate) limit: ByteLimit,
    /// Average queue at which dropping starts. Default: a third of max.
    pub(crate) min: Option<ByteLimit>,
    /// Average queue at which the probability reaches its highest value; above it every packet is dropped. Default: three
    /// times min, or a quarter of limit if min isn't given either.
    pub(crate) max: Option<ByteLimit>,
    /// Size of an average packet; with min and burst it sets how slowly the average follows the queue.
    #[schemars(example = 1000)]
    pub(crate) avpkt: PacketSize,
    /// Packets of burst that pass unharmed. Default: (2 min + max) / (3 avpkt).
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) burst: Option<u32>,
    /// Highest probability of an early drop.
    #[serde(default = "defaults::red_probability")]
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    pub(crate) probability: Probability,
    /// Rate by which the average ages while the queue is empty. As in tc it is not the link's rate unless you say so.
    #[serde(default = "defaults::red_bandwidth")]
    pub(crate) bandwidth: Rate,
    /// Mark packets of ECN-capable flows instead of dropping them early.
    #[serde(default)]
    pub(crate) ecn: bool,
}

/// Controlled delay (RFC 8289), as Linux' sch_codel.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct CodelQueue {
    /// Hard limit of the queue.
    #[serde(default = "defaults::codel_limit")]
    pub(crate) limit: PacketLimit,
    /// Standing delay that is acceptable.
    #[serde(default = "defaults::codel_target")]
    pub(crate) target: CodelTime,
    /// How long the delay must stay above target before the first drop.
    #[serde(default = "defaults::codel_interval")]
    pub(crate) interval: CodelTime,
    /// Mark packets of ECN-capable flows instead of dropping them.
    #[serde(default)]
    pub(crate) ecn: bool,
    /// Mark every packet of ECN-capable flows that was delayed for longer than this. Default: never.
    pub(crate) ce_threshold: Option<CodelTime>,
}
