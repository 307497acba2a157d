//! `netem` in property tests.

use proptest::prelude::*;
use toml::Value;

use super::super::{Codel, Discipline, Pfifo, Pie, Qdisc};
use super::{Distribution, Loss, Netem, NetemRate, NetemSlot, Reorder, SlotDelay};
use crate::testing::text::{packets, rate, size, time};
use crate::units::US;

/// Any valid parameters.
pub(super) fn any() -> BoxedStrategy<Netem> {
    let part = || (1..=1000_u32).prop_map(|part| f64::from(part) / 1000.0);
    let loss = prop_oneof![
        [part(), part()].prop_map(|[loss, correlation]| Loss::Random([loss / 20.0, correlation])),
        [part(), part(), part(), part(), part()].prop_map(|[a, b, c, d, e]| Loss::State([a / 20.0, b, c, d, e / 20.0])),
        [part(), part(), part(), part()].prop_map(|[a, b, c, d]| Loss::Gemodel([a / 20.0, b, c, d / 20.0])),
    ];
    let distribution = prop_oneof![
        Just(Distribution::Uniform),
        Just(Distribution::Normal),
        Just(Distribution::Pareto),
        Just(Distribution::ParetoNormal),
    ];
    let times = (1..=50_000_u64, 1..=20_000_u64, part(), distribution);
    let reorder = (part(), part(), 1..10_u32).prop_map(|(probability, correlation, gap)| Reorder {
        probability,
        correlation,
        gap,
    });
    let rate = (500_000..=50_000_000_u64, -20..=60_i32, 40..=60_u32, -8..=8_i32).prop_map(
        |(rate_bps, packet_overhead_bytes, cell_bytes, cell_overhead_bytes)| NetemRate {
            rate_bps,
            packet_overhead_bytes,
            cell_bytes,
            cell_overhead_bytes,
        },
    );
    let options =
        (prop::option::of(loss), proptest::arbitrary::any::<bool>(), prop::option::of(reorder), prop::option::of(rate));
    let delay = prop_oneof![
        (1..=20_000_u64, 0..=20_000_u64)
            .prop_map(|(min_us, more_us)| SlotDelay::Between([min_us * US, (min_us + more_us) * US])),
        (1..=20_000_u64, 1..=5_000_u64)
            .prop_map(|(us, more_us)| SlotDelay::Distributed(Distribution::Pareto, [us * US, more_us * US])),
    ];
    let slot = (delay, prop::option::of(1..=20_u32), prop::option::of(1..=30_000_u32))
        .prop_map(|(delay, packets, bytes)| NetemSlot { delay, packets, bytes });
    let inner = prop_oneof![
        Pfifo::any().prop_map(Qdisc::Pfifo),
        Codel::any().prop_map(Qdisc::Codel),
        Pie::any().prop_map(Qdisc::Pie),
    ];
    let duplicate = prop::option::of([part(), part()]);
    let corrupt = prop::option::of([part(), part()]);
    let more = ((duplicate, corrupt), prop::option::of(slot), prop::option::of(inner.prop_map(Box::new)));
    (1..=500_u32, times, options, more)
        .prop_map(|(limit_packets, (delay_us, jitter_us, correlation, distribution), options, more)| {
            let ((loss, ecn, reorder, rate), ((duplicate, corrupt), slot, inner)) = (options, more);
            let (delay_ns, jitter_ns, ecn) = (delay_us * US, jitter_us * US, ecn && loss.is_some());
            Netem {
                limit_packets,
                delay_ns,
                jitter_ns,
                correlation,
                distribution,
                loss,
                ecn,
                duplicate,
                corrupt,
                reorder,
                rate,
                slot,
                inner,
            }
        })
        .boxed()
}

/// Every key as it is written in an experiment file.
pub(super) fn written(netem: &Netem) -> Vec<(&'static str, Value)> {
    let table = |names: &[&str], parts: &[f64]| {
        let given = names.iter().zip(parts).filter(|(_, part)| **part > 0.0);
        Value::Table(given.map(|(name, part)| ((*name).to_owned(), Value::from(*part))).collect())
    };
    let mut keys = vec![
        ("limit", packets(netem.limit_packets)),
        ("delay", time(netem.delay_ns)),
        ("jitter", time(netem.jitter_ns)),
        ("correlation", netem.correlation.into()),
        ("distribution", format!("{:?}", netem.distribution).to_lowercase().into()),
        ("ecn", netem.ecn.into()),
    ];
    match &netem.loss {
        Some(Loss::Random([loss, correlation])) => {
            keys.extend([("loss", (*loss).into()), ("loss_correlation", (*correlation).into())]);
        }
        Some(Loss::State(parts)) => keys.push(("state", table(&["p13", "p31", "p32", "p23", "p14"], parts))),
        Some(Loss::Gemodel(parts)) => keys.push(("gemodel", table(&["p", "r", "1-h", "1-k"], parts))),
        None => {}
    }
    if let Some([duplicate, correlation]) = netem.duplicate {
        keys.extend([("duplicate", duplicate.into())]);
        keys.extend((correlation > 0.0).then_some(("duplicate_correlation", correlation.into())));
    }
    if let Some([corrupt, correlation]) = netem.corrupt {
        keys.extend([("corrupt", corrupt.into())]);
        keys.extend((correlation > 0.0).then_some(("corrupt_correlation", correlation.into())));
    }
    if let Some(slot) = &netem.slot {
        let mut own = match slot.delay {
            SlotDelay::Between([min, max]) => vec![("min_delay", time(min)), ("max_delay", time(max))],
            SlotDelay::Distributed(distribution, [mean, deviation]) => vec![
                ("distribution", format!("{distribution:?}").to_lowercase().into()),
                ("delay", time(mean)),
                ("jitter", time(deviation)),
            ],
        };
        own.extend(slot.packets.map(|most| ("packets", packets(most))));
        own.extend(slot.bytes.map(|most| ("bytes", size(most))));
        let own = own.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        keys.push(("slot", Value::Table(own)));
    }
    keys.extend(netem.inner.iter().map(|inner| ("inner", inner.written().into())));
    if let Some(reorder) = &netem.reorder {
        keys.push(("reorder", reorder.probability.into()));
        keys.push(("reorder_correlation", reorder.correlation.into()));
        keys.push(("gap", i64::from(reorder.gap).into()));
    }
    if let Some(own) = &netem.rate {
        keys.push(("rate", rate(own.rate_bps)));
        keys.push(("packetoverhead", i64::from(own.packet_overhead_bytes).into()));
        keys.push(("cellsize", i64::from(own.cell_bytes).into()));
        keys.push(("celloverhead", i64::from(own.cell_overhead_bytes).into()));
    }
    keys
}
