//! Options of sockets that no library offers.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc::{self, c_int, c_void, socklen_t};

/// Asks the kernel for a receive timestamp of everything that arrives.
pub fn stamp_arrivals(socket: &OwnedFd) -> io::Result<()> {
    set_int(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Sets a buffer's size by the first of two options. An ordinary user may only use the second, with a size bounded by
/// `net.core.rmem_max` or `wmem_max`.
pub fn set_buffer(socket: &OwnedFd, [forced, bounded]: [c_int; 2], bytes: u32) -> io::Result<()> {
    set_int(socket, libc::SOL_SOCKET, forced, bytes as c_int)
        .or_else(|_| set_int(socket, libc::SOL_SOCKET, bounded, bytes as c_int))
}

/// Sets an option that is a number.
pub fn set_int(socket: &OwnedFd, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    set(socket, level, option, &value.to_ne_bytes())
}

/// Sets an option.
pub fn set(socket: &OwnedFd, level: c_int, option: c_int, value: &[u8]) -> io::Result<()> {
    let (bytes, length) = (value.as_ptr().cast::<c_void>(), value.len() as socklen_t);
    // SAFETY: `bytes` is valid for reads of `length` bytes.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, bytes, length) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads an option; returns how many bytes the kernel filled.
pub fn get(socket: &OwnedFd, level: c_int, option: c_int, value: &mut [u8]) -> io::Result<usize> {
    let mut length = value.len() as socklen_t;
    let bytes = value.as_mut_ptr().cast::<c_void>();
    // SAFETY: `bytes` is valid for writes of `length` bytes, and the kernel never fills more.
    let done = unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, bytes, &raw mut length) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok((length as usize).min(value.len())) }
}
