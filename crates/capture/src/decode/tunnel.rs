//! Tunnels whose inner packets are used.

use super::cursor::{Cursor, u16_at};
use super::{Layers, Next, Undecoded};

/// The UDP ports of tunnels.
pub(super) const VXLAN_PORT: u16 = 4789;
pub(super) const GTP_U_PORT: u16 = 2152;

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
    let header = cursor.take::<4>()?;
    let (flags, protocol) = (u16_at(header, 0), u16_at(header, 2));
    // Checksum (and offset), key, sequence number, and in version 1 (PPTP) an acknowledgement: four bytes each.
    let present = [0x8000, 0x2000, 0x1000].into_iter().filter(|bit| flags & bit != 0).count();
    let acknowledgement = usize::from(flags & 7 == 1 && flags & 0x0080 != 0);
    if flags & 7 > 1 || flags & 0x4000 != 0 {
        return Err(Undecoded::Transport);
    }
    cursor.pass(4 * (present + acknowledgement));
    match protocol {
        0x6558 => {
            layers.add(Layers::ETHERNET_IN_GRE);
            Ok(Next::Ethernet)
        }
        other => {
            layers.add(Layers::GRE);
            Ok(Next::EtherType(other))
        }
    }
}

/// The frame of Ethernet in a packet of VXLAN.
pub(super) fn vxlan(cursor: &mut Cursor<'_>) -> Option<Next> {
    // Only the flag of a valid network identifier is set.
    (cursor.take::<8>().ok()?[0] == 0x08).then_some(Next::Ethernet)
}

/// The IP packet in a G-PDU of GTP-U.
pub(super) fn gtp_u(cursor: &mut Cursor<'_>) -> Option<Next> {
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
    matches!(cursor.rest().first()? >> 4, 4 | 6).then_some(Next::Ip)
}
