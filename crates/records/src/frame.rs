//! Frames: the output of an engine that runs in a different process from the one that keeps its records, on this
//! machine or on another.
//!
//! A frame has a length (`u32`, little-endian, of the payload alone), a kind (one byte) and a payload. The first frame
//! is a hello. Any number of progress, batch and packets frames follow, and then exactly one summary or error.

use std::io::{self, Write};

use crate::Table;

/// Version of the protocol: of the frames with their contents, and of the requests that they answer. Raise it with
/// every change that the other side would misread.
pub const PROTOCOL: u32 = 3;

/// The largest length of a frame: a batch has only a few thousand rows, so data that claims more is not a frame.
const LONGEST_BYTES: u32 = 1 << 28;
/// Length and kind.
const HEADER_BYTES: usize = 5;

/// The kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// The [`PROTOCOL`] of the writer, as `u32`, little-endian.
    Hello = 0,
    /// JSON: `{"now_ns", "duration_ns"}`.
    Progress = 1,
    /// One byte for the table (its index in [`Table::ALL`]), then a batch of that table as an Arrow IPC stream.
    Batch = 2,
    /// JSON: what the run reports about itself when it is over.
    Summary = 3,
    /// JSON: `{"kind", "message"}`, why the run failed.
    Error = 4,
    /// Captured packets, see [`packets`](crate::packets). Only if the request asks for them.
    Packets = 5,
}

/// Bytes that are not the frames of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The writer's version of the protocol is another one.
    #[error("{}", other_protocol(*found))]
    OtherProtocol {
        /// The writer's version; `None` if it gave none.
        found: Option<u32>,
    },
    /// Not a frame.
    #[error("a frame of kind {kind} with {length} bytes")]
    Unknown {
        /// Its kind.
        kind: u8,
        /// The length of its payload.
        length: u32,
    },
}

/// The message for two sides with different versions of the protocol; `found` is the version of the other side.
pub fn other_protocol(found: Option<u32>) -> String {
    match found {
        Some(found) => format!("one has version {found} of their protocol, the other version {PROTOCOL}"),
        None => format!("one states no version of their protocol, the other has version {PROTOCOL}"),
    }
}

impl FrameKind {
    const ALL: [Self; 6] = [Self::Hello, Self::Progress, Self::Batch, Self::Summary, Self::Error, Self::Packets];

    /// Its name: `progress`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Progress => "progress",
            Self::Batch => "batch",
            Self::Summary => "summary",
            Self::Error => "error",
            Self::Packets => "packets",
        }
    }
}

/// Writes the first frame.
pub fn write_hello(out: &mut impl Write) -> io::Result<()> {
    write(out, FrameKind::Hello, &[&PROTOCOL.to_le_bytes()])
}

/// Writes a batch, [encoded](crate::ipc::encode).
pub fn write_batch(out: &mut impl Write, table: Table, stream: &[u8]) -> io::Result<()> {
    write(out, FrameKind::Batch, &[&[table as u8], stream])
}

/// Writes a frame whose payload has these parts.
pub fn write(out: &mut impl Write, kind: FrameKind, payload: &[&[u8]]) -> io::Result<()> {
    let length: usize = payload.iter().map(|part| part.len()).sum();
    let length = u32::try_from(length).ok().filter(|length| *length <= LONGEST_BYTES);
    let length = length.ok_or_else(|| io::Error::other(format!("a frame of more than {LONGEST_BYTES} bytes")))?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&[kind as u8])?;
    payload.iter().try_for_each(|part| out.write_all(part))?;
    out.flush()
}

/// Reassembles frames from the pieces in which they arrive.
#[derive(Debug, Default)]
pub struct FrameReader {
    buffer: Vec<u8>,
    /// How much of the buffer has been taken.
    taken: usize,
    greeted: bool,
}

impl FrameReader {
    /// Adds the next piece.
    pub fn feed(&mut self, piece: &[u8]) {
        self.buffer.drain(..std::mem::take(&mut self.taken));
        self.buffer.extend_from_slice(piece);
    }

    /// The next frame that is complete, with its payload. A hello is checked and not returned.
    ///
    /// # Errors
    /// The bytes are not frames, or the frames have another version. Then nothing that follows can be read.
    pub fn next_frame(&mut self) -> Result<Option<(FrameKind, Vec<u8>)>, FrameError> {
        while let Some((kind, payload)) = self.take()? {
            if kind != FrameKind::Hello {
                return Ok(Some((kind, payload)));
            }
            match payload.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)) {
                Some(PROTOCOL) => self.greeted = true,
                found => return Err(FrameError::OtherProtocol { found }),
            }
        }
        Ok(None)
    }

    fn take(&mut self) -> Result<Option<(FrameKind, Vec<u8>)>, FrameError> {
        let Some((header, rest)) = self.buffer[self.taken..].split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let [length @ .., kind] = *header;
        let length = u32::from_le_bytes(length);
        let known = FrameKind::ALL.into_iter().find(|known| *known as u8 == kind && length <= LONGEST_BYTES);
        let known = known.ok_or(FrameError::Unknown { kind, length })?;
        if known != FrameKind::Hello && !self.greeted {
            return Err(FrameError::OtherProtocol { found: None });
        }
        let Some(payload) = rest.get(..length as usize).map(<[u8]>::to_vec) else { return Ok(None) };
        self.taken += HEADER_BYTES + payload.len();
        Ok(Some((known, payload)))
    }

    /// Whether the last piece ended with a frame.
    pub fn is_between_frames(&self) -> bool {
        self.buffer.len() == self.taken
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames(write: impl Fn(&mut Vec<u8>) -> io::Result<()>) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        out
    }

    fn read(bytes: &[u8]) -> Result<Vec<(FrameKind, Vec<u8>)>, FrameError> {
        let mut reader = FrameReader::default();
        reader.feed(bytes);
        std::iter::from_fn(|| reader.next_frame().transpose()).collect()
    }

    #[test]
    fn a_frame_is_length_kind_and_payload() {
        let out = frames(|out| write_batch(out, Table::Queues, b"stream"));
        assert_eq!(out, [&[7, 0, 0, 0, 2, 2][..], b"stream"].concat());
    }

    #[test]
    fn pieces_of_any_size_are_put_together() {
        let bytes = frames(|out| {
            write_hello(out)?;
            write_batch(out, Table::Queues, b"stream")?;
            write(out, FrameKind::Summary, &[b"{}"])
        });
        let whole = [(FrameKind::Batch, b"\x02stream".to_vec()), (FrameKind::Summary, b"{}".to_vec())];
        for size in 1..bytes.len() {
            let (mut reader, mut found) = (FrameReader::default(), Vec::new());
            for piece in bytes.chunks(size) {
                reader.feed(piece);
                found.extend(std::iter::from_fn(|| reader.next_frame().unwrap()));
            }
            assert_eq!((&found[..], reader.is_between_frames()), (&whole[..], true));
        }
    }

    #[test]
    fn another_version_is_refused_and_reported() {
        let mut bytes = frames(write_hello);
        bytes[HEADER_BYTES] += 1;
        let error = read(&bytes).unwrap_err();
        assert_eq!(error, FrameError::OtherProtocol { found: Some(PROTOCOL + 1) });
        assert!(error.to_string().contains(&format!("version {}", PROTOCOL + 1)), "{error}");
        let greeted_never = frames(|out| write(out, FrameKind::Summary, &[b"{}"]));
        assert_eq!(read(&greeted_never), Err(FrameError::OtherProtocol { found: None }));
        assert_eq!(read(&[0, 0, 0, 0, 0]), Err(FrameError::OtherProtocol { found: None }), "an empty hello");
    }

    #[test]
    fn what_is_no_frame_is_refused_before_it_is_awaited() {
        assert_eq!(read(&[0xff; 5]), Err(FrameError::Unknown { kind: 0xff, length: u32::MAX }));
        assert_eq!(read(&[1, 0, 0, 0x10, 1]), Err(FrameError::Unknown { kind: 1, length: LONGEST_BYTES + 1 }));
        assert_eq!(read(&[0, 0, 0, 0, 9]), Err(FrameError::Unknown { kind: 9, length: 0 }));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&[frames(write_hello), bytes].concat());
        }
    }
}
