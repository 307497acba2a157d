//! Scheduling.
#![allow(unsafe_code)]

use nix::libc;

/// Puts the calling thread before all ordinary ones; `false` where this process may not.
pub(crate) fn raise() -> bool {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: `parameters` is valid for reads, and thread 0 is the calling one.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0 }
}
