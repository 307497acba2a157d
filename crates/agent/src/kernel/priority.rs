//! Scheduling.
#![allow(unsafe_code)]

use std::io;

use nix::errno::Errno;
use nix::libc;

/// Puts a thread before all ordinary ones (`SCHED_FIFO`); thread 0 is the calling one.
pub fn put_first(thread: libc::pid_t) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: `parameters` is valid for reads.
    Ok(Errno::result(unsafe { libc::sched_setscheduler(thread, libc::SCHED_FIFO, &raw const parameters) }).map(drop)?)
}
