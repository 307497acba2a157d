//! Link-layer headers.

use super::cursor::{Cursor, u16_at, u32_at};
use super::{Layers, Next, Undecoded, wifi};

pub(super) const LINUX_COOKED: u16 = 113;
pub(super) const LINUX_COOKED_2: u16 = 276;
/// Apple's own number, and the one that Darwin's `tcpdump` writes before it is translated (`DLT_USER2`).
pub(super) const PKTAP: [u16; 2] = [258, 149];

/// The link types that are decoded, with their names in the registry.
const NAMES: [(u16, &str); 37] = [
    (0, "NULL"),
    (1, "ETHERNET"),
    (9, "PPP"),
    (10, "FDDI"),
    (12, "RAW"),
    (14, "RAW"),
    (50, "PPP_HDLC"),
    (51, "PPP_ETHER"),
    (100, "ATM_RFC1483"),
    (101, "RAW"),
    (104, "C_HDLC"),
    (105, "IEEE802_11"),
    (106, "ATM_CLIP"),
    (108, "LOOP"),
    (109, "ENC"),
    (LINUX_COOKED, "LINUX_SLL"),
    (117, "PFLOG"),
    (119, "IEEE802_11_PRISM"),
    (127, "IEEE802_11_RADIOTAP"),
    (143, "DOCSIS"),
    (PKTAP[1], "PKTAP"),
    (163, "IEEE802_11_AVS"),
    (166, "PPP_PPPD"),
    (192, "PPI"),
    (204, "PPP_WITH_DIR"),
    (228, "IPV4"),
    (229, "IPV6"),
    (239, "NFLOG"),
    (240, "NETANALYZER"),
    (242, "IPOIB"),
    (PKTAP[0], "PKTAP"),
    (274, "ETHERNET_MPACKET"),
    (LINUX_COOKED_2, "LINUX_SLL2"),
    (281, "DSA_TAG_BRCM"),
    (282, "DSA_TAG_BRCM_PREPEND"),
    (284, "DSA_TAG_DSA"),
    (285, "DSA_TAG_EDSA"),
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
            // The number of an address family. It differs between systems, and its byte order between link types, so
            // the version field of IP is used instead.
            cursor.take::<4>()?;
            Ok(Next::Ip)
        }
        9 | 50 => Ok(Next::PppFrame),
        LINUX_COOKED => {
            let header = cursor.take::<16>()?;
            Ok(linux_protocol(u16_at(header, 14)))
        }
        LINUX_COOKED_2 => {
            let header = cursor.take::<20>()?;
            Ok(linux_protocol(u16_at(header, 0)))
        }
        _ => rare(link_type, cursor),
    }
}

/// The protocol of a cooked header. Frames of 802.3 have no Ethernet type there (`ETH_P_802_3`, `ETH_P_802_2`).
fn linux_protocol(protocol: u16) -> Next {
    match protocol {
        0x0004 => Next::Llc,
        other => Next::EtherType(other),
    }
}

#[cold]
fn rare(link_type: u16, cursor: &mut Cursor<'_>) -> Result<Next, Undecoded> {
    match link_type {
        // The kind of the frame and two addresses.
        10 => behind(cursor, 13, Next::Llc),
        51 => Ok(Next::EtherType(PPPOE_SESSION)),
        100 | 106 => Ok(Next::Llc),
        104 => Ok(Next::EtherType(u16_at(cursor.take::<4>()?, 2))),
        105 => wifi::frame(cursor, 0),
        109 => behind(cursor, 12, Next::Ip),
        117 => {
            let header_bytes = usize::from(*cursor.rest().first().ok_or(Undecoded::Cut)?);
            behind(cursor, header_bytes.next_multiple_of(4), Next::Ip)
        }
        119 => wifi::prism(cursor),
        127 => wifi::radiotap(cursor),
        143 => docsis(cursor),
        163 => {
            let length = u32_at(cursor.rest().first_chunk::<8>().ok_or(Undecoded::Cut)?, 4);
            cursor.pass(length as usize);
            wifi::frame(cursor, 0)
        }
        // The direction of the packet, instead of PPP's address or before the frame.
        166 => behind(cursor, 2, Next::PppFrame),
        204 => behind(cursor, 1, Next::PppFrame),
        192 => per_packet_information(cursor),
        239 => netfilter_log(cursor),
        240 => behind(cursor, 4, Next::Ethernet),
        242 => Ok(Next::EtherType(u16_at(cursor.take::<44>()?, 40))),
        274 => behind(cursor, 8, Next::Ethernet),
        // What a router's processor exchanges with its switch: frames with a tag of four bytes between the addresses and
        // the type, or before the frame. The tag of EDSA has an Ethernet type of its own, and two bytes more.
        281 | 284 => Ok(Next::EtherType(u16_at(cursor.take::<18>()?, 16))),
        282 => behind(cursor, 4, Next::Ethernet),
        285 => Ok(Next::EtherType(u16_at(cursor.take::<22>()?, 20))),
        number if PKTAP.contains(&number) => packet_tap(cursor),
        _ => Err(Undecoded::LinkType),
    }
}

fn behind(cursor: &mut Cursor<'_>, bytes: usize, next: Next) -> Result<Next, Undecoded> {
    cursor.pass(bytes);
    Ok(next)
}

/// The first layer of a packet that is prefixed with the number of another link type.
fn other(number: u32, cursor: &mut Cursor<'_>) -> Result<Next, Undecoded> {
    match u16::try_from(number).map_err(|_| Undecoded::LinkType)? {
        // These are never nested.
        number if number == 192 || PKTAP.contains(&number) => Err(Undecoded::Nested),
        number => first(number, cursor),
    }
}

/// The header of Darwin's `pktap` interfaces (XNU, bsd/net/pktap.h): its length, then what follows, as a link type.
fn packet_tap(cursor: &mut Cursor<'_>) -> Result<Next, Undecoded> {
    let header = cursor.rest().first_chunk::<12>().ok_or(Undecoded::Cut)?;
    let number = |at| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let (length, link_type) = (number(0), number(8));
    if !(36..=4096).contains(&length) {
        return Err(Undecoded::Malformed);
    }
    cursor.pass(length as usize);
    other(link_type, cursor)
}

fn per_packet_information(cursor: &mut Cursor<'_>) -> Result<Next, Undecoded> {
    let header = cursor.rest().first_chunk::<8>().ok_or(Undecoded::Cut)?;
    let length = u16::from_le_bytes([header[2], header[3]]);
    let link_type = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
    if length < 8 {
        return Err(Undecoded::Malformed);
    }
    cursor.pass(usize::from(length));
    other(link_type, cursor)
}

/// The payload of a packet that netfilter logged: one of several values, each with its length and type in the byte
/// order of the host.
fn netfilter_log(cursor: &mut Cursor<'_>) -> Result<Next, Undecoded> {
    const PAYLOAD: u16 = 9;
    cursor.take::<4>()?;
    loop {
        let header = cursor.rest().first_chunk::<4>().ok_or(Undecoded::Cut)?;
        let is_big = header[2] == 0;
        let number = |bytes: [u8; 2]| if is_big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) };
        let (length, kind) = (number([header[0], header[1]]), number([header[2], header[3]]));
        if kind == PAYLOAD || kind.swap_bytes() == PAYLOAD {
            return behind(cursor, 4, Next::Ip);
        }
        if length < 4 {
            return Err(Undecoded::Malformed);
        }
        cursor.pass(usize::from(length).next_multiple_of(4));
    }
}

/// A MAC frame of DOCSIS that carries a packet: its header, maybe longer, and a check sequence (MULPI, section 6).
fn docsis(cursor: &mut Cursor<'_>) -> Result<Next, Undecoded> {
    let header = cursor.take::<6>()?;
    if header[0] >> 6 != 0 {
        return Err(Undecoded::NotIp);
    }
    cursor.pass(usize::from(header[0] & 1) * usize::from(header[1]));
    Ok(Next::Ethernet)
}

/// Types below this are lengths of 802.3.
const LEAST_ETHER_TYPE: u16 = 0x0600;
const PPPOE_SESSION: u16 = 0x8864;

#[inline]
pub(super) fn ethernet(cursor: &mut Cursor<'_>) -> Result<Next, Undecoded> {
    let header = cursor.take::<14>()?;
    Ok(Next::EtherType(u16_at(header, 12)))
}

/// The protocol after an LLC header (IEEE 802.2), or after a SNAP header.
pub(super) fn llc(cursor: &mut Cursor<'_>) -> Result<Next, Undecoded> {
    let header = cursor.take::<3>()?;
    match header {
        [0xaa, 0xaa, 0x03] => {
            let snap = cursor.take::<5>()?;
            match snap[..3] {
                // An EtherType (RFC 1042), or an EtherType in a bridge tunnel encapsulation.
                [0, 0, 0] | [0, 0, 0xf8] => Ok(Next::EtherType(u16_at(snap, 3))),
                // A bridged frame of Ethernet, with or without its check sequence (RFC 2684).
                [0, 0x80, 0xc2] if matches!(u16_at(snap, 3), 1 | 7) => behind(cursor, 2, Next::Ethernet),
                _ => Err(Undecoded::NotIp),
            }
        }
        [0x06, 0x06, 0x03] => Ok(Next::Ip),
        _ => Err(Undecoded::NotIp),
    }
}

#[inline]
pub(super) fn ether_type(kind: u16, cursor: &mut Cursor<'_>, layers: &mut Layers) -> Result<Next, Undecoded> {
    match kind {
        0x0800 | 0x86dd => Ok(Next::Ip),
        // 802.1Q, 802.1ad, and the types used before 802.1ad.
        0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
            layers.add(Layers::VLAN);
            let tag = cursor.take::<4>()?;
            Ok(Next::EtherType(u16_at(tag, 2)))
        }
        0x8847 | 0x8848 => {
            layers.add(Layers::MPLS);
            Ok(Next::Mpls)
        }
        PPPOE_SESSION => {
            layers.add(Layers::PPPOE);
            cursor.take::<6>()?;
            Ok(Next::PppFrame)
        }
        0x880b => Ok(Next::PppFrame),
        _ => rare_ether_type(kind, cursor, layers),
    }
}

#[cold]
fn rare_ether_type(kind: u16, cursor: &mut Cursor<'_>, layers: &mut Layers) -> Result<Next, Undecoded> {
    match kind {
        ..LEAST_ETHER_TYPE => {
            // Everything after the length is padding.
            cursor.end_after(u32::from(kind).min(cursor.wire_bytes()));
            Ok(Next::Llc)
        }
        0x8870 => Ok(Next::Llc),
        // Cisco's MetaData, and the tag of 802.1BR or VN-Link.
        0x8909 => Ok(Next::EtherType(u16_at(cursor.take::<8>()?, 6))),
        0x8926 => Ok(Next::EtherType(u16_at(cursor.take::<6>()?, 4))),
        // Provider backbone bridging: a frame in a frame.
        0x88e7 => {
            layers.add(Layers::VLAN);
            behind(cursor, 4, Next::Ethernet)
        }
        0x894f => super::tunnel::service_header(cursor),
        0x88e5 => Err(Undecoded::Encrypted),
        _ => Err(Undecoded::NotIp),
    }
}

/// The protocol of a PPP frame. The address and control bytes are optional, and the protocol may be compressed to one
/// byte.
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
        // Cisco's HDLC has EtherTypes here.
        0x0800 | 0x86dd => Ok(Next::Ip),
        // RFC 1968 and MPPE (RFC 3078).
        0x0053 | 0x0055 | 0x00fd => Err(Undecoded::Encrypted),
        _ => Err(Undecoded::NotIp),
    }
}
