use super::*;
use crate::network::qdisc::testing::{Bench, FRAME, MS};
use crate::network::qdisc::{Attachment, Qdisc};
use crate::network::traffic_class::Ecn;

/// The example of tc-red(8): `Wlog` is 5.
fn parameters() -> scenario::Red {
    scenario::Red {
        limit_bytes: 400_000,
        min_bytes: 30_000,
        max_bytes: 90_000,
        avpkt_bytes: 1000,
        burst_packets: 55,
        probability: 0.02,
        bandwidth_bps: 10_000_000,
        ecn: false,
        harddrop: false,
        nodrop: false,
        adaptive: false,
    }
}

fn bench(parameters: scenario::Red) -> Bench {
    Bench::new(&scenario::Qdisc::Red(parameters))
}

/// The average, with its five fraction bits.
fn average(bench: &Bench) -> u64 {
    match bench.qdisc() {
        Qdisc::Red(red) => red.watch.average,
        other => unreachable!("{other:?}"),
    }
}

/// Enqueues packets of 1000 bytes until the backlog is `bytes`.
fn fill(bench: &mut Bench, bytes: u64, ecn: Ecn) {
    while bench.backlog().1 < bytes {
        bench.enqueue(0, 1000, ecn);
    }
}

/// One packet arrives and one leaves; returns what happened to the one that arrived.
fn pass_one(bench: &mut Bench, ecn: Ecn) -> Option<Reason> {
    let event = bench.enqueue(0, 1000, ecn);
    if event.is_none_or(|reason| reason == Reason::RED_MARK) {
        bench.dequeue(0);
    }
    event
}

#[test]
fn the_average_follows_the_backlog_that_arriving_packets_find() {
    // With 5 fraction bits, avg' = avg - (avg >> 5) + backlog. The first packet ends the idle time and adds nothing.
    // Then follow 0 - 0 + 1514 = 1514, 1514 - 47 + 3028 = 4495 and 4495 - 140 + 4542 = 8897.
    let mut bench = bench(parameters());
    let averages: Vec<u64> = (0..4)
        .map(|_| {
            bench.enqueue(0, FRAME, Ecn::NotEct);
            average(&bench)
        })
        .collect();
    assert_eq!(averages, [0, 1514, 4495, 8897]);
}

#[test]
fn an_idle_queue_has_its_average_aged() {
    let mut bench = bench(parameters());
    fill(&mut bench, 20_000, Ecn::NotEct);
    while bench.backlog().0 > 0 {
        bench.dequeue(10 * MS);
    }
    let busy = average(&bench);
    bench.idle_since(11 * MS);
    bench.idle_since(12 * MS);
    // A cell of the table is 2^15 us. Half a cell after the first call of `idle_since`, half of the value is gone.
    bench.enqueue(11 * MS + 16_384_000, 1000, Ecn::NotEct);
    assert_eq!(average(&bench), busy - busy / 2);
}

#[test]
fn below_min_every_packet_passes() {
    let mut bench = bench(parameters());
    fill(&mut bench, 29_000, Ecn::NotEct);
    assert!((0..5000).all(|_| pass_one(&mut bench, Ecn::NotEct).is_none()));
}

#[test]
fn between_min_and_max_drops_are_spaced_uniformly() {
    // A constant backlog of 60 kB is halfway between the thresholds, so the marking probability is 0.02 / 2 = 1/100.
    // The gap between two drops is uniform in 1..=100 (mean 50.5); independent coin flips would give a mean of 100 and
    // gaps of several hundred. 20000 packets have 396 gaps, whose mean has a standard error of 28.9 / sqrt(396) = 1.45.
    let mut bench = bench(parameters());
    fill(&mut bench, 60_000, Ecn::NotEct);
    (0..500).for_each(|_| {
        pass_one(&mut bench, Ecn::NotEct);
    });
    while bench.backlog().1 < 60_000 {
        bench.enqueue(0, 1000, Ecn::NotEct);
    }
    let events: Vec<_> = (0..20_000).map(|_| pass_one(&mut bench, Ecn::NotEct)).collect();
    assert!(events.iter().flatten().all(|&reason| reason == Reason::RED_EARLY));
    let drops: Vec<usize> = events.iter().enumerate().filter(|(_, event)| event.is_some()).map(|(n, _)| n).collect();
    let gaps: Vec<usize> = drops.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = gaps.iter().sum::<usize>() as f64 / gaps.len() as f64;
    assert!((46.0..55.0).contains(&mean), "mean gap {mean}");
    assert!(gaps.iter().all(|&gap| gap <= 101), "longest gap {:?}", gaps.iter().max());
}

#[test]
fn above_max_every_packet_is_dropped() {
    // No packet leaves, so the average rises towards the backlog until it crosses `max`. From then on no packet enters.
    let mut bench = bench(scenario::Red { probability: 1e-4, ..parameters() });
    let events: Vec<_> = (0..500).map(|_| bench.enqueue(0, 1000, Ecn::NotEct)).collect();
    let first = events.iter().position(Option::is_some).expect("the average crosses max");
    assert!(average(&bench) >> 5 >= 90_000);
    assert!(events[first..].iter().all(|&event| event == Some(Reason::RED_FORCED)));
}

#[test]
fn capable_packets_are_marked_instead_up_to_the_hard_limit() {
    let mut bench = bench(scenario::Red { ecn: true, ..parameters() });
    let events: Vec<_> = (0..500).map(|_| bench.enqueue(0, 1000, Ecn::Ect0)).collect();
    assert_eq!(bench.backlog(), (400, 400_000));
    assert!(events[..400].iter().all(|&event| event.is_none_or(|reason| reason == Reason::RED_MARK)));
    assert!(events[200..400].iter().all(Option::is_some), "the average is above max");
    assert_eq!(bench.enqueue(0, 1000, Ecn::NotEct), Some(Reason::RED_FORCED), "a transport that does not understand");
}

#[test]
fn the_hard_limit_is_in_bytes() {
    // With a minimum that no average reaches, only the limit is left.
    let far = scenario::Red { limit_bytes: 10_000, min_bytes: 54_000, max_bytes: 162_000, ..parameters() };
    let mut bench = bench(far);
    fill(&mut bench, 9000, Ecn::NotEct);
    assert_eq!(bench.enqueue(0, 1001, Ecn::NotEct), Some(Reason::OVERLIMIT));
    assert_eq!(bench.enqueue(0, 1000, Ecn::NotEct), None);
}

#[test]
fn an_average_that_the_kernel_has_no_room_for_is_refused() {
    // Min, avpkt and burst give a weight of 2^-5. The kernel accepts up to 31 bits of max and exponent together and
    // rejects 32.
    let of_max = |max_bytes| {
        let red = scenario::Red { max_bytes, limit_bytes: 1 << 30, probability: 0.5, ..parameters() };
        Qdisc::new(
            &scenario::Qdisc::Red(red),
            Attachment { port: 0, node: 0, encapsulation: scenario::Encapsulation::adding(14), seed: 1, now_ns: 0 },
        )
    };
    assert!(of_max((1 << 26) - 1).is_ok());
    assert!(of_max(1 << 26).is_err());
}

#[test]
fn a_changed_parameter_empties_the_queue_and_the_average() {
    let mut bench = bench(parameters());
    fill(&mut bench, 20_000, Ecn::NotEct);
    assert!(average(&bench) > 0);
    let changed = scenario::Qdisc::Red(scenario::Red { probability: 0.1, ..parameters() });
    let expected: Vec<(u64, Reason)> = (0..20).map(|number| (number, Reason::PURGED)).collect();
    assert_eq!(bench.change(&changed), expected);
    assert_eq!((bench.backlog(), average(&bench)), ((0, 0), 0));
}

/// Fills the queue until the average is above `max`, with packets that are marked on the way.
fn congested(parameters: scenario::Red) -> Bench {
    let mut bench = bench(parameters);
    (0..250).for_each(|_| {
        bench.enqueue(0, 1000, Ecn::Ect0);
    });
    assert!(average(&bench) >> 5 >= 90_000);
    bench
}

#[test]
fn harddrop_drops_capable_packets_above_max_and_marks_them_below() {
    let marking = scenario::Red { ecn: true, harddrop: true, ..parameters() };
    let mut bench = bench(marking.clone());
    let events: Vec<_> = (0..500).map(|_| bench.enqueue(0, 1000, Ecn::Ect0)).collect();
    let first = events.iter().position(|event| *event == Some(Reason::RED_FORCED)).expect("the average crosses max");
    assert!(events[..first].iter().flatten().all(|reason| *reason == Reason::RED_MARK));
    assert!(events[..first].iter().any(Option::is_some));
    assert!(events[first..].iter().all(|event| *event == Some(Reason::RED_FORCED)));
    assert_eq!(
        congested(scenario::Red { harddrop: false, ..marking }).enqueue(0, 1000, Ecn::Ect0),
        Some(Reason::RED_MARK)
    );
}

#[test]
fn nodrop_queues_what_cannot_be_marked_up_to_the_hard_limit() {
    let mut bench = congested(scenario::Red { ecn: true, nodrop: true, ..parameters() });
    assert!((250..400).all(|_| bench.enqueue(0, 1000, Ecn::NotEct).is_none()));
    assert_eq!(bench.enqueue(0, 1000, Ecn::NotEct), Some(Reason::OVERLIMIT));
    let both = scenario::Red { ecn: true, nodrop: true, harddrop: true, ..parameters() };
    let mut bench = self::bench(both);
    let events: Vec<_> = (0..500).map(|_| bench.enqueue(0, 1000, Ecn::NotEct)).collect();
    let first = events.iter().position(Option::is_some).expect("the average crosses max");
    assert!(events[first..].iter().all(|event| *event == Some(Reason::RED_FORCED)), "harddrop wins above max");
}

/// `max_P` of the adaptive algorithm.
fn probability(bench: &Bench) -> u32 {
    match bench.qdisc() {
        Qdisc::Red(red) => red.early.probability(),
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn the_probability_is_adapted_every_half_second() {
    let adaptive = scenario::Red { ecn: true, adaptive: true, ..parameters() };
    let mut bench = congested(adaptive.clone());
    let due_ns = bench.qdisc().timer().expect("there is a timer");
    assert!((1..=536 * MS).contains(&due_ns), "{due_ns}");
    assert_eq!(probability(&bench), 85_899_345);
    bench.on_timer(due_ns);
    // A quarter more, which is less than 1 %.
    assert_eq!(probability(&bench), 85_899_345 + 21_474_836);
    // 125 jiffies, and up to a bucket of 8 more.
    let passed_ns = bench.qdisc().timer().expect("there is a timer") - due_ns;
    assert!((500 * MS + 1..=532 * MS).contains(&passed_ns), "{passed_ns}");
    // After 10 idle seconds the average would be low, although no packet has brought it down.
    while bench.dequeue(due_ns).0.is_some() {}
    bench.idle_since(due_ns);
    bench.on_timer(due_ns + 10_000 * MS);
    assert!(average(&bench) >> 5 >= 90_000);
    assert_eq!(probability(&bench), 107_374_181 / 10 * 9);
    let timeless = |parameters| !Qdisc::keeps_time(&scenario::Qdisc::Red(parameters));
    assert!(timeless(parameters()) && !timeless(adaptive));
}

#[test]
fn a_warning_says_that_linux_does_not_adapt() {
    assert_eq!(bench(parameters()).qdisc().warning(), None);
    let adaptive = bench(scenario::Red { adaptive: true, ..parameters() }).qdisc().warning();
    assert!(adaptive.is_some_and(|warning| warning.contains("none on Linux since 5.7")));
}

#[test]
fn a_change_starts_the_timer_and_stops_it() {
    let mut bench = bench(parameters());
    assert_eq!(bench.qdisc().timer(), None);
    bench.change(&scenario::Qdisc::Red(scenario::Red { adaptive: true, ..parameters() }));
    assert!(bench.qdisc().timer().is_some());
    bench.change(&scenario::Qdisc::Red(parameters()));
    assert_eq!(bench.qdisc().timer(), None);
}
