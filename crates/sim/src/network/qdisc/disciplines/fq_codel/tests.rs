use bufferscope_scenario::DsFilter;
use proptest::prelude::*;

use super::*;
use crate::network::qdisc::testing::{Bench, FRAME, Flow, MS};
use crate::network::traffic_class::{Ecn, TrafficClass};

fn parameters() -> scenario::FqCodel {
    scenario::FqCodel {
        limit_packets: 10_240,
        flows: 1024,
        target_ns: 5 * MS,
        interval_ns: 100 * MS,
        quantum_bytes: None,
        ecn: true,
        ce_threshold_ns: None,
        ce_threshold_selector: None,
        memory_limit_bytes: 32 << 20,
        drop_batch: 64,
    }
}

fn bench(parameters: scenario::FqCodel) -> Bench {
    Bench::new(&scenario::Qdisc::FqCodel(parameters))
}

/// A flow of its own queue, of the 1024.
fn flow(index: u32) -> Flow {
    Flow { hash: index << 22, ..Flow::default() }
}

/// Enqueues full frames of a flow, none of which must be dropped.
fn arrive(bench: &mut Bench, index: u32, packets: u32, now_ns: u64, ecn: Ecn) {
    for _ in 0..packets {
        let arrived = bench.arrive_of(flow(index), now_ns, FRAME, TrafficClass::new(0, ecn));
        assert_eq!(arrived, (Xmit::Queued, vec![]));
    }
}

fn dequeue(bench: &mut Bench, packets: usize, now_ns: u64) -> Vec<u64> {
    (0..packets).filter_map(|_| bench.dequeue(now_ns).0).map(|packet| packet.0).collect()
}

#[test]
fn fq_codel_lets_new_flows_pass_old_ones() {
    let mut bench = bench(parameters());
    arrive(&mut bench, 3, 4, 0, Ecn::NotEct);
    assert_eq!(dequeue(&mut bench, 1, 0), [0]);
    arrive(&mut bench, 9, 2, 0, Ecn::NotEct);
    // Flow 3 has used its quantum up, and becomes old. Flow 9 sends its quantum, and they take turns.
    assert_eq!(dequeue(&mut bench, 9, 0), [4, 1, 5, 2, 3]);
    assert_eq!(bench.backlog(), (0, 0));
}

/// `codel_dequeue` forgets how long a flow has been above target when it finds its queue empty. So packets that come singly
/// are never dropped, however long each of them waits for the others.
#[test]
fn fq_codel_does_not_drop_packets_that_come_singly() {
    let mut bench = bench(parameters());
    arrive(&mut bench, 3, 100, 0, Ecn::NotEct);
    let mut single = Vec::new();
    for turn in 0..20 {
        let now_ns = turn * 50 * MS;
        bench.arrive_of(flow(9), now_ns, 98, TrafficClass::new(0, Ecn::NotEct));
        single.extend(dequeue(&mut bench, 3, now_ns + 6 * MS).into_iter().filter(|number| *number >= 100));
    }
    assert_eq!(single, (100..120).collect::<Vec<_>>());
}

#[test]
fn fq_codel_keeps_flows_with_the_same_queue_in_order() {
    let mut bench = bench(scenario::FqCodel { flows: 1, ..parameters() });
    (0..4).for_each(|index| arrive(&mut bench, index, 1, 0, Ecn::NotEct));
    assert_eq!(dequeue(&mut bench, 9, 0), [0, 1, 2, 3]);
}

#[test]
fn fq_codel_counts_turns_in_bytes_of_its_quantum() {
    // A quantum of 100 bytes is raised to 256. One turn lasts for a full frame, and five more quanta are waited for
    // until the next: 256 - 1514 + 5 * 256 = 22 bytes. Flow 9 has small packets. It sends two, then as many as are
    // covered by a quantum a round.
    let mut bench = bench(scenario::FqCodel { quantum_bytes: Some(100), ..parameters() });
    arrive(&mut bench, 3, 2, 0, Ecn::NotEct);
    for _ in 0..30 {
        bench.arrive_of(flow(9), 0, 128, TrafficClass::new(0, Ecn::NotEct));
    }
    let order = dequeue(&mut bench, 32, 0);
    let full: Vec<usize> = (0..32).filter(|index| order[*index] < 2).collect();
    assert_eq!(full, [0, 11], "two packets a round in five rounds are between them");
}

#[test]
fn fq_codel_drops_from_the_flow_that_waits_too_long_at_codels_pace() {
    // One flow with a standing queue, as in the tests of codel: drops at 105, 205, 255 and 312 ms. Beside it, a sparse
    // flow sends one packet a millisecond, which leaves at once.
    let mut bench = bench(parameters());
    arrive(&mut bench, 3, 1000, 0, Ecn::NotEct);
    let mut drops = Vec::new();
    for ms in 0..320 {
        arrive(&mut bench, 9, 1, ms * MS, Ecn::NotEct);
        for _ in 0..2 {
            let (packet, events) = bench.dequeue(ms * MS);
            assert!(packet.is_some());
            drops.extend(events.into_iter().map(|event| (ms, event)));
        }
    }
    assert!(drops.iter().all(|(_, (number, reason))| *number < 1000 && *reason == Reason::CODEL), "{drops:?}");
    assert_eq!(drops.iter().map(|drop| drop.0).collect::<Vec<_>>(), [105, 205, 255, 312]);
}

#[test]
fn fq_codel_marks_capable_packets_unless_configured_otherwise() {
    for (ecn, ect, expected) in
        [(true, Ecn::Ect0, Reason::CODEL_MARK), (true, Ecn::NotEct, Reason::CODEL), (false, Ecn::Ect0, Reason::CODEL)]
    {
        let mut bench = bench(scenario::FqCodel { ecn, ..parameters() });
        arrive(&mut bench, 3, 200, 0, ect);
        let events: Vec<_> = (0..106).flat_map(|ms| bench.dequeue(ms * MS).1).collect();
        assert_eq!(events, [(105, expected)]);
    }
}

#[test]
fn fq_codel_drops_nothing_while_all_queues_together_hold_an_mtu() {
    // Each of two flows has one packet left behind the one that leaves. Together they are more than an MTU.
    let late = |flows: u32| {
        let mut bench = bench(parameters());
        let mut drops = 0;
        for second in 0..10 {
            (0..flows).for_each(|index| arrive(&mut bench, index, 1, second * 1000 * MS, Ecn::NotEct));
            drops += if second == 0 { 0 } else { bench.dequeue((second * 1000 + 900) * MS).1.len() };
            (1..flows).for_each(|_| drops += bench.dequeue((second * 1000 + 900) * MS).1.len());
        }
        drops
    };
    assert_eq!(late(1), 0);
    assert!(late(3) > 0);
}

#[test]
fn fq_codel_marks_what_the_selector_chooses_above_the_threshold() {
    // Only ECT(1), whatever the code point. 2 ms is above the threshold of 1 ms (976 units of 1024 ns).
    let mut bench = bench(scenario::FqCodel {
        ce_threshold_ns: Some(MS),
        ce_threshold_selector: Some(DsFilter { value: 0b01, mask: 0b11 }),
        ..parameters()
    });
    for (dscp, ecn) in [(0, Ecn::Ect0), (0, Ecn::Ect1), (46, Ecn::Ect1), (0, Ecn::NotEct)] {
        bench.arrive_of(flow(3), 0, FRAME, TrafficClass::new(dscp, ecn));
    }
    let marks: Vec<_> = (0..4).flat_map(|_| bench.dequeue(2 * MS).1).collect();
    assert_eq!(marks, [(1, Reason::CODEL_MARK), (2, Reason::CODEL_MARK)]);
}

#[test]
fn fq_codel_drops_half_of_the_fattest_flow_above_its_limit() {
    // Flow 3 has ten packets. The eleventh packet is one of flow 9, and exceeds the limit: five of flow 3 go, and flow 9
    // is not notified.
    let mut bench = bench(scenario::FqCodel { limit_packets: 10, ..parameters() });
    arrive(&mut bench, 3, 10, 0, Ecn::NotEct);
    let class = TrafficClass::new(0, Ecn::NotEct);
    let (xmit, events) = bench.arrive_of(flow(9), 0, FRAME, class);
    assert_eq!((xmit, events), (Xmit::Queued, (0..5).map(|number| (number, Reason::OVERLIMIT)).collect()));
    assert_eq!(bench.backlog(), (6, 6 * u64::from(FRAME)));
    // Another five of flow 3: the last exceeds the limit, and the oldest five of its ten go. Its sender is notified.
    arrive(&mut bench, 3, 4, 0, Ecn::NotEct);
    let (xmit, events) = bench.arrive_of(flow(3), 0, FRAME, class);
    let expected = [5, 6, 7, 8, 9].map(|number| (number, Reason::OVERLIMIT)).to_vec();
    assert_eq!((xmit, events), (Xmit::Displacing, expected));
    assert_eq!(dequeue(&mut bench, 9, 0), [11, 10, 12, 13, 14, 15]);
}

#[test]
fn fq_codel_drops_one_batch_at_most() {
    let mut bench = bench(scenario::FqCodel { limit_packets: 200, drop_batch: 7, ..parameters() });
    arrive(&mut bench, 3, 200, 0, Ecn::NotEct);
    let (_, events) = bench.arrive_of(flow(3), 0, FRAME, TrafficClass::new(0, Ecn::NotEct));
    assert_eq!(events, (0..7).map(|number| (number, Reason::OVERLIMIT)).collect::<Vec<_>>());
}

#[test]
fn fq_codel_notifies_the_sender_if_the_packet_itself_is_dropped() {
    let mut bench = bench(scenario::FqCodel { limit_packets: 1, ..parameters() });
    arrive(&mut bench, 3, 1, 0, Ecn::NotEct);
    // 9 is smaller than 3 and stays; 5 is larger and goes.
    let class = TrafficClass::new(0, Ecn::NotEct);
    assert_eq!(bench.arrive_of(flow(9), 0, 100, class), (Xmit::Queued, vec![(0, Reason::OVERLIMIT)]));
    assert_eq!(bench.arrive_of(flow(5), 0, 1000, class), (Xmit::Congested, vec![(2, Reason::OVERLIMIT)]));
}

#[test]
fn fq_codel_counts_the_memory_that_linux_would_need() {
    // A full echo packet takes 2304 bytes: 2048 for its data and 256 to manage it. Three fit into 6912 bytes.
    let class = TrafficClass::new(0, Ecn::NotEct);
    let mut bench = bench(scenario::FqCodel { memory_limit_bytes: 3 * 2304, ..parameters() });
    arrive(&mut bench, 3, 3, 0, Ecn::NotEct);
    // Flow 3 has 4542 bytes. One packet is less than half of them.
    let (_, events) = bench.arrive_of(flow(9), 0, FRAME, class);
    assert_eq!(events, [(0, Reason::OVERMEMORY), (1, Reason::OVERMEMORY)]);
    // What leaves makes room again.
    assert_eq!(dequeue(&mut bench, 1, 0), [2]);
    arrive(&mut bench, 9, 2, 0, Ecn::NotEct);
    assert_eq!(bench.arrive_of(flow(5), 0, FRAME, class).1, [(3, Reason::OVERMEMORY), (4, Reason::OVERMEMORY)]);
}

#[test]
fn fq_codel_forgets_empty_flows_when_the_layer_below_finds_nothing() {
    let mut bench = bench(parameters());
    arrive(&mut bench, 3, 1, 0, Ecn::NotEct);
    assert_eq!(dequeue(&mut bench, 1, 0), [0]);
    bench.idle_since(MS);
    // Both flows are new, in the order of their packets. If flow 3 were still known, it would have no quantum left.
    arrive(&mut bench, 3, 2, 2 * MS, Ecn::NotEct);
    arrive(&mut bench, 9, 1, 2 * MS, Ecn::NotEct);
    assert_eq!(dequeue(&mut bench, 3, 2 * MS), [1, 3, 2]);
}

#[test]
fn fq_codel_drops_what_is_over_lowered_limits_in_the_order_of_sending() {
    let mut bench = bench(parameters());
    arrive(&mut bench, 3, 3, 0, Ecn::NotEct);
    arrive(&mut bench, 9, 3, 0, Ecn::NotEct);
    let lowered = scenario::FqCodel { limit_packets: 3, ..parameters() };
    let over_limit = [0, 3, 1].map(|number| (number, Reason::OVERLIMIT));
    assert_eq!(bench.change(&scenario::Qdisc::FqCodel(lowered)), over_limit);
    let lowered = scenario::FqCodel { memory_limit_bytes: 2304, ..parameters() };
    let over_memory = [4, 2].map(|number| (number, Reason::OVERMEMORY));
    assert_eq!(bench.change(&scenario::Qdisc::FqCodel(lowered)), over_memory);
    assert_eq!(dequeue(&mut bench, 3, 0), [5]);
}

#[test]
fn fq_codel_is_replaced_if_the_number_of_flows_changes() {
    let mut bench = bench(parameters());
    arrive(&mut bench, 3, 2, 0, Ecn::NotEct);
    let events = bench.change(&scenario::Qdisc::FqCodel(scenario::FqCodel { flows: 16, ..parameters() }));
    assert_eq!(events, [0, 1].map(|number| (number, Reason::PURGED)));
    assert_eq!(bench.backlog(), (0, 0));
}

proptest! {
    /// Packets of a flow leave in order, each exactly once or not at all if it was dropped, and the backlog is that of
    /// the packets inside.
    #[test]
    fn fq_codel_loses_nothing_and_keeps_order(
        steps in proptest::collection::vec((0..5_u32, 60..=1514_u32, 0..4_u32, 0..20 * MS), 1..300),
        limit_packets in 1..40_u32,
        memory_limit_bytes in 2000..100_000_u32,
    ) {
        let mut bench = bench(scenario::FqCodel { limit_packets, memory_limit_bytes, ..parameters() });
        let mut now_ns = 0;
        let mut inside = std::collections::BTreeMap::new();
        for (number, (index, bytes, packets, pause_ns)) in (0..).zip(steps) {
            now_ns += pause_ns;
            inside.insert(number, (index, bytes));
            let (_, events) = bench.arrive_of(flow(index), now_ns, bytes, TrafficClass::new(0, Ecn::NotEct));
            events.iter().for_each(|event| assert!(inside.remove(&event.0).is_some()));
            for _ in 0..packets {
                let (packet, events) = bench.dequeue(now_ns);
                events.iter().for_each(|event| assert!(inside.remove(&event.0).is_some()));
                let Some((packet, _)) = packet else { break };
                let (index, _) = inside.remove(&packet).expect("it was inside");
                prop_assert!(inside.iter().all(|(number, other)| other.0 != index || *number > packet));
            }
            let bytes: u64 = inside.values().map(|packet| u64::from(packet.1)).sum();
            prop_assert_eq!(bench.backlog(), (inside.len() as u64, bytes));
            prop_assert!(bench.backlog().0 <= u64::from(limit_packets));
        }
    }

    /// Flows that always have packets waiting get the same number of bytes, to a quantum and a frame.
    #[test]
    fn fq_codel_serves_flows_alike(sizes in proptest::collection::vec(60..=1514_u32, 4), packets in 1..400_usize) {
        let mut bench = bench(parameters());
        let class = TrafficClass::new(0, Ecn::NotEct);
        let arrivals = || (0..500).flat_map(|_| (0..).zip(&sizes));
        arrivals().for_each(|(index, bytes)| assert!(bench.arrive_of(flow(index), 0, *bytes, class).1.is_empty()));
        let mut served = [0_u64; 4];
        for number in dequeue(&mut bench, packets, 0) {
            served[number as usize % 4] += u64::from(sizes[number as usize % 4]);
        }
        let spread = served.iter().max().unwrap() - served.iter().min().unwrap();
        prop_assert!(spread <= 2 * u64::from(FRAME), "{served:?}");
    }
}
