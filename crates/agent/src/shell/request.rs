//! What the shell is asked to do: one JSON document.

use bufferscope_scenario::Scenario;
use serde::Deserialize;
use serde_json::Value;

use crate::error::Error;
use crate::request::DelayChoice;

/// The document.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellRequest {
    /// The node on which the program runs.
    pub on: String,
    /// Print nothing but errors.
    #[serde(default)]
    pub quiet: bool,
    /// Which network.
    pub network: NetworkRequest,
}

/// A request to a guest to run a program instead of a scenario: `{"console": ...}`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Console {
    /// Where the program runs; its network has to be built.
    pub shell: ShellRequest,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Rows and columns of the user's terminal; `None`: the program has none.
    pub terminal: Option<[u16; 2]>,
}

impl Console {
    /// The request, if the document is a request of this kind.
    pub fn recognised(document: &[u8]) -> Option<Result<Self, Error>> {
        #[derive(Deserialize)]
        struct Document {
            console: Value,
        }
        let document: Document = serde_json::from_slice(document).ok()?;
        Some(serde_json::from_value(document.console).map_err(Error::from))
    }
}

/// The network that a shell uses: its own, or that of another shell.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkRequest {
    /// A network of its own, which ends with the program.
    Build(Box<Build>),
    /// The network of the shell with this process number.
    Join(i32),
}

/// A network to be built.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// Its scenario.
    pub scenario: Scenario,
    /// The seed of the random numbers of the traffic.
    #[serde(default)]
    pub seed: u64,
    /// What implements the propagation delay.
    #[serde(default)]
    pub delay: DelayChoice,
    /// Mix the seed into the kernel's random numbers, see [`Options`](crate::Options::seed_kernel).
    #[serde(default)]
    pub seed_kernel: bool,
    /// Whether the scenario's own traffic runs too.
    #[serde(default)]
    pub traffic: bool,
    /// Commands to run in parallel with the program.
    #[serde(default)]
    pub with: Vec<BackgroundCommand>,
}

/// A command that runs in the background as long as the program does.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackgroundCommand {
    /// The node on which it runs.
    pub on: String,
    /// The argument of `sh -c`.
    pub command: String,
}
