//! `[[link]]`: a link between two nodes.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::overhead::Overhead;
use super::ring::Ring;
use super::varying::Varying;
use super::wire::Wire;
use super::{Moment, defaults};
use crate::link::{boost, stacked};
use crate::qdisc::{PacketLimit, Queue};
use crate::quantity::{Quantity, Rates, Times};
use crate::text::Name;
use crate::units::MINUTE;

/// Rate of a wire.
pub(crate) type Rate = Quantity<Rates, 1_000, 400_000_000_000>;
/// Propagation delay of a wire.
pub(crate) type Delay = Quantity<Times, 0, MINUTE>;

/// A link between two nodes. Each direction is a port of its own: queueing discipline, ring if it has one, then wire.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Link {
    /// Its name in key paths (`link.NAME.rate`).
    #[schemars(example = &"bottleneck")]
    pub(crate) name: Name,
    /// The two nodes. `forward` is the direction from the first to the second.
    #[schemars(example = json!(["r1", "h2"]))]
    pub(crate) ends: [Name; 2],
    /// Rate of the wire in each direction: constant, a schedule of `[time, rate]` steps that starts at 0s, or a table for a
    /// variable rate. Without a rate, packets pass at once and never queue. A change applies to the next packet sent.
    #[schemars(
        example = &"10mbit",
        example = json!([["0s", "100mbit"], ["10s", "10mbit"]]),
        example = json!({ "preset": "umts-down" })
    )]
    pub(crate) rate: Option<RateSetting>,
    /// A higher rate in each direction until a token bucket is empty. Default: none.
    #[schemars(example = json!({ "rate": "10mbit", "bytes": "500kb" }))]
    pub(crate) boost: Option<boost::Keys>,
    /// Propagation delay in each direction.
    #[serde(default = "defaults::delay")]
    #[schemars(example = &"5ms")]
    pub(crate) delay: Delay,
    /// Impairments in each direction, after the queue: loss, jitter and reordering. Default: none.
    #[schemars(example = json!({ "loss": 0.01, "jitter": "5ms" }))]
    pub(crate) wire: Option<Wire>,
    /// Overhead of the link layer, which determines the length of each IP packet on the wire and in the queue: bytes, a
    /// keyword of tc-cake(8), or a table. The default is Ethernet's header, as Linux' tc counts it.
    #[serde(default = "defaults::overhead")]
    #[schemars(example = &"38b", example = &"docsis", example = json!({ "bytes": 40, "atm": "atm" }))]
    pub(crate) overhead: Overhead,
    /// Transmit queue length of the device in each direction, in packets. It is the limit of disciplines that have none
    /// of their own: pfifo, bfifo (in full frames), pfifo_head_drop, each band of pfifo_fast, and the default inner
    /// disciplines of prio and htb. Default: 1000p, as in Linux.
    #[schemars(example = &"100p")]
    pub(crate) txqueuelen: Option<PacketLimit>,
    /// The queueing discipline of each direction. Default: pfifo with its default limit.
    #[schemars(example = json!({ "qdisc": "pfifo", "limit": "100p" }))]
    pub(crate) queue: Option<Queue>,
    /// The driver's transmit ring of each direction. Default: none.
    #[schemars(example = json!({ "size": "256p", "bql": true }))]
    pub(crate) ring: Option<Ring>,
    /// An interface stacked on that of each direction, such as a VLAN. Default: none.
    pub(crate) stacked: Option<stacked::Keys>,
    /// Settings that differ in the direction from the first of `ends` to the second.
    #[serde(default)]
    pub(crate) forward: PortSettings,
    /// Settings that differ in the direction from the second of `ends` to the first.
    #[serde(default)]
    pub(crate) reverse: PortSettings,
}

/// Settings of one direction of a link. Missing keys are as in the link.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct PortSettings {
    /// Rate of the wire.
    pub(crate) rate: Option<RateSetting>,
    /// A higher rate until a token bucket is empty.
    pub(crate) boost: Option<boost::Keys>,
    /// Propagation delay.
    pub(crate) delay: Option<Delay>,
    /// Impairments after the queue: loss, jitter and reordering.
    pub(crate) wire: Option<Wire>,
    /// Overhead of the link layer.
    pub(crate) overhead: Option<Overhead>,
    /// Transmit queue length of the device, for disciplines without a limit of their own.
    pub(crate) txqueuelen: Option<PacketLimit>,
    /// The queueing discipline.
    pub(crate) queue: Option<Queue>,
    /// The driver's transmit ring.
    pub(crate) ring: Option<Ring>,
    /// An interface stacked on this one, such as a VLAN.
    pub(crate) stacked: Option<stacked::Keys>,
}

/// A constant rate, steps of `[time, rate]`, or a variable rate.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum RateSetting {
    Constant(Rate),
    Schedule(#[schemars(length(min = 1))] Vec<(Moment, Rate)>),
    Varying(Box<Varying>),
}
