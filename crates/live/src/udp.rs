//! The UDP socket of the probes: every packet is stamped by the kernel where it can, and carries its own TTL.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use bufferscope_endpoint::error_queue::{Notice, nanoseconds, report_errors, take_notice};
use bufferscope_endpoint::options::{set_buffer, set_int};
use bufferscope_endpoint::timestamping::{send_unstamped, stamp_datagrams};
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, SockaddrStorage, bind, connect,
    getsockname, recvmsg, sendmsg, socket,
};

use crate::time::realtime_ns;
use crate::wire::probe::{PACKET_BYTES, Packet};

/// Room for the probes that arrive while this program does not run.
const BUFFER_BYTES: u32 = 1 << 20;
/// Room for the control messages of one packet.
const CONTROL_BYTES: usize = 256;
/// Longer packets are not ours.
const LONGEST: usize = 2048;
/// An earlier packet's ICMP error is reported by the next call, which must then be repeated; more than one may be pending.
const ATTEMPTS: usize = 4;

/// A probe that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// It.
    pub packet: Packet,
    /// Its length.
    pub bytes: usize,
    /// Who sent it.
    pub from: SocketAddr,
    /// When the kernel received it, on the real-time clock.
    pub at_ns: u64,
    /// Whether that is the kernel's stamp, not this program's.
    pub by_kernel: bool,
}

/// A datagram that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Datagram {
    /// Its length; longer ones are cut.
    pub length: usize,
    /// Who sent it.
    pub from: SocketAddr,
    /// When the kernel received it, on the real-time clock.
    pub at_ns: u64,
    /// Whether that is the kernel's stamp, not this program's.
    pub by_kernel: bool,
}

impl Datagram {
    /// The probe that it is; `None` if it is something else.
    pub fn probe(&self, buffer: &[u8]) -> Option<Arrival> {
        let Self { length, from, at_ns, by_kernel } = *self;
        Packet::parse(&buffer[..length]).map(|packet| Arrival { packet, bytes: length, from, at_ns, by_kernel })
    }
}

/// A socket for probes.
#[derive(Debug)]
pub struct ProbeSocket {
    socket: OwnedFd,
    is_ipv6: bool,
}

impl ProbeSocket {
    /// Opens one at an address, which receives from `remote` only, if that is given.
    pub fn open(local: SocketAddr, remote: Option<SocketAddr>) -> io::Result<Self> {
        Self::open_shared(local, remote, false)
    }

    /// Takes one that another process has opened.
    pub fn inherited(socket: OwnedFd) -> io::Result<Self> {
        let mut found = Self { socket, is_ipv6: false };
        found.is_ipv6 = found.local()?.is_ipv6();
        Ok(found)
    }

    /// Another descriptor of the same socket.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { socket: self.socket.try_clone()?, is_ipv6: self.is_ipv6 })
    }

    /// Opens another socket at the same address for one peer: the kernel gives it what that peer sends from then on.
    pub fn beside(&self, remote: SocketAddr) -> io::Result<Self> {
        // Both must have it, and it may be set when the first one is bound already.
        set_int(&self.socket, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
        Self::open_shared(self.local()?, Some(remote), true)
    }

    fn open_shared(local: SocketAddr, remote: Option<SocketAddr>, is_shared: bool) -> io::Result<Self> {
        let is_ipv6 = local.is_ipv6();
        let family = if is_ipv6 { AddressFamily::Inet6 } else { AddressFamily::Inet };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(family, SockType::Datagram, flags, None)?;
        if is_ipv6 {
            set_int(&socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
        }
        if is_shared {
            set_int(&socket, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
        }
        set_buffer(&socket, [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF], BUFFER_BYTES)?;
        report_errors(&socket, is_ipv6)?;
        stamp_datagrams(&socket, true)?;
        bind(socket.as_raw_fd(), &SockaddrStorage::from(local))?;
        if let Some(remote) = remote {
            connect(socket.as_raw_fd(), &SockaddrStorage::from(remote))?;
        }
        Ok(Self { socket, is_ipv6 })
    }

    /// The address that it is bound to.
    pub fn local(&self) -> io::Result<SocketAddr> {
        let address: SockaddrStorage = getsockname(self.socket.as_raw_fd())?;
        internet_address(&address).ok_or_else(|| io::Error::other("a UDP socket without an address"))
    }

    /// Whether it can send to an address of this family.
    pub fn reaches(&self, address: SocketAddr) -> bool {
        address.is_ipv6() == self.is_ipv6
    }

    /// Sends a packet with the TTL that it names, or the system's if that is 0. Returns whether it could be sent.
    pub fn send(&self, packet: &Packet, to: Option<SocketAddr>) -> io::Result<bool> {
        self.send_with_ttl(packet, packet.ttl, to)
    }

    /// As [`Self::send`], with another TTL than the packet names: that is of the request that it answers.
    pub fn send_with_ttl(&self, packet: &Packet, ttl: u8, to: Option<SocketAddr>) -> io::Result<bool> {
        self.send_bytes(&packet.bytes(), ttl, to)
    }

    /// Sends any datagram with a TTL, or the system's if that is 0. Returns whether it could be sent.
    pub fn send_bytes(&self, bytes: &[u8], ttl: u8, to: Option<SocketAddr>) -> io::Result<bool> {
        let content = [io::IoSlice::new(bytes)];
        let hops = i32::from(ttl);
        let with_ttl = match (ttl, self.is_ipv6) {
            (0, _) => &[][..],
            (_, false) => &[ControlMessage::Ipv4Ttl(&hops)],
            (_, true) => &[ControlMessage::Ipv6HopLimit(&hops)],
        };
        let to = to.map(SockaddrStorage::from);
        for _ in 0..ATTEMPTS {
            match sendmsg(self.socket.as_raw_fd(), &content, with_ttl, MsgFlags::empty(), to.as_ref()) {
                Ok(_) => return Ok(true),
                // A full queue of this machine's own device drops packets like any other queue.
                Err(Errno::EAGAIN | Errno::ENOBUFS) => return Ok(false),
                Err(error) if is_about_earlier_packets(error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    /// Sends a packet of a flood, padded with these bytes and without stamps. Returns whether it could be sent.
    pub fn send_flood(&self, packet: &Packet, padding: &[u8], to: SocketAddr) -> io::Result<bool> {
        let bytes = packet.bytes();
        let content = [io::IoSlice::new(&bytes), io::IoSlice::new(padding)];
        let to = SockaddrStorage::from(to);
        for _ in 0..ATTEMPTS {
            match send_unstamped(&self.socket, &content, &to) {
                Ok(_) => return Ok(true),
                Err(error) => match error.raw_os_error().map(Errno::from_raw) {
                    Some(Errno::EAGAIN | Errno::ENOBUFS) => return Ok(false),
                    Some(errno) if is_about_earlier_packets(errno) => {}
                    _ => return Err(error),
                },
            }
        }
        Ok(false)
    }

    /// Takes the next packet that arrived; `None` if nothing has arrived. What is not a probe is dropped.
    pub fn receive(&self) -> io::Result<Option<Arrival>> {
        let mut bytes = [0; LONGEST];
        while let Some(datagram) = self.receive_any(&mut bytes)? {
            if let Some(arrival) = datagram.probe(&bytes) {
                return Ok(Some(arrival));
            }
        }
        Ok(None)
    }

    /// Takes the next datagram that arrived into `bytes`; `None` if nothing has arrived.
    pub fn receive_any(&self, bytes: &mut [u8]) -> io::Result<Option<Datagram>> {
        loop {
            let mut control = [0; CONTROL_BYTES];
            let mut into = [io::IoSliceMut::new(bytes)];
            let raw = self.socket.as_raw_fd();
            let message = match recvmsg::<SockaddrStorage>(raw, &mut into, Some(&mut control), MsgFlags::empty()) {
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
                Err(error) if is_about_earlier_packets(error) => continue,
                other => other?,
            };
            let stamp = message.cmsgs()?.find_map(|control| match control {
                ControlMessageOwned::ScmTimestampsns(stamps) => nanoseconds(stamps.system),
                _ => None,
            });
            let from = message.address.as_ref().and_then(internet_address);
            let length = message.bytes;
            if let Some(from) = from {
                let (at_ns, by_kernel) = (stamp.unwrap_or_else(realtime_ns), stamp.is_some());
                return Ok(Some(Datagram { length, from, at_ns, by_kernel }));
            }
        }
    }

    /// Takes the next entry of the error queue, with the copy or quotation of the packet in `buffer`.
    pub fn notice(&self, buffer: &mut [u8]) -> io::Result<Option<Notice>> {
        take_notice(&self.socket, buffer)
    }

    /// Waits until something arrives or the time has passed.
    pub fn wait(&self, at_most: Duration) -> io::Result<()> {
        let timeout = PollTimeout::try_from(at_most).unwrap_or(PollTimeout::MAX);
        match nix::poll::poll(&mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for ProbeSocket {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// An address of IPv4 or IPv6.
pub fn internet_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::from((v4.ip(), v4.port())));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::from((v6.ip(), v6.port()))))
}

/// The packet in a copy, which begins with the headers that the kernel put before it.
pub fn copied(copy: &[u8]) -> Option<Packet> {
    Packet::parse(copy.get(copy.len().checked_sub(PACKET_BYTES)?..)?)
}

/// Errors that ICMP messages about earlier packets cause (`icmp_err_convert` in net/ipv4/icmp.c, and MTU changes).
fn is_about_earlier_packets(error: Errno) -> bool {
    matches!(
        error,
        Errno::EHOSTUNREACH
            | Errno::ENETUNREACH
            | Errno::ECONNREFUSED
            | Errno::EPROTO
            | Errno::ENOPROTOOPT
            | Errno::EHOSTDOWN
            | Errno::ENONET
            | Errno::EOPNOTSUPP
            | Errno::EMSGSIZE
            | Errno::EACCES
            | Errno::ENETDOWN
    )
}
