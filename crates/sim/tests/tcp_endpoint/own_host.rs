//! How a connection reacts to packets that its own host's queue drops (the kernel's `__tcp_transmit_skb`,
//! `tcp_enter_cwr` and `TCP_RESOURCE_PROBE_INTERVAL`).

use crate::net::*;
use bufferscope_scenario::Congestion;
use bufferscope_sim::tcp::{Config, Egress, Endpoint, Flags, Outgoing, Role, SackBlocks, Segment, State, Timers};
use bufferscope_sim::{Ecn, Xmit};

const RENO: Config = Config { congestion: Congestion::Reno, timers: Timers::Exact, ..Config::DEFAULT };

#[test]
fn what_the_queue_has_no_room_for_was_not_sent_and_halves_the_window() {
    // One packet on the wire and one in the queue, of a window of ten.
    let mut net = Net::new(&RENO, 10 * MS).bottleneck(1_000_000, 1).own_host().upload(100 * MSS);
    net.run_while(|net| net.data_sent().count() < 2);
    let sample = net.sample();
    assert_eq!((sample.state, sample.ssthresh_bytes), (State::Cwr, Some(5 * MSS)));
    assert_eq!((sample.inflight_bytes, net.pipes[CLIENT].overflowed), (2 * MSS, 1), "it stops at the first");
    net.run_to_end(100 * SECOND);
    assert_eq!(net.ends[SERVER].received_bytes(), 100 * MSS);
    let sample = net.sample();
    assert_eq!((sample.retransmits, net.data_sent().filter(|packet| packet.again).count()), (0, 0));
}

#[test]
fn what_an_early_drop_took_counts_as_sent_and_halves_the_window_before_any_acknowledgement() {
    // Numbers 0 and 1 are the SYN and the handshake's acknowledgement.
    let mut net = Net::new(&RENO, 10 * MS)
        .own_host()
        .faults(|n, _| if n == 4 { Action::Congest } else { Action::Deliver })
        .upload(100 * MSS);
    net.run_while(|net| net.data_sent().count() == 0);
    let sample = net.sample();
    assert_eq!((sample.state, sample.ssthresh_bytes), (State::Cwr, Some(5 * MSS)));
    assert_eq!(sample.inflight_bytes, 10 * MSS);
    net.run_to_end(100 * SECOND);
    assert_eq!(net.ends[SERVER].received_bytes(), 100 * MSS);
    assert_eq!(net.sample().retransmits, 1);
    // The loss is found during the reduction, so the window is not reduced again for it.
    assert!(net.cwnd_packets() > 5);
}

/// An egress that can be closed, or that has a queue in which each packet displaces another.
#[derive(Default)]
struct Gate {
    shut: bool,
    /// It shuts after this many segments.
    room: Option<usize>,
    displacing: bool,
    /// Packets wait in the queue.
    filled: bool,
    sent: Vec<Segment>,
    refused: usize,
    rehashes: usize,
}

impl Egress for Gate {
    fn send(&mut self, outgoing: &Outgoing) -> Xmit {
        if self.shut || self.room == Some(0) {
            self.refused += 1;
            return Xmit::Dropped;
        }
        self.room = self.room.map(|room| room - 1);
        self.sent.push(outgoing.segment);
        if self.displacing { Xmit::Displacing } else { Xmit::Left }
    }

    fn is_empty(&self) -> bool {
        !self.filled
    }

    fn rehash(&mut self) {
        self.rehashes += 1;
    }
}

/// An endpoint behind a gate. The peer's segments are made by hand.
struct Gated {
    now_ns: u64,
    end: Endpoint,
    gate: Gate,
}

impl Gated {
    /// Connects.
    fn new() -> Self {
        Self::with(&RENO)
    }

    fn with(config: &Config) -> Self {
        let mut gated = Self { now_ns: SECOND, end: Endpoint::new(config, Role::Client), gate: Gate::default() };
        gated.end.connect(gated.now_ns, &mut gated.gate);
        gated
    }

    /// Is connected, with a round trip of 10 ms and this window.
    fn connected(window_bytes: u32) -> Self {
        let mut gated = Self::new();
        gated.receive(0, Flags::SYN | Flags::ACK, 1, window_bytes);
        gated
    }

    /// A segment arrives after 10 ms.
    fn receive(&mut self, seq: u64, flags: Flags, ack: u64, window_bytes: u32) {
        self.receive_data(seq, 0, flags, ack, window_bytes);
    }

    fn receive_data(&mut self, seq: u64, len: u32, flags: Flags, ack: u64, window_bytes: u32) {
        self.now_ns += 10 * MS;
        let segment = Segment { seq, ack, len, window_bytes, ts_val: 1, ts_ecr: 0, sack: SackBlocks::NONE, flags };
        self.end.on_segment(self.now_ns, &segment, Ecn::NotEct, &mut self.gate);
    }

    fn offer(&mut self, bytes: u64) {
        self.end.offer(self.now_ns, bytes, &mut self.gate);
    }

    /// Lets the timer expire; returns after how many milliseconds.
    fn wait(&mut self) -> u64 {
        let due_ns = self.end.deadline().expect("the timer runs");
        let waited_ns = due_ns - std::mem::replace(&mut self.now_ns, due_ns);
        self.end.on_timer(due_ns, &mut self.gate);
        waited_ns / MS
    }
}

#[test]
fn a_retransmission_that_is_dropped_is_tried_again_every_half_second_without_backing_off() {
    let mut gated = Gated::connected(65_535);
    gated.offer(MSS);
    // The tail loss probe comes no later than a timeout would: after 200 ms and a round trip of 10 ms.
    assert_eq!(gated.wait(), 210);
    gated.gate.shut = true;
    let first = gated.wait();
    assert_eq!([gated.wait(), gated.wait()], [500, 500]);
    assert_eq!(gated.gate.refused, 3);
    gated.gate.shut = false;
    assert_eq!(gated.wait(), 500);
    // The fourth attempt is the first that left: from here on the timeout doubles.
    assert_eq!([gated.wait(), gated.wait()], [2 * first, 4 * first]);
    let sample = gated.end.sample(gated.now_ns);
    assert_eq!((sample.state, sample.retransmits), (State::Loss, 7), "attempts count, too");
}

#[test]
fn a_probe_of_a_closed_window_that_is_dropped_is_tried_again_after_half_a_second() {
    let mut gated = Gated::connected(0);
    gated.offer(10 * MSS);
    gated.gate.shut = true;
    let first = gated.wait();
    assert_eq!([gated.wait(), gated.wait()], [500, 500]);
    gated.gate.shut = false;
    assert_eq!(gated.wait(), 500);
    assert_eq!([gated.wait(), gated.wait()], [2 * first, 4 * first]);
}

#[test]
fn with_nothing_under_way_the_first_segment_is_tried_again() {
    let mut gated = Gated::connected(65_535);
    gated.gate.shut = true;
    gated.offer(MSS);
    assert_eq!((gated.gate.refused, gated.end.sample(gated.now_ns).notsent_bytes), (1, MSS));
    gated.wait();
    assert_eq!([gated.wait(), gated.wait()], [500, 500]);
    gated.gate.shut = false;
    gated.wait();
    assert_eq!(gated.gate.sent.last().map(|segment| (segment.seq, segment.len)), Some((1, MSS as u32)));
    assert_eq!(gated.end.sample(gated.now_ns).retransmits, 0);
}

#[test]
fn a_repeated_syn_that_is_dropped_is_tried_again_after_half_a_second() {
    let mut gated = Gated::new();
    gated.gate.shut = true;
    assert_eq!([gated.wait(), gated.wait()], [1000, 500]);
    gated.gate.shut = false;
    assert_eq!([gated.wait(), gated.wait(), gated.wait()], [500, 2000, 4000]);
    assert_eq!(gated.gate.sent.len(), 4);
}

#[test]
fn a_dropped_acknowledgement_halves_the_window_of_what_this_end_sends() {
    let mut gated = Gated::connected(65_535);
    gated.gate.shut = true;
    // A segment that was received already is answered at once.
    gated.receive(0, Flags::ACK, 1, 65_535);
    assert_eq!(gated.gate.refused, 1);
    let sample = gated.end.sample(gated.now_ns);
    assert_eq!((sample.state, sample.ssthresh_bytes), (State::Cwr, Some(5 * MSS)));
}

/// `tcp_write_xmit` adds all packets that it sent to `prr_out`.
#[test]
fn what_left_before_the_drop_that_begins_a_reduction_counts_as_sent_during_it() {
    let mut gated = Gated::connected(65_535);
    gated.gate.room = Some(8);
    gated.offer(100 * MSS);
    assert_eq!(gated.end.sample(gated.now_ns).state, State::Cwr);
    gated.gate.room = None;
    // Seven are in flight, more than the threshold of five. Of 10 packets, 5 are sent again, so 1 is due for the first
    // that is delivered. But 8 were sent.
    gated.receive(1, Flags::ACK, 1 + MSS, 65_535);
    let sample = gated.end.sample(gated.now_ns);
    assert_eq!((sample.cwnd_bytes, sample.inflight_bytes), (7 * MSS, 7 * MSS));
}

/// `__tcp_transmit_skb` sets `tcp_wstamp_ns` also for a packet that is dropped.
#[test]
fn the_pacer_makes_up_only_for_the_time_since_a_dropped_packet() {
    let mut gated = Gated::with(&Config { pacing: true, ..RENO });
    gated.receive(0, Flags::SYN | Flags::ACK, 1, 65_535);
    gated.offer(100 * MSS);
    gated.gate.shut = true;
    gated.receive(1, Flags::ACK, 1 + MSS, 65_535);
    assert_eq!(gated.gate.refused, 1);
    gated.gate.shut = false;
    // 0.1 ms later, three packets may leave. At 6 packets in 10 ms they are 1.7 ms apart, less the 0.1 ms, and not half
    // of that.
    gated.now_ns -= 10 * MS - MS / 10;
    let before = gated.gate.sent.len();
    gated.receive(1, Flags::ACK, 1 + 8 * MSS, 65_535);
    assert_eq!(gated.gate.sent.len() - before, 1);
    assert_eq!(gated.wait(), 1);
    assert_eq!(gated.gate.sent.len() - before, 2);
}

/// `pfifo_head_drop` returns `NET_XMIT_CN` for a packet that it keeps.
#[test]
fn a_packet_that_displaces_another_halves_the_window_and_is_charged_until_it_leaves() {
    let mut gated = Gated::connected(65_535);
    gated.gate.displacing = true;
    let before = gated.gate.sent.len();
    gated.offer(100 * MSS);
    let sample = gated.end.sample(gated.now_ns);
    assert_eq!((sample.state, sample.ssthresh_bytes), (State::Cwr, Some(5 * MSS)));
    // Small queues keep most of the initial window of ten in the connection.
    let queued = gated.gate.sent.len() - before;
    assert!((2..10).contains(&queued), "{queued}");
    gated.end.on_left_host(gated.now_ns, MSS as u32);
    assert_eq!(gated.gate.sent.len() - before, queued, "the tasklet has not run yet");
    let left_ns = gated.now_ns;
    gated.wait();
    assert_eq!((gated.gate.sent.len() - before, gated.now_ns - left_ns), (queued + 1, 9_000));
}

/// What is sent while an acknowledgement is handled stays charged until that is done, even if the port passes it on at
/// once.
#[test]
fn what_an_acknowledgement_lets_go_leaves_two_packets_at_a_time_but_a_write_leaves_at_once() {
    let mut gated = Gated::connected(65_535);
    let before = gated.gate.sent.len();
    gated.offer(100 * MSS);
    assert_eq!(gated.gate.sent.len() - before, 10, "written");
    gated.receive(1, Flags::ACK, 1 + 8 * MSS, 65_535);
    assert_eq!(gated.gate.sent.len() - before, 12);
    let acknowledged_ns = gated.now_ns;
    gated.wait();
    assert_eq!((gated.gate.sent.len() - before, gated.now_ns - acknowledged_ns), (14, 9_000));
    gated.wait();
    assert_eq!((gated.gate.sent.len() - before, gated.now_ns - acknowledged_ns), (16, 18_000));
}

/// `tcp_write_timeout` calls `sk_rethink_txhash`; a tail loss probe does not.
#[test]
fn each_timeout_takes_another_hash() {
    let mut gated = Gated::new();
    gated.wait();
    assert_eq!(gated.gate.rehashes, 1, "after a SYN");
    gated.receive(0, Flags::SYN | Flags::ACK, 1, 65_535);
    gated.offer(MSS);
    gated.wait();
    assert_eq!(gated.gate.rehashes, 1, "the probe");
    gated.wait();
    gated.wait();
    assert_eq!(gated.gate.rehashes, 3);
}

/// The end of a write is acknowledged when the application has read it. That takes a moment, in which other packets may
/// fill the queue.
#[test]
fn an_acknowledgement_that_waits_for_the_application_is_sent_at_once_only_into_an_empty_queue() {
    for filled in [false, true] {
        let mut gated = Gated::connected(65_535);
        // The quick acknowledgements of the start.
        for n in 0..40 {
            gated.receive_data(1 + 100 * n, 100, Flags::ACK, 1, 65_535);
        }
        gated.gate.filled = filled;
        let before = gated.gate.sent.len();
        gated.receive_data(4001, 100, Flags::ACK | Flags::PSH, 1, 65_535);
        let at_once = gated.gate.sent.len() - before;
        assert_eq!(at_once, usize::from(!filled));
        if filled {
            assert_eq!(gated.end.deadline(), Some(gated.now_ns + 10_000));
            gated.wait();
        }
        assert_eq!(gated.gate.sent[before..].iter().map(|segment| segment.ack).collect::<Vec<_>>(), [4101]);
    }
}
