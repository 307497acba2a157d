//! Network namespaces without names: each lives only as long as this process holds its descriptor.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sched::{CloneFlags, setns, unshare};

/// A network namespace.
#[derive(Debug)]
pub(crate) struct Namespace(OwnedFd);

impl Namespace {
    /// Creates one; the calling thread is in it afterwards.
    pub(crate) fn create() -> std::io::Result<Self> {
        unshare(CloneFlags::CLONE_NEWNET)?;
        Self::current()
    }

    /// The one that the calling thread is in.
    pub(crate) fn current() -> std::io::Result<Self> {
        Ok(Self(File::open("/proc/thread-self/ns/net")?.into()))
    }

    /// Moves the calling thread into the namespace. Sockets and processes that the thread creates from now on belong to
    /// it.
    pub(crate) fn enter(&self) -> std::io::Result<()> {
        Ok(setns(&self.0, CloneFlags::CLONE_NEWNET)?)
    }

    /// Another descriptor of the namespace, for a process that is to run in it.
    pub(crate) fn hold(&self) -> std::io::Result<OwnedFd> {
        self.0.try_clone()
    }

    pub(crate) fn descriptor(&self) -> &OwnedFd {
        &self.0
    }

    /// A path by which `ip` can open it.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}
