//! The messages of STUN (RFC 8489) that an ICE-lite agent needs: binding requests, and the responses to them.

use std::net::{IpAddr, SocketAddr};

use crc::{CRC_32_ISO_HDLC, Crc};
use ring::hmac;

/// Identifies a request and its response.
pub(super) type TransactionId = [u8; 12];

const HEADER_BYTES: usize = 20;
const COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
const REQUEST: [u8; 2] = [0x00, 0x01];
const SUCCESS: [u8; 2] = [0x01, 0x01];
const USERNAME: u16 = 0x0006;
const INTEGRITY: u16 = 0x0008;
const MAPPED_ADDRESS: u16 = 0x0020;
const PRIORITY: u16 = 0x0024;
const FINGERPRINT: u16 = 0x8028;
const ICE_CONTROLLED: u16 = 0x8029;
const INTEGRITY_BYTES: usize = 20;
/// An attribute's type and length.
const ATTRIBUTE_BYTES: usize = 4;
/// What the fingerprint's checksum is combined with.
const FINGERPRINT_XOR: u32 = 0x5354_554e;
const CHECKSUM: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);
/// The priority of a peer-reflexive candidate (RFC 8445, section 5.1.2.1).
const PEER_REFLEXIVE: u32 = (110 << 24) | (65_535 << 8) | 255;

/// The name and the password of an end (`ice-ufrag`, `ice-pwd`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) ufrag: String,
    pub(super) pwd: String,
}

/// A message that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    /// A binding request.
    Request(Request<'a>),
    /// A success response.
    Success(TransactionId),
}

/// A binding request. Nothing is known of its sender until [`Request::is_from`] is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request<'a> {
    id: TransactionId,
    /// `receiver:sender`, as the two ends' names are put together.
    username: &'a str,
    whole: &'a [u8],
    /// Where the attribute with the integrity begins.
    integrity_at: usize,
}

impl<'a> Message<'a> {
    /// Reads a message; `None` if it is not one of these.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (head, body) = bytes.split_at_checked(HEADER_BYTES)?;
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        (head[4..8] == COOKIE && length == body.len() && length.is_multiple_of(4)).then_some(())?;
        let id = head[8..].try_into().ok()?;
        match [head[0], head[1]] {
            SUCCESS => Some(Self::Success(id)),
            REQUEST => {
                let (mut username, mut at) = (None, HEADER_BYTES);
                while let Some(attribute) = bytes.get(at..at + ATTRIBUTE_BYTES) {
                    let kind = u16::from_be_bytes([attribute[0], attribute[1]]);
                    let length = usize::from(u16::from_be_bytes([attribute[2], attribute[3]]));
                    let value = bytes.get(at + ATTRIBUTE_BYTES..at + ATTRIBUTE_BYTES + length)?;
                    match kind {
                        USERNAME => username = Some(std::str::from_utf8(value).ok()?),
                        INTEGRITY if length == INTEGRITY_BYTES => {
                            let username = username?;
                            return Some(Self::Request(Request { id, username, whole: bytes, integrity_at: at }));
                        }
                        _ => {}
                    }
                    at += ATTRIBUTE_BYTES + length.next_multiple_of(4);
                }
                None
            }
            _ => None,
        }
    }
}

impl Request<'_> {
    /// The name of the end that the request is for.
    pub(super) fn receiver(&self) -> &str {
        self.username.split_once(':').map_or("", |(receiver, _)| receiver)
    }

    /// Whether the sender knows the password of the end that the request is for, and has this name.
    pub(super) fn is_from(&self, sender: &str, pwd: &str) -> bool {
        let name = self.username.split_once(':').map(|(_, sender)| sender);
        // The length in the header is as if the message ended with the integrity.
        let mut head = [0; HEADER_BYTES];
        head.copy_from_slice(&self.whole[..HEADER_BYTES]);
        let covered = self.integrity_at + ATTRIBUTE_BYTES + INTEGRITY_BYTES - HEADER_BYTES;
        head[2..4].copy_from_slice(&(covered as u16).to_be_bytes());
        let value = self.integrity_at + ATTRIBUTE_BYTES;
        let signed = [&head, &self.whole[HEADER_BYTES..self.integrity_at]].concat();
        name == Some(sender) && hmac::verify(&key(pwd), &signed, &self.whole[value..value + INTEGRITY_BYTES]).is_ok()
    }

    /// The response, which says from which address the request came; `None` if it would be longer than the request.
    pub(super) fn response(&self, from: SocketAddr, pwd: &str) -> Option<Vec<u8>> {
        let mut message = begun(SUCCESS, self.id);
        let mut value = vec![0, if from.is_ipv4() { 1 } else { 2 }];
        value.extend((from.port() ^ u16::from_be_bytes([COOKIE[0], COOKIE[1]])).to_be_bytes());
        let mask = [&COOKIE[..], &self.id].concat();
        let octets = match from.ip() {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        };
        value.extend(octets.iter().zip(mask).map(|(octet, mask)| octet ^ mask));
        append(&mut message, MAPPED_ADDRESS, &value);
        finish(&mut message, pwd);
        (message.len() <= self.whole.len()).then_some(message)
    }
}

/// A binding request from the controlled end `sender` to `receiver`.
pub(super) fn request(id: TransactionId, sender: &Credentials, receiver: &Credentials) -> Vec<u8> {
    let mut message = begun(REQUEST, id);
    append(&mut message, USERNAME, format!("{}:{}", receiver.ufrag, sender.ufrag).as_bytes());
    append(&mut message, PRIORITY, &PEER_REFLEXIVE.to_be_bytes());
    append(&mut message, ICE_CONTROLLED, &[0; 8]);
    finish(&mut message, &receiver.pwd);
    message
}

/// The transaction of a request whose beginning an ICMP error quotes.
pub(super) fn quoted(bytes: &[u8]) -> Option<TransactionId> {
    let head = bytes.get(..HEADER_BYTES)?;
    (head[..2] == REQUEST && head[4..8] == COOKIE).then(|| head[8..].try_into().expect("twelve bytes"))
}

fn begun(kind: [u8; 2], id: TransactionId) -> Vec<u8> {
    [&kind[..], &[0; 2], &COOKIE, &id].concat()
}

fn append(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend(kind.to_be_bytes());
    message.extend((value.len() as u16).to_be_bytes());
    message.extend(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

/// Adds the integrity and the fingerprint.
fn finish(message: &mut Vec<u8>, pwd: &str) {
    set_length(message, ATTRIBUTE_BYTES + INTEGRITY_BYTES);
    let tag = hmac::sign(&key(pwd), message);
    append(message, INTEGRITY, tag.as_ref());
    set_length(message, ATTRIBUTE_BYTES + 4);
    let checksum = CHECKSUM.checksum(message) ^ FINGERPRINT_XOR;
    append(message, FINGERPRINT, &checksum.to_be_bytes());
}

/// The length in the header, with `more` bytes that follow.
fn set_length(message: &mut [u8], more: usize) {
    let length = (message.len() - HEADER_BYTES + more) as u16;
    message[2..4].copy_from_slice(&length.to_be_bytes());
}

fn key(pwd: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, pwd.as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PWD: &str = "VOkJxbRl1RmTxUk/WvJxBt";

    /// The sample request of RFC 5769, section 2.1.
    fn sample() -> Vec<u8> {
        let hex = "000100582112a442b7e7a701bc34d686fa87dfae802200105354554e207465737420636c69656e74\
                   002400046e0001ff80290008932ff9b151263b36000600096576746a3a68367659202020\
                   000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a280280004e57a3bcf";
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    #[test]
    fn the_sample_of_the_standard_is_read_and_its_integrity_checked() {
        let bytes = sample();
        let Some(Message::Request(request)) = Message::parse(&bytes) else { panic!("no request") };
        assert_eq!(request.receiver(), "evtj");
        assert!(request.is_from("h6vY", PWD));
        assert!(!request.is_from("h6vY", "another"));
        assert!(!request.is_from("h6vX", PWD));
        let mut changed = bytes.clone();
        changed[30] ^= 1;
        let Some(Message::Request(request)) = Message::parse(&changed) else { panic!("no request") };
        assert!(!request.is_from("h6vY", PWD));
    }

    #[test]
    fn the_fingerprint_is_that_of_the_sample() {
        let bytes = sample();
        let mut message = bytes[..bytes.len() - 8].to_vec();
        set_length(&mut message, 8);
        let checksum = CHECKSUM.checksum(&message) ^ FINGERPRINT_XOR;
        assert_eq!(checksum.to_be_bytes(), bytes[bytes.len() - 4..]);
    }

    #[test]
    fn a_request_of_ours_is_read_and_answered_with_the_address_of_its_sender() {
        let end = |name: &str| Credentials { ufrag: name.to_owned(), pwd: format!("{name} password") };
        let (server, browser) = (end("server"), end("browser"));
        let bytes = request([7; 12], &server, &browser);
        assert_eq!(quoted(&bytes[..HEADER_BYTES]), Some([7; 12]));
        assert_eq!(quoted(&bytes[..HEADER_BYTES - 1]), None);
        let Some(Message::Request(parsed)) = Message::parse(&bytes) else { panic!("no request") };
        assert!(parsed.receiver() == "browser" && parsed.is_from("server", &browser.pwd));
        let response = parsed.response("192.0.2.1:32853".parse().unwrap(), &browser.pwd).unwrap();
        assert_eq!(Message::parse(&response), Some(Message::Success([7; 12])));
        // RFC 5769, section 2.2.
        assert_eq!(response[HEADER_BYTES..HEADER_BYTES + 12], *b"\x00\x20\x00\x08\x00\x01\xa1\x47\xe1\x12\xa6\x43");
    }

    #[test]
    fn no_response_is_longer_than_its_request() {
        let bytes = sample();
        let Some(Message::Request(request)) = Message::parse(&bytes) else { panic!("no request") };
        let short = Request { whole: &bytes[..70], ..request };
        assert!(request.response("[2001:db8::1]:9".parse().unwrap(), PWD).is_some());
        assert!(short.response("[2001:db8::1]:9".parse().unwrap(), PWD).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), is_framed: bool) {
            if is_framed && bytes.len() >= HEADER_BYTES {
                bytes.truncate(bytes.len() / 4 * 4);
                let length = (bytes.len() - HEADER_BYTES) as u16;
                bytes[..2].copy_from_slice(&REQUEST);
                bytes[2..4].copy_from_slice(&length.to_be_bytes());
                bytes[4..8].copy_from_slice(&COOKIE);
            }
            quoted(&bytes);
            if let Some(Message::Request(request)) = Message::parse(&bytes) {
                prop_assert!(!request.is_from("browser", "a password"));
                request.response("192.0.2.1:1".parse().unwrap(), "a password");
            }
        }
    }
}
