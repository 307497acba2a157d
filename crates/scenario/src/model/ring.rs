//! A driver's transmit ring.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_default;

/// A driver's transmit ring. The queueing discipline has no control over the packets in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ring {
    /// Its size, as `ethtool -G` sets it.
    pub size_packets: u32,
    /// The byte queue limits that bound its contents, if the driver has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bql: Option<ByteLimits>,
    /// When the device reports packets as sent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub completion: Completion,
    /// How many packets it holds.
    #[serde(default, skip_serializing_if = "is_default")]
    pub accounting: Accounting,
}

impl Ring {
    /// The number of packets in the ring at which the driver stops the queue.
    pub fn room_packets(&self) -> u32 {
        match self.accounting {
            Accounting::Packets => self.size_packets,
            Accounting::Virtio => self.size_packets.saturating_sub(Accounting::VIRTIO_LEAST - 1),
        }
    }
}

/// Byte queue limits (Linux' `lib/dynamic_queue_limits.c`), as in `/sys/class/net/*/queues/tx-*/byte_queue_limits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ByteLimits {
    /// How long slack is observed before the limit shrinks (`hold_time`).
    pub hold_ns: u64,
    /// The smallest limit (`limit_min`).
    pub min_bytes: u64,
    /// The largest limit (`limit_max`).
    pub max_bytes: u64,
}

impl ByteLimits {
    /// The kernel's default limits.
    pub const DEFAULT: Self = Self { hold_ns: 1_000_000_000, min_bytes: 0, max_bytes: Self::LARGEST_BYTES };
    /// The largest limit that the kernel accepts (`DQL_MAX_LIMIT`).
    pub const LARGEST_BYTES: u64 = (u32::MAX / 2 - u32::MAX / 16) as u64;
}

/// When a device reports packets as sent, so that the driver frees their descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// When this many have been sent, or when it has nothing left to send.
    Packets(u32),
    /// This time, in nanoseconds, after the first of them has been sent.
    AfterNs(u64),
}

impl Default for Completion {
    /// Each packet at once.
    fn default() -> Self {
        Self::Packets(1)
    }
}

/// How a driver counts the descriptors of its ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Accounting {
    /// Each packet takes one descriptor, and the driver stops the queue when none is free.
    #[default]
    Packets,
    /// Each packet takes one descriptor, and the driver stops the queue when fewer are free than the 19 that a packet in
    /// fragments may take (Linux' `virtio_net`: `2 + MAX_SKB_FRAGS`).
    Virtio,
}

impl Accounting {
    /// The descriptors that must be free for `virtio_net` to accept a packet.
    pub const VIRTIO_LEAST: u32 = 19;
}
