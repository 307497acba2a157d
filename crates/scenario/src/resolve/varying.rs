//! Variable rates.

use crate::error::{Problem, Problems};
use crate::file::{Rate, Varying, WalkKeys};
use crate::files::Traces;
use crate::model::{Outages, Variation, Walk};
use crate::path::join;

pub(super) fn resolve(keys: &Varying, path: &str, traces: &Traces<'_>, problems: &mut Problems) -> Option<Variation> {
    match (&keys.trace, &keys.walk, keys.preset) {
        (Some(file), None, None) => {
            let opportunities = traces.find(file.as_str(), join(path, "trace"), problems)?;
            Some(Variation::Trace { file: file.to_string(), opportunities })
        }
        (None, Some(walk), None) => Some(Variation::Walk(resolve_walk(walk, path, problems)?)),
        (None, None, Some(preset)) => Some(Variation::Walk(preset.walk())),
        (None, None, None) => {
            problems.add(|| Problem::missing(path, "one of trace, walk and preset"));
            None
        }
        _ => {
            problems.add(|| Problem::new(path, "several kinds of variation", "one of trace, walk and preset"));
            None
        }
    }
}

fn resolve_walk(keys: &WalkKeys, path: &str, problems: &mut Problems) -> Option<Walk> {
    let max_bps = keys.max.map_or(Rate::MOST, Rate::get);
    if max_bps < keys.mean.get() {
        let found = keys.max.map_or_else(String::new, |max| max.to_string());
        let path = join(&join(path, "walk"), "max");
        problems.add(|| Problem::new(path, found, format!("at least mean = {}", keys.mean)));
        return None;
    }
    Some(Walk {
        preset: None,
        mean_bps: keys.mean.get(),
        deviation_bps: keys.deviation.get(),
        coherence_ns: keys.coherence.get(),
        every_ns: keys.every.get(),
        max_bps,
        outages: keys
            .outages
            .as_ref()
            .map(|outages| Outages { every_ns: outages.every.get(), lasts_ns: outages.lasts.get() }),
    })
}
