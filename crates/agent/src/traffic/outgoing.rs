//! The data that a connection still has to send.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, Shutdown, send, shutdown};

/// Bytes handed to the kernel at a time.
const CHUNK_BYTES: usize = 64 * 1024;
/// The data that is sent; no experiment looks at its contents.
static PAYLOAD: [u8; CHUNK_BYTES] = [0; CHUNK_BYTES];

/// Payload on its way into a socket.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// Still to be passed to the kernel; `None`: endless.
    left: Option<u64>,
    /// Passed so far.
    written: u64,
    /// Bytes that the kernel counted as acknowledged before the first byte of payload (a SYN counts as one).
    pub(super) acked_before: u64,
    /// Whether to close this direction once everything is passed on, and whether that is done.
    closes: bool,
    closed: bool,
}

impl Outgoing {
    /// Nothing to send yet.
    pub(super) fn new() -> Self {
        Self { left: Some(0), written: 0, acked_before: 0, closes: false, closed: false }
    }

    /// Adds this many bytes; `u64::MAX` never runs out.
    pub(super) fn write(&mut self, bytes: u64) {
        self.left = self.left.filter(|_| bytes != u64::MAX).map(|left| left.saturating_add(bytes));
    }

    /// Discards what the kernel has not accepted yet.
    pub(super) fn hold(&mut self) {
        self.left = Some(0);
    }

    /// Ends the stream after everything that is still to be passed on.
    pub(super) fn close(&mut self) {
        self.closes = true;
    }

    /// Passes as much to the kernel as it accepts.
    pub(super) fn pump(&mut self, socket: &OwnedFd) -> io::Result<()> {
        while self.left != Some(0) {
            let length =
                self.left.map_or(CHUNK_BYTES, |left| CHUNK_BYTES.min(usize::try_from(left).unwrap_or(usize::MAX)));
            let sent = match send(socket.as_raw_fd(), &PAYLOAD[..length], MsgFlags::MSG_NOSIGNAL) {
                Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EINTR) => continue,
                other => other? as u64,
            };
            self.written += sent;
            self.left = self.left.map(|left| left - sent);
        }
        if self.closes && !self.closed {
            shutdown(socket.as_raw_fd(), Shutdown::Write)?;
            self.closed = true;
        }
        Ok(())
    }

    /// Whether to wait for room in the kernel's buffer.
    pub(super) fn wants_room(&self) -> bool {
        self.left != Some(0)
    }

    /// Payload acknowledged, computed from the kernel's count (in which FIN and SYN also count as bytes).
    pub(super) fn delivered(&self, bytes_acked: u64) -> u64 {
        bytes_acked.saturating_sub(self.acked_before).min(self.written)
    }
}
