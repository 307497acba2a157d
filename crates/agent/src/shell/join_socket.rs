//! The socket at which other shells join a network. It is named after the process that holds the network.
//!
//! A shell that joins asks for a host, and gets the descriptors of the namespaces that it has to enter. The connection
//! stays open as long as both exist, so that each notices when the other has ended.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sched::{CloneFlags, setns};
use serde::{Deserialize, Serialize};

use super::testbed::{self, Testbed};
use crate::error::Error;
use crate::kernel::child_env::ChildEnv;
use crate::kernel::privilege::Privilege;
use crate::kernel::{local_socket, pid_namespace};

/// Largest message. A request is a host's name; an answer has the names and addresses of all hosts.
const MESSAGE_BYTES: usize = 1 << 17;

/// The listening socket of a network's holder, and the shells that joined.
#[derive(Debug)]
pub(super) struct JoinSocket {
    listener: OwnedFd,
    joined: Vec<OwnedFd>,
}

/// The answer to a shell that joins.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
enum Answer {
    Enter { hosts: String },
    Refused(String),
}

impl JoinSocket {
    /// Opens the socket in the network namespace of the calling thread.
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self { listener: local_socket::listener(&name(std::process::id() as i32))?, joined: Vec::new() })
    }

    /// The descriptors to watch for shells that join or leave.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(&self.listener).chain(&self.joined).map(AsFd::as_fd)
    }

    /// Serves new connections, and forgets closed ones.
    pub(super) fn serve(&mut self, testbed: &Testbed) {
        while let Ok(Some(shell)) = local_socket::accepted(&self.listener) {
            self.joined.push(shell);
        }
        let mut request = vec![0; MESSAGE_BYTES];
        self.joined.retain(|shell| match local_socket::receive(shell, &mut request) {
            Ok((0, _)) => false,
            Ok((length, _)) => answer(shell, &String::from_utf8_lossy(&request[..length]), testbed).is_ok(),
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        });
    }
}

fn answer(shell: &OwnedFd, host: &str, testbed: &Testbed) -> io::Result<()> {
    let send = |answer: Answer, descriptors: &[&OwnedFd]| {
        let descriptors: Vec<_> = descriptors.iter().map(|descriptor| descriptor.as_raw_fd()).collect();
        local_socket::send(shell, &serde_json::to_vec(&answer)?, &descriptors)
    };
    let host = match testbed.host(host) {
        Ok(host) => host,
        Err(error) => return send(Answer::Refused(error.to_string()), &[]),
    };
    let enter = Answer::Enter { hosts: testbed.hosts().to_owned() };
    let (network, processes) = (testbed.namespace(host).descriptor(), testbed.processes.descriptor());
    match testbed.privilege() {
        Privilege::Root => send(enter, &[network, processes]),
        Privilege::UserNamespace => {
            let user = File::open("/proc/self/ns/user")?.into();
            send(enter, &[network, processes, &user])
        }
    }
}

/// What the holder of the network has provided.
#[derive(Debug)]
pub(super) struct Entry {
    host: String,
    hosts: String,
    network: OwnedFd,
    processes: OwnedFd,
    user: Option<OwnedFd>,
    holder: OwnedFd,
}

/// Asks the holder of a network for one of its hosts.
pub(super) fn request_host(process: i32, host: &str) -> Result<Entry, Error> {
    let failed = |why: String| Error::Join { process, why };
    let holder = local_socket::connected(&name(process)).map_err(|error| {
        failed(format!(
            "{error}; `bufferscope shell EXPERIMENT` prints its number when it starts, and only the same user can join"
        ))
    })?;
    let mut answer = vec![0; MESSAGE_BYTES];
    let asked = local_socket::send(&holder, host.as_bytes(), &[]);
    let received = asked.and_then(|()| local_socket::receive(&holder, &mut answer));
    let (length, descriptors) = received.map_err(|error| failed(error.to_string()))?;
    let hosts = match serde_json::from_slice(&answer[..length]) {
        Ok(Answer::Enter { hosts }) => hosts,
        Ok(Answer::Refused(why)) => return Err(failed(why)),
        Err(error) => return Err(failed(format!("its answer is malformed: {error}"))),
    };
    let mut descriptors = descriptors.into_iter();
    match (descriptors.next(), descriptors.next(), descriptors.next()) {
        (Some(network), Some(processes), user) => {
            Ok(Entry { host: host.to_owned(), hosts, network, processes, user, holder })
        }
        _ => Err(failed("its answer lacks what is to be entered".into())),
    }
}

impl Entry {
    /// Enters the namespaces that this process has to enter; the program enters the rest. The process must be
    /// single-threaded. Also returns the connection, which ends with the network.
    pub(super) fn enter(self) -> Result<(ChildEnv, OwnedFd), Error> {
        let enter = || -> io::Result<()> {
            if let Some(user) = &self.user {
                setns(user, CloneFlags::CLONE_NEWUSER)?;
            }
            pid_namespace::enter_for_children(&self.processes)
        };
        enter().map_err(Error::step("entering the network"))?;
        Ok((testbed::child_env(self.network, self.host, &self.hosts), self.holder))
    }
}

/// The name of a holder's socket.
fn name(process: i32) -> String {
    format!("bufferscope-shell-{process}")
}
