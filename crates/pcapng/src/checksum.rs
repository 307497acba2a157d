//! The Internet checksum (RFC 1071).

/// The sum of 16-bit words, not yet folded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum(u32);

impl Sum {
    /// Adds a word.
    pub(crate) fn word(self, word: u16) -> Self {
        Self(self.0 + u32::from(word))
    }

    /// Adds bytes; an odd last one is the high half of a word. A packet's headers are far too short to overflow the sum.
    pub(crate) fn bytes(self, bytes: &[u8]) -> Self {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let whole = pairs.iter().fold(self, |sum, pair| sum.word(u16::from_be_bytes(*pair)));
        rest.iter().fold(whole, |sum, last| sum.word(u16::from(*last) << 8))
    }

    /// The checksum: the ones' complement of the ones' complement sum.
    pub(crate) fn checksum(self) -> u16 {
        let folded = (self.0 & 0xffff) + (self.0 >> 16);
        !((folded & 0xffff) + (folded >> 16)) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 1071, section 3: the words 0001 f203 f4f5 f6f7 have the sum ddf2.
    #[test]
    fn it_is_that_of_the_rfc() {
        assert_eq!(Sum::default().bytes(&[0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7]).checksum(), !0xddf2);
    }

    #[test]
    fn an_odd_byte_is_padded_with_zero() {
        assert_eq!(Sum::default().bytes(&[0x12]).checksum(), Sum::default().bytes(&[0x12, 0]).checksum());
    }
}
