//! The agent's output consists of frames. A frame has a length (`u32`, little-endian, of the payload alone), a kind
//! (one byte) and a payload.
//!
//! A run writes any number of progress and batch frames, and then exactly one summary or error frame.

use std::io::{self, Write};

use bufferscope_records::Table;
use serde::Serialize;

/// The kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// JSON: `{"now_ns", "duration_ns"}`.
    Progress = 1,
    /// One byte for the table (its index in [`Table::ALL`]), then a batch of that table as an Arrow IPC stream.
    Batch = 2,
    /// JSON: a [`Summary`](crate::Summary).
    Summary = 3,
    /// JSON: `{"kind", "message"}`, with a `kind` of [`Error::kind`](crate::Error::kind).
    Error = 4,
}

/// Writes a frame whose payload is JSON.
pub(crate) fn write_json(out: &mut impl Write, kind: FrameKind, value: &impl Serialize) -> io::Result<()> {
    write(out, kind, &[&serde_json::to_vec(value)?])
}

/// Writes a batch.
pub(crate) fn write_batch(out: &mut impl Write, table: Table, stream: &[u8]) -> io::Result<()> {
    write(out, FrameKind::Batch, &[&[table as u8], stream])
}

fn write(out: &mut impl Write, kind: FrameKind, payload: &[&[u8]]) -> io::Result<()> {
    let length: usize = payload.iter().map(|part| part.len()).sum();
    let length = u32::try_from(length).map_err(|_| io::Error::other("a frame of more than 4 GiB"))?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(&[kind as u8])?;
    payload.iter().try_for_each(|part| out.write_all(part))?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_length_kind_and_payload() {
        let mut out = Vec::new();
        write_batch(&mut out, Table::Queues, b"stream").unwrap();
        assert_eq!(out, [&[7, 0, 0, 0, 2, 2][..], b"stream"].concat());
    }
}
