//! `boost = { rate = "10mbit", bytes = "500kb" }`: a higher rate until a token bucket is empty.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Problem, Problems};
use crate::file::Rate;
use crate::path::join;
use crate::quantity::{Quantity, Sizes};
use crate::sizes::FRAME_BYTES;
use crate::units::{GB, RATE};

/// Size of a bucket: a full frame at least, and what Linux' TBF can hold at most.
type BoostBytes = Quantity<Sizes, { FRAME_BYTES as u64 }, { GB }>;

/// A higher rate for as long as a token bucket is not empty (the "PowerBoost" of cable modems; DOCSIS' maximum traffic
/// burst). The bucket is full at first, and fills at the link's `rate`; each frame that is sent takes its bytes. Frames are
/// sent at the boost's rate; one that finds the bucket in debt waits until the debt is paid.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Boost")]
pub(crate) struct Keys {
    /// Rate at which frames are sent. It must be above the link's rate.
    #[schemars(example = &"10mbit")]
    rate: Rate,
    /// Size of the bucket.
    #[schemars(example = &"500kb")]
    bytes: BoostBytes,
}

/// A higher rate until a bucket of tokens is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Boost {
    /// Bits per second at which frames are sent: more than the port's rate, at which the bucket fills.
    pub rate_bps: u64,
    /// Size of the bucket, which is full at first.
    pub bytes: u64,
}

/// A boost, and the rate that fills its bucket.
pub(crate) fn resolve(
    keys: &Keys,
    rate_bps: u64,
    is_constant: bool,
    path: &str,
    problems: &mut Problems,
) -> Option<Boost> {
    if !is_constant {
        let problem =
            Problem::new(path, "a boost on a link whose rate changes", "a boost on a link with a constant rate");
        problems.add(|| problem);
        return None;
    }
    if keys.rate.get() <= rate_bps {
        let allowed = format!("more than rate = {}", RATE.display(rate_bps));
        problems.add(|| Problem::new(join(path, "rate"), keys.rate.to_string(), allowed));
        return None;
    }
    Some(Boost { rate_bps: keys.rate.get(), bytes: keys.bytes.get() })
}
