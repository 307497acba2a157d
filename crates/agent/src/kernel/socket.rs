//! Sockets of the scenario's hosts, and the options that no library offers.
#![allow(unsafe_code)]

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};

use bufferscope_scenario::Congestion;
use nix::libc::{self, c_int, c_void, socklen_t};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, SockaddrStorage, bind, connect,
    listen, send, socket,
};

use super::tcp_info::{TCP_INFO_BYTES, TcpInfo, UNLIMITED_RATE};

/// `ICMP_FILTER` of raw(7).
const ICMP_FILTER: c_int = 1;
/// How many connections may wait to be accepted; more than a scenario opens at once.
const BACKLOG: i32 = 4096;

/// Room for the datagrams of a flood while this program does something else.
const DATAGRAM_BUFFER_BYTES: u32 = 8 << 20;

/// The parameters of a TCP socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpOptions {
    /// The sender's congestion control.
    pub(crate) congestion: Congestion,
    /// Pace packets even where the congestion control does not require it.
    pub(crate) pacing: bool,
    /// Differentiated services code point.
    pub(crate) dscp: u8,
}

/// A non-blocking TCP socket bound to an address.
pub(crate) fn tcp(local: SocketAddrV4, options: TcpOptions) -> io::Result<OwnedFd> {
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
pub(crate) fn listener(local: SocketAddrV4, options: TcpOptions) -> io::Result<OwnedFd> {
    let socket = tcp(local, options)?;
    listen(&socket, Backlog::new(BACKLOG)?)?;
    Ok(socket)
}

/// Begins to connect.
pub(crate) fn start_connect(socket: &OwnedFd, remote: SocketAddrV4) -> io::Result<()> {
    match connect(socket.as_raw_fd(), &SockaddrIn::from(remote)) {
        Ok(()) | Err(nix::errno::Errno::EINPROGRESS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A pending connection, with its other end; `None` if there is none.
pub(crate) fn accept(listener: &OwnedFd) -> io::Result<Option<(OwnedFd, SocketAddrV4)>> {
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
    // SAFETY: the kernel just gave this descriptor, and nobody else has it.
    let socket = unsafe { std::os::fd::FromRawFd::from_raw_fd(fd) };
    let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
    Ok(Some((socket, SocketAddrV4::new(ip, u16::from_be(address.sin_port)))))
}

/// A raw ICMP socket that receives only one type of message, each with the kernel's time of arrival. When the kernel
/// answers a request, the answer has the request's code point.
pub(crate) fn icmp(local: Ipv4Addr, receives: u8, dscp: u8) -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Inet, SockType::Raw, flags, SockProtocol::Icmp)?;
    bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(local, 0)))?;
    set_dscp(&socket, dscp)?;
    // Each bit set in the mask stands for a type that is *not* received.
    set(&socket, libc::SOL_RAW, ICMP_FILTER, &(!(1_u32 << receives)).to_ne_bytes())?;
    stamp_arrivals(&socket)?;
    Ok(socket)
}

/// A UDP socket that receives only from `remote`, if that is given, and sends to it. Its buffers are large, so that
/// they have room for a burst that waits to be read, or for one in the queue of the host's own port.
pub(crate) fn udp(local: SocketAddrV4, remote: Option<SocketAddrV4>, dscp: u8) -> io::Result<OwnedFd> {
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
pub(crate) fn datagrams_missed(socket: &OwnedFd) -> io::Result<u32> {
    // include/uapi/linux/sock_diag.h: an array of u32, of which SK_MEMINFO_DROPS is the ninth.
    let mut numbers = [0; 36];
    let length = get(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut numbers)?;
    super::netlink::read_u32(&numbers[..length], 32).ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
}

/// A packet socket that receives all IPv4 frames that arrive at a device, each with the kernel's time of arrival. It
/// also sends frames through that device.
pub(crate) fn packets(interface: u32, buffer_bytes: u32) -> io::Result<OwnedFd> {
    // It is created without a protocol, so that it receives nothing before it is bound to the device.
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None)?;
    stamp_arrivals(&socket)?;
    // Frames that find the buffer full are counted.
    set_buffer(&socket, [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF], buffer_bytes)?;
    // SAFETY: all-zero bytes are a valid sockaddr_ll, and its length is passed with it.
    let bound = unsafe {
        let mut address: libc::sockaddr_ll = std::mem::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_IP as u16).to_be();
        address.sll_ifindex = interface as c_int;
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as socklen_t)
    };
    if bound < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
}

/// Sends a frame through a device, bypassing its queueing discipline and its counters.
pub(crate) fn send_past_queue(interface: u32, frame: &[u8]) -> io::Result<()> {
    let socket = packets(interface, 0)?;
    set_int(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
    send(socket.as_raw_fd(), frame, MsgFlags::empty())?;
    Ok(())
}

/// Number of frames that found the packet socket's buffer full since the last call.
pub(crate) fn packets_missed(socket: &OwnedFd) -> io::Result<u32> {
    // struct tpacket_stats: u32 tp_packets, tp_drops.
    let mut stats = [0; 8];
    let length = get(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut stats)?;
    super::netlink::read_u32(&stats[..length], 4).ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
}

/// The kernel's view of a connection.
pub(crate) fn tcp_info(socket: &OwnedFd) -> io::Result<TcpInfo> {
    let mut bytes = [0; TCP_INFO_BYTES];
    let length = get(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
    TcpInfo::parse(&bytes[..length]).ok_or_else(|| io::Error::other("this kernel's TCP_INFO is too old (before 5.4)"))
}

/// The error that occurred on a socket in the background (`SO_ERROR`).
pub(crate) fn take_error(socket: &OwnedFd) -> io::Result<()> {
    let mut code = [0; 4];
    get(socket, libc::SOL_SOCKET, libc::SO_ERROR, &mut code)?;
    match i32::from_ne_bytes(code) {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Receives and discards up to `most` bytes of a connection without copying them. Returns how many; 0 at the
/// connection's end.
pub(crate) fn discard(socket: &OwnedFd, most: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC a TCP socket writes nothing to the buffer, which may then be null (tcp(7)).
    let length = unsafe { libc::recv(socket.as_raw_fd(), std::ptr::null_mut(), most, libc::MSG_TRUNC) };
    usize::try_from(length).map_err(|_| io::Error::last_os_error())
}

/// Whether the kernel knows a congestion control and lets this process use it.
pub(crate) fn has_congestion(name: &str) -> bool {
    let tcp = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, SockProtocol::Tcp);
    tcp.is_ok_and(|tcp| set(&tcp, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes()).is_ok())
}

/// An address in the form that `sendto` takes.
pub(crate) fn destination(address: Ipv4Addr) -> SockaddrStorage {
    SockaddrStorage::from(SocketAddrV4::new(address, 0))
}

fn stamp_arrivals(socket: &OwnedFd) -> io::Result<()> {
    set_int(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)
}

/// Sets a buffer's size by the first of two options. An ordinary user may only use the second, with a size bounded by
/// `net.core.rmem_max` or `wmem_max`.
fn set_buffer(socket: &OwnedFd, [forced, bounded]: [c_int; 2], bytes: u32) -> io::Result<()> {
    set_int(socket, libc::SOL_SOCKET, forced, bytes as c_int)
        .or_else(|_| set_int(socket, libc::SOL_SOCKET, bounded, bytes as c_int))
}

/// Sets the code point. On a TCP socket, the kernel keeps the ECN bits as they are.
fn set_dscp(socket: &OwnedFd, dscp: u8) -> io::Result<()> {
    set_int(socket, libc::IPPROTO_IP, libc::IP_TOS, c_int::from(dscp) << 2)
}

fn set_int(socket: &OwnedFd, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    set(socket, level, option, &value.to_ne_bytes())
}

fn set(socket: &OwnedFd, level: c_int, option: c_int, value: &[u8]) -> io::Result<()> {
    let (bytes, length) = (value.as_ptr().cast::<c_void>(), value.len() as socklen_t);
    // SAFETY: `bytes` is valid for reads of `length` bytes.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, bytes, length) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads an option; returns how many bytes the kernel filled.
fn get(socket: &OwnedFd, level: c_int, option: c_int, value: &mut [u8]) -> io::Result<usize> {
    let mut length = value.len() as socklen_t;
    let bytes = value.as_mut_ptr().cast::<c_void>();
    // SAFETY: `bytes` is valid for writes of `length` bytes, and the kernel never fills more.
    let done = unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, bytes, &raw mut length) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok((length as usize).min(value.len())) }
}

#[cfg(test)]
mod tests;
