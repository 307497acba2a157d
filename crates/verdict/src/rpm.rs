//! Responsiveness under working conditions: draft-ietf-ippm-responsiveness-09 without TLS, with intervals of 1 s as its
//! implementations use them.

use crate::goodput::{SECOND_NS, by_second};
use crate::input::{Phase, TcpProbe, TcpProbeKind};
use crate::statistics::{mean_and_deviation, rounded, sorted};
use crate::verdict::{Confidence, Rpm, RpmParameters};

const PARAMETERS: RpmParameters = RpmParameters { mad: 4, id_ns: SECOND_NS, tmp: 0.95, sdt: 0.05 };
const MINUTE_MS: f64 = 60_000.0;
/// The largest number of intervals that are looked at.
const INTERVALS: i64 = 3600;

/// The parts of responsiveness and their mean.
#[derive(Clone, Copy, Debug)]
struct Parts {
    foreign: f64,
    own: f64,
}

impl Parts {
    fn rpm(self) -> f64 {
        f64::midpoint(self.foreign, self.own)
    }
}

/// The responsiveness of a loaded phase, over its last intervals.
pub(crate) fn rpm(phase: &Phase) -> Rpm {
    let mut probes: Vec<(i64, &TcpProbe, f64)> = phase
        .tcp_probes
        .iter()
        .filter_map(|probe| {
            let rtt_ns = probe.rtt_ns.filter(|rtt| *rtt > 0)?;
            Some((probe.t_ns.saturating_add(rtt_ns), probe, rtt_ns as f64 / 1e6))
        })
        .collect();
    probes.sort_by_key(|probe| probe.0);
    let window = |end_ns: i64| {
        let from = end_ns.saturating_sub(i64::from(PARAMETERS.mad) * PARAMETERS.id_ns);
        // The probes that were completed in the interval.
        let low = probes.partition_point(|probe| probe.0 <= from);
        let high = probes.partition_point(|probe| probe.0 <= end_ns);
        parts(&probes[low..high.max(low)])
    };
    let found = window(phase.end_ns);
    Rpm {
        rpm: found.as_ref().ok().map(|parts| rounded(parts.rpm())),
        foreign: found.as_ref().ok().map(|parts| rounded(parts.foreign)),
        own: found.as_ref().ok().map(|parts| rounded(parts.own)),
        confidence: found.is_ok().then(|| confidence(phase, window)),
        reason: found.err().map(str::to_owned),
        parameters: PARAMETERS,
    }
}

fn parts(probes: &[(i64, &TcpProbe, f64)]) -> Result<Parts, &'static str> {
    let mean = |kind| trimmed_mean(probes.iter().filter(|probe| probe.1.kind == kind).map(|probe| probe.2));
    let connect = mean(TcpProbeKind::Connect).ok_or("no new connection was opened in the last 4 s")?;
    let exchange = mean(TcpProbeKind::Exchange).ok_or("no request on a new connection was answered in the last 4 s")?;
    let own = mean(TcpProbeKind::OnLoad).ok_or("no request on the load's connections was answered in the last 4 s")?;
    Ok(Parts { foreign: MINUTE_MS / f64::midpoint(connect, exchange), own: MINUTE_MS / own })
}

/// The mean of the fastest 95 %.
fn trimmed_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values = sorted(values);
    let kept = ((values.len() as f64 * PARAMETERS.tmp).round() as usize).max(1);
    mean_and_deviation(values.get(..kept.min(values.len()))?).map(|(mean, _)| mean).filter(|mean| *mean > 0.0)
}

/// High if goodput and responsiveness were stable, low if the phase was too short to say so.
fn confidence(phase: &Phase, window: impl Fn(i64) -> Result<Parts, &'static str>) -> Confidence {
    let intervals = (phase.end_ns.saturating_sub(phase.start_ns).max(0) / PARAMETERS.id_ns).min(INTERVALS);
    let mad = PARAMETERS.mad as usize;
    if (intervals as usize) < mad {
        return Confidence::Low;
    }
    let recent = (0..i64::from(PARAMETERS.mad)).rev().filter(|ago| ago + i64::from(PARAMETERS.mad) <= intervals);
    let responsiveness: Vec<f64> = recent
        .filter_map(|ago| window(phase.end_ns.saturating_sub(ago * PARAMETERS.id_ns)).ok().map(Parts::rpm))
        .collect();
    let loaded = phase.kind.loaded();
    let steady = loaded.iter().all(|direction| stable(&moving_averages(&by_second(phase, *direction), mad)));
    if steady && !loaded.is_empty() && stable(&responsiveness) { Confidence::High } else { Confidence::Medium }
}

fn moving_averages(values: &[f64], width: usize) -> Vec<f64> {
    let averages: Vec<f64> = values.windows(width).map(|values| values.iter().sum::<f64>() / width as f64).collect();
    averages[averages.len().saturating_sub(width)..].to_vec()
}

/// Whether the last values deviate by less than the tolerance from the current one.
fn stable(values: &[f64]) -> bool {
    let (Some(current), Some((_, deviation))) = (values.last(), mean_and_deviation(values)) else { return false };
    values.len() >= PARAMETERS.mad as usize && deviation < PARAMETERS.sdt * current
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{Direction, GoodputSample, PhaseKind};

    const MS: i64 = 1_000_000;

    fn phase(seconds: i64) -> Phase {
        let probe = |kind, rtt_ms: i64| {
            (0..seconds * 10).map(move |index| TcpProbe {
                t_ns: index * 100 * MS,
                kind,
                direction: None,
                rtt_ns: Some(rtt_ms * MS),
            })
        };
        let goodput = (0..=seconds).map(|second| GoodputSample {
            t_ns: second * SECOND_NS,
            direction: Direction::Down,
            bytes: second as u64 * 1_000_000,
        });
        Phase {
            kind: PhaseKind::Download,
            end_ns: seconds * SECOND_NS,
            tcp_probes: probe(TcpProbeKind::Connect, 50)
                .chain(probe(TcpProbeKind::Exchange, 70))
                .chain(probe(TcpProbeKind::OnLoad, 200))
                .collect(),
            goodput: goodput.collect(),
            ..Phase::default()
        }
    }

    #[test]
    fn responsiveness_is_the_mean_of_two_rates() {
        // F = 60000 / ((50 + 70) / 2) = 1000; L = 60000 / 200 = 300; RPM = 650.
        let found = rpm(&phase(10));
        assert_eq!((found.foreign, found.own, found.rpm), (Some(1000.0), Some(300.0), Some(650.0)));
        assert_eq!(found.confidence, Some(Confidence::High));
    }

    #[test]
    fn a_short_phase_has_low_confidence_and_one_without_probes_no_value() {
        assert_eq!(rpm(&phase(3)).confidence, Some(Confidence::Low));
        let none = rpm(&Phase { tcp_probes: Vec::new(), ..phase(10) });
        assert_eq!((none.rpm, none.confidence), (None, None));
        assert!(none.reason.is_some());
    }

    #[test]
    fn the_slowest_twentieth_does_not_count() {
        let values = (1..=20).map(|value| if value == 20 { 1e6 } else { 10.0 });
        assert_eq!(trimmed_mean(values), Some(10.0));
    }
}
