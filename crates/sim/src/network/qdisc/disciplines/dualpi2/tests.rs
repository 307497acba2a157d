use super::*;
use crate::network::qdisc::Qdisc;
use crate::network::qdisc::testing::{Bench, FRAME, MS};
use crate::network::traffic_class::TrafficClass;

/// A tenth, as a probability.
const TENTH: u32 = CERTAIN / 10;

/// The defaults of sch_dualpi2.
fn parameters() -> scenario::Dualpi2 {
    scenario::Dualpi2 {
        limit_packets: 10_000,
        memlimit_bytes: None,
        controller: scenario::Pi2::default(),
        coupling_factor: 2,
        step_threshold: StepThreshold::Time(MS),
        min_qlen_step: 0,
        drop_on_overload: true,
        drop_enqueue: false,
        any_ect: false,
        classic_protection_percent: 10,
        split_gso: true,
    }
}

fn bench(parameters: scenario::Dualpi2) -> Bench {
    Bench::new(&scenario::Qdisc::Dualpi2(parameters))
}

fn dualpi2(bench: &mut Bench) -> &mut Dualpi2 {
    match bench.qdisc_mut() {
        Qdisc::Dualpi2(dualpi2) => dualpi2,
        other => unreachable!("{other:?}"),
    }
}

/// This many full frames arrive, of which none is dropped or marked.
fn arrive(bench: &mut Bench, frames: u32, now_ns: u64, ecn: Ecn) {
    (0..frames).for_each(|_| assert_eq!(bench.enqueue(now_ns, FRAME, ecn), None));
}

/// A discipline with this base probability.
fn with_probability(parameters: scenario::Dualpi2, probability: u32) -> Bench {
    let mut bench = bench(parameters);
    dualpi2(&mut bench).state.controller.probability = probability;
    bench
}

/// A controller with the default parameters that has seen these delays, the last of them now.
fn updated(probability: u32, last_delay_ms: u64, delay_ms: u64) -> u32 {
    let controller = Controller::new(&scenario::Pi2::default());
    let mut controller = Controller { probability, last_delay_ns: last_delay_ms * MS, ..controller };
    controller.update(delay_ms * MS);
    controller.probability
}

/// The shares of passed, marked and dropped among 40,000 verdicts, in per mille.
fn shares(parameters: scenario::Dualpi2, probability: u32, verdict: fn(&mut State) -> Verdict) -> [f64; 3] {
    let mut bench = with_probability(parameters, probability);
    let state = &mut dualpi2(&mut bench).state;
    let verdicts: Vec<Verdict> = (0..40_000).map(|_| verdict(state)).collect();
    let share = |kind| verdicts.iter().filter(|verdict| **verdict == kind).count() as f64 / 40.0;
    [Verdict::Pass, Verdict::Mark, Verdict::Drop].map(share)
}

/// Within four standard errors of 40,000 draws, which are at most 2.5 per mille each.
fn assert_shares(found: [f64; 3], expected: [f64; 3]) {
    let close = found.iter().zip(expected).all(|(found, expected)| {
        let error = (expected * (1000.0 - expected) / 40_000.0).sqrt();
        (found - expected).abs() <= 4.0 * error
    });
    assert!(close, "{found:?}, expected {expected:?}");
}

/// A hertz is 2^32 per second and 64 ns: 274.88. `tc` passes 0.16 and 3.2 Hz on as 41 and 819 / 256, and prints what the
/// kernel makes of that, as 0.156250 and 3.195312: 44 and 879 are a little less than 41 and 819.
#[test]
fn weights_are_those_of_the_kernel() {
    assert_eq!([41, 819, 1].map(scaled), [44, 879, 1]);
    let printed = |weight: u64| ((weight * NS_PER_S) << WEIGHT_SHIFT) / u64::from(CERTAIN);
    assert_eq!([44, 879].map(printed), [40, 818]);
}

/// RFC 9332, appendix A.1: `p' += alpha * (delay - target) + beta * (delay - last delay)`. 5 ms above target are 0.0008
/// at 0.16 Hz, and a growth of 20 ms is 0.064 at 3.2 Hz.
#[test]
fn the_probability_grows_with_the_delay_and_its_change() {
    assert_eq!(updated(0, 0, 20), ((5_000_000 * 44 + 20_000_000 * 879_u64) / 64) as u32);
    assert_eq!(updated(TENTH, 20, 20), TENTH + 5_000_000 * 44 / 64);
    assert_eq!(updated(TENTH * 5, 20, 10), TENTH * 5 - ((5_000_000 * 44 + 10_000_000 * 879_u64) / 64) as u32);
    let share = |probability: u32| f64::from(probability) / f64::from(CERTAIN);
    assert!((share(updated(0, 20, 20)) / 0.0008 - 1.0).abs() < 0.002);
    assert!((share(updated(0, 0, 20)) / (0.0008 + 0.064) - 1.0).abs() < 0.002);
}

/// At target and without change, it stays: the integral part alone decides where it settles.
#[test]
fn at_the_target_the_probability_stays() {
    assert_eq!(updated(TENTH, 15, 15), TENTH);
}

/// A growth of 200 ms is 0.64 of certainty. A step of more than certainty is cut to 32 bits: one of 400 ms is 85 s / 64
/// / 2^32 = 1.28 times certainty.
#[test]
fn the_probability_is_bounded_and_its_steps_are_cut_as_in_the_kernel() {
    assert_eq!(updated(TENTH * 5, 0, 200), CERTAIN);
    assert_eq!(updated(TENTH, 200, 0), 0);
    let step = (385_000_000_u64 * 44 + 400_000_000 * 879) / 64;
    assert!(step > CERTAIN.into());
    assert_eq!(updated(0, 0, 400), step as u32);
}

/// RFC 9332, section 2.1: `p_CL = k * p'` and `p_C = p'^2`. At p' = 10 % and k = 2: 20 % and 1 %.
#[test]
fn marks_of_the_l_queue_are_coupled_and_those_of_the_c_queue_squared() {
    assert_shares(shares(parameters(), TENTH, State::scalable_verdict), [800.0, 200.0, 0.0]);
    assert_shares(shares(parameters(), TENTH, |state| state.classic_verdict(true)), [990.0, 10.0, 0.0]);
    assert_shares(shares(parameters(), TENTH, |state| state.classic_verdict(false)), [990.0, 0.0, 10.0]);
    let tripled = scenario::Dualpi2 { coupling_factor: 3, ..parameters() };
    assert_shares(shares(tripled, TENTH, State::scalable_verdict), [700.0, 300.0, 0.0]);
}

/// Section 2.5.1: where k * p' exceeds certainty, packets of both queues are dropped with p'^2, here 36 %, and those of
/// the L queue that are not are marked.
#[test]
fn on_overload_both_queues_drop() {
    let six_tenths = TENTH * 6;
    assert_shares(shares(parameters(), six_tenths, State::scalable_verdict), [0.0, 640.0, 360.0]);
    assert_shares(shares(parameters(), six_tenths, |state| state.classic_verdict(true)), [640.0, 0.0, 360.0]);
    let overflow = scenario::Dualpi2 { drop_on_overload: false, ..parameters() };
    assert_shares(shares(overflow.clone(), six_tenths, State::scalable_verdict), [0.0, 1000.0, 0.0]);
    // The timer does not let it come so far: at most k * p' = 1.
    let mut bench = with_probability(overflow, six_tenths);
    bench.on_timer(0);
    assert!(dualpi2(&mut bench).state.controller.probability <= CERTAIN / 2);
    arrive(&mut bench, 3, 0, Ecn::Ect0);
    bench.on_timer(300 * MS);
    assert_eq!(dualpi2(&mut bench).state.controller.probability, CERTAIN / 2);
}

/// RFC 9331, section 5.1: ECT(1) and CE belong in the L queue.
#[test]
fn the_ecn_field_decides_about_the_queue() {
    let queue_of = |ecn, any_ect| {
        let mut bench = bench(scenario::Dualpi2 { any_ect, ..parameters() });
        arrive(&mut bench, 1, 0, ecn);
        if dualpi2(&mut bench).scalable.is_empty() { 'C' } else { 'L' }
    };
    let fields = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
    assert_eq!(fields.map(|ecn| queue_of(ecn, false)), ['C', 'C', 'L', 'L']);
    assert_eq!(fields.map(|ecn| queue_of(ecn, true)), ['C', 'L', 'L', 'L']);
}

/// Credit begins at 1514 * (10 - 90), each frame of the L queue adds 10 * 1514, and it serves while the credit is not
/// positive: nine frames. The one of the C queue then takes 90 * 1514.
#[test]
fn the_c_queue_gets_a_tenth_while_both_are_busy() {
    let mut bench = bench(parameters());
    arrive(&mut bench, 10, 0, Ecn::NotEct);
    arrive(&mut bench, 40, 0, Ecn::Ect1);
    let order: String = (0..50).map(|_| if bench.dequeue(0).0.unwrap().1 == Ecn::Ect1 { 'L' } else { 'C' }).collect();
    assert_eq!(order, "LLLLLLLLLCLLLLLLLLLCLLLLLLLLLCLLLLLLLLLCLLLLCCCCCC");
    assert_ne!(dualpi2(&mut bench).state.credit, -121_120);
    assert_eq!(bench.dequeue(0), (None, vec![]));
    assert_eq!(dualpi2(&mut bench).state.credit, -121_120, "it begins anew");
}

/// RFC 9332, section 2.4: the native signal of the L queue.
#[test]
fn packets_of_the_l_queue_that_waited_longer_than_the_step_are_marked() {
    let mut bench = bench(parameters());
    arrive(&mut bench, 2, 0, Ecn::Ect1);
    arrive(&mut bench, 1, 0, Ecn::Ect0);
    assert_eq!(bench.dequeue(MS), (Some((0, Ecn::Ect1)), vec![]));
    assert_eq!(bench.dequeue(MS + 1), (Some((1, Ecn::Ce)), vec![(1, Reason::STEP_MARK)]));
    assert_eq!(bench.dequeue(MS + 1), (Some((2, Ecn::Ect0)), vec![]), "the C queue has no step");
}

/// A step in packets compares what stays in the L queue. The threshold applies to packets that find two there.
#[test]
fn the_step_can_be_a_number_of_packets_and_needs_a_least_queue() {
    let step = StepThreshold::Packets(3);
    let mut bench = bench(scenario::Dualpi2 { step_threshold: step, min_qlen_step: 2, ..parameters() });
    arrive(&mut bench, 8, 0, Ecn::Ect1);
    let marked: Vec<_> = (0..8).flat_map(|_| bench.dequeue(0).1).map(|event| event.0).collect();
    // The first leaves seven behind, but found none; the fourth leaves four; the fifth three.
    assert_eq!(marked, [2, 3]);
}

/// `must_drop`: two full frames, without the one that leaves.
#[test]
fn nothing_is_signalled_at_random_while_less_than_two_frames_wait() {
    let mut bench = with_probability(parameters(), CERTAIN);
    arrive(&mut bench, 4, 0, Ecn::NotEct);
    let (left, dropped) = bench.dequeue(0);
    assert_eq!((left, dropped), (Some((2, Ecn::NotEct)), vec![(0, Reason::DUALPI2), (1, Reason::DUALPI2)]));
    assert_eq!(bench.dequeue(0), (Some((3, Ecn::NotEct)), vec![]));
}

/// A dropped packet does not count for the weighted round robin.
#[test]
fn signals_are_given_on_departure_or_on_arrival() {
    let mut late = with_probability(parameters(), CERTAIN / 2);
    arrive(&mut late, 3, 0, Ecn::Ect1);
    let credit = dualpi2(&mut late).state.credit;
    assert_eq!(late.dequeue(0).1, vec![(0, Reason::DUALPI2_MARK)]);
    assert_eq!(dualpi2(&mut late).state.credit, credit, "the C queue is empty");

    let early = scenario::Dualpi2 { drop_enqueue: true, ..parameters() };
    let mut early = with_probability(early, CERTAIN);
    arrive(&mut early, 2, 0, Ecn::NotEct);
    let class = TrafficClass::new(0, Ecn::NotEct);
    assert_eq!(
        early.arrive(0, FRAME, class),
        (Xmit::Orphaned, vec![(2, Reason::DUALPI2)]),
        "the sender is not notified"
    );
    assert_eq!(early.dequeue(0), (Some((0, Ecn::NotEct)), vec![]));
}

#[test]
fn the_limit_and_the_memory_limit_hold_for_both_queues() {
    let mut short = bench(scenario::Dualpi2 { limit_packets: 2, ..parameters() });
    arrive(&mut short, 1, 0, Ecn::Ect1);
    arrive(&mut short, 1, 0, Ecn::NotEct);
    assert_eq!(short.enqueue(0, FRAME, Ecn::Ect1), Some(Reason::OVERLIMIT));
    // An echo of 1500 bytes takes 2304.
    let mut small = bench(scenario::Dualpi2 { memlimit_bytes: Some(2 * 2304), ..parameters() });
    arrive(&mut small, 2, 0, Ecn::Ect1);
    assert_eq!(small.enqueue(0, 66, Ecn::NotEct), Some(Reason::OVERLIMIT));
    small.dequeue(0);
    assert_eq!(small.enqueue(0, FRAME, Ecn::NotEct), None);
    assert_eq!(dualpi2(&mut small).state.memory_bytes, 2 * 2304);
}

/// The longer of the two delays, each that of the first packet.
#[test]
fn the_timer_controls_the_longer_delay() {
    let delay_ns = |early, late| {
        let mut bench = bench(parameters());
        arrive(&mut bench, 1, 0, early);
        arrive(&mut bench, 1, 10 * MS, late);
        let due_ns = bench.qdisc().timer().unwrap();
        assert!(due_ns < 16 * MS, "the phase is arbitrary");
        bench.on_timer(32 * MS);
        assert_eq!(bench.qdisc().timer(), Some(48 * MS));
        dualpi2(&mut bench).state.controller.last_delay_ns
    };
    assert_eq!(delay_ns(Ecn::Ect1, Ecn::NotEct), 32 * MS);
    assert_eq!(delay_ns(Ecn::NotEct, Ecn::Ect1), 32 * MS);
}

/// `dualpi2_change`.
#[test]
fn a_change_keeps_the_probability_and_drops_from_the_c_queue_first() {
    let mut bench = with_probability(parameters(), TENTH);
    arrive(&mut bench, 2, 0, Ecn::Ect1);
    arrive(&mut bench, 2, 0, Ecn::NotEct);
    bench.dequeue(0);
    let due_ns = bench.qdisc().timer();
    let controller = scenario::Pi2 { target_ns: 5 * MS, alpha: 82, ..scenario::Pi2::default() };
    let other = scenario::Dualpi2 { controller, classic_protection_percent: 20, ..parameters() };
    assert_eq!(bench.change(&scenario::Qdisc::Dualpi2(other.clone())), vec![]);
    let state = &dualpi2(&mut bench).state;
    let found = (state.controller.probability, state.controller.target_ns, state.controller.alpha, state.credit);
    assert_eq!(found, (TENTH, 5 * MS, 88, -1514 * 60));
    assert_eq!(bench.qdisc().timer(), due_ns, "the timer goes on");
    let events = bench.change(&scenario::Qdisc::Dualpi2(scenario::Dualpi2 { limit_packets: 1, ..other }));
    assert_eq!(events, vec![(2, Reason::OVERLIMIT), (3, Reason::OVERLIMIT)]);
    assert_eq!(bench.backlog(), (1, FRAME.into()));
}
