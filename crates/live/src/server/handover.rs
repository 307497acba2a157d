//! An upgrade: a new process takes over, and no test is cut.
//!
//! The running process starts the program anew, with the same options, and gives it its sockets, the accounts of the addresses
//! and its identity, over a Unix socket that is the new process's standard input (unix(7), `SCM_RIGHTS`). From then on the new
//! process accepts connections and receives probes, and the old one ends with its last client. What still belongs to the old
//! process comes back to it:
//!
//! - Probes of a running session go to a UDP socket of the old process that is connected to their client; the kernel
//!   prefers it to the one at the same port that is not connected. A client whose address was not known, or changes, sends its
//!   next probe to the new process, which passes it on.
//! - A new TCP connection of a running session is recognised before it is read, and its descriptor is passed on. That of a
//!   page over TLS can be recognised only by the address of its client.
//!
//! Tests that run together falsify each other, so the new process counts the clients of the old one as before its own.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::cmsg_space;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, UnixAddr, recvmsg, sendmsg};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::wire::SessionId;

mod predecessor;
mod successor;

pub use predecessor::Inherited;
pub(super) use predecessor::Predecessor;
pub(super) use successor::{Kept, Successor};

/// Set for a new process whose standard input is the Unix socket.
const VARIABLE: &str = "BUFFERSCOPE_HANDOVER";
/// No message is longer: that with the sessions of 64 tests and 4096 monitors has some 90 kB.
const LONGEST: usize = 192 * 1024;
/// Descriptors of one message (`SCM_MAX_FD`).
const MOST_DESCRIPTORS: usize = 253;

/// What the old process says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Offer {
    /// The first message. Its descriptors: what must be known ([`State`]) in a file, then these sockets in this order.
    Sockets {
        /// Of TCP.
        tcp: usize,
        /// Of UDP.
        udp: usize,
        /// Whether that of the status is there.
        status: bool,
        /// Whether that of the metrics is there.
        metrics: bool,
    },
    /// Its clients; the first of these messages says that the new process may begin.
    Clients(Clients),
    /// An address has not used these bytes.
    GivesBack {
        /// It.
        address: IpAddr,
        /// Them.
        bytes: u64,
    },
}

/// The clients of the old process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Clients {
    /// Tests that run or wait.
    ahead: usize,
    /// Sessions.
    sessions: Vec<SessionId>,
    /// Addresses of pages over TLS.
    pages: Vec<IpAddr>,
}

/// What the new process says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    /// It can begin.
    Ready,
    /// A connection, in the message's descriptor, is the old process's.
    Connection {
        /// Its client.
        from: SocketAddr,
    },
    /// A probe is the old process's.
    Probe {
        /// Its bytes.
        bytes: Vec<u8>,
        /// Its length, with what pads it.
        length: usize,
        /// Who sent it.
        from: SocketAddr,
        /// When it arrived, on the real-time clock.
        at_ns: u64,
        /// Whether the kernel says so.
        by_kernel: bool,
    },
    /// A datagram of a channel may be the old process's.
    Datagram {
        /// Its bytes.
        bytes: Vec<u8>,
        /// Who sent it.
        from: SocketAddr,
        /// When it arrived, on the real-time clock.
        at_ns: u64,
    },
}

/// The Unix socket between the two processes.
#[derive(Debug)]
struct Link(AsyncFd<OwnedFd>);

impl Link {
    #[allow(unsafe_code, reason = "tokio cannot see that it owns the descriptor")]
    fn new(socket: OwnedFd) -> io::Result<Self> {
        use nix::fcntl::{FcntlArg, OFlag, fcntl};
        fcntl(&socket, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        // SAFETY: the descriptor is open, and belongs to the `AsyncFd`, which is never asked to give it up.
        Ok(Self(unsafe { AsyncFd::register(socket) }?))
    }

    /// Sends a message, if there is room for it.
    fn try_send<M: Serialize>(&self, message: &M, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let text = serde_json::to_vec(message)?;
        let raw: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        let rights = if raw.is_empty() { &[][..] } else { &[ControlMessage::ScmRights(&raw)] };
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        sendmsg::<UnixAddr>(self.0.as_raw_fd(), &[io::IoSlice::new(&text)], rights, flags, None)?;
        Ok(())
    }

    /// Sends a message when there is room for it.
    async fn send<M: Serialize>(&self, message: &M, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.0.async_io(Interest::WRITABLE, |_| self.try_send(message, descriptors)).await
    }

    /// The next message and its descriptors.
    async fn receive<M: DeserializeOwned>(&self) -> io::Result<(M, Vec<OwnedFd>)> {
        let (bytes, descriptors) = self.0.async_io(Interest::READABLE, |_| self.take()).await?;
        if bytes.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok((serde_json::from_slice(&bytes)?, descriptors))
    }

    #[allow(unsafe_code, reason = "received descriptors are numbers")]
    fn take(&self) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
        let mut bytes = vec![0; LONGEST];
        let mut control = cmsg_space!([RawFd; MOST_DESCRIPTORS]);
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let (length, descriptors) = {
            let mut into = [io::IoSliceMut::new(&mut bytes)];
            let message = recvmsg::<UnixAddr>(self.0.as_raw_fd(), &mut into, Some(&mut control), flags)?;
            let mut descriptors = Vec::new();
            for control in message.cmsgs()? {
                if let ControlMessageOwned::ScmRights(raw) = control {
                    // SAFETY: the kernel has just made them for this process, and nothing else knows them.
                    descriptors.extend(raw.into_iter().map(|raw| unsafe { OwnedFd::from_raw_fd(raw) }));
                }
            }
            if message.flags.intersects(MsgFlags::MSG_TRUNC | MsgFlags::MSG_CTRUNC) {
                return Err(io::Error::other("a message of the other process is too long"));
            }
            (message.bytes, descriptors)
        };
        bytes.truncate(length);
        Ok((bytes, descriptors))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

    use super::*;

    #[tokio::test]
    async fn messages_and_descriptors_arrive_and_the_end_is_noticed() {
        let (one, other) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).unwrap();
        let (one, other) = (Link::new(one).unwrap(), Link::new(other).unwrap());
        let (mut near, far) = UnixStream::pair().unwrap();
        let from: SocketAddr = "[2001:db8::1]:5000".parse().unwrap();
        one.send(&Reply::Connection { from }, &[far.as_fd()]).await.unwrap();
        drop(far);
        let (reply, descriptors) = other.receive::<Reply>().await.unwrap();
        assert!(matches!(reply, Reply::Connection { from: found } if found == from));
        let [descriptor] = <[OwnedFd; 1]>::try_from(descriptors).unwrap();
        UnixStream::from(descriptor).write_all(b"x").unwrap();
        let mut text = String::new();
        near.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x");
        let most = Clients { ahead: 1, sessions: vec![SessionId(u64::MAX); 4160], pages: Vec::new() };
        one.send(&Offer::Clients(most.clone()), &[]).await.unwrap();
        assert!(matches!(other.receive::<Offer>().await.unwrap().0, Offer::Clients(found) if found == most));
        drop(one);
        assert_eq!(other.receive::<Reply>().await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
