use proptest::prelude::*;

use super::*;
use crate::network::packet::{Echo, EchoKind, Header, Load, Role, TcpPacket};
use crate::network::qdisc::testing::{Bench, FRAME, Flow, MS};
use crate::network::segment::{Flags, SackBlocks, Segment};
use crate::network::traffic_class::{Ecn, TrafficClass};

const US: u64 = 1000;

fn parameters() -> scenario::Fq {
    scenario::Fq {
        limit_packets: 10_000,
        flow_limit_packets: 100,
        quantum_bytes: None,
        initial_quantum_bytes: None,
        buckets: 1024,
        maxrate_bps: None,
        low_rate_threshold_bps: 550_000,
        refill_delay_ns: 40 * MS,
        orphan_mask: 1023,
        pacing: true,
        timer_slack_ns: 10 * US,
        ce_threshold_ns: None,
        horizon_ns: 10_000 * MS,
        horizon_drop: true,
    }
}

fn bench(parameters: scenario::Fq) -> Bench {
    Bench::new(&scenario::Qdisc::Fq(parameters))
}

/// A hash with these lowest bits, of which `orphan_mask` takes some.
fn with_low(bits: u32) -> u32 {
    bits.rotate_right(16)
}

/// A flow that another host sends.
fn flow(hash: u32) -> Flow {
    Flow { hash: with_low(hash), source: 7, ..Flow::default() }
}

fn arrive(bench: &mut Bench, hash: u32, packets: u32, now_ns: u64) {
    for _ in 0..packets {
        let arrived = bench.arrive_of(flow(hash), now_ns, FRAME, TrafficClass::new(0, Ecn::NotEct));
        assert_eq!(arrived, (Xmit::Queued, vec![]));
    }
}

fn dequeue(bench: &mut Bench, packets: usize, now_ns: u64) -> Vec<u64> {
    (0..packets).filter_map(|_| bench.dequeue(now_ns).0).map(|packet| packet.0).collect()
}

#[test]
fn fq_gives_a_flow_ten_frames_at_first_and_two_in_later_turns() {
    let mut bench = bench(parameters());
    arrive(&mut bench, 3, 15, 0);
    arrive(&mut bench, 9, 13, 0);
    let order = dequeue(&mut bench, 28, 0);
    let runs: Vec<usize> = order.chunk_by(|a, b| (*a < 15) == (*b < 15)).map(<[u64]>::len).collect();
    assert_eq!(runs, [10, 10, 2, 2, 2, 1, 1]);
}

#[test]
fn fq_distinguishes_flows_by_the_bits_of_the_mask() {
    // With the mask of 10 bits, 1027 is 3. With all bits, it is another flow, and takes turns with it.
    for (orphan_mask, expected) in [(1023, [0, 1, 2, 3]), (u32::MAX, [0, 2, 1, 3])] {
        let quanta = (Some(FRAME), Some(FRAME));
        let (quantum_bytes, initial_quantum_bytes) = quanta;
        let mut bench = bench(scenario::Fq { orphan_mask, quantum_bytes, initial_quantum_bytes, ..parameters() });
        arrive(&mut bench, 3, 2, 0);
        arrive(&mut bench, 1027, 2, 0);
        assert_eq!(dequeue(&mut bench, 4, 0), expected);
    }
}

#[test]
fn fq_has_a_limit_for_each_flow_and_one_for_all() {
    let mut bench = bench(scenario::Fq { limit_packets: 5, flow_limit_packets: 3, ..parameters() });
    let class = TrafficClass::new(0, Ecn::NotEct);
    arrive(&mut bench, 3, 3, 0);
    assert_eq!(bench.arrive_of(flow(3), 0, FRAME, class), (Xmit::Dropped, vec![(3, Reason::FLOW_LIMIT)]));
    arrive(&mut bench, 9, 2, 0);
    assert_eq!(bench.arrive_of(flow(9), 0, FRAME, class), (Xmit::Dropped, vec![(6, Reason::OVERLIMIT)]));
    assert_eq!(bench.backlog(), (5, 5 * u64::from(FRAME)));
}

#[test]
fn fq_charges_a_packet_without_a_departure_time_a_quantum_once_the_credit_is_used_up() {
    // Ten frames at once. The tenth uses the credit up, and a quantum of 3028 bytes at 12.112 Mbit/s lasts 2 ms. Then
    // the flow gets a quantum of two frames, and so on: two packets each 2 ms. The timer is 10 us late.
    let mut bench = bench(scenario::Fq { maxrate_bps: Some(12_112_000), ..parameters() });
    arrive(&mut bench, 3, 14, 0);
    assert_eq!(dequeue(&mut bench, 10, 0).len(), 10);
    assert_eq!(bench.not_before(0), Some(2 * MS + 10 * US));
    assert_eq!(bench.not_before(2 * MS - 1), Some(2 * MS + 10 * US));
    // The lateness of the timer is compensated.
    assert_eq!(dequeue(&mut bench, 2, 2 * MS + 10 * US), [10, 11]);
    assert_eq!(bench.not_before(2 * MS + 10 * US), Some(4 * MS + 10 * US));
    // Half of the time at most.
    assert_eq!(dequeue(&mut bench, 2, 100 * MS), [12, 13]);
    arrive(&mut bench, 3, 1, 100 * MS);
    assert_eq!(bench.not_before(100 * MS), Some(101 * MS + 10 * US));
}

#[test]
fn fq_sends_single_packets_of_a_flow_with_a_low_rate() {
    // 12112 bytes at 1 Mbit/s would be a turn of several packets; below the threshold, each packet waits its own 12.112
    // ms.
    let low = scenario::Fq { maxrate_bps: Some(1_000_000), low_rate_threshold_bps: 1_000_000, ..parameters() };
    let mut bench = bench(low);
    arrive(&mut bench, 3, 3, 0);
    assert_eq!(dequeue(&mut bench, 1, 0), [0]);
    assert_eq!(bench.not_before(0), Some(12_112 * US + 10 * US));
    assert_eq!(dequeue(&mut bench, 1, 12_112 * US), [1]);
    assert_eq!(bench.not_before(12_112 * US), Some(24_224 * US + 10 * US));
}

#[test]
fn fq_limits_no_packet_to_more_than_a_second() {
    let slow = scenario::Fq { maxrate_bps: Some(1000), ..parameters() };
    let mut bench = bench(slow);
    arrive(&mut bench, 3, 2, 0);
    assert_eq!(dequeue(&mut bench, 1, 0), [0]);
    assert_eq!(bench.not_before(0), Some(1000 * MS + 10 * US));
}

#[test]
fn fq_without_pacing_has_no_maximal_rate() {
    let mut bench = bench(scenario::Fq { maxrate_bps: Some(1000), pacing: false, ..parameters() });
    arrive(&mut bench, 3, 30, 0);
    assert_eq!(dequeue(&mut bench, 30, 0).len(), 30);
}

#[test]
fn fq_marks_packets_that_leave_late() {
    let mut bench = bench(scenario::Fq { ce_threshold_ns: Some(5 * MS), ..parameters() });
    for (ecn, late_ns, marked) in
        [(Ecn::Ect0, 5 * MS, false), (Ecn::Ect0, 5 * MS + 1, true), (Ecn::NotEct, 9 * MS, false)]
    {
        bench.arrive_of(flow(3), 100 * MS, FRAME, TrafficClass::new(0, ecn));
        let (packet, events) = bench.dequeue(100 * MS + late_ns);
        let (number, ecn) = packet.expect("it may leave");
        assert_eq!(events == [(number, Reason::CE_THRESHOLD_MARK)], marked);
        assert_eq!(ecn == Ecn::Ce, marked);
    }
}

#[test]
fn fq_counts_a_delay_from_when_the_rate_allowed_the_packet_to_leave() {
    // The second packet may leave after 24.224 ms, so it is not late then.
    let slow = scenario::Fq { maxrate_bps: Some(500_000), ce_threshold_ns: Some(5 * MS), ..parameters() };
    let mut bench = bench(slow);
    for _ in 0..3 {
        bench.arrive_of(flow(3), 0, FRAME, TrafficClass::new(0, Ecn::Ect0));
    }
    assert_eq!(bench.dequeue(0).1, []);
    assert_eq!(bench.not_before(1), Some(24_224 * US + 10 * US));
    assert_eq!(bench.dequeue(24_234 * US).1, []);
    // The third may leave 24.224 ms after the second might have left.
    assert_eq!(bench.dequeue(2 * 24_224 * US + 5 * MS + 1).1, [(2, Reason::CE_THRESHOLD_MARK)]);
}

#[test]
fn fq_serves_other_flows_while_one_waits() {
    let slow = scenario::Fq { maxrate_bps: Some(500_000), ..parameters() };
    let mut bench = bench(slow);
    arrive(&mut bench, 3, 2, 0);
    arrive(&mut bench, 9, 2, 0);
    assert_eq!(dequeue(&mut bench, 2, 0), [0, 2]);
    // A frame lasts 24.224 ms. The flow that was throttled first is released first.
    assert_eq!(bench.not_before(MS), Some(24_224 * US + 10 * US));
    assert_eq!(dequeue(&mut bench, 2, 24_234 * US), [1, 3]);
    assert_eq!(bench.backlog(), (0, 0));
    assert_eq!(bench.not_before(25 * MS), None);
}

#[test]
fn fq_drops_what_is_over_a_lowered_limit_in_turns() {
    let quantum = Some(FRAME);
    let one = scenario::Fq { quantum_bytes: quantum, initial_quantum_bytes: quantum, ..parameters() };
    let mut bench = bench(one.clone());
    arrive(&mut bench, 3, 3, 0);
    arrive(&mut bench, 9, 2, 0);
    let events = bench.change(&scenario::Qdisc::Fq(scenario::Fq { limit_packets: 3, buckets: 8, ..one }));
    assert_eq!(events, [0, 3].map(|number| (number, Reason::OVERLIMIT)));
    // The flow is found again in the smaller table: a new one would be served first.
    assert_eq!(dequeue(&mut bench, 1, 0), [1]);
    arrive(&mut bench, 3, 1, 0);
    assert_eq!(dequeue(&mut bench, 4, 0), [4, 2, 5]);
}

/// A discipline of node 0, and a pool for packets of TCP.
fn with_pool(parameters: &scenario::Fq) -> (Fq, Pool) {
    let attachment =
        Attachment { port: 0, node: 0, encapsulation: scenario::Encapsulation::adding(14), seed: 1, now_ns: 0 };
    (Fq::new(parameters, attachment).expect("Linux takes these parameters"), Pool::new())
}

fn header(hash: u32, source: NodeIndex) -> Header {
    Header {
        at_ns: 0,
        ip_bytes: 1500,
        frame_bytes: FRAME,
        flow: hash,
        hash: with_low(hash),
        source,
        destination: 0,
        port: 0,
        class: TrafficClass::new(0, Ecn::NotEct),
        load: Load::of(1),
    }
}

fn tcp(connection: u32) -> Body {
    let segment = Segment {
        seq: 0,
        ack: 0,
        len: 1448,
        window_bytes: 0,
        ts_val: 0,
        ts_ecr: 0,
        sack: SackBlocks::NONE,
        flags: Flags::ACK,
    };
    Body::Tcp(TcpPacket { connection, to: Role::Server, segments_before: 0, segment })
}

#[test]
fn fq_paces_each_packet_with_a_departure_time() {
    // A frame at 12.112 Mbit/s lasts 1 ms, and there is no first burst.
    let (mut fq, mut pool) = with_pool(&scenario::Fq { maxrate_bps: Some(12_112_000), ..parameters() });
    let mut events = QdiscEvents::default();
    for _ in 0..3 {
        let packet = pool.insert(header(3, 7), tcp(0));
        assert_eq!(fq.enqueue(packet, 0, &mut pool, &mut events), Xmit::Queued);
    }
    for ms in 0..2 {
        assert!(matches!(fq.dequeue(ms * MS, &mut pool, &mut events), Dequeued::Packet(_)));
        assert_eq!(fq.dequeue(ms * MS, &mut pool, &mut events), Dequeued::NotBefore((ms + 1) * MS + 10 * US));
    }
}

#[test]
fn fq_knows_the_connections_of_its_own_host() {
    // Hashes that are the same under the mask: connections of node 0 are flows of their own, also with another hash, and
    // others are not.
    let (mut fq, mut pool) = with_pool(&parameters());
    let mut events = QdiscEvents::default();
    let echo = || Body::Echo(Echo { ping: 0, seq: 0, kind: EchoKind::Request });
    for (header, body) in [
        (header(3, 0), tcp(0)),
        (header(8, 0), tcp(0)),
        (header(1027, 0), tcp(1)),
        (header(3, 7), tcp(2)),
        (header(1027, 7), tcp(3)),
        (header(3, 0), echo()),
    ] {
        let packet = pool.insert(header, body);
        fq.enqueue(packet, 0, &mut pool, &mut events);
    }
    assert_eq!(fq.inner.known, 3);
}

#[test]
fn fq_has_another_flow_for_a_connection_that_it_forwards_when_the_hash_changes() {
    let (mut fq, mut pool) = with_pool(&parameters());
    let mut events = QdiscEvents::default();
    let first = header(3, 7);
    for hash in [first.hash, Header::rehash(first.hash)] {
        let packet = pool.insert(Header { hash, ..first }, tcp(0));
        fq.enqueue(packet, 0, &mut pool, &mut events);
    }
    assert_eq!(fq.inner.known, 2);
}

#[test]
fn fq_forgets_flows_when_there_are_twice_as_many_as_buckets() {
    let (mut fq, mut pool) = with_pool(&scenario::Fq { buckets: 2, orphan_mask: u32::MAX, ..parameters() });
    let mut events = QdiscEvents::default();
    let mut send = |hash: u32, now_ns: u64| {
        let packet = pool.insert(header(hash, 7), tcp(0));
        fq.enqueue(packet, now_ns, &mut pool, &mut events);
        assert_eq!(fq.dequeue(now_ns, &mut pool, &mut events), Dequeued::Packet(packet));
        pool.remove(packet);
        // The next dequeue but with another packet waiting finds it empty.
        (fq.inner.known, fq.inner.inactive)
    };
    // Each flow is found empty when the next one is served. 20 flows within 20 ms: nothing is old enough.
    (0..20).for_each(|hash| assert!(send(hash, u64::from(hash) * MS).0 > hash));
    assert_eq!(send(20, 20 * MS).0, 21);
    // After four seconds, the bucket of each arrival is cleared.
    (21..31).for_each(|hash| assert!(send(hash, 4000 * MS).0 > 0));
    let (known, _) = send(31, 4000 * MS);
    assert!(known <= 13, "{known} flows are known");
}

#[test]
fn fq_refills_the_credit_of_a_flow_that_was_idle() {
    // A packet of 60 bytes leaves a credit of 40.
    let mut bench = bench(scenario::Fq { initial_quantum_bytes: Some(100), quantum_bytes: Some(300), ..parameters() });
    let class = TrafficClass::new(0, Ecn::NotEct);
    let send = |bench: &mut Bench, hash: u32, bytes: u32, now_ns: u64| {
        bench.arrive_of(flow(hash), now_ns, bytes, class);
    };
    send(&mut bench, 3, 60, 0);
    send(&mut bench, 9, 60, 0);
    assert_eq!(dequeue(&mut bench, 2, 0), [0, 1]);
    // Another flow makes both be found empty.
    send(&mut bench, 1, 60, 0);
    assert_eq!(dequeue(&mut bench, 1, 0), [2]);
    (0..6).for_each(|_| send(&mut bench, 3, 60, 100 * MS));
    (0..6).for_each(|_| send(&mut bench, 9, 60, 100 * MS));
    assert_eq!(dequeue(&mut bench, 6, 100 * MS), [3, 4, 5, 6, 7, 9], "300 bytes are five packets");
}

proptest! {
    /// Packets of a flow leave in order, each exactly once or not at all if it was dropped, and the backlog is that of
    /// the packets inside.
    #[test]
    fn fq_loses_nothing_and_keeps_order(
        steps in proptest::collection::vec((0..5_u32, 60..=1514_u32, 0..4_u32, 0..5 * MS), 1..300),
        limit_packets in 1..40_u32,
        flow_limit_packets in 1..20_u32,
        maxrate_bps in proptest::option::of(100_000..20_000_000_u64),
    ) {
        let parameters = scenario::Fq { limit_packets, flow_limit_packets, maxrate_bps, ..parameters() };
        let (mut fq, mut pool) = with_pool(&parameters);
        let mut events = QdiscEvents::default();
        let mut now_ns = 0;
        let mut inside = std::collections::VecDeque::new();
        for (index, bytes, packets, pause_ns) in steps {
            now_ns += pause_ns;
            let header = Header { frame_bytes: bytes, ip_bytes: bytes - 14, ..header(index, 7) };
            let packet = pool.insert(header, tcp(0));
            if fq.enqueue(packet, now_ns, &mut pool, &mut events) == Xmit::Queued {
                inside.push_back((index, packet, bytes));
            } else {
                pool.remove(packet);
            }
            for _ in 0..packets {
                match fq.dequeue(now_ns, &mut pool, &mut events) {
                    Dequeued::Packet(packet) => {
                        let flow = pool.header(packet).flow;
                        let first = inside.iter().position(|inside| inside.0 == flow).expect("it was inside");
                        prop_assert_eq!(inside.remove(first).map(|inside| inside.1), Some(packet));
                        pool.remove(packet);
                    }
                    Dequeued::NotBefore(at_ns) => {
                        prop_assert!(at_ns > now_ns && !inside.is_empty());
                        break;
                    }
                    Dequeued::Nothing => {
                        prop_assert!(inside.is_empty());
                        break;
                    }
                }
            }
            let bytes: u64 = inside.iter().map(|inside| u64::from(inside.2)).sum();
            prop_assert_eq!(fq.backlog(), Backlog { packets: inside.len() as u64, bytes });
            let mut visited = 0;
            fq.each_packet(&pool, &mut |_| visited += 1);
            prop_assert_eq!(visited, inside.len());
        }
    }
}

/// 10 s is the default. Without pacing, no packet has a departure time ahead in Linux either.
#[test]
fn fq_warns_of_a_horizon_that_only_linux_would_reach() {
    let warns =
        |horizon_ns, pacing| bench(scenario::Fq { horizon_ns, pacing, ..parameters() }).qdisc().warning().is_some();
    assert_eq!([warns(9_999 * MS, true), warns(10_000 * MS, true), warns(MS, false)], [true, false, false]);
    let mut changed = bench(parameters());
    changed.change(&scenario::Qdisc::Fq(scenario::Fq { horizon_ns: MS, ..parameters() }));
    assert!(changed.qdisc().warning().is_some());
}
