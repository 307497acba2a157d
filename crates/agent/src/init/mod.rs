//! The agent as a guest's first process: from the kernel's start to its end.
//!
//! It mounts file systems, loads modules, and stops the machine at the point where its state is saved. When it is
//! restored from there, it reads the run's request, serves it like any other request (or runs the program that the
//! request names), and powers the machine off. Nothing before the stop may sleep: a machine that never idles reaches
//! the stop at the same instruction and time on every start.
//!
//! All paths and names in here have their counterparts in `python/bufferscope/engines/guest`.

mod console;
mod modules;
mod mounts;
mod pause;
mod ports;
mod request;
mod softirqs;

use std::convert::Infallible;
use std::io;
use std::process::ExitCode;

use bufferscope_agent::shell::Console;
use nix::sys::reboot::{RebootMode, reboot};

/// Whether this is the first process of a guest, and not merely of a container.
pub(crate) fn is_guest() -> bool {
    std::process::id() == 1 && modules::are_here()
}

/// Runs the guest from start to end. Returns only if the machine cannot be powered off.
pub(crate) fn run() -> ExitCode {
    if let Err(error) = guest() {
        // The process that started the machine looks for errors on the console.
        eprintln!("bufferscope-agent: {error}");
    }
    match power_off() {
        Err(error) => {
            eprintln!("bufferscope-agent: cannot power off: {error}");
            ExitCode::FAILURE
        }
    }
}

fn guest() -> Result<(), InitError> {
    mounts::mount_all()?;
    modules::load_all()?;
    softirqs::raise_priority()?;
    pause::pause()?;
    let request = request::read()?;
    let port = ports::open(ports::FRAMES)?;
    if let Some(console) = Console::recognised(&request) {
        return console::run(console, port);
    }
    let reopen = || Ok(Box::new(port.try_clone()?) as Box<dyn io::Write + Send>);
    bufferscope_agent::serve(&request[..], reopen).map_err(InitError::step("writing frames"))?;
    Ok(())
}

fn power_off() -> nix::Result<Infallible> {
    reboot(RebootMode::RB_POWER_OFF)
}

/// A step of a run that failed.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
pub(crate) struct InitError {
    what: String,
    source: io::Error,
}

impl InitError {
    /// For `map_err`: adds the step at which it failed.
    fn step<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |error| Self { what, source: error.into() }
    }
}
