//! `tbf`: a token bucket filter (`sch_tbf`). A latency becomes a limit as iproute2's `tc` computes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ByteLimit, Discipline, Limit, Match, Part, Qdisc, Queue, Reason, Setting, Shaper};
use crate::error::{Problem, Problems};
use crate::file::Rate;
use crate::path::join;
use crate::quantity::{Quantity, Sizes, Times};
use crate::units::{GB, MINUTE, RATE, US};

/// Size of a bucket.
type Burst = Quantity<Sizes, 1, { GB }>;
/// Longest time that a packet may wait for tokens.
type Latency = Quantity<Times, US, MINUTE>;

/// A token bucket filter, as Linux' sch_tbf: sends packets at a rate of its own, and a burst after an idle time.
/// Packets queue in a bfifo, or in another discipline.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Rate at which tokens arrive.
    #[schemars(example = &"10mbit")]
    rate: Rate,
    /// Size of the bucket. Larger packets are dropped, or segmented if segmentation offload made them large.
    #[schemars(example = &"5kb")]
    burst: Burst,
    /// A packet that would bring the queue above this is dropped. Either limit or latency must be given.
    #[schemars(example = &"150kb")]
    limit: Option<ByteLimit>,
    /// The limit as a time: the longest that a packet may wait for tokens.
    #[schemars(example = &"50ms")]
    latency: Option<Latency>,
    /// Rate of a second bucket, which limits how fast a burst passes. Default: none.
    peakrate: Option<Rate>,
    /// Size of the second bucket. It must be given with peakrate.
    mtu: Option<Burst>,
    /// The discipline in which packets queue. Default: a bfifo of this limit; with another one, the limit has no
    /// effect.
    inner: Option<Box<Queue>>,
}

/// Parameters of `tbf`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tbf {
    /// Rate at which tokens arrive.
    pub rate_bps: u64,
    /// Size of the bucket.
    pub burst_bytes: u32,
    /// The second bucket, if there is one.
    pub peak: Option<Peak>,
    /// A packet that would raise the backlog above this is dropped, unless there is an inner discipline.
    pub limit_bytes: u64,
    /// The discipline in which packets queue; `None` means a `bfifo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner: Option<Box<Qdisc>>,
}

/// The second bucket of `tbf`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Peak {
    /// Rate at which its tokens arrive.
    pub rate_bps: u64,
    /// Its size.
    pub mtu_bytes: u32,
}

impl Reason {
    /// Dropped by TBF: larger than a bucket. Linux counts these with [`OVERLIMIT`](Self::OVERLIMIT).
    pub const OVERSIZE: Self = Self::drop("oversize");
}

impl Discipline for Tbf {
    type Keys = Keys;

    const PURPOSE: &'static str =
        "Shapes to a rate with a bounded burst: moves the queue from a device that cannot manage it.";
    const SOURCE: &'static str = "net/sched/sch_tbf.c";
    const MODULE: &'static str = "sch_tbf";
    const SAMPLE: &'static str = "tbf rate 1mbit burst 2000 limit 10000";
    const CONTAINS_OTHERS: bool = true;
    const HOLDS_BACK: bool = true;
    const REASONS: &'static [Reason] = &[Reason::OVERLIMIT, Reason::OVERSIZE];

    fn resolve(keys: &Keys, txqueuelen: u32, path: &str, problems: &mut Problems) -> Option<Self> {
        let (rate_bps, burst_bytes) = (keys.rate.get(), keys.burst.get_u32());
        let peak = match (keys.peakrate, keys.mtu) {
            (None, None) => None,
            (Some(rate), Some(mtu)) => Some(Peak { rate_bps: rate.get(), mtu_bytes: mtu.get_u32() }),
            (Some(_), None) => {
                problems
                    .add(|| Problem::missing(join(path, "mtu"), "the size of the second bucket, which peakrate needs"));
                return None;
            }
            (None, Some(_)) => {
                problems
                    .add(|| Problem::missing(join(path, "peakrate"), "the rate of the second bucket, which mtu needs"));
                return None;
            }
        };
        if let Some(peak) = &peak
            && bytes_per_second(peak.rate_bps) <= bytes_per_second(rate_bps)
        {
            let (found, least) = (RATE.display(peak.rate_bps), RATE.display(rate_bps));
            problems.add(|| Problem::new(join(path, "peakrate"), found, format!("more than rate = {least}")));
            return None;
        }
        let limit_bytes = match (keys.limit, keys.latency) {
            (Some(limit), None) => limit.get(),
            (None, Some(latency)) => limit_of(latency.get(), (rate_bps, burst_bytes), peak.as_ref()),
            (None, None) => {
                problems.add(|| Problem::missing(join(path, "limit"), "a limit, such as 150kb, or a latency"));
                return None;
            }
            (Some(_), Some(_)) => {
                problems
                    .add(|| Problem::new(join(path, "latency"), "a latency together with a limit", "one of the two"));
                return None;
            }
        };
        let inner = match &keys.inner {
            Some(inner) => Some(Box::new(Qdisc::resolve(inner, txqueuelen, &join(path, "inner"), problems)?)),
            None => None,
        };
        Some(Self { rate_bps, burst_bytes, peak, limit_bytes, inner })
    }

    fn limit(&self) -> Limit {
        self.inner.as_ref().map_or(Limit::Bytes(self.limit_bytes), |inner| inner.limit())
    }

    fn shaper(&self) -> Option<Shaper> {
        Some(Shaper { rate_bps: self.rate_bps, burst_bytes: self.burst_bytes.into() })
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let mut settings =
            vec![("rate", Setting::Rate(self.rate_bps)), ("burst", Setting::Number(self.burst_bytes.into()))];
        if let Some(peak) = &self.peak {
            settings.push(("peakrate", Setting::Rate(peak.rate_bps)));
            settings.push(("mtu", Setting::Number(peak.mtu_bytes.into())));
        }
        settings.push(("limit", Setting::Number(self.limit_bytes)));
        settings
    }

    fn each_match(&mut self, visit: &mut dyn FnMut(&mut Match)) {
        self.inner.iter_mut().for_each(|inner| inner.each_match(visit));
    }

    fn parts(&self) -> Vec<Part<'_>> {
        self.inner.iter().map(|qdisc| Part::Inner { class: 1, qdisc }).collect()
    }

    /// Mostly buckets that hold a packet of any size.
    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let size = || prop_oneof![9 => 1600..=100_000_u32, 1 => 1..=1600_u32];
        let peak = prop::option::of((1_000_000..=50_000_000_u64, size()));
        let inner = prop::option::weighted(0.3, Qdisc::any_inner().prop_map(Box::new));
        (300_000..=50_000_000_u64, size(), peak, 1..=300_000_u64, inner)
            .prop_map(|(rate_bps, burst_bytes, peak, limit_bytes, inner)| {
                let peak = peak.map(|(more_bps, mtu_bytes)| Peak { rate_bps: rate_bps + more_bps, mtu_bytes });
                Self { rate_bps, burst_bytes, peak, limit_bytes, inner }
            })
            .boxed()
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{rate, size};
        let mut keys =
            vec![("rate", rate(self.rate_bps)), ("burst", size(self.burst_bytes)), ("limit", size(self.limit_bytes))];
        if let Some(peak) = &self.peak {
            keys.push(("peakrate", rate(peak.rate_bps)));
            keys.push(("mtu", size(peak.mtu_bytes)));
        }
        keys.extend(self.inner.iter().map(|inner| ("inner", inner.written().into())));
        keys
    }
}

/// A rate as `tc` passes it to the kernel.
fn bytes_per_second(bits_per_second: u64) -> u64 {
    bits_per_second / 8
}

/// The size of a bucket, plus the tokens that arrive for it during the latency. With two buckets, the smaller of the
/// two sums (iproute2's `tc/q_tbf.c`).
fn limit_of(latency_ns: u64, bucket: (u64, u32), peak: Option<&Peak>) -> u64 {
    let latency_us = (latency_ns / US) as f64;
    let holds = |(rate_bps, bytes): (u64, u32)| bytes_per_second(rate_bps) as f64 * latency_us / 1e6 + f64::from(bytes);
    let second = peak.map_or(f64::INFINITY, |peak| holds((peak.rate_bps, peak.mtu_bytes)));
    holds(bucket).min(second) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// tc-tbf(8): the limit is the rate times the latency, plus the bucket. 1 Mbit/s are 125,000 bytes a second.
    #[test]
    fn a_latency_is_a_limit_of_the_bucket_and_what_arrives_meanwhile() {
        assert_eq!(limit_of(70_000_000, (500_000, 5120), None), 4375 + 5120);
        // At 100 kbyte/s, 50 ms are 5000 bytes; with a second bucket of 2000 bytes at 80 % more, 9000 + 2000.
        let peak = Peak { rate_bps: 1_440_000, mtu_bytes: 2000 };
        assert_eq!(limit_of(50_000_000, (800_000, 10_000), Some(&peak)), 9000 + 2000);
        assert_eq!(limit_of(50_000_000, (800_000, 4000), Some(&peak)), 5000 + 4000);
    }
}
