//! `ring = { size = "256p", bql = true }`: the transmit ring of a driver.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::quantity::{Packets, Quantity};

/// Size of a ring, up to the largest of any driver.
pub(crate) type RingSize = Quantity<Packets, 1, 65_536>;

/// The driver's transmit ring, between the queueing discipline and the wire. Without a ring, the wire takes packets from
/// the discipline one by one.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Ring {
    /// Its size, as `ethtool -G` sets it.
    #[schemars(example = &"256p")]
    pub(crate) size: RingSize,
    /// Whether byte queue limits (BQL) keep only as much in the ring as the wire needs to stay busy.
    pub(crate) bql: bool,
}
