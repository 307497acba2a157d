//! Runs a scenario on the Linux kernel: builds its network from namespaces, generates its traffic, and takes samples of
//! the kernel's state.
//!
//! The program reads one [`Request`] as JSON from standard input and writes [frames](bufferscope_records::frame) to
//! standard output. The network's namespaces have no names, and only this process holds them: however the process ends,
//! nothing is left behind.
//!
//! One thread generates all traffic and takes all samples, and another writes. If the kernel cannot implement the
//! propagation delay, a third thread holds packets back.

#![warn(missing_docs)]

mod built_network;
mod capabilities;
mod capture;
mod cards;
mod drop_counters;
mod error;
mod flow_queues;
mod kernel;
mod network;
mod output;
mod rates;
mod reactor;
mod relay;
mod request;
mod sampler;
mod session;
pub mod shell;
mod summary;
mod traffic;
mod warnings;
mod watch;
mod wire_check;
mod wire_losses;

use std::io::{self, Read, Write};

use bufferscope_records::frame::{self, FrameKind};
use bufferscope_scenario::Scenario;
use serde::Serialize;

pub use capabilities::{Capabilities, Lacking, NoLinearTimeouts, Owner, ProbeError};
pub use capture::CaptureReport;
pub use cards::CardError;
pub use error::Error;
pub use kernel::priority::{Precedence, set_realtime};
pub use kernel::privilege::{NoPrivilege, Privilege};
pub use kernel::tool::ToolError;
pub use network::NetworkError;
pub use relay::RelayReport;
pub use request::{DelayChoice, Options, Request};
pub use summary::Summary;
pub use watch::{CpuReport, Sampling};

/// Reads a request, runs it and writes its frames; returns whether it succeeded. The process must still be
/// single-threaded, and is in other namespaces afterwards. Only a failure to write is returned as an error; all other
/// errors are written as frames.
pub fn serve(mut input: impl Read, reopen: impl Fn() -> io::Result<Out>) -> io::Result<bool> {
    let mut text = Vec::new();
    let answer = match input.read_to_end(&mut text) {
        Ok(_) => run(&text, &reopen),
        Err(source) => Err(Error::Step { what: "reading the request", source }),
    };
    match answer {
        Ok((summary, mut out)) => output::write_json(&mut out, FrameKind::Summary, &summary).map(|()| true),
        Err(error) => {
            let report = ErrorReport { kind: error.kind(), message: error.to_string() };
            let mut out = reopen()?;
            frame::write_hello(&mut out)?;
            output::write_json(&mut out, FrameKind::Error, &report).map(|()| false)
        }
    }
}

/// What this kernel supports. The process must be single-threaded, and is in another network namespace afterwards.
pub fn capabilities() -> Result<Capabilities, Error> {
    Ok(Capabilities::probe(kernel::privilege::acquire()?)?)
}

/// For each scenario in a JSON list, the reason why this kernel cannot run it; `None` if it can. The requirements for
/// the process are those of [`capabilities`].
pub fn check(mut input: impl Read) -> Result<Vec<Option<String>>, Error> {
    let mut text = Vec::new();
    input.read_to_end(&mut text).map_err(Error::step("reading the scenarios"))?;
    let scenarios: Vec<Scenario> = serde_json::from_slice(&text)?;
    let capabilities = capabilities()?;
    let check = |scenario| {
        let (plan, _) = built_network::plan(scenario, DelayChoice::Auto, &capabilities, Owner::User)?;
        cards::CardSet::find(&plan).map_err(NetworkError::from)?;
        Ok::<_, Error>(())
    };
    Ok(scenarios.iter().map(|scenario| check(scenario).err().map(|error| error.to_string())).collect())
}

#[derive(Serialize)]
struct ErrorReport {
    kind: &'static str,
    message: String,
}

type Out = Box<dyn Write + Send>;

fn run(request: &[u8], reopen: &impl Fn() -> io::Result<Out>) -> Result<(Summary, Out), Error> {
    let request = Request::read(request)?;
    session::run(&request, reopen().map_err(Error::step("opening the output"))?)
}
