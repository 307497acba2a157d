//! Reconstructs connections from their captured segments.
//!
//! [`Analysis`] takes segments in the order of capture and records rows about them, in bounded memory: for each
//! connection it keeps only the data in flight, and it drops connections that are closed or idle. It makes no
//! assumptions about the segments: the beginning or one direction of a connection may be missing, and headers may be
//! nonsense.

mod capture_points;
mod connection;
mod flow;
mod halves;
mod one_way;
mod ranges;
mod rounds;
mod skew;
mod stamps;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use bufferscope_records::{Recorder, Sink};
use serde::Serialize;

use crate::{Endpoint, Segment};
use connection::{Connection, Context};
pub use flow::{End, FlowSummary, Kinds};

/// The name of the traffic whose flows are those of the captures: `tcp/1`, `tcp/2`, ...
pub const TRAFFIC: &str = "tcp";
/// Number of segments between two searches for connections that are over.
const SWEEP_SEGMENTS: u64 = 1 << 16;
/// A closed connection may still have retransmissions under way.
const CLOSED_NS: i64 = 60_000_000_000;
/// Connections that were silent for longer are considered over.
const IDLE_NS: i64 = 600_000_000_000;
/// Maximum number of ranges in memory for all connections; a range has about 64 bytes.
const MOST_RANGES: usize = 2_000_000;

/// How much is kept and recorded.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Time between two samples of a flow.
    pub interval_ns: u64,
    /// Samples after which the interval is doubled.
    pub most_samples: u64,
    /// Connections that are followed at a time.
    pub most_connections: usize,
    /// Flows with a summary at the end.
    pub most_summaries: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { interval_ns: 10_000_000, most_samples: 2_000_000, most_connections: 65_536, most_summaries: 10_000 }
    }
}

/// The results of the analysis besides the records.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The flows, in the order in which they ended; only the first ones if there are too many.
    pub flows: Vec<FlowSummary>,
    /// Flows that are in the records.
    pub flows_recorded: u64,
    /// Segments of connections that were not followed, because there were too many at the same time.
    pub segments_left_out: u64,
    /// The time between two samples of a flow at the end. It is longer than requested if there were too many samples.
    pub sample_interval_ns: u64,
    /// The largest ordinary payload of the flow with the most data; `None`: there was no data.
    pub mss_bytes: Option<u32>,
}

/// Follows connections.
#[derive(Debug)]
pub struct Analysis {
    settings: Settings,
    interval_ns: i64,
    numbers: HashMap<[Endpoint; 2], u32>,
    /// Connections by number; `None`: the number is free.
    connections: Vec<Option<Box<Connection>>>,
    free: Vec<u32>,
    /// The connection of the last segment, a cache: the next segment mostly belongs to it, too.
    last: Option<([Endpoint; 2], u32)>,
    next_flow: u32,
    sampled: u64,
    next_doubling: u64,
    segments: u64,
    summary: Summary,
}

impl Analysis {
    /// An analysis that has seen no segments yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            interval_ns: i64::try_from(settings.interval_ns).unwrap_or(i64::MAX / 4).clamp(1, i64::MAX / 4),
            numbers: HashMap::new(),
            connections: Vec::new(),
            free: Vec::new(),
            last: None,
            next_flow: 1,
            sampled: 0,
            next_doubling: settings.most_samples.max(1),
            segments: 0,
            summary: Summary::default(),
        }
    }

    /// Processes the next segment. Times in the records count from `start_ns`; an earlier segment gets that time.
    pub fn segment<S: Sink>(&mut self, segment: &Segment, start_ns: i64, recorder: &mut Recorder<S>) {
        let t_ns = segment.t_ns.saturating_sub(start_ns).clamp(0, i64::MAX / 4);
        let segment = &Segment { t_ns, ..*segment };
        self.segments += 1;
        if self.segments.is_multiple_of(SWEEP_SEGMENTS) {
            self.sweep(t_ns, recorder);
        }
        let direction = usize::from(segment.from > segment.to);
        let ends = if direction == 0 { [segment.from, segment.to] } else { [segment.to, segment.from] };
        let Some(number) = self.number(ends) else {
            self.summary.segments_left_out += 1;
            return;
        };
        let entry = &mut self.connections[number as usize];
        let connection = entry.get_or_insert_with(|| Box::new(Connection::new(ends)));
        let mut context = Context {
            recorder,
            interval_ns: self.interval_ns,
            next_flow: &mut self.next_flow,
            sampled: &mut self.sampled,
        };
        if connection.is_reopened_by(segment, direction) {
            let old = std::mem::replace(connection, Box::new(Connection::new(ends)));
            add_flows(&mut self.summary, self.settings.most_summaries, old.finish(&mut context));
        }
        connection.segment(segment, direction, &mut context);
        if self.sampled >= self.next_doubling {
            self.interval_ns = self.interval_ns.saturating_mul(2).min(i64::MAX / 4);
            self.next_doubling = self.sampled.saturating_add(self.settings.most_samples.max(1));
        }
    }

    /// The number of a connection; `None`: there are too many.
    fn number(&mut self, ends: [Endpoint; 2]) -> Option<u32> {
        if let Some((last, number)) = self.last
            && last == ends
        {
            return Some(number);
        }
        let number = match self.numbers.get(&ends) {
            Some(number) => *number,
            None if self.numbers.len() >= self.settings.most_connections => return None,
            None => {
                let number = self.free.pop().unwrap_or_else(|| {
                    self.connections.push(None);
                    (self.connections.len() - 1) as u32
                });
                self.numbers.insert(ends, number);
                number
            }
        };
        self.last = Some((ends, number));
        Some(number)
    }

    /// Finishes the connections that are over. If the others still need too much memory, finishes them all.
    fn sweep<S: Sink>(&mut self, now_ns: i64, recorder: &mut Recorder<S>) {
        let held: usize = self.connections.iter().flatten().map(|connection| connection.held()).sum();
        let full = held > MOST_RANGES;
        self.finish_those(recorder, |connection| {
            let silent_ns = now_ns - connection.last_ns();
            full || silent_ns > IDLE_NS || (silent_ns > CLOSED_NS && connection.is_over())
        });
    }

    fn finish_those<S: Sink>(&mut self, recorder: &mut Recorder<S>, is_over: impl Fn(&Connection) -> bool) {
        let mut context = Context {
            recorder,
            interval_ns: self.interval_ns,
            next_flow: &mut self.next_flow,
            sampled: &mut self.sampled,
        };
        for (number, entry) in self.connections.iter_mut().enumerate() {
            let Some(connection) = entry.take_if(|connection| is_over(connection)) else { continue };
            self.numbers.remove(&connection.ends());
            self.free.push(number as u32);
            add_flows(&mut self.summary, self.settings.most_summaries, connection.finish(&mut context));
        }
        self.last = None;
    }

    /// Ends the analysis after the last segment.
    pub fn finish<S: Sink>(mut self, recorder: &mut Recorder<S>) -> Summary {
        let mut context = Context {
            recorder,
            interval_ns: self.interval_ns,
            next_flow: &mut self.next_flow,
            sampled: &mut self.sampled,
        };
        for connection in self.connections.into_iter().flatten() {
            add_flows(&mut self.summary, self.settings.most_summaries, connection.finish(&mut context));
        }
        self.summary.flows_recorded = u64::from(self.next_flow - 1);
        self.summary.sample_interval_ns = self.interval_ns.unsigned_abs();
        let largest = self.summary.flows.iter().max_by_key(|flow| flow.delivered_bytes);
        self.summary.mss_bytes = largest.map(|flow| flow.mss_bytes).filter(|mss| *mss > 0);
        self.summary
    }
}

fn add_flows(summary: &mut Summary, most: usize, flows: impl Iterator<Item = FlowSummary>) {
    for flow in flows {
        if summary.flows.len() < most {
            summary.flows.push(flow);
        }
    }
}
