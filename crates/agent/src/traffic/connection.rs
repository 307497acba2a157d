//! One end of a TCP connection.

use std::io;
use std::os::fd::OwnedFd;

use bufferscope_endpoint::socket;
use bufferscope_endpoint::tcp_info::TcpInfo;
use bufferscope_programs::Role;
use bufferscope_records::{FlowRow, FlowState, Name};
use bufferscope_scenario::Sending;
use nix::sys::epoll::EpollFlags;

use super::RunContext;
use super::outgoing::Outgoing;
use crate::reactor::Token;

/// Number of bytes taken from a socket at a time ...
const TAKE_BYTES: usize = 256 * 1024;
/// ... and how many times in a row before other sockets get their turn.
const TAKES_AT_ONCE: usize = 8;

/// One end.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    /// Its flow, by index.
    pub(super) flow: usize,
    pub(super) role: Role,
    /// The data that the program at this end sends.
    pub(super) outgoing: Outgoing,
    received: u64,
    /// Whether the handshake is done.
    established: bool,
    /// The events that epoll watches for.
    pub(super) interest: EpollFlags,
}

/// The result of serving a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Served {
    /// Data received so far.
    pub(super) received: u64,
    /// Whether the other end has closed, so that nothing is left to do.
    pub(super) done: bool,
    /// The result of the handshake, if it has just completed.
    pub(super) agreed: Option<TcpInfo>,
}

impl Connection {
    /// The end that connects.
    pub(super) fn client(socket: OwnedFd, flow: usize) -> Self {
        let (role, interest) = (Role::Client, EpollFlags::EPOLLOUT);
        Self { socket, flow, role, outgoing: Outgoing::new(), received: 0, established: false, interest }
    }

    /// The end that was connected to.
    pub(super) fn server(socket: OwnedFd, flow: usize) -> io::Result<Self> {
        let (role, interest) = (Role::Server, EpollFlags::EPOLLIN);
        let outgoing = Outgoing::new();
        let mut connection = Self { socket, flow, role, outgoing, received: 0, established: false, interest };
        connection.establish()?;
        Ok(connection)
    }

    /// Whether the handshake is done.
    pub(super) fn established(&self) -> bool {
        self.established
    }

    /// The events that epoll should watch for now.
    fn wanted(&self) -> EpollFlags {
        match (self.established, self.outgoing.wants_room()) {
            (false, _) => EpollFlags::EPOLLOUT,
            (true, true) => EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT,
            (true, false) => EpollFlags::EPOLLIN,
        }
    }

    /// Called when the socket is ready.
    pub(super) fn serve(&mut self, flags: EpollFlags) -> io::Result<Served> {
        if flags.intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP) {
            socket::take_error(&self.socket)?;
        }
        let agreed = if self.established { None } else { Some(self.establish()?) };
        let (taken, done) = if flags.contains(EpollFlags::EPOLLIN) { take(&self.socket)? } else { (0, false) };
        self.received += taken;
        self.pump()?;
        Ok(Served { received: self.received, done, agreed })
    }

    /// Passes on what the program has written, if the connection is established.
    pub(super) fn pump(&mut self) -> io::Result<()> {
        if self.established { self.outgoing.pump(&self.socket) } else { Ok(()) }
    }

    /// Makes epoll watch for the events that are wanted now.
    pub(super) fn watch(&mut self, number: u32, context: &RunContext<'_>) -> io::Result<()> {
        let wanted = self.wanted();
        if wanted != self.interest {
            self.interest = wanted;
            context.reactor.change(&self.socket, wanted, Token::Connection(number))?;
        }
        Ok(())
    }

    /// Called when the handshake is done.
    fn establish(&mut self) -> io::Result<TcpInfo> {
        let info = socket::tcp_info(&self.socket)?;
        self.outgoing.acked_before = info.bytes_acked;
        self.established = true;
        Ok(info)
    }

    /// The kernel's view of this end; `None` before the handshake is done.
    pub(super) fn info(&self) -> io::Result<Option<TcpInfo>> {
        self.established.then(|| socket::tcp_info(&self.socket)).transpose()
    }

    /// A sample of this end.
    pub(super) fn sample(&self, t_ns: u64, flow: Name, sending: Sending) -> io::Result<Option<FlowRow>> {
        let Some(info) = self.info()? else { return Ok(None) };
        let mss = u64::from(info.snd_mss);
        Ok(Some(FlowRow {
            t_ns,
            flow,
            cwnd_bytes: Some(u64::from(info.snd_cwnd) * mss),
            ssthresh_bytes: info.snd_ssthresh.map(|segments| u64::from(segments) * mss),
            inflight_bytes: info.in_flight() * mss,
            srtt_ns: (info.rtt_us > 0).then(|| u64::from(info.rtt_us) * 1000),
            min_rtt_ns: info.min_rtt_us.map(|us| u64::from(us) * 1000),
            rwnd_bytes: Some(info.snd_wnd.into()),
            pacing_bps: info.pacing_rate.filter(|_| is_paced(sending)).map(|rate| rate.saturating_mul(8)),
            delivery_rate_bps: info.delivery_rate.map(|rate| rate.saturating_mul(8)),
            app_limited: Some(info.delivery_rate_app_limited),
            delivered_bytes: self.outgoing.delivered(info.bytes_acked),
            delivered_packets: info.delivered.into(),
            delivered_ce_packets: Some(info.delivered_ce.into()),
            retransmits: Some(info.total_retrans.into()),
            lost: info.lost.into(),
            reordering: Some(info.reordering.into()),
            notsent_bytes: Some(info.notsent_bytes.into()),
            busy_ns: Some(info.busy_us.saturating_mul(1000)),
            rwnd_limited_ns: Some(info.rwnd_limited_us.saturating_mul(1000)),
            sndbuf_limited_ns: Some(info.sndbuf_limited_us.saturating_mul(1000)),
            state: Some(state(&info)),
        }))
    }
}

/// Reads the data that has arrived; returns how much, and whether the stream has ended. If less than requested was
/// read, there is no more data now, and epoll reports what comes later, including the end.
fn take(socket: &OwnedFd) -> io::Result<(u64, bool)> {
    let mut taken = 0;
    for _ in 0..TAKES_AT_ONCE {
        match socket::discard(socket, TAKE_BYTES) {
            Ok(0) => return Ok((taken, true)),
            Ok(bytes) => {
                taken += bytes as u64;
                if bytes < TAKE_BYTES {
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((taken, false))
}

/// Whether the traffic or Linux' congestion control requires pacing. For other connections, the pacing rate that the
/// kernel computes has no effect.
fn is_paced(sending: Sending) -> bool {
    sending.pacing || sending.congestion.paces()
}

/// `enum tcp_ca_state`.
fn state(info: &TcpInfo) -> FlowState {
    match info.ca_state {
        0 => FlowState::Open,
        1 => FlowState::Disorder,
        2 => FlowState::Cwr,
        3 => FlowState::Recovery,
        _ => FlowState::Loss,
    }
}
