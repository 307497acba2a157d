//! `cake`: common applications kept enhanced (`sch_cake`; Høiland-Jørgensen, Täht and Morton, "Piece of CAKE",
//! arXiv:1804.07617). Keys and defaults are those of tc-cake(8); what `tc` expresses by words alone, such as
//! `dual-srchost`, is the value of a key, named as `tc -j` names it.
//!
//! Left out: `fwmark` and filters, because packets have no firewall marks here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Aqm, Counts, Discipline, Limit, Queues, Reason, Setting, Shaper, counted};
use crate::error::{Problem, Problems};
use crate::file::Rate;
use crate::model::Port;
use crate::path::join;
use crate::quantity::{Quantity, Sizes, Times};
use crate::sizes::{ETHERNET_HEADER_BYTES, FRAME_BYTES};
use crate::units::{HOUR, MS, US};

mod framing;
mod stats;
mod words;

pub use framing::Framing;
pub(crate) use framing::FramingWords;
pub use words::{AckFilter, Cells, Diffserv, FlowMode, LinkLayer, Preset};

/// Round-trip time, which is COBALT's interval.
type Rtt = Quantity<Times, US, HOUR>;
/// Limit of the memory.
type Memory = Quantity<Sizes, 1, { u32::MAX as u64 }>;

const DEFAULT_RTT_NS: u64 = 100 * MS;
/// The most packets of a full frame's size that the kernel lets wait, in memory (`sch->limit`).
const MOST_PACKETS: u64 = 10240;
/// With a bandwidth, the buffer holds at least this.
const LEAST_BUFFER_BYTES: u32 = 4 << 20;

/// Common applications kept enhanced, as Linux' sch_cake: fair queues for flows and hosts, an AQM for each, tins by code
/// point, and a shaper.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Rate of the shaper. Default: unlimited.
    #[schemars(example = &"8mbit")]
    bandwidth: Option<Rate>,
    /// Set the rate of the shaper by the rate at which packets arrive.
    #[serde(default)]
    autorate_ingress: bool,
    /// Round-trip time that the AQM assumes; its target is a twentieth of it. Default: 100ms.
    #[schemars(example = &"50ms")]
    rtt: Option<Rtt>,
    /// Round-trip time by name, instead of rtt.
    #[schemars(example = &"metro")]
    preset: Option<Preset>,
    /// How code points choose a tin.
    #[serde(default)]
    diffserv: Diffserv,
    /// Flow isolation: what has a queue of its own, and what shares the rate fairly.
    #[serde(default)]
    flowmode: FlowMode,
    /// Look up the addresses behind a NAT. It changes nothing in the simulator, in which no node translates addresses.
    #[serde(default)]
    nat: bool,
    /// Clear the code point of every packet (wash).
    #[serde(default)]
    wash: bool,
    /// Count dropped packets as sent, for a shaper behind the bottleneck.
    #[serde(default)]
    ingress: bool,
    /// Drop acknowledgements in the queue that a later one supersedes.
    #[serde(default)]
    ack_filter: AckFilter,
    /// Split packets that segmentation offload made large.
    #[serde(default = "split_gso")]
    split_gso: bool,
    /// Limit of the memory that queued packets take. Default: what arrives in four round-trip times, at least 4 MiB and
    /// at most 10240 full packets.
    #[schemars(example = &"1mb")]
    memlimit: Option<Memory>,
    /// The framing of the line behind this port by a keyword of tc, or by several in order, such as pppoe-ptm and
    /// ether-vlan. If the port's own link has an overhead, the queue and the shaper already count it.
    #[serde(default)]
    #[schemars(example = &"docsis", example = json!(["pppoe-ptm", "ether-vlan"]))]
    framing: FramingWords,
    /// Count the lengths that Linux counts instead of those of IP packets. Default: only without framing and overhead,
    /// or with the keyword raw.
    #[schemars(example = false)]
    raw: Option<bool>,
    /// Bytes that the link adds to each packet, or one more framing keyword. Default: as framing says, or 0.
    #[schemars(example = 18, example = &"docsis")]
    overhead: Option<OverheadKey>,
    /// The cells of the link. Default: as framing says, or noatm.
    #[schemars(example = &"ptm")]
    atm: Option<Cells>,
    /// The shortest packet on the link, overhead included. Default: as framing says, or 0.
    #[schemars(range(min = 0, max = 256), example = 64)]
    mpu: Option<u16>,
}

/// Bytes, or a keyword.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum OverheadKey {
    Bytes(#[schemars(range(min = -64, max = 256))] i16),
    Word(Framing),
}

fn split_gso() -> bool {
    true
}

/// Parameters of `cake`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cake {
    /// Rate of the shaper; `None`: unlimited.
    pub bandwidth_bps: Option<u64>,
    /// The shaper follows the rate of arrivals.
    pub autorate_ingress: bool,
    /// COBALT's interval.
    pub rtt_ns: u64,
    /// How code points choose a tin.
    pub diffserv: Diffserv,
    /// Flow isolation.
    pub flowmode: FlowMode,
    /// Look up the addresses behind a NAT.
    pub nat: bool,
    /// Clear code points.
    pub wash: bool,
    /// Count dropped packets as sent.
    pub ingress: bool,
    /// Which acknowledgements to drop.
    pub ack_filter: AckFilter,
    /// Split packets of several segments.
    pub split_gso: bool,
    /// Limit of the memory that queued packets take, if it is not the default.
    pub memlimit_bytes: Option<u32>,
    /// How long packets are on the link.
    pub link_layer: LinkLayer,
}

impl Default for Cake {
    /// tc-cake(8).
    fn default() -> Self {
        Self {
            bandwidth_bps: None,
            autorate_ingress: false,
            rtt_ns: DEFAULT_RTT_NS,
            diffserv: Diffserv::default(),
            flowmode: FlowMode::default(),
            nat: false,
            wash: false,
            ingress: false,
            ack_filter: AckFilter::default(),
            split_gso: true,
            memlimit_bytes: None,
            link_layer: LinkLayer::default(),
        }
    }
}

impl Reason {
    /// Dropped by cake's AQM, COBALT.
    pub const COBALT: Self = Self::drop("cobalt");
    /// Dropped by cake, by COBALT or over its limit: Linux counts these together.
    pub const CAKE: Self = Self::drop("cake");
    /// An acknowledgement that cake dropped because a later one supersedes it.
    pub const ACK_FILTER: Self = Self::drop("ack_filter");
    /// Marked by COBALT instead of dropped.
    pub const COBALT_MARK: Self = Self::mark("cobalt_mark");
}

impl Cake {
    /// The interval as `tc` passes it, in microseconds.
    pub fn interval_us(&self) -> u64 {
        (self.rtt_ns / US).max(1)
    }

    /// The target that `tc` derives from the interval, in microseconds.
    pub fn target_us(&self) -> u64 {
        (self.interval_us() / 20).max(1)
    }

    /// Limit of the memory that queued packets take, at this rate of the shaper in bytes per second
    /// (`cake_reconfigure`).
    pub fn buffer_limit(&self, bytes_per_second: u64) -> u64 {
        let most = MOST_PACKETS * u64::from(FRAME_BYTES);
        match self.memlimit_bytes {
            Some(limit) => limit.into(),
            None if bytes_per_second > 0 => {
                let four_rtts = bytes_per_second.wrapping_mul(self.interval_us()) / 250_000;
                // The kernel compares the lower 32 bits.
                u64::from((four_rtts as u32).max(LEAST_BUFFER_BYTES)).min(most)
            }
            None => most,
        }
    }

    /// The shaper's rate as `tc` passes it; 0: unlimited.
    pub fn bytes_per_second(&self) -> u64 {
        self.bandwidth_bps.unwrap_or(0) / 8
    }
}

impl Discipline for Cake {
    type Keys = Keys;

    const PURPOSE: &'static str = "Shaper, fairness of hosts and flows, priorities and AQM in one: for home routers.";
    const SOURCE: &'static str =
        "net/sched/sch_cake.c; T. Høiland-Jørgensen, D. Täht and J. Morton, Piece of CAKE, 2018";
    const MODULE: &'static str = "sch_cake";
    const SAMPLE: &'static str = "cake";
    const QUEUES: Queues = Queues::PerFlow;
    const AQM: Option<Aqm> = Some(Aqm::Delay);
    const KERNEL_DEFAULTS: bool = true;
    const REASONS: &'static [Reason] =
        &[Reason::OVERLIMIT, Reason::COBALT, Reason::CAKE, Reason::ACK_FILTER, Reason::COBALT_MARK];
    const COUNTED: &'static [Reason] = &[Reason::CAKE, Reason::ACK_FILTER, Reason::COBALT_MARK];
    const HOLDS_BACK: bool = true;
    const OWN_WORDS: usize = stats::LEAST_WORDS;

    fn resolve(keys: &Keys, _: u32, path: &str, problems: &mut Problems) -> Option<Self> {
        let rtt_ns = match (keys.rtt, keys.preset) {
            (Some(rtt), None) => rtt.get(),
            (None, Some(preset)) => preset.rtt_ns(),
            (None, None) => DEFAULT_RTT_NS,
            (Some(_), Some(_)) => {
                problems.add(|| Problem::new(join(path, "preset"), "a preset together with rtt", "one of the two"));
                return None;
            }
        };
        let Some(link_layer) = link_layer(keys) else {
            let found = "an overhead of more than 256 bytes";
            problems.add(|| Problem::new(join(path, "framing"), found, "an overhead from -64 to 256 bytes"));
            return None;
        };
        Some(Self {
            bandwidth_bps: keys.bandwidth.map(|rate| rate.get()),
            autorate_ingress: keys.autorate_ingress,
            rtt_ns,
            diffserv: keys.diffserv,
            flowmode: keys.flowmode,
            nat: keys.nat,
            wash: keys.wash,
            ingress: keys.ingress,
            ack_filter: keys.ack_filter,
            split_gso: keys.split_gso,
            memlimit_bytes: keys.memlimit.map(|limit| limit.get_u32()),
            link_layer,
        })
    }

    /// Of memory. Packets take more of it than they have bytes.
    fn limit(&self) -> Limit {
        Limit::Bytes(self.buffer_limit(self.bytes_per_second()))
    }

    fn caution(&self, port: &Port) -> Option<String> {
        let shapes = self.bandwidth_bps.is_some() || self.autorate_ingress;
        let counted = |frame_bytes| self.link_layer.counted_bytes(frame_bytes).into();
        (shapes && self.link_layer != LinkLayer::default())
            .then(|| port.encapsulation.counted_otherwise("cake", counted))
            .flatten()
    }

    /// Not if the shaper counts fewer bytes than a frame has, or follows the arrivals.
    fn shaper(&self) -> Option<Shaper> {
        let least_overhead = if self.link_layer.raw { 0 } else { ETHERNET_HEADER_BYTES as i16 };
        let counts_frames = self.link_layer.overhead_bytes >= least_overhead && !self.autorate_ingress;
        let rate_bps = self.bandwidth_bps.filter(|_| counts_frames)?;
        Some(Shaper { rate_bps, burst_bytes: 2 * u64::from(FRAME_BYTES) })
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        let flag = |name| (name, Setting::Flag);
        let mut settings = match self.bandwidth_bps {
            Some(rate) => vec![("bandwidth", Setting::Rate(rate))],
            None => vec![flag("unlimited")],
        };
        settings.extend(self.autorate_ingress.then_some(flag("autorate-ingress")));
        settings.push(("rtt", Setting::Time(self.rtt_ns)));
        settings.extend([flag(self.diffserv.word()), flag(self.flowmode.word())]);
        // Kernels without connection tracking refuse `nonat`, too.
        settings.extend(self.nat.then_some(flag("nat")));
        settings.push(flag(if self.wash { "wash" } else { "nowash" }));
        settings.push(flag(if self.ingress { "ingress" } else { "egress" }));
        settings.push(flag(self.ack_filter.word()));
        settings.push(flag(if self.split_gso { "split-gso" } else { "no-split-gso" }));
        settings.extend(self.memlimit_bytes.map(|limit| ("memlimit", Setting::Number(limit.into()))));
        settings.extend(self.link_layer.settings());
        settings
    }

    /// The statistics of the tins distinguish acknowledgements and marks from other drops.
    fn counts(drops: u64, own: &[u32]) -> Counts {
        let sums = stats::sums(own);
        counted([drops.saturating_sub(sums.ack_drops), sums.ack_drops, sums.marks])
    }

    #[cfg(feature = "testing")]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::prelude::*;
        use proptest::sample::select;
        let flags = any::<[bool; 6]>();
        let modes = (select(&Diffserv::ALL), select(&FlowMode::ALL), select(&AckFilter::ALL));
        let bandwidth = prop::option::of(300_000..=50_000_000_u64);
        let memlimit = prop::option::weighted(0.3, 1..=300_000_u32);
        let link_layer = (0..=40_i16, select(&Cells::ALL), 0..=84_u16);
        (bandwidth, 1..=500_000_u64, modes, flags, memlimit, link_layer)
            .prop_map(|(bandwidth_bps, rtt_us, modes, flags, memlimit_bytes, (overhead_bytes, cells, mpu_bytes))| {
                let [autorate_ingress, nat, wash, ingress, split_gso, raw] = flags;
                Self {
                    bandwidth_bps,
                    autorate_ingress: autorate_ingress && bandwidth_bps.is_some(),
                    rtt_ns: rtt_us * US,
                    diffserv: modes.0,
                    flowmode: modes.1,
                    nat,
                    wash,
                    ingress,
                    ack_filter: modes.2,
                    split_gso,
                    memlimit_bytes,
                    link_layer: LinkLayer { raw, overhead_bytes, cells, mpu_bytes },
                }
            })
            .boxed()
    }

    #[cfg(feature = "testing")]
    fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{rate, size, time};
        let layer = &self.link_layer;
        let mut keys = vec![
            ("autorate_ingress", self.autorate_ingress.into()),
            ("rtt", time(self.rtt_ns)),
            ("diffserv", self.diffserv.word().into()),
            ("flowmode", self.flowmode.word().into()),
            ("nat", self.nat.into()),
            ("wash", self.wash.into()),
            ("ingress", self.ingress.into()),
            ("ack_filter", self.ack_filter.word().into()),
            ("split_gso", self.split_gso.into()),
            ("raw", layer.raw.into()),
            ("overhead", i64::from(layer.overhead_bytes).into()),
            ("atm", layer.cells.word().into()),
            ("mpu", i64::from(layer.mpu_bytes).into()),
        ];
        keys.extend(self.bandwidth_bps.map(|bps| ("bandwidth", rate(bps))));
        keys.extend(self.memlimit_bytes.map(|bytes| ("memlimit", size(bytes))));
        keys
    }
}

/// The link layer as the keys say, in which a word that is an `overhead` comes after those of `framing`; `None` if the
/// words add up to too much.
fn link_layer(keys: &Keys) -> Option<LinkLayer> {
    let mut words = keys.framing.as_slice().to_vec();
    let bytes = match keys.overhead {
        Some(OverheadKey::Bytes(bytes)) => Some(bytes),
        Some(OverheadKey::Word(word)) => {
            words.push(word);
            None
        }
        None => None,
    };
    let framed = match Framing::read(&words) {
        Some(framed) => framed,
        None if bytes.is_some() => Framing::read(&[])?,
        None => return None,
    };
    let overhead_bytes = bytes.or(framed.overhead_bytes);
    Some(LinkLayer {
        raw: keys.raw.unwrap_or(framed.raw || overhead_bytes.is_none()),
        overhead_bytes: overhead_bytes.unwrap_or(0),
        cells: keys.atm.or(framed.cells).unwrap_or(Cells::None),
        mpu_bytes: keys.mpu.or(framed.mpu_bytes).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests;
