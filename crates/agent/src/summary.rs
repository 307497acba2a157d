//! What a run says about itself when it is over.

use serde::Serialize;

use crate::kernel::privilege::Privilege;
use crate::relay::RelayReport;
use crate::watch::{CpuReport, Sampling};

/// The last frame of a run that succeeded.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The kernel's release.
    pub kernel: String,
    /// By what right the network was built.
    pub privilege: Privilege,
    /// Who made the propagation delay: `netem` or `relay`; `None` if there was none.
    pub delay_by: Option<&'static str>,
    /// When the last probe was concluded.
    pub ended_ns: u64,
    /// How regularly samples were taken.
    pub sampling: Sampling,
    /// How busy the CPUs were.
    pub cpu: CpuReport,
    /// What the relay did, if it made the delay.
    pub relay: Option<RelayReport>,
    /// How the table `drops` came about: `counters` are read with every sample, so that its times are those of the samples,
    /// its flows and sizes are unknown.
    pub drops_from: &'static str,
    /// The tables that stay empty because the kernel does not tell: how long each packet stood in a queue.
    pub not_measured: Vec<&'static str>,
    /// What a reader of the results must know.
    pub warnings: Vec<String>,
}
