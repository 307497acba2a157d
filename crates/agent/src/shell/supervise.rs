//! Waits for a program. Meanwhile it handles the program's state changes, the terminal, and other shells that join.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Child;
use std::time::Instant;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;

use super::background::Background;
use super::ending::{Ending, waited};
use super::join_socket::JoinSocket;
use super::terminal::Terminal;
use super::testbed::Testbed;
use crate::kernel::child_env::TerminalMode;
use crate::kernel::pid_namespace::GRACE;

/// Signals that are passed on to the program's group.
const PASSED_ON: [Signal; 7] = [
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGTSTP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// Waits for a program.
#[derive(Debug)]
pub(super) struct Supervisor<'a> {
    signals: SignalFd,
    terminal: Terminal,
    /// Commands that run in parallel with the program.
    pub(super) beside: Vec<Background>,
    /// Where other shells join, if the network is this process' own.
    join_socket: Option<(JoinSocket, &'a Testbed)>,
    /// The connection to the network's holder, if that is another process.
    pub(super) holder: Option<OwnedFd>,
}

impl<'a> Supervisor<'a> {
    /// From now on, signals are passed on to the program. Threads that are started later inherit the blocked signals,
    /// so they do not receive them.
    pub(super) fn new() -> io::Result<Self> {
        let mut signals: SigSet = PASSED_ON.into_iter().collect();
        signals.add(Signal::SIGCHLD);
        let descriptor = SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        // `tcsetpgrp` sends SIGTTOU to a background process that calls it, which would stop this one.
        signals.add(Signal::SIGTTOU);
        signals.thread_block()?;
        Ok(Self {
            signals: descriptor,
            terminal: Terminal::find(),
            beside: Vec::new(),
            join_socket: None,
            holder: None,
        })
    }

    /// How the program is to be started.
    pub(super) fn terminal_mode(&mut self) -> TerminalMode {
        self.terminal.terminal_mode()
    }

    /// Lets other shells join.
    pub(super) fn serve(&mut self, join_socket: JoinSocket, testbed: &'a Testbed) {
        self.join_socket = Some((join_socket, testbed));
    }

    /// Waits until the program ends. Then this process has the terminal again, also after an error.
    pub(super) fn supervise(&mut self, program: Child) -> io::Result<Ending> {
        let ending = self.await_end(Pid::from_raw(program.id() as i32));
        self.terminal.take_back();
        if ending.is_ok() && self.holder.as_ref().is_some_and(is_closed) {
            eprintln!("bufferscope: the network has ended");
        }
        ending
    }

    fn await_end(&mut self, group: Pid) -> io::Result<Ending> {
        loop {
            if let Some(ending) = self.look_after(group)? {
                return Ok(ending);
            }
            self.wait(PollTimeout::NONE)?;
            while let Ok(Some(signal)) = self.signals.read_signal() {
                let signal = Signal::try_from(signal.ssi_signo as i32).unwrap_or(Signal::SIGCHLD);
                if signal != Signal::SIGCHLD {
                    let _ = killpg(group, signal);
                }
            }
            self.beside.retain(Background::is_running_or_reported);
        }
    }

    /// Waits until the background commands have ended, or their time is up.
    pub(super) fn await_background(&mut self) {
        let until = Instant::now() + GRACE;
        loop {
            while let Ok(Some(_)) = self.signals.read_signal() {}
            self.beside.retain(Background::is_running);
            let left = until.saturating_duration_since(Instant::now());
            if self.beside.is_empty()
                || left.is_zero()
                || self.wait(PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)).is_err()
            {
                return;
            }
        }
    }

    /// Handles a change of the program's state. Returns how it ended, if it has ended.
    fn look_after(&mut self, group: Pid) -> io::Result<Option<Ending>> {
        match waited(group) {
            None => Err(io::Error::other("another process has already waited for the program")),
            Some(WaitStatus::Stopped(_, signal)) => {
                self.stopped(group, signal)?;
                Ok(None)
            }
            Some(status) => Ok(Ending::of(status)),
        }
    }

    /// The program has stopped. If it wants the terminal and may have it, it gets it. Otherwise this process stops,
    /// too, so that the user's shell notices. When this process continues, the program continues as well.
    fn stopped(&mut self, group: Pid, signal: Signal) -> io::Result<()> {
        let wants_terminal = matches!(signal, Signal::SIGTTIN | Signal::SIGTTOU);
        if !(wants_terminal && self.terminal.give(group)) {
            self.terminal.take_back();
            self.terminal.stop()?;
            self.terminal.give(group);
        }
        Ok(killpg(group, Signal::SIGCONT)?)
    }

    /// Waits for a signal, and meanwhile lets other shells join.
    fn wait(&mut self, timeout: PollTimeout) -> io::Result<()> {
        let mut watched = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        if let Some((join_socket, _)) = &self.join_socket {
            watched.extend(join_socket.descriptors().map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN)));
        }
        match poll(&mut watched, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some((join_socket, testbed)) = &mut self.join_socket {
            join_socket.serve(testbed);
        }
        Ok(())
    }
}

fn is_closed(descriptor: &OwnedFd) -> bool {
    let mut watched = [PollFd::new(descriptor.as_fd(), PollFlags::POLLIN)];
    matches!(poll(&mut watched, PollTimeout::ZERO), Ok(1..))
}
