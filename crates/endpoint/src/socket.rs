//! Sockets of the scenario's hosts.
#![allow(unsafe_code)]

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};

use bufferscope_scenario::Congestion;
use nix::libc::{self, c_int, socklen_t};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockProtocol, SockType, SockaddrIn, SockaddrStorage, bind, connect, listen,
    socket,
};

use crate::bytes::read_u32;
use crate::options::{get, set, set_buffer, set_int, stamp_arrivals};
use crate::tcp_info::{TCP_INFO_BYTES, TcpInfo, UNLIMITED_RATE};

/// `ICMP_FILTER` of raw(7).
const ICMP_FILTER: c_int = 1;
/// How many connections may wait to be accepted; more than a scenario opens at once.
const BACKLOG: i32 = 4096;

/// Room for the datagrams of a flood while this program does something else.
const DATAGRAM_BUFFER_BYTES: u32 = 8 << 20;

/// The parameters of a TCP socket.
#[derive(Clone, Copy, Debug)]
pub struct TcpOptions {
    /// The sender's congestion control.
    pub congestion: Congestion,
    /// Pace packets even where the congestion control does not require it.
    pub pacing: bool,
    /// Differentiated services code point.
    pub dscp: u8,
}

/// A non-blocking TCP socket bound to an address.
pub fn tcp(local: SocketAddrV4, options: TcpOptions) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Inet, SockType::Stream, flags, SockProtocol::Tcp)?;
    set_int(&socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    set_int(&socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
    set_dscp(&socket, options.dscp)?;
    let congestion = options.congestion;
    let name =
        congestion.linux_name().ok_or_else(|| io::Error::other(format!("Linux has no {}", congestion.name())))?;
    set(&socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes())?;
    if options.pacing {
        // Any rate except the largest makes the kernel pace. This one is so high that it does not limit.
        set(&socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &UNLIMITED_RATE.to_ne_bytes())?;
    }
    bind(socket.as_raw_fd(), &SockaddrIn::from(local))?;
    Ok(socket)
}

/// A TCP socket that accepts connections, which have the same options.
pub fn listener(local: SocketAddrV4, options: TcpOptions) -> io::Result<OwnedFd> {
    let socket = tcp(local, options)?;
    listen(&socket, Backlog::new(BACKLOG)?)?;
    Ok(socket)
}

/// Begins to connect.
pub fn start_connect(socket: &OwnedFd, remote: SocketAddrV4) -> io::Result<()> {
    match connect(socket.as_raw_fd(), &SockaddrIn::from(remote)) {
        Ok(()) | Err(nix::errno::Errno::EINPROGRESS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A pending connection, with its other end; `None` if no connection is pending.
pub fn accept(listener: &OwnedFd) -> io::Result<Option<(OwnedFd, SocketAddrV4)>> {
    // SAFETY: the address and its length are valid for writes of the given size, and the kernel initialises what it
    // returns.
    let (fd, address) = unsafe {
        let mut address: libc::sockaddr_in = std::mem::zeroed();
        let mut length = size_of::<libc::sockaddr_in>() as socklen_t;
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        let fd = libc::accept4(listener.as_raw_fd(), (&raw mut address).cast(), &raw mut length, flags);
        (fd, address)
    };
    if fd < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
    }
    // SAFETY: the kernel just gave this descriptor, and nothing else owns it.
    let socket = unsafe { std::os::fd::FromRawFd::from_raw_fd(fd) };
    let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
    Ok(Some((socket, SocketAddrV4::new(ip, u16::from_be(address.sin_port)))))
}

/// A raw ICMP socket that receives only one type of message, each with the kernel's time of arrival. When the kernel
/// answers a request, the answer has the request's code point.
pub fn icmp(local: Ipv4Addr, receives: u8, dscp: u8) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Inet, SockType::Raw, flags, SockProtocol::Icmp)?;
    bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(local, 0)))?;
    set_dscp(&socket, dscp)?;
    // Each bit set in the mask excludes a type from reception.
    set(&socket, libc::SOL_RAW, ICMP_FILTER, &(!(1_u32 << receives)).to_ne_bytes())?;
    stamp_arrivals(&socket)?;
    Ok(socket)
}

/// A UDP socket that receives only from `remote`, if that is given, and sends to it. Its buffers are large, so that
/// they have room for a burst that waits to be read, or for one in the queue of the host's own port.
pub fn udp(local: SocketAddrV4, remote: Option<SocketAddrV4>, dscp: u8) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Inet, SockType::Datagram, flags, SockProtocol::Udp)?;
    set_dscp(&socket, dscp)?;
    set_buffer(&socket, [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF], DATAGRAM_BUFFER_BYTES)?;
    set_buffer(&socket, [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF], DATAGRAM_BUFFER_BYTES)?;
    stamp_arrivals(&socket)?;
    bind(socket.as_raw_fd(), &SockaddrIn::from(local))?;
    if let Some(remote) = remote {
        connect(socket.as_raw_fd(), &SockaddrIn::from(remote))?;
    }
    Ok(socket)
}

/// Number of datagrams that found the receive buffer of a socket full since the socket was opened.
pub fn datagrams_missed(socket: &OwnedFd) -> io::Result<u32> {
    // include/uapi/linux/sock_diag.h: an array of u32, of which SK_MEMINFO_DROPS is the ninth.
    let mut numbers = [0; 36];
    let length = get(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut numbers)?;
    read_u32(&numbers[..length], 32).ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
}

/// The kernel's view of a connection.
pub fn tcp_info(socket: &OwnedFd) -> io::Result<TcpInfo> {
    let mut bytes = [0; TCP_INFO_BYTES];
    let length = get(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
    TcpInfo::parse(&bytes[..length]).ok_or_else(|| io::Error::other("this kernel's TCP_INFO is too old (before 5.4)"))
}

/// The error that occurred on a socket in the background (`SO_ERROR`).
pub fn take_error(socket: &OwnedFd) -> io::Result<()> {
    let mut code = [0; 4];
    get(socket, libc::SOL_SOCKET, libc::SO_ERROR, &mut code)?;
    match i32::from_ne_bytes(code) {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Receives and discards up to `most` bytes of a connection without copying them. Returns how many; 0 at the
/// connection's end.
pub fn discard(socket: &OwnedFd, most: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC a TCP socket writes nothing to the buffer, which may then be null (tcp(7)).
    let length = unsafe { libc::recv(socket.as_raw_fd(), std::ptr::null_mut(), most, libc::MSG_TRUNC) };
    usize::try_from(length).map_err(|_| io::Error::last_os_error())
}

/// Whether the kernel knows a congestion control and lets this process use it.
pub fn has_congestion(name: &str) -> bool {
    let tcp = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, SockProtocol::Tcp);
    tcp.is_ok_and(|tcp| set(&tcp, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes()).is_ok())
}

/// An address in the form that `sendto` takes.
pub fn destination(address: Ipv4Addr) -> SockaddrStorage {
    SockaddrStorage::from(SocketAddrV4::new(address, 0))
}

/// Sets the code point. On a TCP socket, the kernel keeps the ECN bits as they are.
fn set_dscp(socket: &OwnedFd, dscp: u8) -> io::Result<()> {
    set_int(socket, libc::IPPROTO_IP, libc::IP_TOS, c_int::from(dscp) << 2)
}

#[cfg(test)]
mod tests;
