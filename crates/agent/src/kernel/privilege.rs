//! The privilege to create network namespaces: that of root, or that of an ordinary user in a user namespace.

use std::io;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getgid, getuid};
use serde::Serialize;

/// The privilege with which the network was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Privilege {
    /// The process may administer networks as it is.
    Root,
    /// The process is root of a user namespace of its own, and an ordinary user outside.
    UserNamespace,
}

/// Neither privilege is available.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot make network namespaces: not root, and this kernel refuses unprivileged user namespaces ({0}); \
     run as root, allow them (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0, \
     user.max_user_namespaces), or use --engine guest"
)]
pub struct NoPrivilege(io::Error);

/// Acquires the privilege. The process must still be single-threaded; it is in a new network namespace afterwards.
pub(crate) fn acquire() -> Result<Privilege, NoPrivilege> {
    match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => Ok(Privilege::Root),
        Err(Errno::EPERM) => enter_user_namespace().map(|()| Privilege::UserNamespace).map_err(NoPrivilege),
        Err(error) => Err(NoPrivilege(error.into())),
    }
}

fn enter_user_namespace() -> io::Result<()> {
    let (user, group) = (getuid(), getgid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}
