//! A packet-level, discrete-event simulator of networks with queues that may bloat.
//!
//! The input is a [`Scenario`](bufferscope_scenario::Scenario), the output is records. The contract:
//! - **No I/O.** Rows go to the caller's [`Recorder`](bufferscope_records::Recorder); nothing else is read or written.
//! - **No clock.** Time is virtual, in integer nanoseconds; the speed of the machine has no effect.
//! - **Deterministic.** The same scenario and seed give the same rows in the same order, on every machine. The seed
//!   determines what is random in a real network: when programs start (up to 1 ms), how late a sleeping prober wakes
//!   (up to 50 us), how long a host takes to notice a packet (up to 10 us), and what a queueing discipline draws. A
//!   different seed is an independent repetition.
//! - **Conserving.** Every packet sent is delivered, dropped or still on its way, and [`Summary`] counts each of these.
//!
//! One run takes one thread and little memory: packets are small plain data in a pool, and each wire, delay line and
//! timer has at most one pending event, however many packets are under way.
//!
//! ```
//! use std::ops::ControlFlow;
//! use bufferscope_records::{MemorySink, Recorder, Table};
//! use bufferscope_scenario::Experiment;
//!
//! let text = r#"
//!     title = "A ping over a slow link"
//!     duration = "1s"
//!     link = [{ name = "line", ends = ["h1", "h2"], rate = "1mbit", delay = "5ms" }]
//!     traffic = [{ name = "ping", kind = "ping", from = "h1", to = "h2" }]
//! "#;
//! let experiment = Experiment::parse(text, "ping.toml", &[])?;
//! let scenario = &experiment.points()[0].scenario;
//! let recorder = Recorder::new(MemorySink::default());
//! let summary = bufferscope_sim::run(scenario, 1, recorder, &mut |_| ControlFlow::Continue(()))?;
//!
//! // Ten requests and their ten replies, each over one link.
//! assert_eq!(summary.hops, 20);
//! assert_eq!(summary.output.rows(Table::Probes), 10);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod event_queue;
mod hosts;
mod network;
mod observation;
mod random;
mod simulation;
pub mod tcp;
mod timer_slots;
mod timers;
mod transport;

use std::ops::ControlFlow;

use bufferscope_records::{Recorder, RecordsError, Sink};
use bufferscope_scenario::{Scenario, Unreachable};

pub use network::tap::{Contents, Hook, Sighting, Tap};
pub use network::traffic_class::Ecn;
pub use network::xmit::Xmit;
pub use observation::footprint::{Footprint, footprint};
pub use observation::state::{PortState, SenderState, State};
pub use observation::state_log::{FlowId, LoggedFlow, StateLog};
pub use observation::summary::{FlowPackets, PortPackets, Summary};
pub use simulation::Simulation;
pub use simulation::changes::Change;

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Virtual time, at most `duration_ns`.
    pub now_ns: u64,
    /// The scenario's duration.
    pub duration_ns: u64,
}

/// Why a run did not complete.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The progress callback asked for it.
    #[error("the simulation was interrupted")]
    Interrupted,
    /// There is traffic between nodes that no path joins.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// Parameters of a queueing discipline that Linux would also refuse.
    #[error("queue of `{port}`: {reason}")]
    Qdisc {
        /// The port.
        port: String,
        /// What is wrong, and what would be correct.
        reason: String,
    },
    /// A time to which a run can't be advanced.
    #[error("can't advance to {}: the simulation is at {}, and its duration is {}", seconds(.until_ns), seconds(.now_ns), seconds(.duration_ns))]
    Time {
        /// The time asked for.
        until_ns: u64,
        /// The current time.
        now_ns: u64,
        /// The scenario's duration.
        duration_ns: u64,
    },
    /// A change that a running network can't undergo.
    #[error("{key}: not possible in a running simulation; {hint}")]
    Fixed {
        /// The key of the experiment's file.
        key: String,
        /// What can be changed.
        hint: &'static str,
    },
    /// The records can't be stored; finishing the run returns the reason.
    #[error("the records can't be stored")]
    Unrecorded,
    /// The records could not be stored.
    #[error(transparent)]
    Records(#[from] RecordsError),
}

/// A time in seconds, for messages.
fn seconds(ns: &u64) -> String {
    format!("{} s", *ns as f64 / 1e9)
}

/// Runs `scenario` and passes what is observed to `recorder`.
///
/// `on_progress` is called about every 10 ms of CPU time, and at the end; [`ControlFlow::Break`] ends the run with
/// [`SimError::Interrupted`].
///
/// - Samples are taken at every multiple of the sample interval from 0 on, and at the duration. A sample shows the
///   state before anything else that happens in the same nanosecond.
/// - At the duration, sampling, new probes and new pages stop, and objects that have not arrived count as unfinished.
///   The run then continues, with the traffic unchanged, until every probe sent has been answered or dropped, or has
///   timed out.
/// - A change of a wire's rate applies to the next packet that is sent; the one on the wire finishes at the old rate.
/// - Packets take the path of the fewest hops; among equals, the one whose links come first in the scenario.
pub fn run<S: Sink>(
    scenario: &Scenario,
    seed: u64,
    recorder: Recorder<S>,
    on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Summary<S::Output>, SimError> {
    Simulation::new(scenario.clone(), seed, recorder)?.finish(on_progress)
}
