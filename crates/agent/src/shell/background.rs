//! Commands that run in parallel with the program: a server on another host, a packet trace.

use std::collections::BTreeMap;
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
    host: usize,
    host_name: String,
    command: String,
}

impl Background {
    fn start(
        testbed: &Testbed,
        BackgroundCommand { on, command: text }: &BackgroundCommand,
        host: usize,
    ) -> Result<Self, Error> {
        let mut shell = command("/bin/sh", on);
        // Its output would disturb the program's screen, so only its error messages are shown.
        shell.args(["-c", text]).stdin(Stdio::null()).stdout(Stdio::null());
        let child = testbed.child_env(host)?.spawn(TerminalMode::Detached, &mut shell);
        let child = child.map_err(|source| Error::Program { name: "/bin/sh".into(), source })?;
        Ok(Self { process: Pid::from_raw(child.id() as i32), host, host_name: on.clone(), command: text.clone() })
    }

    /// Whether the command is still running.
    pub(super) fn is_running(&self) -> bool {
        self.state().is_none()
    }

    /// Whether the command is still running; reports it if it has ended by itself.
    pub(super) fn is_running_or_reported(&self) -> bool {
        match self.state() {
            None => true,
            Some(ending) => {
                if let Some(ending) = ending {
                    eprintln!("bufferscope: `{}` on {} {ending}", self.command, self.host_name);
                }
                false
            }
        }
    }

    /// None while the command runs; then how it ended, as far as that is known.
    fn state(&self) -> Option<Option<Ending>> {
        match waited(self.process) {
            Some(WaitStatus::StillAlive | WaitStatus::Stopped(..)) => None,
            Some(status) => Some(Ending::of(status)),
            None => Some(None),
        }
    }
}

/// Starts commands, and waits until every host has as many additional sockets as it has running commands. A program
/// that is started after that finds its servers. If a command opens no socket within [`TIMEOUT`], a message says so.
pub(super) fn start(testbed: &Testbed, wanted: &[BackgroundCommand]) -> Result<Vec<Background>, Error> {
    let sockets = |host| {
        let counted = socket_tables::count(testbed.namespace(host));
        counted.map_err(Error::step("checking whether the background commands are ready"))
    };
    let hosts = wanted.iter().map(|command| testbed.host(&command.on)).collect::<Result<Vec<_>, _>>()?;
    let mut sockets_before = BTreeMap::new();
    for &host in &hosts {
        sockets_before.insert(host, sockets(host)?);
    }
    let starts = wanted.iter().zip(hosts).map(|(command, host)| Background::start(testbed, command, host));
    let mut running = starts.collect::<Result<Vec<_>, _>>()?;
    let until = Instant::now() + TIMEOUT;
    loop {
        running.retain(Background::is_running_or_reported);
        let mut waits_for = None;
        for (&host, &before) in &sockets_before {
            let mut commands = running.iter().filter(|background| background.host == host).peekable();
            let first = commands.peek().copied();
            if sockets(host)? < before + commands.count() {
                waits_for = first;
            }
        }
        match waits_for {
            None => return Ok(running),
            Some(Background { host_name, .. }) if Instant::now() >= until => {
                let seconds = TIMEOUT.as_secs();
                eprintln!(
                    "bufferscope: {host_name}: not every background command has opened a socket within {seconds} s; \
                     the program starts without it"
                );
                return Ok(running);
            }
            Some(_) => sleep(POLL_INTERVAL),
        }
    }
}
