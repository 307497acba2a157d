//! What a wire does besides sending frames at a rate.

use serde::{Deserialize, Serialize};

/// A higher rate until a bucket of tokens is empty (see [`TokenBucket`](crate::TokenBucket)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boost {
    /// Bits per second at which frames are sent: more than the port's rate, at which the bucket fills.
    pub rate_bps: u64,
    /// Size of the bucket, which is full at first.
    pub bytes: u64,
}
