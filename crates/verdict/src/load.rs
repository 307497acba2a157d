//! What the load's own connections say.

use std::collections::BTreeMap;

use crate::goodput::{SECOND_NS, steady_from};
use crate::input::{Direction, FlowSample, Phase};
use crate::statistics::{median, rounded, whole};
use crate::verdict::Load;

/// Payload of a full segment.
const SEGMENT_BYTES: f64 = 1448.0;

/// Summarises the connections of one direction. `idle_rtt_ns` is the median of the echoes of the idle path: connections
/// that began when the queue was full do not know the unloaded round-trip time.
pub(crate) fn load(phase: &Phase, direction: Direction, idle_rtt_ns: Option<f64>) -> Option<Load> {
    let mut flows: BTreeMap<u32, Vec<&FlowSample>> = BTreeMap::new();
    for sample in phase.flows.iter().filter(|sample| sample.direction == direction) {
        flows.entry(sample.flow).or_default().push(sample);
    }
    for samples in flows.values_mut() {
        samples.sort_by_key(|sample| sample.t_ns);
    }
    if flows.is_empty() {
        return None;
    }
    let all = || flows.values().flatten();
    let least = all().filter(|sample| sample.min_rtt_ns > 0).map(|sample| sample.min_rtt_ns as f64).reduce(f64::min);
    let base = least.map(|least| least.max(idle_rtt_ns.unwrap_or(least)));
    let from = steady_from(phase);
    let rtts = all().filter(|sample| sample.t_ns >= from && sample.srtt_ns > 0).map(|sample| sample.srtt_ns as f64);
    let rise = base.and_then(|base| Some(median(rtts)? - base));

    let total = |field: fn(&FlowSample) -> u64| -> f64 { flows.values().map(|samples| increase(samples, field)).sum() };
    let segments = total(|sample| sample.delivered_bytes) / SEGMENT_BYTES;
    let busy_us = total(|sample| sample.busy_us);
    let spans: f64 = flows.values().map(|samples| span_us(samples)).sum();
    let part = |value: f64, of: f64| (of > 0.0).then(|| rounded(value / of));
    Some(Load {
        flows: flows.len() as u64,
        rtt_rise_ns: rise.map(whole),
        retransmits: part(total(|sample| sample.retransmits), segments),
        marks: part(total(|sample| sample.delivered_ce), segments),
        rwnd_limited: part(total(|sample| sample.rwnd_limited_us), busy_us),
        sndbuf_limited: part(total(|sample| sample.sndbuf_limited_us), busy_us),
        busy: part(busy_us, spans).filter(|_| busy_us > 0.0).map(|busy| busy.min(1.0)),
    })
}

/// How much a counter grew.
fn increase(samples: &[&FlowSample], field: fn(&FlowSample) -> u64) -> f64 {
    match samples {
        [first, .., last] => field(last).saturating_sub(field(first)) as f64,
        _ => 0.0,
    }
}

fn span_us(samples: &[&FlowSample]) -> f64 {
    match samples {
        [first, .., last] => last.t_ns.saturating_sub(first.t_ns) as f64 / SECOND_NS as f64 * 1e6,
        _ => 0.0,
    }
}
