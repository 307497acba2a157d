//! A ladder by TCP: connections whose SYN has a limited TTL.
//!
//! The kernel reports who discarded such a SYN on the error queue of a connection that is being opened (`IP_RECVERR`, since
//! Linux 5.8), so this needs no privileges. The connection of a SYN that reaches the server is reset at once. A server of any
//! kind answers: one that listens with a SYN-ACK, one that does not with a RST.
//!
//! Each SYN comes from a port of its own, so routers that balance load may send two of them along different paths. A SYN is
//! repeated after a second (RFC 6298), so later answers belong to an unknown one and are left out: a longer delay than that
//! is not seen.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bufferscope_endpoint::error_queue::{Notice, report_errors, take_notice};
use bufferscope_endpoint::options::{get, set, set_int, stamp_arrivals};
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, connect, socket};

use crate::ladder::Ladder;
use crate::records::{AnswerKind, LadderRow};
use crate::time::{MS, SECOND, monotonic_ns, realtime_ns};

/// A SYN without an answer for this time is repeated by the kernel, so its connection is given up before.
const PATIENCE_NS: u64 = SECOND - 20 * MS;
/// SYNs without an answer at a time.
const OPEN: usize = 64;
/// The longest time until the request to stop is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Rows that are kept: a test of an hour at the rate of the schedule.
const MOST_ROWS: usize = 200_000;

/// What the ladder has found so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The answers, and the SYNs that had none, in the order in which that was known.
    pub rows: Vec<LadderRow>,
    /// Number of links to the server; `None`: it has not answered.
    pub distance: Option<u8>,
}

/// Sends SYNs to a server until `stop` is set, at most about one a second for each TTL; with `enough`, only until so many
/// have been sent to each hop. Fails if the system gives no socket.
pub fn run(server: SocketAddr, enough: Option<u32>, stop: &AtomicBool, found: &Mutex<Found>) -> io::Result<()> {
    let mut ladder = Ladder::starting_at(monotonic_ns());
    let mut open: Vec<Syn> = Vec::new();
    let mut sent: BTreeMap<u8, u32> = BTreeMap::new();
    while !stop.load(Ordering::Relaxed) {
        let now_ns = monotonic_ns();
        let has_enough = |ttl: u8| enough.is_some_and(|enough| sent.get(&ttl).is_some_and(|count| *count >= enough));
        let is_done = ladder.distance().is_some_and(|distance| (1..distance).all(has_enough));
        if (is_done || ladder.due_ns() == u64::MAX) && open.is_empty() {
            return Ok(());
        }
        if let Some(ttl) = ladder.next(now_ns).filter(|&ttl| open.len() < OPEN && !has_enough(ttl)) {
            *sent.entry(ttl).or_default() += 1;
            // A SYN that cannot be sent is left out, as if the hop were silent.
            open.extend(Syn::send(server, ttl)?);
        }
        wait(&open, ladder.due_ns().saturating_sub(now_ns));
        let mut rows = Vec::new();
        open.retain(|syn| {
            let row = syn.answer();
            rows.extend(row.clone());
            row.is_none()
        });
        if !rows.is_empty() {
            rows.iter().filter(|row| row.kind == AnswerKind::Destination).for_each(|row| ladder.has_reached(row.ttl));
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.distance = ladder.distance();
            let room = MOST_ROWS.saturating_sub(found.rows.len());
            found.rows.extend(rows.into_iter().take(room));
        }
    }
    Ok(())
}

/// Waits until a connection has an answer, or something is due.
pub(crate) fn wait(open: &[Syn], due_in_ns: u64) {
    let timeout = PollTimeout::try_from(LOOK.min(Duration::from_nanos(due_in_ns))).unwrap_or(PollTimeout::ZERO);
    let mut polled: Vec<_> = open.iter().map(|syn| PollFd::new(syn.socket.as_fd(), PollFlags::POLLOUT)).collect();
    let _ = nix::poll::poll(&mut polled, timeout);
}

/// A connection that is being opened.
pub(crate) struct Syn {
    socket: OwnedFd,
    ttl: u8,
    t_ns: u64,
    begun_ns: u64,
}

impl Syn {
    /// `None` if it cannot be sent now.
    pub(crate) fn send(server: SocketAddr, ttl: u8) -> io::Result<Option<Self>> {
        let is_ipv6 = server.is_ipv6();
        let family = if is_ipv6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(family, SockType::Stream, flags, None)?;
        let (level, option) = match is_ipv6 {
            true => (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS),
            false => (libc::IPPROTO_IP, libc::IP_TTL),
        };
        set_int(&socket, level, option, i32::from(ttl))?;
        report_errors(&socket, is_ipv6)?;
        stamp_arrivals(&socket)?;
        // Closed by a reset, so that nothing of it remains at either end.
        let linger = [1_i32.to_ne_bytes(), 0_i32.to_ne_bytes()].concat();
        set(&socket, libc::SOL_SOCKET, libc::SO_LINGER, &linger)?;
        let (t_ns, begun_ns) = (realtime_ns(), monotonic_ns());
        match connect(socket.as_raw_fd(), &SockaddrStorage::from(server)) {
            Ok(()) | Err(Errno::EINPROGRESS | Errno::ECONNREFUSED) => Ok(Some(Self { socket, ttl, t_ns, begun_ns })),
            Err(_) => Ok(None),
        }
    }

    /// What became of it; `None`: not known yet.
    pub(crate) fn answer(&self) -> Option<LadderRow> {
        let now_ns = monotonic_ns();
        let waited_ns = now_ns.saturating_sub(self.begun_ns);
        let row = |kind, address: Option<String>, rtt_ns, mpls| LadderRow {
            t_ns: self.t_ns,
            ttl: self.ttl,
            address,
            rtt_ns,
            kind,
            mpls,
        };
        let silent = || row(AnswerKind::Exceeded, None, None, false);
        if waited_ns >= PATIENCE_NS {
            return Some(silent());
        }
        let mut buffer = [0; 512];
        while let Ok(Some(notice)) = take_notice(&self.socket, &mut buffer) {
            if let Notice::Icmp { offender, time_exceeded, realtime_ns, mpls, .. } = notice {
                let kind = if time_exceeded { AnswerKind::Exceeded } else { AnswerKind::Unreachable };
                let rtt_ns = realtime_ns.map_or(waited_ns, |at_ns| at_ns.saturating_sub(self.t_ns));
                return Some(row(kind, offender.map(|address| address.to_string()), Some(rtt_ns), mpls));
            }
        }
        match self.state()? {
            Ok(()) | Err(Errno::ECONNREFUSED) => Some(row(AnswerKind::Destination, None, Some(waited_ns), false)),
            // Without an ICMP message, this machine itself has failed, or it does not report who has discarded the SYN.
            Err(_) => Some(silent()),
        }
    }

    /// Whether the connection is open or has failed; `None`: neither.
    fn state(&self) -> Option<Result<(), Errno>> {
        let mut polled = [PollFd::new(self.socket.as_fd(), PollFlags::POLLOUT)];
        let ready = nix::poll::poll(&mut polled, PollTimeout::ZERO).ok()?;
        if ready == 0 {
            return None;
        }
        let mut error = [0; 4];
        get(&self.socket, libc::SOL_SOCKET, libc::SO_ERROR, &mut error).ok()?;
        match i32::from_ne_bytes(error) {
            0 if polled[0].revents()?.contains(PollFlags::POLLOUT) => Some(Ok(())),
            0 => None,
            error => Some(Err(Errno::from_raw(error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(server: SocketAddr, enough: Option<u32>) -> Found {
        let found = Mutex::default();
        run(server, enough, &AtomicBool::new(false), &found).unwrap();
        found.into_inner().unwrap()
    }

    #[test]
    fn this_machine_is_one_link_away_whether_it_listens_or_not() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listening = listener.local_addr().unwrap();
        let closed = {
            let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            other.local_addr().unwrap()
        };
        for server in [listening, closed] {
            for enough in [Some(2), None] {
                let found = found(server, enough);
                assert_eq!(found.distance, Some(1), "{server}");
                assert_eq!((found.rows[0].kind, found.rows[0].ttl), (AnswerKind::Destination, 1));
                assert!(found.rows[0].rtt_ns.is_some_and(|rtt_ns| rtt_ns < SECOND));
            }
        }
    }

    #[test]
    fn a_connection_that_reached_the_server_is_reset() {
        use std::io::Read;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let found = found(listener.local_addr().unwrap(), None);
        assert_eq!(found.distance, Some(1));
        let (mut stream, _) = listener.accept().unwrap();
        let error = stream.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }
}
