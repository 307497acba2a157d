//! The load: a thread per connection. The same code sends and receives at both ends.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bufferscope_endpoint::options::{get, set, set_int};
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout};

use crate::records::{FlowRow, StageRow};
use crate::time::MS;

mod counted;
mod pace;
mod receiver;
mod sender;

pub use counted::Counted;
pub use pace::{Budget, Pace};
pub use receiver::receive;
pub use sender::send;
pub(crate) use sender::{LONGEST_SLEEP, Sampler, pool};

/// A thread looks at its connection and at the request to stop at least this often.
const LOOK: u16 = 50;
/// Time between two samples of a connection.
const SAMPLE_NS: u64 = 100 * MS;
/// Time between two marks.
const MARK_NS: u64 = 250 * MS;

/// More rows of a kind are not kept: a test's time bounds them, unless a peer opens connections without end.
const MOST_ROWS: usize = 60_000;
const MOST_FAILURES: usize = 100;

/// What the threads of one direction of one phase share.
#[derive(Debug, Default)]
pub struct Shared {
    /// Asks every thread to end.
    pub stop: AtomicBool,
    /// Bytes received, those of frame headers included.
    pub received: AtomicU64,
    /// Bytes that the peers of the sending threads have acknowledged, by the last samples of their connections.
    pub acknowledged: AtomicU64,
    /// What the threads may use; `None`: whatever they need.
    pub budget: Option<Arc<Budget>>,
    /// How fast they may send; `None`: as fast as they can.
    pub pace: Option<Arc<Pace>>,
    /// The sending threads' records.
    pub log: Mutex<Log>,
}

/// What threads record.
#[derive(Debug, Default)]
pub struct Log {
    /// Samples of the senders.
    pub flows: Vec<FlowRow>,
    /// Times in the send buffer and the queueing discipline.
    pub stages: Vec<StageRow>,
    /// Round trips within a load connection: when a mark was sent, and after which time it returned.
    pub marks: Vec<(u64, u64)>,
    /// Why connections failed.
    pub failures: Vec<String>,
    /// The congestion control that the kernel uses.
    pub congestion: Option<String>,
}

impl Shared {
    /// Whether the threads shall end.
    pub fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.budget.as_ref().is_some_and(|budget| budget.left() == 0)
    }

    /// Records why a connection failed, unless the threads are asked to end.
    pub fn fail(&self, why: String) {
        let mut log = self.log();
        if !self.stops() && log.failures.len() < MOST_FAILURES {
            log.failures.push(why);
        }
    }

    /// These bytes were sent.
    pub(crate) fn has_sent(&self, bytes: u64) {
        if let Some(budget) = &self.budget {
            budget.spend(bytes);
        }
        if let Some(pace) = &self.pace {
            pace.spend(bytes);
        }
    }

    /// These bytes were received.
    pub(crate) fn has_received(&self, bytes: u64) {
        self.received.fetch_add(bytes, Ordering::Relaxed);
        if let Some(budget) = &self.budget {
            budget.spend(bytes);
        }
    }

    /// Takes what has been recorded so far.
    pub fn take_log(&self) -> Log {
        std::mem::take(&mut *self.log())
    }

    fn log(&self) -> std::sync::MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether this end makes the marks, or returns those of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// It makes them and records their round trips.
    Makes,
    /// It returns them.
    Returns,
}

/// Makes a socket one of the load: non-blocking, without Nagle's delay, closed by a reset, so that nothing that waits in its buffer is
/// sent after its time.
pub fn prepare(socket: &OwnedFd) -> io::Result<()> {
    nix::fcntl::fcntl(socket, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK))?;
    set_int(socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
    let linger = [1_i32.to_ne_bytes(), 0_i32.to_ne_bytes()].concat();
    set(socket, libc::SOL_SOCKET, libc::SO_LINGER, &linger)?;
    // Whoever never reads is dropped after this time.
    const PATIENCE_MS: i32 = 15_000;
    set_int(socket, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, PATIENCE_MS)
}

/// Chooses a congestion control by Linux' name; fails if the kernel does not let this program use it.
pub fn set_congestion(socket: &OwnedFd, name: &str) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes())
}

/// The congestion control of a connection.
pub fn congestion(socket: &OwnedFd) -> Option<String> {
    let mut name = [0; 16];
    let length = get(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut name).ok()?;
    let name = &name[..length];
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    Some(String::from_utf8_lossy(&name[..end]).into_owned())
}

/// Waits until the socket is ready; errors and the end of the connection count as readable.
fn wait(socket: &OwnedFd, wanted: PollFlags) -> io::Result<PollFlags> {
    let mut polled = [PollFd::new(socket.as_fd(), wanted)];
    match nix::poll::poll(&mut polled, PollTimeout::from(LOOK)) {
        Ok(_) => Ok(polled[0].revents().unwrap_or(PollFlags::empty())),
        Err(Errno::EINTR) => Ok(PollFlags::empty()),
        Err(error) => Err(error.into()),
    }
}

/// Reads what is there; `None`: nothing yet.
fn read_some(socket: &OwnedFd, into: &mut [u8]) -> io::Result<Option<usize>> {
    match nix::sys::socket::recv(socket.as_raw_fd(), into, nix::sys::socket::MsgFlags::empty()) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Runs a thread's work, and records why it failed. A server's peer ends its connections by a reset, whenever it likes.
fn recorded(shared: &Arc<Shared>, marks: Marks, what: &str, work: impl FnOnce() -> io::Result<()>) {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    match work() {
        Ok(()) => {}
        Err(error)
            if marks == Marks::Returns && matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof) => {}
        Err(error) => shared.fail(format!("{what}: {error}")),
    }
}
