//! A terminal for a process that has none yet.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::libc;
use nix::unistd::setsid;

/// Makes a terminal the controlling terminal of a new session, which this process leads. Sets its number of rows and
/// columns.
pub(crate) fn adopt(terminal: BorrowedFd<'_>, [rows, columns]: [u16; 2]) -> io::Result<()> {
    setsid()?;
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCSCTTY takes a number, TIOCSWINSZ reads the structure; both live as long as the calls.
    let done = unsafe {
        [
            libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0),
            libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size),
        ]
    };
    if done.contains(&-1) { Err(io::Error::last_os_error()) } else { Ok(()) }
}
