//! From the observations of a live test to a verdict: how much delay load adds, in which direction, in which queue, how sure
//! that is, and what to do.
//!
//! The crate does no I/O, reads no clock and draws no random numbers: the same observations give the same verdict.
//! `docs/verdict.md` explains the method. [`input`] defines what is observed and [`verdict`] what is concluded; both are
//! JSON objects with the same names. [`monitor`] watches a connection for hours, without load.

mod assess;
mod baseline;
mod cure;
mod drift;
mod evidence;
mod goodput;
mod grade;
pub mod input;
mod ladder;
mod likelihood;
mod load;
mod local;
mod locate;
mod location;
mod model;
pub mod monitor;
mod numbers;
mod other_server;
mod outcome;
mod pairing;
mod rpm;
mod sentences;
mod series;
mod statistics;
mod tcp_only;
mod tcp_path;
pub mod verdict;
mod words;
mod worst;

pub use input::Observations;
pub use verdict::Verdict;

use crate::baseline::Baseline;
use crate::ladder::Lengths;

/// The verdict about a live test.
pub fn judge(observations: &Observations) -> Verdict {
    if observations.parameters.protocol.is_some() {
        return other_server::judge(observations);
    }
    match tcp_only::substituted(observations) {
        Some(handshakes) => {
            let locates = tcp_only::has_hops(&handshakes);
            tcp_only::marked(judge_echoes(&handshakes, locates), locates)
        }
        None => judge_echoes(observations, true),
    }
}

/// How a loaded phase goes on: whether its goodput is stable, and its responsiveness so far.
pub fn responsiveness(phase: &input::Phase, parameters: &input::Parameters) -> (bool, verdict::Rpm) {
    (rpm::goodput_is_stable(phase, parameters), rpm::rpm(phase, parameters))
}

/// The same from the echoes and the ladders alone; `locates`: whether they can show the place of a queue.
fn judge_echoes(observations: &Observations, locates: bool) -> Verdict {
    let baseline = Baseline::of(observations);
    let lengths = Lengths::of(observations);
    let mut loaded: Vec<_> = observations.phases.iter().filter(|phase| !phase.kind.loaded().is_empty()).collect();
    loaded.sort_by_key(|phase| phase.start_ns);
    let assessed: Vec<_> =
        loaded.into_iter().map(|phase| assess::assess(observations, &baseline, lengths, phase)).collect();
    let notes: Vec<String> = assessed.iter().flat_map(|phase| phase.warnings.clone()).collect();
    let mut phases: Vec<_> = assessed.into_iter().map(|phase| phase.verdict).collect();
    if !locates {
        phases.iter_mut().for_each(|phase| phase.locations.clear());
    }
    let idle = baseline.idle(&observations.phases);
    let worst_cases = worst::worst_cases(observations, &baseline);
    let mut warnings = evidence::warnings(observations, &baseline, lengths, &phases);
    warnings.extend(tcp_path::difference(observations));
    for note in notes {
        if !warnings.contains(&note) {
            warnings.push(note);
        }
    }
    Verdict {
        grade: phases.iter().filter_map(|phase| phase.grade).max(),
        grade_table: grade::table(),
        sentences: sentences::sentences(observations, &idle, &phases, &worst_cases),
        warnings,
        evidence: evidence::evidence(&idle, &phases),
        idle,
        phases,
        worst_cases,
    }
}

/// The same as [`judge`], from JSON to JSON.
///
/// # Errors
///
/// If the text is not JSON, or a value has the wrong type; the message says where.
pub fn judge_json(observations: &str) -> Result<String, String> {
    let observations: Observations =
        serde_json::from_str(observations).map_err(|error| format!("observations: {error}"))?;
    serde_json::to_string(&judge(&observations)).map_err(|error| error.to_string())
}
