//! Memory that the allocator keeps for itself, which would look like a leak and is one on a router with little of it.
#![allow(unsafe_code)]

/// Lets all threads share one heap. Call it before there are threads.
///
/// glibc gives threads heaps of their own. The records of a test grow on the threads of its load connections and are
/// freed on another, and the end of such a heap is returned to the system only beyond `M_TRIM_THRESHOLD` (mallopt(3)), so
/// that each of up to eight heaps per processor ends up as large as its largest use. These threads allocate
/// about ten times a second, so they do not need heaps of their own.
pub(super) fn share_one_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt only sets a number that later allocations read.
    unsafe {
        nix::libc::mallopt(nix::libc::M_ARENA_MAX, 1);
    }
}

/// Returns free memory to the system, also from between blocks that are in use (malloc_trim(3)).
pub(super) fn release() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim may be called at any time and from any thread, and changes no block that is in use.
    unsafe {
        nix::libc::malloc_trim(0);
    }
}
