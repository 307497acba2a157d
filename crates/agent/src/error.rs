//! Why a run failed.

use std::io;

use bufferscope_plan::PlanError;
use bufferscope_records::RecordsError;
use bufferscope_records::frame::other_protocol;

use crate::capabilities::{Lacking, NoLinearTimeouts, ProbeError};
use crate::kernel::privilege::NoPrivilege;
use crate::kernel::tool::ToolError;
use crate::network::NetworkError;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request cannot be read. Its writer sends nothing but requests, so it must have used a different format.
    #[error(
        "not a request as this agent knows it: {0}; if bufferscope asks, it and its agent are of different builds: reinstall the \
         package, which brings both, or run `make agent` in a source tree"
    )]
    Request(#[from] serde_json::Error),
    /// The request has another version of the protocol.
    #[error(
        "bufferscope and its agent are of different builds: {}; reinstall the package, which brings both, or run \
         `make agent` in a source tree",
        other_protocol(*found)
    )]
    Protocol {
        /// The request's version; `None` if it has none.
        found: Option<u32>,
    },
    /// Neither root nor a user namespace.
    #[error(transparent)]
    Privilege(#[from] NoPrivilege),
    /// A node that the scenario does not have.
    #[error("no host is called `{wanted}`; hosts: {}", there.join(", "))]
    NoHost {
        /// The node asked for.
        wanted: String,
        /// The nodes that exist.
        there: Vec<String>,
    },
    /// The program to run in a host could not be started.
    #[error("{name}: {source}")]
    Program {
        /// Its name.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// A shell that cannot be joined.
    #[error("cannot join the network of process {process}: {why}")]
    Join {
        /// Its number.
        process: i32,
        /// Why.
        why: String,
    },
    /// The kernel lacks something.
    #[error(transparent)]
    Lacking(#[from] Lacking),
    /// The kernel lacks a setting.
    #[error(transparent)]
    Setting(#[from] NoLinearTimeouts),
    /// The scenario asks for a setting that Linux does not have.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The capabilities of the kernel could not be determined.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The network could not be built.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// `tc` failed while the experiment ran.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The records could not be handed over.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// The system refused something.
    #[error("{what}: {source}")]
    Step {
        /// The step that failed.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
}

impl Error {
    /// A word for programs. It says who is responsible for the error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Request(_) | Self::Protocol { .. } => "request",
            Self::NoHost { .. } | Self::Program { .. } | Self::Join { .. } => "shell",
            Self::Privilege(_) => "privilege",
            Self::Lacking(_) | Self::Setting(_) => "lacking",
            Self::Plan(_) => "scenario",
            Self::Probe(_) | Self::Network(_) | Self::Tool(_) | Self::Records(_) | Self::Step { .. } => "system",
        }
    }

    /// The exit status of a process that fails with this error. If a program could not be started, it is the status
    /// that shells use for that, otherwise 1.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Program { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::Program { .. } => 126,
            _ => 1,
        }
    }

    pub(crate) fn step(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Step { what, source }
    }
}
