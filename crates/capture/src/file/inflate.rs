//! Decompresses gzip files, with a limit on the ratio.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

/// A file may always expand to this size.
const FREE_BYTES: u64 = 1 << 30;
/// Maximum ratio beyond that. Captures with empty payload expand 70 times, with offloaded packets a few hundred times;
/// gzip can reach 1032.
const MOST_TIMES: u64 = 500;

/// The content of all members of a file.
pub(super) struct Inflated<R> {
    decoder: MultiGzDecoder<Counted<R>>,
    given: u64,
    free_bytes: u64,
}

impl<R: Read> Inflated<R> {
    pub(super) fn new(stream: R) -> Self {
        Self { decoder: MultiGzDecoder::new(Counted { stream, taken: 0 }), given: 0, free_bytes: FREE_BYTES }
    }
}

impl<R: Read> Read for Inflated<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.decoder.read(buffer)?;
        self.given += read as u64;
        let taken = self.decoder.get_ref().taken;
        if self.given > self.free_bytes && self.given / MOST_TIMES > taken {
            return Err(io::Error::other(format!("it expands to more than {MOST_TIMES} times its length")));
        }
        Ok(read)
    }
}

/// Counts the bytes read from a stream.
struct Counted<R> {
    stream: R,
    taken: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(buffer)?;
        self.taken += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn read(content: &[u8], free_bytes: u64) -> io::Result<usize> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content)?;
        let compressed = encoder.finish()?;
        let mut inflated = Inflated { free_bytes, ..Inflated::new(&compressed[..]) };
        inflated.read_to_end(&mut Vec::new())
    }

    #[test]
    fn a_file_that_expands_without_measure_ends_with_an_error() {
        let error = read(&vec![0; 4 << 20], 1 << 20).unwrap_err().to_string();
        assert_eq!(error, "it expands to more than 500 times its length");
        assert_eq!(read(&vec![0; 4 << 20], 8 << 20).unwrap(), 4 << 20);
    }

    #[test]
    fn an_ordinary_file_expands_to_any_length() {
        let packets: Vec<u8> =
            (0..4 << 20).map(|at: u32| if at % 200 < 4 { (at / 200 % 251) as u8 } else { 0 }).collect();
        assert_eq!(read(&packets, 1 << 20).unwrap(), 4 << 20);
    }
}
