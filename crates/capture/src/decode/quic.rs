//! The unencrypted parts of a QUIC packet: its version and connection IDs (RFC 8999), and the spin bit.

/// The longest connection ID of versions 1 and 2 (RFC 9000, section 17.2).
const MOST_ID_BYTES: usize = 20;

/// A connection ID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionId {
    bytes: [u8; MOST_ID_BYTES],
    length: u8,
}

impl ConnectionId {
    fn new(id: &[u8]) -> Self {
        let mut bytes = [0; MOST_ID_BYTES];
        bytes[..id.len()].copy_from_slice(id);
        Self { bytes, length: id.len() as u8 }
    }

    /// Its bytes, in hexadecimal.
    pub fn hex(&self) -> String {
        self.bytes[..usize::from(self.length)].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// The header of a packet, the first of its datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quic {
    /// A long header, which packets of the handshake have.
    Long {
        /// Its version; 0: a negotiation of it.
        version: u32,
        /// Whether it is an Initial packet, by version 1 or 2.
        is_initial: bool,
        /// The ID that its receiver chose.
        to: ConnectionId,
        /// The ID that its sender chose.
        from: ConnectionId,
    },
    /// A short header, which packets with data have. It has no length of the connection ID, which is therefore not
    /// read.
    Short {
        /// The spin bit (RFC 9000, section 17.4), if it is one.
        spin: bool,
    },
}

/// The QUIC header at the start of a datagram's payload, if there is one.
#[inline]
pub(super) fn header(payload: &[u8]) -> Option<Quic> {
    let first = *payload.first()?;
    if first & 0x80 == 0 {
        return (first & 0x40 != 0).then_some(Quic::Short { spin: first & 0x20 != 0 });
    }
    let version = payload.get(1..5)?.first_chunk::<4>()?;
    if !is_version(*version) {
        return None;
    }
    let (to, rest) = connection_id(&payload[5..])?;
    let (from, _) = connection_id(rest)?;
    let version = u32::from_be_bytes(*version);
    // Version 2 (RFC 9369) numbers the types differently.
    let initial = if version == VERSION_2 { 1 } else { 0 };
    Some(Quic::Long { version, is_initial: version != 0 && first >> 4 & 3 == initial, to, from })
}

const VERSION_2: u32 = 0x6b33_43cf;

/// Versions 1 and 2, drafts, version negotiation (also forced by a reserved version), and Google's versions.
fn is_version(version: [u8; 4]) -> bool {
    matches!(version, [0, 0, 0, 0 | 1] | [0x6b, 0x33, 0x43, 0xcf] | [0xff, 0, 0, _] | [b'Q' | b'T', b'0', _, _])
        || version.iter().all(|byte| byte & 0x0f == 0x0a)
}

fn connection_id(rest: &[u8]) -> Option<(ConnectionId, &[u8])> {
    let (&length, rest) = rest.split_first()?;
    if usize::from(length) > MOST_ID_BYTES {
        return None;
    }
    let (id, rest) = rest.split_at_checked(usize::from(length))?;
    Some((ConnectionId::new(id), rest))
}
