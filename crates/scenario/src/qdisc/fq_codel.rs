//! `fq_codel`: flow queues under the control of CoDel (`sch_fq_codel`, RFC 8290). Defaults are those of sch_fq_codel and
//! tc-fq_codel(8).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::codel::Time;
use super::{Aqm, Counts, Discipline, DsFilter, Limit, PacketLimit, Queues, Reason, Setting, counted, words};
use crate::error::Problems;
use crate::quantity::{Quantity, Sizes};

/// Quantum of a flow. The kernel takes no more than 1 MiB.
type Quantum = Quantity<Sizes, 1, { 1 << 20 }>;
/// A limit of memory. The kernel lowers a larger one to this.
type Memory = Quantity<Sizes, 1, { 1 << 31 }>;

/// Flow queues under the control of CoDel (RFC 8290), as Linux' sch_fq_codel.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Hard limit of all queues together. Above it, packets of the flow with the most bytes are dropped.
    #[serde(default = "limit")]
    limit: PacketLimit,
    /// Number of queues. A packet's queue is chosen by a hash of its addresses and ports.
    #[serde(default = "flows")]
    #[schemars(range(min = 1, max = 65_536))]
    flows: u32,
    /// Acceptable standing delay.
    #[serde(default = "super::codel::target")]
    target: Time,
    /// How long the delay must stay above `target` before the first drop.
    #[serde(default = "super::codel::interval")]
    interval: Time,
    /// Quantum: bytes that a flow may send per round. Linux takes no less than 256 bytes. Default: a full frame, 1514
    /// bytes.
    quantum: Option<Quantum>,
    /// Mark ECN-capable packets instead of dropping them.
    #[serde(default = "ecn")]
    ecn: bool,
    /// Mark every ECN-capable packet that was delayed for longer than this. Default: never.
    ce_threshold: Option<Time>,
    /// Which packets `ce_threshold` concerns, by the byte of the IP header with the code point and the ECN field:
    /// `VALUE/MASK`. Default: all.
    #[schemars(example = &"0x01/0x03")]
    ce_threshold_selector: Option<DsFilter>,
    /// Hard limit of the memory that all queued packets take, including what Linux needs to manage them.
    #[serde(default = "memory_limit")]
    memory_limit: Memory,
    /// Maximum number of packets that are dropped at once when a limit is exceeded.
    #[serde(default = "drop_batch")]
    #[schemars(range(min = 1, max = 1_000_000))]
    drop_batch: u32,
}

fn limit() -> PacketLimit {
    PacketLimit::new(10_240)
}

fn flows() -> u32 {
    1024
}

fn ecn() -> bool {
    true
}

fn memory_limit() -> Memory {
    Memory::new(32 << 20)
}

fn drop_batch() -> u32 {
    64
}

/// Parameters of `fq_codel`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FqCodel {
    /// Hard limit of all queues together.
    pub limit_packets: u32,
    /// Number of queues.
    pub flows: u32,
    /// Acceptable standing delay.
    pub target_ns: u64,
    /// Time the delay must stay above target before the first drop.
    pub interval_ns: u64,
    /// Quantum of a flow; `None` for a full frame.
    pub quantum_bytes: Option<u32>,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Mark every ECN-capable packet whose delay exceeds this.
    pub ce_threshold_ns: Option<u64>,
    /// Which packets the threshold concerns.
    pub ce_threshold_selector: Option<DsFilter>,
    /// Hard limit of the memory that all queued packets take.
    pub memory_limit_bytes: u32,
    /// Maximum number of packets that are dropped at once when a limit is exceeded.
    pub drop_batch: u32,
}

impl FqCodel {
    /// The smallest quantum. Linux raises a smaller one to this.
    pub const LEAST_QUANTUM_BYTES: u32 = 256;
}

impl Reason {
    /// The packets in the queue took too much memory.
    pub const OVERMEMORY: Self = Self::drop("overmemory");
}

impl Discipline for FqCodel {
    type Keys = Keys;

    const PURPOSE: &'static str =
        "A queue for each flow, each with CoDel, and light flows first: the sound default on most links.";
    const SOURCE: &'static str = "net/sched/sch_fq_codel.c, include/net/codel_impl.h; RFC 8290";
    const MODULE: &'static str = "sch_fq_codel";
    const SAMPLE: &'static str = "fq_codel";
    const QUEUES: Queues = Queues::PerFlow;
    const AQM: Option<Aqm> = Some(Aqm::Delay);
    const KERNEL_DEFAULTS: bool = true;
    const REASONS: &'static [Reason] = &[Reason::OVERLIMIT, Reason::OVERMEMORY, Reason::CODEL, Reason::CODEL_MARK];
    const COUNTED: &'static [Reason] = Self::REASONS;
    const OWN_WORDS: usize = 10;

    fn resolve(keys: &Keys, _: u32, _: &str, _: &mut Problems) -> Option<Self> {
        Some(Self {
            limit_packets: keys.limit.get_u32(),
            flows: keys.flows,
            target_ns: keys.target.get(),
            interval_ns: keys.interval.get(),
            quantum_bytes: keys.quantum.map(|quantum| quantum.get_u32()),
            ecn: keys.ecn,
            ce_threshold_ns: keys.ce_threshold.map(|threshold| threshold.get()),
            ce_threshold_selector: keys.ce_threshold_selector,
            memory_limit_bytes: keys.memory_limit.get_u32(),
            drop_batch: keys.drop_batch,
        })
    }

    fn limit(&self) -> Limit {
        Limit::Packets(self.limit_packets.into())
    }

    /// `ce_threshold_selector` needs Linux and iproute2 5.16, and is left out where it is not used.
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let mut settings = vec![
            ("limit", Setting::Number(self.limit_packets.into())),
            ("flows", Setting::Number(self.flows.into())),
            ("target", Setting::Time(self.target_ns)),
            ("interval", Setting::Time(self.interval_ns)),
        ];
        settings.extend(self.quantum_bytes.map(|bytes| ("quantum", Setting::Number(bytes.into()))));
        settings.extend(self.ce_threshold_ns.map(|ns| ("ce_threshold", Setting::Time(ns))));
        settings.extend(self.ce_threshold_selector.map(|filter| ("ce_threshold_selector", Setting::DsFilter(filter))));
        settings.push(("memory_limit", Setting::Number(self.memory_limit_bytes.into())));
        settings.push(("drop_batch", Setting::Number(self.drop_batch.into())));
        settings.push((if self.ecn { "ecn" } else { "noecn" }, Setting::Flag));
        settings
    }

    /// `struct tc_fq_codel_xstats`: type, maxpacket, drop_overlimit (which includes drop_overmemory), ecn_mark,
    /// new_flow_count, new_flows_len, old_flows_len, ce_mark (which also counts packets that ecn_mark counts),
    /// memory_usage and drop_overmemory.
    fn counts(drops: u64, own: &[u32]) -> Counts {
        let [over_any, marked, over_threshold, overmemory] = words(own, [2, 3, 7, 9]);
        let overlimit = over_any.saturating_sub(overmemory);
        counted([overlimit, overmemory, drops.saturating_sub(over_any), marked + over_threshold])
    }

    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;

        use crate::units::US;
        let limits = (1..=1000_u32, prop_oneof![1..=100_000_u32, Just(32 << 20)], 1..=100_u32);
        let threshold = (prop::option::of(1..=20_000_u64), prop::option::of((0..=3_u8, 0..=3_u8)));
        let times = (1..=50_000_u64, 1..=500_000_u64);
        (limits, 1..=2000_u32, times, prop::option::of(1..=100_000_u32), any::<bool>(), threshold)
            .prop_map(|(limits, flows, times, quantum_bytes, ecn, threshold)| Self {
                limit_packets: limits.0,
                flows,
                target_ns: times.0 * US,
                interval_ns: times.1 * US,
                quantum_bytes,
                ecn,
                ce_threshold_ns: threshold.0.map(|us| us * US),
                ce_threshold_selector: threshold.1.map(|(value, mask)| DsFilter { value, mask }),
                memory_limit_bytes: limits.1,
                drop_batch: limits.2,
            })
            .boxed()
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{number, packets, size, time};
        let mut keys = vec![
            ("limit", packets(self.limit_packets)),
            ("flows", number(self.flows)),
            ("target", time(self.target_ns)),
            ("interval", time(self.interval_ns)),
            ("ecn", self.ecn.into()),
            ("memory_limit", size(self.memory_limit_bytes)),
            ("drop_batch", number(self.drop_batch)),
        ];
        keys.extend(self.quantum_bytes.map(|bytes| ("quantum", size(bytes))));
        keys.extend(self.ce_threshold_ns.map(|ns| ("ce_threshold", time(ns))));
        keys.extend(self.ce_threshold_selector.map(|filter| ("ce_threshold_selector", filter.to_string().into())));
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::super::TXQUEUELEN;
    use super::*;

    /// Nine drops, five at a limit, of which two at that of memory; three marks, and one more above `ce_threshold`.
    #[test]
    fn drops_at_the_two_limits_are_distinguished() {
        assert_eq!(FqCodel::counts(9, &[0, 1514, 5, 3, 70, 1, 2, 1, 30_000, 2]), counted([3, 2, 4, 4]));
        // Packets were dropped at the limit while the statistics were read: the common count does not include them yet.
        assert_eq!(FqCodel::counts(1, &[0, 1514, 5, 0, 0, 0, 0, 0, 0, 0]), counted([5, 0, 0, 0]));
    }

    fn defaults() -> Keys {
        toml::from_str("").expect("every key has a default")
    }

    #[test]
    fn the_limit_is_10240_packets() {
        assert_eq!(defaults().limit.get(), 10_240);
    }

    #[test]
    fn there_are_1024_flows() {
        assert_eq!(defaults().flows, 1024);
    }

    #[test]
    fn the_target_is_5_ms() {
        assert_eq!(defaults().target.get(), 5_000_000);
    }

    #[test]
    fn the_interval_is_100_ms() {
        assert_eq!(defaults().interval.get(), 100_000_000);
    }

    #[test]
    fn the_quantum_is_left_to_the_kernel() {
        assert_eq!(defaults().quantum, None);
    }

    #[test]
    fn ecn_is_on() {
        assert!(defaults().ecn);
    }

    #[test]
    fn there_is_no_threshold() {
        assert_eq!(defaults().ce_threshold, None);
        assert_eq!(defaults().ce_threshold_selector, None);
    }

    #[test]
    fn the_memory_limit_is_32_mib() {
        assert_eq!(defaults().memory_limit.get(), 33_554_432);
    }

    #[test]
    fn up_to_64_packets_are_dropped_at_once() {
        assert_eq!(defaults().drop_batch, 64);
    }

    #[test]
    fn tc_is_given_every_setting() {
        let mut keys = defaults();
        let names = |keys: &Keys| {
            let resolved = FqCodel::resolve(keys, TXQUEUELEN, "", &mut Problems::default())
                .expect("no keys contradict each other");
            resolved.settings().into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        let always = ["limit", "flows", "target", "interval", "memory_limit", "drop_batch", "ecn"];
        assert_eq!(names(&keys), always);
        keys =
            toml::from_str("quantum = 300\necn = false\nce_threshold = '1ms'\nce_threshold_selector = '1/3'").unwrap();
        let more = ["limit", "flows", "target", "interval", "quantum", "ce_threshold", "ce_threshold_selector"];
        assert_eq!(names(&keys)[..7], more);
        assert_eq!(names(&keys)[7..], ["memory_limit", "drop_batch", "noecn"]);
    }
}
