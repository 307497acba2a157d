//! The blocks of a pcapng file (draft-ietf-opsawg-pcapng, section 4), in little-endian order.

use std::io::{self, Write};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// The length of a section that is not known when its header is written.
const UNKNOWN_LENGTH: u64 = u64::MAX;
const LINK_TYPE_ETHERNET: u16 = 1;
/// Times are in units of 10 to the power of -9 seconds.
const NANOSECONDS: u8 = 9;

/// Options of several blocks.
mod option {
    pub(super) const END: u16 = 0;
    pub(super) const COMMENT: u16 = 1;
    pub(super) const SECTION_APPLICATION: u16 = 4;
    pub(super) const INTERFACE_NAME: u16 = 2;
    pub(super) const INTERFACE_DESCRIPTION: u16 = 3;
    pub(super) const INTERFACE_RESOLUTION: u16 = 9;
    pub(super) const STATISTICS_START: u16 = 2;
    pub(super) const STATISTICS_END: u16 = 3;
    pub(super) const STATISTICS_RECEIVED: u16 = 4;
}

/// Writes blocks. The buffer for a block is reused, so that a packet needs no allocation.
#[derive(Debug)]
pub struct Blocks<W> {
    out: W,
    block: Vec<u8>,
}

impl<W: Write> Blocks<W> {
    /// Begins a section. `application` is the program that writes it, and `comment` says what it contains.
    ///
    /// # Errors
    /// Those of `out`, here and below.
    pub fn begin(out: W, application: &str, comment: &str) -> io::Result<Self> {
        let mut blocks = Self { out, block: Vec::with_capacity(512) };
        blocks.u32(BYTE_ORDER_MAGIC);
        blocks.u16(1);
        blocks.u16(0);
        blocks.u64(UNKNOWN_LENGTH);
        blocks.option(option::SECTION_APPLICATION, application.as_bytes());
        blocks.option(option::COMMENT, comment.as_bytes());
        blocks.end_options();
        blocks.write(SECTION_HEADER)?;
        Ok(blocks)
    }

    /// Describes the next interface; the first has the number 0. At most `snaplen` bytes of its packets are captured.
    pub fn interface(&mut self, name: &str, description: &str, snaplen: u32) -> io::Result<()> {
        self.u16(LINK_TYPE_ETHERNET);
        self.u16(0);
        self.u32(snaplen);
        self.option(option::INTERFACE_NAME, name.as_bytes());
        self.option(option::INTERFACE_DESCRIPTION, description.as_bytes());
        self.option(option::INTERFACE_RESOLUTION, &[NANOSECONDS]);
        self.end_options();
        self.write(INTERFACE_DESCRIPTION)
    }

    /// A packet of `length` bytes, of which `captured` are stored.
    pub fn packet(
        &mut self,
        interface: u32,
        t_ns: u64,
        captured: &[u8],
        length: u32,
        comment: Option<&str>,
    ) -> io::Result<()> {
        self.u32(interface);
        self.time(t_ns);
        self.u32(captured.len() as u32);
        self.u32(length);
        self.padded(captured);
        if let Some(comment) = comment {
            self.option(option::COMMENT, comment.as_bytes());
            self.end_options();
        }
        self.write(ENHANCED_PACKET)
    }

    /// An interface saw this many packets from the start up to `end_ns`.
    pub fn statistics(&mut self, interface: u32, end_ns: u64, packets: u64) -> io::Result<()> {
        self.u32(interface);
        self.time(end_ns);
        self.option(option::STATISTICS_START, &time(0));
        self.option(option::STATISTICS_END, &time(end_ns));
        self.option(option::STATISTICS_RECEIVED, &packets.to_le_bytes());
        self.end_options();
        self.write(INTERFACE_STATISTICS)
    }

    /// Flushes what was written, and returns the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes the block that was put together.
    fn write(&mut self, kind: u32) -> io::Result<()> {
        let length = (self.block.len() as u32 + 12).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length)?;
        self.out.write_all(&self.block)?;
        self.out.write_all(&length)?;
        self.block.clear();
        Ok(())
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.u16(code);
        self.u16(value.len() as u16);
        self.padded(value);
    }

    fn end_options(&mut self) {
        self.u16(option::END);
        self.u16(0);
    }

    fn time(&mut self, t_ns: u64) {
        self.block.extend_from_slice(&time(t_ns));
    }

    /// Bytes, and zeros up to a multiple of four.
    fn padded(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn u16(&mut self, value: u16) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }
}

/// A time as two words, the high one first.
fn time(t_ns: u64) -> [u8; 8] {
    t_ns.rotate_left(32).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2^32 ns and 5 ns: the high word is 1, the low one 5.
    #[test]
    fn a_time_has_its_high_word_first() {
        assert_eq!(time((1 << 32) + 5), [1, 0, 0, 0, 5, 0, 0, 0]);
    }

    #[test]
    fn a_packet_block_is_that_of_the_specification() {
        let mut blocks = Blocks { out: Vec::new(), block: Vec::new() };
        blocks.packet(2, 7, &[0xaa, 0xbb, 0xcc], 60, Some("lost")).unwrap();
        let expected = [
            &[6, 0, 0, 0, 48, 0, 0, 0][..],                    // type and length
            &[2, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0],             // interface and time
            &[3, 0, 0, 0, 60, 0, 0, 0, 0xaa, 0xbb, 0xcc, 0],   // lengths, and the packet padded
            &[1, 0, 4, 0, b'l', b'o', b's', b't', 0, 0, 0, 0], // a comment, and the end of the options
            &[48, 0, 0, 0],                                    // length
        ];
        assert_eq!(blocks.out, expected.concat());
        assert_eq!(blocks.out.len(), 48);
    }

    #[test]
    fn every_block_has_its_length_at_both_ends() {
        let mut blocks = Blocks::begin(Vec::new(), "a program", "what it contains").unwrap();
        blocks.interface("r1>h2 wire", "odd", 128).unwrap();
        blocks.packet(0, 1, &[1; 7], 7, None).unwrap();
        blocks.statistics(0, 9, 1).unwrap();
        let bytes = blocks.finish().unwrap();
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let (mut at, mut kinds) = (0, Vec::new());
        while at < bytes.len() {
            let length = word(at + 4) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(at + length - 4) as usize, length);
            kinds.push(word(at));
            at += length;
        }
        assert_eq!(kinds, [SECTION_HEADER, INTERFACE_DESCRIPTION, ENHANCED_PACKET, INTERFACE_STATISTICS]);
    }
}
