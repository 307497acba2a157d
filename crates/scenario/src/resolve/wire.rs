//! The impairments of a wire.

use crate::error::{Problem, Problems};
use crate::file::Wire;
use crate::model::Faults;
use crate::path::join;
use crate::qdisc::{Distribution, Loss, Reorder};

/// `delay_ns` is the wire's propagation delay. Refuses keys that have no effect.
pub(super) fn resolve(keys: &Wire, delay_ns: u64, path: &str, problems: &mut Problems) -> Option<Faults> {
    let is_varied = keys.jitter.is_some();
    let orphans = [
        ("gemodel", keys.gemodel.is_some() && keys.loss.is_some(), "gemodel without loss"),
        ("loss_correlation", keys.loss_correlation.is_some() && keys.loss.is_none(), "only together with loss"),
        ("correlation", keys.correlation.is_some() && !is_varied, "only together with jitter"),
        ("distribution", keys.distribution != Distribution::Uniform && !is_varied, "only together with jitter"),
        ("keep_order", keys.keep_order && !is_varied, "only together with jitter"),
        ("reorder", keys.reorder.is_some() && keys.keep_order, "only without keep_order"),
        (
            "reorder",
            keys.reorder.is_some() && delay_ns == 0 && !is_varied,
            "only together with a delay of the link, or jitter",
        ),
        (
            "reorder_correlation",
            keys.reorder_correlation.is_some() && keys.reorder.is_none(),
            "only together with reorder",
        ),
        ("gap", keys.gap.is_some() && keys.reorder.is_none(), "only together with reorder"),
    ];
    let mut is_sound = true;
    for (key, _, allowed) in orphans.into_iter().filter(|orphan| orphan.1) {
        problems.add(|| Problem::new(join(path, key), "a key that has no effect here", allowed));
        is_sound = false;
    }
    let random = keys.loss.map(|loss| Loss::Random([loss, keys.loss_correlation.unwrap_or(0.0)]));
    is_sound.then(|| Faults {
        loss: random.or(keys.gemodel.as_ref().map(|model| model.loss())),
        jitter_ns: keys.jitter.map_or(0, |jitter| jitter.get()),
        correlation: keys.correlation.unwrap_or(0.0),
        distribution: keys.distribution,
        keep_order: keys.keep_order,
        reorder: keys.reorder.map(|probability| Reorder {
            probability,
            correlation: keys.reorder_correlation.unwrap_or(0.0),
            gap: keys.gap.unwrap_or(1),
        }),
    })
}
