//! What the agent is asked to do: one JSON document on standard input.

use bufferscope_records::frame::PROTOCOL;
use bufferscope_scenario::Scenario;
use serde::Deserialize;

use crate::error::Error;

/// The document.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Version of the [protocol](bufferscope_records::frame::PROTOCOL).
    pub protocol: u32,
    /// The scenario, as [`Scenario`] serialises.
    pub scenario: Scenario,
    /// The seed of the random numbers of the traffic.
    pub seed: u64,
    /// How to run it.
    #[serde(default)]
    pub options: Options,
}

impl Request {
    /// Reads the document. Its version is checked before everything else, which another version may have changed.
    ///
    /// # Errors
    /// It is of another version, or no request at all.
    pub fn read(document: &[u8]) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Version {
            protocol: Option<u32>,
        }
        match serde_json::from_slice(document)? {
            Version { protocol: Some(PROTOCOL) } => Ok(serde_json::from_slice(document)?),
            Version { protocol } => Err(Error::Protocol { found: protocol }),
        }
    }
}

/// How to run a scenario; nothing in here changes its meaning.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// What implements the propagation delay.
    pub delay: DelayChoice,
    /// Keep all output until the run is over, so that writing does not compete with the traffic.
    pub deliver_at_end: bool,
    /// Real time between two progress frames; 0: none.
    pub progress_interval_ns: u64,
    /// Whether the machine has nothing else to do, so that even a short busy period is worth reporting.
    pub own_machine: bool,
    /// Mix the seed into the kernel's random numbers. This is for a machine that belongs to the run (a guest).
    pub seed_kernel: bool,
    /// Capture the packets at both ends of every link.
    pub capture: bool,
}

/// The choice of what implements the propagation delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DelayChoice {
    /// The kernel if it can, otherwise the agent.
    #[default]
    Auto,
    /// The kernel.
    Netem,
    /// The agent.
    Relay,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            delay: DelayChoice::Auto,
            deliver_at_end: false,
            progress_interval_ns: 250_000_000,
            own_machine: false,
            seed_kernel: false,
            capture: false,
        }
    }
}
