//! Which queue a flow gets, and what it may send in a round.

use super::*;
use crate::network::packet::Load;
use crate::network::traffic_class::{Ecn, TrafficClass};
use crate::random::Stream;

/// The header of a packet whose queue is chosen by this value.
fn header(hash: u32, source: u16, destination: u16) -> Header {
    let class = TrafficClass::new(0, Ecn::NotEct);
    Header {
        at_ns: 0,
        ip_bytes: 1500,
        frame_bytes: 1514,
        flow: 0,
        hash: hash.rotate_right(16),
        port: 0,
        source,
        destination,
        class,
        load: Load::of(1),
    }
}

fn isolation(mode: FlowMode) -> Isolation {
    Isolation::new(mode)
}

fn flows() -> Flows {
    Flows { quantum: 1514, ..Flows::new(7) }
}

/// The queue of a flow, which becomes active.
fn activate(flows: &mut Flows, header: &Header, mode: FlowMode) -> usize {
    let index = flows.classify(header, isolation(mode));
    if flows.flows[index].set == Set::Free {
        flows.append(index, List::New);
        flows.become_bulk(index, isolation(mode));
    }
    index
}

/// Flows whose hashes differ by multiples of 1024 belong to the same queue: eight of them get queues of their own, in
/// the order of the set from the first on, and a ninth shares the first.
#[test]
fn a_set_has_eight_queues() {
    let mut flows = flows();
    let indices: Vec<usize> =
        (0..9).map(|n| activate(&mut flows, &header(13 + n * 1024, 0, 1), FlowMode::Flows)).collect();
    assert_eq!(indices, [13, 14, 15, 8, 9, 10, 11, 12, 13]);
    // The ninth has taken over the first queue, whose flow finds no other.
    assert_eq!(activate(&mut flows, &header(13, 0, 1), FlowMode::Flows), 13);
    assert_eq!(activate(&mut flows, &header(13 + 1024, 0, 1), FlowMode::Flows), 14, "it keeps its queue");
}

/// A queue that became free stays reserved for its flow until another needs it.
#[test]
fn a_flow_comes_back_to_its_queue() {
    let mut flows = flows();
    let mode = FlowMode::Flows;
    activate(&mut flows, &header(13, 0, 1), mode);
    let second = activate(&mut flows, &header(13 + 1024, 0, 1), mode);
    flows.flows[13].set = Set::Free;
    assert_eq!((second, activate(&mut flows, &header(13 + 1024, 0, 1), mode)), (14, 14));
    flows.flows[14].set = Set::Free;
    assert_eq!(flows.classify(&header(13 + 1024, 0, 1), isolation(mode)), 14);
    assert_eq!(flows.classify(&header(13 + 2048, 0, 1), isolation(mode)), 13, "the first free one");
}

#[test]
fn modes_isolate_flows_and_hosts() {
    use FlowMode::*;
    // From host 1 to 2 with two flows, from 1 to 3, and from 4 to 2.
    let headers = [header(1, 1, 2), header(2, 1, 2), header(3, 1, 3), header(4, 4, 2)];
    let same = |mode| {
        let mut flows = flows();
        let indices = headers.map(|header| activate(&mut flows, &header, mode));
        [1, 2, 3].map(|other| indices[other] == indices[0])
    };
    assert_eq!(same(Flowblind), [true, true, true]);
    assert_eq!(same(Srchost), [true, true, false]);
    assert_eq!(same(Dsthost), [true, false, true]);
    assert_eq!(same(Hosts), [true, false, false]);
    for mode in [Flows, DualSrchost, DualDsthost, TripleIsolate] {
        assert_eq!(same(mode), [false; 3], "{mode:?}");
    }
}

/// 1514 bytes of a host with `n` bulk flows are 1514 * (65535 / n) / 65536 each, rounded up or down at random.
#[test]
fn a_quantum_is_divided_among_the_flows_of_the_busier_host() {
    use FlowMode::*;
    let (mut random, mut dithers) = (Random::new(1, Stream::Qdisc(0)), Dithers::default());
    // Three flows from host 1, to hosts 2, 2 and 3.
    let mut shares = |mode| {
        let mut flows = flows();
        let to = [2, 2, 3];
        let all = [0, 1, 2].map(|n| activate(&mut flows, &header(n, 1, to[n as usize]), mode));
        all.map(|index| flows.share(index, isolation(mode), &mut dithers, &mut random))
    };
    let near = |shares: [i32; 3], exact: [f64; 3]| {
        shares.iter().zip(exact).all(|(share, exact)| (f64::from(*share) - exact).abs() <= 1.0)
    };
    assert!(near(shares(Flows), [1514.0; 3]));
    assert!(near(shares(DualSrchost), [1514.0 / 3.0; 3]));
    assert!(near(shares(DualDsthost), [757.0, 757.0, 1514.0]));
    assert!(near(shares(TripleIsolate), [1514.0 / 3.0; 3]));
}

/// The mean of what is rounded at random is not rounded: 1514 * 21845 / 65536 = 504.66 bytes.
#[test]
fn rounding_at_random_loses_nothing() {
    let mut flows = flows();
    let mode = FlowMode::DualSrchost;
    let index = (0..3).map(|n| activate(&mut flows, &header(n, 1, 2), mode)).last().unwrap();
    let (mut random, mut dithers) = (Random::new(1, Stream::Qdisc(0)), Dithers::default());
    let sum: i32 = (0..10_000).map(|_| flows.share(index, isolation(mode), &mut dithers, &mut random)).sum();
    assert!((5_044_500..5_048_700).contains(&sum), "{sum}");
}

#[test]
fn a_host_is_counted_as_long_as_its_queues_are_bulk() {
    let mut flows = flows();
    let mode = isolation(FlowMode::TripleIsolate);
    let indices = [0, 1].map(|n| activate(&mut flows, &header(n, 1, 2), FlowMode::TripleIsolate));
    let count = |flows: &Flows| {
        flows.hosts.iter().map(|host| host.bulk_flows.map(u32::from)).fold([0; 2], |a, b| [a[0] + b[0], a[1] + b[1]])
    };
    assert_eq!((flows.bulk, count(&flows)), (2, [2, 2]));
    for index in indices {
        flows.retire(index, &Parameters::default(), mode, 0);
        assert_eq!(flows.flows[index].set, Set::Free);
    }
    assert_eq!((flows.bulk, count(&flows)), (0, [0, 0]));
    assert_eq!(flows.first(List::New), None);
}

#[test]
fn lists_keep_their_order_when_members_leave() {
    let mut flows = flows();
    [5, 3, 9].into_iter().for_each(|index| flows.append(index, List::New));
    flows.append(3, List::Decaying);
    assert_eq!((flows.first(List::New), flows.first(List::Decaying)), (Some(5), Some(3)));
    flows.append(5, List::New);
    assert_eq!(flows.first(List::New), Some(9));
    flows.unlink(9);
    flows.unlink(9);
    assert_eq!(flows.first(List::New), Some(5));
}
