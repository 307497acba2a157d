//! Two endpoints and the path between them, deterministic: each direction has a delay, and optionally a rate, a queue limit
//! and a plan of misfortunes. Every event checks what must always hold (see [`Witness`](crate::witness::Witness)).

pub(crate) use crate::pipe::{Fate, Packet, Pipe};

use crate::witness::Witness;
use bufferscope_sim::packet::Ecn;
use bufferscope_sim::tcp::{Config, Endpoint, Outbox, Role, Sample, Segment};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MS;
pub(crate) const MSS: u64 = 1448;

/// Index of the connecting end.
pub(crate) const CLIENT: usize = 0;
/// Index of the other one.
pub(crate) const SERVER: usize = 1;

/// The whole network.
pub(crate) struct Net {
    pub(crate) now_ns: u64,
    pub(crate) ends: [Endpoint; 2],
    /// `pipes[i]` leads away from `ends[i]`.
    pub(crate) pipes: [Pipe; 2],
    arrivals: BinaryHeap<Reverse<(u64, u64, usize)>>,
    on_the_way: BTreeMap<u64, (Segment, Ecn)>,
    arrival_count: u64,
    /// When segments leave the queue of their own host, and with how much payload, where that is awaited.
    leaving: BinaryHeap<Reverse<(u64, u64, usize, u32)>>,
    /// By end and sequence number, when a segment leaves that queue as it was last sent.
    leaves_ns: BTreeMap<(usize, u64), u64>,
    witnesses: [Witness; 2],
    out: Outbox,
}

/// Who makes an end act.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// A segment that arrived or left, or the application.
    Event,
    /// Its timer.
    Timer,
}

impl Net {
    /// A path with the given one-way delay and nothing else.
    pub(crate) fn new(config: &Config, one_way_ns: u64) -> Self {
        Self::between(config, config, one_way_ns)
    }

    /// The same with different ends.
    pub(crate) fn between(client: &Config, server: &Config, one_way_ns: u64) -> Self {
        Self {
            now_ns: 0,
            ends: [Endpoint::new(client, Role::Client), Endpoint::new(server, Role::Server)],
            pipes: [Pipe::new(one_way_ns), Pipe::new(one_way_ns)],
            arrivals: BinaryHeap::new(),
            on_the_way: BTreeMap::new(),
            arrival_count: 0,
            leaving: BinaryHeap::new(),
            leaves_ns: BTreeMap::new(),
            witnesses: Default::default(),
            out: vec![],
        }
    }

    /// A bottleneck on the way from client to server.
    pub(crate) fn bottleneck(mut self, bits_per_second: u64, limit_packets: usize) -> Self {
        self.pipes[CLIENT].rates = vec![(0, bits_per_second)];
        self.pipes[CLIENT].limit_packets = limit_packets;
        self
    }

    /// Misfortunes on the way from client to server.
    pub(crate) fn fate(mut self, fate: impl FnMut(usize, &Packet) -> Fate + 'static) -> Self {
        self.pipes[CLIENT].fate = Box::new(fate);
        self
    }

    /// Misfortunes on the way back.
    pub(crate) fn fate_back(mut self, fate: impl FnMut(usize, &Packet) -> Fate + 'static) -> Self {
        self.pipes[SERVER].fate = Box::new(fate);
        self
    }

    /// The client connects, sends `bytes` and finishes; the server finishes when the client has.
    pub(crate) fn upload(mut self, bytes: u64) -> Self {
        self.act(CLIENT, |end, now_ns, out| {
            end.connect(now_ns, out);
            end.offer(now_ns, bytes, out);
            end.finish_sending(now_ns, out);
        });
        self
    }

    /// The client connects and sends without end.
    pub(crate) fn stream(mut self) -> Self {
        self.act(CLIENT, |end, now_ns, out| {
            end.connect(now_ns, out);
            end.offer(now_ns, u64::MAX, out);
        });
        self
    }

    /// Lets an application act.
    pub(crate) fn act(&mut self, who: usize, action: impl FnOnce(&mut Endpoint, u64, &mut Outbox)) {
        self.act_for(Cause::Event, who, action);
    }

    fn act_for(&mut self, cause: Cause, who: usize, action: impl FnOnce(&mut Endpoint, u64, &mut Outbox)) {
        let mut out = std::mem::take(&mut self.out);
        action(&mut self.ends[who], self.now_ns, &mut out);
        self.send(who, &mut out);
        self.out = out;
        self.witnesses[who].check(&self.ends[who], self.now_ns, cause == Cause::Timer);
        assert!(self.ends[who].acked_bytes() <= self.ends[1 - who].received_bytes());
    }

    /// Runs up to and including `until_ns`.
    pub(crate) fn run_until(&mut self, until_ns: u64) {
        while self.next_ns().is_some_and(|next_ns| next_ns <= until_ns) {
            self.step();
        }
        self.now_ns = self.now_ns.max(until_ns);
    }

    /// Runs until nothing will ever happen again; panics if that takes longer than `limit_ns`.
    pub(crate) fn run_to_end(&mut self, limit_ns: u64) {
        while let Some(next_ns) = self.next_ns() {
            assert!(
                next_ns <= limit_ns,
                "still busy at {next_ns}: {:?}",
                self.ends.each_ref().map(|end| end.sample(next_ns))
            );
            self.step();
        }
    }

    /// Runs until the condition holds; panics if it never does.
    pub(crate) fn run_while(&mut self, mut goes_on: impl FnMut(&Net) -> bool) {
        while goes_on(self) {
            assert!(self.next_ns().is_some_and(|ns| ns < 100 * SECOND), "nothing happens until {}", self.now_ns);
            self.step();
        }
    }

    pub(crate) fn sample(&self) -> Sample {
        self.ends[CLIENT].sample(self.now_ns)
    }

    pub(crate) fn cwnd_packets(&self) -> u64 {
        self.sample().cwnd_bytes / MSS
    }

    /// The client's data segments, as handed to the path.
    pub(crate) fn data_sent(&self) -> impl Iterator<Item = &Packet> {
        self.pipes[CLIENT].sent.iter().filter(|packet| packet.segment.len > 0)
    }

    /// The sequence number up to which an end may send, by what it was told.
    pub(crate) fn window_edge(&self, end: usize) -> u64 {
        self.witnesses[end].edge
    }

    /// The server's pure acknowledgements after the handshake, as handed to the path.
    pub(crate) fn acks_sent(&self) -> impl Iterator<Item = &Packet> {
        self.pipes[SERVER].sent.iter().filter(|packet| packet.segment.len == 0 && !packet.segment.flags.syn())
    }

    fn next_ns(&self) -> Option<u64> {
        let arrival = self.arrivals.peek().map(|Reverse((at_ns, ..))| *at_ns);
        let leaving = self.leaving.peek().map(|Reverse((at_ns, ..))| *at_ns);
        self.ends.iter().filter_map(Endpoint::deadline).chain(arrival).chain(leaving).min()
    }

    /// One event: what leaves a host before what arrives, and that before timers.
    fn step(&mut self) {
        let next_ns = self.next_ns().expect("an event");
        assert!(next_ns >= self.now_ns, "time went back");
        self.now_ns = next_ns;
        if self.leaving.peek().is_some_and(|Reverse((at_ns, ..))| *at_ns == next_ns) {
            let Reverse((_, _, from, len)) = self.leaving.pop().unwrap();
            self.act(from, |end, now_ns, out| {
                end.on_left_host(now_ns, len, out);
            });
        } else if self.arrivals.peek().is_some_and(|Reverse((at_ns, ..))| *at_ns == next_ns) {
            let Reverse((_, number, to)) = self.arrivals.pop().unwrap();
            let (segment, ecn) = self.on_the_way.remove(&number).unwrap();
            self.pipes[1 - to].delivered.push((next_ns, segment));
            self.witnesses[to].on_delivery(&segment);
            self.act(to, |end, now_ns, out| end.on_segment(now_ns, &segment, ecn, out));
        } else {
            let who = (0..2).find(|&i| self.ends[i].deadline() == Some(next_ns)).unwrap();
            self.act_for(Cause::Timer, who, |end, now_ns, out| end.on_timer(now_ns, out));
            assert!(self.ends[who].deadline() != Some(next_ns), "a timer that stays due");
        }
        if self.ends[SERVER].peer_finished() {
            self.act(SERVER, |end, now_ns, out| end.finish_sending(now_ns, out));
        }
    }

    fn send(&mut self, from: usize, out: &mut Outbox) {
        let mut sent = 0;
        while let Some(&outgoing) = out.get(sent) {
            sent += 1;
            let segment = outgoing.segment;
            let again = self.witnesses[from].on_sent(&segment);
            let carried = self.pipes[from].carry(Packet { sent_ns: self.now_ns, segment, ecn: outgoing.ecn, again });
            let charged = segment.len > 0 || segment.flags.fin();
            if charged && self.ends[from].awaits_departures() {
                self.arrival_count += 1;
                let leaves_ns = carried.leaves_ns.unwrap_or(self.now_ns);
                let left_ns = self.leaves_ns.insert((from, segment.seq), leaves_ns).unwrap_or(0);
                assert!(left_ns <= self.now_ns, "sent again while it stands in the host's queue: {segment:?}");
                match carried.leaves_ns {
                    Some(at_ns) if at_ns > self.now_ns => {
                        self.leaving.push(Reverse((at_ns, self.arrival_count, from, segment.len)));
                    }
                    _ => {
                        self.ends[from].on_left_host(self.now_ns, segment.len, out);
                    }
                }
            }
            for (at_ns, ecn) in carried.arrivals {
                self.arrival_count += 1;
                self.on_the_way.insert(self.arrival_count, (segment, ecn));
                self.arrivals.push(Reverse((at_ns, self.arrival_count, 1 - from)));
            }
        }
        out.clear();
    }
}
