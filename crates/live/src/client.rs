//! `bufferscope-live measure`: the near end of a test.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bufferscope_verdict::input::Parameters;

use crate::local::EndFacts;
use crate::records::{EndRecords, FlowRow, GoodputRow, ServerRecords};
use crate::wire::control::{PhaseKind, Welcome};
use crate::wire::load::SendBuffer;
use crate::wire::token::Token;

pub mod control;
pub mod exchanges;
mod first_hop;
mod flood;
mod flooding;
mod flows;
pub mod http;
pub mod level;
mod modem;
pub mod monitor;
pub mod observe;
pub mod others;
pub mod prober;
mod rates;
pub mod secure;
mod test_run;

use control::{ConnectError, Control};
use exchanges::Exchange;
use prober::Probe;
use test_run::TestRun;

/// What a user may choose about a test.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The server's address.
    pub server: SocketAddr,
    /// Its token.
    pub token: Token,
    /// The phases, in their order.
    pub phases: Vec<PhaseKind>,
    /// Load connections in each direction; `None`: as many as make the load faster.
    pub flows: Option<u16>,
    /// The congestion control of the load, by Linux' name; empty: each end's default.
    pub congestion: String,
    /// How much of the load may wait in the send buffer of either end.
    pub send_buffer: SendBuffer,
    /// The interface whose queues are looked at; `None`: the one that the route to the server uses.
    pub interface: Option<String>,
    /// The longest time of a loaded phase.
    pub at_most: Duration,
    /// Whether the load is followed by a flood in each direction, if the server accepts it.
    pub flood: bool,
    /// Time between two echoes.
    pub interval: Duration,
    /// The time of the idle phase. Each hop answers about once a second.
    pub idle: Duration,
    /// The time of the phase after the load.
    pub cool_down: Duration,
}

/// What happens during a test.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// Other tests come first.
    Queued(usize),
    /// The test has begun: with which address, and what is known of both ends.
    Start(SocketAddr, &'a FarEnd, &'a EndFacts),
    /// A phase has begun: which, when after the test's beginning, and how many seconds it takes at most.
    Phase(PhaseKind, u64, u64),
    /// The state a few times a second.
    Progress(Progress),
    /// Something that the user should know.
    Warning(String),
}

/// What is known of the server.
#[derive(Clone, Debug)]
pub struct FarEnd {
    /// Its version, or what it says that it is.
    pub version: String,
    /// The release of its kernel; empty: not known.
    pub kernel: String,
    /// The client's address, as it sees it.
    pub seen_as: Option<String>,
}

impl FarEnd {
    /// What a server of bufferscope says of itself.
    pub fn of(welcome: &Welcome) -> Self {
        Self {
            version: welcome.version.clone(),
            kernel: welcome.end.kernel.clone(),
            seen_as: Some(welcome.seen_as.clone()),
        }
    }
}

/// The state of a test.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Since the test's beginning.
    pub t_ns: u64,
    /// The phase.
    pub phase: PhaseKind,
    /// The last echo's round trip.
    pub rtt_ns: Option<u64>,
    /// The present rates, down and up, in bit/s.
    pub rates_bps: [Option<f64>; 2],
    /// Seconds until the phase ends at the latest.
    pub left_s: f64,
}

/// A phase that was run.
#[derive(Clone, Debug)]
pub struct PhaseRecord {
    /// Which.
    pub kind: PhaseKind,
    /// When it began, on the client's real-time clock.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Whether the delay had levelled off; `None` for phases without load.
    pub levelled: Option<bool>,
    /// Why its load failed.
    pub load_failure: Option<String>,
}

/// Everything that was recorded, also if the test ended early.
#[derive(Debug)]
pub struct Measurement {
    /// When it began, on the real-time clock.
    pub start_ns: u64,
    /// The phases.
    pub phases: Vec<PhaseRecord>,
    /// The probes.
    pub probes: Vec<Probe>,
    /// The connections that were made as probes.
    pub exchanges: Vec<Exchange>,
    /// Round trips within load connections, with their direction: whether it is down, when, and how long.
    pub marks: Vec<(bool, u64, u64)>,
    /// What this end recorded.
    pub client: EndRecords,
    /// What was recorded instead of a server's records, if it is not one of bufferscope.
    pub other: OtherServer,
    /// What is known of this end.
    pub facts: EndFacts,
    /// Number of links to the server.
    pub distance: Option<u8>,
    /// What the server recorded; `None`: the test ended before it could be asked.
    pub server: Option<ServerRecords>,
    /// What the server said at the beginning: of itself ...
    pub far: FarEnd,
    /// ... and of its end of the path.
    pub server_facts: EndFacts,
    /// Whether the kernel stamped what arrived.
    pub stamped_by_kernel: bool,
    /// Times from reading the clock to the kernel's stamp, for every probe that was sent.
    pub send_errors_ns: Vec<u64>,
    /// Why the test ended early.
    pub ended_early: Option<String>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// What this end records of a test with a server that is not one of bufferscope.
#[derive(Debug, Default)]
pub struct OtherServer {
    /// The round-trip times of this end's own segments on connections with a download.
    pub of_downloads: Vec<FlowRow>,
    /// New connections without a request: when they were begun, and how long their handshakes took.
    pub handshakes: Vec<(u64, Option<u64>)>,
    /// What the server has acknowledged of uploads.
    pub uploaded: Vec<GoodputRow>,
    /// The protocol, and its parameters.
    pub parameters: Parameters,
}

/// The idle phase: enough for eight answers of each hop.
pub const IDLE: Duration = Duration::from_secs(10);
/// The phase after the load.
pub const COOL_DOWN: Duration = Duration::from_secs(5);
/// Runs a test. `interrupted` asks for its early end. Events go to `report`.
pub async fn measure(
    settings: &Settings,
    interrupted: &AtomicBool,
    mut report: impl FnMut(Event<'_>),
) -> Result<Measurement, ConnectError> {
    let (control, welcome) =
        Control::connect(settings.server, &settings.token, |position| report(Event::Queued(position))).await?;
    let mut test = TestRun::begin(settings, interrupted, control, welcome).map_err(ConnectError::Here)?;
    let ended = test.run(&mut report).await;
    Ok(test.finish(ended.err()).await)
}
