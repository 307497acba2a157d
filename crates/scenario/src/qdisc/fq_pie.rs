//! `fq_pie`: flow queues that PIE manages (`sch_fq_pie`). Defaults are those of sch_fq_pie and tc-fq_pie(8).
//!
//! `tc` does not pass a zero on to the kernel, which then takes its default, so zeros are refused here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pie::Time;
use super::{Aqm, Counts, Discipline, Limit, PacketLimit, Queues, Reason, Setting, counted, words};
use crate::error::Problems;
use crate::quantity::{Quantity, Sizes};
use crate::sizes::FRAME_BYTES;
use crate::units::MB;

/// Quantum of a flow.
type Quantum = Quantity<Sizes, 1, { MB }>;
/// Limit of the memory that packets occupy.
type Memory = Quantity<Sizes, 1, { u32::MAX as u64 }>;

/// Flow queues that proportional integral controllers manage, as Linux' sch_fq_pie: each flow has a queue and a probability
/// of drops of its own (RFC 8033), and flows are served round-robin (DRR), new flows first.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Hard limit of all queues together.
    #[serde(default = "limit")]
    limit: PacketLimit,
    /// Number of queues. Flows are assigned to them by a hash. It cannot be changed while the discipline is attached.
    #[serde(default = "flows")]
    #[schemars(range(min = 1, max = 65_536))]
    flows: u32,
    /// Target queueing delay.
    #[serde(default = "super::pie::target")]
    target: Time,
    /// Update interval of the drop probabilities. Linux rounds it up to ticks of its clock.
    #[serde(default = "super::pie::tupdate")]
    tupdate: Time,
    /// Weight of the deviation of the delay from the target, in 16ths.
    #[serde(default = "super::pie::alpha")]
    #[schemars(range(min = 1, max = 32))]
    alpha: u32,
    /// Weight of the change of the delay, in 16ths.
    #[serde(default = "super::pie::beta")]
    #[schemars(range(min = 1, max = 32))]
    beta: u32,
    /// Quantum: bytes that a flow may send per round.
    #[serde(default = "quantum")]
    quantum: Quantum,
    /// Memory above which Linux counts arriving packets. It does not drop them.
    #[serde(default = "memory_limit")]
    memory_limit: Memory,
    /// With ecn, the probability in per cent up to which packets are marked.
    #[serde(default = "ecn_prob")]
    #[schemars(range(min = 1, max = 99))]
    ecn_prob: u8,
    /// Mark packets of ECN-capable flows instead of dropping them, while the probability is at most `ecn_prob`.
    #[serde(default)]
    ecn: bool,
    /// Drop small packets less often, in proportion to their size.
    #[serde(default)]
    bytemode: bool,
    /// Estimate the delay from the queue's length and its dequeue rate instead of measuring it with timestamps.
    #[serde(default)]
    dq_rate_estimator: bool,
}

fn limit() -> PacketLimit {
    PacketLimit::new(10_240)
}

fn flows() -> u32 {
    1024
}

/// A full frame (`psched_mtu`).
fn quantum() -> Quantum {
    Quantum::new(FRAME_BYTES as u64)
}

fn memory_limit() -> Memory {
    Memory::new(32 * MB)
}

fn ecn_prob() -> u8 {
    10
}

/// Parameters of `fq_pie`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FqPie {
    /// Hard limit of all queues together.
    pub limit_packets: u32,
    /// Number of queues.
    pub flows: u32,
    /// Target queueing delay.
    pub target_ns: u64,
    /// Update interval of the drop probabilities.
    pub tupdate_ns: u64,
    /// Weight of the deviation of the delay from the target, in 16ths.
    pub alpha: u32,
    /// Weight of the change of the delay, in 16ths.
    pub beta: u32,
    /// Quantum: bytes that a flow may send per round.
    pub quantum_bytes: u32,
    /// Memory above which arriving packets are counted.
    pub memory_limit_bytes: u32,
    /// The probability up to which packets are marked, in per cent.
    pub ecn_prob_percent: u8,
    /// Mark ECN-capable packets instead of dropping them, up to that probability.
    pub ecn: bool,
    /// Drop small packets less often.
    pub bytemode: bool,
    /// Estimate the delay from the queue's length and its dequeue rate.
    pub dq_rate_estimator: bool,
}

impl Discipline for FqPie {
    type Keys = Keys;

    const PURPOSE: &'static str = "A queue for each flow, each with PIE: fair shares, and delay near a target.";
    const SOURCE: &'static str = "net/sched/sch_fq_pie.c; RFC 8033; DRR as in RFC 8290";
    const MODULE: &'static str = "sch_fq_pie";
    const SAMPLE: &'static str = "fq_pie";
    const QUEUES: Queues = Queues::PerFlow;
    const AQM: Option<Aqm> = Some(Aqm::Delay);
    const KERNEL_DEFAULTS: bool = true;
    const REASONS: &'static [Reason] = Self::COUNTED;
    const COUNTED: &'static [Reason] = &[Reason::OVERLIMIT, Reason::PIE, Reason::PIE_MARK];
    const OWN_WORDS: usize = 9;

    fn resolve(keys: &Keys, _: u32, _: &str, _: &mut Problems) -> Option<Self> {
        Some(Self {
            limit_packets: keys.limit.get_u32(),
            flows: keys.flows,
            target_ns: keys.target.get(),
            tupdate_ns: keys.tupdate.get(),
            alpha: keys.alpha,
            beta: keys.beta,
            quantum_bytes: keys.quantum.get_u32(),
            memory_limit_bytes: keys.memory_limit.get_u32(),
            ecn_prob_percent: keys.ecn_prob,
            ecn: keys.ecn,
            bytemode: keys.bytemode,
            dq_rate_estimator: keys.dq_rate_estimator,
        })
    }

    fn limit(&self) -> Limit {
        Limit::Packets(self.limit_packets.into())
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        vec![
            ("limit", Setting::Number(self.limit_packets.into())),
            ("flows", Setting::Number(self.flows.into())),
            ("target", Setting::Time(self.target_ns)),
            ("tupdate", Setting::Time(self.tupdate_ns)),
            ("alpha", Setting::Number(self.alpha.into())),
            ("beta", Setting::Number(self.beta.into())),
            ("quantum", Setting::Number(self.quantum_bytes.into())),
            ("memory_limit", Setting::Number(self.memory_limit_bytes.into())),
            ("ecn_prob", Setting::Number(self.ecn_prob_percent.into())),
            (if self.ecn { "ecn" } else { "noecn" }, Setting::Flag),
            (if self.bytemode { "bytemode" } else { "nobytemode" }, Setting::Flag),
            (if self.dq_rate_estimator { "dq_rate_estimator" } else { "no_dq_rate_estimator" }, Setting::Flag),
        ]
    }

    /// `struct tc_fq_pie_xstats`: packets_in, dropped (which includes those at the limit), overlimit, overmemory,
    /// ecn_mark, new_flow_count, new_flows_len, old_flows_len and memory_usage.
    fn counts(_drops: u64, own: &[u32]) -> Counts {
        let [dropped, overlimit, marked] = words(own, [1, 2, 4]);
        counted([overlimit, dropped.saturating_sub(overlimit), marked])
    }

    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;

        use crate::units::US;
        let times = (1..=50_000_u64, 1..=100_000_u64);
        let switches = (any::<bool>(), any::<bool>(), any::<bool>());
        let sizes = (1..=20_000_u32, 1..=10_000_000_u32);
        ((1..=1000_u32, 1..=5000_u32), times, (1..=32_u32, 1..=32_u32), sizes, 1..=99_u8, switches)
            .prop_map(|((limit_packets, flows), times, (alpha, beta), sizes, ecn_prob_percent, switches)| Self {
                limit_packets,
                flows,
                target_ns: times.0 * US,
                tupdate_ns: times.1 * US,
                alpha,
                beta,
                quantum_bytes: sizes.0,
                memory_limit_bytes: sizes.1,
                ecn_prob_percent,
                ecn: switches.0,
                bytemode: switches.1,
                dq_rate_estimator: switches.2,
            })
            .boxed()
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{number, packets, size, time};
        vec![
            ("limit", packets(self.limit_packets)),
            ("flows", number(self.flows)),
            ("target", time(self.target_ns)),
            ("tupdate", time(self.tupdate_ns)),
            ("alpha", number(self.alpha)),
            ("beta", number(self.beta)),
            ("quantum", size(self.quantum_bytes)),
            ("memory_limit", size(self.memory_limit_bytes)),
            ("ecn_prob", number(self.ecn_prob_percent.into())),
            ("ecn", self.ecn.into()),
            ("bytemode", self.bytemode.into()),
            ("dq_rate_estimator", self.dq_rate_estimator.into()),
        ]
    }
}

#[cfg(test)]
mod tests;
