//! Packet sockets, which receive and send frames (packet(7)).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use bufferscope_endpoint::bytes::read_u32;
use bufferscope_endpoint::options::{get, set_buffer, set_int, stamp_arrivals};
use nix::libc::{self, c_int, socklen_t};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, send, socket};

/// A packet socket that receives all IPv4 frames that arrive at a device, each with the kernel's time of arrival. It
/// also sends frames through that device.
pub(crate) fn packets(interface: u32, buffer_bytes: u32) -> io::Result<OwnedFd> {
    bound(interface, buffer_bytes, libc::ETH_P_IP)
}

/// A packet socket that receives all frames that arrive at a device or leave it, as they are handed to its driver.
pub(crate) fn all_packets(interface: u32, buffer_bytes: u32) -> io::Result<OwnedFd> {
    bound(interface, buffer_bytes, libc::ETH_P_ALL)
}

fn bound(interface: u32, buffer_bytes: u32, protocol: c_int) -> io::Result<OwnedFd> {
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
        address.sll_protocol = (protocol as u16).to_be();
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
    read_u32(&stats[..length], 4).ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
}
