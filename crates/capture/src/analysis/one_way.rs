//! Changes of the one-way delay of packets between two vantage points.

use std::collections::VecDeque;

use super::skew::Delay;
use crate::{Options, Segment};

/// Maximum number of packets that have been seen at one vantage point only.
const MOST_WAITING: usize = 4096;
/// How many packets to search for a match: packets in between were lost or overtaken.
const MOST_AHEAD: usize = 256;
/// Maximum number of pairs for one direction. Beyond that, every second pair is dropped, and the sampling interval
/// doubles.
const MOST_PAIRS: usize = 16_384;

/// The fields that identify a packet among those of its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packet {
    seq: u32,
    ack: u32,
    payload_bytes: u32,
    window: u16,
    ip_id: Option<u16>,
    options: Options,
}

/// The times at which a packet passed the two vantage points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) times_ns: [i64; 2],
    pub(super) has_data: bool,
}

/// The packets of one direction at two vantage points.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    waiting: [VecDeque<(Packet, i64)>; 2],
    pairs: Vec<Pair>,
    matched: u64,
    /// One in 2^n pairs is kept.
    thinning: u32,
}

impl Pairs {
    /// Processes a packet that was seen at the first (0) or the second (1) vantage point.
    pub(super) fn seen(&mut self, segment: &Segment, vantage_point: usize) {
        let &Segment { t_ns, seq, ack, payload_bytes, window, ip_id, options, .. } = segment;
        let packet = Packet { seq, ack, payload_bytes, window, ip_id, options };
        let other = &mut self.waiting[1 - vantage_point];
        if let Some(index) = other.iter().take(MOST_AHEAD).position(|(waiting, _)| *waiting == packet) {
            let other_ns = other[index].1;
            other.drain(..=index);
            let times_ns = if vantage_point == 0 { [t_ns, other_ns] } else { [other_ns, t_ns] };
            self.keep(Pair { times_ns, has_data: payload_bytes > 0 });
            return;
        }
        let own = &mut self.waiting[vantage_point];
        if own.len() == MOST_WAITING {
            own.pop_front();
        }
        own.push_back((packet, t_ns));
    }

    fn keep(&mut self, pair: Pair) {
        self.matched += 1;
        if !self.matched.is_multiple_of(1 << self.thinning) {
            return;
        }
        if self.pairs.len() == MOST_PAIRS {
            let mut index = 0;
            self.pairs.retain(|_| {
                index += 1;
                index % 2 == 0
            });
            self.thinning = (self.thinning + 1).min(40);
        }
        self.pairs.push(pair);
    }

    /// Number of pairs and packets in memory.
    pub(super) fn held(&self) -> usize {
        self.pairs.len() + self.waiting.iter().map(VecDeque::len).sum::<usize>()
    }

    /// The delays from the vantage point `first` to the other, with the times at the first.
    pub(super) fn delays(&self, first: usize) -> impl Iterator<Item = Delay> {
        let delay = move |pair: &Pair| Delay {
            t_ns: pair.times_ns[first],
            delay_ns: pair.times_ns[1 - first].saturating_sub(pair.times_ns[first]),
        };
        self.pairs.iter().map(delay)
    }

    /// Each packet's time at the vantage point `first`, whether it has data, and by how much its delay to the other
    /// exceeds the smallest. The offset between the two clocks cancels out. `skew` is that of the other vantage point's
    /// clock.
    pub(super) fn changes(&self, first: usize, skew: f64) -> impl Iterator<Item = (i64, bool, u64)> {
        let straight = move |Delay { t_ns, delay_ns }: Delay| delay_ns.saturating_sub((skew * t_ns as f64) as i64);
        let least = self.delays(first).map(straight).min().unwrap_or(0);
        self.pairs
            .iter()
            .zip(self.delays(first))
            .map(move |(pair, delay)| (delay.t_ns, pair.has_data, straight(delay).saturating_sub(least).unsigned_abs()))
    }
}
