//! `choke`: CHOKe, choose and keep or kill (`sch_choke`). Omitted parameters are derived as iproute2's `tc` derives them
//! (`tc/q_choke.c`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::red::{self, PacketSize, Probability, Thresholds, Wanted, shown};
use super::{Aqm, Averaging, AveragingError, Counts, Discipline, Limit, Reason, Setting, counted, words};
use crate::error::{Problem, Problems};
use crate::file::Rate;
use crate::quantity::{Packets, Quantity};
use crate::units::PACKETS;

/// The kernel's table has at most 2^17 slots, one of which stays free (`CHOKE_MAX_QUEUE`).
type Limited = Quantity<Packets, 1, { (1 << 17) - 1 }>;

/// CHOKe, as Linux' sch_choke: random early detection that also compares each arriving packet with a random one in the
/// queue, and drops both if they are of the same flow.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Hard limit of the queue.
    #[schemars(example = &"1000p")]
    limit: Limited,
    /// Rate at which the average decays while the queue is empty. As in tc, it must be given.
    #[schemars(example = &"10mbit")]
    bandwidth: Rate,
    /// Average queue at which packets are compared, and dropped at random. Default: a third of `max`.
    min: Option<Limited>,
    /// Average queue above which every packet is dropped. Default: a quarter of `limit`.
    max: Option<Limited>,
    /// Average packet size. It sets how fast the average decays while the queue is empty.
    #[serde(default = "avpkt")]
    avpkt: PacketSize,
    /// Size of a burst, in packets, that passes without drops. Default: (2 `min` + `max`) / 3.
    #[schemars(range(min = 1, max = 1_000_000))]
    burst: Option<u32>,
    /// Maximum probability of an early drop.
    #[serde(default = "red::probability")]
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    probability: Probability,
    /// Mark ECN-capable packets instead of dropping them, except those of the same flow as the packet drawn.
    #[serde(default)]
    ecn: bool,
}

/// `tc`'s default, for `choke` and `sfq`.
pub(super) fn avpkt() -> PacketSize {
    PacketSize::new(1000)
}

/// Parameters of `choke`, as `tc choke` names them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Choke {
    /// Hard limit of the queue.
    pub limit_packets: u32,
    /// Average queue at which packets are compared, and dropped at random.
    pub min_packets: u32,
    /// Average queue above which every packet is dropped.
    pub max_packets: u32,
    /// Size of an average packet.
    pub avpkt_bytes: u32,
    /// Packets of burst allowed; with `min` it sets the averaging constant.
    pub burst_packets: u32,
    /// Highest marking probability, in (0, 1].
    pub probability: f64,
    /// Rate used to age the average over idle times.
    pub bandwidth_bps: u64,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Choke {
    /// How the kernel averages the queue, which it counts in packets.
    ///
    /// # Errors
    /// Parameters that `tc` or the kernel refuses.
    pub fn averaging(&self) -> Result<Averaging, AveragingError> {
        let wanted = Wanted {
            min: self.min_packets.into(),
            max: self.max_packets.into(),
            unit_bytes: self.avpkt_bytes,
            avpkt_bytes: self.avpkt_bytes,
            burst_packets: self.burst_packets,
            probability: self.probability,
        };
        wanted.averaging(self.bandwidth_bps)
    }
}

impl Reason {
    /// Dropped by CHOKe: of two packets of the same flow, one arrived and one was drawn from the queue.
    pub const CHOKE_MATCHED: Self = Self::drop("choke_matched");
}

impl Discipline for Choke {
    type Keys = Keys;

    const PURPOSE: &'static str =
        "RED that also drops pairs of packets of one flow: limits unresponsive flows without a flow table.";
    const SOURCE: &'static str = "net/sched/sch_choke.c; R. Pan, B. Prabhakar and K. Psounis, CHOKe, 2000";
    const MODULE: &'static str = "sch_choke";
    const SAMPLE: &'static str = "choke limit 100 bandwidth 10mbit";
    const AQM: Option<Aqm> = Some(Aqm::Length);
    const REASONS: &'static [Reason] = &[
        Reason::OVERLIMIT,
        Reason::CHOKE_MATCHED,
        Reason::RED_EARLY,
        Reason::RED_FORCED,
        Reason::RED,
        Reason::RED_MARK,
    ];
    const COUNTED: &'static [Reason] = &[Reason::OVERLIMIT, Reason::CHOKE_MATCHED, Reason::RED, Reason::RED_MARK];
    const OWN_WORDS: usize = 5;

    /// Derives omitted parameters as iproute2's tc does, and refuses what tc or the kernel refuses.
    fn resolve(keys: &Keys, _: u32, path: &str, problems: &mut Problems) -> Option<Self> {
        let limit_packets = keys.limit.get_u32();
        let max_packets = keys.max.map_or(limit_packets / 4, Limited::get_u32);
        let min_packets = keys.min.map_or(max_packets / 3, Limited::get_u32);
        let choke = Self {
            limit_packets,
            min_packets,
            max_packets,
            avpkt_bytes: keys.avpkt.get_u32(),
            burst_packets: keys.burst.unwrap_or_else(|| red::derived_burst(min_packets.into(), max_packets.into(), 1)),
            probability: keys.probability,
            bandwidth_bps: keys.bandwidth.get(),
            ecn: keys.ecn,
        };
        match contradiction(&choke, keys, path) {
            None => Some(choke),
            Some(problem) => {
                problems.add(|| problem);
                None
            }
        }
    }

    fn limit(&self) -> Limit {
        Limit::Packets(self.limit_packets.into())
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let mut settings = vec![
            ("limit", Setting::Number(self.limit_packets.into())),
            ("min", Setting::Number(self.min_packets.into())),
            ("max", Setting::Number(self.max_packets.into())),
            ("avpkt", Setting::Number(self.avpkt_bytes.into())),
            ("burst", Setting::Number(self.burst_packets.into())),
            ("probability", Setting::Probability(self.probability)),
            ("bandwidth", Setting::Rate(self.bandwidth_bps)),
        ];
        settings.extend(self.ecn.then_some(("ecn", Setting::Flag)));
        settings
    }

    /// `struct tc_choke_xstats`: early (drops because of the average), pdrop (drops at the limit), other, marked, and
    /// matched, which counts pairs.
    fn counts(_drops: u64, own: &[u32]) -> Counts {
        let [early, limit, marked, pairs] = words(own, [0, 1, 3, 4]);
        counted([limit, 2 * pairs, early, marked])
    }

    /// Thresholds in order, and a burst for which there is an averaging constant that the kernel accepts.
    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        let thresholds = (2..=50_u32, 1..=200_u32, 0..=200_u32);
        let averaging = (100..=2000_u32, 0..=50_u32);
        (thresholds, averaging, 0.001..=1.0_f64, 1_000_000..=50_000_000_u64, any::<bool>())
            .prop_map(|((min_packets, span, room), (avpkt_bytes, extra_burst), probability, bandwidth_bps, ecn)| Self {
                limit_packets: min_packets + span + room,
                min_packets,
                max_packets: min_packets + span,
                avpkt_bytes,
                burst_packets: min_packets + 1 + extra_burst,
                probability,
                bandwidth_bps,
                ecn,
            })
            .prop_filter("the kernel refuses it", |choke| choke.averaging().is_ok())
            .boxed()
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{number, packets, rate, size};
        vec![
            ("limit", packets(self.limit_packets)),
            ("bandwidth", rate(self.bandwidth_bps)),
            ("min", packets(self.min_packets)),
            ("max", packets(self.max_packets)),
            ("avpkt", size(self.avpkt_bytes)),
            ("burst", number(self.burst_packets)),
            ("probability", self.probability.into()),
            ("ecn", self.ecn.into()),
        ]
    }
}

fn contradiction(choke: &Choke, keys: &Keys, path: &str) -> Option<Problem> {
    let thresholds = Thresholds {
        dimension: &PACKETS,
        limit: ("limit", choke.limit_packets.into()),
        min: (choke.min_packets.into(), keys.min.is_some()),
        max: (choke.max_packets.into(), keys.max.is_some()),
    };
    thresholds.contradiction(path).or_else(|| {
        let error = choke.averaging().err()?;
        let burst = shown(&choke.burst_packets, keys.burst.is_some());
        Some(red::refused(error, burst, choke.probability, Some(keys.bandwidth), path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three drops because of the average, one at the limit, five marks, two pairs.
    #[test]
    fn a_match_is_counted_once_and_drops_two_packets() {
        let reasons_and_counts: Vec<_> = Choke::COUNTED.iter().zip(Choke::counts(8, &[3, 1, 0, 5, 2])).collect();
        let expected =
            [(&Reason::OVERLIMIT, 1), (&Reason::CHOKE_MATCHED, 4), (&Reason::RED, 3), (&Reason::RED_MARK, 5)];
        assert_eq!(reasons_and_counts, expected);
    }
}
