use bufferscope_scenario::{BandFilter, Codel, Match, Pfifo, Reason, Tbf};

use super::*;
use crate::network::qdisc::testing::{Bench, FRAME, MS};
use crate::network::traffic_class::Ecn;

/// The bands' disciplines, and the code points with a band of their own.
fn prio(inner: Vec<scenario::Qdisc>, filters: &[(u8, u8)]) -> scenario::Qdisc {
    let filters = filters.iter().map(|&(dscp, band)| BandFilter { chosen: Match::Dscp(dscp), band }).collect();
    scenario::Qdisc::Prio(scenario::Prio { bands: 3, priomap: scenario::Prio::PRIOMAP, inner, filters })
}

fn pfifo(limit_packets: u32) -> scenario::Qdisc {
    scenario::Qdisc::Pfifo(Pfifo { limit_packets })
}

fn class(dscp: u8) -> TrafficClass {
    TrafficClass::new(dscp, Ecn::NotEct)
}

fn numbers(bench: &mut Bench, from_ns: u64) -> Vec<u64> {
    (from_ns..).map_while(|at_ns| bench.dequeue(at_ns).0).map(|(number, _)| number).collect()
}

/// tc-prio(8): type of service 0x10 (low delay) goes to band 0, 0x08 (throughput) to band 2, others to band 1.
#[test]
fn the_priority_of_a_code_point_chooses_the_band_unless_a_filter_does() {
    let mut bench = Bench::new(&prio(vec![], &[(46, 0), (0, 2), (46, 1)]));
    for dscp in [0, 0x08 >> 2, 0x10 >> 2, 0x18 >> 2, 46] {
        assert_eq!(bench.arrive(0, FRAME, class(dscp)), (Xmit::Queued, vec![]));
    }
    assert_eq!(bench.backlog(), (5, 5 * u64::from(FRAME)));
    assert_eq!(numbers(&mut bench, 1), [2, 4, 3, 0, 1]);
    assert_eq!(bench.backlog(), (0, 0));
}

#[test]
fn each_band_has_the_limit_of_its_own_discipline() {
    let mut bench = Bench::new(&prio(vec![pfifo(1)], &[(46, 0)]));
    assert_eq!(bench.arrive(0, FRAME, class(46)), (Xmit::Queued, vec![]));
    assert_eq!(bench.arrive(0, FRAME, class(46)), (Xmit::Dropped, vec![(1, Reason::OVERLIMIT)]));
    let queued = (0..1200).filter(|_| bench.arrive(0, FRAME, class(0)).0 == Xmit::Queued).count();
    assert_eq!(queued, 1000, "txqueuelen, as for a band without a discipline of its own");
    assert_eq!(bench.backlog().0, 1001);
}

/// A band with a shaper holds its packets back. Those after it are served meanwhile.
#[test]
fn a_band_that_waits_for_tokens_lets_the_others_pass() {
    // 1 Mbit/s: a frame of 1514 bytes takes 12.112 ms. The bucket holds one.
    let tbf = Tbf { rate_bps: 1_000_000, burst_bytes: 1514, peak: None, limit_bytes: 30_000, inner: None };
    let mut bench = Bench::new(&prio(vec![scenario::Qdisc::Tbf(tbf)], &[(46, 0)]));
    for dscp in [46, 46, 0] {
        bench.arrive(0, FRAME, class(dscp));
    }
    assert_eq!(numbers_until(&mut bench, 2), [0, 2]);
    assert_eq!(bench.not_before(2), Some(12_112_000));
    assert_eq!(bench.dequeue(12_112_000).0.map(|(number, _)| number), Some(1));
    assert_eq!(bench.not_before(13 * MS), None);
}

fn numbers_until(bench: &mut Bench, packets: u64) -> Vec<u64> {
    (0..packets).filter_map(|at_ns| bench.dequeue(at_ns).0).map(|(number, _)| number).collect()
}

#[test]
fn a_band_that_goes_or_gets_another_discipline_loses_its_packets() {
    let mut bench = Bench::new(&prio(vec![pfifo(10), pfifo(10)], &[(46, 0), (10, 2)]));
    for dscp in [46, 0, 10] {
        bench.arrive(0, FRAME, class(dscp));
    }
    let codel =
        Codel { limit_packets: 10, target_ns: 5 * MS, interval_ns: 100 * MS, ecn: false, ce_threshold_ns: None };
    let scenario::Qdisc::Prio(mut fewer) = prio(vec![pfifo(5), scenario::Qdisc::Codel(codel)], &[]) else { panic!() };
    (fewer.bands, fewer.priomap) = (2, [1; 16]);
    assert_eq!(bench.change(&scenario::Qdisc::Prio(fewer)), [(2, Reason::PURGED), (1, Reason::PURGED)]);
    assert_eq!(bench.backlog(), (1, u64::from(FRAME)));
    assert_eq!(numbers(&mut bench, 1), [0]);
}
