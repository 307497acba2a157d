//! Reads captures together: takes the packets of all files in the order of their times, counts them, and passes
//! segments and pings on.

mod choice;
mod copies;
mod counts;
mod directions;
mod echoes;
mod files;
mod quic;
mod spin;
mod vantage_points;

use std::ops::ControlFlow;

use serde::Serialize;

use crate::decode::{Decoded, Tcp, Transport, Undecoded, decode_each};
use crate::file::{FileError, Packet};
use crate::{Endpoint, Segment};

pub use choice::Choice;
use copies::Copies;
pub use counts::Counts;
pub use echoes::EchoNotes;
use echoes::Echoes;
use files::Files;
pub use files::{FileNotes, Source};
use quic::Connections;
pub use quic::QuicNotes;
pub use spin::SpinNotes;
pub use vantage_points::VantagePoint;
use vantage_points::VantagePoints;

/// Maximum number of files that are read together.
pub const MOST_FILES: usize = 512;

/// Packets between two calls of the progress callback.
const PACKETS_PER_CALL: u64 = 1 << 16;

/// Receives segments and pings. Times are nanoseconds since the first packet.
pub trait Follower {
    /// A TCP segment. Its time is nanoseconds since 1970, as in its file; `first_ns` is that of the first packet.
    fn segment(&mut self, segment: &Segment, first_ns: i64);
    /// A new ping, and its name (`ping`, `ping-2`, ...).
    fn ping(&mut self, name: &str);
    /// An echo request of the ping with this number (from 0): when it was seen, and the time until its reply.
    fn echo(&mut self, ping: usize, seq: u64, sent_ns: u64, rtt_ns: Option<u64>);
}

/// Captures could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// A file is not a capture, or not even its start can be read.
    #[error("{file}: {source}")]
    File {
        /// Its name.
        file: String,
        /// What is wrong.
        source: FileError,
    },
    /// There are too many of something.
    #[error("found more than {allowed} {what}; allowed: {allowed}")]
    TooMany {
        /// Of which thing there are too many.
        what: &'static str,
        /// How many there may be.
        allowed: usize,
    },
    /// The callback asked to stop.
    #[error("stopped")]
    Stopped,
}

/// The results, besides what was passed to the follower.
#[derive(Clone, Debug, Serialize)]
pub struct Session {
    /// The files, in the order given.
    pub files: Vec<FileNotes>,
    /// The vantage points; a segment's `vantage_point` is an index.
    #[serde(rename = "places")]
    pub vantage_points: Vec<VantagePoint>,
    /// Counters of packets.
    pub counts: Counts,
    /// The pings, in the order of their numbers.
    pub pings: Vec<EchoNotes>,
    /// The numbers of two files with one direction each, which are merged as if they had one clock.
    pub put_together: Option<[usize; 2]>,
    /// Connections of QUIC, those with the most data first.
    pub quic: Vec<QuicNotes>,
    /// Datagrams of QUIC connections that were not followed, because there were too many.
    pub quic_left_out: u64,
    /// Pings that were not followed, because there were too many.
    pub pings_left_out: u64,
    /// The time of the first packet, nanoseconds since 1970; `None`: there was none with a time.
    pub first_ns: Option<i64>,
    /// The time of the last packet.
    pub last_ns: Option<i64>,
}

/// Reads all sources to their ends. `progress` is called with the bytes read so far, as they are in the files.
pub fn read(
    sources: Vec<Source>,
    choice: &Choice,
    follower: &mut impl Follower,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Session, SessionError> {
    if sources.len() > MOST_FILES {
        return Err(SessionError::TooMany { what: "files", allowed: MOST_FILES });
    }
    let mut files = Files::open(sources)?;
    let mut reading = Reading {
        choice,
        follower,
        vantage_points: VantagePoints::default(),
        counts: Counts::default(),
        echoes: Echoes::default(),
        copies: Copies::default(),
        quic: Connections::default(),
        first_ns: None,
        last_ns: i64::MIN,
    };
    let mut packets = 0_u64;
    while let Some(file) = files.earliest() {
        if packets.is_multiple_of(PACKETS_PER_CALL) && progress(files.read_bytes()).is_break() {
            return Err(SessionError::Stopped);
        }
        packets += 1;
        reading.packet(file, &files)?;
        files.advance(file);
    }
    let _ = progress(files.read_bytes());
    Ok(reading.finish(files))
}

struct Reading<'a, F> {
    choice: &'a Choice,
    follower: &'a mut F,
    vantage_points: VantagePoints,
    counts: Counts,
    echoes: Echoes,
    copies: Copies,
    quic: Connections,
    first_ns: Option<i64>,
    last_ns: i64,
}

impl<F: Follower> Reading<'_, F> {
    #[inline]
    fn packet(&mut self, file: usize, files: &Files) -> Result<(), SessionError> {
        let packet = files.packet(file);
        self.counts.packet(&packet);
        let Some(t_ns) = packet.t_ns else {
            self.counts.without_time += 1;
            return Ok(());
        };
        let first_ns = *self.first_ns.get_or_insert(t_ns);
        self.last_ns = self.last_ns.max(t_ns);
        self.counts.before_first += u64::from(t_ns < first_ns);
        let vantage_point = self.vantage_points.of(file, &packet, t_ns, files)?;
        let link_type = self.vantage_points.link_type(vantage_point);
        let mut found = 0;
        decode_each(link_type, packet.data, packet.wire_bytes, &mut |decoded| {
            found += 1;
            let at = Captured { t_ns, vantage_point, file: self.vantage_points.file(vantage_point, files), first_ns };
            self.found(decoded, &packet, at);
        });
        self.counts.more_in_frames += u64::saturating_sub(found, 1);
        Ok(())
    }

    #[inline]
    fn found(&mut self, decoded: Result<Decoded, Undecoded>, packet: &Packet<'_>, at: Captured) {
        match decoded {
            Ok(decoded) if self.copies.has(&decoded, at.vantage_point, at.t_ns) => self.counts.copies += 1,
            Ok(decoded) => self.decoded(&decoded, packet, at),
            Err(reason) => self.counts.undecoded(reason),
        }
    }

    #[inline]
    fn decoded(&mut self, decoded: &Decoded, packet: &Packet<'_>, at: Captured) {
        if !self.choice.is_everything() && !self.choice.takes(decoded) {
            self.counts.not_chosen += 1;
            return;
        }
        self.counts.decoded(decoded, packet);
        match decoded.transport {
            Transport::Tcp(tcp) if tcp.is_fragment => self.counts.fragmented_segments += 1,
            Transport::Tcp(tcp) => {
                self.follower.segment(&segment(decoded, &tcp, at), at.first_ns);
            }
            Transport::Echo(echo) => {
                let t_ns = u64::try_from(at.t_ns.saturating_sub(at.first_ns)).unwrap_or(0);
                self.echoes.seen(decoded, echo, t_ns, (at.vantage_point, at.file), self.follower);
            }
            Transport::Udp { quic: Some(_), .. } => {
                let t_ns = u64::try_from(at.t_ns.saturating_sub(at.first_ns)).unwrap_or(0);
                self.quic.seen(decoded, t_ns, at.vantage_point);
            }
            Transport::Udp { .. } | Transport::Other => {}
        }
    }

    fn finish(mut self, files: Files) -> Session {
        let first_ns = self.first_ns;
        let end_ns = first_ns.map_or(0, |first| u64::try_from(self.last_ns.saturating_sub(first)).unwrap_or(0));
        let (pings, pings_left_out) = self.echoes.finish(end_ns, self.follower);
        let vantage_points = self.vantage_points.finish(&files);
        self.counts.doubtful_copies = self.copies.doubtful();
        let (quic, quic_left_out) = self.quic.finish();
        Session {
            put_together: files.put_together(),
            quic,
            quic_left_out,
            files: files.finish(),
            vantage_points,
            counts: std::mem::take(&mut self.counts),
            pings,
            pings_left_out,
            first_ns,
            last_ns: first_ns.map(|_| self.last_ns),
        }
    }
}

/// When and where a packet was captured.
#[derive(Clone, Copy, Debug)]
struct Captured {
    t_ns: i64,
    vantage_point: u16,
    file: u16,
    /// The time of the first packet of all files.
    first_ns: i64,
}

#[inline]
fn segment(decoded: &Decoded, tcp: &Tcp, at: Captured) -> Segment {
    Segment {
        t_ns: at.t_ns,
        vantage_point: at.vantage_point,
        file: at.file,
        from: Endpoint { address: decoded.from, port: tcp.from_port },
        to: Endpoint { address: decoded.to, port: tcp.to_port },
        seq: tcp.seq,
        ack: tcp.ack,
        flags: tcp.flags,
        window: tcp.window,
        payload_bytes: tcp.payload_bytes,
        ecn: decoded.ecn,
        ip_id: decoded.ip_id,
        ttl: decoded.ttl,
        options: tcp.options,
    }
}
