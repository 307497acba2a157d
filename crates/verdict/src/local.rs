//! Delays in the ends: the kernels' transmit timestamps and the state of the queues.

use crate::goodput::goodput;
use crate::input::{EndName, Ends, Phase, PhaseKind, Stage};
use crate::numbers::HEADER_FACTOR;
use crate::series::Series;
use crate::statistics::{median, spread};
use crate::verdict::StageNumbers;

/// Fewer stamps do not count.
const LEAST: usize = 6;

/// What a stage adds under load: its delays minus the median of the idle path. `None` without stamps.
pub(crate) fn stage(phases: &[Phase], phase: &Phase, end: EndName, stage: Stage) -> Option<Series> {
    let points = |phase: &Phase| -> Vec<(i64, f64)> {
        let delays = phase.stages.iter().filter(|delay| delay.end == end && delay.stage == stage);
        delays.map(|delay| (delay.t_ns, delay.delay_ns as f64)).collect()
    };
    let idle = phases.iter().filter(|phase| phase.kind == PhaseKind::Idle).flat_map(points);
    let base = median(idle.map(|point| point.1)).unwrap_or(0.0).max(0.0);
    let series = Series::new(points(phase).into_iter().map(|(t_ns, delay)| (t_ns, (delay - base).max(0.0))));
    (series.len() >= LEAST).then_some(series)
}

/// For the verdict.
pub(crate) fn stages(ends: &Ends, phase: &Phase) -> Vec<StageNumbers> {
    let all = [EndName::Client, EndName::Server].into_iter().flat_map(|end| {
        [Stage::SendBuffer, Stage::Qdisc].map(|stage| {
            let delays = phase.stages.iter().filter(|delay| delay.end == end && delay.stage == stage);
            StageNumbers { end, stage, delay: spread(delays.map(|delay| delay.delay_ns as f64), 0) }
        })
    });
    let drivers = [EndName::Client, EndName::Server].into_iter().filter_map(|end| driver(ends, phase, end));
    all.chain(drivers).filter(|stage| stage.delay.count > 0).collect()
}

/// What the ring of a sender held, at the rate of its load; `None` without a load or without byte queue limits, which alone
/// show it.
fn driver(ends: &Ends, phase: &Phase, end: EndName) -> Option<StageNumbers> {
    let direction = *phase.kind.loaded().iter().find(|direction| direction.sender() == end)?;
    let rate_bps =
        goodput(phase, direction).map(|rate| rate.mean_bps as f64 * HEADER_FACTOR).filter(|rate| *rate > 0.0)?;
    let held = phase.local.iter().filter(|sample| sample.end == end).filter_map(|sample| sample.ring_bytes);
    let delays = held.map(|bytes| bytes as f64 * 8e9 / rate_bps);
    (ends.get(end).bql == Some(true)).then(|| StageNumbers { end, stage: Stage::Driver, delay: spread(delays, 0) })
}

/// Without stamps: the part of a delay that the backlog of the queueing discipline explains at a rate. `None` if the backlog
/// was not sampled.
pub(crate) fn backlog_share(phase: &Phase, end: EndName, rate_bps: f64, delay_ns: f64) -> Option<f64> {
    let samples = phase.local.iter().filter(|sample| sample.end == end);
    let backlog = median(samples.filter_map(|sample| sample.qdisc_bytes).map(|bytes| bytes as f64))?;
    (rate_bps > 0.0 && delay_ns > 0.0).then(|| (backlog * 8.0 / rate_bps * 1e9 / delay_ns).clamp(0.02, 0.98))
}

/// How busy the busiest processor of either end is: the median over a phase.
pub(crate) fn busiest(phase: &Phase) -> Option<f64> {
    let of = |end: EndName| {
        let samples = phase.local.iter().filter(move |sample| sample.end == end);
        median(samples.filter_map(|sample| {
            let [busy, softirq] = [sample.cpu_busy, sample.softirq].map(|part| part.filter(|part| part.is_finite()));
            busy.into_iter().chain(softirq).reduce(f64::max).map(|part| part.clamp(0.0, 1.0))
        }))
    };
    of(EndName::Client).into_iter().chain(of(EndName::Server)).reduce(f64::max)
}
