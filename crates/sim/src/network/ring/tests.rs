use bufferscope_scenario::{Accounting, ByteLimits as Limits};

use super::*;
use crate::network::packet::{Body, Echo, EchoKind, Header, Load};
use crate::network::traffic_class::{Ecn, TrafficClass};

const FRAME: u32 = 1514;

fn ring(size_packets: u32, bql: Option<Limits>, completion: Completion, accounting: Accounting) -> Ring {
    Ring::new(&scenario::Ring { size_packets, bql, completion, accounting }, Timers::Exact)
}

/// A ring whose device reports each packet at once.
fn plain(size_packets: u32, accounting: Accounting) -> Ring {
    ring(size_packets, None, Completion::default(), accounting)
}

fn packet(pool: &mut Pool) -> PacketId {
    let header = Header {
        at_ns: 0,
        ip_bytes: 1500,
        frame_bytes: FRAME,
        flow: 0,
        hash: 0,
        port: 0,
        source: 0,
        destination: 0,
        class: TrafficClass::new(0, Ecn::NotEct),
        load: Load::of(1),
    };
    pool.insert(header, Body::Echo(Echo { ping: 0, seq: 0, kind: EchoKind::Request }))
}

/// Passes packets to the ring until it stops the queue; returns how many.
fn fill(ring: &mut Ring, pool: &mut Pool) -> u32 {
    let mut packets = 0;
    while !ring.is_stopped() {
        let packet = packet(pool);
        ring.push(packet, pool);
        packets += 1;
    }
    packets
}

/// The device sends one packet. Returns what it does about reporting it, and how many packets it has not reported.
fn send(ring: &mut Ring, now_ns: u64, pool: &mut Pool) -> (Report, usize) {
    if ring.sending.is_none() {
        ring.begin(pool).expect("a packet waits");
    }
    ring.end();
    ring.begin(pool);
    (ring.report(now_ns), ring.unreported())
}

/// The driver frees what was reported; returns how many packets.
fn free(ring: &mut Ring, now_ns: u64) -> u64 {
    let packets = std::iter::from_fn(|| ring.free()).count() as u64;
    ring.complete(packets * u64::from(FRAME), now_ns);
    packets
}

#[test]
fn a_driver_stops_the_queue_with_the_packet_that_leaves_too_little_room() {
    // `virtio_net` needs 19 free descriptors to accept a packet, so the queue is stopped when 18 are left.
    for (size, accounting, room) in [
        (64, Accounting::Packets, 64),
        (1, Accounting::Packets, 1),
        (64, Accounting::Virtio, 46),
        (128, Accounting::Virtio, 110),
        (256, Accounting::Virtio, 238),
        (19, Accounting::Virtio, 1),
    ] {
        let (mut ring, mut pool) = (plain(size, accounting), Pool::new());
        assert_eq!(fill(&mut ring, &mut pool), room, "{size} {accounting:?}");
        // The packet that is being sent keeps its descriptor until it is reported as sent.
        assert!(ring.begin(&pool).is_some());
        assert!(ring.is_stopped());
        ring.end();
        assert!(ring.is_stopped());
        assert_eq!(free(&mut ring, 0), 1);
        assert_eq!(fill(&mut ring, &mut pool), 1);
    }
}

#[test]
fn a_device_sends_in_order_and_one_packet_at_a_time() {
    let (mut ring, mut pool) = (plain(4, Accounting::Packets), Pool::new());
    let packets = [packet(&mut pool), packet(&mut pool)];
    packets.into_iter().for_each(|packet| ring.push(packet, &mut pool));
    assert_eq!(ring.begin(&pool), Some(packets[0]));
    assert!(ring.is_sending());
    assert_eq!(ring.backlog(), Backlog { packets: 2, bytes: 2 * u64::from(FRAME) });
    ring.end();
    assert_eq!(ring.backlog(), Backlog { packets: 1, bytes: FRAME.into() });
    assert_eq!(ring.begin(&pool), Some(packets[1]));
}

#[test]
fn a_batch_is_reported_when_it_is_complete_or_when_nothing_is_left_to_send() {
    let (mut ring, mut pool) = (ring(12, None, Completion::Packets(8), Accounting::Packets), Pool::new());
    assert_eq!(fill(&mut ring, &mut pool), 12);
    for unreported in 1..8 {
        assert_eq!(send(&mut ring, 0, &mut pool), (Report::Later, unreported));
        assert!(ring.is_stopped(), "the driver does not know yet");
    }
    assert_eq!(send(&mut ring, 0, &mut pool), (Report::Now, 8));
    assert_eq!((free(&mut ring, 0), ring.is_stopped()), (8, false));
    for unreported in 1..4 {
        assert_eq!(send(&mut ring, 0, &mut pool), (Report::Later, unreported));
    }
    assert_eq!(send(&mut ring, 0, &mut pool), (Report::Now, 4), "the ring is empty");
}

#[test]
fn a_moderated_interrupt_comes_after_the_first_packet_and_reports_all_since() {
    let (mut ring, mut pool) = (ring(12, None, Completion::AfterNs(100), Accounting::Packets), Pool::new());
    fill(&mut ring, &mut pool);
    assert_eq!(send(&mut ring, 1000, &mut pool), (Report::At(1100), 1));
    assert_eq!(send(&mut ring, 1050, &mut pool), (Report::Later, 2));
    assert_eq!(free(&mut ring, 1100), 2);
    assert_eq!(send(&mut ring, 1100, &mut pool), (Report::At(1200), 1));
}

#[test]
fn byte_queue_limits_stop_a_queue_whose_ring_has_room() {
    let (mut ring, mut pool) =
        (ring(256, Some(Limits::DEFAULT), Completion::default(), Accounting::Packets), Pool::new());
    assert_eq!(fill(&mut ring, &mut pool), 1, "the first packet exceeds the limit of 0");
    assert_eq!(ring.limits(), Some((0, FRAME.into())));
    assert_eq!(send(&mut ring, 0, &mut pool), (Report::Now, 1));
    free(&mut ring, 0);
    assert_eq!(ring.limits(), Some((FRAME.into(), 0)));
    assert_eq!(fill(&mut ring, &mut pool), 2, "one reaches the limit, and one exceeds it");
}
