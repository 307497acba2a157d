//! The TCP segment as the simulator represents it: the meaning of the header's fields, not their bits.
//!
//! Sequence numbers are unwrapped to 64 bits and start at 0: the SYN is 0, the first payload byte 1. Windows are in
//! bytes, already scaled (RFC 7323, section 2). Payload has a length and no content.

use std::ops::{BitOr, BitOrAssign};

use bufferscope_scenario::sizes::{IP_HEADER_BYTES, MSS_BYTES, TCP_HEADER_BYTES, TIMESTAMPS_BYTES};

/// The options of Linux' SYN: MSS, SACK permitted, timestamps, window scale.
const SYN_OPTIONS_BYTES: u32 = 20;
/// Two NOPs and the head of the SACK option (RFC 2018, section 3).
const SACK_HEAD_BYTES: u32 = 4;
const SACK_BLOCK_BYTES: u32 = 8;

/// One TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first payload byte (or of the SYN or FIN).
    pub seq: u64,
    /// Next sequence number expected from the other side; valid with [`Flags::ACK`].
    pub ack: u64,
    /// Payload bytes.
    pub len: u32,
    /// Window offered from `ack` on.
    pub window_bytes: u32,
    /// Sender's clock in milliseconds (RFC 7323, section 3).
    pub ts_val: u32,
    /// Echo of the other side's clock.
    pub ts_ecr: u32,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
    /// Control bits.
    pub flags: Flags,
}

/// TCP control bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

/// One selective acknowledgement: the bytes from `start` up to but not including `end` have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SackBlock {
    /// First byte of the block.
    pub start: u64,
    /// First byte after it.
    pub end: u64,
}

/// Up to three SACK blocks (as many as fit together with timestamps), stored relative to the segment's `ack` to stay
/// small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    relative: [(i32, i32); SackBlocks::MAX],
    count: u8,
}

impl Segment {
    /// Length of the IP packet that carries the segment, or the total length of the packets into which it is eventually
    /// split.
    #[inline]
    pub fn ip_bytes(&self) -> u32 {
        (IP_HEADER_BYTES + TCP_HEADER_BYTES + self.option_bytes()) * self.frames() + self.len
    }

    /// The number of packets of at most 1500 bytes into which the segment is eventually split. It can be more than one
    /// only with segmentation offload.
    #[inline]
    pub fn frames(&self) -> u32 {
        if self.len <= MSS_BYTES { 1 } else { self.len.div_ceil(MSS_BYTES) }
    }

    /// Splits off the first of several packets. The application's write, and the data, end only with the rest.
    pub(crate) fn split_off_first(&mut self) -> Self {
        let ends = Flags::FIN | Flags::PSH;
        let first = Self { len: MSS_BYTES, flags: Flags(self.flags.0 & !ends.0), ..*self };
        self.seq += u64::from(MSS_BYTES);
        self.len -= MSS_BYTES;
        first
    }

    /// First sequence number after this segment. SYN and FIN take up one number each.
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len) + u64::from(self.flags.syn()) + u64::from(self.flags.fin())
    }

    /// Whether the segment is charged to the connection until it leaves the host's queue. Pure acknowledgements and
    /// SYNs are not.
    pub(crate) fn is_charged(&self) -> bool {
        self.len > 0 || self.flags.fin()
    }

    fn option_bytes(&self) -> u32 {
        if self.flags.syn() {
            return SYN_OPTIONS_BYTES;
        }
        let sack = match self.sack.len() as u32 {
            0 => 0,
            blocks => SACK_HEAD_BYTES + SACK_BLOCK_BYTES * blocks,
        };
        TIMESTAMPS_BYTES + sack
    }
}

impl Flags {
    /// No bit set.
    pub const NONE: Self = Self(0);
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// The application's write ends here.
    pub const PSH: Self = Self(0x08);
    /// The `ack` field is valid.
    pub const ACK: Self = Self(0x10);
    /// The first bit of accurate ECN's count (RFC 9768, section 3.2.1); the others are CWR and ECE. (On the wire it is
    /// the last of the reserved bits.)
    pub const AE: Self = Self(0x04);
    /// ECN echo (RFC 3168, section 6.1).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168, section 6.1).
    pub const CWR: Self = Self(0x80);

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether ACK is set and no other bit that Linux looks at when it takes its fast path (`TCP_HP_BITS`).
    pub(crate) fn only_acknowledge(self) -> bool {
        self.0 & !(Self::PSH.0 | Self::AE.0) == Self::ACK.0
    }

    /// Whether SYN is set.
    pub fn syn(self) -> bool {
        self.contains(Self::SYN)
    }

    /// Whether FIN is set.
    pub fn fin(self) -> bool {
        self.contains(Self::FIN)
    }

    /// Whether ACK is set.
    pub fn ack(self) -> bool {
        self.contains(Self::ACK)
    }

    /// Whether ECE is set.
    pub fn ece(self) -> bool {
        self.contains(Self::ECE)
    }

    /// The count of accurate ECN: AE, CWR and ECE as a number.
    pub fn ace(self) -> u8 {
        let bit = |flag| u8::from(self.contains(flag));
        bit(Self::AE) << 2 | bit(Self::CWR) << 1 | bit(Self::ECE)
    }

    /// The flags that encode `count`, modulo 8.
    pub(crate) fn from_ace(count: u8) -> Self {
        let bit = |bit: u8, flag: Self| if count >> bit & 1 == 1 { flag } else { Self::NONE };
        bit(2, Self::AE) | bit(1, Self::CWR) | bit(0, Self::ECE)
    }

    /// Whether PSH is set.
    pub fn psh(self) -> bool {
        self.contains(Self::PSH)
    }

    /// Whether CWR is set.
    pub fn cwr(self) -> bool {
        self.contains(Self::CWR)
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl SackBlocks {
    /// The most blocks that a segment can carry. Options have 40 bytes; 12 for timestamps and 4 for the head of the
    /// SACK option leave room for three blocks.
    pub const MAX: usize = 3;

    /// No blocks.
    pub const NONE: Self = Self { relative: [(0, 0); Self::MAX], count: 0 };

    /// Adds a block, relative to `ack`; does nothing if there is no room. Offsets fit in 32 bits because a window stays
    /// far below 2^31 bytes (RFC 7323, section 2.2).
    pub fn push(&mut self, ack: u64, block: SackBlock) {
        if self.len() < Self::MAX {
            let relative = |seq: u64| (seq as i64 - ack as i64) as i32;
            self.relative[self.len()] = (relative(block.start), relative(block.end));
            self.count += 1;
        }
    }

    /// The blocks, in the order in which they were added.
    pub fn iter(&self, ack: u64) -> impl Iterator<Item = SackBlock> + '_ {
        let absolute = move |offset: i32| ack.wrapping_add_signed(i64::from(offset));
        self.relative[..self.len()].iter().map(move |&(s, e)| SackBlock { start: absolute(s), end: absolute(e) })
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Whether there is no block.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(len: u32, flags: Flags, blocks: u64) -> Segment {
        let mut sack = SackBlocks::NONE;
        for i in 0..blocks {
            sack.push(1000, SackBlock { start: 2000 + 2 * i, end: 2001 + 2 * i });
        }
        Segment { seq: 1, ack: 1000, len, window_bytes: 0, ts_val: 0, ts_ecr: 0, sack, flags }
    }

    #[test]
    fn a_packet_is_as_long_as_on_a_real_wire() {
        // Ethernet MTU 1500 = 20 + 20 + 12 + 1448; Linux' SYN is 60 bytes; a pure ACK with timestamps 52.
        assert_eq!(segment(1448, Flags::ACK, 0).ip_bytes(), 1500);
        assert_eq!(segment(0, Flags::SYN, 0).ip_bytes(), 60);
        assert_eq!(segment(0, Flags::ACK, 0).ip_bytes(), 52);
        // tcpdump shows 64, 72 and 80 bytes for ACKs with one, two and three SACK blocks.
        assert_eq!([1, 2, 3].map(|n| segment(0, Flags::ACK, n).ip_bytes()), [64, 72, 80]);
    }

    #[test]
    fn a_segment_fits_a_cache_line() {
        assert_eq!(std::mem::size_of::<Segment>(), 64);
    }

    #[test]
    fn sack_blocks_come_back_in_order_also_from_below_the_acknowledgement() {
        let ack = 5_000_000_000;
        let duplicate = SackBlock { start: ack - 2896, end: ack - 1448 };
        let held = SackBlock { start: ack + 1448, end: ack + 4344 };
        let mut sack = SackBlocks::NONE;
        sack.push(ack, duplicate);
        sack.push(ack, held);
        assert_eq!(sack.iter(ack).collect::<Vec<_>>(), [duplicate, held]);
    }

    #[test]
    fn a_fourth_block_does_not_fit() {
        assert_eq!(segment(0, Flags::ACK, 4).sack.len(), 3);
    }
}
