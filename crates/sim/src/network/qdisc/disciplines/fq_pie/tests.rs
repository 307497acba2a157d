use super::*;
use crate::network::qdisc::Qdisc;
use crate::network::qdisc::testing::{Bench, FRAME, Flow, MS};
use crate::network::traffic_class::{Ecn, TrafficClass};

/// The defaults of sch_fq_pie.
fn parameters() -> scenario::FqPie {
    scenario::FqPie {
        limit_packets: 10_240,
        flows: 1024,
        target_ns: 15 * MS,
        tupdate_ns: 15 * MS,
        alpha: 2,
        beta: 20,
        quantum_bytes: FRAME,
        memory_limit_bytes: 32 << 20,
        ecn_prob_percent: 10,
        ecn: false,
        bytemode: false,
        dq_rate_estimator: false,
    }
}

fn bench(parameters: scenario::FqPie) -> Bench {
    Bench::new(&scenario::Qdisc::FqPie(parameters))
}

fn fq_pie(bench: &mut Bench) -> &mut FqPie {
    match bench.qdisc_mut() {
        Qdisc::FqPie(fq_pie) => fq_pie,
        other => unreachable!("{other:?}"),
    }
}

/// A hash that belongs to this one of 1024 queues.
fn of_queue(queue: u32) -> Flow {
    Flow { hash: queue << 22, ..Flow::default() }
}

fn arrive(bench: &mut Bench, queue: u32, ecn: Ecn) -> (Xmit, Option<Reason>) {
    let (xmit, events) = bench.arrive_of(of_queue(queue), 0, FRAME, TrafficClass::new(0, ecn));
    (xmit, events.first().map(|event| event.1))
}

/// The queue's controller is in the state in which it drops (or marks) everything that arrives while two frames wait.
fn congest(bench: &mut Bench, queue: u32, probability: u64) {
    let delay = ticks(20 * MS);
    let accumulated = u64::MAX / 2;
    *fq_pie(bench).flows.turn(queue).state =
        Controller { probability, accumulated, delay, last_delay: delay, burst: 0, ..Controller::new() };
}

fn probability_of(bench: &mut Bench, queue: u32) -> u64 {
    fq_pie(bench).flows.turn(queue).state.probability
}

/// One flow's probability does not concern the others. A drop is reported to the sender as congestion, at the limit
/// too.
#[test]
fn each_flow_has_a_controller_of_its_own() {
    let mut bench = bench(scenario::FqPie { limit_packets: 9, ..parameters() });
    for _ in 0..4 {
        assert_eq!(arrive(&mut bench, 3, Ecn::NotEct), (Xmit::Queued, None));
        assert_eq!(arrive(&mut bench, 4, Ecn::NotEct), (Xmit::Queued, None));
    }
    congest(&mut bench, 3, CERTAIN / 20);
    assert_eq!(arrive(&mut bench, 3, Ecn::NotEct), (Xmit::Congested, Some(Reason::PIE)));
    assert_eq!(fq_pie(&mut bench).flows.turn(3).state.accumulated, 0);
    assert_eq!(arrive(&mut bench, 4, Ecn::NotEct), (Xmit::Queued, None));
    congest(&mut bench, 4, CERTAIN / 20);
    assert_eq!(arrive(&mut bench, 4, Ecn::NotEct), (Xmit::Congested, Some(Reason::OVERLIMIT)));
    assert_eq!(fq_pie(&mut bench).flows.turn(4).state.accumulated, 0, "a drop at the limit counts, too");
}

/// Less than two full frames of the flow itself: `min_th` of RED.
#[test]
fn a_short_queue_of_a_flow_is_spared_while_others_wait() {
    let mut bench = bench(parameters());
    (0..5).for_each(|_| assert_eq!(arrive(&mut bench, 3, Ecn::NotEct).1, None));
    congest(&mut bench, 4, CERTAIN / 20);
    assert_eq!(arrive(&mut bench, 4, Ecn::NotEct).1, None);
    assert_eq!(arrive(&mut bench, 4, Ecn::NotEct).1, None);
    assert_eq!(arrive(&mut bench, 4, Ecn::NotEct).1, Some(Reason::PIE));
}

/// `ecn_prob` in per cent of `MAX_PROB`, rounded down once.
#[test]
fn capable_packets_are_marked_up_to_a_probability() {
    let reason = |ecn_prob_percent, probability, ecn| {
        let mut bench = bench(scenario::FqPie { ecn: true, ecn_prob_percent, ..parameters() });
        (0..2).for_each(|_| assert_eq!(arrive(&mut bench, 3, ecn).1, None));
        congest(&mut bench, 3, probability);
        arrive(&mut bench, 3, ecn).1.map(|reason| reason.word)
    };
    let percent = CERTAIN / 100;
    assert_eq!(reason(10, 10 * percent, Ecn::Ect0), Some("pie_mark"));
    assert_eq!(reason(10, 10 * percent + 1, Ecn::Ect0), Some("pie"));
    assert_eq!(reason(50, 50 * percent, Ecn::Ect1), Some("pie_mark"));
    assert_eq!(reason(50, 10 * percent, Ecn::NotEct), Some("pie"));
}

/// A quantum of one frame each: the two flows alternate, although one came later.
#[test]
fn flows_take_turns() {
    let mut bench = bench(parameters());
    (0..4).for_each(|_| assert_eq!(arrive(&mut bench, 3, Ecn::NotEct).1, None));
    (0..2).for_each(|_| assert_eq!(arrive(&mut bench, 9, Ecn::NotEct).1, None));
    let order: Vec<u64> = (0..6).map(|_| bench.dequeue(0).0.unwrap().0).collect();
    assert_eq!(order, [0, 4, 1, 5, 2, 3]);
    assert_eq!(bench.dequeue(0), (None, vec![]));
    assert_eq!(bench.backlog(), (0, 0));
}

/// The delay is that of the flow's own packet, and 0 when its queue is empty.
#[test]
fn the_delay_is_the_flows_own() {
    let mut bench = bench(parameters());
    (0..2).for_each(|_| assert_eq!(arrive(&mut bench, 3, Ecn::NotEct).1, None));
    assert_eq!(arrive(&mut bench, 9, Ecn::NotEct).1, None);
    let delays = |bench: &mut Bench| [3, 9].map(|queue| fq_pie(bench).flows.turn(queue).state.delay);
    bench.dequeue(30 * MS);
    assert_eq!(delays(&mut bench), [ticks(30 * MS), 0]);
    bench.dequeue(40 * MS);
    assert_eq!(delays(&mut bench), [ticks(30 * MS), 0], "the only packet of its flow");
}

/// 390,625 ticks above target, as in the tests of the controller; a flow without packets stays at 0.
#[test]
fn the_timer_updates_every_flow() {
    let mut bench = bench(parameters());
    (0..3).for_each(|_| assert_eq!(arrive(&mut bench, 3, Ecn::NotEct).1, None));
    bench.dequeue(40 * MS);
    let due_ns = bench.qdisc().timer().unwrap();
    assert!(due_ns <= 20 * MS, "the phase is arbitrary");
    bench.on_timer(due_ns);
    let probability = 281_474 * 390_625 + 2_814_749 * 625_000;
    assert_eq!([3, 4].map(|queue| probability_of(&mut bench, queue)), [probability, 0]);
    assert_eq!(bench.qdisc().timer(), Some(due_ns + 20 * MS), "15 ms are four jiffies and the rest of one");
}

/// 5000 flows: 2048, 2048 and 904, each a jiffy after the ones before.
#[test]
fn the_timer_updates_many_flows_in_turns() {
    let mut bench = bench(scenario::FqPie { flows: 5000, ..parameters() });
    let flows = [0, 2047, 2048, 4095, 4096, 4999];
    for flow in flows {
        congest(&mut bench, flow, CERTAIN / 5);
    }
    let mut due_ns = bench.qdisc().timer().unwrap();
    for (updated, wait_ms) in [(2, 4), (4, 4), (6, 20)] {
        bench.on_timer(due_ns);
        let changed = flows.map(|flow| probability_of(&mut bench, flow) != CERTAIN / 5);
        assert_eq!(changed.iter().filter(|changed| **changed).count(), updated, "{changed:?}");
        assert_eq!(bench.qdisc().timer(), Some(due_ns + wait_ms * MS));
        due_ns += wait_ms * MS;
    }
    // An exact multiple has no empty turn.
    let mut exact = self::bench(scenario::FqPie { flows: 4096, ..parameters() });
    let due_ns = exact.qdisc().timer().unwrap();
    exact.on_timer(due_ns);
    exact.on_timer(due_ns + 4 * MS);
    assert_eq!(exact.qdisc().timer(), Some(due_ns + 24 * MS));
}

/// `fq_pie_change` drops by dequeueing: here from the two flows in turn.
#[test]
fn a_change_keeps_the_probabilities_and_a_lowered_limit_drops_what_would_leave() {
    let mut bench = bench(parameters());
    (0..3).for_each(|_| assert_eq!(arrive(&mut bench, 3, Ecn::NotEct).1, None));
    (0..2).for_each(|_| assert_eq!(arrive(&mut bench, 9, Ecn::NotEct).1, None));
    congest(&mut bench, 3, CERTAIN / 20);
    let due_ns = bench.qdisc().timer();
    let other = scenario::FqPie { target_ns: 5 * MS, ..parameters() };
    assert_eq!(bench.change(&scenario::Qdisc::FqPie(other.clone())), vec![]);
    assert_eq!(probability_of(&mut bench, 3), CERTAIN / 20);
    assert_eq!(fq_pie(&mut bench).state.settings.law.target, ticks(5 * MS));
    assert_eq!(bench.qdisc().timer(), due_ns, "the timer goes on");
    let events = bench.change(&scenario::Qdisc::FqPie(scenario::FqPie { limit_packets: 3, ..other }));
    assert_eq!(events, vec![(0, Reason::OVERLIMIT), (3, Reason::OVERLIMIT)]);
}
