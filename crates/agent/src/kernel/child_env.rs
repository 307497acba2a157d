//! The environment in which a third-party program is started: a host's network, the host's name, and the names of its
//! neighbours.
//!
//! Everything else is the machine's own: its files, its users, its terminal.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::SigSet;
use nix::sys::stat::Mode;
use nix::unistd::{getpid, sethostname, setsid, tcsetpgrp, write};

/// The directory in which a file is created before it is mounted over its target. It exists on every Linux system, and
/// a new file there is visible at once.
const STAGING_DIRECTORY: &CStr = c"/sys";
const STAGED_FILE: &CStr = c"/sys/draft";

/// The program's relation to the terminal.
#[derive(Debug)]
pub(crate) enum TerminalMode {
    /// It is in a process group of its own, and has the terminal.
    Foreground(OwnedFd),
    /// It is in a process group of its own, and may get the terminal later.
    Group,
    /// It has no terminal.
    Detached,
}

/// The environment.
#[derive(Debug)]
pub(crate) struct ChildEnv {
    /// Its network namespace.
    pub(crate) network: OwnedFd,
    /// The host name of the machine there.
    pub(crate) name: String,
    /// Files that have different contents for the program: path and content.
    pub(crate) files: Vec<(CString, Vec<u8>)>,
}

impl ChildEnv {
    /// Starts a program in this environment. The error is that of starting the program; other failures are also
    /// reported on the standard error.
    pub(crate) fn spawn(self, terminal_mode: TerminalMode, command: &mut Command) -> io::Result<Child> {
        if matches!(terminal_mode, TerminalMode::Foreground(_) | TerminalMode::Group) {
            command.process_group(0);
        }
        // SAFETY: between fork and exec there are only system calls; nothing there allocates memory or takes a lock.
        unsafe { command.pre_exec(move || self.enter(&terminal_mode)) }.spawn()
    }

    /// Runs in the child. It must not allocate memory, because another thread may have held the allocator's lock at the
    /// fork.
    fn enter(&self, terminal_mode: &TerminalMode) -> io::Result<()> {
        match terminal_mode {
            // The parent has blocked the signal that would otherwise stop the child here.
            TerminalMode::Foreground(terminal) => {
                let _ = tcsetpgrp(terminal, getpid());
            }
            TerminalMode::Group => {}
            TerminalMode::Detached => drop(setsid()?),
        }
        attempt("enter the host's network", setns(&self.network, CloneFlags::CLONE_NEWNET))?;
        attempt("have file systems of its own", unshare(CloneFlags::CLONE_NEWNS))?;
        let nothing = None::<&CStr>;
        attempt(
            "keep its mounts to itself",
            mount(nothing, c"/", nothing, MsFlags::MS_REC | MsFlags::MS_SLAVE, nothing),
        )?;
        // Before /sys is mounted anew, because the files are prepared on a file system that hides it.
        for (path, content) in &self.files {
            attempt("see the hosts' names", replace(path, content))?;
        }
        // The machine's own file systems would show its devices and processes. In some containers, mounting new ones is
        // not allowed.
        let _ = mount(Some(c"sysfs"), c"/sys", Some(c"sysfs"), MsFlags::empty(), nothing);
        let _ = mount(Some(c"proc"), c"/proc", Some(c"proc"), MsFlags::empty(), nothing);
        if unshare(CloneFlags::CLONE_NEWUTS).is_ok() {
            let _ = sethostname(&self.name);
        }
        Ok(SigSet::empty().thread_set_mask()?)
    }
}

/// Mounts a file with that content over an existing one. If there is no such file, no program looks for it.
fn replace(path: &CStr, content: &[u8]) -> nix::Result<()> {
    let nothing = None::<&CStr>;
    mount(Some(c"tmpfs"), STAGING_DIRECTORY, Some(c"tmpfs"), MsFlags::empty(), nothing)?;
    let draft =
        open(STAGED_FILE, OFlag::O_CREAT | OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::from_bits_truncate(0o644))?;
    let mut left = content;
    while !left.is_empty() {
        left = &left[write(&draft, left)?..];
    }
    let done = mount(Some(STAGED_FILE), path, nothing, MsFlags::MS_BIND, nothing);
    umount2(STAGING_DIRECTORY, MntFlags::MNT_DETACH)?;
    match done {
        Err(Errno::ENOENT) => Ok(()),
        other => other,
    }
}

/// The parent only receives the error number, so the failed operation is reported here.
fn attempt(what: &str, done: nix::Result<()>) -> io::Result<()> {
    done.map_err(|error| {
        for part in ["bufferscope: the program cannot ", what, ": ", error.desc(), "\n"] {
            let _ = write(io::stderr(), part.as_bytes());
        }
        error.into()
    })
}
