//! Load connections: TCP in clear, so that encryption is not what is measured.
//!
//! The client opens each and sends an [`Opening`]; the server answers with one byte, [`ACCEPTED`] or the reason why not. Then the
//! end that loads sends frames: a header with the length of the payload (`u32`, big-endian) and its kind, then the
//! payload. The other end sends nothing but marks: eight bytes each, which it gets back as a frame of kind [`MARK`]
//! (or, in an upload, sends back those that it finds in such frames).

use super::SessionId;

/// Length of an opening.
pub const OPENING_BYTES: usize = 64;
/// The server takes the connection.
pub const ACCEPTED: u8 = b'+';
/// The server does not take it: no such session, a wrong key, not in this phase, or too many.
pub const REFUSED: u8 = b'-';
/// Length of a frame's header.
pub const FRAME_HEADER_BYTES: usize = 5;
/// The longest payload of a frame.
pub const LONGEST_FRAME: usize = 64 * 1024;
/// The kind of a frame of random bytes.
pub const DATA: u8 = 0;
/// The kind of a frame with a mark.
pub const MARK: u8 = 1;
/// Length of a mark.
pub const MARK_BYTES: usize = 8;

/// How an opening begins.
pub const MAGIC: [u8; 4] = *b"BSL1";

/// What the connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// The server sends load.
    Download = 0,
    /// The client sends load.
    Upload = 1,
    /// One byte is echoed: a probe of how long a new connection takes.
    Exchange = 2,
}

/// How much the loading end of a connection may write before it is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum SendBuffer {
    /// What 5 ms of its rate need, by `TCP_NOTSENT_LOWAT`.
    #[default]
    Short = 0,
    /// What the kernel takes, as for most programs.
    Kernel = 1,
}

/// The secret of a session, which its load connections prove to know.
pub type Key = [u8; 16];

/// Reads a key from its hexadecimal digits.
pub fn parse_key(text: &str) -> Option<Key> {
    let mut key = Key::default();
    (text.len() == 2 * key.len() && text.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(())?;
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(key)
}

/// The beginning of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The session it belongs to.
    pub session: SessionId,
    /// That session's secret.
    pub key: Key,
    /// What it is for.
    pub purpose: Purpose,
    /// How much may wait in the send buffer of the loading end.
    pub send_buffer: SendBuffer,
    /// Its number among those of its purpose.
    pub index: u16,
    /// The congestion control that the loading end shall use, as Linux calls it; empty: its default.
    pub congestion: String,
}

/// The longest name of a congestion control (`TCP_CA_NAME_MAX`), without the final zero.
pub const LONGEST_NAME: usize = 15;

impl Opening {
    /// Its bytes.
    pub fn bytes(&self) -> [u8; OPENING_BYTES] {
        let mut bytes = [0; OPENING_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = self.purpose as u8;
        bytes[5] = self.send_buffer as u8;
        bytes[6..8].copy_from_slice(&self.index.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.session.0.to_be_bytes());
        bytes[16..32].copy_from_slice(&self.key);
        let name = self.congestion.as_bytes();
        let length = name.len().min(LONGEST_NAME);
        bytes[32..32 + length].copy_from_slice(&name[..length]);
        bytes
    }

    /// Reads an opening; `None` if it is not one.
    pub fn parse(bytes: &[u8; OPENING_BYTES]) -> Option<Self> {
        (bytes[..4] == MAGIC).then_some(())?;
        let purpose = [Purpose::Download, Purpose::Upload, Purpose::Exchange]
            .into_iter()
            .find(|&purpose| purpose as u8 == bytes[4])?;
        let send_buffer =
            [SendBuffer::Short, SendBuffer::Kernel].into_iter().find(|&buffer| buffer as u8 == bytes[5])?;
        let name = &bytes[32..48];
        let end = name.iter().position(|&byte| byte == 0)?;
        let congestion = std::str::from_utf8(&name[..end]).ok()?;
        let is_word = congestion.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        is_word.then(|| Self {
            session: SessionId(u64::from_be_bytes(bytes[8..16].try_into().expect("eight bytes"))),
            key: bytes[16..32].try_into().expect("sixteen bytes"),
            purpose,
            send_buffer,
            index: u16::from_be_bytes([bytes[6], bytes[7]]),
            congestion: congestion.to_owned(),
        })
    }
}

/// The header of a frame.
pub fn frame_header(kind: u8, length: usize) -> [u8; FRAME_HEADER_BYTES] {
    let [a, b, c, d] = (length as u32).to_be_bytes();
    [a, b, c, d, kind]
}

/// What the next bytes of a stream of frames are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// A frame's header, of which this many bytes are missing.
    Header(usize),
    /// This many bytes of data, which are discarded.
    Data(usize),
    /// A mark, of which this many bytes are missing.
    Mark(usize),
}

/// Reads a stream of frames piece by piece. The caller reads at most as many bytes as are expected, and need not keep
/// those of data.
#[derive(Clone, Debug)]
pub struct Frames {
    expected: Expect,
    buffer: [u8; MARK_BYTES],
}

/// The stream is not one of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer sent something else than frames of load")]
pub struct NotFrames;

impl Default for Frames {
    fn default() -> Self {
        Self { expected: Expect::Header(FRAME_HEADER_BYTES), buffer: [0; MARK_BYTES] }
    }
}

impl Frames {
    /// What comes next.
    pub fn expected(&self) -> Expect {
        self.expected
    }

    /// This many bytes of data were read and dropped; at most as many as were expected.
    pub fn skipped(&mut self, bytes: usize) {
        if let Expect::Data(left) = self.expected {
            self.expected = match left.saturating_sub(bytes) {
                0 => Expect::Header(FRAME_HEADER_BYTES),
                left => Expect::Data(left),
            };
        }
    }

    /// These bytes of a header or a mark were read; at most as many as were expected. Returns a mark when it is whole.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Option<[u8; MARK_BYTES]>, NotFrames> {
        match self.expected {
            Expect::Data(_) => Err(NotFrames),
            Expect::Header(missing) => {
                let at = FRAME_HEADER_BYTES - missing;
                self.buffer.get_mut(at..at + bytes.len()).ok_or(NotFrames)?.copy_from_slice(bytes);
                self.expected = match missing.checked_sub(bytes.len()).ok_or(NotFrames)? {
                    0 => self.after_header()?,
                    missing => Expect::Header(missing),
                };
                Ok(None)
            }
            Expect::Mark(missing) => {
                let at = MARK_BYTES - missing;
                self.buffer.get_mut(at..at + bytes.len()).ok_or(NotFrames)?.copy_from_slice(bytes);
                let missing = missing.checked_sub(bytes.len()).ok_or(NotFrames)?;
                let is_whole = missing == 0;
                self.expected = if is_whole { Expect::Header(FRAME_HEADER_BYTES) } else { Expect::Mark(missing) };
                Ok(is_whole.then_some(self.buffer))
            }
        }
    }

    fn after_header(&self) -> Result<Expect, NotFrames> {
        let length = u32::from_be_bytes(self.buffer[..4].try_into().expect("four bytes")) as usize;
        match self.buffer[4] {
            DATA if (1..=LONGEST_FRAME).contains(&length) => Ok(Expect::Data(length)),
            MARK if length == MARK_BYTES => Ok(Expect::Mark(length)),
            _ => Err(NotFrames),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a stream in pieces of at most `most` bytes; returns its marks and the number of its data bytes.
    fn read(mut stream: &[u8], most: usize) -> Result<(Vec<[u8; MARK_BYTES]>, usize), NotFrames> {
        let (mut frames, mut marks, mut data) = (Frames::default(), Vec::new(), 0);
        while !stream.is_empty() {
            let (Expect::Header(wanted) | Expect::Data(wanted) | Expect::Mark(wanted)) = frames.expected();
            let (piece, rest) = stream.split_at(wanted.min(most).min(stream.len()));
            stream = rest;
            if let Expect::Data(_) = frames.expected() {
                frames.skipped(piece.len());
                data += piece.len();
            } else {
                marks.extend(frames.take(piece)?);
            }
        }
        Ok((marks, data))
    }

    #[test]
    fn data_and_marks_are_found_in_pieces_of_any_size() {
        let mut stream = Vec::new();
        for number in 1..=3_u8 {
            stream.extend(frame_header(DATA, 1000));
            stream.extend([number; 1000]);
            stream.extend(frame_header(MARK, MARK_BYTES));
            stream.extend([number; MARK_BYTES]);
        }
        for most in [1, 2, 3, 7, 64, 5000] {
            assert_eq!(read(&stream, most), Ok((vec![[1; 8], [2; 8], [3; 8]], 3000)), "{most}");
        }
    }

    #[test]
    fn a_key_is_hexadecimal_digits() {
        assert_eq!(parse_key(&"0f".repeat(16)), Some([15; 16]));
        for wrong in ["", "0f", &"0g".repeat(16), &"é".repeat(16), &"+f".repeat(16)] {
            assert!(parse_key(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn other_kinds_and_lengths_are_refused() {
        for header in [frame_header(2, 8), frame_header(MARK, 7), frame_header(DATA, 0), [0xff; 5]] {
            assert_eq!(read(&header, 5), Err(NotFrames), "{header:?}");
        }
    }

    proptest! {
        #[test]
        fn any_stream_is_read_or_refused(
            stream in proptest::collection::vec(prop_oneof![Just(0), any::<u8>()], 0..3000), most in 1..100_usize,
        ) {
            let _ = read(&stream, most);
        }

        #[test]
        fn any_opening_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), OPENING_BYTES)) {
            let _ = Opening::parse(&bytes.try_into().unwrap());
        }

        #[test]
        fn an_opening_is_read_as_it_was_written(
            session in any::<u64>(), key in any::<Key>(), purpose in 0..3_usize, buffer in 0..2_usize,
            index in any::<u16>(), congestion in "[a-z0-9_]{0,15}",
        ) {
            let purpose = [Purpose::Download, Purpose::Upload, Purpose::Exchange][purpose];
            let send_buffer = [SendBuffer::Short, SendBuffer::Kernel][buffer];
            let opening = Opening { session: SessionId(session), key, purpose, send_buffer, index, congestion };
            prop_assert_eq!(Opening::parse(&opening.bytes()), Some(opening));
        }
    }
}
