//! ICMP echo messages (RFC 792).

/// Type of an echo request.
pub(super) const REQUEST: u8 = 8;
/// Type of an answer to one.
pub(super) const REPLY: u8 = 0;
const HEADER_BYTES: usize = 8;
/// A payload of at least this length contains the whole number of the probe; the header contains 16 bits of it.
const NUMBER_BYTES: usize = 8;

/// What identifies an echo message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Echo {
    pub(super) identifier: u16,
    /// As in the header.
    pub(super) sequence: u16,
    /// As in the payload, if that is long enough.
    pub(super) number: Option<u64>,
}

/// A request with a payload of that many bytes.
pub(super) fn request(identifier: u16, number: u64, payload_bytes: usize) -> Vec<u8> {
    let mut message = vec![0; HEADER_BYTES + payload_bytes];
    message[0] = REQUEST;
    message[4..6].copy_from_slice(&identifier.to_be_bytes());
    message[6..8].copy_from_slice(&(number as u16).to_be_bytes());
    if payload_bytes >= NUMBER_BYTES {
        message[HEADER_BYTES..HEADER_BYTES + NUMBER_BYTES].copy_from_slice(&number.to_be_bytes());
    }
    let checksum = checksum(&message);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    message
}

/// Parses an echo message of one type from an IPv4 packet, as a raw socket receives it; `None` if the packet is no such
/// message.
pub(super) fn parse(packet: &[u8], kind: u8) -> Option<Echo> {
    let header_bytes = usize::from(packet.first()? & 0x0f) * 4;
    let message = packet.get(header_bytes.max(20)..)?;
    (*message.first()? == kind && *message.get(1)? == 0).then_some(())?;
    let word = |at: usize| Some(u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?));
    let payload = message.get(HEADER_BYTES..)?;
    let number = payload.get(..NUMBER_BYTES).and_then(|bytes| bytes.try_into().ok()).map(u64::from_be_bytes);
    Some(Echo { identifier: word(4)?, sequence: word(6)?, number })
}

impl Echo {
    /// The number of the probe, given the number of the latest probe sent; `None` if no such probe can have been sent.
    pub(super) fn number(&self, latest: u64) -> Option<u64> {
        match self.number {
            Some(number) => (number as u16 == self.sequence && number <= latest).then_some(number),
            None => latest.checked_sub(u64::from((latest as u16).wrapping_sub(self.sequence))),
        }
    }
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    let mut sum: u32 = bytes.chunks(2).map(word).fold(0, |sum, word| {
        let sum = sum + word;
        (sum & 0xffff) + (sum >> 16)
    });
    sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn in_ip(message: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 20];
        packet[0] = 0x45;
        packet.extend(message);
        packet
    }

    /// The example of RFC 1071, section 3.
    #[test]
    fn the_checksum_is_that_of_the_rfc() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn a_whole_request_sums_to_zero() {
        assert_eq!(checksum(&request(3, 70_000, 57)), 0);
    }

    #[test]
    fn a_long_payload_carries_the_whole_number() {
        let echo = parse(&in_ip(&request(3, 70_000, 56)), REQUEST).unwrap();
        assert_eq!((echo.identifier, echo.number(70_001)), (3, Some(70_000)));
        assert_eq!(echo.number(69_999), None, "not sent yet");
    }

    #[test]
    fn a_short_payload_leaves_the_nearest_number_that_was_sent() {
        let echo = parse(&in_ip(&request(3, 65_535, 0)), REQUEST).unwrap();
        assert_eq!(echo.number(65_537), Some(65_535));
        assert_eq!(echo.number(3), None, "not sent yet");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..100), latest: u64) {
            for kind in [REQUEST, REPLY] {
                if let Some(number) = parse(&bytes, kind).and_then(|echo| echo.number(latest)) {
                    prop_assert!(number <= latest);
                }
            }
        }
    }
}
