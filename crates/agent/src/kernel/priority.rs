//! Scheduling.
#![allow(unsafe_code)]

use std::io;

use nix::errno::Errno;
use nix::libc;

/// The threads over which a thread gets precedence.
#[derive(Clone, Copy, Debug)]
pub enum Precedence {
    /// All ordinary threads.
    Ordinary = 1,
    /// Also the threads that take precedence over all ordinary ones.
    Others = 2,
}

/// Gives a thread precedence over others (`SCHED_FIFO`). The processes that it starts do not inherit this. Thread 0 is
/// the calling thread.
pub fn set_realtime(thread: libc::pid_t, precedence: Precedence) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: precedence as libc::c_int };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: `parameters` is valid for reads.
    Ok(Errno::result(unsafe { libc::sched_setscheduler(thread, policy, &raw const parameters) }).map(drop)?)
}
