use super::super::testing::{Bench, FRAME, MS};
use super::super::{Place, Qdisc};
use super::*;
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
    }
}

fn bench(parameters: scenario::Red) -> Bench {
    Bench::new(&scenario::Qdisc::Red(parameters))
}

/// The average, with its five fraction bits.
fn average(bench: &Bench) -> u64 {
    match bench.qdisc() {
        Qdisc::Red(red) => red.average.value,
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
    let fate = bench.enqueue(0, 1000, ecn);
    if fate.is_none_or(|reason| reason == Reason::RED_MARK) {
        bench.dequeue(0);
    }
    fate
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
    let fates: Vec<_> = (0..20_000).map(|_| pass_one(&mut bench, Ecn::NotEct)).collect();
    assert!(fates.iter().flatten().all(|&reason| reason == Reason::RED_EARLY));
    let drops: Vec<usize> = fates.iter().enumerate().filter(|(_, fate)| fate.is_some()).map(|(n, _)| n).collect();
    let gaps: Vec<usize> = drops.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = gaps.iter().sum::<usize>() as f64 / gaps.len() as f64;
    assert!((46.0..55.0).contains(&mean), "mean gap {mean}");
    assert!(gaps.iter().all(|&gap| gap <= 101), "longest gap {:?}", gaps.iter().max());
}

#[test]
fn above_max_every_packet_is_dropped() {
    // No packet leaves, so the average rises towards the backlog until it crosses `max`. From then on no packet enters.
    let mut bench = bench(scenario::Red { probability: 1e-9, ..parameters() });
    let fates: Vec<_> = (0..500).map(|_| bench.enqueue(0, 1000, Ecn::NotEct)).collect();
    let first = fates.iter().position(Option::is_some).expect("the average crosses max");
    assert!(average(&bench) >> 5 >= 90_000);
    assert!(fates[first..].iter().all(|&fate| fate == Some(Reason::RED_FORCED)));
}

#[test]
fn capable_packets_are_marked_instead_up_to_the_hard_limit() {
    let mut bench = bench(scenario::Red { ecn: true, ..parameters() });
    let fates: Vec<_> = (0..500).map(|_| bench.enqueue(0, 1000, Ecn::Ect0)).collect();
    assert_eq!(bench.backlog(), (400, 400_000));
    assert!(fates[..400].iter().all(|&fate| fate.is_none_or(|reason| reason == Reason::RED_MARK)));
    assert!(fates[200..400].iter().all(Option::is_some), "the average is above max");
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
        let red = scenario::Red { max_bytes, limit_bytes: 1 << 30, ..parameters() };
        Qdisc::new(&scenario::Qdisc::Red(red), Place { port: 0, node: 0, overhead_bytes: 14, seed: 1 })
    };
    assert!(of_max((1 << 26) - 1).is_ok());
    assert!(of_max(1 << 26).is_err());
}
