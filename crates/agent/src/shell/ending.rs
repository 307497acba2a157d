//! How a process ended.

use std::fmt::{self, Display, Formatter};
use std::process::ExitCode;

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Killed(Signal),
}

impl Ending {
    pub(super) fn of(status: WaitStatus) -> Option<Self> {
        match status {
            WaitStatus::Exited(_, code) => Some(Self::Exited(code)),
            WaitStatus::Signaled(_, signal, _) => Some(Self::Killed(signal)),
            _ => None,
        }
    }
}

impl Ending {
    /// Ends this process in the same way, so that its parent sees how the program ended.
    pub fn pass_on(self) -> ExitCode {
        match self {
            Self::Exited(code) => ExitCode::from(code as u8),
            Self::Killed(signal) => {
                // If there was to be a core dump, the program has already left it.
                let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
                let mut own = SigSet::empty();
                own.add(signal);
                let _ = own.thread_unblock();
                let _ = raise(signal);
                ExitCode::from(128_u8.saturating_add(signal as i32 as u8))
            }
        }
    }
}

impl Display for Ending {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "ended with status {code}"),
            Self::Killed(signal) => write!(f, "was ended by {signal}"),
        }
    }
}

/// The state of a child process; `None` if it is not a child.
pub(super) fn waited(process: Pid) -> Option<WaitStatus> {
    waitpid(process, Some(WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED)).ok()
}
