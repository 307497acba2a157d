//! Errors in capture files.

use std::io;

/// A capture could not be read, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system could not read it, or it can't be decompressed.
    #[error("cannot be read at byte {at}: {source}")]
    Read {
        /// The offset in the file, after decompression.
        at: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not a capture.
    #[error("found {found}; allowed: pcap and pcapng, also compressed with gzip")]
    NotACapture {
        /// What it is, or its first bytes.
        found: String,
    },
    /// It ends within a packet or a block, as when a capture is cut off.
    #[error("ends at byte {at}, within {within}")]
    CutOff {
        /// Its length, after decompression.
        at: u64,
        /// What is incomplete.
        within: &'static str,
    },
    /// A length or a version is impossible.
    #[error("byte {at}: {what}")]
    Malformed {
        /// Its offset, after decompression.
        at: u64,
        /// What was found, and what is allowed.
        what: String,
    },
}
