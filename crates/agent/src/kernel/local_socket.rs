//! Messages and descriptors between processes of one user. The names of these Unix sockets are not files, so they
//! vanish with the sockets.
#![allow(unsafe_code)]

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, accept4, bind,
    connect, getsockopt, listen, recvmsg, sendmsg, socket,
};
use nix::unistd::getuid;

/// Most descriptors in one message.
const MOST_DESCRIPTORS: usize = 4;
const WAITING: i32 = 16;

/// Listens at a name in the calling thread's network namespace. The socket does not block.
pub(crate) fn listener(name: &str) -> io::Result<OwnedFd> {
    let socket = open(SockFlag::SOCK_NONBLOCK)?;
    bind(socket.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes())?)?;
    listen(&socket, Backlog::new(WAITING)?)?;
    Ok(socket)
}

/// Connects to a name; fails if the listener belongs to another user.
pub(crate) fn connected(name: &str) -> io::Result<OwnedFd> {
    let socket = open(SockFlag::empty())?;
    connect(socket.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes())?)?;
    if is_own(&socket)? { Ok(socket) } else { Err(Errno::EPERM.into()) }
}

/// The next connection from the same user; `None` if none is waiting.
pub(crate) fn accepted(listener: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    loop {
        let accepted = match accept4(listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK) {
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNABORTED) => return Ok(None),
            other => other?,
        };
        // SAFETY: the kernel just gave this descriptor, and nothing else owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(accepted) };
        if is_own(&socket)? {
            return Ok(Some(socket));
        }
    }
}

/// Sends one message with descriptors.
pub(crate) fn send(socket: &OwnedFd, message: &[u8], descriptors: &[RawFd]) -> io::Result<()> {
    let rights = [ControlMessage::ScmRights(descriptors)];
    let rights = if descriptors.is_empty() { &rights[..0] } else { &rights[..] };
    let flags = MsgFlags::MSG_NOSIGNAL;
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(message)], rights, flags, None)?;
    Ok(())
}

/// Receives one message with its descriptors. The message must fit into the buffer; it is empty at the end of the
/// connection.
pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut control = nix::cmsg_space!([RawFd; MOST_DESCRIPTORS]);
    let mut into = [IoSliceMut::new(buffer)];
    let received = recvmsg::<()>(socket.as_raw_fd(), &mut into, Some(&mut control), MsgFlags::MSG_CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for control in received.cmsgs()? {
        if let ControlMessageOwned::ScmRights(received) = control {
            // SAFETY: the kernel just gave these descriptors, and nothing else owns them.
            descriptors.extend(received.into_iter().map(|descriptor| unsafe { OwnedFd::from_raw_fd(descriptor) }));
        }
    }
    if received.flags.intersects(MsgFlags::MSG_TRUNC | MsgFlags::MSG_CTRUNC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message that is too long"));
    }
    Ok((received.bytes, descriptors))
}

fn open(flags: SockFlag) -> io::Result<OwnedFd> {
    Ok(socket(AddressFamily::Unix, SockType::SeqPacket, flags | SockFlag::SOCK_CLOEXEC, None)?)
}

/// Whether the other end belongs to the same user as this process. In a user namespace, all other users appear as
/// nobody.
fn is_own(socket: &OwnedFd) -> io::Result<bool> {
    Ok(getsockopt(socket, PeerCredentials)?.uid() == getuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_with_its_descriptors_and_the_end_is_seen() {
        let name = format!("bufferscope-test-{}", std::process::id());
        let listener = listener(&name).unwrap();
        assert!(accepted(&listener).unwrap().is_none());
        let guest = connected(&name).unwrap();
        let host = accepted(&listener).unwrap().unwrap();
        send(&host, b"hello", &[listener.as_raw_fd()]).unwrap();
        let mut buffer = [0; 16];
        let (length, descriptors) = receive(&guest, &mut buffer).unwrap();
        assert_eq!((&buffer[..length], descriptors.len()), (&b"hello"[..], 1));
        drop(host);
        assert_eq!(receive(&guest, &mut buffer).unwrap().0, 0);
    }

    #[test]
    fn a_message_that_does_not_fit_is_refused() {
        let name = format!("bufferscope-test-long-{}", std::process::id());
        let listener = listener(&name).unwrap();
        let guest = connected(&name).unwrap();
        send(&guest, b"hello", &[]).unwrap();
        let host = accepted(&listener).unwrap().unwrap();
        assert_eq!(receive(&host, &mut [0; 4]).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
