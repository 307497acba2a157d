//! Tunnels whose inner packets are used.

use super::cursor::{Cursor, u16_at};
use super::{Layers, Next, Undecoded};

/// Decodes a tunnel header; returns `None` if it turns out to be something else.
pub(super) type Open = fn(&mut Cursor<'_>) -> Option<Next>;

/// The tunnel of a datagram between two ports. IANA's numbers, and 8472 (Linux' own for VXLAN) and 37008 (TZSP).
pub(super) fn of_ports(from: u16, to: u16) -> Option<(Layers, Open)> {
    let tunnel: (Layers, Open) = match to {
        4789 | 8472 => (Layers::VXLAN, vxlan),
        4790 => (Layers::VXLAN, vxlan),
        6081 => (Layers::GENEVE, geneve),
        2152 => (Layers::GTP_U, gtp_u),
        4754 => (Layers::GRE, |_| Some(Next::Gre)),
        6635 => (Layers::MPLS, |_| Some(Next::Mpls)),
        4341 => (Layers::LISP, lisp),
        6080 => (Layers::IP_IN_UDP, generic_udp),
        37008 => (Layers::TZSP, tzsp),
        1701 => (Layers::L2TP, l2tp),
        3544 => (Layers::TEREDO, teredo),
        _ => match from {
            1701 => (Layers::L2TP, l2tp),
            3544 => (Layers::TEREDO, teredo),
            _ => return None,
        },
    };
    Some(tunnel)
}

pub(super) fn mpls(cursor: &mut Cursor<'_>) -> Result<Next, Undecoded> {
    while cursor.take::<4>()?[2] & 1 == 0 {}
    match cursor.rest().first().ok_or(Undecoded::Cut)? >> 4 {
        4 | 6 => Ok(Next::Ip),
        // A pseudowire: a control word, then a frame of Ethernet.
        0 => {
            cursor.take::<4>()?;
            Ok(Next::Ethernet)
        }
        _ => Err(Undecoded::NotIp),
    }
}

pub(super) fn gre(cursor: &mut Cursor<'_>, layers: &mut Layers) -> Result<Next, Undecoded> {
    const SEQUENCE: u16 = 0x1000;
    let header = cursor.take::<4>()?;
    let (flags, protocol) = (u16_at(header, 0), u16_at(header, 2));
    // Checksum (and offset), key, sequence number, and in version 1 (PPTP) an acknowledgement: four bytes each.
    let present = [0x8000, 0x2000, SEQUENCE].into_iter().filter(|bit| flags & bit != 0).count();
    let acknowledgement = usize::from(flags & 7 == 1 && flags & 0x0080 != 0);
    if flags & 7 > 1 || flags & 0x4000 != 0 {
        return Err(Undecoded::Transport);
    }
    cursor.pass(4 * (present + acknowledgement));
    match protocol {
        // Bridged frames; the second number is MikroTik's EoIP.
        0x6558 | 0x6400 => {
            layers.add(Layers::ETHERNET_IN_GRE);
            Ok(Next::Ethernet)
        }
        0x88be | 0x22eb => {
            layers.add(Layers::ERSPAN);
            mirrored(protocol, flags & SEQUENCE != 0, cursor)
        }
        // WCCP, with a header of its own in version 2.
        0x883e => {
            layers.add(Layers::GRE);
            if cursor.rest().first().is_some_and(|first| first >> 4 != 4) {
                cursor.take::<4>()?;
            }
            Ok(Next::Ip)
        }
        other => {
            layers.add(Layers::GRE);
            Ok(Next::EtherType(other))
        }
    }
}

/// The frame in ERSPAN (draft-foschiano-erspan): type I has no header, type II 8 bytes, type III 12 or 20.
fn mirrored(protocol: u16, is_numbered: bool, cursor: &mut Cursor<'_>) -> Result<Next, Undecoded> {
    if protocol == 0x22eb {
        let has_more = cursor.take::<12>()?[11] & 1 != 0;
        cursor.pass(8 * usize::from(has_more));
    } else if is_numbered {
        cursor.take::<8>()?;
    }
    Ok(Next::Ethernet)
}

/// The packet after a network service header (RFC 8300).
pub(super) fn service_header(cursor: &mut Cursor<'_>) -> Result<Next, Undecoded> {
    let header = cursor.rest().first_chunk::<4>().ok_or(Undecoded::Cut)?;
    let (words, protocol) = (usize::from(header[1] & 0x3f), header[3]);
    cursor.pass(4 * words.max(1));
    next_protocol(protocol).ok_or(Undecoded::NotIp)
}

/// The numbers that the service header and VXLAN-GPE share.
fn next_protocol(protocol: u8) -> Option<Next> {
    match protocol {
        1 | 2 => Some(Next::Ip),
        3 => Some(Next::Ethernet),
        4 => Some(Next::EtherType(0x894f)),
        5 => Some(Next::Mpls),
        _ => None,
    }
}

/// The Ethernet frame in a VXLAN packet, or the payload of its extensions (group policy, other protocols).
fn vxlan(cursor: &mut Cursor<'_>) -> Option<Next> {
    const VALID: u8 = 0x08;
    const GROUP_POLICY: u8 = 0x80;
    const NEXT_PROTOCOL: u8 = 0x04;
    let header = cursor.take::<8>().ok()?;
    match header[0] {
        VALID => Some(Next::Ethernet),
        flags if flags & !GROUP_POLICY == VALID => Some(Next::Ethernet),
        flags if flags & 0xf0 == 0 && flags & (VALID | NEXT_PROTOCOL) == VALID | NEXT_PROTOCOL => {
            next_protocol(header[3])
        }
        _ => None,
    }
}

/// The packet after a Geneve header (RFC 8926) and its options.
fn geneve(cursor: &mut Cursor<'_>) -> Option<Next> {
    let header = cursor.take::<8>().ok()?;
    if header[0] >> 6 != 0 {
        return None;
    }
    cursor.pass(4 * usize::from(header[0] & 0x3f));
    match u16_at(header, 2) {
        0x6558 => Some(Next::Ethernet),
        other => Some(Next::EtherType(other)),
    }
}

/// The IP packet in a G-PDU of GTP-U.
fn gtp_u(cursor: &mut Cursor<'_>) -> Option<Next> {
    let header = cursor.take::<8>().ok()?;
    let flags = header[0];
    // Version 1, protocol type GTP; message type 255 carries a user's packet.
    if flags & 0xf0 != 0x30 || header[1] != 255 {
        return None;
    }
    if flags & 7 != 0 {
        let mut extension = cursor.take::<4>().ok()?[3];
        while flags & 4 != 0 && extension != 0 {
            let units = usize::from(*cursor.rest().first()?);
            let last = (4 * units).checked_sub(1)?;
            extension = *cursor.rest().get(last)?;
            cursor.pass(4 * units);
        }
    }
    version_of_ip(cursor)
}

/// The PPP frame in a data message of L2TP's version 2 (RFC 2661, section 3.1).
fn l2tp(cursor: &mut Cursor<'_>) -> Option<Next> {
    const CONTROL: u16 = 0x8000;
    const LENGTH: u16 = 0x4000;
    const NUMBERS: u16 = 0x0800;
    const OFFSET: u16 = 0x0200;
    let flags = u16_at(cursor.take::<2>().ok()?, 0);
    if flags & 0x000f != 2 || flags & CONTROL != 0 {
        return None;
    }
    cursor.pass(2 * usize::from(flags & LENGTH != 0) + 4 + 4 * usize::from(flags & NUMBERS != 0));
    if flags & OFFSET != 0 {
        let padding = u16_at(cursor.take::<2>().ok()?, 0);
        cursor.pass(usize::from(padding));
    }
    Some(Next::PppFrame)
}

/// The IPv6 packet of Teredo (RFC 4380, section 5.1.1), after optional authentication and origin headers.
fn teredo(cursor: &mut Cursor<'_>) -> Option<Next> {
    if let [0, 1, client, value, ..] = *cursor.rest() {
        cursor.pass(13 + usize::from(client) + usize::from(value));
    }
    if let [0, 0, ..] = cursor.rest() {
        cursor.pass(8);
    }
    (cursor.rest().first()? >> 4 == 6).then_some(Next::Ip)
}

/// A data message of LISP (RFC 9300, section 5.1).
fn lisp(cursor: &mut Cursor<'_>) -> Option<Next> {
    cursor.take::<8>().ok()?;
    version_of_ip(cursor)
}

/// Generic UDP encapsulation: version 0 has a header and optional fields, version 1 is an IP packet without a header.
fn generic_udp(cursor: &mut Cursor<'_>) -> Option<Next> {
    if cursor.rest().first()? >> 6 == 0 {
        let header = cursor.take::<4>().ok()?;
        if header[0] & 0x20 != 0 || !matches!(header[1], 4 | 41) {
            return None;
        }
        cursor.pass(4 * usize::from(header[0] & 0x1f));
    }
    version_of_ip(cursor)
}

/// The frame that a remote sniffer forwarded (TaZmen Sniffer Protocol), after its tags.
fn tzsp(cursor: &mut Cursor<'_>) -> Option<Next> {
    const ETHERNET: u16 = 1;
    let header = cursor.take::<4>().ok()?;
    if header[0] != 1 || u16_at(header, 2) != ETHERNET {
        return None;
    }
    loop {
        match cursor.take::<1>().ok()?[0] {
            0 => {}
            1 => return Some(Next::Ethernet),
            _ => {
                let length = cursor.take::<1>().ok()?[0];
                cursor.pass(usize::from(length));
            }
        }
    }
}

fn version_of_ip(cursor: &Cursor<'_>) -> Option<Next> {
    matches!(cursor.rest().first()? >> 4, 4 | 6).then_some(Next::Ip)
}
