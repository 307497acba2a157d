//! The packets that leave the sockets, as a raw socket sees them on the loopback device.

use std::io::Write;
use std::time::{Duration, Instant};

use nix::sys::socket::{MsgFlags, send};

use super::*;

const EF: u8 = 46;
const LOCALHOST: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// A raw socket that receives a copy of every packet of a protocol. If that is not allowed, prints a message and
/// returns `None`.
fn eavesdropper(protocol: c_int) -> Option<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    let fd = unsafe { libc::socket(libc::AF_INET, kind, protocol) };
    if fd < 0 {
        // The test harness would capture the output of `eprintln!`.
        let _ = writeln!(io::stderr(), "skipped: no raw socket: {}", io::Error::last_os_error());
        return None;
    }
    // SAFETY: the kernel just gave this descriptor, and nothing else owns it.
    Some(unsafe { std::os::fd::FromRawFd::from_raw_fd(fd) })
}

/// Waits until `number` packets that satisfy `is_wanted` have arrived; returns the traffic class of each.
fn classes(socket: &OwnedFd, number: usize, is_wanted: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut buffer = [0; 2048];
    let mut classes = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(60);
    while classes.len() < number && Instant::now() < deadline {
        match crate::receive::receive(socket, &mut buffer).unwrap() {
            Some(arrival) if is_wanted(&buffer[..arrival.bytes]) => classes.push(buffer[1]),
            Some(_) => {}
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    classes
}

/// The packet without its IP header.
fn transport(packet: &[u8]) -> &[u8] {
    &packet[usize::from(packet[0] & 0x0f) * 4..]
}

fn local_port(socket: &OwnedFd) -> u16 {
    let address: SockaddrIn = nix::sys::socket::getsockname(socket.as_raw_fd()).unwrap();
    address.port()
}

#[test]
fn both_ends_of_a_connection_send_the_code_point_from_the_first_packet_on() {
    let Some(ears) = eavesdropper(libc::IPPROTO_TCP) else { return };
    let options = TcpOptions { congestion: Congestion::Cubic, pacing: false, dscp: EF };
    let any = SocketAddrV4::new(LOCALHOST, 0);
    let listener = listener(any, options).unwrap();
    let client = tcp(any, options).unwrap();
    let port = local_port(&listener);
    start_connect(&client, SocketAddrV4::new(LOCALHOST, port)).unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let server = loop {
        match accept(&listener).unwrap() {
            Some((server, _)) => break server,
            None => assert!(Instant::now() < deadline, "no connection arrives"),
        }
    };
    for socket in [&client, &server] {
        send(socket.as_raw_fd(), b"data", MsgFlags::empty()).unwrap();
    }
    let ports = |packet: &[u8]| [0, 2].map(|at| u16::from_be_bytes([transport(packet)[at], transport(packet)[at + 1]]));
    // SYN, SYN-ACK, ACK, and data each way.
    assert_eq!(classes(&ears, 5, |packet| ports(packet).contains(&port)), [EF << 2; 5]);
}

#[test]
fn an_echo_request_and_its_answer_carry_the_code_point() {
    let Some(ears) = eavesdropper(libc::IPPROTO_ICMP) else { return };
    let socket = icmp(LOCALHOST, 0, EF).unwrap();
    // The identifier is so small that the sum of the two words has no carry.
    let identifier = std::process::id() as u16 & 0x0fff;
    let (checksum, identifier) = ((!(0x0800 + identifier)).to_be_bytes(), identifier.to_be_bytes());
    let request = [8, 0, checksum[0], checksum[1], identifier[0], identifier[1], 0, 0];
    nix::sys::socket::sendto(socket.as_raw_fd(), &request, &destination(LOCALHOST), MsgFlags::empty()).unwrap();
    assert_eq!(classes(&ears, 2, |packet| transport(packet)[4..6] == identifier), [EF << 2; 2]);
}

#[test]
fn datagrams_carry_the_code_point_and_those_that_find_no_room_are_counted() {
    let receiver = udp(SocketAddrV4::new(LOCALHOST, 0), None, 0).unwrap();
    let port = local_port(&receiver);
    let sender = udp(SocketAddrV4::new(LOCALHOST, 0), Some(SocketAddrV4::new(LOCALHOST, port)), EF).unwrap();
    if let Some(ears) = eavesdropper(libc::IPPROTO_UDP) {
        send(sender.as_raw_fd(), b"speech", MsgFlags::empty()).unwrap();
        let is_ours = |packet: &[u8]| u16::from_be_bytes([transport(packet)[2], transport(packet)[3]]) == port;
        assert_eq!(classes(&ears, 1, is_ours), [EF << 2]);
    }
    assert_eq!(datagrams_missed(&receiver).unwrap(), 0);
    // The kernel's smallest buffer holds a packet or two.
    set_int(&receiver, libc::SOL_SOCKET, libc::SO_RCVBUF, 1).unwrap();
    for _ in 0..50 {
        send(sender.as_raw_fd(), &[0; 1000], MsgFlags::empty()).unwrap();
    }
    assert!(datagrams_missed(&receiver).unwrap() >= 40);
}
