//! Reads capture files as a stream: pcap and pcapng, optionally compressed with gzip.
//!
//! Sources: the pcap and pcapng drafts of the IETF's opsawg (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng). A file
//! may be gigabytes long, may come through a pipe, and may be cut off anywhere: the packets before that point are read,
//! and the error that ends them says where it is.

mod error;
mod inflate;
mod options;
mod order;
mod pcap;
mod pcapng;
mod window;

use std::io::{Cursor, Read};

pub use error::FileError;
use inflate::Inflated;
use order::Order;
use window::Window;

/// The largest packet that is read. `tcpdump` captures at most 256 KiB; Linux has packets of up to 512 KiB.
pub const MOST_PACKET_BYTES: u32 = 1 << 20;

/// Maximum number of interfaces in one file.
pub const MOST_INTERFACES: usize = 4096;

/// An interface at which packets were captured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// The link type of its packets: a number of the registry (LINKTYPE_...).
    pub link_type: u16,
    /// Its name, such as `eth0`, if the file has it.
    pub name: Option<String>,
    /// The snap length: how many bytes of a packet are captured at most; 0: no limit.
    pub snap_bytes: u32,
    /// Packets that the interface received and that were dropped because the capture was too slow, as the file's
    /// statistics say. `None`: it has none.
    pub lost: Option<u64>,
    /// The section of a pcapng file in which it is, counted from 1; 0 in pcap.
    pub section: u32,
}

/// One captured packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Time of capture in nanoseconds since 1970; `None`: the file has no time.
    pub t_ns: Option<i64>,
    /// An index of [`Reader::interfaces`].
    pub interface: usize,
    /// Its length on the wire.
    pub wire_bytes: u32,
    /// Its captured bytes.
    pub data: &'a [u8],
}

/// The current packet: where it is in the window.
#[derive(Clone, Copy, Debug, Default)]
struct Current {
    t_ns: Option<i64>,
    interface: usize,
    wire_bytes: u32,
    from: usize,
    to: usize,
    /// How long the record is, header and padding included.
    record_bytes: usize,
}

/// Which of the two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The classic format of libpcap.
    Pcap,
    /// The format of blocks, Wireshark's default.
    Pcapng,
}

enum State {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
}

/// Reads the packets of one file.
pub struct Reader {
    window: Window<Box<dyn Read + Send>>,
    state: State,
    interfaces: Vec<Interface>,
    current: Current,
    is_compressed: bool,
}

impl Reader {
    /// Reads the start of a file, which identifies its format.
    pub fn open(stream: impl Read + Send + 'static) -> Result<Self, FileError> {
        let (head, stream) = begin(stream)?;
        let is_compressed = head.starts_with(&[0x1f, 0x8b]);
        let whole = Cursor::new(head).chain(stream);
        let stream: Box<dyn Read + Send> = if is_compressed { Box::new(Inflated::new(whole)) } else { Box::new(whole) };
        let mut window = Window::new(stream);
        let mut interfaces = Vec::new();
        filled(&mut window, 4)?;
        let state = match window.ahead().first_chunk::<4>() {
            Some(&pcapng::SECTION) => State::Pcapng(pcapng::Pcapng::default()),
            Some(magic) if pcap::Pcap::magic(*magic).is_some() => {
                State::Pcap(pcap::Pcap::open(&mut window, &mut interfaces)?)
            }
            _ => return Err(not_a_capture(window.ahead())),
        };
        Ok(Self { window, state, interfaces, current: Current::default(), is_compressed })
    }

    /// Advances to the next packet; returns `false` if no packet is left. After an error, no packet follows.
    pub fn advance(&mut self) -> Result<bool, FileError> {
        self.window.pass(self.current.record_bytes);
        self.current = Current::default();
        let next = match &mut self.state {
            State::Pcap(pcap) => pcap.next(&mut self.window)?,
            State::Pcapng(pcapng) => pcapng.next(&mut self.window, &mut self.interfaces)?,
        };
        self.current = next.unwrap_or_default();
        Ok(next.is_some())
    }

    /// The packet to which [`Reader::advance`] advanced.
    #[inline]
    pub fn packet(&self) -> Packet<'_> {
        let Current { t_ns, interface, wire_bytes, from, to, .. } = self.current;
        Packet { t_ns, interface, wire_bytes, data: &self.window.ahead()[from..to] }
    }

    /// The interfaces that the file has named so far.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// How much has been read, after decompression.
    pub fn passed_bytes(&self) -> u64 {
        self.window.passed()
    }

    /// Whether it is compressed.
    pub fn is_compressed(&self) -> bool {
        self.is_compressed
    }

    /// The file's format.
    pub fn format(&self) -> Format {
        match self.state {
            State::Pcap(_) => Format::Pcap,
            State::Pcapng(_) => Format::Pcapng,
        }
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Reader").field("interfaces", &self.interfaces).field("current", &self.current).finish()
    }
}

/// The first two bytes, by which gzip is recognised, and the rest.
fn begin(mut stream: impl Read) -> Result<(Vec<u8>, impl Read), FileError> {
    let mut head = Vec::with_capacity(2);
    stream.by_ref().take(2).read_to_end(&mut head).map_err(|source| FileError::Read { at: 0, source })?;
    Ok((head, stream))
}

/// Makes bytes available, as [`Window::fill`] does.
#[inline]
fn filled(window: &mut Window<impl Read>, count: usize) -> Result<usize, FileError> {
    window.fill(count).map_err(|source| FileError::Read { at: window.passed(), source })
}

/// Makes `count` bytes available, or returns an error that the file is cut off `within` something.
#[inline]
fn whole(window: &mut Window<impl Read>, count: usize, within: &'static str) -> Result<(), FileError> {
    let there = filled(window, count)?;
    if there < count {
        return Err(FileError::CutOff { at: window.passed() + there as u64, within });
    }
    Ok(())
}

/// Files that are often mistaken for captures, by their first bytes.
const OTHERS: [(&[u8], &str); 12] = [
    (b"\x28\xb5\x2f\xfd", "a file that is compressed with zstd (decompress it first: `zstd -d`)"),
    (b"\x04\x22\x4d\x18", "a file that is compressed with LZ4 (decompress it first: `lz4 -d`)"),
    (b"\xfd7zXZ\x00", "a file that is compressed with xz (decompress it first: `xz -d`)"),
    (b"BZh", "a file that is compressed with bzip2 (decompress it first: `bzip2 -d`)"),
    (b"PK\x03\x04", "a zip archive (unpack it first)"),
    (b"snoop\0\0\0", "a capture of snoop (convert it: `editcap -F pcapng OLD NEW`)"),
    (b"GMBU", "a capture of Microsoft Network Monitor (convert it: `editcap -F pcapng OLD NEW`)"),
    (b"RTSS", "a capture of Microsoft Network Monitor (convert it: `editcap -F pcapng OLD NEW`)"),
    (b"XCP\0", "a capture of Network Associates Sniffer (convert it: `editcap -F pcapng OLD NEW`)"),
    (b"PAR1", "a Parquet file"),
    (b"{", "JSON (other tools' results are read by `bufferscope import`)"),
    (b"\x7fELF", "a program"),
];

fn not_a_capture(ahead: &[u8]) -> FileError {
    let known = OTHERS.iter().find(|(start, _)| ahead.starts_with(start));
    let found = match (known, ahead) {
        (Some((_, what)), _) => (*what).to_owned(),
        (None, []) => "an empty file".to_owned(),
        (None, _) => {
            let bytes: Vec<String> = ahead.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
            format!("a file that begins with the bytes {}", bytes.join(" "))
        }
    };
    FileError::NotACapture { found }
}
