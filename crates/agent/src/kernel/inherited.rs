//! File descriptors that the parent process left open for this program.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::{FromRawFd, RawFd};

/// Takes ownership of such a descriptor. It must not be one of the three standard ones, and may be taken only once.
pub(crate) fn take(descriptor: RawFd) -> File {
    assert!(descriptor > 2, "the standard descriptors have owners");
    // SAFETY: the process that started this program made the descriptor for this program alone, as the arguments say.
    unsafe { File::from_raw_fd(descriptor) }
}
