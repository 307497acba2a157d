//! Numbered datagrams. The number is at the beginning (`u64`, big-endian); the rest is ignored.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, send};

use crate::receive::receive;

/// Length of the number.
pub const NUMBER_BYTES: usize = 8;

/// A datagram that was received.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Its number. A datagram that is too short gets the largest number, which is never sent.
    pub number: u64,
    /// Its size.
    pub bytes: usize,
    /// When the kernel saw it, on the real-time clock.
    pub stamp_ns: Option<u64>,
}

/// Writes the number into a datagram, which has room for it, and sends it; false if the kernel accepts no more from
/// this socket now.
pub fn send_number(socket: &OwnedFd, number: u64, datagram: &mut [u8]) -> io::Result<bool> {
    datagram[..NUMBER_BYTES].copy_from_slice(&number.to_be_bytes());
    match send(socket.as_raw_fd(), datagram, MsgFlags::empty()) {
        // A full queue on the sender's own device drops packets like any other queue.
        Ok(_) | Err(Errno::ENOBUFS) => Ok(true),
        Err(Errno::EAGAIN) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Reads a datagram; `None` if no datagram has arrived.
pub fn take(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<Option<Received>> {
    let Some(arrival) = receive(socket, buffer)? else { return Ok(None) };
    let number =
        buffer[..arrival.bytes].first_chunk::<NUMBER_BYTES>().map_or(u64::MAX, |bytes| u64::from_be_bytes(*bytes));
    Ok(Some(Received { number, bytes: arrival.bytes, stamp_ns: arrival.realtime_ns }))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};
    use std::time::{Duration, Instant};

    use nix::sys::socket::{SockaddrIn, getsockname};

    use super::*;
    use crate::socket::udp;

    #[test]
    fn numbers_arrive_with_the_size_and_a_stamp_and_a_short_datagram_has_none() {
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let receiver = udp(any, None, 0).unwrap();
        let port = getsockname::<SockaddrIn>(receiver.as_raw_fd()).unwrap().port();
        let sender = udp(any, Some(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)), 0).unwrap();
        assert!(send_number(&sender, 7, &mut [1; 100]).unwrap());
        send(sender.as_raw_fd(), b"short", MsgFlags::empty()).unwrap();
        let (mut buffer, mut found) = ([0; 2048], Vec::new());
        let deadline = Instant::now() + Duration::from_secs(60);
        while found.len() < 2 && Instant::now() < deadline {
            found.extend(take(&receiver, &mut buffer).unwrap());
        }
        let datagrams: Vec<_> = found.iter().map(|received| (received.number, received.bytes)).collect();
        assert_eq!(datagrams, [(7, 100), (u64::MAX, 5)]);
        assert!(found.iter().all(|received| received.stamp_ns.is_some()));
    }
}
