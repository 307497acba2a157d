//! Two endpoints and a deterministic path between them. Each direction has a delay, and optionally a rate, a queue
//! limit and a plan of faults. After every event, the invariants are checked (see
//! [`Witness`](crate::witness::Witness)).

pub(crate) use crate::pipe::{Action, Packet, Pipe};

use crate::witness::Witness;
use bufferscope_sim::tcp::{Config, Egress, Endpoint, Outgoing, Role, Sample, Segment, Transition};
use bufferscope_sim::{Ecn, Xmit};
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
    /// What has changed at the client, if it [keeps a journal](Self::journal).
    pub(crate) transitions: Vec<(u64, Transition)>,
    transit: Transit,
    witnesses: [Witness; 2],
}

/// The segments on the way, in both directions.
#[derive(Default)]
struct Transit {
    arrivals: BinaryHeap<Reverse<(u64, u64, usize)>>,
    on_the_way: BTreeMap<u64, (Segment, Ecn)>,
    count: u64,
    /// When segments leave the queue of their own host, and with how much payload.
    leaving: BinaryHeap<Reverse<(u64, u64, usize, u32)>>,
    /// By end and sequence number, when a segment leaves that queue as it was last sent.
    leaves_ns: BTreeMap<(usize, u64), u64>,
}

/// Where the segments of one end leave.
struct Outlet<'a> {
    now_ns: u64,
    from: usize,
    pipe: &'a mut Pipe,
    witness: &'a mut Witness,
    transit: &'a mut Transit,
}

/// What makes an end act.
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
            transitions: Vec::new(),
            transit: Transit::default(),
            witnesses: Default::default(),
        }
    }

    /// A bottleneck on the way from client to server.
    pub(crate) fn bottleneck(mut self, bits_per_second: u64, limit_packets: usize) -> Self {
        self.pipes[CLIENT].rates = vec![(0, bits_per_second)];
        self.pipes[CLIENT].limit_packets = limit_packets;
        self
    }

    /// The client notes what changes.
    pub(crate) fn journal(mut self) -> Self {
        self.ends[CLIENT].keep_journal();
        self
    }

    /// Its queue is the client's own.
    pub(crate) fn own_host(mut self) -> Self {
        self.pipes[CLIENT].own_host = true;
        self
    }

    /// Faults on the way from client to server.
    pub(crate) fn faults(mut self, plan: impl FnMut(usize, &Packet) -> Action + 'static) -> Self {
        self.pipes[CLIENT].plan = Box::new(plan);
        self
    }

    /// Faults on the way back.
    pub(crate) fn faults_back(mut self, plan: impl FnMut(usize, &Packet) -> Action + 'static) -> Self {
        self.pipes[SERVER].plan = Box::new(plan);
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
    pub(crate) fn act(&mut self, who: usize, action: impl FnOnce(&mut Endpoint, u64, &mut dyn Egress)) {
        self.act_for(Cause::Event, who, action);
    }

    fn act_for(&mut self, cause: Cause, who: usize, action: impl FnOnce(&mut Endpoint, u64, &mut dyn Egress)) {
        let (pipe, witness) = (&mut self.pipes[who], &mut self.witnesses[who]);
        let mut outlet = Outlet { now_ns: self.now_ns, from: who, pipe, witness, transit: &mut self.transit };
        action(&mut self.ends[who], self.now_ns, &mut outlet);
        self.witnesses[who].check(&self.ends[who], self.now_ns, cause == Cause::Timer);
        if who == CLIENT {
            let (now_ns, transitions) = (self.now_ns, &mut self.transitions);
            self.ends[CLIENT].take_transitions(now_ns, &mut |transition| transitions.push((now_ns, *transition)));
        }
        assert!(self.ends[who].acked_bytes() <= self.ends[1 - who].received_bytes());
    }

    /// Runs up to and including `until_ns`.
    pub(crate) fn run_until(&mut self, until_ns: u64) {
        while self.next_ns().is_some_and(|next_ns| next_ns <= until_ns) {
            self.step();
        }
        self.now_ns = self.now_ns.max(until_ns);
    }

    /// Runs until no event is pending; panics if that takes longer than `limit_ns`.
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

    /// The sequence number up to which an end may send, by the window that it was offered.
    pub(crate) fn window_edge(&self, end: usize) -> u64 {
        self.witnesses[end].edge
    }

    /// The server's pure acknowledgements after the handshake, as handed to the path.
    pub(crate) fn acks_sent(&self) -> impl Iterator<Item = &Packet> {
        self.pipes[SERVER].sent.iter().filter(|packet| packet.segment.len == 0 && !packet.segment.flags.syn())
    }

    fn next_ns(&self) -> Option<u64> {
        let arrival = self.transit.arrivals.peek().map(|Reverse((at_ns, ..))| *at_ns);
        let leaving = self.transit.leaving.peek().map(|Reverse((at_ns, ..))| *at_ns);
        self.ends.iter().filter_map(Endpoint::deadline).chain(arrival).chain(leaving).min()
    }

    /// Handles one event. At the same time, departures from hosts come first, then arrivals, then timers.
    fn step(&mut self) {
        let next_ns = self.next_ns().expect("an event");
        assert!(next_ns >= self.now_ns, "time went back");
        self.now_ns = next_ns;
        if self.transit.leaving.peek().is_some_and(|Reverse((at_ns, ..))| *at_ns == next_ns) {
            let Reverse((_, _, from, len)) = self.transit.leaving.pop().unwrap();
            self.act(from, |end, now_ns, _| end.on_left_host(now_ns, len));
        } else if self.transit.arrivals.peek().is_some_and(|Reverse((at_ns, ..))| *at_ns == next_ns) {
            let Reverse((_, number, to)) = self.transit.arrivals.pop().unwrap();
            let (segment, ecn) = self.transit.on_the_way.remove(&number).unwrap();
            self.pipes[1 - to].delivered.push((next_ns, segment));
            self.witnesses[to].on_delivery(&segment, &self.ends[to]);
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
}

impl Egress for Outlet<'_> {
    fn send(&mut self, outgoing: &Outgoing) -> Xmit {
        let Self { now_ns, from, .. } = *self;
        let segment = outgoing.segment;
        let again = self.witness.knows(&segment);
        let carried = self.pipe.carry(Packet { sent_ns: now_ns, segment, ecn: outgoing.ecn, again });
        if carried.xmit == Xmit::Dropped {
            return Xmit::Dropped;
        }
        self.witness.on_sent(&segment);
        let transit = &mut *self.transit;
        if self.pipe.own_host && (segment.len > 0 || segment.flags.fin()) {
            let left_ns = transit.leaves_ns.insert((from, segment.seq), carried.leaves_ns).unwrap_or(0);
            assert!(left_ns <= now_ns, "retransmitted while it is in the host's queue: {segment:?}");
            if carried.xmit == Xmit::Queued {
                transit.count += 1;
                transit.leaving.push(Reverse((carried.leaves_ns, transit.count, from, segment.len)));
            }
        }
        for (at_ns, ecn) in carried.arrivals {
            transit.count += 1;
            transit.on_the_way.insert(transit.count, (segment, ecn));
            transit.arrivals.push(Reverse((at_ns, transit.count, 1 - from)));
        }
        carried.xmit
    }

    fn is_empty(&self) -> bool {
        !self.pipe.own_host
    }
}
