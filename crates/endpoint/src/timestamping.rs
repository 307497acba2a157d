//! Timestamps of packets on their way through the kernel (`SO_TIMESTAMPING`, Documentation/networking/timestamping.rst).

#![allow(unsafe_code)]

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc;
use nix::sys::socket::{SockaddrLike, SockaddrStorage};

use crate::options::set_int;

/// Software timestamps are reported ...
const REPORT: u32 = libc::SOF_TIMESTAMPING_SOFTWARE;
/// ... with a number that identifies the packet (a datagram's count, or a byte's offset in a stream).
const NUMBERED: u32 = REPORT | libc::SOF_TIMESTAMPING_OPT_ID;
/// Stamps when a packet enters the queueing discipline, and when the driver takes it.
const OF_DEPARTURE: u32 = libc::SOF_TIMESTAMPING_TX_SCHED | libc::SOF_TIMESTAMPING_TX_SOFTWARE;
/// `SOF_TIMESTAMPING_OPT_ID_TCP` (since Linux 6.2): offsets count from the bytes written when the option is set, also if
/// some of them are not acknowledged.
const OPT_ID_TCP: u32 = 1 << 16;

/// Asks for stamps of every datagram that a UDP socket sends or receives. A departure's stamps come through the
/// error queue, together with a copy of the packet (see [`crate::error_queue`]), or without it if the system does not
/// allow copies (`net.core.tstamp_allow_data`).
pub fn stamp_datagrams(socket: &OwnedFd, with_copies: bool) -> io::Result<()> {
    let copies = if with_copies { 0 } else { libc::SOF_TIMESTAMPING_OPT_TSONLY };
    set(socket, NUMBERED | OF_DEPARTURE | libc::SOF_TIMESTAMPING_RX_SOFTWARE | copies)
}

/// Lets a TCP socket report stamps of those writes that ask for them ([`write_stamped`]). Returns how many of the bytes that were
/// written before count in the offsets by which stamps name a byte: none since Linux 6.2, and before that those that were not yet
/// acknowledged.
pub fn stamp_some_writes(socket: &OwnedFd) -> io::Result<u32> {
    const ATTEMPTS: usize = 8;
    let flags = NUMBERED | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    if set(socket, flags | OPT_ID_TCP).is_ok() {
        return Ok(0);
    }
    for _ in 0..ATTEMPTS {
        let before = unacknowledged(socket)?;
        set(socket, flags)?;
        if unacknowledged(socket)? == before {
            return Ok(before);
        }
        // An acknowledgement came in between. The kernel counts anew when the option is set again.
        set(socket, 0)?;
    }
    Err(io::Error::from(io::ErrorKind::WouldBlock))
}

/// The bytes of a connection that were written and not acknowledged (`SIOCOUTQ`, tcp(7)).
fn unacknowledged(socket: &OwnedFd) -> io::Result<u32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes an int.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(u32::try_from(bytes).unwrap_or(0)) }
}

/// Room for a control message with the flags.
const CONTROL_WORDS: usize = 4;

/// Writes to a non-blocking TCP socket and asks for the stamps of the last byte written: when it enters the queueing
/// discipline, when the driver takes it, and when it is acknowledged. Returns how many bytes the kernel took.
pub fn write_stamped(socket: &OwnedFd, content: &[IoSlice<'_>]) -> io::Result<usize> {
    send_with(socket, content, None, OF_DEPARTURE | libc::SOF_TIMESTAMPING_TX_ACK)
}

/// Sends a datagram of a socket that stamps departures ([`stamp_datagrams`]) without stamps.
pub fn send_unstamped(socket: &OwnedFd, content: &[IoSlice<'_>], to: &SockaddrStorage) -> io::Result<usize> {
    send_with(socket, content, Some(to), 0)
}

fn send_with(socket: &OwnedFd, content: &[IoSlice<'_>], to: Option<&SockaddrStorage>, flags: u32) -> io::Result<usize> {
    let mut control = [0_u64; CONTROL_WORDS];
    // SAFETY: a message header of zeros is valid. The control message lies within `control`, which is aligned as its
    // header requires; `IoSlice` has the layout of `iovec`; the address is valid for its length; the kernel writes to none of
    // these.
    let sent = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        if let Some(to) = to {
            message.msg_name = to.as_ptr().cast_mut().cast();
            message.msg_namelen = to.len();
        }
        message.msg_iov = content.as_ptr().cast::<libc::iovec>().cast_mut();
        message.msg_iovlen = content.len() as _;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size_of::<u32>() as u32) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SO_TIMESTAMPING;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<u32>() as u32) as _;
        libc::CMSG_DATA(header).cast::<u32>().write_unaligned(flags);
        libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

fn set(socket: &OwnedFd, flags: u32) -> io::Result<()> {
    set_int(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as i32)
}
