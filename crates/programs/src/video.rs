//! `video`: a player that streams a video as DASH (ISO/IEC 23009-1) and HLS (RFC 8216) do. It requests one segment after
//! the other over a persistent connection (RFC 9112, section 9.3), each in the bit rate that `throughput.rs` chooses.
//! While its buffer holds more than `buffer`, it requests nothing, so it is on and off in turn: the segments come in
//! bursts, a segment apart, as soon as it keeps up with the path (Akhshabi, Begen and Dovrolis, MMSys 2011).
//!
//! Departures from players: there are no manifest, no initialisation segments and no audio, all segments of a bit rate
//! have the same size, requests are never abandoned, and the viewer never pauses or seeks.

use bufferscope_scenario::VideoTraffic;

use crate::agenda::{Agenda, Task};
use crate::playback::Playback;
use crate::random::{Random, Uniform};
use crate::sockets::{Ask, Opening, Role, Sockets, Transfer};
use crate::starts::Starts;
use crate::streams::{Run, Stream};
use crate::throughput::Throughput;

/// Its only task besides beginning: to request the next segment.
const REQUEST: Task = Task::Step(0);
/// Number of its connection.
const CONNECTION: u32 = 1;

/// A player, and the server of its video.
#[derive(Debug)]
pub(crate) struct Video {
    parameters: VideoTraffic,
    throughput: Throughput,
    playback: Playback,
    under_way: Option<Segment>,
    opened: bool,
    stopped: bool,
}

/// A segment that has not arrived.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// When the player began to fetch it. For the first one, that is when it opened the connection.
    started_ns: u64,
    requested_ns: u64,
    bytes: u64,
}

impl Stream for Video {
    type Parameters = VideoTraffic;

    fn new<U: Uniform>(parameters: &VideoTraffic, _: Random, starts: &mut Starts<U>, agenda: &mut Agenda) -> Self {
        if let Some(at_ns) = starts.after(0) {
            agenda.plan(at_ns, Task::Begin);
        }
        let &VideoTraffic { segment_ns, startup_ns, resume_ns, .. } = parameters;
        Self {
            parameters: parameters.clone(),
            throughput: Throughput::default(),
            playback: Playback::new(segment_ns, startup_ns, resume_ns),
            under_way: None,
            opened: false,
            stopped: false,
        }
    }

    /// The player connects, or its buffer has room again.
    fn on_task<U: Uniform, S: Sockets>(&mut self, task: Task, run: &mut Run<'_, U, S>) -> Result<(), S::Error> {
        if task != Task::Begin {
            return self.fetch(run);
        }
        self.opened = true;
        self.under_way = Some(self.next_segment(run.now_ns));
        run.sockets.open(&Opening { number: CONNECTION, data_from: Role::Server, expects: None })
    }

    fn on_established<U: Uniform, S: Sockets>(&mut self, _: u32, run: &mut Run<'_, U, S>) -> Result<(), S::Error> {
        if self.stopped {
            return run.sockets.close(CONNECTION);
        }
        self.request(run.now_ns, run.sockets)
    }

    /// A segment has arrived.
    fn on_arrived<U: Uniform, S: Sockets>(&mut self, _: u32, run: &mut Run<'_, U, S>) -> Result<(), S::Error> {
        let Some(Segment { started_ns, requested_ns, bytes }) = self.under_way.take() else { return Ok(()) };
        let now_ns = run.now_ns;
        self.throughput.measured(bytes, now_ns.saturating_sub(requested_ns));
        self.playback.arrived(now_ns);
        run.sockets.record(Transfer { connection: CONNECTION, started_ns, finished_ns: Some(now_ns), bytes })?;
        if self.stopped {
            return run.sockets.close(CONNECTION);
        }
        match self.playback.buffered_ns(now_ns).saturating_sub(self.parameters.buffer_ns) {
            0 => self.fetch(run),
            too_much_ns => {
                run.agenda.plan(now_ns + too_much_ns, REQUEST);
                Ok(())
            }
        }
    }

    /// The viewer leaves. A segment that is under way still arrives.
    fn on_stop<S: Sockets>(&mut self, agenda: &mut Agenda, sockets: &mut S) -> Result<(), S::Error> {
        agenda.clear();
        self.stopped = true;
        if self.opened && self.under_way.is_none() { sockets.close(CONNECTION) } else { Ok(()) }
    }

    fn unfinished(&mut self) -> Vec<Transfer> {
        let segment = self.under_way.take().into_iter();
        segment
            .map(|Segment { started_ns, bytes, .. }| Transfer {
                connection: CONNECTION,
                started_ns,
                finished_ns: None,
                bytes,
            })
            .collect()
    }
}

impl Video {
    fn next_segment(&self, now_ns: u64) -> Segment {
        let rate_bps = self.throughput.choose(&self.parameters.rates_bps);
        Segment { started_ns: now_ns, requested_ns: now_ns, bytes: self.parameters.segment_bytes(rate_bps) }
    }

    /// Fetches the next segment, unless the entry stops at this very moment.
    fn fetch<U: Uniform, S: Sockets>(&mut self, run: &mut Run<'_, U, S>) -> Result<(), S::Error> {
        if run.now_ns >= run.starts.stop_ns {
            return Ok(());
        }
        self.under_way = Some(self.next_segment(run.now_ns));
        self.request(run.now_ns, run.sockets)
    }

    fn request<S: Sockets>(&mut self, now_ns: u64, sockets: &mut S) -> Result<(), S::Error> {
        let Some(segment) = &mut self.under_way else { return Ok(()) };
        segment.requested_ns = now_ns;
        let request_bytes = self.parameters.request_bytes.into();
        sockets.ask(CONNECTION, Ask { request_bytes, response_bytes: segment.bytes, last: false })
    }
}

#[cfg(test)]
mod tests;
