//! Datagrams with the kernel's timestamp of their arrival (`SO_TIMESTAMPNS`).

use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use nix::sys::time::TimeSpec;

/// A datagram's length and when it arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its length.
    pub bytes: usize,
    /// On the real-time clock; `None` if the kernel does not report it.
    pub realtime_ns: Option<u64>,
}

/// Takes the next datagram of a non-blocking socket; `None` if no datagram has arrived. What does not fit
/// into `buffer` is lost.
pub fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<Option<Arrival>> {
    receive_with(socket, buffer, MsgFlags::empty())
}

/// As [`receive`], but the length is that of the whole datagram, even if only its beginning fits into `buffer`.
pub fn receive_beginning(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<Option<Arrival>> {
    receive_with(socket, buffer, MsgFlags::MSG_TRUNC)
}

fn receive_with(socket: &OwnedFd, buffer: &mut [u8], flags: MsgFlags) -> io::Result<Option<Arrival>> {
    let mut control = nix::cmsg_space!(TimeSpec);
    let mut into = [IoSliceMut::new(buffer)];
    let message = match recvmsg::<()>(socket.as_raw_fd(), &mut into, Some(&mut control), flags) {
        Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
        other => other?,
    };
    let stamp = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(time) => {
            let [seconds, nanoseconds] = [time.tv_sec(), time.tv_nsec()].map(u64::try_from);
            seconds.ok()?.checked_mul(1_000_000_000)?.checked_add(nanoseconds.ok()?)
        }
        _ => None,
    });
    Ok(Some(Arrival { bytes: message.bytes, realtime_ns: stamp }))
}
