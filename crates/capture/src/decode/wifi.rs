//! Wi-Fi frames (IEEE 802.11), and the radio headers before them.

use super::cursor::{Cursor, u16_at};
use super::{Next, Undecoded};

/// Bits of radiotap's field of flags.
const PADDED: u8 = 0x20;
const BAD_CHECKSUM: u8 = 0x40;

/// Bits of the second byte of a frame's control field.
const TO_AND_FROM_DS: u8 = 0x03;
const PROTECTED: u8 = 0x40;
const ORDER: u8 = 0x80;

/// Radiotap: version, padding, length, then bits for the fields that are present (<https://www.radiotap.org>).
pub(super) fn radiotap(cursor: &mut Cursor<'_>) -> Result<Next, Undecoded> {
    let header = cursor.rest();
    let start = header.first_chunk::<8>().ok_or(Undecoded::Cut)?;
    let length = usize::from(u16::from_le_bytes([start[2], start[3]]));
    if start[0] != 0 || length < 8 {
        return Err(Undecoded::Malformed);
    }
    let header = header.get(..length).ok_or(Undecoded::Cut)?;
    let flags = radiotap_flags(header).unwrap_or(0);
    if flags & BAD_CHECKSUM != 0 {
        return Err(Undecoded::Malformed);
    }
    cursor.pass(length);
    frame(cursor, flags & PADDED)
}

/// The field of flags: the second one, after a time of 8 bytes that is aligned.
fn radiotap_flags(header: &[u8]) -> Option<u8> {
    let present = header[4];
    let mut at = 8;
    while header.get(at - 1)? & 0x80 != 0 {
        at += 4;
    }
    if present & 1 != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    if present & 2 != 0 { header.get(at).copied() } else { None }
}

/// The Prism header: a code and its length, in the byte order of the host. Newer drivers write an AVS header.
pub(super) fn prism(cursor: &mut Cursor<'_>) -> Result<Next, Undecoded> {
    let start = *cursor.rest().first_chunk::<8>().ok_or(Undecoded::Cut)?;
    let length = match [start[4], start[5], start[6], start[7]] {
        [low, high, 0, 0] => u16::from_le_bytes([low, high]),
        [0, 0, high, low] => u16::from_be_bytes([high, low]),
        _ => return Err(Undecoded::Malformed),
    };
    cursor.pass(usize::from(length));
    frame(cursor, 0)
}

/// Decodes a frame. If `padded` is not 0, its header is padded to a multiple of four bytes.
pub(super) fn frame(cursor: &mut Cursor<'_>, padded: u8) -> Result<Next, Undecoded> {
    let control = *cursor.rest().first_chunk::<2>().ok_or(Undecoded::Cut)?;
    let (kind, subtype) = (control[0] >> 2 & 3, control[0] >> 4);
    // Management, control, and data frames without data.
    if control[0] & 3 != 0 || kind != 2 || subtype & 4 != 0 {
        return Err(Undecoded::WifiOnly);
    }
    let header = cursor.take::<24>()?;
    let mut header_bytes = 24;
    if header[22] & 0x0f != 0 {
        return Err(Undecoded::Fragment);
    }
    if control[1] & TO_AND_FROM_DS == TO_AND_FROM_DS {
        cursor.take::<6>()?;
        header_bytes += 6;
    }
    let mut is_aggregate = false;
    if subtype & 8 != 0 {
        is_aggregate = cursor.take::<2>()?[0] & 0x80 != 0;
        header_bytes += 2;
        if control[1] & ORDER != 0 {
            cursor.take::<4>()?;
            header_bytes += 4;
        }
    }
    if padded != 0 {
        cursor.pass(header_bytes_padding(header_bytes));
    }
    // Some drivers decrypt frames and leave the bit set; the payload shows which is the case.
    let is_readable = matches!(cursor.rest(), [0xaa, 0xaa, 0x03, ..]);
    if control[1] & PROTECTED != 0 && !is_readable && !is_aggregate {
        return Err(Undecoded::Encrypted);
    }
    if !is_aggregate {
        return Ok(Next::Llc);
    }
    let Some(first) = cursor.rest().first_chunk::<17>() else { return Err(Undecoded::Cut) };
    let inside = [first[14], first[15], first[16]];
    if inside == [0xaa, 0xaa, 0x03] || control[1] & PROTECTED == 0 {
        Ok(Next::Aggregate)
    } else {
        Err(Undecoded::Encrypted)
    }
}

fn header_bytes_padding(header_bytes: usize) -> usize {
    header_bytes.next_multiple_of(4) - header_bytes
}

/// The payload of the next frame of an aggregate (A-MSDU, section 9.3.2.2 of 802.11-2020). Advances to the one after
/// it.
pub(super) fn subframe<'a>(rest: &mut Cursor<'a>) -> Option<Cursor<'a>> {
    let header = rest.take::<14>().ok()?;
    let bytes = u32::from(u16_at(header, 12));
    let mut inside = *rest;
    inside.end_after(bytes.min(rest.wire_bytes()));
    rest.pass((14 + bytes as usize).next_multiple_of(4) - 14);
    (bytes > 0).then_some(inside)
}
