//! `boost = { rate = "10mbit", bytes = "500kb" }`: a higher rate until a token bucket is empty.

use schemars::JsonSchema;
use serde::Deserialize;

use super::link::Rate;
use crate::quantity::{Quantity, Sizes};
use crate::sizes::FRAME_BYTES;
use crate::units::GB;

/// Size of a bucket: a full frame at least, and what Linux' TBF can hold at most.
pub(crate) type BoostBytes = Quantity<Sizes, { FRAME_BYTES as u64 }, { GB }>;

/// A higher rate for as long as a token bucket is not empty (the "PowerBoost" of cable modems; DOCSIS' maximum traffic
/// burst). The bucket is full at first, and fills at the link's `rate`; each frame that is sent takes its bytes. Frames are
/// sent at the boost's rate; one that finds the bucket in debt waits until the debt is paid.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Boost {
    /// Rate at which frames are sent. It must be above the link's rate.
    #[schemars(example = &"10mbit")]
    pub(crate) rate: Rate,
    /// Size of the bucket.
    #[schemars(example = &"500kb")]
    pub(crate) bytes: BoostBytes,
}
