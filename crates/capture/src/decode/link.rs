//! Link layers: what a packet of an interface begins with.

use super::cursor::{Cursor, u16_at};
use super::{Layers, Next, Undecoded};

const LINUX_COOKED: u16 = 113;
const LINUX_COOKED_2: u16 = 276;

/// The link types that are decoded, with their names in the registry.
const NAMES: [(u16, &str); 12] = [
    (0, "NULL"),
    (1, "ETHERNET"),
    (9, "PPP"),
    (12, "RAW"),
    (14, "RAW"),
    (50, "PPP_HDLC"),
    (101, "RAW"),
    (108, "LOOP"),
    (LINUX_COOKED, "LINUX_SLL"),
    (228, "IPV4"),
    (229, "IPV6"),
    (LINUX_COOKED_2, "LINUX_SLL2"),
];

/// The name of a link type that can be decoded.
pub fn link_name(link_type: u16) -> Option<&'static str> {
    NAMES.iter().find(|(number, _)| *number == link_type).map(|(_, name)| *name)
}

#[inline]
pub(super) fn first(link_type: u16, cursor: &mut Cursor<'_>) -> Result<Next, Undecoded> {
    match link_type {
        1 => Ok(Next::Ethernet),
        12 | 14 | 101 | 228 | 229 => Ok(Next::Ip),
        0 | 108 => {
            // The number of an address family, which differs between systems, and its byte order between types. IP's
            // own version says more.
            cursor.take::<4>()?;
            Ok(Next::Ip)
        }
        9 | 50 => Ok(Next::PppFrame),
        LINUX_COOKED => {
            let header = cursor.take::<16>()?;
            Ok(Next::EtherType(u16_at(header, 14)))
        }
        LINUX_COOKED_2 => {
            let header = cursor.take::<20>()?;
            Ok(Next::EtherType(u16_at(header, 0)))
        }
        _ => Err(Undecoded::LinkType),
    }
}

#[inline]
pub(super) fn ethernet(cursor: &mut Cursor<'_>) -> Result<Next, Undecoded> {
    let header = cursor.take::<14>()?;
    Ok(Next::EtherType(u16_at(header, 12)))
}

#[inline]
pub(super) fn ether_type(kind: u16, cursor: &mut Cursor<'_>, layers: &mut Layers) -> Result<Next, Undecoded> {
    match kind {
        0x0800 | 0x86dd => Ok(Next::Ip),
        // 802.1Q, 802.1ad, and what came before 802.1ad.
        0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
            layers.add(Layers::VLAN);
            let tag = cursor.take::<4>()?;
            Ok(Next::EtherType(u16_at(tag, 2)))
        }
        0x8847 | 0x8848 => {
            layers.add(Layers::MPLS);
            Ok(Next::Mpls)
        }
        0x8864 => {
            layers.add(Layers::PPPOE);
            cursor.take::<6>()?;
            Ok(Next::PppFrame)
        }
        0x880b => Ok(Next::PppFrame),
        _ => Err(Undecoded::NotIp),
    }
}

/// The protocol of a PPP frame, behind an address and a control byte or not, and shortened to one byte or not.
pub(super) fn ppp_frame(cursor: &mut Cursor<'_>) -> Result<Next, Undecoded> {
    if let [0xff | 0x0f, 0x03 | 0x00, ..] = cursor.rest() {
        cursor.take::<2>()?;
    }
    let first = cursor.take::<1>()?[0];
    if first & 1 != 0 {
        return Ok(Next::Ppp(u16::from(first)));
    }
    let second = cursor.take::<1>()?[0];
    Ok(Next::Ppp(u16::from_be_bytes([first, second])))
}

pub(super) fn ppp(protocol: u16) -> Result<Next, Undecoded> {
    match protocol {
        0x0021 | 0x0057 => Ok(Next::Ip),
        0x0281 | 0x0283 => Ok(Next::Mpls),
        // Cisco's HDLC has Ethernet types there.
        0x0800 | 0x86dd => Ok(Next::Ip),
        _ => Err(Undecoded::NotIp),
    }
}
