//! A class of `htb`: its keys, its parameters, and its buckets.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{Qdisc, Queue};
use crate::error::{Problem, Problems, quote};
use crate::file::Rate;
use crate::path::join;
use crate::quantity::{Quantity, Sizes};
use crate::text::TextRule;
use crate::units::{GB, MB};

/// Size of a bucket.
type Burst = Quantity<Sizes, 1, { GB }>;
/// Quantum of a class.
type Quantum = Quantity<Sizes, 1, { 100 * MB }>;

/// A class of htb.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "HtbClass")]
pub(super) struct ClassKeys {
    /// The parent class. Default: none; the class is at the root.
    #[schemars(with = "Option<crate::text::Name>")]
    parent: Option<String>,
    /// Guaranteed rate.
    #[schemars(example = &"1mbit")]
    rate: Rate,
    /// Rate up to which it may borrow. Default: its guaranteed rate.
    ceil: Option<Rate>,
    /// Size of the bucket of its rate: the burst that it may send at any speed. Default: 1600 bytes and what its rate
    /// sends in a nanosecond.
    burst: Option<Burst>,
    /// Size of the bucket of its ceiling: the burst that it may send at any speed. Default: 1600 bytes and what its
    /// ceiling sends in a nanosecond.
    cburst: Option<Burst>,
    /// Quantum: bytes that it may send per round, among classes of the same prio. Default: its rate in bytes per second
    /// divided by r2q, from 1000 to 200,000 bytes.
    quantum: Option<Quantum>,
    /// Priority: classes with a lower number are served first, and are the first to borrow from their parent.
    #[serde(default)]
    #[schemars(range(min = 0, max = 7))]
    prio: u8,
    /// The discipline in which its packets queue. Default: a pfifo of 1000 packets.
    inner: Option<Queue>,
}

/// A class of `htb`. Classes are known by their indices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HtbClass {
    /// The parent class.
    pub parent: Option<u16>,
    /// Guaranteed rate.
    pub rate_bps: u64,
    /// Rate up to which it may borrow.
    pub ceil_bps: u64,
    /// The bucket of its rate.
    pub burst_bytes: u32,
    /// The bucket of its ceiling.
    pub cburst_bytes: u32,
    /// Quantum, unless it follows from the rate.
    pub quantum_bytes: Option<u32>,
    /// Priority: classes with a lower number are served first.
    pub prio: u8,
    /// The discipline in which its packets queue; `None` means a `pfifo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner: Option<Box<Qdisc>>,
}

impl ClassKeys {
    /// The class of this name whose table is at `here`, among `all` classes of the discipline; `None` if its keys are
    /// unsound.
    pub(super) fn resolve(
        &self,
        (name, all): (&str, &IndexMap<String, Self>),
        txqueuelen: u32,
        here: &str,
        problems: &mut Problems,
    ) -> Option<HtbClass> {
        if !TextRule::Name.accepts(name) {
            problems.add(|| Problem::new(here, format!("a class named {}", quote(name)), TextRule::Name.describe()));
            return None;
        }
        let parent = match &self.parent {
            None => None,
            Some(parent) => {
                let index = all.get_index_of(parent).filter(|index| Some(*index) < all.get_index_of(name));
                if index.is_none() {
                    problems.add(|| {
                        Problem::new(join(here, "parent"), quote(parent), "a class that comes before this one")
                    });
                    return None;
                }
                index.map(|index| index as u16)
            }
        };
        let (rate_bps, ceil_bps) = (self.rate.get(), self.ceil.unwrap_or(self.rate).get());
        let inner = match &self.inner {
            Some(inner) => Some(Box::new(Qdisc::resolve(inner, txqueuelen, &join(here, "inner"), problems)?)),
            None => None,
        };
        Some(HtbClass {
            parent,
            rate_bps,
            ceil_bps,
            burst_bytes: self.burst.map_or(default_burst(rate_bps), Burst::get_u32),
            cburst_bytes: self.cburst.map_or(default_burst(ceil_bps), Burst::get_u32),
            quantum_bytes: self.quantum.map(Quantum::get_u32),
            prio: self.prio,
            inner,
        })
    }
}

impl HtbClass {
    /// The bucket of the rate as the kernel holds it, in nanoseconds.
    pub fn buffer_ns(&self) -> u64 {
        bucket_ns(self.rate_bps, self.burst_bytes)
    }

    /// The bucket of the ceiling as the kernel holds it, in nanoseconds.
    pub fn cbuffer_ns(&self) -> u64 {
        bucket_ns(self.ceil_bps, self.cburst_bytes)
    }
}

/// The time that a bucket lasts. `tc` counts it in ticks of 64 ns and rounds down (`tc_calc_xmittime` up to iproute2 6.13;
/// later ones round up).
fn bucket_ns(bits_per_second: u64, bytes: u32) -> u64 {
    const TICKS_PER_US: f64 = 15.625;
    let us = 1e6 * (f64::from(bytes) / (bits_per_second / 8).max(1) as f64);
    ((us * TICKS_PER_US) as u64) << 6
}

/// What `tc` gives a class that is given no burst: `rate / hz + mtu`, at the 10^9 ticks a second of a kernel with
/// high-resolution timers.
fn default_burst(bits_per_second: u64) -> u32 {
    (bits_per_second / 8 / 1_000_000_000 + 1600) as u32
}
