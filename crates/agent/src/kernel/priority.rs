//! Scheduling.
#![allow(unsafe_code)]

use std::io;

use nix::errno::Errno;
use nix::libc;

/// Which threads a thread takes precedence over.
#[derive(Clone, Copy, Debug)]
pub enum Before {
    /// All ordinary ones.
    Ordinary = 1,
    /// Also those that take precedence over all ordinary ones.
    Others = 2,
}

/// Gives a thread precedence over others (`SCHED_FIFO`), but not the processes it starts; thread 0 is the calling one.
pub fn put_first(thread: libc::pid_t, before: Before) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: before as libc::c_int };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `parameters` is valid for reads.
    Ok(Errno::result(unsafe { libc::sched_setscheduler(thread, policy, &raw const parameters) }).map(drop)?)
}
