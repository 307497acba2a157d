//! Tests in which UDP does not come through, or hardly: the handshakes of new TCP connections take the place of the echoes.
//!
//! They show how much delay load adds, but not its direction, which is taken to be that of the load. SYNs with a limited TTL
//! are the ladder; without answers to them, the hop where the delay begins is not known.

use crate::Observations;
use crate::input::{AnswerKind, Echo, Lost, Phase, PhaseKind, TcpProbeKind};
use crate::statistics::median;
use crate::verdict::Verdict;

/// UDP hardly comes through if fewer of the idle path's echoes are answered ...
const FEW: f64 = 0.5;
/// ... although at least so many handshakes succeed.
const MOST: f64 = 0.9;
/// A lost SYN is sent again after this time (RFC 6298), so a handshake that takes longer than that was lost, not late ...
const RETRY_NS: i64 = 1_000_000_000;
/// ... unless many others take nearly as long.
const LATE_NS: f64 = 5e8;

const WARNING: &str = "UDP does not come through, or hardly: a firewall or a network treats it unlike TCP. The delays are those of new TCP \
                       connections. The test cannot say in which direction the delay is, nor at which hop it begins.";
/// With answers of hops.
const WARNING_WITH_HOPS: &str = "UDP does not come through, or hardly: a firewall or a network treats it unlike TCP. The delays are those \
                                 of new TCP connections, and hops answered to their SYNs. The test takes the delay to be in the \
                                 direction of the load, and shows nothing about the way back.";

/// The observations with handshakes in place of echoes; `None`: UDP comes through, or TCP does not either.
pub(crate) fn substituted(observations: &Observations) -> Option<Observations> {
    let idle = || observations.phases.iter().filter(|phase| phase.kind == PhaseKind::Idle);
    let part = |answered: usize, all: usize| answered as f64 / all.max(1) as f64;
    let echoes = idle().flat_map(|phase| &phase.echoes);
    let (sent, answered) =
        echoes.fold((0, 0), |(sent, answered), echo| (sent + 1, answered + usize::from(echo.rtt_ns.is_some())));
    let handshakes = idle().flat_map(handshakes);
    let (tried, succeeded) =
        handshakes.fold((0, 0), |(all, some), echo| (all + 1, some + usize::from(echo.rtt_ns.is_some())));
    if succeeded == 0 || part(succeeded, tried) < MOST || (sent > 0 && part(answered, sent) >= FEW) {
        return None;
    }
    let mut found = with_handshakes(observations);
    for phase in &mut found.phases {
        phase.ladder = std::mem::take(&mut phase.tcp_ladder);
    }
    // A handshake begins when the one before it has ended: how many there should be is not known.
    found.parameters.probe_interval_ns = None;
    Some(found)
}

/// The observations with the handshakes of new connections as echoes.
pub(crate) fn with_handshakes(observations: &Observations) -> Observations {
    let phases = observations.phases.iter().map(|phase| Phase { echoes: handshakes_of(phase), ..phase.clone() });
    Observations { phases: phases.collect(), ..observations.clone() }
}

/// Whether hops have answered SYNs, so that they can show the place of a queue.
pub(crate) fn has_hops(substituted: &Observations) -> bool {
    let mut probes = substituted.phases.iter().flat_map(|phase| &phase.ladder);
    probes.any(|probe| probe.kind == AnswerKind::Exceeded && probe.rtt_ns.is_some())
}

/// A verdict that rests on handshakes says so.
pub(crate) fn marked(mut verdict: Verdict, has_hops: bool) -> Verdict {
    without_directions_of_losses(&mut verdict);
    verdict.warnings.insert(0, if has_hops { WARNING_WITH_HOPS } else { WARNING }.to_owned());
    verdict
}

/// Removes the losses of each direction: those of handshakes have none.
pub(crate) fn without_directions_of_losses(verdict: &mut Verdict) {
    for phase in &mut verdict.phases {
        for numbers in &mut phase.numbers.directions {
            numbers.loss = None;
        }
    }
}

fn handshakes(phase: &Phase) -> impl Iterator<Item = Echo> + '_ {
    phase.tcp_probes.iter().filter(|probe| probe.kind == TcpProbeKind::Connect).map(|probe| Echo {
        t_ns: probe.t_ns,
        rtt_ns: probe.rtt_ns,
        lost: probe.rtt_ns.is_none().then_some(Lost::Unknown),
        ..Echo::default()
    })
}

fn handshakes_of(phase: &Phase) -> Vec<Echo> {
    let mut found: Vec<Echo> = handshakes(phase).collect();
    let middle = median(found.iter().filter_map(|echo| echo.rtt_ns).map(|rtt_ns| rtt_ns as f64));
    if middle.is_some_and(|middle| middle < LATE_NS) {
        for echo in found.iter_mut().filter(|echo| echo.rtt_ns.is_some_and(|rtt_ns| rtt_ns >= RETRY_NS)) {
            (echo.rtt_ns, echo.lost) = (None, Some(Lost::Unknown));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{Direction, EndName, GoodputSample, LadderProbe, Parameters, TcpProbe};
    use crate::judge;
    use crate::verdict::{OutcomeKind, Place};

    const MS: i64 = 1_000_000;

    /// Ten seconds idle, and ten of an upload behind a queue of 90 ms. UDP is answered `udp` times of 100.
    fn observed(udp: i64) -> Observations {
        let phase = |kind, start_ms: i64, queue_ms: i64| {
            let echo = |at: i64| {
                let rtt_ns = (at % 100 < udp).then_some((12 + queue_ms) * MS);
                Echo {
                    t_ns: (start_ms + at * 20) * MS,
                    rtt_ns,
                    lost: rtt_ns.is_none().then_some(Lost::Unknown),
                    ..Echo::default()
                }
            };
            let handshake = |at: i64| TcpProbe {
                t_ns: (start_ms + at * 250) * MS,
                kind: TcpProbeKind::Connect,
                direction: None,
                // One in forty is lost, and sent again after a second.
                rtt_ns: Some((12 + queue_ms + if at == 7 { 1000 } else { 0 }) * MS),
            };
            let counted = |at: i64| GoodputSample {
                t_ns: (start_ms + at * 100) * MS,
                direction: Direction::Up,
                bytes: at as u64 * 100_000,
            };
            Phase {
                kind,
                start_ns: start_ms * MS,
                end_ns: (start_ms + 10_000) * MS,
                echoes: (0..500).map(echo).collect(),
                tcp_probes: (0..40).map(handshake).collect(),
                goodput: (0..100).filter(|_| queue_ms > 0).map(counted).collect(),
                ..Phase::default()
            }
        };
        let parameters = Parameters { probe_interval_ns: Some(20 * MS), ..Parameters::default() };
        let phases = vec![
            phase(PhaseKind::Idle, 0, 0),
            phase(PhaseKind::Upload, 10_000, 90),
            phase(PhaseKind::CoolDown, 20_000, 0),
        ];
        Observations { phases, parameters, ..Observations::default() }
    }

    #[test]
    fn without_udp_the_handshakes_show_the_delay_but_no_place() {
        for udp in [0, 30] {
            let verdict = judge(&observed(udp));
            let phase = &verdict.phases[0];
            assert_eq!(phase.outcome.kind, OutcomeKind::Queue);
            assert_eq!(phase.numbers.added.p50_ns, Some(90 * MS));
            assert_eq!((phase.numbers.added.count, phase.numbers.added.lost), (40, 1));
            assert!(
                phase.locations.is_empty() && phase.numbers.directions.iter().all(|numbers| numbers.loss.is_none())
            );
            assert!(verdict.warnings[0].contains("UDP does not come through"), "{:?}", verdict.warnings);
            assert!(!verdict.warnings.iter().any(|warning| warning.contains("busy")), "{:?}", verdict.warnings);
            assert!(verdict.sentences[2].contains("cannot tell where"), "{}", verdict.sentences[2]);
        }
    }

    #[test]
    fn without_udp_the_hops_of_syns_name_the_place() {
        let mut observed = observed(0);
        for phase in &mut observed.phases {
            let is_loaded = phase.kind == PhaseKind::Upload;
            for (second, ttl) in (0..10).flat_map(|second| (1..=3).map(move |ttl| (second, ttl))) {
                phase.tcp_ladder.push(LadderProbe {
                    t_ns: phase.start_ns + (second * 1000 + i64::from(ttl) * 300) * MS,
                    end: EndName::Client,
                    ttl,
                    address: Some(format!("192.0.2.{ttl}")),
                    rtt_ns: Some((3 * i64::from(ttl) + if is_loaded && ttl >= 2 { 90 } else { 0 }) * MS),
                    kind: AnswerKind::Exceeded,
                    mpls: false,
                });
            }
        }
        observed.ends.client.hops_to_other = Some(4);
        let verdict = judge(&observed);
        let found = &verdict.phases[0].locations[0];
        assert_eq!((found.direction, found.answer.locations.len()), (Direction::Up, 1), "{found:?}");
        assert_eq!((found.answer.locations[0].place, found.answer.locations[0].link), (Place::RouterUplink, 2));
        assert!(verdict.warnings[0].contains("hops answered to their SYNs"), "{:?}", verdict.warnings);
    }

    #[test]
    fn with_udp_the_echoes_count() {
        let verdict = judge(&observed(100));
        assert!(!verdict.warnings.iter().any(|warning| warning.contains("UDP")), "{:?}", verdict.warnings);
        assert_eq!(verdict.phases[0].numbers.added.count, 500);
    }

    #[test]
    fn a_path_that_is_gone_is_not_one_without_udp() {
        let mut gone = observed(0);
        gone.phases.iter_mut().flat_map(|phase| &mut phase.tcp_probes).for_each(|probe| probe.rtt_ns = None);
        assert_eq!(substituted(&gone), None);
        assert_eq!(judge(&gone).phases[0].outcome.kind, OutcomeKind::CannotTell);
    }
}
