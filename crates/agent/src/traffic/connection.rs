//! One end of a TCP connection, and what the program behind it does.

use std::io;
use std::os::fd::OwnedFd;

use bufferscope_records::{FlowRow, FlowState, Name};
use bufferscope_scenario::{Congestion, Sending};
use nix::sys::epoll::EpollFlags;

use super::outgoing::Outgoing;
use crate::kernel::socket;
use crate::kernel::tcp_info::TcpInfo;

/// Bytes taken from a socket at a time ...
const TAKE_BYTES: usize = 256 * 1024;
/// ... and how often in a row, so that others get their turn.
const TAKES_AT_ONCE: usize = 8;

/// One end.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    /// Its flow, by index.
    pub(super) flow: usize,
    role: Role,
    /// Whether the handshake is done.
    stands: bool,
    /// What epoll watches for.
    pub(super) interest: EpollFlags,
}

/// What the program at this end does.
#[derive(Debug)]
pub(super) enum Role {
    /// Sends data and waits for the other end to close.
    Sender(Outgoing),
    /// Sends a request, if it has one, and takes data until the other end closes.
    Receiver { request: Outgoing, received: u64 },
    /// Takes a request of so many bytes, then sends data and waits for the other end to close.
    Server { awaited: u64, response: Outgoing },
}

/// What became of a connection when it was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Served {
    /// Data received so far, at the end that receives it.
    pub(super) received: Option<u64>,
    /// The other end has closed: nothing is left to do.
    pub(super) done: bool,
    /// The handshake was done just now, and this is what it led to.
    pub(super) agreed: Option<TcpInfo>,
}

impl Connection {
    /// The end that connects.
    pub(super) fn client(socket: OwnedFd, flow: usize, role: Role) -> Self {
        Self { socket, flow, role, stands: false, interest: EpollFlags::EPOLLOUT }
    }

    /// The end that was connected to.
    pub(super) fn server(socket: OwnedFd, flow: usize, role: Role) -> io::Result<Self> {
        let mut connection = Self { socket, flow, role, stands: false, interest: EpollFlags::EPOLLIN };
        connection.stand()?;
        Ok(connection)
    }

    /// Whether the handshake is done.
    pub(super) fn stands(&self) -> bool {
        self.stands
    }

    /// What epoll should watch for now.
    pub(super) fn wanted(&self) -> EpollFlags {
        let sends = match &self.role {
            _ if !self.stands => return EpollFlags::EPOLLOUT,
            Role::Sender(outgoing) | Role::Receiver { request: outgoing, .. } => outgoing.wants_room(),
            Role::Server { awaited, response } => *awaited == 0 && response.wants_room(),
        };
        if sends { EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT } else { EpollFlags::EPOLLIN }
    }

    /// The socket is ready.
    pub(super) fn serve(&mut self, flags: EpollFlags) -> io::Result<Served> {
        if flags.intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP) {
            socket::take_error(&self.socket)?;
        }
        let agreed = if self.stands { None } else { Some(self.stand()?) };
        let (taken, done) = if flags.contains(EpollFlags::EPOLLIN) { take(&self.socket)? } else { (0, false) };
        let mut served = Served { received: None, done, agreed };
        match &mut self.role {
            Role::Sender(outgoing) => outgoing.pump(&self.socket)?,
            Role::Receiver { request, received } => {
                request.pump(&self.socket)?;
                *received += taken;
                served.received = Some(*received);
            }
            Role::Server { awaited, response } => {
                *awaited = awaited.saturating_sub(taken);
                if *awaited == 0 {
                    response.pump(&self.socket)?;
                }
            }
        }
        Ok(served)
    }

    /// Ends what it sends without end.
    pub(super) fn stop(&mut self) -> io::Result<()> {
        if let Role::Sender(outgoing) = &mut self.role {
            outgoing.stop();
            if self.stands {
                outgoing.pump(&self.socket)?;
            }
        }
        Ok(())
    }

    /// The handshake is done.
    fn stand(&mut self) -> io::Result<TcpInfo> {
        let info = socket::tcp_info(&self.socket)?;
        let (Role::Sender(outgoing)
        | Role::Receiver { request: outgoing, .. }
        | Role::Server { response: outgoing, .. }) = &mut self.role;
        outgoing.acked_before = info.bytes_acked;
        self.stands = true;
        Ok(info)
    }

    /// The kernel's view of the end that sends the flow's data, for the last time.
    pub(super) fn conclude(&self) -> io::Result<Option<TcpInfo>> {
        let sends = self.stands && !matches!(self.role, Role::Receiver { .. });
        sends.then(|| socket::tcp_info(&self.socket)).transpose()
    }

    /// A sample of it, if it is the end that sends the flow's data.
    pub(super) fn sample(&self, t_ns: u64, flow: Name, sending: Sending) -> io::Result<Option<FlowRow>> {
        let outgoing = match &self.role {
            Role::Sender(outgoing) | Role::Server { response: outgoing, .. } => outgoing,
            Role::Receiver { .. } => return Ok(None),
        };
        if !self.stands {
            return Ok(None);
        }
        let info = socket::tcp_info(&self.socket)?;
        let mss = u64::from(info.snd_mss);
        Ok(Some(FlowRow {
            t_ns,
            flow,
            cwnd_bytes: Some(u64::from(info.snd_cwnd) * mss),
            ssthresh_bytes: info.snd_ssthresh.map(|segments| u64::from(segments) * mss),
            inflight_bytes: info.in_flight() * mss,
            srtt_ns: (info.rtt_us > 0).then(|| u64::from(info.rtt_us) * 1000),
            rwnd_bytes: Some(info.snd_wnd.into()),
            pacing_bps: info.pacing_rate.filter(|_| is_paced(sending)).map(|rate| rate.saturating_mul(8)),
            delivered_bytes: outgoing.delivered(info.bytes_acked),
            retransmits: Some(info.total_retrans.into()),
            lost: info.lost.into(),
            state: Some(state(&info)),
        }))
    }
}

/// Takes what has arrived; how much, and whether that was all there will ever be. Less than was asked for is all there is
/// now: epoll tells of what comes later, the end included.
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

/// Whether the traffic or Linux' congestion control asks for pacing: the rate that the kernel works out for the others is of no effect.
fn is_paced(sending: Sending) -> bool {
    sending.pacing || matches!(sending.congestion, Congestion::Bbr)
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
