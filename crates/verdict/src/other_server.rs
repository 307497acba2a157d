//! Tests with a server that is not bufferscope's own: it stamps no probes, counts no load, and sends no records.
//!
//! The handshakes of new connections are the round trips of the whole path, and the client's ladder shows where on it delay
//! begins. The direction of a queue is taken to be that of the load.

use crate::Observations;
use crate::input::{Direction, Protocol};
use crate::judge_echoes;
use crate::tcp_only::{with_handshakes, without_directions_of_losses};
use crate::verdict::{OutcomeKind, PhaseVerdict, Verdict};

const ONE_WAY: &str = "The server does not stamp packets, so the delay is taken to be in the direction of the load. A queue of \
                       acknowledgements in the other direction would look the same.";
const SERVER: &str = "The server reports nothing of its own queues: a delay that begins behind the last hop that answers may be in the \
                      server or in its network.";
const NO_HOPS: &str =
    "No device on the way answered packets with a limited TTL, so the test cannot tell where a queue is.";
const NDT7: &str = "ndt7 uses one connection, and many of its servers send with BBR, which keeps queues short: its numbers are those of \
                    goodput. A delay that does not rise in it may rise with other programs.";
const UPLOAD: &str =
    "The goodput of the upload is what the server's TCP acknowledged, which includes the overhead of TLS and HTTP.";

/// The verdict, with what such a test leaves open.
pub(crate) fn judge(observations: &Observations) -> Verdict {
    let mut verdict = judge_echoes(&with_handshakes(observations), true);
    without_directions_of_losses(&mut verdict);
    let mut open = Vec::new();
    if observations.parameters.protocol == Some(Protocol::Ndt7) {
        open.push(NDT7);
    }
    let queues: Vec<&PhaseVerdict> =
        verdict.phases.iter().filter(|phase| phase.outcome.kind == OutcomeKind::Queue).collect();
    if !queues.is_empty() {
        open.push(ONE_WAY);
        open.push(if queues.iter().all(|phase| phase.hops.is_empty()) { NO_HOPS } else { SERVER });
    }
    let uploads = observations.phases.iter().any(|phase| phase.kind.loaded().contains(&Direction::Up));
    if uploads {
        open.push(UPLOAD);
    }
    verdict.warnings.splice(0..0, open.into_iter().map(str::to_owned));
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{
        AnswerKind, EndName, GoodputSample, LadderProbe, Parameters, Phase, PhaseKind, TcpProbe, TcpProbeKind,
    };
    use crate::verdict::Place;

    const MS: i64 = 1_000_000;

    /// Ten seconds idle, and ten of an upload behind a queue of 90 ms in the first hop's uplink, of three links.
    fn observed(protocol: Protocol) -> Observations {
        let phase = |kind, start_ms: i64, queue_ms: i64| {
            let handshake = |at: i64| TcpProbe {
                t_ns: (start_ms + at * 100) * MS,
                kind: TcpProbeKind::Connect,
                direction: None,
                rtt_ns: Some((12 + queue_ms) * MS),
            };
            let hop = |at: i64, ttl: u8| LadderProbe {
                t_ns: (start_ms + at * 1000 + i64::from(ttl) * 50) * MS,
                end: EndName::Client,
                ttl,
                address: Some(format!("192.0.2.{ttl}")),
                rtt_ns: Some(if ttl == 1 { MS } else { (5 + queue_ms) * MS }),
                kind: AnswerKind::Exceeded,
                mpls: false,
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
                tcp_probes: (0..100).map(handshake).collect(),
                ladder: (0..10).flat_map(|at| [hop(at, 1), hop(at, 2)]).collect(),
                goodput: (0..100).filter(|_| queue_ms > 0).map(counted).collect(),
                ..Phase::default()
            }
        };
        let mut observed = Observations {
            phases: vec![phase(PhaseKind::Idle, 0, 0), phase(PhaseKind::Upload, 10_000, 90)],
            parameters: Parameters { protocol: Some(protocol), ..Parameters::default() },
            ..Observations::default()
        };
        observed.ends.client.hops_to_other = Some(3);
        observed
    }

    #[test]
    fn the_clients_ladder_locates_a_queue_and_the_warnings_say_what_is_open() {
        let verdict = judge(&observed(Protocol::Responsiveness));
        let phase = &verdict.phases[0];
        assert_eq!(phase.numbers.added.p50_ns, Some(90 * MS));
        assert_eq!(phase.locations[0].answer.locations[0].place, Place::RouterUplink);
        assert!(phase.numbers.directions.iter().all(|numbers| numbers.loss.is_none()));
        for said in [ONE_WAY, SERVER, UPLOAD] {
            assert!(verdict.warnings.iter().any(|warning| warning == said), "{:?}", verdict.warnings);
        }
        assert!(!verdict.warnings.iter().any(|warning| warning.contains("UDP") || warning == NDT7));
        assert_eq!(judge(&observed(Protocol::Ndt7)).warnings[0], NDT7);
    }

    #[test]
    fn a_load_that_failed_has_no_rate_no_grade_and_no_place() {
        let mut failed = observed(Protocol::Responsiveness);
        failed.phases[1].load_failure = Some("the server answered 413".to_owned());
        let verdict = judge(&failed);
        let phase = &verdict.phases[0];
        assert_eq!((phase.outcome.kind, phase.grade), (OutcomeKind::CannotTell, None));
        assert!(phase.locations.is_empty() && phase.outcome.text.contains("413"));
        assert!(phase.numbers.directions.iter().all(|numbers| numbers.goodput.is_none()));
        assert!(verdict.sentences[4].contains("another server"), "{}", verdict.sentences[4]);
    }

    #[test]
    fn without_answers_of_hops_no_place_is_claimed() {
        let mut silent = observed(Protocol::Responsiveness);
        silent.phases.iter_mut().for_each(|phase| phase.ladder.clear());
        let verdict = judge(&silent);
        assert!(verdict.warnings.iter().any(|warning| warning == NO_HOPS), "{:?}", verdict.warnings);
        assert!(verdict.sentences[2].contains("cannot tell"), "{}", verdict.sentences[2]);
    }
}
