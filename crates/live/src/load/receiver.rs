//! The receiving end of a load connection.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use bufferscope_endpoint::socket::discard;
use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::socket::MsgFlags;

use super::{MARK_NS, MOST_ROWS, Marks, Shared, read_some, recorded, wait};
use crate::time::{monotonic_ns, realtime_ns};
use crate::wire::load::{Expect, Frames, MARK_BYTES};

/// Reads frames until asked to stop, or until the connection ends; counts their bytes.
pub fn receive(socket: &OwnedFd, marks: Marks, shared: &Arc<Shared>) {
    recorded(shared, marks, "a connection that receives load", || Receiver::new(socket, marks, shared).run());
}

struct Receiver<'a> {
    socket: &'a OwnedFd,
    marks: Marks,
    shared: &'a Arc<Shared>,
    frames: Frames,
    next_mark_ns: u64,
    /// Marks are sent in this period only: the real-time clock's reading at its beginning.
    since_ns: u64,
}

impl<'a> Receiver<'a> {
    fn new(socket: &'a OwnedFd, marks: Marks, shared: &'a Arc<Shared>) -> Self {
        let next_mark_ns = monotonic_ns() + MARK_NS;
        Self { socket, marks, shared, frames: Frames::default(), next_mark_ns, since_ns: realtime_ns() }
    }

    fn run(&mut self) -> io::Result<()> {
        while !self.shared.stops() {
            if wait(self.socket, PollFlags::POLLIN)?.intersects(PollFlags::POLLIN | PollFlags::POLLHUP) {
                self.read_all()?;
            }
            if self.marks == Marks::Makes && monotonic_ns() >= self.next_mark_ns {
                self.next_mark_ns = monotonic_ns() + MARK_NS;
                self.write_mark(realtime_ns().to_be_bytes())?;
            }
        }
        Ok(())
    }

    /// Reads what is there, but returns at least once per mark's period.
    fn read_all(&mut self) -> io::Result<()> {
        const READS: usize = 64;
        for _ in 0..READS {
            let expected = self.frames.expected();
            let bytes = match expected {
                Expect::Data(wanted) => match discard(self.socket, wanted) {
                    Ok(bytes) => {
                        self.frames.skipped(bytes);
                        bytes
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                    Err(error) => return Err(error),
                },
                Expect::Header(wanted) | Expect::Mark(wanted) => {
                    let mut buffer = [0; MARK_BYTES];
                    let Some(bytes) = read_some(self.socket, &mut buffer[..wanted])? else { return Ok(()) };
                    if let Some(mark) = self.frames.take(&buffer[..bytes]).map_err(io::Error::other)? {
                        self.on_mark(mark)?;
                    }
                    bytes
                }
            };
            if bytes == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.shared.has_received(bytes as u64);
            if self.shared.stops() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn on_mark(&mut self, mark: [u8; MARK_BYTES]) -> io::Result<()> {
        match self.marks {
            Marks::Returns => self.write_mark(mark),
            Marks::Makes => {
                let (sent_ns, now_ns) = (u64::from_be_bytes(mark), realtime_ns());
                // Anything else is not one of ours.
                if (self.since_ns..=now_ns).contains(&sent_ns) {
                    let mut log = self.shared.log();
                    if log.marks.len() < MOST_ROWS {
                        log.marks.push((sent_ns, now_ns - sent_ns));
                    }
                }
                Ok(())
            }
        }
    }

    /// Eight bytes fit into the send buffer, unless the peer never reads; then the mark is lost.
    fn write_mark(&self, mark: [u8; MARK_BYTES]) -> io::Result<()> {
        match nix::sys::socket::send(self.socket.as_raw_fd(), &mark, MsgFlags::MSG_NOSIGNAL) {
            Ok(MARK_BYTES) | Err(Errno::EAGAIN) => Ok(()),
            Ok(_) => Err(io::Error::other("a mark was cut")),
            Err(error) => Err(error.into()),
        }
    }
}
