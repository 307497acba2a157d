use super::super::Qdisc;
use super::super::testing::{Bench, FRAME, MS};
use super::*;
use crate::network::traffic_class::Ecn;

/// The defaults of tc-pie(8).
fn parameters() -> scenario::Pie {
    scenario::Pie {
        limit_packets: 1000,
        target_ns: 15 * MS,
        tupdate_ns: 15 * MS,
        alpha: 2,
        beta: 20,
        ecn: false,
        bytemode: false,
        dq_rate_estimator: false,
    }
}

/// A controller that has seen these delays, the last of them now, and has this probability.
fn controller(probability: u64, last_delay_ms: u64, delay_ms: u64) -> Controller {
    let delays = [last_delay_ms, delay_ms].map(|ms| ticks(ms * MS));
    Controller { probability, last_delay: delays[0], delay: delays[1], ..Controller::new(&parameters()) }
}

/// The probability after one update with a frame waiting.
fn updated(probability: u64, last_delay_ms: u64, delay_ms: u64) -> u64 {
    let mut controller = controller(probability, last_delay_ms, delay_ms);
    controller.update(FRAME);
    controller.probability
}

fn pie(bench: &mut Bench) -> &mut Pie {
    match bench.qdisc_mut() {
        Qdisc::Pie(pie) => pie,
        other => unreachable!("{other:?}"),
    }
}

/// A queue of ten frames with a delay of 20 ms and this probability, whose burst allowance is used up.
fn congested(parameters: scenario::Pie, probability: u64) -> Bench {
    let mut bench = Bench::new(&scenario::Qdisc::Pie(parameters));
    (0..10).for_each(|_| assert_eq!(bench.enqueue(0, FRAME, Ecn::NotEct), None));
    *pie(&mut bench).controller = Controller { burst: 0, ..controller(probability, 20, 20) };
    bench
}

/// The numbers of the packets that are dropped or marked, of this many that arrive. Each that enters displaces the
/// oldest.
fn decided(bench: &mut Bench, packets: usize, bytes: u32, ecn: Ecn) -> Vec<(usize, Reason)> {
    let arrive = |number| {
        let reason = bench.enqueue(0, bytes, ecn);
        let kept = pie(bench).queue.packets() > 10;
        if kept {
            let delays = (pie(bench).controller.delay, pie(bench).controller.left_at);
            bench.dequeue(0);
            (pie(bench).controller.delay, pie(bench).controller.left_at) = delays;
        }
        Some((number, reason?))
    };
    (0..packets).filter_map(arrive).collect()
}

fn gaps(decided: &[(usize, Reason)]) -> Vec<usize> {
    decided.windows(2).map(|pair| pair[1].0 - pair[0].0).collect()
}

/// RFC 8033, section 4.2, gives alpha 0.125 and beta 1.25 per second: 2/16 and 20/16. In Linux' units, certainty is
/// 2^56 - 1 and a second 15,625,000 ticks, so weights are multiples of 4,611,686,018 / 16.
#[test]
fn weights_are_those_of_the_rfc_in_the_kernels_units() {
    let controller = Controller::new(&parameters());
    assert_eq!((controller.alpha, controller.beta), (576_460_752, 5_764_607_522));
    assert_eq!((controller.target, controller.burst), (234_375, 2_343_750));
}

/// RFC 8033, section 4.2: the smaller the probability, the smaller its steps.
#[test]
fn steps_shrink_with_the_probability() {
    let shift = |share: u64| controller(CERTAIN / share, 0, 0).shift();
    assert_eq!([5, 10, 11, 99, 101, 1001, 10_001, 100_001, 1_000_001].map(shift), [0, 0, 1, 1, 3, 5, 7, 9, 11]);
}

/// 40 ms are 625,000 ticks, 390,625 above target. At probability 0, weights are shifted by 11: 281,474 and 2,814,749.
#[test]
fn the_probability_grows_with_the_delay_and_its_change() {
    assert_eq!(updated(0, 0, 40), 281_474 * 390_625 + 2_814_749 * 625_000);
    assert_eq!(updated(0, 40, 40), 281_474 * 390_625, "steady: only the distance to the target");
    // From 40 to 30 ms: 156,250 less, and 234,375 above target. At a fifth, weights are not shifted.
    let fifth = CERTAIN / 5;
    assert_eq!(updated(fifth, 40, 30), fifth - (5_764_607_522 * 156_250 - 576_460_752 * 234_375));
    assert_eq!(updated(1_000_000, 40, 15), 0, "it does not fall below zero");
}

#[test]
fn above_ten_per_cent_it_grows_by_two_per_cent_at_most() {
    let tenth = CERTAIN / 10;
    assert_eq!(updated(tenth, 0, 200), tenth + CERTAIN / 100 * 2);
    // Longer than 250 ms: another 2 %.
    assert_eq!(updated(tenth, 0, 300), tenth + CERTAIN / 100 * 2 + CERTAIN / 50);
    // Below 10 %, a step of any size is taken. Weights are shifted by 1 for 9 %.
    let nine = CERTAIN / 100 * 9;
    assert_eq!(updated(nine, 0, 200), nine + 288_230_376 * (3_125_000 - 234_375) + 2_882_303_761 * 3_125_000);
}

#[test]
fn without_delay_it_decays_by_a_64th_unless_a_packet_waits() {
    let (half, mut idle) = (CERTAIN / 2, controller(CERTAIN / 2, 0, 0));
    idle.update(0);
    let below = half - 576_460_752 * 234_375;
    assert_eq!(idle.probability, below - below / 64);
    assert_eq!(updated(half, 0, 0), below);
}

/// RFC 8033, section 4.4: a burst of 150 ms passes, and another one once congestion is over.
#[test]
fn a_burst_passes_unharmed() {
    let mut controller = controller(CERTAIN / 2, 20, 20);
    let leaves =
        |controller: &mut Controller, ms| controller.on_departure(ticks(ms * MS), ticks(20 * MS), FRAME, FRAME);
    leaves(&mut controller, 1000);
    assert_eq!(controller.burst, BURST_ALLOWANCE, "time counts from the first departure");
    leaves(&mut controller, 1100);
    assert_eq!(controller.burst, ticks(50 * MS));
    leaves(&mut controller, 1151);
    assert_eq!(controller.burst, 0);
    controller.on_departure(ticks(1152 * MS), ticks(20 * MS), FRAME, 0);
    assert_eq!(controller.delay, 0, "the last packet of a queue shows no delay");
    (controller.probability, controller.last_delay) = (0, 0);
    controller.update(0);
    assert_eq!((controller.burst, controller.left_at), (BURST_ALLOWANCE, None));
}

#[test]
fn nothing_is_dropped_at_random_in_a_burst_after_a_short_delay_or_in_a_short_queue() {
    let certain = CERTAIN - 1;
    let passes = |bench: &mut Bench| bench.enqueue(0, FRAME, Ecn::NotEct).is_none();
    let mut bench = congested(parameters(), certain);
    pie(&mut bench).controller.accumulated = u64::MAX / 2;
    assert!(!passes(&mut bench));
    pie(&mut bench).controller.burst = 1;
    assert!(passes(&mut bench), "a burst");
    let short = Controller { burst: 0, accumulated: u64::MAX / 2, ..controller(CERTAIN / 6, 7, 7) };
    *pie(&mut bench).controller = short;
    assert!(passes(&mut bench), "half of the target, and less than 20 %");
    let mut bench = congested(parameters(), certain);
    (0..9).for_each(|_| assert!(bench.dequeue(20 * MS).0.is_some()));
    pie(&mut bench).controller.accumulated = u64::MAX / 2;
    assert!(passes(&mut bench), "one waits");
    pie(&mut bench).controller.burst = 0;
    assert!(!passes(&mut bench), "two wait");
}

/// RFC 8033, section 5.4, with Linux' bounds. At 2 %, 42 packets sum up to 0.84, so the 43rd is the first that may be
/// dropped, and the 425th at 8.5 must be. From then on each is dropped with 2 %: 42 + 50 packets apart on average, with
/// a standard deviation of 50, hardly cut at 425. 40,000 packets have 435 gaps, whose mean has a standard error of 2.4.
#[test]
fn drops_keep_their_distance_and_come_at_last() {
    let mut bench = congested(parameters(), CERTAIN / 50);
    let drops = decided(&mut bench, 40_000, FRAME, Ecn::NotEct);
    let gaps = gaps(&drops);
    let mean = gaps.iter().sum::<usize>() as f64 / gaps.len() as f64;
    assert!((85.0..99.0).contains(&mean), "{mean}");
    assert!(gaps.iter().all(|gap| (43..=426).contains(gap)), "{gaps:?}");
    assert!(drops.iter().all(|drop| drop.1 == Reason::PIE));
}

#[test]
fn in_byte_mode_a_packet_of_half_the_size_is_dropped_half_as_often() {
    let mut bench = congested(scenario::Pie { bytemode: true, ..parameters() }, CERTAIN / 50);
    let gaps = gaps(&decided(&mut bench, 40_000, FRAME_BYTES / 2, Ecn::NotEct));
    // At 1 %, 84 packets sum up to 0.84.
    assert!(gaps.iter().all(|gap| *gap >= 85) && !gaps.is_empty(), "{gaps:?}");
}

#[test]
fn capable_packets_are_marked_up_to_ten_per_cent() {
    let marking = scenario::Pie { ecn: true, ..parameters() };
    let reasons = |probability, ecn| {
        let mut bench = congested(marking.clone(), probability);
        let mut reasons: Vec<_> = decided(&mut bench, 1000, FRAME, ecn).iter().map(|each| each.1.word).collect();
        reasons.dedup();
        reasons
    };
    assert_eq!(reasons(CERTAIN / 10, Ecn::Ect0), ["pie_mark"]);
    assert_eq!(reasons(CERTAIN / 10 + 1, Ecn::Ect0), ["pie"]);
    assert_eq!(reasons(CERTAIN / 10, Ecn::NotEct), ["pie"]);
}

#[test]
fn a_full_queue_drops_what_arrives() {
    let mut bench = Bench::new(&scenario::Qdisc::Pie(scenario::Pie { limit_packets: 2, ..parameters() }));
    let fates: Vec<_> = (0..3).map(|_| bench.enqueue(0, FRAME, Ecn::Ect0)).collect();
    assert_eq!(fates, [None, None, Some(Reason::OVERLIMIT)]);
}

/// RFC 8033, section 4.3: a cycle of 16,384 bytes. At 10 Mbit/s, a frame of 1514 bytes leaves every 1,211,200 ns, 18,925
/// ticks. The 11th frame ends the cycle: 16,654 bytes in 10 intervals are 22 / 256 bytes a tick.
#[test]
fn the_rate_at_which_the_queue_drains_is_measured_in_cycles() {
    let parameters = scenario::Pie { dq_rate_estimator: true, ..parameters() };
    let mut controller = Controller::new(&parameters);
    let rate = |controller: &Controller| controller.estimate.as_ref().unwrap().rate;
    for frame in 0..11_u64 {
        assert_eq!(rate(&controller), 0);
        controller.on_departure(frame * 18_925, 0, FRAME, 30 * FRAME);
    }
    assert_eq!(rate(&controller), (16_654 << 8) / 189_250);
    assert_eq!(controller.burst, BURST_ALLOWANCE - 189_250, "a cycle counts as one departure");
    // 30 frames are 45,420 bytes: 11,627,520 / 22 ticks, or 33.8 ms.
    controller.update(30 * FRAME);
    assert_eq!(controller.delay, 528_523);
}

/// 15 ms are four jiffies of 4 ms, and a kernel timer waits for one more to be sure not to be early.
#[test]
fn the_timer_counts_jiffies() {
    let mut bench = Bench::new(&scenario::Qdisc::Pie(parameters()));
    let mut due_ns = bench.qdisc().timer().unwrap();
    assert!(due_ns <= 20 * MS);
    for _ in 0..5 {
        bench.on_timer(due_ns);
        let next_ns = bench.qdisc().timer().unwrap();
        assert_eq!(next_ns - due_ns, 20 * MS);
        due_ns = next_ns;
    }
}

/// `pie_change` sets the parameters alone, and drops what a lowered limit leaves no room for.
#[test]
fn a_changed_parameter_leaves_the_probability_and_a_lowered_limit_drops_from_the_head() {
    let mut bench = congested(parameters(), CERTAIN / 10);
    let due_ns = pie(&mut bench).due_ns;
    let eager = scenario::Pie { target_ns: 5 * MS, alpha: 4, ..parameters() };
    assert_eq!(bench.change(&scenario::Qdisc::Pie(eager.clone())), vec![]);
    let changed = &pie(&mut bench).controller;
    assert_eq!((changed.probability, changed.delay), (CERTAIN / 10, ticks(20 * MS)));
    assert_eq!((changed.target, changed.alpha), (ticks(5 * MS), Controller::new(&eager).alpha));
    assert_eq!(pie(&mut bench).due_ns, due_ns, "the timer goes on");
    let short = scenario::Pie { limit_packets: 8, ..eager };
    assert_eq!(bench.change(&scenario::Qdisc::Pie(short)), vec![(0, Reason::OVERLIMIT), (1, Reason::OVERLIMIT)]);
}
