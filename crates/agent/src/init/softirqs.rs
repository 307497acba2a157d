//! Gives packets precedence over programs.
//!
//! All hosts of a guest share its one processor. If a packet wakes a program while more packets are pending, the kernel
//! leaves those to a thread (`need_resched` in `__do_softirq`); before Linux 6.4 that includes all packets that arrive
//! meanwhile (`ksoftirqd_running`). As an ordinary thread, it takes turns with the programs. So every sample that is
//! taken, and every receiver that reads, would delay the packets of all hosts. A program on a machine of its own cannot
//! do that.

use std::fs;
use std::path::Path;

use bufferscope_agent::{Precedence, set_realtime};
use nix::errno::Errno;
use nix::libc::pid_t;

use super::InitError;

/// Where processes are listed.
const PROCESSES: &str = "/proc";
/// How the kernel names its threads for packets, one per processor.
const THREAD: &str = "ksoftirqd/";

/// Gives the kernel's threads for packets priority over all programs.
pub(super) fn raise_priority() -> Result<(), InitError> {
    let listing = fs::read_dir(PROCESSES).map_err(InitError::step(format!("listing {PROCESSES}")))?;
    let threads: Vec<_> = listing.filter_map(|entry| packet_thread(&entry.ok()?.path())).collect();
    if threads.is_empty() {
        return Err(InitError::step(format!("looking for {THREAD} in {PROCESSES}"))(Errno::ESRCH));
    }
    threads
        .into_iter()
        .try_for_each(|thread| set_realtime(thread, Precedence::Ordinary))
        .map_err(InitError::step(format!("raising the priority of {THREAD}")))
}

/// The thread number of a directory of [`PROCESSES`], if that thread handles packets.
fn packet_thread(directory: &Path) -> Option<pid_t> {
    let thread = directory.file_name()?.to_str()?.parse().ok()?;
    let name = fs::read_to_string(directory.join("comm")).ok()?;
    name.starts_with(THREAD).then_some(thread)
}
