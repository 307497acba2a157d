//! Responsiveness under working conditions: draft-ietf-ippm-responsiveness-09. Without a test of that protocol, it is that of
//! connections without TLS, with intervals of 1 s as implementations of the draft use them.

use crate::goodput::{SECOND_NS, by_interval};
use crate::input::{Parameters, Phase, Responsiveness, TcpProbe, TcpProbeKind};
use crate::statistics::{mean_and_deviation, rounded, sorted};
use crate::verdict::{Confidence, Rpm, RpmParameters};

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

/// A probe that was answered: when that was, and after how many milliseconds.
type Completed<'a> = (i64, &'a TcpProbe, f64);

/// The responsiveness of a loaded phase, over its last intervals. If the load failed, it has no value.
pub(crate) fn rpm(phase: &Phase, parameters: &Parameters) -> Rpm {
    let case = Case::of(phase, parameters);
    let found = match &phase.load_failure {
        Some(failure) => Err(format!("the load failed: {failure}")),
        None => case.window(phase.end_ns),
    };
    Rpm {
        rpm: found.as_ref().ok().map(|parts| rounded(parts.rpm())),
        foreign: found.as_ref().ok().map(|parts| rounded(parts.foreign)),
        own: found.as_ref().ok().map(|parts| rounded(parts.own)),
        confidence: found.is_ok().then(|| case.confidence()),
        reason: found.err(),
        parameters: RpmParameters {
            mad: case.parameters.mad,
            id_ns: case.parameters.id_ns,
            tmp: case.parameters.tmp,
            sdt: case.parameters.sdt,
        },
    }
}

/// Whether the goodput of a phase is stable in the directions of its load.
pub(crate) fn goodput_is_stable(phase: &Phase, parameters: &Parameters) -> bool {
    Case::of(phase, parameters).goodput_is_stable()
}

/// A phase with its probes in the order of their completion.
struct Case<'a> {
    phase: &'a Phase,
    parameters: Responsiveness,
    has_tls: bool,
    probes: Vec<Completed<'a>>,
}

impl<'a> Case<'a> {
    fn of(phase: &'a Phase, parameters: &Parameters) -> Self {
        let mut probes: Vec<Completed<'_>> = phase
            .tcp_probes
            .iter()
            .filter_map(|probe| {
                let rtt_ns = probe.rtt_ns.filter(|rtt| *rtt > 0)?;
                Some((probe.t_ns.saturating_add(rtt_ns), probe, rtt_ns as f64 / 1e6))
            })
            .collect();
        probes.sort_by_key(|probe| probe.0);
        let mut chosen = parameters.responsiveness.unwrap_or(Responsiveness::with_interval(SECOND_NS));
        chosen.id_ns = chosen.id_ns.clamp(1, INTERVALS * SECOND_NS);
        chosen.mad = chosen.mad.clamp(1, 1000);
        Self { phase, parameters: chosen, has_tls: parameters.responsiveness.is_some(), probes }
    }

    /// The parts over the probes that were completed in the last intervals before a time.
    fn window(&self, end_ns: i64) -> Result<Parts, String> {
        let from = end_ns.saturating_sub(i64::from(self.parameters.mad).saturating_mul(self.parameters.id_ns));
        let low = self.probes.partition_point(|probe| probe.0 <= from);
        let high = self.probes.partition_point(|probe| probe.0 <= end_ns);
        self.parts(&self.probes[low..high.max(low)])
    }

    fn parts(&self, probes: &[Completed<'_>]) -> Result<Parts, String> {
        let mean = |kind, what: &str| {
            let values = probes.iter().filter(|probe| probe.1.kind == kind).map(|probe| probe.2);
            self.trimmed_mean(values).ok_or_else(|| {
                let seconds = i64::from(self.parameters.mad).saturating_mul(self.parameters.id_ns) / SECOND_NS;
                format!("{what} in the last {seconds} s")
            })
        };
        let connect = mean(TcpProbeKind::Connect, "no new connection was opened")?;
        let exchange = mean(TcpProbeKind::Exchange, "no request on a new connection was answered")?;
        let own = mean(TcpProbeKind::OnLoad, "no request on the load's connections was answered")?;
        let foreign = match self.has_tls {
            true => (connect + mean(TcpProbeKind::Tls, "no handshake of TLS was completed")? + exchange) / 3.0,
            false => f64::midpoint(connect, exchange),
        };
        Ok(Parts { foreign: MINUTE_MS / foreign, own: MINUTE_MS / own })
    }

    /// The mean of the fastest values.
    fn trimmed_mean(&self, values: impl Iterator<Item = f64>) -> Option<f64> {
        let values = sorted(values);
        let kept = ((values.len() as f64 * self.parameters.tmp).round() as usize).max(1);
        mean_and_deviation(values.get(..kept.min(values.len()))?).map(|(mean, _)| mean).filter(|mean| *mean > 0.0)
    }

    /// High if goodput and responsiveness were stable, low if the phase was too short to say so.
    fn confidence(&self) -> Confidence {
        let Responsiveness { mad, id_ns, .. } = self.parameters;
        let lasted_ns = self.phase.end_ns.saturating_sub(self.phase.start_ns).max(0);
        let intervals = (lasted_ns / id_ns).min(INTERVALS);
        if intervals < i64::from(mad) {
            return Confidence::Low;
        }
        let recent = (0..i64::from(mad)).rev().filter(|ago| ago + i64::from(mad) <= intervals);
        let responsiveness: Vec<f64> = recent
            .filter_map(|ago| self.window(self.phase.end_ns.saturating_sub(ago * id_ns)).ok().map(Parts::rpm))
            .collect();
        if self.goodput_is_stable() && self.is_stable(&responsiveness) { Confidence::High } else { Confidence::Medium }
    }

    fn goodput_is_stable(&self) -> bool {
        let loaded = self.phase.kind.loaded();
        let is_stable = |direction| {
            let rates = by_interval(self.phase, direction, self.parameters.id_ns);
            self.is_stable(&moving_averages(&rates, self.parameters.mad as usize))
        };
        !loaded.is_empty() && loaded.iter().all(|direction| is_stable(*direction))
    }

    /// Whether the last values deviate by less than the tolerance from the current one.
    fn is_stable(&self, values: &[f64]) -> bool {
        let (Some(current), Some((_, deviation))) = (values.last(), mean_and_deviation(values)) else { return false };
        values.len() >= self.parameters.mad as usize && deviation < self.parameters.sdt * current
    }
}

fn moving_averages(values: &[f64], width: usize) -> Vec<f64> {
    let averages: Vec<f64> = values.windows(width).map(|values| values.iter().sum::<f64>() / width as f64).collect();
    averages[averages.len().saturating_sub(width)..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{Direction, GoodputSample, PhaseKind};

    const MS: i64 = 1_000_000;

    fn rpm_of(phase: &Phase) -> Rpm {
        rpm(phase, &Parameters::default())
    }

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
        let found = rpm_of(&phase(10));
        assert_eq!((found.foreign, found.own, found.rpm), (Some(1000.0), Some(300.0), Some(650.0)));
        assert_eq!(found.confidence, Some(Confidence::High));
    }

    #[test]
    fn a_short_phase_has_low_confidence_and_one_without_probes_no_value() {
        assert_eq!(rpm_of(&phase(3)).confidence, Some(Confidence::Low));
        let none = rpm_of(&Phase { tcp_probes: Vec::new(), ..phase(10) });
        assert_eq!((none.rpm, none.confidence), (None, None));
        assert!(none.reason.is_some());
    }

    #[test]
    fn the_slowest_twentieth_does_not_count() {
        let values = (1..=20).map(|value| if value == 20 { 1e6 } else { 10.0 });
        let phase = Phase::default();
        assert_eq!(Case::of(&phase, &Parameters::default()).trimmed_mean(values), Some(10.0));
    }

    #[test]
    fn a_test_of_the_protocol_counts_the_handshakes_of_tls() {
        let mut phase = phase(10);
        let handshakes = phase.tcp_probes.iter().filter(|probe| probe.kind == TcpProbeKind::Connect);
        let tls: Vec<TcpProbe> =
            handshakes.map(|probe| TcpProbe { kind: TcpProbeKind::Tls, rtt_ns: Some(180 * MS), ..*probe }).collect();
        phase.tcp_probes.extend(tls);
        let with =
            |id_ns| Parameters { responsiveness: Some(Responsiveness::with_interval(id_ns)), ..Parameters::default() };
        // F = 60000 / ((50 + 180 + 70) / 3) = 600; RPM = (600 + 300) / 2.
        let found = rpm(&phase, &with(SECOND_NS));
        assert_eq!((found.foreign, found.rpm, found.confidence), (Some(600.0), Some(450.0), Some(Confidence::High)));
        // 10 s are only two intervals of 5 s.
        let long = rpm(&phase, &with(5 * SECOND_NS));
        assert_eq!(
            (long.rpm, long.confidence, long.parameters.id_ns),
            (Some(450.0), Some(Confidence::Low), 5 * SECOND_NS)
        );
        phase.tcp_probes.retain(|probe| probe.kind != TcpProbeKind::Tls);
        assert_eq!(rpm(&phase, &with(SECOND_NS)).rpm, None);
    }

    #[test]
    fn a_load_that_failed_has_no_score() {
        let failed = Phase { load_failure: Some("the server answered 413".to_owned()), ..phase(10) };
        let found = rpm_of(&failed);
        assert_eq!((found.rpm, found.foreign, found.own, found.confidence), (None, None, None, None));
        assert!(found.reason.is_some_and(|reason| reason.contains("413")));
    }
}
