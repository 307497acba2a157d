//! The discipline as a whole: order of service, tins, the shaper, the limit, and what changes keep.

use std::collections::BTreeMap;

use bufferscope_scenario::{Cells, Diffserv, FlowMode, LinkLayer};
use proptest::prelude::*;

use super::*;
use crate::network::qdisc::Qdisc;
use crate::network::qdisc::testing::{Bench, FRAME, Flow, MS};
use crate::network::traffic_class::{Ecn, TrafficClass};

fn class(dscp: u8) -> TrafficClass {
    TrafficClass::new(dscp, Ecn::NotEct)
}

fn flow(number: u32) -> Flow {
    Flow { hash: number.wrapping_mul(0x9e37_79b9), source: 1, destination: 2 }
}

fn bench(parameters: scenario::Cake) -> Bench {
    Bench::new(&scenario::Qdisc::Cake(parameters))
}

fn shaped(bandwidth_bps: u64) -> scenario::Cake {
    scenario::Cake { bandwidth_bps: Some(bandwidth_bps), ..scenario::Cake::default() }
}

/// When the next packet may leave, if that is later than now.
fn waits(bench: &Bench, now_ns: u64) -> Option<u64> {
    match bench.qdisc() {
        Qdisc::Cake(cake) => cake.0.shaper.not_before(now_ns),
        other => unreachable!("{other:?}"),
    }
}

/// Takes out packets until the discipline is empty or wants to wait, at most `most`; their numbers.
fn drain(bench: &mut Bench, now_ns: u64, most: usize) -> Vec<u64> {
    std::iter::from_fn(|| bench.dequeue(now_ns).0.map(|(number, _)| number)).take(most).collect()
}

/// Three packets of one flow arrive, then three of another: they leave by turns, the new flow's first as long as it is
/// sparse.
#[test]
fn flows_take_turns() {
    let mut bench = bench(scenario::Cake::default());
    for number in [1, 1, 1, 2, 2, 2] {
        bench.arrive_of(flow(number), 0, FRAME, class(0));
    }
    assert_eq!(drain(&mut bench, 0, 6), [0, 3, 1, 4, 2, 5]);
    assert_eq!(bench.backlog(), (0, 0));
}

#[test]
fn one_queue_serves_in_order_of_arrival_if_flows_are_not_isolated() {
    let mut bench = bench(scenario::Cake { flowmode: FlowMode::Flowblind, ..scenario::Cake::default() });
    for number in [1, 1, 2, 1, 2] {
        bench.arrive_of(flow(number), 0, FRAME, class(0));
    }
    assert_eq!(drain(&mut bench, 0, 5), [0, 1, 2, 3, 4]);
}

/// A host with one flow gets as much as one with three.
#[test]
fn hosts_share_fairly() {
    let served = |mode| {
        let mut bench = bench(scenario::Cake { flowmode: mode, ..scenario::Cake::default() });
        // The numbers of the packets modulo 4 are those of the flows; flow 0 is that of host 9.
        for number in 0..400 {
            let host = if number % 4 == 0 { 9 } else { 1 };
            let of = Flow { source: host, ..flow(number % 4) };
            bench.arrive_of(of, 0, FRAME, class(0));
        }
        drain(&mut bench, 0, 150).into_iter().filter(|number| number % 4 == 0).count()
    };
    assert!((36..=40).contains(&served(FlowMode::Flows)), "a quarter");
    assert!((72..=78).contains(&served(FlowMode::DualSrchost)), "a half");
    assert!((36..=40).contains(&served(FlowMode::DualDsthost)), "all go to the same host");
}

/// Without a shaper, tins share by their quanta: 1024, 64 and 256.
#[test]
fn tins_share_by_weight_without_a_shaper() {
    let mut bench = bench(scenario::Cake::default());
    for _ in 0..600 {
        // Best effort, CS1 and EF.
        [0, 8, 46].into_iter().for_each(|dscp| drop(bench.arrive_of(flow(1), 0, FRAME, class(dscp))));
    }
    let mut served = [0; 3];
    drain(&mut bench, 0, 672).into_iter().for_each(|number| served[(number % 3) as usize] += 1);
    // Of 672, 512 : 32 : 128.
    for (served, expected) in served.into_iter().zip([512_i32, 32, 128]) {
        assert!((served - expected).abs() <= 12, "{served} of {expected}");
    }
}

/// With a shaper, a tin has priority up to its threshold: voice up to a quarter of the rate.
#[test]
fn a_tin_has_priority_up_to_its_threshold() {
    let mut bench = bench(shaped(8_000_000));
    for _ in 0..1000 {
        [0, 46].into_iter().for_each(|dscp| drop(bench.arrive_of(flow(1), 0, FRAME, class(dscp))));
    }
    let (mut now_ns, mut voice, mut first) = (0, 0, None);
    for _ in 0..400 {
        while let Some(at_ns) = waits(&bench, now_ns) {
            now_ns = at_ns;
        }
        let (number, _) = bench.dequeue(now_ns).0.expect("packets wait");
        first = first.or(Some(number % 2));
        voice += u32::from(number % 2 == 1);
    }
    assert_eq!(first, Some(1), "voice goes first");
    assert!((98..=104).contains(&voice), "{voice} of 400 is not a quarter");
}

#[test]
fn washing_clears_the_code_point_and_still_chooses_the_tin() {
    let mut bench = bench(scenario::Cake { wash: true, ..shaped(8_000_000) });
    bench.arrive_of(flow(1), 0, FRAME, class(0));
    bench.arrive_of(flow(2), 0, FRAME, TrafficClass::new(46, Ecn::Ect0));
    assert_eq!(bench.classes(), [class(0), TrafficClass::new(0, Ecn::Ect0)]);
    assert_eq!(bench.dequeue(0).0.map(|(number, _)| number), Some(1), "voice goes first");
}

/// 1 MB/s: a frame of 1514 bytes lasts 1.514 ms.
#[test]
fn the_shaper_spaces_packets() {
    let mut bench = bench(shaped(8_000_000));
    (0..3).for_each(|_| drop(bench.arrive(MS, FRAME, class(0))));
    assert!(bench.dequeue(MS).0.is_some());
    assert_eq!(bench.not_before(MS), Some(MS + 1_514_000));
    assert!(bench.dequeue(MS + 1_514_000).0.is_some());
    assert_eq!(bench.not_before(MS + 1_600_000), Some(MS + 3_028_000), "what is late is made up for");
    assert!(bench.dequeue(MS + 3_028_000).0.is_some());
    assert_eq!(bench.not_before(MS + 3_028_000), None, "empty");
}

#[test]
fn the_shaper_counts_cells() {
    let link_layer = LinkLayer { raw: false, overhead_bytes: 40, cells: Cells::Atm, mpu_bytes: 0 };
    let mut bench = bench(scenario::Cake { link_layer, ..shaped(8_000_000) });
    (0..2).for_each(|_| drop(bench.arrive(MS, FRAME, class(0))));
    assert!(bench.dequeue(MS).0.is_some());
    assert_eq!(bench.not_before(MS), Some(MS + 33 * 53 * 1000));
}

/// An echo of 1500 bytes takes 2304 bytes of memory: 10 fit 23,040 bytes. An eleventh displaces the first packet
/// of the longest queue.
#[test]
fn an_overflow_takes_from_the_longest_queue() {
    let mut bench = bench(scenario::Cake { memlimit_bytes: Some(23_040), ..scenario::Cake::default() });
    for number in [1, 2, 2, 1, 2, 1, 2, 2, 2, 2] {
        assert_eq!(bench.arrive_of(flow(number), 0, FRAME, class(0)), (Xmit::Queued, vec![]));
    }
    let (xmit, events) = bench.arrive_of(flow(3), 0, FRAME, class(0));
    assert_eq!((xmit, events), (Xmit::Queued, vec![(1, Reason::OVERLIMIT)]));
    let (xmit, events) = bench.arrive_of(flow(2), 0, FRAME, class(0));
    assert_eq!((xmit, events), (Xmit::Displacing, vec![(2, Reason::OVERLIMIT)]));
    assert_eq!(bench.backlog(), (10, 10 * u64::from(FRAME)));
}

/// COBALT drops from the head of a queue that is late, but never its last packet.
#[test]
fn late_packets_are_dropped_but_not_the_last() {
    let mut bench = bench(scenario::Cake::default());
    (0..3).for_each(|_| drop(bench.arrive(0, FRAME, class(0))));
    assert_eq!(bench.dequeue(50 * MS), (Some((0, Ecn::NotEct)), vec![]));
    assert_eq!(bench.dequeue(50 * MS), (Some((2, Ecn::NotEct)), vec![(1, Reason::COBALT)]));
    // A queue of one.
    let (late, never) = (500 * MS, vec![]);
    bench.arrive(late, FRAME, class(0));
    assert_eq!(bench.dequeue(2 * late), (Some((3, Ecn::NotEct)), never));
}

#[test]
fn packets_that_can_be_marked_are_marked() {
    let mut bench = bench(scenario::Cake::default());
    (0..3).for_each(|_| drop(bench.arrive(0, FRAME, TrafficClass::new(0, Ecn::Ect0))));
    assert_eq!(bench.dequeue(50 * MS), (Some((0, Ecn::Ect0)), vec![]));
    assert_eq!(bench.dequeue(50 * MS), (Some((1, Ecn::Ce)), vec![(1, Reason::COBALT_MARK)]));
}

/// On ingress, a dropped packet has already crossed the bottleneck: it counts as sent.
#[test]
fn dropped_packets_delay_the_next_on_ingress() {
    let next = |ingress| {
        let mut bench = bench(scenario::Cake { ingress, ..shaped(8_000_000) });
        (0..4).for_each(|_| drop(bench.arrive(0, FRAME, class(0))));
        bench.dequeue(50 * MS);
        assert_eq!(bench.dequeue(50 * MS).1, [(1, Reason::COBALT)]);
        // Ten more milliseconds' worth of packets: the clock is behind by 50 ms.
        let mut bytes = 0;
        while waits(&bench, 50 * MS).is_none() && bytes < 100 {
            bench.arrive(50 * MS, FRAME, class(0));
            bench.dequeue(50 * MS);
            bytes += 1;
        }
        bytes
    };
    assert_eq!(next(false), next(true) + 1, "one packet less may leave");
}

/// Fewer tins: those that are given up lose their packets, and the others keep theirs.
#[test]
fn a_change_keeps_the_packets_of_tins_that_stay() {
    let mut bench = bench(scenario::Cake { diffserv: Diffserv::Diffserv4, ..scenario::Cake::default() });
    // Best effort; EF, which is in the fourth tin.
    [0, 46].into_iter().for_each(|dscp| drop(bench.arrive_of(flow(1), 0, FRAME, class(dscp))));
    let dropped = bench.change(&scenario::Qdisc::Cake(shaped(1_000_000)));
    assert_eq!(dropped, [(1, Reason::PURGED)]);
    assert_eq!(bench.backlog(), (1, FRAME.into()));
    assert_eq!(drain(&mut bench, MS, 1), [0]);
}

fn parameters() -> impl Strategy<Value = scenario::Cake> {
    use proptest::sample::select;
    let modes = (select(&Diffserv::ALL), select(&FlowMode::ALL), any::<[bool; 2]>());
    let memlimit = prop::option::of(3000..100_000_u32);
    (modes, prop::option::of(1_000_000..50_000_000_u64), memlimit).prop_map(|(modes, bandwidth_bps, memlimit_bytes)| {
        let (diffserv, flowmode, [ingress, wash]) = modes;
        scenario::Cake { diffserv, flowmode, ingress, wash, bandwidth_bps, memlimit_bytes, ..scenario::Cake::default() }
    })
}

fn code_point() -> impl Strategy<Value = u8> {
    prop::sample::select(vec![0_u8, 8, 34, 46])
}

/// A discipline that is served as soon as it lets a packet pass.
struct Run {
    bench: Bench,
    now_ns: u64,
    /// Flow, code point and length of each packet that arrived.
    kinds: Vec<(u32, u8, u32)>,
    sent: Vec<(u64, u64)>,
    /// When each dropped packet was dropped, and its number.
    dropped: Vec<(u64, u64)>,
}

impl Run {
    fn serve(&mut self) {
        let (packet, events) = self.bench.dequeue(self.now_ns);
        self.sent.extend(packet.map(|(number, _)| (self.now_ns, number)));
        self.note_dropped(events);
    }

    fn note_dropped(&mut self, events: Vec<(u64, Reason)>) {
        self.dropped.extend(events.into_iter().map(|(number, _)| (self.now_ns, number)));
    }

    fn bytes(&self, number: u64) -> u64 {
        self.kinds[number as usize].2.into()
    }

    fn serve_until(&mut self, end_ns: u64) {
        while self.bench.backlog().0 > 0 {
            let at_ns = waits(&self.bench, self.now_ns).unwrap_or(self.now_ns);
            if at_ns > end_ns {
                break;
            }
            self.now_ns = at_ns;
            self.serve();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever arrives leaves once or is dropped, packets of a flow and a tin leave in order, and the shaper lets no more
    /// pass in any window than the rate and a frame. On ingress, dropped packets put the shaper's first clock ahead of an
    /// empty discipline. The next arrival then sets neither clock to the current time, and the failsafe clock lags behind
    /// by what was dropped, at most (sch_cake.c, `cake_enqueue`).
    #[test]
    fn packets_are_kept_in_order_within_the_rate(
        parameters in parameters(),
        arrivals in prop::collection::vec((0..3_000_000_u64, 0..12_u32, 60..1515_u32, code_point()), 1..300),
    ) {
        let mut run = Run { bench: bench(parameters.clone()), now_ns: 0, kinds: Vec::new(), sent: Vec::new(), dropped: Vec::new() };
        for (gap_ns, number, bytes, dscp) in arrivals {
            let at_ns = run.now_ns + gap_ns;
            if parameters.bandwidth_bps.is_some() {
                run.serve_until(at_ns);
            } else {
                run.serve();
            }
            run.now_ns = at_ns;
            run.kinds.push((number, dscp, bytes));
            let (_, events) = run.bench.arrive_of(flow(number), at_ns, bytes, class(dscp));
            run.note_dropped(events);
        }
        run.serve_until(u64::MAX);
        prop_assert_eq!(run.bench.backlog(), (0, 0));
        prop_assert_eq!(run.sent.len() + run.dropped.len(), run.kinds.len());
        let mut last = BTreeMap::new();
        for (_, number) in &run.sent {
            let (flow, dscp, _) = run.kinds[*number as usize];
            prop_assert!(last.insert((flow, dscp), *number).is_none_or(|before| before < *number));
        }
        let Some(rate_bps) = parameters.bandwidth_bps else { return Ok(()) };
        // How far the failsafe clock can lag behind when a packet leaves.
        let lag_bytes = |at_ns: u64| {
            let dropped = run.dropped.iter().take_while(|(dropped_ns, _)| parameters.ingress && *dropped_ns < at_ns);
            dropped.map(|(_, number)| run.bytes(*number)).sum::<u64>()
        };
        let lags: Vec<u64> = run.sent.iter().map(|(at_ns, _)| lag_bytes(*at_ns)).collect();
        for from in 0..run.sent.len() {
            let mut sum = 0;
            for ((at_ns, number), lag_bytes) in run.sent[from..].iter().zip(&lags[from..]) {
                sum += run.bytes(*number);
                let window_s = (at_ns - run.sent[from].0) as f64 / 1e9;
                // What leaves last in the window lasts beyond its end.
                let allowed = window_s * rate_bps as f64 / 8.0 + *lag_bytes as f64 + f64::from(FRAME) + 1.0;
                prop_assert!(sum as f64 <= allowed, "{} of {}", sum, allowed);
            }
        }
    }
}
