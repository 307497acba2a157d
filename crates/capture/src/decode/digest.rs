//! A digest by which copies of a packet are recognised.

use std::net::IpAddr;

use super::Decoded;

/// Number of bytes of the transport's header and payload in the digest. A TCP header has at most 60 bytes, including a
/// checksum of the payload.
const MOST_BYTES: usize = 64;

/// The digest covers everything that does not change between two hosts. It excludes the time to live, and the ECN
/// field, which routers mark.
#[inline]
pub(super) fn of(packet: &Decoded, protocol: u8, transport: &[u8]) -> u64 {
    let identity = u64::from(packet.ip_id.unwrap_or(0)) << 40 | u64::from(packet.ip_bytes) << 8 | u64::from(protocol);
    let mut digest = mixed(0x9e37_79b9_7f4a_7c15, identity);
    for address in [packet.from, packet.to] {
        digest = match address {
            IpAddr::V4(address) => mixed(digest, u64::from(address.to_bits())),
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                mixed(mixed(digest, bits as u64), (bits >> 64) as u64)
            }
        };
    }
    for piece in transport[..transport.len().min(MOST_BYTES)].chunks(8) {
        let mut bytes = [0; 8];
        bytes[..piece.len()].copy_from_slice(piece);
        digest = mixed(digest, u64::from_le_bytes(bytes));
    }
    digest
}

#[inline]
pub(crate) fn mixed(digest: u64, value: u64) -> u64 {
    let product = u128::from(digest ^ value.rotate_left(29)) * 0xa076_1d64_78bd_642f_u128;
    (product as u64) ^ (product >> 64) as u64 ^ value
}
