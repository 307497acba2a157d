//! Links in a line, with any ports.

use proptest::prelude::*;
use proptest::sample::select;

use crate::model::{Bfifo, Codel, Link, NodeIndex, Pfifo, Port, Qdisc, RateSchedule, RateStep, Red, Ring};
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
    let wire = (0..=50_000_u64, 0..=40_u32);
    let rated = (wire.clone(), rate(), queue());
    prop_oneof![
        1 => wire.prop_map(|(delay_us, overhead_bytes)| Port {
            rate: None,
            delay_ns: delay_us * US,
            overhead_bytes,
            queue: Qdisc::Pfifo(Pfifo { limit_packets: 1000 }),
            ring: None,
        }),
        4 => rated.prop_map(|((delay_us, overhead_bytes), rate, queue)| Port {
            rate,
            delay_ns: delay_us * US,
            overhead_bytes,
            queue,
            ring: None,
        }),
    ]
}

/// Sizes that drivers have, and any other.
pub(super) fn ring() -> impl Strategy<Value = Ring> {
    let size = prop_oneof![3 => select(vec![64, 128, 256]), 1 => 1..=65_536_u32];
    (size, any::<bool>()).prop_map(|(size_packets, bql)| Ring { size_packets, bql })
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

fn queue() -> impl Strategy<Value = Qdisc> {
    prop_oneof![
        (1..=500_u32).prop_map(|limit_packets| Qdisc::Pfifo(Pfifo { limit_packets })),
        (1..=300_000_u64).prop_map(|limit_bytes| Qdisc::Bfifo(Bfifo { limit_bytes })),
        codel().prop_map(Qdisc::Codel),
        red().prop_map(Qdisc::Red),
    ]
}

fn codel() -> impl Strategy<Value = Codel> {
    let threshold = prop::option::of(1..=20_000_u64);
    (1..=1000_u32, 1..=50_000_u64, 1..=500_000_u64, any::<bool>(), threshold).prop_map(
        |(limit_packets, target_us, interval_us, ecn, threshold_us)| Codel {
            limit_packets,
            target_ns: target_us * US,
            interval_ns: interval_us * US,
            ecn,
            ce_threshold_ns: threshold_us.map(|us| us * US),
        },
    )
}

/// Thresholds in order, and a burst for which there is an averaging constant that the kernel takes.
fn red() -> impl Strategy<Value = Red> {
    let thresholds = (3..=50_u32, 1..=200_000_u64, 1..=200_000_u64);
    let averaging = (100..=2000_u32, 0..=50_u32);
    let red = (thresholds, averaging, 0.001..=1.0_f64, 1_000_000..=50_000_000_u64, any::<bool>()).prop_map(
        |((min_packets, span, room), (avpkt_bytes, extra_burst), probability, bandwidth_bps, ecn)| {
            let min_bytes = u64::from(min_packets * avpkt_bytes);
            Red {
                limit_bytes: min_bytes + span + room,
                min_bytes,
                max_bytes: min_bytes + span,
                avpkt_bytes,
                burst_packets: min_packets + 1 + extra_burst,
                probability,
                bandwidth_bps,
                ecn,
            }
        },
    );
    red.prop_filter("the kernel refuses it", |red| red.averaging_shift().is_ok() && red.probability_shift().is_some())
}
