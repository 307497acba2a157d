//! `fq`: fair queue with pacing (`sch_fq`). Defaults are those of sch_fq and tc-fq(8) of Linux 6.1.
//!
//! `horizon_drop = false` is `horizon_cap` of `tc`. The key `defrate` is missing, which has no effect in Linux, and so are
//! `bands`, `priomap` and `weights`, which Linux has since 6.7.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Counts, Discipline, Limit, PacketLimit, Queues, Reason, Setting, counted};
use crate::error::Problems;
use crate::quantity::{Quantity, Rates, Sizes, Times};
use crate::units::{MINUTE, MS, SECOND, US};

/// Quantum of a flow. The kernel takes no more than 1 MiB.
type Quantum = Quantity<Sizes, 1, { 1 << 20 }>;
/// How long a flow has to be empty.
type Delay = Quantity<Times, US, MINUTE>;
/// A rate that the kernel keeps as bytes per second in 32 bits, in which the largest number means no limit.
type FlowRate = Quantity<Rates, 1_000, { (u32::MAX as u64 - 1) * 8 }>;
/// Slack of a timer.
type Slack = Quantity<Times, 1, SECOND>;

/// Fair queue with pacing, as Linux' sch_fq. At a port of a host, it paces the host's TCP connections.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Hard limit of all queues together.
    #[serde(default = "limit")]
    limit: PacketLimit,
    /// Hard limit of each flow's queue.
    #[serde(default = "flow_limit")]
    flow_limit: PacketLimit,
    /// Quantum: bytes that a flow may send per round. Default: two full frames, 3028 bytes.
    quantum: Option<Quantum>,
    /// Quantum of a new flow, for its first round. Default: ten full frames, 15140 bytes.
    initial_quantum: Option<Quantum>,
    /// Size of the table in which flows are looked up. It is rounded up to a power of two.
    #[serde(default = "buckets")]
    #[schemars(range(min = 2, max = 262_144))]
    buckets: u32,
    /// Maximum rate of a flow. Default: no limit.
    maxrate: Option<FlowRate>,
    /// Flows whose rate is at most this send one packet at a time.
    #[serde(default = "low_rate_threshold")]
    low_rate_threshold: FlowRate,
    /// A flow whose queue was empty for longer than this starts with a full quantum.
    #[serde(default = "refill_delay")]
    refill_delay: Delay,
    /// Packets that were not sent by a TCP connection of this host are distinguished by a hash of their addresses and
    /// ports, of which these bits are used.
    #[serde(default = "orphan_mask")]
    #[schemars(range(min = 0, max = 4_294_967_295_i64))]
    orphan_mask: u32,
    /// Pace the packets of each flow. Without it, neither maxrate nor the pacing of TCP has an effect.
    #[serde(default = "pacing")]
    pacing: bool,
    /// Slack of the timer that waits for the departure time of the next packet.
    #[serde(default = "timer_slack")]
    timer_slack: Slack,
    /// Mark every ECN-capable packet that leaves later than this after its departure time. Default: never.
    ce_threshold: Option<Delay>,
    /// How far ahead the departure time of a packet may be. In Linux, TCP passes on a few packets before they are due;
    /// a horizon longer than the time that they take at the connection's rate has no effect. In the simulator, the
    /// horizon never has an effect, because TCP holds packets until they are due.
    #[serde(default = "horizon")]
    horizon: Delay,
    /// Drop packets beyond the horizon. Otherwise, they leave at the horizon.
    #[serde(default = "horizon_drop")]
    horizon_drop: bool,
}

fn limit() -> PacketLimit {
    PacketLimit::new(10_000)
}

fn flow_limit() -> PacketLimit {
    PacketLimit::new(100)
}

fn buckets() -> u32 {
    1024
}

fn low_rate_threshold() -> FlowRate {
    FlowRate::new(550_000)
}

fn refill_delay() -> Delay {
    Delay::new(40 * MS)
}

fn orphan_mask() -> u32 {
    1023
}

fn pacing() -> bool {
    true
}

fn timer_slack() -> Slack {
    Slack::new(10 * US)
}

fn horizon() -> Delay {
    Delay::new(Fq::HORIZON_NS)
}

fn horizon_drop() -> bool {
    true
}

/// Parameters of `fq`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fq {
    /// Hard limit of all queues together.
    pub limit_packets: u32,
    /// Hard limit of each flow's queue.
    pub flow_limit_packets: u32,
    /// Quantum of a flow; `None` for two full frames.
    pub quantum_bytes: Option<u32>,
    /// Quantum of a new flow, for its first round; `None` for ten full frames.
    pub initial_quantum_bytes: Option<u32>,
    /// Size of the table in which flows are looked up.
    pub buckets: u32,
    /// Maximum rate of a flow.
    pub maxrate_bps: Option<u64>,
    /// Flows whose rate is at most this send one packet at a time.
    pub low_rate_threshold_bps: u64,
    /// A flow whose queue was empty for longer than this starts with a full quantum.
    pub refill_delay_ns: u64,
    /// Which bits of the hash are used.
    pub orphan_mask: u32,
    /// Pace the packets of each flow.
    pub pacing: bool,
    /// Slack of the timer.
    pub timer_slack_ns: u64,
    /// Mark packets that are later than this.
    pub ce_threshold_ns: Option<u64>,
    /// How far ahead the departure time of a packet may be.
    pub horizon_ns: u64,
    /// Drop packets beyond the horizon.
    pub horizon_drop: bool,
}

impl Fq {
    /// Default of `horizon`.
    pub const HORIZON_NS: u64 = 10 * SECOND;
}

impl Reason {
    /// The queue of the packet's flow was at its limit.
    pub const FLOW_LIMIT: Self = Self::drop("flow_limit");
    /// The packet's departure time was too far ahead.
    pub const HORIZON: Self = Self::drop("horizon");
    /// The packet left later than `ce_threshold` allows.
    pub const CE_THRESHOLD_MARK: Self = Self::mark("ce_threshold_mark");
}

impl Discipline for Fq {
    type Keys = Keys;

    const PURPOSE: &'static str = "A queue for each flow and pacing: for servers, whose TCP it paces; not for routers.";
    const SOURCE: &'static str = "net/sched/sch_fq.c";
    const MODULE: &'static str = "sch_fq";
    const SAMPLE: &'static str = "fq";
    const QUEUES: Queues = Queues::PerFlow;
    const KERNEL_DEFAULTS: bool = true;
    const REASONS: &'static [Reason] = Self::COUNTED;
    const COUNTED: &'static [Reason] =
        &[Reason::OVERLIMIT, Reason::FLOW_LIMIT, Reason::HORIZON, Reason::CE_THRESHOLD_MARK];
    const HOLDS_BACK: bool = true;
    const OWN_WORDS: usize = 24;

    fn resolve(keys: &Keys, _: u32, _: &str, _: &mut Problems) -> Option<Self> {
        Some(Self {
            limit_packets: keys.limit.get_u32(),
            flow_limit_packets: keys.flow_limit.get_u32(),
            quantum_bytes: keys.quantum.map(|quantum| quantum.get_u32()),
            initial_quantum_bytes: keys.initial_quantum.map(|quantum| quantum.get_u32()),
            buckets: keys.buckets,
            maxrate_bps: keys.maxrate.map(|rate| rate.get()),
            low_rate_threshold_bps: keys.low_rate_threshold.get(),
            refill_delay_ns: keys.refill_delay.get(),
            orphan_mask: keys.orphan_mask,
            pacing: keys.pacing,
            timer_slack_ns: keys.timer_slack.get(),
            ce_threshold_ns: keys.ce_threshold.map(|threshold| threshold.get()),
            horizon_ns: keys.horizon.get(),
            horizon_drop: keys.horizon_drop,
        })
    }

    fn limit(&self) -> Limit {
        Limit::Packets(self.limit_packets.into())
    }

    /// The horizon needs Linux and iproute2 5.8, and is left out where it is the default.
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let mut settings = vec![
            ("limit", Setting::Number(self.limit_packets.into())),
            ("flow_limit", Setting::Number(self.flow_limit_packets.into())),
            ("buckets", Setting::Number(self.buckets.into())),
        ];
        settings.extend(self.quantum_bytes.map(|bytes| ("quantum", Setting::Number(bytes.into()))));
        settings.extend(self.initial_quantum_bytes.map(|bytes| ("initial_quantum", Setting::Number(bytes.into()))));
        settings.extend(self.maxrate_bps.map(|rate| ("maxrate", Setting::Rate(rate))));
        settings.extend([
            ("low_rate_threshold", Setting::Rate(self.low_rate_threshold_bps)),
            ("refill_delay", Setting::Time(self.refill_delay_ns)),
            ("orphan_mask", Setting::Number(self.orphan_mask.into())),
            ("timer_slack", Setting::ExactTime(self.timer_slack_ns)),
            (if self.pacing { "pacing" } else { "nopacing" }, Setting::Flag),
        ]);
        settings.extend(self.ce_threshold_ns.map(|ns| ("ce_threshold", Setting::Time(ns))));
        if self.horizon_ns != Self::HORIZON_NS {
            settings.push(("horizon", Setting::Time(self.horizon_ns)));
        }
        if !self.horizon_drop {
            settings.push(("horizon_cap", Setting::Flag));
        }
        settings
    }

    /// `struct tc_fq_qd_stats`: gc_flows, highprio_packets, tcp_retrans, throttled, flows_plimit, pkts_too_long,
    /// allocation_errors and time_next_delayed_flow (two words each); flows, inactive_flows, throttled_flows and
    /// unthrottle_latency_ns; ce_mark, horizon_drops and others (two words each). ce_mark also counts packets that are
    /// not ECN-capable, which stay as they are.
    fn counts(drops: u64, own: &[u32]) -> Counts {
        // Wide counters are in the byte order of the machine, and Linux runs on little-endian ones here.
        let [flow_limit, late, horizon] =
            [8, 20, 22].map(|index: usize| u64::from(own[index]) | u64::from(own[index + 1]) << 32);
        counted([drops.saturating_sub(flow_limit + horizon), flow_limit, horizon, late])
    }

    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let quantum = || prop::option::of(1..=100_000_u32);
        let rates = (prop::option::of(100_000..=50_000_000_u64), 1000..=10_000_000_u64);
        let flows = (2..=4096_u32, prop_oneof![Just(1023), any::<u32>()], 1..=100_000_u64);
        let times = (1..=1_000_000_u64, prop::option::of(1..=100_000_u64), 1..=20_000_000_u64);
        ((1..=1000_u32, 1..=200_u32), (quantum(), quantum()), flows, rates, any::<[bool; 2]>(), times)
            .prop_map(|(limits, quanta, flows, rates, [pacing, horizon_drop], times)| Self {
                limit_packets: limits.0,
                flow_limit_packets: limits.1,
                quantum_bytes: quanta.0,
                initial_quantum_bytes: quanta.1,
                buckets: flows.0,
                maxrate_bps: rates.0,
                low_rate_threshold_bps: rates.1,
                refill_delay_ns: flows.2 * US,
                orphan_mask: flows.1,
                pacing,
                timer_slack_ns: times.0,
                ce_threshold_ns: times.1.map(|us| us * US),
                horizon_ns: times.2 * US,
                horizon_drop,
            })
            .boxed()
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{number, packets, rate, size, time};
        let mut keys = vec![
            ("limit", packets(self.limit_packets)),
            ("flow_limit", packets(self.flow_limit_packets)),
            ("buckets", number(self.buckets)),
            ("low_rate_threshold", rate(self.low_rate_threshold_bps)),
            ("refill_delay", time(self.refill_delay_ns)),
            ("orphan_mask", number(self.orphan_mask)),
            ("pacing", self.pacing.into()),
            ("timer_slack", time(self.timer_slack_ns)),
            ("horizon", time(self.horizon_ns)),
            ("horizon_drop", self.horizon_drop.into()),
        ];
        keys.extend(self.ce_threshold_ns.map(|ns| ("ce_threshold", time(ns))));
        keys.extend(self.quantum_bytes.map(|bytes| ("quantum", size(bytes))));
        keys.extend(self.initial_quantum_bytes.map(|bytes| ("initial_quantum", size(bytes))));
        keys.extend(self.maxrate_bps.map(|bps| ("maxrate", rate(bps))));
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Qdisc, TXQUEUELEN};
    use super::*;

    /// Nine drops, of which three at the limit of a flow and two beyond the horizon; seven late packets.
    #[test]
    fn drops_and_marks_are_distinguished() {
        let mut own = [0; 26];
        (own[8], own[20], own[22]) = (3, 7, 2);
        assert_eq!(Fq::counts(9, &own), counted([4, 3, 2, 7]));
        assert_eq!(Fq::counts(1, &own), counted([0, 3, 2, 7]), "counted in between");
    }

    #[test]
    fn it_paces_inside_others_too() {
        let paces = |text: &str| {
            let queue = toml::from_str(text).expect("every key has a default");
            Qdisc::of_port(&queue, TXQUEUELEN, "queue", &mut Problems::default())
                .expect("the parameters are sound")
                .paces()
        };
        assert!(paces("qdisc = 'fq'"));
        assert!(paces("qdisc = 'prio'\ninner = [{ qdisc = 'pfifo' }, { qdisc = 'fq' }]"));
        assert!(!paces("qdisc = 'fq'\npacing = false"));
        assert!(!paces("qdisc = 'fq_codel'"));
    }

    fn defaults() -> Keys {
        toml::from_str("").expect("every key has a default")
    }

    #[test]
    fn the_limit_is_10000_packets() {
        assert_eq!(defaults().limit.get(), 10_000);
    }

    #[test]
    fn the_limit_of_a_flow_is_100_packets() {
        assert_eq!(defaults().flow_limit.get(), 100);
    }

    #[test]
    fn quanta_are_left_to_the_kernel() {
        assert_eq!((defaults().quantum, defaults().initial_quantum), (None, None));
    }

    #[test]
    fn there_are_1024_buckets() {
        assert_eq!(defaults().buckets, 1024);
    }

    #[test]
    fn flows_have_no_maximal_rate() {
        assert_eq!(defaults().maxrate, None);
    }

    #[test]
    fn a_low_rate_is_550_kbit() {
        assert_eq!(defaults().low_rate_threshold.get(), 550_000);
    }

    #[test]
    fn credit_is_refilled_after_40_ms() {
        assert_eq!(defaults().refill_delay.get(), 40_000_000);
    }

    #[test]
    fn ten_bits_of_the_hash_count() {
        assert_eq!(defaults().orphan_mask, 1023);
    }

    #[test]
    fn flows_are_paced() {
        assert!(defaults().pacing);
    }

    #[test]
    fn the_timer_may_be_10_us_late() {
        assert_eq!(defaults().timer_slack.get(), 10_000);
    }

    #[test]
    fn late_packets_are_not_marked() {
        assert_eq!(defaults().ce_threshold, None);
    }

    #[test]
    fn the_horizon_is_ten_seconds_and_packets_beyond_are_dropped() {
        assert_eq!(defaults().horizon.get(), 10_000_000_000);
        assert!(defaults().horizon_drop);
    }

    /// The kernel keeps rates as bytes per second in 32 bits, and tc refuses larger ones.
    #[test]
    fn a_rate_of_more_than_32_bits_is_refused() {
        assert!(toml::from_str::<Keys>("maxrate = '34gbit'").is_ok());
        assert!(toml::from_str::<Keys>("maxrate = '35gbit'").is_err());
    }

    #[test]
    fn the_horizon_is_passed_on_where_it_is_not_the_default() {
        let names = |text: &str| {
            let fq =
                Fq::resolve(&toml::from_str(text).unwrap(), TXQUEUELEN, "queue", &mut Problems::default()).unwrap();
            fq.settings().into_iter().map(|(name, _)| name).skip(8).collect::<Vec<_>>()
        };
        assert!(names("").is_empty());
        let more = "ce_threshold = '1ms'\nhorizon = '2s'\nhorizon_drop = false";
        assert_eq!(names(more), ["ce_threshold", "horizon", "horizon_cap"]);
    }
}
