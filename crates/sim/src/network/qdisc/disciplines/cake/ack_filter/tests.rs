//! Which acknowledgements are dropped.

use super::*;
use crate::network::packet::{Echo, EchoKind, Header, Load, Role};
use crate::network::segment::{SackBlock, SackBlocks};
use crate::network::traffic_class::{Ecn, TrafficClass};

struct Queue {
    queue: Fifo,
    pool: Pool,
    aggressive: bool,
}

fn ack(number: u64) -> Segment {
    Segment {
        seq: 1,
        ack: number,
        len: 0,
        window_bytes: 0,
        ts_val: 100,
        ts_ecr: 50,
        sack: SackBlocks::NONE,
        flags: Flags::ACK,
    }
}

/// An acknowledgement of 1000 with these blocks.
fn sacks(blocks: &[(u64, u64)]) -> Segment {
    let mut segment = ack(1000);
    blocks.iter().for_each(|&(start, end)| segment.sack.push(1000, SackBlock { start, end }));
    segment
}

impl Queue {
    fn new(aggressive: bool) -> Self {
        Self { queue: Fifo::new(), pool: Pool::new(), aggressive }
    }

    fn push(&mut self, body: Body) -> PacketId {
        let header = Header {
            at_ns: 0,
            ip_bytes: 52,
            frame_bytes: 66,
            flow: 0,
            hash: 0,
            port: 0,
            source: 0,
            destination: 0,
            class: TrafficClass::new(0, Ecn::NotEct),
            load: Load::of(1),
        };
        let packet = self.pool.insert(header, body);
        self.queue.push(packet, &mut self.pool);
        packet
    }

    /// A segment of a connection arrives. Returns the number that the dropped one acknowledges.
    fn arrive_of(&mut self, connection: u32, segment: Segment) -> Option<u64> {
        let tcp = TcpPacket { connection, to: Role::Client, segments_before: 0, segment };
        let newest = self.push(Body::Tcp(tcp));
        let dropped = take_replaced(&mut self.queue, newest, self.aggressive, &mut self.pool)?;
        tcp_of(dropped, &self.pool).map(|tcp| tcp.segment.ack)
    }

    fn arrive(&mut self, segment: Segment) -> Option<u64> {
        self.arrive_of(0, segment)
    }

    fn waiting(&self) -> Vec<u64> {
        self.queue.iter(&self.pool).filter_map(|packet| Some(tcp_of(packet, &self.pool)?.segment.ack)).collect()
    }
}

fn tcp_of(packet: PacketId, pool: &Pool) -> Option<&TcpPacket> {
    super::tcp(packet, pool)
}

#[test]
fn the_first_of_two_that_are_replaced_is_dropped() {
    let mut queue = Queue::new(false);
    assert_eq!([1, 2, 3, 4].map(|number| queue.arrive(ack(number))), [None, None, Some(1), Some(2)]);
    assert_eq!(queue.waiting(), [3, 4]);
    assert_eq!((queue.queue.packets(), queue.queue.bytes()), (2, 132));
}

#[test]
fn the_aggressive_filter_drops_the_only_one_if_it_is_next() {
    let mut queue = Queue::new(true);
    assert_eq!([1, 2, 3].map(|number| queue.arrive(ack(number))), [None, Some(1), Some(2)]);
    queue.push(Body::Echo(Echo { ping: 0, seq: 0, kind: EchoKind::Request }));
    assert_eq!(queue.arrive(ack(4)), None, "a ping is between them");
    assert_eq!(queue.waiting(), [3, 4]);
}

/// What is removed from the middle leaves the order as it was.
#[test]
fn other_connections_and_data_stay() {
    let mut queue = Queue::new(false);
    queue.arrive_of(1, ack(10));
    queue.arrive(ack(1));
    queue.arrive(Segment { len: 100, ..ack(2) });
    queue.arrive(ack(3));
    assert_eq!(queue.arrive(ack(4)), Some(1));
    assert_eq!(queue.waiting(), [10, 2, 3, 4]);
    // A data segment replaces acknowledgements, too.
    assert_eq!(queue.arrive(Segment { len: 100, ..ack(5) }), Some(3));
}

#[test]
fn what_says_more_is_kept() {
    let kept = [
        ("PSH", Segment { flags: Flags::ACK | Flags::PSH, ..ack(1) }),
        ("FIN", Segment { flags: Flags::ACK | Flags::FIN, ..ack(1) }),
        ("accurate ECN", Segment { flags: Flags::ACK | Flags::AE, ..ack(1) }),
        ("a later time stamp", Segment { ts_val: 101, ..ack(1) }),
        ("a later echo", Segment { ts_ecr: 51, ..ack(1) }),
        ("a higher number", ack(3)),
        ("the same number", ack(2)),
        ("a block", sacks(&[(2000, 3000)])),
    ];
    for (what, segment) in kept {
        assert!(!is_replaced(&segment, &ack(2)), "{what}");
    }
    assert!(is_replaced(&ack(1), &ack(2)));
    assert!(
        is_replaced(&Segment { ts_val: u32::MAX, ..ack(1) }, &Segment { ts_val: 3, ..ack(2) }),
        "the clock wrapped"
    );
}

#[test]
fn a_change_of_the_echo_of_congestion_is_kept() {
    let echo = |number| Segment { flags: Flags::ACK | Flags::ECE, ..ack(number) };
    let mut queue = Queue::new(false);
    assert_eq!([queue.arrive(ack(1)), queue.arrive(echo(2)), queue.arrive(echo(3))], [None; 3], "1 and 2 differ");
    assert_eq!(queue.arrive(echo(4)), Some(2));
    assert_eq!(queue.waiting(), [1, 3, 4]);
    let mut aggressive = Queue::new(true);
    aggressive.arrive(ack(1));
    assert_eq!(aggressive.arrive(echo(2)), None);
}

/// `cake_tcph_sack_compare`.
#[test]
fn selective_acknowledgements_are_compared_by_what_they_cover() {
    let compare = |older: &[(u64, u64)], newer: &[(u64, u64)]| compare_sacks(&sacks(older), &sacks(newer));
    assert_eq!(compare(&[], &[]), Sacks::Equal);
    assert_eq!(compare(&[(2000, 3000)], &[]), Sacks::Fewer);
    assert_eq!(compare(&[], &[(2000, 3000)]), Sacks::More);
    assert_eq!(compare(&[(2000, 3000)], &[(2000, 3000)]), Sacks::Equal);
    assert_eq!(compare(&[(2000, 3000)], &[(2000, 4000)]), Sacks::More);
    assert_eq!(compare(&[(2000, 3000)], &[(5000, 6000), (2000, 3000)]), Sacks::More);
    assert_eq!(compare(&[(2000, 3000), (5000, 6000)], &[(2000, 4000)]), Sacks::Fewer);
    assert_eq!(compare(&[(500, 900)], &[(500, 900)]), Sacks::Fewer, "a duplicate is reported");
}
