//! Commands that run in parallel with the program: a server on another host, a packet trace.

use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;

use super::ending::{Ending, waited};
use super::program::command;
use super::request::BackgroundCommand;
use super::testbed::Testbed;
use crate::error::Error;
use crate::kernel::child_env::TerminalMode;
use crate::kernel::socket_tables;

/// How long to wait for the commands' sockets; a server opens its socket sooner even on a busy machine, and other
/// commands delay the program by no more.
const TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A command in the background.
#[derive(Debug)]
pub(super) struct Background {
    process: Pid,
    host: String,
    command: String,
}

impl Background {
    /// Whether the command is still running. Reports its end if it was not asked to end.
    pub(super) fn runs(&self, asked: bool) -> bool {
        match waited(self.process) {
            Some(WaitStatus::StillAlive | WaitStatus::Stopped(..)) => true,
            Some(status) => {
                if let Some(ending) = Ending::of(status).filter(|_| !asked) {
                    eprintln!("bufferscope: `{}` on {} {ending}", self.command, self.host);
                }
                false
            }
            None => false,
        }
    }
}

/// Starts commands, and waits until every host has as many additional sockets as it has commands. A program that is
/// started after that finds its servers.
pub(super) fn start(testbed: &Testbed, wanted: &[BackgroundCommand]) -> Result<Vec<Background>, Error> {
    let failed = || Error::step("checking whether the background commands are ready");
    let mut started = Vec::new();
    let mut awaited = Vec::new();
    for beside in wanted {
        let host = testbed.host(&beside.on)?;
        let before = socket_tables::count(testbed.namespace(host)).map_err(failed())?;
        let commands = wanted.iter().filter(|other| other.on == beside.on).count();
        awaited.push((host, before + commands));
        started.push((beside, host));
    }
    let start = |(beside, host): (&BackgroundCommand, usize)| {
        let child_env = testbed.child_env(host)?;
        let mut shell = command("/bin/sh", &beside.on);
        // Its output would disturb the program's screen, so only its error messages are shown.
        shell.args(["-c", &beside.command]).stdin(Stdio::null()).stdout(Stdio::null());
        let child = child_env.spawn(TerminalMode::Detached, &mut shell);
        let child = child.map_err(|source| Error::Program { name: "/bin/sh".into(), source })?;
        let process = Pid::from_raw(child.id() as i32);
        Ok(Background { process, host: beside.on.clone(), command: beside.command.clone() })
    };
    let mut running: Vec<Background> = started.into_iter().map(start).collect::<Result<_, Error>>()?;
    let until = Instant::now() + TIMEOUT;
    while Instant::now() < until && !running.is_empty() {
        let mut ready = true;
        for &(host, sockets) in &awaited {
            ready &= socket_tables::count(testbed.namespace(host)).map_err(failed())? >= sockets;
        }
        if ready {
            break;
        }
        sleep(POLL_INTERVAL);
        running.retain(|background| background.runs(false));
    }
    Ok(running)
}
