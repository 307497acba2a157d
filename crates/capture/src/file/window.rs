//! A window over a stream: only some bytes ahead are in memory.

use std::io::{self, ErrorKind, Read};

/// Number of bytes read at a time. Larger reads were not faster.
const PIECE_BYTES: usize = 256 * 1024;

/// The next bytes of a stream. Its memory is bounded by the largest request.
#[derive(Debug)]
pub(super) struct Window<R> {
    stream: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    passed: u64,
}

impl<R: Read> Window<R> {
    pub(super) fn new(stream: R) -> Self {
        Self { stream, buffer: vec![0; PIECE_BYTES], start: 0, end: 0, passed: 0 }
    }

    /// Number of bytes already consumed.
    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    /// The bytes in memory. After [`Window::fill`], these are at least as many as it returned.
    #[inline]
    pub(super) fn ahead(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Makes `count` bytes available, or all that remain; returns the smaller of both.
    #[inline]
    pub(super) fn fill(&mut self, count: usize) -> io::Result<usize> {
        if self.end - self.start < count { self.read_on(count) } else { Ok(count) }
    }

    /// Consumes bytes, which must be available.
    #[inline]
    pub(super) fn pass(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start);
        self.start += count;
        self.passed += count as u64;
    }

    /// Consumes bytes that need not be in memory; returns how many there were.
    pub(super) fn skip(&mut self, count: u64) -> io::Result<u64> {
        let mut left = count;
        while left > 0 {
            let piece = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
            let there = self.fill(piece)?;
            self.pass(there);
            left -= there as u64;
            if there < piece {
                break;
            }
        }
        Ok(count - left)
    }

    #[cold]
    fn read_on(&mut self, count: usize) -> io::Result<usize> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < count {
            self.buffer.resize(count, 0);
        }
        while self.end < count {
            match self.stream.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(more) => self.end += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.end.min(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_passes_over_a_stream_of_any_length() {
        let bytes: Vec<u8> = (0..PIECE_BYTES * 3).map(|number| (number % 251) as u8).collect();
        let mut window = Window::new(&bytes[..]);
        assert_eq!(window.fill(4).unwrap(), 4);
        assert_eq!(window.ahead()[..4], [0, 1, 2, 3]);
        assert_eq!(window.skip(PIECE_BYTES as u64 * 2 + 7).unwrap(), PIECE_BYTES as u64 * 2 + 7);
        assert_eq!(window.fill(1).unwrap(), 1);
        assert_eq!(usize::from(window.ahead()[0]), (PIECE_BYTES * 2 + 7) % 251);
        assert_eq!(window.passed(), PIECE_BYTES as u64 * 2 + 7);
    }

    #[test]
    fn a_stream_that_ends_gives_what_it_has() {
        let mut window = Window::new(&b"abc"[..]);
        assert_eq!(window.fill(10).unwrap(), 3);
        assert_eq!(window.ahead(), b"abc");
        assert_eq!(window.skip(10).unwrap(), 3);
        assert_eq!(window.fill(1).unwrap(), 0);
    }
}
