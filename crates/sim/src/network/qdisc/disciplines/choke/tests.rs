use super::*;
use crate::network::qdisc::testing::{Bench, FRAME, Flow};
use crate::network::qdisc::{Attachment, Qdisc};
use crate::network::traffic_class::{Ecn, TrafficClass};

/// A weight of 1/4: the averages below have two fraction bits. Hardly any packet is dropped early.
fn parameters() -> scenario::Choke {
    scenario::Choke {
        limit_packets: 8,
        min_packets: 2,
        max_packets: 6,
        avpkt_bytes: 1000,
        burst_packets: 3,
        probability: 0.0001,
        bandwidth_bps: 10_000_000,
        ecn: false,
    }
}

fn bench(parameters: scenario::Choke) -> Bench {
    Bench::new(&scenario::Qdisc::Choke(parameters))
}

fn choke(bench: &mut Bench) -> &mut Choke {
    match bench.qdisc_mut() {
        Qdisc::Choke(choke) => choke,
        other => unreachable!("{other:?}"),
    }
}

fn arrive(bench: &mut Bench, hash: u32, ecn: Ecn) -> (Xmit, Vec<(u64, Reason)>) {
    bench.arrive_of(Flow { hash, ..Flow::default() }, 0, FRAME, TrafficClass::new(0, ecn))
}

/// The averages after arrivals that each have a flow of their own.
fn averages(bench: &mut Bench, arrivals: u32) -> Vec<u64> {
    (0..arrivals)
        .map(|hash| {
            arrive(bench, hash, Ecn::NotEct);
            choke(bench).watch.average
        })
        .collect()
}

#[test]
fn the_average_is_one_of_packets() {
    // avg' = avg - (avg >> 2) + packets. The first arrival ends the idle time and adds nothing.
    assert_eq!(averages(&mut bench(parameters()), 9), [0, 1, 3, 6, 9, 12, 15, 19, 23]);
}

#[test]
fn above_min_two_packets_of_a_flow_are_dropped_together() {
    let mut bench = bench(parameters());
    for _ in 0..4 {
        assert_eq!(arrive(&mut bench, 7, Ecn::NotEct), (Xmit::Queued, Vec::new()));
    }
    // The average becomes 9/4. Whatever is drawn matches.
    let (xmit, events) = arrive(&mut bench, 7, Ecn::Ect0);
    assert_eq!(xmit, Xmit::Congested);
    let [drawn, arrived] = events[..] else { unreachable!("{events:?}") };
    assert!(drawn.0 < 4);
    assert_eq!((drawn.1, arrived), (Reason::CHOKE_MATCHED, (4, Reason::CHOKE_MATCHED)));
    assert_eq!(bench.backlog(), (3, 3 * u64::from(FRAME)));
    let left: Vec<u64> = std::iter::from_fn(|| bench.dequeue(0).0).map(|(number, _)| number).collect();
    assert_eq!(left, (0..4).filter(|number| *number != drawn.0).collect::<Vec<_>>());
}

#[test]
fn at_min_nothing_is_compared() {
    let mut bench = bench(parameters());
    (0..4).for_each(|_| assert_eq!(arrive(&mut bench, 7, Ecn::NotEct).0, Xmit::Queued));
    bench.dequeue(0);
    // 6 - 1 + 3 = 8 is just min.
    assert_eq!(arrive(&mut bench, 7, Ecn::NotEct).0, Xmit::Queued);
    assert_eq!(choke(&mut bench).watch.average, 8);
}

#[test]
fn other_addresses_make_another_flow() {
    let mut bench = bench(parameters());
    (0..4).for_each(|_| assert_eq!(arrive(&mut bench, 7, Ecn::NotEct).0, Xmit::Queued));
    for flow in [Flow { hash: 7, source: 1, destination: 0 }, Flow { hash: 7, source: 0, destination: 1 }] {
        assert_eq!(bench.arrive_of(flow, 0, FRAME, TrafficClass::new(0, Ecn::NotEct)).0, Xmit::Queued);
    }
}

#[test]
fn the_limit_and_a_forced_drop_are_distinguished() {
    let mut bench = bench(parameters());
    averages(&mut bench, 8);
    // 23 is below 6 * 4: only the limit is in the way. Then 23 - 5 + 8 = 26.
    assert_eq!(arrive(&mut bench, 8, Ecn::NotEct), (Xmit::Dropped, vec![(8, Reason::OVERLIMIT)]));
    assert_eq!(arrive(&mut bench, 9, Ecn::NotEct), (Xmit::Congested, vec![(9, Reason::RED_FORCED)]));
}

#[test]
fn capable_packets_are_marked_above_max() {
    let mut bench = bench(scenario::Choke { ecn: true, limit_packets: 100, ..parameters() });
    // With room in the queue, the averages go on 23 - 5 + 9 = 27.
    assert_eq!(averages(&mut bench, 9), [0, 1, 3, 6, 9, 12, 15, 19, 23]);
    assert_eq!(arrive(&mut bench, 9, Ecn::Ect0), (Xmit::Queued, vec![(9, Reason::RED_MARK)]));
    assert_eq!(arrive(&mut bench, 10, Ecn::NotEct), (Xmit::Congested, vec![(10, Reason::RED_FORCED)]));
}

#[test]
fn every_packet_is_drawn_equally_often_but_the_head_also_instead_of_holes() {
    let mut bench = bench(parameters());
    averages(&mut bench, 4);
    let choke = choke(&mut bench);
    choke.ring.take(1);
    let mut counts = [0_u32; 4];
    (0..64_000).for_each(|_| counts[choke.draw().expect("packets") as usize] += 1);
    // A quarter at each of three draws that follow a hole: 21/64. The head is also taken after three holes, 1/64. The
    // standard deviation is sqrt(64000 * 0.33 * 0.67) = 119.
    for (count, expected) in counts.into_iter().zip([22_000_u32, 0, 21_000, 21_000]) {
        assert!(count.abs_diff(expected) <= if expected == 0 { 0 } else { 480 }, "{counts:?}");
    }
}

#[test]
fn holes_at_the_head_are_skipped_and_others_take_slots() {
    let mut ring = Ring::new(3);
    let mut bench = bench(parameters());
    averages(&mut bench, 4);
    let ids: Vec<PacketId> = choke(&mut bench).ring.iter().collect();
    assert!(ids[..3].iter().all(|&id| ring.push(id)));
    assert!(!ring.push(ids[3]), "one of four slots stays free");
    assert_eq!(ring.take(1), Some(ids[1]));
    assert!(!ring.push(ids[3]), "a hole in the middle is no room");
    assert_eq!(ring.take(ring.head), Some(ids[0]));
    assert_eq!((ring.head, ring.length()), (2, 1), "the hole behind the head went with it");
    assert!(ring.push(ids[3]));
    assert_eq!(ring.iter().collect::<Vec<_>>(), [ids[2], ids[3]]);
}

#[test]
fn a_change_keeps_what_the_smaller_ring_holds_and_forgets_the_average() {
    let mut bench = bench(parameters());
    averages(&mut bench, 8);
    // A limit of 5 has a ring of 8 slots, of which 7 can be used.
    let changed = scenario::Choke { limit_packets: 5, max_packets: 5, ..parameters() };
    assert_eq!(bench.change(&scenario::Qdisc::Choke(changed)), [(7, Reason::OVERLIMIT)]);
    assert_eq!(bench.backlog(), (7, 7 * u64::from(FRAME)));
    assert_eq!(arrive(&mut bench, 99, Ecn::NotEct), (Xmit::Dropped, vec![(8, Reason::OVERLIMIT)]));
    assert_eq!(choke(&mut bench).watch.average, 7, "the queue was not idle");
    assert_eq!(bench.dequeue(0).0, Some((0, Ecn::NotEct)));
}

#[test]
fn parameters_that_tc_refuses_are_refused() {
    let refused = scenario::Choke { burst_packets: 1, ..parameters() };
    let attachment =
        Attachment { port: 0, node: 0, encapsulation: scenario::Encapsulation::adding(14), seed: 1, now_ns: 0 };
    assert!(Qdisc::new(&scenario::Qdisc::Choke(refused), attachment).is_err());
}
