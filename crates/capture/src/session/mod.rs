//! Reads captures together: the packets of all files in the order of their times, counted, and what they show passed on.

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

/// The most files that are read together.
pub const MOST_FILES: usize = 512;

/// Packets between two calls of the progress callback.
const PACKETS_PER_CALL: u64 = 1 << 16;

/// Takes what captures show. Times are nanoseconds since the first packet.
pub trait Follower {
    /// A TCP segment. Its time is nanoseconds since 1970, as in its file; `first_ns` is that of the first packet.
    fn segment(&mut self, segment: &Segment, first_ns: i64);
    /// A ping was found: what to call it (`ping`, `ping-2`, ...).
    fn ping(&mut self, name: &str);
    /// An echo request of the ping of this number (from 0): when it was seen, and how long after it its reply.
    fn echo(&mut self, ping: usize, seq: u64, sent_ns: u64, rtt_ns: Option<u64>);
}

/// Captures could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// A file is no capture, or not even its start can be read.
    #[error("{file}: {source}")]
    File {
        /// Its name.
        file: String,
        /// What is wrong.
        source: FileError,
    },
    /// More than can be distinguished.
    #[error("found more than {allowed} {what}; allowed: {allowed}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        allowed: usize,
    },
    /// The callback asked to stop.
    #[error("stopped")]
    Stopped,
}

/// What was read, besides what was passed to the follower.
#[derive(Clone, Debug, Serialize)]
pub struct Session {
    /// The files, in the order given.
    pub files: Vec<FileNotes>,
    /// Where packets were captured: a segment's `place` is an index.
    pub places: Vec<VantagePoint>,
    /// What the packets were.
    pub counts: Counts,
    /// The pings, in the order of their numbers.
    pub pings: Vec<EchoNotes>,
    /// The numbers of two files of one direction each, which are put together as if they had one clock.
    pub put_together: Option<[usize; 2]>,
    /// Connections of QUIC, those with the most data first.
    pub quic: Vec<QuicNotes>,
    /// Datagrams of QUIC connections beyond the most that are followed.
    pub quic_left_out: u64,
    /// Pings beyond the most that are followed.
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
        places: VantagePoints::default(),
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
    places: VantagePoints,
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
        let place = self.places.of(file, &packet, t_ns, files)?;
        let link_type = self.places.link_type(place);
        let mut found = 0;
        decode_each(link_type, packet.data, packet.wire_bytes, &mut |decoded| {
            found += 1;
            let at = Captured { t_ns, place, file: self.places.file(place, files), first_ns };
            self.found(decoded, &packet, at);
        });
        self.counts.more_in_frames += u64::saturating_sub(found, 1);
        Ok(())
    }

    #[inline]
    fn found(&mut self, decoded: Result<Decoded, Undecoded>, packet: &Packet<'_>, at: Captured) {
        match decoded {
            Ok(decoded) if self.copies.has(&decoded, at.place, at.t_ns) => self.counts.copies += 1,
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
                self.echoes.seen(decoded, echo, t_ns, (at.place, at.file), self.follower);
            }
            Transport::Udp { quic: Some(_), .. } => {
                let t_ns = u64::try_from(at.t_ns.saturating_sub(at.first_ns)).unwrap_or(0);
                self.quic.seen(decoded, t_ns, at.place);
            }
            Transport::Udp { .. } | Transport::Other => {}
        }
    }

    fn finish(mut self, files: Files) -> Session {
        let first_ns = self.first_ns;
        let end_ns = first_ns.map_or(0, |first| u64::try_from(self.last_ns.saturating_sub(first)).unwrap_or(0));
        let (pings, pings_left_out) = self.echoes.finish(end_ns, self.follower);
        let places = self.places.finish(&files);
        self.counts.doubtful_copies = self.copies.doubtful();
        let (quic, quic_left_out) = self.quic.finish();
        Session {
            put_together: files.put_together(),
            quic,
            quic_left_out,
            files: files.finish(),
            places,
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
    place: u16,
    file: u16,
    /// The time of the first packet of all.
    first_ns: i64,
}

#[inline]
fn segment(decoded: &Decoded, tcp: &Tcp, at: Captured) -> Segment {
    Segment {
        t_ns: at.t_ns,
        place: at.place,
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
