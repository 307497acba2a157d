//! Decides which process group has the terminal. The foreground group gets what is typed, including Ctrl-C and Ctrl-Z.

use std::io::{self, IsTerminal};
use std::os::fd::OwnedFd;

use nix::fcntl::{OFlag, open};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

use crate::kernel::child_env::TerminalMode;

/// The terminal of this session, if there is one.
#[derive(Debug)]
pub(crate) struct Terminal {
    descriptor: Option<OwnedFd>,
    /// The group of this process.
    own: Pid,
    /// Whether this process has given the terminal to the program.
    given: bool,
}

impl Terminal {
    /// Finds the terminal. The signal that stops background processes that change its foreground group must be blocked.
    pub(super) fn find() -> Self {
        let descriptor = open("/dev/tty", OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty()).ok();
        Self { descriptor, own: getpgrp(), given: false }
    }

    /// How a program is started. It gets the terminal if its input comes from there and this process may pass the
    /// terminal on. In a pipeline, other processes may need the terminal; if the program reads from it nevertheless, it
    /// gets it later.
    pub(super) fn terminal_mode(&mut self) -> TerminalMode {
        match self.descriptor.as_ref().map(OwnedFd::try_clone) {
            Some(Ok(terminal)) if io::stdin().is_terminal() && self.is_own() => {
                self.given = true;
                TerminalMode::Foreground(terminal)
            }
            _ => TerminalMode::Group,
        }
    }

    /// Gives the terminal to a group if this process may pass it on; returns whether it did.
    pub(super) fn give(&mut self, group: Pid) -> bool {
        self.given = self.is_own() && self.set(group);
        self.given
    }

    /// Takes the terminal back if this process gave it to the program. It is taken from any group, because a job of a
    /// shell may have had it last.
    pub(super) fn take_back(&mut self) {
        if std::mem::take(&mut self.given) {
            self.set(self.own);
        }
    }

    fn is_own(&self) -> bool {
        self.descriptor.as_ref().is_some_and(|terminal| tcgetpgrp(terminal) == Ok(self.own))
    }

    fn set(&self, group: Pid) -> bool {
        self.descriptor.as_ref().is_some_and(|terminal| tcsetpgrp(terminal, group).is_ok())
    }

    /// Stops this process and those of its pipeline, as Ctrl-Z would have. Returns when they continue; this is at once
    /// if no process could make them continue.
    pub(super) fn stop(&self) -> io::Result<()> {
        let mut stop = SigSet::empty();
        stop.add(Signal::SIGTSTP);
        killpg(self.own, Signal::SIGTSTP)?;
        stop.thread_unblock()?;
        Ok(stop.thread_block()?)
    }
}
