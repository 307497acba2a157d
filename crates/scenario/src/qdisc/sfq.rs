//! `sfq`: stochastic fairness queueing (`sch_sfq`). Defaults are those of sch_sfq and of iproute2's `tc` (`tc/q_sfq.c`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choke::avpkt;
use super::red::{self, PacketSize, Probability, Thresholds, Wanted, shown};
use super::{AveragingError, ByteLimit, Curve, Discipline, Limit, Queues, Reason, Setting};
use crate::error::{Problem, Problems};
use crate::path::join;
use crate::quantity::{Packets, Quantity, Sizes, Times};
use crate::sizes::FRAME_BYTES;
use crate::units::{HOUR, KB, SECOND, SIZE, TIME};

/// The kernel's queues hold no more packets each (`SFQ_MAX_DEPTH`).
const MOST_DEPTH: u32 = 127;
/// The kernel's default (`SFQ_DEFAULT_FLOWS`).
const FLOWS: u32 = 128;
/// The kernel's default of the limit (`SFQ_MAX_DEPTH`).
const LIMIT: u32 = 127;

/// At least two packets, as in `tc`.
type Limited = Quantity<Packets, 2, 10_000_000>;
/// Packets in the queue of one flow.
type Depth = Quantity<Packets, 1, { MOST_DEPTH as u64 }>;
/// Bytes per round. With less than 64, the kernel would need hundreds of rounds for one packet.
type Quantum = Quantity<Sizes, 64, { 256 * KB - 8 }>;
/// Time between two perturbations.
type Period = Quantity<Times, SECOND, HOUR>;

/// Stochastic fairness queueing, as Linux' sch_sfq: flows are hashed to queues that are served round-robin. When it is
/// full, a packet of the longest queue is dropped.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Limit of all queues together, at most `flows` times `depth`. Default: 127.
    limit: Option<Limited>,
    /// Limit of one queue.
    #[serde(default = "depth")]
    depth: Depth,
    /// Number of hash values, a power of two.
    #[serde(default = "divisor")]
    #[schemars(range(min = 1, max = 65536))]
    divisor: u32,
    /// Number of queues, at most `divisor` and at most a `limit` that is given.
    #[serde(default = "flows")]
    #[schemars(range(min = 1, max = 65408))]
    flows: u32,
    /// Quantum: bytes that a queue may send per round. The default is one frame.
    #[serde(default = "quantum")]
    quantum: Quantum,
    /// Interval in whole seconds after which flows are hashed anew, so that collisions do not last. Default: never.
    #[schemars(example = &"10s")]
    perturb: Option<Period>,
    /// Drop the oldest packet of a queue and not the newest.
    #[serde(default)]
    headdrop: bool,
    /// Random early detection in each queue, with this limit. It must be given for any of the keys below. It only
    /// determines the defaults of `min` and `max`.
    redflowlimit: Option<ByteLimit>,
    /// Average queue at which dropping starts. Default: a third of `max`.
    min: Option<ByteLimit>,
    /// Average queue at which the drop probability reaches its maximum. Above it, every packet is dropped. Default: a
    /// quarter of `redflowlimit`.
    max: Option<ByteLimit>,
    /// Average packet size. With `min` and `burst` it determines how slowly the average follows the queue. Default:
    /// 1000 bytes.
    avpkt: Option<PacketSize>,
    /// Size of a burst, in packets, that passes without drops. Default: (2 `min` + `max`) / (3 `avpkt`).
    #[schemars(range(min = 1, max = 1_000_000))]
    burst: Option<u32>,
    /// Maximum probability of an early drop. Default: 0.02.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    probability: Option<Probability>,
    /// Mark ECN-capable packets instead of dropping them early.
    #[serde(default)]
    ecn: bool,
    /// Drop even ECN-capable packets while the average is above `max`. Without `ecn` it changes nothing.
    #[serde(default)]
    harddrop: bool,
}

fn depth() -> Depth {
    Depth::new(MOST_DEPTH.into())
}

/// Of every kernel since 2.6.39; before, 1024 was the only value.
fn divisor() -> u32 {
    1024
}

fn flows() -> u32 {
    FLOWS
}

fn quantum() -> Quantum {
    Quantum::new(FRAME_BYTES as u64)
}

/// Parameters of `sfq`, as the kernel resolves them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sfq {
    /// Limit of all queues together.
    pub limit_packets: u32,
    /// Limit of one queue.
    pub depth_packets: u32,
    /// Number of hash values, a power of two.
    pub divisor: u32,
    /// Number of queues.
    pub flows: u32,
    /// Quantum: bytes that a queue may send per round.
    pub quantum_bytes: u32,
    /// Time between two perturbations, in whole seconds; `None` for never.
    pub perturb_s: Option<u32>,
    /// Drop the oldest packet of a queue and not the newest.
    pub headdrop: bool,
    /// Random early detection in each queue.
    pub red: Option<FlowRed>,
}

/// Random early detection in each queue of `sfq`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowRed {
    /// The limit from which `tc` derives thresholds.
    pub limit_bytes: u64,
    /// Average queue at which dropping starts.
    pub min_bytes: u64,
    /// Average queue at which the drop probability reaches `probability`, and above which everything is dropped.
    pub max_bytes: u64,
    /// Size of an average packet.
    pub avpkt_bytes: u32,
    /// Packets of burst allowed; with `min` and `avpkt` it sets the averaging constant.
    pub burst_packets: u32,
    /// Highest marking probability, in (0, 1].
    pub probability: f64,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Drop even ECN-capable packets above `max`.
    pub harddrop: bool,
}

impl FlowRed {
    /// How the kernel averages each queue.
    ///
    /// # Errors
    /// Parameters that `tc` or the kernel refuses.
    pub fn curve(&self) -> Result<Curve, AveragingError> {
        let wanted = Wanted {
            min: self.min_bytes,
            max: self.max_bytes,
            unit_bytes: 1,
            avpkt_bytes: self.avpkt_bytes,
            burst_packets: self.burst_packets,
            probability: self.probability,
        };
        wanted.curve()
    }
}

impl Discipline for Sfq {
    type Keys = Keys;

    const PURPOSE: &'static str =
        "Shares the link among flows by turns over a small table of queues; bounds each flow's queue.";
    const SOURCE: &'static str = "net/sched/sch_sfq.c; P. McKenney, Stochastic Fairness Queueing, 1990";
    const MODULE: &'static str = "sch_sfq";
    const SAMPLE: &'static str = "sfq";
    const QUEUES: Queues = Queues::PerFlow;
    const KERNEL_DEFAULTS: bool = true;
    /// Linux counts all drops together, and no marks, in the statistics of the discipline.
    const REASONS: &'static [Reason] = &[Reason::OVERLIMIT, Reason::RED_EARLY, Reason::RED_FORCED, Reason::RED_MARK];

    /// Clamps numbers as the kernel does (`sfq_change`), derives omitted parameters as iproute2's tc does, and refuses
    /// what tc or the kernel refuses.
    fn resolve(keys: &Keys, _: u32, path: &str, problems: &mut Problems) -> Option<Self> {
        if !keys.divisor.is_power_of_two() {
            problems.add(|| Problem::new(join(path, "divisor"), keys.divisor.to_string(), "a power of two"));
            return None;
        }
        let depth_packets = keys.depth.get_u32();
        let mut flows = keys.flows.min(keys.divisor);
        let mut limit_packets = LIMIT;
        if let Some(limit) = keys.limit {
            limit_packets = limit.get_u32().min(depth_packets * flows);
            flows = flows.min(limit_packets);
            if limit_packets < 2 {
                let found = format!("{limit}, of which one queue of depth 1p holds {limit_packets}p");
                problems.add(|| Problem::new(join(path, "limit"), found, "at least 2p in all queues"));
                return None;
            }
        }
        let perturb_ns = keys.perturb.map(Period::get);
        if let Some(period_ns) = perturb_ns
            && period_ns % SECOND != 0
        {
            problems.add(|| Problem::new(join(path, "perturb"), TIME.display(period_ns), "whole seconds, as in tc"));
            return None;
        }
        let red = problems.checked(early_detection(keys, path))?;
        Some(Self {
            limit_packets,
            depth_packets,
            divisor: keys.divisor,
            flows,
            quantum_bytes: keys.quantum.get_u32(),
            perturb_s: perturb_ns.map(|period_ns| (period_ns / SECOND) as u32),
            headdrop: keys.headdrop,
            red,
        })
    }

    fn limit(&self) -> Limit {
        Limit::Packets(self.limit_packets.into())
    }

    /// The kernel reduces a given limit to what the queues hold, and the number of queues to that limit. So the default
    /// limit is not passed on if this would change anything.
    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let Self { limit_packets, depth_packets, flows, .. } = *self;
        let stays = limit_packets <= depth_packets * flows && flows <= limit_packets;
        let mut settings = Vec::new();
        settings.extend(stays.then_some(("limit", Setting::Number(limit_packets.into()))));
        settings.push(("quantum", Setting::Number(self.quantum_bytes.into())));
        settings.push(("depth", Setting::Number(depth_packets.into())));
        settings.push(("flows", Setting::Number(flows.into())));
        settings.push(("divisor", Setting::Number(self.divisor.into())));
        settings.extend(self.perturb_s.map(|period_s| ("perturb", Setting::Number(period_s.into()))));
        settings.extend(self.headdrop.then_some(("headdrop", Setting::Flag)));
        if let Some(red) = &self.red {
            settings.push(("redflowlimit", Setting::Number(red.limit_bytes)));
            settings.push(("min", Setting::Number(red.min_bytes)));
            settings.push(("max", Setting::Number(red.max_bytes)));
            settings.push(("avpkt", Setting::Number(red.avpkt_bytes.into())));
            settings.push(("burst", Setting::Number(red.burst_packets.into())));
            settings.push(("probability", Setting::Probability(red.probability)));
            settings.extend(red.ecn.then_some(("ecn", Setting::Flag)));
            settings.extend(red.harddrop.then_some(("harddrop", Setting::Flag)));
        }
        settings
    }

    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let numbers = (2..=200_u32, 1..=MOST_DEPTH, 0..=10_u32, 2..=200_u32);
        let rest = (64..=5000_u32, prop::option::of(1..=10_u32), any::<bool>());
        (numbers, rest, prop::option::of(any_red()))
            .prop_map(|((limit, depth_packets, divisor_log, flows), (quantum_bytes, perturb_s, headdrop), red)| {
                let divisor = 1 << divisor_log;
                let depth_packets = if divisor == 1 { depth_packets.max(2) } else { depth_packets };
                let flows = flows.min(divisor);
                let limit_packets = limit.min(flows * depth_packets);
                let flows = flows.min(limit_packets);
                Self { limit_packets, depth_packets, divisor, flows, quantum_bytes, perturb_s, headdrop, red }
            })
            .boxed()
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{number, packets, size, time};
        let mut keys = vec![
            ("limit", packets(self.limit_packets)),
            ("depth", packets(self.depth_packets)),
            ("divisor", number(self.divisor)),
            ("flows", number(self.flows)),
            ("quantum", size(self.quantum_bytes)),
            ("headdrop", self.headdrop.into()),
        ];
        keys.extend(self.perturb_s.map(|period_s| ("perturb", time(u64::from(period_s) * SECOND))));
        if let Some(red) = &self.red {
            keys.extend([
                ("redflowlimit", size(red.limit_bytes)),
                ("min", size(red.min_bytes)),
                ("max", size(red.max_bytes)),
                ("avpkt", size(red.avpkt_bytes)),
                ("burst", number(red.burst_packets)),
                ("probability", red.probability.into()),
                ("ecn", red.ecn.into()),
                ("harddrop", red.harddrop.into()),
            ]);
        }
        keys
    }
}

/// The parameters of RED if any is given, with those that `tc` derives.
fn early_detection(keys: &Keys, path: &str) -> Result<Option<FlowRed>, Box<Problem>> {
    let Some(limit) = keys.redflowlimit else {
        let given = keys.min.is_some()
            || keys.max.is_some()
            || keys.avpkt.is_some()
            || keys.burst.is_some()
            || keys.probability.is_some()
            || keys.ecn
            || keys.harddrop;
        let missing = || Problem::missing(join(path, "redflowlimit"), "a limit, such as 100kb, for RED in each queue");
        return if given { Err(Box::new(missing())) } else { Ok(None) };
    };
    let limit_bytes = limit.get();
    let max_bytes = keys.max.map_or(limit_bytes / 4, ByteLimit::get);
    let min_bytes = keys.min.map_or(max_bytes / 3, ByteLimit::get);
    let avpkt_bytes = keys.avpkt.unwrap_or_else(avpkt).get_u32();
    let red = FlowRed {
        limit_bytes,
        min_bytes,
        max_bytes,
        avpkt_bytes,
        burst_packets: keys.burst.unwrap_or_else(|| red::derived_burst(min_bytes, max_bytes, avpkt_bytes)),
        probability: keys.probability.unwrap_or_else(red::probability),
        ecn: keys.ecn,
        harddrop: keys.harddrop,
    };
    let thresholds = Thresholds {
        dimension: &SIZE,
        limit: ("redflowlimit", limit_bytes),
        min: (min_bytes, keys.min.is_some()),
        max: (max_bytes, keys.max.is_some()),
    };
    if let Some(problem) = thresholds.contradiction(path) {
        return Err(Box::new(problem));
    }
    match red.curve() {
        Ok(_) => Ok(Some(red)),
        Err(error) => {
            let burst = shown(&red.burst_packets, keys.burst.is_some());
            Err(Box::new(red::refused(error, burst, red.probability, None, path)))
        }
    }
}

/// Thresholds in order, and a burst for which there is an averaging constant that the kernel accepts.
#[cfg(feature = "testing")]
fn any_red() -> impl proptest::strategy::Strategy<Value = FlowRed> {
    use proptest::prelude::*;
    let thresholds = (3..=20_u32, 1..=100_000_u64, 0..=100_000_u64);
    let averaging = (100..=2000_u32, 0..=50_u32);
    (thresholds, averaging, 0.001..=1.0_f64, any::<bool>(), any::<bool>())
        .prop_map(|((min_packets, span, room), (avpkt_bytes, extra_burst), probability, ecn, harddrop)| {
            let min_bytes = u64::from(min_packets * avpkt_bytes);
            FlowRed {
                limit_bytes: min_bytes + span + room,
                min_bytes,
                max_bytes: min_bytes + span,
                avpkt_bytes,
                burst_packets: min_packets + 1 + extra_burst,
                probability,
                ecn,
                harddrop,
            }
        })
        .prop_filter("the kernel refuses it", |red| red.curve().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(limit_packets: u32, depth_packets: u32, flows: u32) -> Vec<&'static str> {
        let sfq = Sfq {
            limit_packets,
            depth_packets,
            divisor: 1024,
            flows,
            quantum_bytes: 1514,
            perturb_s: None,
            headdrop: false,
            red: None,
        };
        sfq.settings().into_iter().map(|(name, _)| name).collect()
    }

    /// The kernel would make 127 queues of the default's 128, if it were given the default limit.
    #[test]
    fn a_limit_that_the_kernel_would_cut_down_is_not_passed_on() {
        assert_eq!(settings(127, 127, 128), ["quantum", "depth", "flows", "divisor"]);
        assert_eq!(settings(127, 10, 12), ["quantum", "depth", "flows", "divisor"], "120 packets fit");
        assert_eq!(settings(127, 127, 127), ["limit", "quantum", "depth", "flows", "divisor"]);
        assert_eq!(settings(1000, 127, 128), ["limit", "quantum", "depth", "flows", "divisor"]);
    }
}
