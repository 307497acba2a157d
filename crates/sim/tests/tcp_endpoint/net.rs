//! Two endpoints and the path between them, deterministic: each direction has a delay, and optionally a rate, a queue limit
//! and a plan of misfortunes. Every event checks what must always hold (see [`Net::check`]).

use bufferscope_sim::packet::Ecn;
use bufferscope_sim::tcp::{Config, Endpoint, Flags, Outbox, Role, Sample, Segment, State};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MS;
pub(crate) const MSS: u64 = 1448;

/// Index of the connecting end.
pub(crate) const CLIENT: usize = 0;
/// Index of the other one.
pub(crate) const SERVER: usize = 1;

/// What happens to one packet on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Deliver,
    Drop,
    /// Delivered, that much later.
    Late(u64),
    /// Delivered, and again that much later.
    Twice(u64),
    /// Marked "congestion experienced" if ECN-capable.
    Mark,
}

/// One segment on the way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) sent_ns: u64,
    pub(crate) segment: Segment,
    pub(crate) ecn: Ecn,
    /// It was sent before with the same or a larger range.
    pub(crate) again: bool,
}

/// Decides about each packet, given its number in its direction, from 0.
pub(crate) type Plan = Box<dyn FnMut(usize, &Packet) -> Fate>;

/// One direction.
pub(crate) struct Pipe {
    pub(crate) delay_ns: u64,
    pub(crate) bits_per_second: Option<u64>,
    pub(crate) limit_packets: usize,
    /// What happens to each packet.
    pub(crate) fate: Plan,
    /// Everything handed to this direction.
    pub(crate) sent: Vec<Packet>,
    /// Everything that came out of it, with the time.
    pub(crate) delivered: Vec<(u64, Segment)>,
    pub(crate) overflowed: usize,
    /// Times at which the packets being queued and sent will have left.
    departures: VecDeque<u64>,
}

/// The whole network.
pub(crate) struct Net {
    pub(crate) now_ns: u64,
    pub(crate) ends: [Endpoint; 2],
    /// `pipes[i]` leads away from `ends[i]`.
    pub(crate) pipes: [Pipe; 2],
    arrivals: BinaryHeap<Reverse<(u64, u64, usize)>>,
    on_the_way: BTreeMap<u64, (Segment, Ecn)>,
    arrival_count: u64,
    witnesses: [Witness; 2],
    out: Outbox,
}

/// What an independent observer knows about one end.
#[derive(Default)]
struct Witness {
    /// Ranges of sequence numbers delivered to it, merged: start to end.
    delivered: BTreeMap<u64, u64>,
    /// Highest right edge of the window it was told.
    edge: u64,
    /// Next new sequence number it will send.
    nxt: u64,
    received_bytes: u64,
    acked_bytes: u64,
    /// It has sent new data since it was last checked.
    sent_new: bool,
    inflight_bytes: u64,
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
            witnesses: Default::default(),
            out: vec![],
        }
    }

    /// A bottleneck on the way from client to server.
    pub(crate) fn bottleneck(mut self, bits_per_second: u64, limit_packets: usize) -> Self {
        self.pipes[CLIENT].bits_per_second = Some(bits_per_second);
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
        let mut out = std::mem::take(&mut self.out);
        action(&mut self.ends[who], self.now_ns, &mut out);
        self.send(who, &mut out);
        self.out = out;
        self.check(who);
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
            assert!(next_ns <= limit_ns, "still busy at {next_ns}: {:?}", self.ends.each_ref().map(Endpoint::sample));
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
        self.ends[CLIENT].sample()
    }

    pub(crate) fn cwnd_packets(&self) -> u64 {
        self.sample().cwnd_bytes / MSS
    }

    /// The client's data segments, as handed to the path.
    pub(crate) fn data_sent(&self) -> impl Iterator<Item = &Packet> {
        self.pipes[CLIENT].sent.iter().filter(|packet| packet.segment.len > 0)
    }

    /// The server's pure acknowledgements after the handshake, as handed to the path.
    pub(crate) fn acks_sent(&self) -> impl Iterator<Item = &Packet> {
        self.pipes[SERVER].sent.iter().filter(|packet| packet.segment.len == 0 && !packet.segment.flags.syn())
    }

    fn next_ns(&self) -> Option<u64> {
        let arrival = self.arrivals.peek().map(|Reverse((at_ns, ..))| *at_ns);
        self.ends.iter().filter_map(Endpoint::deadline).chain(arrival).min()
    }

    /// One event: arrivals before timers.
    fn step(&mut self) {
        let next_ns = self.next_ns().expect("an event");
        assert!(next_ns >= self.now_ns, "time went back");
        self.now_ns = next_ns;
        if self.arrivals.peek().is_some_and(|Reverse((at_ns, ..))| *at_ns == next_ns) {
            let Reverse((_, number, to)) = self.arrivals.pop().unwrap();
            let (segment, ecn) = self.on_the_way.remove(&number).unwrap();
            self.pipes[1 - to].delivered.push((next_ns, segment));
            self.witnesses[to].on_delivery(&segment);
            self.act(to, |end, now_ns, out| end.on_segment(now_ns, &segment, ecn, out));
        } else {
            let who = (0..2).find(|&i| self.ends[i].deadline() == Some(next_ns)).unwrap();
            self.act(who, |end, now_ns, out| end.on_timer(now_ns, out));
            assert!(self.ends[who].deadline() != Some(next_ns), "a timer that stays due");
        }
        if self.ends[SERVER].peer_finished() {
            self.act(SERVER, |end, now_ns, out| end.finish_sending(now_ns, out));
        }
    }

    fn send(&mut self, from: usize, out: &mut Outbox) {
        for outgoing in out.drain(..) {
            let again = self.witnesses[from].on_sent(&outgoing.segment);
            let packet = Packet { sent_ns: self.now_ns, segment: outgoing.segment, ecn: outgoing.ecn, again };
            for (at_ns, ecn) in self.pipes[from].carry(packet) {
                self.arrival_count += 1;
                self.on_the_way.insert(self.arrival_count, (outgoing.segment, ecn));
                self.arrivals.push(Reverse((at_ns, self.arrival_count, 1 - from)));
            }
        }
    }

    /// What must always hold: exactly what was delivered without a gap is received, nothing acknowledged that was not
    /// received, and no new data beyond the congestion window while all is well.
    fn check(&mut self, who: usize) {
        let end = &self.ends[who];
        let witness = &mut self.witnesses[who];
        assert_eq!(end.received_bytes() + 1 + u64::from(end.peer_finished()), witness.delivered_to(), "in order");
        assert!(end.received_bytes() >= witness.received_bytes && end.acked_bytes() >= witness.acked_bytes);
        (witness.received_bytes, witness.acked_bytes) = (end.received_bytes(), end.acked_bytes());
        let sample = end.sample();
        if std::mem::take(&mut witness.sent_new) && sample.state <= State::Disorder {
            // One more may be a tail loss probe, and one the FIN. (Without new data there may be more in flight: what was believed
            // lost, when a recovery is undone. And a control may have shrunk the window below what was under way.)
            let most = (sample.cwnd_bytes + 2 * MSS).max(witness.inflight_bytes + MSS);
            assert!(sample.inflight_bytes <= most, "{sample:?}");
        }
        witness.inflight_bytes = sample.inflight_bytes;
        assert!(self.ends[who].acked_bytes() <= self.ends[1 - who].received_bytes());
    }
}

impl Pipe {
    fn new(delay_ns: u64) -> Self {
        Self {
            delay_ns,
            bits_per_second: None,
            limit_packets: usize::MAX,
            fate: Box::new(|_, _| Fate::Deliver),
            sent: vec![],
            delivered: vec![],
            overflowed: 0,
            departures: VecDeque::new(),
        }
    }

    /// When and how the packet arrives: not at all, once or twice.
    fn carry(&mut self, packet: Packet) -> Vec<(u64, Ecn)> {
        let fate = (self.fate)(self.sent.len(), &packet);
        self.sent.push(packet);
        let Some(left_ns) = self.depart(&packet) else { return vec![] };
        let at_ns = left_ns + self.delay_ns;
        let ecn = packet.ecn;
        match fate {
            Fate::Deliver => vec![(at_ns, ecn)],
            Fate::Drop => vec![],
            Fate::Late(by_ns) => vec![(at_ns + by_ns, ecn)],
            Fate::Twice(by_ns) => vec![(at_ns, ecn), (at_ns + by_ns, ecn)],
            Fate::Mark if ecn == Ecn::NotEct => vec![(at_ns, ecn)],
            Fate::Mark => vec![(at_ns, Ecn::Ce)],
        }
    }

    /// Queues for the wire; the end of transmission, or `None` if the queue is full.
    fn depart(&mut self, packet: &Packet) -> Option<u64> {
        let now_ns = packet.sent_ns;
        let Some(rate) = self.bits_per_second else { return Some(now_ns) };
        while self.departures.front().is_some_and(|&at_ns| at_ns <= now_ns) {
            self.departures.pop_front();
        }
        // One is on the wire, the others wait.
        if self.departures.len() > self.limit_packets {
            self.overflowed += 1;
            return None;
        }
        let free_ns = self.departures.back().copied().unwrap_or(now_ns);
        let left_ns = free_ns + u64::from(packet.segment.ip_bytes()) * 8 * SECOND / rate;
        self.departures.push_back(left_ns);
        Some(left_ns)
    }
}

impl Witness {
    fn on_delivery(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::ACK) {
            self.edge = self.edge.max(segment.ack + u64::from(segment.window_bytes));
        }
        let (mut start, mut end) = (segment.seq, segment.end());
        if segment.flags.syn() {
            self.edge = self.edge.max(1 + u64::from(segment.window_bytes));
        }
        if start == end {
            return;
        }
        while let Some((&other, &other_end)) = self.delivered.range(..=end).next_back().filter(|(_, e)| **e >= start) {
            (start, end) = (start.min(other), end.max(other_end));
            self.delivered.remove(&other);
        }
        self.delivered.insert(start, end);
    }

    /// First sequence number missing.
    fn delivered_to(&self) -> u64 {
        self.delivered.get(&0).copied().unwrap_or(1)
    }

    /// Returns whether the segment was sent before.
    fn on_sent(&mut self, segment: &Segment) -> bool {
        let again = segment.end() > segment.seq && segment.seq < self.nxt;
        if segment.end() > self.nxt {
            assert_eq!(segment.seq, self.nxt, "new data follows what was sent");
            assert!(segment.flags.syn() || segment.end() <= self.edge, "beyond the window: {segment:?}, {}", self.edge);
            self.nxt = segment.end();
            self.sent_new = true;
        }
        again
    }
}
