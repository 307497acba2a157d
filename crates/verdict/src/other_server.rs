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
