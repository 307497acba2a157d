use super::*;
use crate::network::qdisc::Qdisc;
use crate::network::qdisc::testing::{Bench, FRAME, MS};
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

/// A controller with this probability after a constant delay, whose burst allowance is used up.
fn controller(probability: u64, delay_ms: u64) -> Controller {
    let delay = ticks(delay_ms * MS);
    Controller { probability, delay, last_delay: delay, burst: 0, ..Controller::new() }
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
    *pie(&mut bench).controller = controller(probability, 20);
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

#[test]
fn nothing_is_dropped_at_random_in_a_burst_after_a_short_delay_or_in_a_short_queue() {
    let certain = CERTAIN - 1;
    let passes = |bench: &mut Bench| bench.enqueue(0, FRAME, Ecn::NotEct).is_none();
    let mut bench = congested(parameters(), certain);
    pie(&mut bench).controller.accumulated = u64::MAX / 2;
    assert!(!passes(&mut bench));
    pie(&mut bench).controller.burst = 1;
    assert!(passes(&mut bench), "a burst");
    *pie(&mut bench).controller = Controller { accumulated: u64::MAX / 2, ..controller(CERTAIN / 6, 7) };
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
    let gaps = gaps(&decided(&mut bench, 40_000, FRAME / 2, Ecn::NotEct));
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
    let events: Vec<_> = (0..3).map(|_| bench.enqueue(0, FRAME, Ecn::Ect0)).collect();
    assert_eq!(events, [None, None, Some(Reason::OVERLIMIT)]);
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
    let Pie { controller, law, .. } = pie(&mut bench);
    assert_eq!((controller.probability, controller.delay), (CERTAIN / 10, ticks(20 * MS)));
    assert_eq!((law.target, law.alpha), (ticks(5 * MS), 2 * 576_460_752));
    assert_eq!(pie(&mut bench).due_ns, due_ns, "the timer goes on");
    let short = scenario::Pie { limit_packets: 8, ..eager };
    assert_eq!(bench.change(&scenario::Qdisc::Pie(short)), vec![(0, Reason::OVERLIMIT), (1, Reason::OVERLIMIT)]);
}
