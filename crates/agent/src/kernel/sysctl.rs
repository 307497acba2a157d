//! Settings of the calling thread's network namespace, under `/proc/sys`.

use std::io;
use std::path::PathBuf;

/// Whether this kernel has a setting, dotted as `sysctl` wants it.
pub(crate) fn exists(key: &str) -> bool {
    path(key).exists()
}

/// Changes a setting.
pub(crate) fn write(key: &str, value: &str) -> io::Result<()> {
    std::fs::write(path(key), value)
}

fn path(key: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(key.replace('.', "/"))
}
