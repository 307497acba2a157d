//! Echo requests to the first hop. Routers limit *time exceeded*, but few limit their echo replies, so they show the first
//! link's delay more often. Linux lets ordinary users send them where `net.ipv4.ping_group_range` allows it.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bufferscope_endpoint::options::stamp_arrivals;
use bufferscope_endpoint::receive::receive;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrStorage, connect, send, socket,
};

use super::prober::SharedLog;
use crate::records::{AnswerKind, LadderRow};
use crate::time::{MS, monotonic_ns, realtime_ns};

/// Time between two requests.
const INTERVAL_NS: u64 = 100 * MS;
/// Requests that may be without a reply at a time.
const OPEN: usize = 128;
/// Types of ICMP and ICMPv6 messages: request and reply.
const ECHO: [u8; 2] = [8, 0];
const ECHO_V6: [u8; 2] = [128, 129];
/// Length of a request: the header, and as much payload.
const REQUEST_BYTES: usize = 16;

/// Waits for the first hop's address in the log; `None`: `stop` was set, or the first hop is the server.
pub(super) fn address(stop: &AtomicBool, log: &SharedLog) -> Option<IpAddr> {
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(100));
        let log = log.lock();
        if log.distance == Some(1) {
            return None;
        }
        let answers = log.probes.iter().filter(|probe| probe.ttl == 1).filter_map(|probe| probe.error.as_ref());
        let mut exceeded = answers.filter(|row| row.kind == AnswerKind::Exceeded);
        if let Some(hop) = exceeded.find_map(|row| row.address.as_ref()?.parse().ok()) {
            return Some(hop);
        }
    }
    None
}

/// Asks the first hop for echoes until `stop` is set. Ends early if this user may not, or if the first hop is the server.
pub(super) fn run(stop: &AtomicBool, log: &SharedLog) {
    let hop = address(stop, log);
    if let Some(Ok(mut echoes)) = hop.map(|hop| Echoes::open(hop, 1, AnswerKind::Echo)) {
        // Without echoes, the first hop is still probed by limited TTL.
        let _ = echoes.run(stop, log);
    }
}

pub(super) struct Echoes {
    socket: OwnedFd,
    hop: IpAddr,
    ttl: u8,
    kind: AnswerKind,
    types: [u8; 2],
    next_ns: u64,
    number: u16,
    open: VecDeque<(u16, u64)>,
}

impl Echoes {
    /// Of a host that is so many links away; its replies are of this kind.
    pub(super) fn open(hop: IpAddr, ttl: u8, kind: AnswerKind) -> io::Result<Self> {
        let (family, protocol, types) = match hop {
            IpAddr::V4(_) => (AddressFamily::Inet, SockProtocol::Icmp, ECHO),
            IpAddr::V6(_) => (AddressFamily::Inet6, SockProtocol::IcmpV6, ECHO_V6),
        };
        let socket = socket(family, SockType::Datagram, SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC, protocol)?;
        stamp_arrivals(&socket)?;
        connect(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(hop, 0)))?;
        Ok(Self { socket, hop, ttl, kind, types, next_ns: monotonic_ns(), number: 0, open: VecDeque::new() })
    }

    /// Asks again and again until `stop` is set.
    pub(super) fn run(&mut self, stop: &AtomicBool, log: &SharedLog) -> io::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            let now_ns = monotonic_ns();
            if now_ns >= self.next_ns {
                self.next_ns = now_ns + INTERVAL_NS;
                self.ask();
            }
            let wait = Duration::from_nanos(self.next_ns.saturating_sub(monotonic_ns()));
            let timeout = PollTimeout::try_from(wait).unwrap_or(PollTimeout::ZERO);
            let _ = nix::poll::poll(&mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)], timeout);
            while let Some(row) = self.take()? {
                log.lock().hop_echoes.extend(row);
            }
        }
        Ok(())
    }

    /// A request that cannot be sent is left out.
    pub(super) fn ask(&mut self) {
        let mut request = [0; REQUEST_BYTES];
        request[0] = self.types[0];
        request[6..8].copy_from_slice(&self.number.to_be_bytes());
        let t_ns = realtime_ns();
        if send(self.socket.as_raw_fd(), &request, MsgFlags::empty()).is_ok() {
            if self.open.len() >= OPEN {
                self.open.pop_front();
            }
            self.open.push_back((self.number, t_ns));
        }
        self.number = self.number.wrapping_add(1);
    }

    /// The next message: `None` if nothing has arrived, and no row if it is not a reply to an open request.
    pub(super) fn take(&mut self) -> io::Result<Option<Option<LadderRow>>> {
        let mut reply = [0; 256];
        let Some(arrival) = receive(&self.socket, &mut reply)? else { return Ok(None) };
        let back_ns = arrival.realtime_ns.unwrap_or_else(realtime_ns);
        let number = u16::from_be_bytes([reply[6], reply[7]]);
        let is_reply = arrival.bytes >= 8 && reply[0] == self.types[1];
        let at = self.open.iter().position(|(open, _)| is_reply && *open == number);
        let Some((_, t_ns)) = at.and_then(|at| self.open.remove(at)) else { return Ok(Some(None)) };
        Ok(Some(Some(LadderRow {
            t_ns,
            ttl: self.ttl,
            address: Some(self.hop.to_string()),
            rtt_ns: Some(back_ns.saturating_sub(t_ns)),
            kind: self.kind,
            mpls: false,
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_answers_and_what_is_not_an_open_request_is_left_out() {
        let Ok(mut echoes) = Echoes::open(IpAddr::from([127, 0, 0, 1]), 1, AnswerKind::Echo) else {
            // `net.ipv4.ping_group_range` does not allow it.
            return;
        };
        echoes.ask();
        echoes.ask();
        echoes.open.retain(|(number, _)| *number == 1);
        let mut rows = Vec::new();
        let until = monotonic_ns() + 60_000 * MS;
        let mut messages = 0;
        while messages < 2 && monotonic_ns() < until {
            if let Some(row) = echoes.take().unwrap() {
                messages += 1;
                rows.extend(row);
            }
        }
        assert_eq!((messages, rows.len()), (2, 1));
        assert_eq!((rows[0].kind, rows[0].ttl, rows[0].address.as_deref()), (AnswerKind::Echo, 1, Some("127.0.0.1")));
    }
}
