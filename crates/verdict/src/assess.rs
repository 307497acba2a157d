//! The verdict about one loaded phase.

use crate::baseline::Baseline;
use crate::grade::grade;
use crate::input::{Direction, Observations, Phase, Stage};
use crate::ladder::{Lengths, hops, path_changed};
use crate::location::{Path, certain, send_buffer};
use crate::numbers::{Added, numbers};
use crate::outcome::name;
use crate::statistics::median;
use crate::verdict::{Answer, OutcomeKind, PhaseVerdict};
use crate::{local, locate, outcome, rpm};

/// A shorter delay in a send buffer is not worth mentioning.
const LEAST_SEND_BUFFER_NS: f64 = 1e7;
/// The probability of what timestamps show directly.
const STAMPED: f64 = 0.97;

/// A phase with what limits its verdict.
pub(crate) struct Assessed {
    pub(crate) verdict: PhaseVerdict,
    pub(crate) warnings: Vec<String>,
}

/// Judges a phase.
pub(crate) fn assess(observations: &Observations, baseline: &Baseline, lengths: Lengths, phase: &Phase) -> Assessed {
    let added = Added::of(phase, baseline);
    let numbers = numbers(phase, baseline, &added);
    let hops = hops(&observations.phases, phase, &lengths);
    let path_changed = path_changed(&hops);
    let case = outcome::Case { observations, phase, baseline, added: &added, numbers: &numbers, path_changed };
    let finding = case.outcome();
    let located =
        locate::Case { observations, phase, baseline, added: &added, hops: &hops, lengths }.locate(&finding.asked);
    let mut warnings = finding.warnings;
    for direction in &located.contradictory {
        warnings.push(format!(
            "The hops seen from the two ends contradict each other in the {} direction: the two directions take different \
             paths, so the answer is less certain.",
            name(*direction)
        ));
    }
    let excluded = located.excluded.iter().copied().chain(std::iter::repeat(None));
    let graded = numbers.added.p95_ns.or(numbers.added.max_ns);
    let judged = finding.outcome.kind != OutcomeKind::CannotTell;
    let verdict = PhaseVerdict {
        kind: phase.kind,
        start_ns: phase.start_ns,
        outcome: finding.outcome,
        locations: located.locations,
        send_buffers: send_buffers(observations, lengths, phase),
        hops: hops.iter().zip(excluded).map(|(hop, excluded)| hop.report(excluded)).collect(),
        stages: local::stages(&observations.ends, phase),
        grade: graded.filter(|_| judged).map(grade),
        rpm: rpm::rpm(phase, &observations.parameters),
        numbers,
    };
    Assessed { verdict, warnings }
}

/// The send buffers of the load that delay its data noticeably.
fn send_buffers(observations: &Observations, lengths: Lengths, phase: &Phase) -> Vec<Answer> {
    let of = |direction: &Direction| {
        let end = direction.sender();
        let delays = local::stage(&[], phase, end, Stage::SendBuffer)?;
        let delay_ns = median(delays.values()).filter(|delay| *delay >= LEAST_SEND_BUFFER_NS)?;
        let path = Path {
            links: lengths.get(end),
            direction: *direction,
            client_link: observations.ends.client.link,
            modem: None,
            address: &|_| None,
        };
        let mut answer = certain(&path, send_buffer(&path), STAMPED, 1.0);
        answer.text = format!("{}: {}", answer.text, crate::words::delay(delay_ns));
        Some(answer)
    };
    phase.kind.loaded().iter().filter_map(of).collect()
}
