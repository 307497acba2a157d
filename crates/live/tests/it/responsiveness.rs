//! Tests with a server of responsiveness that is not one of bufferscope, and that may misbehave.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::nq::{Fault, NqServer};
use bufferscope_live::client::Measurement;
use bufferscope_live::client::observe::observed;
use bufferscope_live::client::others::{Family, Settings, StartError, Target, measure};
use bufferscope_live::client::secure::Trust;
use bufferscope_live::wire::control::PhaseKind;
use bufferscope_verdict::Verdict;
use bufferscope_verdict::input::{Direction, Protocol, Responsiveness, TcpProbeKind};
use bufferscope_verdict::verdict::OutcomeKind;

/// What takes longer than this on any machine has failed.
const PATIENCE: Duration = Duration::from_secs(60);

fn settings(server: &NqServer, phases: &[PhaseKind]) -> Settings {
    Settings {
        url: format!("https://localhost:{}/.well-known/nq", server.address.port()).parse().unwrap(),
        target: Target::Responsiveness(Responsiveness::with_interval(1_000_000_000)),
        trust: Trust::Fingerprint(server.fingerprint),
        family: Family::V4,
        phases: phases.to_vec(),
        flows: None,
        congestion: String::new(),
        interface: None,
        at_most: Duration::from_secs(4),
        idle: Duration::from_secs(3),
        cool_down: Duration::from_secs(1),
    }
}

fn run(settings: &Settings) -> Result<Measurement, StartError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let begun = Instant::now();
    let found = runtime.block_on(measure(settings, &AtomicBool::new(false), |_| {}));
    runtime.shutdown_background();
    assert!(begun.elapsed() < PATIENCE);
    found
}

fn judged(found: &Measurement) -> Verdict {
    bufferscope_verdict::judge(&observed(found))
}

#[test]
fn a_test_has_every_kind_of_probe_and_a_score_for_each_direction() {
    let server = NqServer::start(Fault::None);
    let phases = [PhaseKind::Idle, PhaseKind::Download, PhaseKind::Upload, PhaseKind::CoolDown];
    let found = run(&settings(&server, &phases)).unwrap();
    assert_eq!(found.ended_early, None);
    let observed = observed(&found);
    assert_eq!(observed.parameters.protocol, Some(Protocol::Responsiveness));
    let kinds =
        |phase: usize, kind| observed.phases[phase].tcp_probes.iter().filter(|probe| probe.kind == kind).count();
    for kind in [TcpProbeKind::Connect, TcpProbeKind::Tls, TcpProbeKind::Exchange] {
        for phase in 0..3 {
            assert!(kinds(phase, kind) >= 10, "{kind:?} in {phase}: {}", kinds(phase, kind));
        }
    }
    assert_eq!(kinds(0, TcpProbeKind::OnLoad), 0);
    for (phase, direction) in [(1, Direction::Down), (2, Direction::Up)] {
        let own = observed.phases[phase].tcp_probes.iter().filter(|probe| probe.kind == TcpProbeKind::OnLoad);
        assert!(own.clone().count() >= 10 && own.clone().all(|probe| probe.direction == Some(direction)));
        assert!(observed.phases[phase].flows.iter().any(|flow| flow.direction == direction && flow.srtt_ns > 0));
    }
    let verdict = judged(&found);
    for phase in &verdict.phases {
        assert!(phase.rpm.rpm.is_some_and(|rpm| rpm > 0.0), "{:?}", phase.rpm);
        let goodput = phase.numbers.directions.iter().find_map(|numbers| numbers.goodput).unwrap();
        assert!(goodput.mean_bps > 1_000_000, "{goodput:?}");
    }
    assert_eq!(found.distance, Some(1));
}

#[test]
fn a_certificate_counts_only_if_it_is_trusted() {
    let server = NqServer::start(Fault::None);
    for (trust, is_trusted) in [(Trust::System, false), (Trust::Fingerprint([7; 32]), false), (Trust::Any, true)] {
        let chosen = Settings { trust: trust.clone(), idle: Duration::ZERO, ..settings(&server, &[PhaseKind::Idle]) };
        match run(&chosen) {
            Ok(_) => assert!(is_trusted, "{trust:?}"),
            // A system without authorities says so.
            Err(error) => assert!(!is_trusted && error.to_string().contains("--insecure"), "{trust:?}: {error}"),
        }
    }
}

#[test]
fn a_server_without_a_usable_configuration_is_refused_with_the_reason() {
    for (fault, said) in [
        (Fault::Redirect, "302 Found: a redirect, which is not followed"),
        (Fault::Busy, "429 Too Many Requests: try again in 17 s"),
        (Fault::MissingKey, "it has no upload_url"),
        (Fault::Version2, "found version 2"),
        (Fault::LongConfig, "longer than 65536 bytes"),
        (Fault::Garbage, "does not speak TLS"),
        (Fault::Closes, "does not speak TLS"),
        (Fault::EndlessHeader, "message head is too large"),
    ] {
        let server = NqServer::start(fault);
        let error = run(&settings(&server, &[PhaseKind::Idle])).unwrap_err().to_string();
        assert!(error.contains(said), "{fault:?}: {error}");
    }
}

#[test]
fn a_silent_server_is_given_up() {
    let server = NqServer::start(Fault::Silent);
    let error = run(&settings(&server, &[PhaseKind::Idle])).unwrap_err().to_string();
    assert!(error.contains("no answer within 10 s"), "{error}");
}

#[test]
fn a_load_that_fails_has_no_score_and_no_verdict() {
    for (fault, kind, said) in [
        (Fault::RefusesUploads, PhaseKind::Upload, "413 Payload Too Large"),
        (Fault::Stalls, PhaseKind::Download, "nothing was transferred for 5 s"),
        (Fault::SmallObject, PhaseKind::Download, "its large object has only 10000 bytes"),
    ] {
        let server = NqServer::start(fault);
        let (idle, at_most) = (Duration::from_secs(1), Duration::from_secs(15));
        let chosen = Settings { idle, at_most, ..settings(&server, &[PhaseKind::Idle, kind]) };
        let verdict = judged(&run(&chosen).unwrap());
        let phase = &verdict.phases[0];
        assert_eq!((phase.rpm.rpm, phase.grade), (None, None), "{fault:?}");
        assert_eq!(phase.outcome.kind, OutcomeKind::CannotTell, "{fault:?}");
        for text in [phase.rpm.reason.as_deref().unwrap(), &phase.outcome.text] {
            assert!(text.contains(said), "{fault:?}: {text}");
        }
    }
}

#[test]
fn a_server_of_http1_carries_load_but_has_no_score() {
    let server = NqServer::start(Fault::OnlyHttp1);
    let found = run(&settings(&server, &[PhaseKind::Idle, PhaseKind::Download, PhaseKind::Upload])).unwrap();
    let verdict = judged(&found);
    for phase in &verdict.phases {
        assert_eq!(phase.rpm.rpm, None);
        assert!(
            phase
                .numbers
                .directions
                .iter()
                .any(|numbers| numbers.goodput.is_some_and(|rate| rate.mean_bps > 1_000_000))
        );
    }
}

#[test]
fn connections_are_bounded() {
    let server = NqServer::start(Fault::None);
    let chosen = Settings { flows: Some(2), ..settings(&server, &[PhaseKind::Download]) };
    let found = run(&chosen).unwrap();
    let probes = found.exchanges.len() as u64;
    // The configuration, the search for the distance, and probes that were not done.
    let others = 1 + 30 + 64;
    let accepted = server.accepted.load(Ordering::Relaxed);
    assert!(accepted <= probes + others + 2, "{accepted} connections, {probes} probes");
    // 100 probes of both kinds in a second are the most.
    assert!(probes <= 50 * 5, "{probes}");
}
