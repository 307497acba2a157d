//! The impairments of a wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::qdisc::{Distribution, Loss, Netem, NetemRate, Reorder};

/// The impairments of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Faults {
    /// How packets are lost.
    pub loss: Option<Loss>,
    /// How far the propagation delay varies.
    pub jitter_ns: u64,
    /// Correlation of a delay with the previous one.
    pub correlation: f64,
    /// The distribution of delays.
    pub distribution: Distribution,
    /// No packet overtakes another.
    pub keep_order: bool,
    /// Which packets are not delayed.
    pub reorder: Option<Reorder>,
}

impl Faults {
    /// Packets that a wire may hold: enough for a second of 10 Gbit/s, so that it never becomes a queue that drops.
    pub const LIMIT_PACKETS: u32 = 1_000_000;
    /// A rate for netem that makes it keep packets in order, and at which the transmission of a packet takes less than
    /// a nanosecond.
    const ORDERING_BPS: u64 = 400_000_000_000_000;

    /// The netem with these impairments and this delay. It follows the transmission of the packets.
    pub fn netem(&self, delay_ns: u64) -> Netem {
        Netem {
            limit_packets: Self::LIMIT_PACKETS,
            delay_ns,
            jitter_ns: self.jitter_ns,
            correlation: self.correlation,
            distribution: self.distribution,
            loss: self.loss,
            ecn: false,
            duplicate: None,
            corrupt: None,
            reorder: self.reorder,
            rate: self.keep_order.then_some(NetemRate {
                rate_bps: Self::ORDERING_BPS,
                packet_overhead_bytes: 0,
                cell_bytes: 0,
                cell_overhead_bytes: 0,
            }),
            slot: None,
            inner: None,
        }
    }
}
