use super::*;
use crate::network::qdisc::Qdisc;
use crate::network::qdisc::testing::{Bench, FRAME, Flow, MS};
use crate::network::traffic_class::{Ecn, TrafficClass};

/// Those of `tc qdisc add ... sfq`.
fn parameters() -> scenario::Sfq {
    scenario::Sfq {
        limit_packets: 127,
        depth_packets: 127,
        divisor: 1024,
        flows: 128,
        quantum_bytes: FRAME,
        perturb_s: None,
        headdrop: false,
        red: None,
    }
}

/// A weight of 1/4. Hardly any packet is dropped early.
fn red() -> scenario::FlowRed {
    scenario::FlowRed {
        limit_bytes: 100_000,
        min_bytes: 3000,
        max_bytes: 9000,
        avpkt_bytes: 1000,
        burst_packets: 4,
        probability: 1e-5,
        ecn: false,
        harddrop: false,
    }
}

fn bench(parameters: scenario::Sfq) -> Bench {
    Bench::new(&scenario::Qdisc::Sfq(parameters))
}

fn sfq(bench: &mut Bench) -> &mut Sfq {
    match bench.qdisc_mut() {
        Qdisc::Sfq(sfq) => sfq,
        other => unreachable!("{other:?}"),
    }
}

/// The hashes of flows that have each a queue of its own.
fn apart(bench: &mut Bench, flows: usize) -> Vec<u32> {
    let (sfq, mut taken) = (sfq(bench), std::collections::HashSet::new());
    (0..).filter(|&hash| taken.insert(sfq.mixed(hash))).take(flows).collect()
}

fn arrive(bench: &mut Bench, hash: u32, bytes: u32, ecn: Ecn) -> (Xmit, Vec<(u64, Reason)>) {
    bench.arrive_of(Flow { hash, ..Flow::default() }, 0, bytes, TrafficClass::new(0, ecn))
}

/// Packets that must find room.
fn fill(bench: &mut Bench, hash: u32, packets: u32, bytes: u32) {
    (0..packets).for_each(|_| assert_eq!(arrive(bench, hash, bytes, Ecn::NotEct), (Xmit::Queued, Vec::new())));
}

/// The numbers of all packets in the order in which they leave.
fn drain(bench: &mut Bench) -> Vec<u64> {
    std::iter::from_fn(|| bench.dequeue(0).0).map(|(number, _)| number).collect()
}

#[test]
fn flows_take_turns() {
    let mut bench = bench(parameters());
    let hashes = apart(&mut bench, 2);
    fill(&mut bench, hashes[0], 3, FRAME);
    fill(&mut bench, hashes[1], 3, FRAME);
    assert_eq!(bench.backlog(), (6, 6 * u64::from(FRAME)));
    assert_eq!(drain(&mut bench), [0, 3, 1, 4, 2, 5]);
    assert_eq!(bench.backlog(), (0, 0));
}

#[test]
fn a_turn_is_one_of_bytes_and_its_excess_is_paid_back() {
    let mut bench = bench(parameters());
    let hashes = apart(&mut bench, 2);
    fill(&mut bench, hashes[0], 8, 500);
    fill(&mut bench, hashes[1], 2, FRAME);
    // 1514 bytes are 1014, 514, 14 and -486 after four packets, 1028 in the second round, then 528, 28, -472.
    assert_eq!(drain(&mut bench), [0, 1, 2, 3, 8, 4, 5, 6, 9, 7]);
}

#[test]
fn a_flow_that_begins_comes_last() {
    let mut bench = bench(parameters());
    let hashes = apart(&mut bench, 3);
    fill(&mut bench, hashes[0], 2, FRAME);
    fill(&mut bench, hashes[1], 2, FRAME);
    assert_eq!(bench.dequeue(0).0.map(|left| left.0), Some(0));
    fill(&mut bench, hashes[2], 1, FRAME);
    // The first flow has not given its turn up yet when the third begins, behind the second.
    assert_eq!(drain(&mut bench), [2, 4, 1, 3]);
}

#[test]
fn the_longest_queue_loses_its_newest_packet() {
    let mut bench = bench(scenario::Sfq { limit_packets: 4, flows: 4, ..parameters() });
    let hashes = apart(&mut bench, 2);
    fill(&mut bench, hashes[0], 3, FRAME);
    fill(&mut bench, hashes[1], 1, 100);
    // The sender is not notified, because the packet is another sender's.
    assert_eq!(arrive(&mut bench, hashes[1], 100, Ecn::NotEct), (Xmit::Queued, vec![(2, Reason::OVERLIMIT)]));
    assert_eq!(bench.backlog(), (4, 2 * u64::from(FRAME) + 200));
    // Two each now: the queue that gets its third packet is the longest.
    assert_eq!(arrive(&mut bench, hashes[0], FRAME, Ecn::NotEct), (Xmit::Congested, vec![(5, Reason::OVERLIMIT)]));
    assert_eq!(drain(&mut bench), [0, 3, 4, 1]);
}

#[test]
fn of_queues_of_one_length_the_one_that_reached_it_last_loses() {
    let mut bench = bench(scenario::Sfq { limit_packets: 6, flows: 6, ..parameters() });
    let hashes = apart(&mut bench, 3);
    fill(&mut bench, hashes[0], 3, FRAME);
    fill(&mut bench, hashes[1], 3, FRAME);
    let dropped = |bench: &mut Bench| arrive(bench, hashes[2], FRAME, Ecn::NotEct).1[0].0;
    // Both have three; then one has two, and the other is the longest.
    assert_eq!([dropped(&mut bench), dropped(&mut bench)], [5, 2]);
    // Of three queues of two, the one that gets a third packet is the longest.
    assert_eq!(arrive(&mut bench, hashes[2], FRAME, Ecn::NotEct), (Xmit::Congested, vec![(8, Reason::OVERLIMIT)]));
}

#[test]
fn if_all_queues_have_one_packet_the_next_one_to_leave_is_dropped() {
    let mut bench = bench(parameters());
    let hashes = apart(&mut bench, 128);
    for &hash in &hashes[..127] {
        fill(&mut bench, hash, 1, FRAME);
    }
    assert_eq!(arrive(&mut bench, hashes[127], FRAME, Ecn::NotEct), (Xmit::Queued, vec![(0, Reason::OVERLIMIT)]));
    assert_eq!(drain(&mut bench), (1..128).collect::<Vec<_>>());
}

#[test]
fn without_a_free_slot_a_new_flow_is_dropped() {
    let mut bench = bench(scenario::Sfq { flows: 2, limit_packets: 100, ..parameters() });
    let hashes = apart(&mut bench, 3);
    fill(&mut bench, hashes[0], 1, FRAME);
    fill(&mut bench, hashes[1], 1, FRAME);
    assert_eq!(arrive(&mut bench, hashes[2], FRAME, Ecn::NotEct), (Xmit::Dropped, vec![(2, Reason::OVERLIMIT)]));
    bench.dequeue(0);
    assert_eq!(arrive(&mut bench, hashes[2], FRAME, Ecn::NotEct).0, Xmit::Queued);
}

#[test]
fn a_queue_has_a_limit_of_its_own() {
    let mut bench = bench(scenario::Sfq { depth_packets: 2, ..parameters() });
    fill(&mut bench, 0, 2, FRAME);
    assert_eq!(arrive(&mut bench, 0, FRAME, Ecn::NotEct), (Xmit::Dropped, vec![(2, Reason::OVERLIMIT)]));
    assert_eq!(drain(&mut bench), [0, 1]);
}

#[test]
fn headdrop_drops_the_oldest_packet_instead() {
    let mut bench = bench(scenario::Sfq { depth_packets: 2, headdrop: true, ..parameters() });
    fill(&mut bench, 0, 2, FRAME);
    assert_eq!(arrive(&mut bench, 0, 500, Ecn::NotEct), (Xmit::Displacing, vec![(0, Reason::OVERLIMIT)]));
    assert_eq!(bench.backlog(), (2, u64::from(FRAME) + 500));
    assert_eq!(drain(&mut bench), [1, 2]);
    // The same at the limit of all queues.
    let mut bench = self::bench(scenario::Sfq { limit_packets: 2, flows: 2, headdrop: true, ..parameters() });
    fill(&mut bench, 0, 2, FRAME);
    assert_eq!(arrive(&mut bench, 0, FRAME, Ecn::NotEct), (Xmit::Displacing, vec![(0, Reason::OVERLIMIT)]));
    assert_eq!(drain(&mut bench), [1, 2]);
}

/// The averages of one queue that packets of 1000 bytes find, with two fraction bits: avg' = avg - (avg >> 2) + bytes.
/// Nothing is averaged for the first packet.
#[test]
fn each_queue_has_an_average_of_its_own() {
    let mut bench = bench(scenario::Sfq { red: Some(red()), ..parameters() });
    let hashes = apart(&mut bench, 2);
    let average = |bench: &mut Bench, hash| {
        let sfq = sfq(bench);
        let index = sfq.slots.find(sfq.mixed(hash)).expect("a queue");
        sfq.slots.get(index).watch.average
    };
    let averages: Vec<u64> = (0..12)
        .map(|_| {
            fill(&mut bench, hashes[0], 1, 1000);
            average(&mut bench, hashes[0])
        })
        .collect();
    let expected = [0, 1000, 2750, 5063, 7798, 10_849, 14_137, 17_603, 21_203, 24_903, 28_678, 32_509];
    assert_eq!(averages, expected);
    // 32509 - 8127 + 12000 = 36382 is more than 9000 * 4. It is a drop for the sender, not congestion.
    let (xmit, events) = arrive(&mut bench, hashes[0], 1000, Ecn::Ect0);
    assert_eq!((xmit, events), (Xmit::Dropped, vec![(12, Reason::RED_FORCED)]));
    fill(&mut bench, hashes[1], 1, 1000);
    assert_eq!(average(&mut bench, hashes[1]), 0);
    // A queue that was empty has no past.
    drain(&mut bench);
    fill(&mut bench, hashes[0], 1, 1000);
    assert_eq!(average(&mut bench, hashes[0]), 0);
}

/// What happens to a 13th packet of 1000 bytes, above `max`.
fn above_max(red: scenario::FlowRed, headdrop: bool, first: Ecn, last: Ecn) -> (Xmit, Vec<(u64, Reason)>) {
    let mut bench = bench(scenario::Sfq { red: Some(red), headdrop, ..parameters() });
    arrive(&mut bench, 0, 1000, first);
    fill(&mut bench, 0, 11, 1000);
    arrive(&mut bench, 0, 1000, last)
}

#[test]
fn the_arriving_packet_is_marked_or_with_headdrop_the_oldest() {
    let ecn = scenario::FlowRed { ecn: true, ..red() };
    let marked = |number| (Xmit::Queued, vec![(number, Reason::RED_MARK)]);
    assert_eq!(above_max(ecn.clone(), false, Ecn::Ect0, Ecn::Ect0), marked(12));
    assert_eq!(above_max(ecn.clone(), true, Ecn::Ect0, Ecn::NotEct), marked(0));
    assert_eq!(above_max(ecn.clone(), true, Ecn::NotEct, Ecn::Ect0), marked(12));
    let displaced = (Xmit::Displacing, vec![(0, Reason::RED_FORCED)]);
    assert_eq!(above_max(ecn.clone(), true, Ecn::NotEct, Ecn::NotEct), displaced);
    let hard = scenario::FlowRed { harddrop: true, ..ecn };
    let dropped = (Xmit::Dropped, vec![(12, Reason::RED_FORCED)]);
    assert_eq!(above_max(hard, false, Ecn::Ect0, Ecn::Ect0), dropped);
}

#[test]
fn a_perturbation_sorts_all_packets_anew_and_keeps_each_flow_in_order() {
    let mut bench = bench(scenario::Sfq { perturb_s: Some(10), ..parameters() });
    let hashes = apart(&mut bench, 40);
    for _ in 0..3 {
        hashes.iter().for_each(|&hash| fill(&mut bench, hash, 1, FRAME));
    }
    let due_ns = bench.qdisc().timer().expect("there is a timer");
    let salt = sfq(&mut bench).salt;
    assert_eq!(bench.on_timer(due_ns), []);
    assert_ne!(sfq(&mut bench).salt, salt);
    // 2500 jiffies, and up to a bucket of 64 more.
    let passed_ns = bench.qdisc().timer().expect("there is a timer") - due_ns;
    assert!((10_000 * MS + 1..=10_256 * MS).contains(&passed_ns), "{passed_ns}");
    assert_eq!(bench.backlog(), (120, 120 * u64::from(FRAME)));
    let left = drain(&mut bench);
    for flow in 0..40 {
        let own: Vec<u64> = left.iter().copied().filter(|number| number % 40 == flow).collect();
        assert_eq!(own, [flow, flow + 40, flow + 80]);
    }
    let keeps_time = |parameters| Qdisc::keeps_time(&scenario::Qdisc::Sfq(parameters));
    assert!(!keeps_time(parameters()) && keeps_time(scenario::Sfq { perturb_s: Some(1), ..parameters() }));
}

#[test]
fn flows_that_a_perturbation_brings_together_have_one_queues_room() {
    let pair = scenario::Sfq { perturb_s: Some(10), divisor: 2, flows: 2, depth_packets: 2, ..parameters() };
    let mut bench = bench(pair);
    let hashes = apart(&mut bench, 2);
    hashes.iter().for_each(|&hash| fill(&mut bench, hash, 2, FRAME));
    let dropped = (1..100).map(|second| bench.on_timer(second * 10_000 * MS)).find(|events| !events.is_empty());
    let dropped: Vec<u64> =
        dropped.expect("half of the salts bring them together").iter().map(|event| event.0).collect();
    // The packets of the slot that comes first stay.
    assert!(dropped == [0, 1] || dropped == [2, 3], "{dropped:?}");
    assert_eq!(bench.backlog(), (2, 2 * u64::from(FRAME)));
}

#[test]
fn a_change_begins_with_empty_queues() {
    let mut bench = bench(parameters());
    fill(&mut bench, 0, 2, FRAME);
    let changed = scenario::Qdisc::Sfq(scenario::Sfq { depth_packets: 5, ..parameters() });
    assert_eq!(bench.change(&changed), [(0, Reason::PURGED), (1, Reason::PURGED)]);
    assert_eq!(bench.backlog(), (0, 0));
    fill(&mut bench, 0, 5, FRAME);
    assert_eq!(arrive(&mut bench, 0, FRAME, Ecn::NotEct).0, Xmit::Dropped);
}
