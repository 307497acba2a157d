//! Numbers in the kernel's structures. They are in the machine's byte order, and a kernel may fill a structure only up
//! to a field that it knows.

/// The number at an offset; `None` if the structure ends before.
pub fn read_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The number at an offset; `None` if the structure ends before.
pub fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The number at an offset; `None` if the structure ends before.
pub fn read_u64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
