//! Links in a line, with any ports.

use proptest::prelude::*;
use proptest::sample::select;

use crate::model::{
    Accounting, Boost, ByteLimits, Cellular, Completion, Encapsulation, Faults, Link, NodeIndex, Outages, Port,
    RateSchedule, RateStep, Ring, Variation, Walk,
};
use crate::qdisc::{Cells, Distribution, Loss, Qdisc, Reorder};
use crate::sizes::FRAME_BYTES;
use crate::units::{MS, US};

/// Links that join node 0 with 1, 1 with 2 and so on.
pub(super) fn line(links: usize) -> impl Strategy<Value = Vec<Link>> {
    let ports = prop::collection::vec((port(), port()), links);
    ports.prop_map(|ports| {
        let link = |(index, (forward, reverse)): (NodeIndex, (Port, Port))| Link {
            name: format!("l{index}"),
            ends: [index, index + 1],
            forward,
            reverse,
        };
        (0..).zip(ports).map(link).collect()
    })
}

fn port() -> impl Strategy<Value = Port> {
    let wire = || (1..=50_000_u64, encapsulation(), prop::option::weighted(0.2, faults()));
    let varying = (prop::option::weighted(0.2, boost()), prop::option::weighted(0.15, walk()));
    let rated = (wire(), rate(), Qdisc::any(), varying);
    prop_oneof![
        1 => wire().prop_map(|(delay_us, encapsulation, faults)| Port {
            rate: None,
            delay_ns: delay_us * US,
            encapsulation,
            queue: Qdisc::default(),
            ring: None,
            variation: None,
            boost: None,
            stacked: None,
            faults,
        }),
        4 => rated.prop_map(|((delay_us, encapsulation, faults), rate, queue, (boost, walk))| Port {
            boost: boost.filter(|boost| walk.is_none() && is_constant_below(rate.as_ref(), boost)),
            rate: walk.as_ref().map_or(rate, |walk| RateSchedule::constant(walk.mean_bps)),
            variation: walk.map(Variation::Walk),
            delay_ns: delay_us * US,
            encapsulation,
            queue,
            faults,
            ring: None,
            stacked: None,
        }),
    ]
}

/// Link layers that only add bytes, and others.
fn encapsulation() -> impl Strategy<Value = Encapsulation> {
    let any = (0..=40_u32, 0..=84_u32, select(&Cells::ALL));
    let any = any.prop_map(|(overhead_bytes, mpu_bytes, cells)| Encapsulation { overhead_bytes, mpu_bytes, cells });
    prop_oneof![3 => (0..=40_u32).prop_map(Encapsulation::adding), 1 => any]
}

/// Rings of sizes that drivers have, and of any other size.
pub(super) fn ring() -> impl Strategy<Value = Ring> {
    let size = prop_oneof![3 => select(vec![64, 128, 256]), 1 => 1..=65_536_u32];
    let completion = prop_oneof![
        2 => Just(Completion::default()),
        1 => (2..=64_u32).prop_map(Completion::Packets),
        1 => (1..=2000_u64).prop_map(|us| Completion::AfterNs(us * US)),
    ];
    (size, byte_limits(), completion, any::<bool>()).prop_map(|(size_packets, bql, completion, virtio)| {
        let accounting =
            if virtio && size_packets >= Accounting::VIRTIO_LEAST { Accounting::Virtio } else { Accounting::Packets };
        Ring { size_packets, bql, completion, accounting }
    })
}

/// The discipline of a stacked interface, on a few ports.
pub(super) fn stacked() -> impl Strategy<Value = Option<Qdisc>> {
    let any = Qdisc::any().prop_map(|qdisc| {
        let holds_back = qdisc.all().into_iter().any(|qdisc| qdisc.kind().holds_back);
        (!holds_back).then_some(qdisc)
    });
    prop_oneof![3 => Just(None), 1 => any]
}

fn byte_limits() -> impl Strategy<Value = Option<ByteLimits>> {
    let set = (0..=2000_u64, 0..=100_000_u64, 0..=1_000_000_u64).prop_map(|(hold_ms, min_bytes, more_bytes)| {
        ByteLimits { hold_ns: hold_ms * MS, min_bytes, max_bytes: min_bytes + more_bytes }
    });
    prop_oneof![2 => Just(None), 2 => Just(Some(ByteLimits::DEFAULT)), 1 => set.prop_map(Some)]
}

/// Boosts of up to 100 Mbit/s and 1 MB.
fn boost() -> impl Strategy<Value = Boost> {
    let bytes = u64::from(FRAME_BYTES)..=1_000_000;
    (500_000..=100_000_000_u64, bytes).prop_map(|(rate_bps, bytes)| Boost { rate_bps, bytes })
}

/// Losses, jitter and reordering; the link has a delay.
fn faults() -> impl Strategy<Value = Faults> {
    let part = || (1..=1000_u32).prop_map(|part| f64::from(part) / 1000.0);
    let loss = prop_oneof![
        [part(), part()].prop_map(|[loss, correlation]| Loss::Random([loss / 20.0, correlation])),
        [part(), part(), part(), part()].prop_map(|[a, b, c, d]| Loss::Gemodel([a / 20.0, b, c, d / 20.0])),
    ];
    let reorder = (part(), part(), 1..10_u32);
    let reorder = reorder.prop_map(|(probability, correlation, gap)| Reorder { probability, correlation, gap });
    let distribution = select(vec![Distribution::Uniform, Distribution::Normal, Distribution::ParetoNormal]);
    let jitter = (1..=20_000_u64, part(), distribution, any::<bool>());
    let parts = (prop::option::of(loss), prop::option::of(jitter), prop::option::of(reorder));
    parts.prop_map(|(loss, jitter, reorder)| {
        let (jitter_us, correlation, distribution, keep_order) =
            jitter.unwrap_or((0, 0.0, Distribution::Uniform, false));
        let reorder = reorder.filter(|_| !keep_order);
        Faults { loss, jitter_ns: jitter_us * US, correlation, distribution, keep_order, reorder }
    })
}

/// Random walks of up to 50 Mbit/s.
fn walk() -> impl Strategy<Value = Walk> {
    let times = (1..=1000_u64, 1..=5000_u64);
    let outages = prop::option::of(
        (1..=2000_u64, 1..=500_u64)
            .prop_map(|(every_ms, lasts_ms)| Outages { every_ns: every_ms * MS, lasts_ns: lasts_ms * MS }),
    );
    let walk = (500_000..=20_000_000_u64, 500_000..=20_000_000_u64, times, 20_000_000..=50_000_000_u64, outages);
    let walk = walk.prop_map(|(mean_bps, deviation_bps, (every_ms, coherence_ms), max_bps, outages)| Walk {
        preset: None,
        mean_bps,
        deviation_bps,
        coherence_ns: coherence_ms * MS,
        every_ns: every_ms * MS,
        max_bps,
        outages,
    });
    let presets = [Cellular::EvdoUp, Cellular::UmtsDown, Cellular::LteDown];
    prop_oneof![3 => walk, 1 => select(presets.to_vec()).prop_map(Cellular::walk)]
}

fn is_constant_below(rate: Option<&RateSchedule>, boost: &Boost) -> bool {
    rate.is_some_and(|rate| matches!(rate.steps(), [only] if only.bits_per_second < boost.rate_bps))
}

/// Up to four rates, each for 1 ms to 2 s.
fn rate() -> impl Strategy<Value = Option<RateSchedule>> {
    prop::collection::vec((1..=2000_u64, 500_000..=50_000_000_u64), 1..=4).prop_map(|steps| {
        let mut from_ns = 0;
        let step = |(lasts_ms, bits_per_second)| {
            let step = RateStep { from_ns, bits_per_second };
            from_ns += lasts_ms * MS;
            step
        };
        RateSchedule::new(steps.into_iter().map(step).collect())
    })
}
