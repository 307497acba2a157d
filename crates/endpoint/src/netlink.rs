//! Netlink messages and their attributes, parsed without trusting any length, and the socket that receives them.

mod refusal;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, setsockopt, socket,
    sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

pub use self::refusal::Refusal;
use crate::bytes::{read_u16, read_u32};
use crate::options;

/// Length of `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// `NLM_F_REQUEST`.
const REQUEST_FLAGS: u16 = 0x1;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP_FLAGS: u16 = 0x301;
/// `NLM_F_REQUEST | NLM_F_ECHO`: for some kinds of objects, the kernel answers only with the latter.
const GET_FLAGS: u16 = 0x9;
/// `NLM_F_ACK`: the kernel also confirms that it has carried out a request.
const CONFIRM: u16 = 0x4;
/// `NLM_F_MULTI`: more of the answer follows.
const MORE_FOLLOWS: u16 = 0x2;
/// `NLM_F_DUMP_INTR`: the tables changed while they were read.
const INTERRUPTED: u16 = 0x10;
/// The kernel fills at most 32 KiB at a time.
const RECEIVE_BYTES: usize = 32 * 1024;
/// The kernel answers during the request. If it has not answered after this time, it never will.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Length and type of an attribute are aligned to this.
const ALIGNMENT: usize = 4;
/// Bits of an attribute's type that are flags (`NLA_F_NESTED`, `NLA_F_NET_BYTEORDER`).
const TYPE_MASK: u16 = 0x3fff;
/// `NLA_F_NESTED`: the value consists of attributes.
const NESTED: u16 = 0x8000;

/// The kernel's answer is not as netlink(7) describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the kernel's netlink answer is malformed: {0}")]
pub struct Malformed(pub &'static str);

impl From<Malformed> for io::Error {
    fn from(malformed: Malformed) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, malformed)
    }
}

/// A netlink socket of the namespace in which it was opened.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    buffer: Vec<u8>,
    sequence: u32,
}

impl Netlink {
    /// Opens one for devices, routes and queueing disciplines (rtnetlink(7)) in the calling thread's namespace.
    pub fn open() -> io::Result<Self> {
        Self::open_for(SockProtocol::NetlinkRoute)
    }

    /// Opens one for the families of generic netlink, such as nl80211, in the calling thread's namespace.
    pub fn open_generic() -> io::Result<Self> {
        Self::open_for(SockProtocol::NetlinkGeneric)
    }

    fn open_for(protocol: SockProtocol) -> io::Result<Self> {
        let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::seconds(TIMEOUT.as_secs() as i64))?;
        Ok(Self { socket, buffer: vec![0; RECEIVE_BYTES], sequence: 0 })
    }

    /// Requests everything of one kind and passes each message's type and payload to `each`.
    pub fn dump(
        &mut self,
        request: u16,
        body: &[u8],
        each: impl FnMut(u16, &[u8]) -> Result<(), Malformed>,
    ) -> io::Result<()> {
        Ok(self.ask(request, DUMP_FLAGS, body, each)?)
    }

    /// Requests one object and passes its message's type and payload to `take`.
    pub fn get(
        &mut self,
        request: u16,
        body: &[u8],
        take: impl FnMut(u16, &[u8]) -> Result<(), Malformed>,
    ) -> io::Result<()> {
        Ok(self.ask(request, GET_FLAGS, body, take)?)
    }

    /// As [`Self::get`], but also ends if the kernel has nothing to answer; `take` is not called then.
    pub fn get_if_any(
        &mut self,
        request: u16,
        body: &[u8],
        take: impl FnMut(u16, &[u8]) -> Result<(), Malformed>,
    ) -> io::Result<()> {
        Ok(self.ask(request, GET_FLAGS | CONFIRM, body, take)?)
    }

    /// Requests a change, and returns when the kernel has made it.
    pub fn change(&mut self, request: u16, body: &[u8]) -> Result<(), Refusal> {
        options::set_int(&self.socket, libc::SOL_NETLINK, libc::NETLINK_EXT_ACK, 1)?;
        self.ask(request, REQUEST_FLAGS | CONFIRM, body, |_, _| Ok(()))
    }

    fn ask(
        &mut self,
        request: u16,
        flags: u16,
        body: &[u8],
        mut each: impl FnMut(u16, &[u8]) -> Result<(), Malformed>,
    ) -> Result<(), Refusal> {
        self.sequence += 1;
        send(self.socket.as_raw_fd(), &question(request, flags, self.sequence, body), MsgFlags::empty())?;
        loop {
            let length = match recv(self.socket.as_raw_fd(), &mut self.buffer, MsgFlags::empty()) {
                Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => return Err(no_answer(request).into()),
                other => other?,
            };
            for message in messages(&self.buffer[..length]) {
                let message = message?;
                if message.sequence != self.sequence {
                    continue;
                }
                match message.kind {
                    NLMSG_DONE if message.flags & INTERRUPTED != 0 => return Err(Errno::EINTR.into()),
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => return refusal::parse(message.flags, message.payload)?.map_or(Ok(()), Err),
                    kind => each(kind, message.payload)?,
                }
                if message.flags & MORE_FOLLOWS == 0 {
                    return Ok(());
                }
            }
        }
    }
}

/// One message of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// What the message is about.
    pub kind: u16,
    /// `NLM_F_*`.
    pub flags: u16,
    /// The number of the request that it answers.
    pub sequence: u32,
    /// The message without its header.
    pub payload: &'a [u8],
}

/// The messages of a datagram; stops at the first malformed one.
pub fn messages(bytes: &[u8]) -> impl Iterator<Item = Result<Message<'_>, Malformed>> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let bytes = rest.take().filter(|bytes| !bytes.is_empty())?;
        let parsed = split_message(bytes);
        rest = parsed.as_ref().ok().map(|(_, rest)| *rest);
        Some(parsed.map(|(message, _)| message))
    })
}

fn split_message(bytes: &[u8]) -> Result<(Message<'_>, &[u8]), Malformed> {
    let cut = Malformed("a message is cut off");
    let length = read_u32(bytes, 0).ok_or(cut)? as usize;
    if length < HEADER_BYTES {
        return Err(Malformed("a message is shorter than its header"));
    }
    let message = Message {
        kind: read_u16(bytes, 4).ok_or(cut)?,
        flags: read_u16(bytes, 6).ok_or(cut)?,
        sequence: read_u32(bytes, 8).ok_or(cut)?,
        payload: bytes.get(HEADER_BYTES..length).ok_or(cut)?,
    };
    Ok((message, bytes.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default()))
}

/// The attributes of a message, each as type and value; stops at the first malformed one.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = Result<(u16, &[u8]), Malformed>> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let bytes = rest.take().filter(|bytes| !bytes.is_empty())?;
        let parsed = split_attribute(bytes);
        rest = parsed.as_ref().ok().map(|(_, rest)| *rest);
        Some(parsed.map(|(attribute, _)| attribute))
    })
}

type Attribute<'a> = (u16, &'a [u8]);

fn split_attribute(bytes: &[u8]) -> Result<(Attribute<'_>, &[u8]), Malformed> {
    let cut = Malformed("an attribute is cut off");
    let length = usize::from(read_u16(bytes, 0).ok_or(cut)?);
    let kind = read_u16(bytes, 2).ok_or(cut)? & TYPE_MASK;
    let value = bytes.get(4..length).ok_or(cut)?;
    Ok(((kind, value), bytes.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default()))
}

/// Adds an attribute that consists of attributes to a request.
pub fn push_nested(request: &mut Vec<u8>, kind: u16, attributes: &[u8]) {
    push_attribute(request, kind | NESTED, attributes);
}

/// Adds an attribute to a request.
pub fn push_attribute(request: &mut Vec<u8>, kind: u16, value: &[u8]) {
    request.extend(((4 + value.len()) as u16).to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend(value);
    request.resize(request.len().next_multiple_of(ALIGNMENT), 0);
}

fn question(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut request = Vec::with_capacity(HEADER_BYTES + body.len());
    request.extend(((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend(flags.to_ne_bytes());
    request.extend(sequence.to_ne_bytes());
    request.extend(0_u32.to_ne_bytes());
    request.extend(body);
    request
}

fn no_answer(request: u16) -> io::Error {
    let text = format!("the kernel has not answered netlink request {request} within {} s", TIMEOUT.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_written_as_they_are_read() {
        let mut request = Vec::new();
        push_attribute(&mut request, 3, b"eth0\0");
        push_attribute(&mut request, 1, &[7]);
        assert_eq!(request.len(), 12 + 8);
        let read: Vec<_> = attributes(&request).map(Result::unwrap).collect();
        assert_eq!(read, [(3, &b"eth0\0"[..]), (1, &[7])]);
    }
}
