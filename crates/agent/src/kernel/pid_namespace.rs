//! Processes that end together. They are in a PID namespace, and when its first process ends, all others end, too.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{AddressFamily, MsgFlags, Shutdown, SockFlag, SockType, send, shutdown, socketpair};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, setsid};

/// How long processes may take to end when they are asked to. Programs that write a file, like `tcpdump`, complete it
/// in that time.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// A PID namespace. All processes in it end with this process, however this process ends.
///
/// Its init process holds the other end of the `lifeline`:
///
/// - If this process shuts its end down for writing ([`PidNamespace::ask_to_end`]) or closes it, the init process asks all others to end.
/// - When none is left or their time is up, the init process writes a byte.
/// - When this process closes its end, the init process ends, and the kernel kills all that are left.
#[derive(Debug)]
pub(crate) struct PidNamespace {
    lifeline: OwnedFd,
    namespace: OwnedFd,
}

impl PidNamespace {
    /// Creates one. Refused if the process has more than one thread: the others might hold locks that the init process
    /// needs.
    pub(crate) fn create() -> io::Result<Self> {
        if fs::read_dir("/proc/self/task")?.count() != 1 {
            return Err(io::Error::other("this process has several threads"));
        }
        let (lifeline, end) = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC)?;
        // SAFETY: without a stack and without shared memory, clone(2) is fork(2) with a namespace, and there are no other
        // threads.
        let init = unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_NEWPID | libc::SIGCHLD, 0, 0, 0, 0) };
        match init {
            0 => {
                drop(lifeline);
                run_init(&end)
            }
            1.. => {
                let namespace = File::open(format!("/proc/{init}/ns/pid"))?.into();
                Ok(Self { lifeline, namespace })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Processes that the calling thread starts from now on are in the namespace. The thread itself is not, and cannot
    /// start threads any more.
    pub(crate) fn enter_for_children(&self) -> io::Result<()> {
        enter_for_children(&self.namespace)
    }

    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.namespace
    }

    /// Asks all processes in it to end; they have [`GRACE`] to do so.
    pub(crate) fn ask_to_end(&self) {
        let _ = shutdown(self.lifeline.as_raw_fd(), Shutdown::Write);
    }

    /// Waits until the namespace's orphans have ended or their time is up.
    pub(crate) fn await_orphans(&self) {
        let mut watched = [PollFd::new(self.lifeline.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut watched, PollTimeout::try_from(2 * GRACE).unwrap_or(PollTimeout::MAX));
    }
}

/// Processes that the calling thread starts from now on are in that PID namespace.
pub(crate) fn enter_for_children(namespace: &OwnedFd) -> io::Result<()> {
    Ok(setns(namespace, CloneFlags::CLONE_NEWPID)?)
}

/// The init process of the namespace. It reaps orphans until all processes have to end, asks them to end, and reports
/// when none is left or their time is up. It lives until its creator has ended, because everything in the namespace ends
/// with it.
fn run_init(lifeline: &OwnedFd) -> ! {
    let status = match serve_as_init(lifeline) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("bufferscope: the init process of a PID namespace: {error}");
            1
        }
    };
    // SAFETY: this ends the process without running the functions that its creator has registered for its exit.
    unsafe { libc::_exit(status) }
}

fn serve_as_init(lifeline: &OwnedFd) -> io::Result<()> {
    // The kernel kills this process when the thread that created it ends. If that happened before this call, the closed
    // lifeline ends it.
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    let _ = setsid();
    let children = children_signals()?;
    reap_until(&children, Until::Event(lifeline, PollFlags::POLLIN))?;
    // To all other processes in the namespace.
    let _ = kill(Pid::from_raw(-1), Signal::SIGTERM);
    let _ = kill(Pid::from_raw(-1), Signal::SIGCONT);
    reap_until(&children, Until::NoneLeft(Instant::now() + GRACE))?;
    let _ = send(lifeline.as_raw_fd(), &[0], MsgFlags::MSG_NOSIGNAL);
    reap_until(&children, Until::Event(lifeline, PollFlags::empty()))
}

fn children_signals() -> io::Result<SignalFd> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGCHLD);
    signals.thread_block()?;
    Ok(SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?)
}

/// How long to reap children.
#[derive(Clone, Copy)]
enum Until<'a> {
    /// Until one of these events on a descriptor, or until it is closed at the other end.
    Event(&'a OwnedFd, PollFlags),
    /// Until no child is left, or until this time.
    NoneLeft(Instant),
}

fn reap_until(children: &SignalFd, until: Until<'_>) -> io::Result<()> {
    loop {
        while let Ok(Some(_)) = children.read_signal() {}
        let is_last = reap();
        let mut watched = vec![PollFd::new(children.as_fd(), PollFlags::POLLIN)];
        let timeout = match until {
            Until::Event(descriptor, events) => {
                watched.push(PollFd::new(descriptor.as_fd(), events));
                PollTimeout::NONE
            }
            Until::NoneLeft(_) if is_last => return Ok(()),
            Until::NoneLeft(end) => {
                let left = end.saturating_duration_since(Instant::now());
                PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
            }
        };
        match poll(&mut watched, timeout) {
            Ok(0) => return Ok(()),
            Ok(_) if watched.get(1).is_some_and(|descriptor| descriptor.any() == Some(true)) => return Ok(()),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reaps all children that have ended; returns whether none is left.
fn reap() -> bool {
    loop {
        match waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return false,
            Ok(_) => {}
            Err(error) => return error == Errno::ECHILD,
        }
    }
}
