//! The order of a file's bytes.

/// Whether numbers begin with their most significant byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    Little,
    Big,
}

impl Order {
    /// The number at an offset. The offset must be inside `bytes`.
    #[inline]
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let number = [bytes[at], bytes[at + 1]];
        match self {
            Self::Little => u16::from_le_bytes(number),
            Self::Big => u16::from_be_bytes(number),
        }
    }

    /// The number at an offset. The offset must be inside `bytes`.
    #[inline]
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let number = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match self {
            Self::Little => u32::from_le_bytes(number),
            Self::Big => u32::from_be_bytes(number),
        }
    }

    /// The number at an offset. The offset must be inside `bytes`.
    pub(super) fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let (first, second) = (u64::from(self.u32(bytes, at)), u64::from(self.u32(bytes, at + 4)));
        match self {
            Self::Little => second << 32 | first,
            Self::Big => first << 32 | second,
        }
    }
}
