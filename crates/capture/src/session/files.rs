//! Reads several files together.

use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use super::SessionError;
use super::directions::{Directions, complement};
use crate::file::{FileError, Format, Interface, Packet, Reader};

/// A file, or a stream, to read.
pub struct Source {
    /// Its name.
    pub name: String,
    /// Its content.
    pub stream: Box<dyn Read + Send>,
}

/// The summary of a file.
#[derive(Clone, Debug, Serialize)]
pub struct FileNotes {
    /// Its name.
    pub name: String,
    /// Its format: `pcap` or `pcapng`.
    pub format: &'static str,
    /// Whether it was compressed with gzip.
    pub is_compressed: bool,
    /// Packets read from it.
    pub packets: u64,
    /// Why it was not read to its end; `None`: it was read completely.
    pub ended: Option<String>,
}

struct File {
    reader: Reader,
    /// The time by which its current packet is ordered; `None`: there are no more.
    next_ns: Option<i64>,
    notes: FileNotes,
}

/// All files, each with its current packet.
pub(super) struct Files {
    files: Vec<File>,
    /// Two files of one direction each.
    put_together: Option<[usize; 2]>,
    read_bytes: Arc<AtomicU64>,
}

impl Files {
    pub(super) fn open(sources: Vec<Source>) -> Result<Self, SessionError> {
        let read_bytes = Arc::new(AtomicU64::new(0));
        let are_several = sources.len() > 1;
        let mut beginnings = Vec::new();
        let open = |Source { name, stream }: Source| {
            let mut counted = Counted { stream, bytes: Arc::clone(&read_bytes) };
            let failed = |source| SessionError::File { file: name.clone(), source: FileError::Read { at: 0, source } };
            let start = if are_several { start(&mut counted).map_err(failed)? } else { Vec::new() };
            if are_several {
                beginnings.push(Directions::of(&start));
            }
            match Reader::open(Cursor::new(start).chain(counted)) {
                Ok(reader) => Ok(File::new(name, reader)),
                Err(source) => Err(SessionError::File { file: name, source }),
            }
        };
        let files = sources.into_iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let mut files = Self { files, put_together: complement(&beginnings), read_bytes };
        for file in 0..files.files.len() {
            files.advance(file);
        }
        Ok(files)
    }

    /// The file whose current packet comes first.
    #[inline]
    pub(super) fn earliest(&self) -> Option<usize> {
        match &self.files[..] {
            [one] => one.next_ns.map(|_| 0),
            several => {
                let times = several.iter().enumerate().filter_map(|(file, each)| Some((each.next_ns?, file)));
                times.min().map(|(_, file)| file)
            }
        }
    }

    #[inline]
    pub(super) fn packet(&self, file: usize) -> Packet<'_> {
        self.files[file].reader.packet()
    }

    #[inline]
    pub(super) fn advance(&mut self, file: usize) {
        self.files[file].advance();
    }

    pub(super) fn interface(&self, file: usize, interface: usize) -> &Interface {
        &self.files[file].reader.interfaces()[interface]
    }

    pub(super) fn name(&self, file: usize) -> &str {
        &self.files[file].notes.name
    }

    /// Finds two files with one direction each.
    pub(super) fn put_together(&self) -> Option<[usize; 2]> {
        self.put_together
    }

    /// A number that is equal for files whose times come from one clock.
    #[inline]
    pub(super) fn clock(&self, file: usize) -> u16 {
        match self.put_together {
            Some([first, second]) if second == file => first as u16,
            _ => file as u16,
        }
    }

    pub(super) fn is_over(&self, file: usize) -> bool {
        self.files[file].next_ns.is_none()
    }

    pub(super) fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn finish(self) -> Vec<FileNotes> {
        self.files.into_iter().map(|file| file.notes).collect()
    }
}

impl File {
    fn new(name: String, reader: Reader) -> Self {
        let format = match reader.format() {
            Format::Pcap => "pcap",
            Format::Pcapng => "pcapng",
        };
        let is_compressed = reader.is_compressed();
        Self { reader, next_ns: None, notes: FileNotes { name, format, is_compressed, packets: 0, ended: None } }
    }

    #[inline]
    fn advance(&mut self) {
        match self.reader.advance() {
            Ok(true) => {
                self.notes.packets += 1;
                // A packet without a time keeps its position in the file.
                self.next_ns = self.reader.packet().t_ns.or(self.next_ns).or(Some(i64::MIN));
            }
            Ok(false) => self.next_ns = None,
            Err(error) => {
                self.notes.ended = Some(error.to_string());
                self.next_ns = None;
            }
        }
    }
}

/// Reads the start of a file, by which files with one direction each are recognised.
fn start(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    const START_BYTES: u64 = 256 * 1024;
    let mut start = Vec::new();
    stream.take(START_BYTES).read_to_end(&mut start)?;
    Ok(start)
}

/// Counts the bytes read from the files, before decompression.
struct Counted<R> {
    stream: R,
    bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(buffer)?;
        self.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}
