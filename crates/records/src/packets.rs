//! Captured packets on their way from an engine to a file: the payload of a frame of the kind
//! [`Packets`](crate::frame::FrameKind::Packets).
//!
//! A payload is any number of packets, one after the other. Each has a header of 20 bytes, whose numbers are
//! little-endian: the time in nanoseconds since the run's start (`u64`), the interface (`u32`), its length (`u32`) and
//! how many bytes of it follow (`u32`).

const HEADER_BYTES: usize = 20;

/// A captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenPacket<'a> {
    /// When, in nanoseconds since the run's start.
    pub t_ns: u64,
    /// The number of the interface, on which both sides agree.
    pub interface: u32,
    /// Its length in bytes.
    pub length: u32,
    /// The beginning of it, from its Ethernet header on.
    pub data: &'a [u8],
}

/// A payload that ends within a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("packets that end within one")]
pub struct CutOff;

/// Appends a packet to a payload.
pub fn push(payload: &mut Vec<u8>, packet: &SeenPacket<'_>) {
    payload.extend_from_slice(&packet.t_ns.to_le_bytes());
    for number in [packet.interface, packet.length, packet.data.len() as u32] {
        payload.extend_from_slice(&number.to_le_bytes());
    }
    payload.extend_from_slice(packet.data);
}

/// The packets of a payload. After an error, there are no more.
pub fn read(mut payload: &[u8]) -> impl Iterator<Item = Result<SeenPacket<'_>, CutOff>> {
    std::iter::from_fn(move || {
        if payload.is_empty() {
            return None;
        }
        let packet = take(&mut payload).ok_or(CutOff);
        if packet.is_err() {
            payload = &[];
        }
        Some(packet)
    })
}

fn take<'a>(payload: &mut &'a [u8]) -> Option<SeenPacket<'a>> {
    let (header, rest) = payload.split_first_chunk::<HEADER_BYTES>()?;
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let (data, rest) = rest.split_at_checked(word(16) as usize)?;
    *payload = rest;
    let t_ns = u64::from(word(4)) << 32 | u64::from(word(0));
    Some(SeenPacket { t_ns, interface: word(8), length: word(12), data })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn packets_come_back_as_they_went() {
        let packets = [
            SeenPacket { t_ns: (7 << 32) + 5, interface: 3, length: 1514, data: &[1, 2, 3] },
            SeenPacket { t_ns: u64::MAX, interface: u32::MAX, length: 0, data: &[] },
        ];
        let mut payload = Vec::new();
        for packet in &packets {
            push(&mut payload, packet);
        }
        assert_eq!(read(&payload).collect::<Result<Vec<_>, _>>().unwrap(), packets);
        let first: Vec<_> = read(&payload[..payload.len() - 1]).collect();
        assert_eq!(first, [Ok(packets[0]), Err(CutOff)]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(read(&bytes).count() <= bytes.len() / HEADER_BYTES + 1);
        }
    }
}
