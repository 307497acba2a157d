//! The file systems that programs expect.

use std::os::unix::fs::symlink;

use nix::mount::{MsFlags, mount};

use super::InitError;

/// Type and mount point; the image has the directories.
const MOUNTS: [(&str, &str); 5] =
    [("devtmpfs", "/dev"), ("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("tmpfs", "/tmp")];

pub(super) fn mount_all() -> Result<(), InitError> {
    for (kind, target) in MOUNTS {
        mount(Some(kind), target, Some(kind), MsFlags::empty(), None::<&str>)
            .map_err(InitError::step(format!("mounting {kind} on {target}")))?;
    }
    // A link that a distribution's init would have created.
    symlink("/proc/self/fd", "/dev/fd").map_err(InitError::step("linking /dev/fd"))
}
