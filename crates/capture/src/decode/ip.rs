//! IPv4 and IPv6.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::cursor::{Cursor, u16_at};
use super::transport::{self, Transport};
use super::{Decoded, Layers, Next, Undecoded};

pub(super) const HOP_BY_HOP: u8 = 0;
pub(super) const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;
const HIP: u8 = 139;
const SHIM6: u8 = 140;

/// Maximum number of extension headers of a packet.
const MOST_EXTENSIONS: usize = 16;

#[inline]
pub(super) fn ip(cursor: &mut Cursor<'_>, layers: &mut Layers) -> Result<Next, Undecoded> {
    match cursor.rest().first().ok_or(Undecoded::Cut)? >> 4 {
        4 => ipv4(cursor, layers),
        6 => ipv6(cursor, layers),
        _ => Err(Undecoded::Malformed),
    }
}

#[inline]
fn ipv4(cursor: &mut Cursor<'_>, layers: &mut Layers) -> Result<Next, Undecoded> {
    let wire_bytes = cursor.wire_bytes();
    let header = cursor.take::<20>()?;
    let header_bytes = usize::from(header[0] & 0x0f) * 4;
    let ip_bytes = match u32::from(u16_at(header, 2)) {
        // An offloaded packet of Linux that is longer than the field can express. The network card will segment it.
        0 => wire_bytes,
        length => length,
    };
    if header_bytes < 20 || (ip_bytes as usize) < header_bytes {
        return Err(Undecoded::Malformed);
    }
    let fragment = u16_at(header, 6);
    if fragment & 0x1fff != 0 {
        return Err(Undecoded::Fragment);
    }
    cursor.end_after(ip_bytes - 20);
    cursor.pass(header_bytes - 20);
    let packet = Decoded {
        layers: *layers,
        from: IpAddr::V4(Ipv4Addr::new(header[12], header[13], header[14], header[15])),
        to: IpAddr::V4(Ipv4Addr::new(header[16], header[17], header[18], header[19])),
        ecn: header[1] & 3,
        ttl: header[8],
        ip_id: Some(u16_at(header, 4)),
        ip_bytes,
        transport: Transport::Other,
        digest: 0,
    };
    transport::transport(header[9], packet, fragment & 0x2000 != 0, cursor, layers)
}

#[inline]
fn ipv6(cursor: &mut Cursor<'_>, layers: &mut Layers) -> Result<Next, Undecoded> {
    let wire_bytes = cursor.wire_bytes();
    let header = cursor.take::<40>()?;
    let ip_bytes = match u32::from(u16_at(header, 4)) {
        0 => wire_bytes.max(40),
        length => length + 40,
    };
    cursor.end_after(ip_bytes - 40);
    let packet = Decoded {
        layers: *layers,
        from: IpAddr::V6(address(header, 8)),
        to: IpAddr::V6(address(header, 24)),
        ecn: (header[1] >> 4) & 3,
        ttl: header[7],
        ip_id: None,
        ip_bytes,
        transport: Transport::Other,
        digest: 0,
    };
    let mut is_first_fragment = false;
    let mut protocol = header[6];
    for _ in 0..MOST_EXTENSIONS {
        protocol = match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY | HIP | SHIM6 => {
                let extension = cursor.take::<8>()?;
                cursor.pass(usize::from(extension[1]) * 8);
                extension[0]
            }
            FRAGMENT => {
                let extension = cursor.take::<8>()?;
                let fragment = u16_at(extension, 2);
                if fragment & 0xfff8 != 0 {
                    return Err(Undecoded::Fragment);
                }
                is_first_fragment |= fragment & 1 != 0;
                extension[0]
            }
            AUTHENTICATION => {
                let extension = cursor.take::<8>()?;
                cursor.pass(usize::from(extension[1]) * 4);
                extension[0]
            }
            other => return transport::transport(other, packet, is_first_fragment, cursor, layers),
        };
    }
    Err(Undecoded::Nested)
}

fn address(header: &[u8; 40], at: usize) -> Ipv6Addr {
    let bytes = header[at..].first_chunk::<16>().expect("both addresses are inside of the header");
    Ipv6Addr::from(*bytes)
}
