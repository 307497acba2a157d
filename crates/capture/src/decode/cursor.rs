//! A position in a packet.

use super::Undecoded;

/// The rest of a packet: its captured bytes, and its length on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    wire_bytes: u32,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(rest: &'a [u8], wire_bytes: u32) -> Self {
        Self { rest, wire_bytes }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Length of the rest on the wire, captured or not.
    pub(super) fn wire_bytes(&self) -> u32 {
        self.wire_bytes
    }

    /// Takes a header of a known length.
    #[inline]
    pub(super) fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], Undecoded> {
        let (header, rest) = self.rest.split_first_chunk::<N>().ok_or(Undecoded::Cut)?;
        self.rest = rest;
        self.wire_bytes = self.wire_bytes.saturating_sub(N as u32);
        Ok(header)
    }

    /// Skips bytes. They need not have been captured, unless something after them is needed.
    #[inline]
    pub(super) fn pass(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or_default();
        self.wire_bytes = self.wire_bytes.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// Cuts off everything after this length, such as the padding of a frame.
    #[inline]
    pub(super) fn end_after(&mut self, bytes: u32) {
        self.wire_bytes = bytes;
        self.rest = &self.rest[..self.rest.len().min(bytes as usize)];
    }
}

/// A number in network byte order. The offset must be inside `bytes`.
#[inline]
pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// A number in network byte order. The offset must be inside `bytes`.
#[inline]
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
