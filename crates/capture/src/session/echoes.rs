//! Pings in a capture: echo requests, and the time until each was answered.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use serde::Serialize;

use super::Follower;
use crate::decode::{Decoded, Echo};

/// Maximum number of pings that are followed.
const MOST_PINGS: usize = 256;

/// Maximum number of pairs of a ping and a vantage point that sees it.
const MOST_SIGHTINGS: usize = 1024;

/// Maximum number of outstanding requests of a ping. Beyond that, the oldest counts as lost.
const MOST_WAITING: usize = 4096;

/// A request without a reply counts as lost if the capture continues for this long. Replies may be later, but `ping`
/// itself waits no longer than 10 s after its last request.
const PATIENCE_NS: u64 = 10_000_000_000;

/// The summary of a ping.
#[derive(Clone, Debug, Serialize)]
pub struct EchoNotes {
    /// The name of its probes.
    pub name: String,
    /// The host that sends the requests.
    pub from: IpAddr,
    /// The host that answers.
    pub to: IpAddr,
    /// The vantage point at which they were captured.
    #[serde(rename = "place")]
    pub vantage_point: u16,
    /// Requests seen.
    pub requests: u64,
    /// Requests with a reply.
    pub answered: u64,
    /// Requests shortly before the capture's end, whose replies may have come after it: they are not in the records.
    pub unknown: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    from: IpAddr,
    to: IpAddr,
    id: u16,
    vantage_point: u16,
}

impl Key {
    fn is_beside(self, other: Self) -> bool {
        self.vantage_point != other.vantage_point
            && Self { vantage_point: 0, ..self } == Self { vantage_point: 0, ..other }
    }
}

#[derive(Debug)]
struct Waiting {
    seq: u16,
    number: u64,
    sent_ns: u64,
    rtt_ns: Option<u64>,
    /// Whether its reply has been seen at another vantage point only.
    is_beside: bool,
}

#[derive(Debug)]
struct Ping {
    notes: EchoNotes,
    file: u16,
    waiting: VecDeque<Waiting>,
    last: Option<(u16, u64)>,
    longest_ns: u64,
}

/// All pings.
#[derive(Debug, Default)]
pub(super) struct Echoes {
    indices: HashMap<Key, usize>,
    pings: Vec<Ping>,
    left_out: u64,
}

impl Echoes {
    /// Processes an echo. `seen_at` has its vantage point and file.
    pub(super) fn seen(
        &mut self,
        packet: &Decoded,
        echo: Echo,
        t_ns: u64,
        seen_at: (u16, u16),
        follower: &mut impl Follower,
    ) {
        let (vantage_point, file) = seen_at;
        let (from, to) = if echo.is_reply { (packet.to, packet.from) } else { (packet.from, packet.to) };
        let key = Key { from, to, id: echo.id, vantage_point };
        match self.indices.get(&key).copied() {
            Some(index) if echo.is_reply => self.pings[index].replied(echo.seq, t_ns, vantage_point),
            Some(index) if self.pings[index].notes.vantage_point != vantage_point => {}
            Some(index) => {
                self.pings[index].requested(echo.seq, t_ns);
                self.pings[index].emit(index, t_ns, follower);
            }
            None if echo.is_reply => self.answered_beside(key, echo, t_ns, file),
            None if self.is_requested_beside(key, echo.seq, t_ns, file) => {}
            None if self.pings.len() >= MOST_PINGS => self.left_out += 1,
            None => self.begin(key, file, echo, t_ns, follower),
        }
    }

    /// Whether a request was just seen at another vantage point of the same file. The ping is followed there, because
    /// that is nearer to its sender.
    fn is_requested_beside(&mut self, key: Key, seq: u16, t_ns: u64, file: u16) -> bool {
        let is_sent = |(other, index): &(&Key, &usize)| {
            let ping = &self.pings[**index];
            other.is_beside(key)
                && ping.file == file
                && ping.notes.vantage_point == other.vantage_point
                && ping.has_sent(seq, t_ns)
        };
        let Some(index) = self.indices.iter().find(is_sent).map(|(_, index)| *index) else { return false };
        self.remember(key, index);
        true
    }

    fn remember(&mut self, key: Key, index: usize) {
        if self.indices.len() < MOST_SIGHTINGS {
            self.indices.insert(key, index);
        }
    }

    /// Processes a reply at a vantage point without requests. Of the interfaces of one file, one may see the requests
    /// and another the replies. If no interface saw the request, it preceded the capture or took another path.
    fn answered_beside(&mut self, key: Key, echo: Echo, t_ns: u64, file: u16) {
        let is_asked = |(other, index): &(&Key, &usize)| {
            let ping = &self.pings[**index];
            other.is_beside(key) && ping.file == file && ping.notes.answered == 0
        };
        let latest = self.indices.iter().filter(is_asked).map(|(_, index)| *index).max();
        if let Some(index) = latest {
            self.remember(key, index);
            self.pings[index].replied(echo.seq, t_ns, key.vantage_point);
        }
    }

    fn begin(&mut self, key: Key, file: u16, echo: Echo, t_ns: u64, follower: &mut impl Follower) {
        let index = self.pings.len();
        let name = if index == 0 { "ping".to_owned() } else { format!("ping-{}", index + 1) };
        follower.ping(&name);
        let Key { from, to, vantage_point, .. } = key;
        let notes = EchoNotes { name, from, to, vantage_point, requests: 0, answered: 0, unknown: 0 };
        self.pings.push(Ping { notes, file, waiting: VecDeque::new(), last: None, longest_ns: 0 });
        self.pings[index].requested(echo.seq, t_ns);
        self.indices.insert(key, index);
    }

    /// Ends the capture. Returns the summaries, and the number of requests of pings that were not followed.
    pub(super) fn finish(self, end_ns: u64, follower: &mut impl Follower) -> (Vec<EchoNotes>, u64) {
        let finish = |(index, mut ping): (usize, Ping)| {
            ping.finish(index, end_ns, follower);
            ping.notes
        };
        (self.pings.into_iter().enumerate().map(finish).collect(), self.left_out)
    }
}

impl Ping {
    fn requested(&mut self, seq: u16, t_ns: u64) {
        // The field has 16 bits; `ping` continues at 0.
        let number = match self.last {
            None => u64::from(seq),
            Some((last, number)) => number.saturating_add_signed(i64::from(seq.wrapping_sub(last) as i16)),
        };
        self.last = Some((seq, number));
        self.notes.requests += 1;
        self.waiting.push_back(Waiting { seq, number, sent_ns: t_ns, rtt_ns: None, is_beside: false });
    }

    /// Whether a request with this number was just seen.
    fn has_sent(&self, seq: u16, t_ns: u64) -> bool {
        let latest = self.waiting.iter().rev().find(|waiting| waiting.seq == seq);
        latest.is_some_and(|latest| t_ns.saturating_sub(latest.sent_ns) <= PATIENCE_NS)
    }

    /// Processes a reply that was seen at a vantage point. It counts at the vantage point of the requests; at another
    /// one, only if it is not seen there.
    fn replied(&mut self, seq: u16, t_ns: u64, vantage_point: u16) {
        let is_here = vantage_point == self.notes.vantage_point;
        // The latest request with this number: an earlier one would be 2^16 requests ago.
        let request = self.waiting.iter_mut().rev().find(|waiting| waiting.seq == seq);
        let is_open = |request: &&mut Waiting| request.rtt_ns.is_none() || (is_here && request.is_beside);
        let Some(request) = request.filter(is_open) else { return };
        let Some(rtt_ns) = t_ns.checked_sub(request.sent_ns) else { return };
        self.notes.answered += u64::from(request.rtt_ns.is_none());
        request.rtt_ns = Some(rtt_ns);
        request.is_beside = !is_here;
        self.longest_ns = self.longest_ns.max(rtt_ns);
    }

    /// Passes on the requests whose outcome is known, in the order in which they were sent.
    fn emit(&mut self, index: usize, now_ns: u64, follower: &mut impl Follower) {
        while let Some(first) = self.waiting.front() {
            let is_known = first.rtt_ns.is_some() || now_ns.saturating_sub(first.sent_ns) > PATIENCE_NS;
            if !is_known && self.waiting.len() <= MOST_WAITING {
                break;
            }
            follower.echo(index, first.number, first.sent_ns, first.rtt_ns);
            self.waiting.pop_front();
        }
    }

    fn finish(&mut self, index: usize, end_ns: u64, follower: &mut impl Follower) {
        let patience_ns = self.longest_ns.saturating_mul(2).clamp(1_000_000_000, PATIENCE_NS);
        for request in std::mem::take(&mut self.waiting) {
            if request.rtt_ns.is_none() && end_ns.saturating_sub(request.sent_ns) < patience_ns {
                self.notes.unknown += 1;
            } else {
                follower.echo(index, request.number, request.sent_ns, request.rtt_ns);
            }
        }
    }
}
