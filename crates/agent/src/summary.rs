//! What a run reports about itself when it is over.

use serde::Serialize;

use crate::capture::CaptureReport;
use crate::kernel::privilege::Privilege;
use crate::relay::RelayReport;
use crate::watch::{CpuReport, Sampling};

/// The last frame of a run that succeeded.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The kernel's release.
    pub kernel: String,
    /// The privilege with which the network was built.
    pub privilege: Privilege,
    /// What implemented the propagation delay: `netem` or `relay`; `None` if there was none.
    pub delay_by: Option<&'static str>,
    /// When the outcome of the last probe was known.
    pub ended_ns: u64,
    /// How regularly samples were taken.
    pub sampling: Sampling,
    /// How busy the CPUs were.
    pub cpu: CpuReport,
    /// What the relay did, if it implemented the delay.
    pub relay: Option<RelayReport>,
    /// How the table `drops` was obtained. `counters` means that counters were read with every sample: the times are
    /// those of the samples, and flows and sizes are unknown.
    pub drops_from: &'static str,
    /// The tables that stay empty because the kernel does not report how long each packet was in a queue.
    pub not_measured: Vec<&'static str>,
    /// What was captured, if packets were captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureReport>,
    /// Warnings for readers of the results.
    pub warnings: Vec<String>,
}
