use bufferscope_scenario::{ClassFilter, Match, Reason};
use proptest::prelude::*;

use super::*;
use crate::network::qdisc::testing::{Bench, FRAME};
use crate::network::traffic_class::{Ecn, TrafficClass};

const MBIT: u64 = 1_000_000;

/// A class whose buckets hold exactly one full frame.
fn class(parent: Option<u16>, rate_bps: u64, ceil_bps: u64) -> HtbClass {
    let (burst_bytes, cburst_bytes) = (FRAME, FRAME);
    HtbClass { parent, rate_bps, ceil_bps, burst_bytes, cburst_bytes, quantum_bytes: Some(FRAME), prio: 0, inner: None }
}

/// Code points lead to the classes of the same index.
fn htb(classes: Vec<HtbClass>) -> scenario::Htb {
    let mut htb = scenario::Htb { classes, filters: Vec::new(), default: None, r2q: 10, direct_qlen_packets: 2 };
    htb.filters = (0..htb.classes.len() as u16)
        .filter(|index| htb.is_leaf(*index))
        .map(|class| ClassFilter { chosen: Match::Dscp(class as u8), class })
        .collect();
    htb
}

fn bench(htb: scenario::Htb) -> Bench {
    Bench::new(&scenario::Qdisc::Htb(htb))
}

/// Keeps the classes full, and counts how many bytes of each leave within a time.
fn serve(bench: &mut Bench, classes: &[u8], until_ns: u64) -> Vec<u64> {
    let (mut class_of, mut sent) = (Vec::new(), vec![0; classes.len()]);
    let mut fill = |bench: &mut Bench, index: usize, now_ns: u64| {
        bench.arrive(now_ns, FRAME, TrafficClass::new(classes[index], Ecn::NotEct));
        class_of.push(index);
    };
    for index in 0..classes.len() {
        (0..3).for_each(|_| fill(bench, index, 0));
    }
    let mut now_ns = 0;
    while now_ns <= until_ns {
        match bench.answer(now_ns) {
            Dequeued::Packet(packet) => {
                let number = bench.leave(packet);
                let index = class_of[number as usize];
                sent[index] += u64::from(FRAME);
                bench.arrive(now_ns, FRAME, TrafficClass::new(classes[index], Ecn::NotEct));
                class_of.push(index);
            }
            Dequeued::NotBefore(at_ns) => {
                assert!(at_ns > now_ns, "{at_ns} is over at {now_ns}");
                now_ns = at_ns;
            }
            Dequeued::Nothing => unreachable!("packets wait"),
        }
    }
    sent
}

/// The rate of each class in bits per second, from the bytes that it sent in this time.
fn rates(sent: &[u64], ns: u64) -> Vec<u64> {
    sent.iter().map(|bytes| bytes * 8 * 1_000_000_000 / ns).collect()
}

fn assert_near(found: &[u64], expected: &[u64]) {
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.abs_diff(*expected) * 50 <= *expected, "{found} is not {expected} within 2 %");
    }
}

/// One frame of 1514 bytes takes 12.112 ms at 1 Mbit/s. The bucket holds one. It may go below zero by one: a class may
/// send as long as its tokens are not negative. In ticks of 64 ns, 12.112 ms are 189,250 exactly.
#[test]
fn a_lone_class_sends_at_its_rate_to_the_nanosecond() {
    let mut bench = bench(htb(vec![class(None, MBIT, MBIT)]));
    for _ in 0..4 {
        bench.arrive(0, FRAME, TrafficClass::new(0, Ecn::NotEct));
    }
    // A full bucket has 0 tokens left after one frame, which is enough for another.
    assert_eq!(bench.dequeue(0).0.map(|sent| sent.0), Some(0));
    assert_eq!(bench.dequeue(0).0.map(|sent| sent.0), Some(1));
    assert_eq!(bench.not_before(0), Some(12_112_000));
    assert_eq!(bench.not_before(12_111_999), Some(12_112_000));
    assert_eq!(bench.dequeue(12_112_000).0.map(|sent| sent.0), Some(2));
    assert_eq!(bench.not_before(12_112_000), Some(24_224_000));
    assert_eq!(bench.backlog(), (1, u64::from(FRAME)));
}

/// Each has its own rate; what is left of the parent's is shared in proportion to the quanta.
#[test]
fn leaves_have_their_rates_and_share_the_rest_by_their_quanta() {
    let mut classes =
        vec![class(None, 10 * MBIT, 10 * MBIT), class(Some(0), MBIT, 10 * MBIT), class(Some(0), 3 * MBIT, 10 * MBIT)];
    (classes[1].quantum_bytes, classes[2].quantum_bytes) = (Some(FRAME), Some(3 * FRAME));
    let ns = 10_000_000_000;
    let sent = serve(&mut bench(htb(classes)), &[1, 2], ns);
    // 6 Mbit/s are left, of which a quarter and three quarters.
    assert_near(&rates(&sent, ns), &[2_500_000, 7_500_000]);
}

#[test]
fn a_lower_prio_is_offered_all_that_is_left() {
    let mut classes =
        vec![class(None, 10 * MBIT, 10 * MBIT), class(Some(0), MBIT, 10 * MBIT), class(Some(0), 3 * MBIT, 10 * MBIT)];
    classes[2].prio = 1;
    let ns = 10_000_000_000;
    let sent = serve(&mut bench(htb(classes)), &[1, 2], ns);
    assert_near(&rates(&sent, ns), &[7_000_000, 3_000_000]);
}

#[test]
fn a_ceiling_bounds_what_a_class_borrows() {
    let classes =
        vec![class(None, 10 * MBIT, 10 * MBIT), class(Some(0), MBIT, 2 * MBIT), class(Some(0), MBIT, 10 * MBIT)];
    let ns = 10_000_000_000;
    let sent = serve(&mut bench(htb(classes)), &[1, 2], ns);
    assert_near(&rates(&sent, ns), &[2_000_000, 8_000_000]);
}

/// Three levels: the leaves 2 and 3 of class 1, and leaf 4 beside it. Class 1 has 4 of 10 Mbit/s of its own and may
/// borrow up to 6.
#[test]
fn lenders_borrow_in_turn() {
    let classes = vec![
        class(None, 10 * MBIT, 10 * MBIT),
        class(Some(0), 4 * MBIT, 6 * MBIT),
        class(Some(1), MBIT, 10 * MBIT),
        class(Some(1), MBIT, 10 * MBIT),
        class(Some(0), MBIT, 10 * MBIT),
    ];
    let ns = 10_000_000_000;
    let sent = rates(&serve(&mut bench(htb(classes.clone())), &[2, 3, 4], ns), ns);
    assert_near(&[sent[0] + sent[1] + sent[2], sent[0]], &[10_000_000, sent[1]]);
    assert!(sent[0] + sent[1] >= 3_920_000 && sent[0] + sent[1] <= 6_120_000, "{sent:?}");
    // Alone, the two leaves reach the ceiling of the class above them.
    let sent = rates(&serve(&mut bench(htb(classes)), &[2, 3], ns), ns);
    assert_near(&[sent[0] + sent[1], sent[0]], &[6_000_000, 3_000_000]);
}

#[test]
fn packets_without_a_class_pass_first_and_unshaped() {
    let mut bench = bench(htb(vec![class(None, MBIT, MBIT)]));
    let other = TrafficClass::new(46, Ecn::NotEct);
    bench.arrive(0, FRAME, TrafficClass::new(0, Ecn::NotEct));
    assert_eq!([0; 2].map(|at_ns| bench.arrive(at_ns, FRAME, other).0), [Xmit::Queued; 2]);
    assert_eq!(bench.arrive(0, FRAME, other), (Xmit::Dropped, vec![(3, Reason::OVERLIMIT)]));
    assert_eq!(bench.backlog().0, 3);
    let sent: Vec<u64> = (0..3).filter_map(|_| bench.dequeue(0).0).map(|sent| sent.0).collect();
    assert_eq!(sent, [1, 2, 0]);
}

#[test]
fn a_default_takes_what_no_filter_chooses() {
    let mut parameters = htb(vec![class(None, MBIT, MBIT), class(None, MBIT, MBIT)]);
    parameters.default = Some(1);
    assert_eq!([0, 1, 46].map(|dscp| class_of(&parameters).at(dscp, 0)), [Some(0), Some(1), Some(1)]);
}

/// With the same tree, packets and tokens stay; with another one, the packets are lost.
#[test]
fn a_change_of_rates_keeps_packets_and_one_of_the_tree_does_not() {
    let mut bench = bench(htb(vec![class(None, MBIT, MBIT)]));
    for _ in 0..5 {
        bench.arrive(0, FRAME, TrafficClass::new(0, Ecn::NotEct));
    }
    bench.dequeue(0);
    bench.dequeue(0);
    assert_eq!(bench.change(&scenario::Qdisc::Htb(htb(vec![class(None, 2 * MBIT, 2 * MBIT)]))), []);
    assert_eq!(bench.dequeue(12_112_000).0.map(|sent| sent.0), Some(2), "the tokens that it had were negative");
    assert_eq!(bench.not_before(12_112_000), Some(12_112_000 + 6_056_000));
    let other = htb(vec![class(None, MBIT, MBIT), class(Some(0), MBIT, MBIT)]);
    assert_eq!(bench.change(&scenario::Qdisc::Htb(other)), [(3, Reason::PURGED), (4, Reason::PURGED)]);
    assert_eq!(bench.backlog(), (0, 0));
}

/// Quanta follow from rates: 10 Mbit/s are 1,250,000 bytes a second, of which a tenth.
#[test]
fn a_quantum_follows_from_the_rate_within_bounds() {
    let quantum = |rate_bps, quantum_bytes| {
        let class = HtbClass { quantum_bytes, ..class(None, rate_bps, rate_bps) };
        let attachment =
            Attachment { port: 0, node: 0, encapsulation: scenario::Encapsulation::adding(14), seed: 1, now_ns: 0 };
        Leaf::new(&class, 10, attachment).unwrap().quantum
    };
    assert_eq!(
        [MBIT, 10 * MBIT, 100_000, 1000 * MBIT].map(|rate| quantum(rate, None)),
        [12_500, 125_000, 1250, 200_000]
    );
    assert_eq!((quantum(8000, None), quantum(8000, Some(60))), (1000, 60));
    let mut slow = htb(vec![class(None, 8000, 8000)]);
    assert_eq!(bench(slow.clone()).qdisc().warning(), None);
    slow.classes[0].quantum_bytes = None;
    assert!(bench(slow).qdisc().warning().unwrap().contains("100 bytes, which is small"));
}

#[test]
fn a_tree_that_linux_refuses_is_refused() {
    let attachment =
        Attachment { port: 0, node: 0, encapsulation: scenario::Encapsulation::adding(14), seed: 1, now_ns: 0 };
    let refused = |classes| Htb::new(&htb(classes), attachment).unwrap_err();
    assert!(refused(vec![class(Some(0), MBIT, MBIT)]).contains("before its parent"));
    let deep = |levels: u16| (0..levels).map(|level| class(level.checked_sub(1), MBIT, MBIT)).collect::<Vec<_>>();
    assert!(Htb::new(&htb(deep(8)), attachment).is_ok());
    assert!(refused(deep(9)).contains("too deep"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// In any window, a class sends at most what its ceiling allows and its bucket holds, and one frame, for which the
    /// tokens may become negative. Packets of a class stay in order, and none is lost without a word.
    #[test]
    fn no_class_exceeds_its_ceiling(
        rates in prop::collection::vec((100_000..5_000_000_u64, 0..5_000_000_u64, 0..8_u8), 2..5),
        arrivals in prop::collection::vec((0..40_000_000_u64, 64..=1514_u32, any::<u8>()), 1..200),
    ) {
        let total: u64 = rates.iter().map(|rate| rate.0).sum();
        let mut classes = vec![class(None, total, total)];
        classes.extend(rates.iter().map(|&(rate, more, prio)| HtbClass { prio, ..class(Some(0), rate, rate + more) }));
        let ceilings: Vec<u64> = classes.iter().map(|class| class.ceil_bps).collect();
        let leaves = rates.len() as u8;
        let mut bench = bench(htb(classes));
        let (mut now_ns, mut of, mut left) = (0, Vec::new(), Vec::new());
        let mut take = |bench: &mut Bench, now_ns: &mut u64, until_ns: u64, of: &[(usize, u32)]| {
            while *now_ns <= until_ns {
                match bench.answer(*now_ns) {
                    Dequeued::Packet(packet) => {
                        let number = bench.leave(packet) as usize;
                        left.push((*now_ns, number, of[number]));
                    }
                    Dequeued::NotBefore(at_ns) if at_ns <= until_ns => *now_ns = at_ns,
                    Dequeued::NotBefore(_) | Dequeued::Nothing => break,
                }
            }
            *now_ns = until_ns;
        };
        let mut time_ns = 0;
        for (gap_ns, bytes, any) in arrivals {
            time_ns += gap_ns / 8;
            take(&mut bench, &mut now_ns, time_ns, &of);
            let index = 1 + usize::from(any % leaves);
            of.push((index, bytes));
            let events = bench.arrive(time_ns, bytes, TrafficClass::new(index as u8, Ecn::NotEct));
            prop_assert_eq!(events, (Xmit::Queued, vec![]));
        }
        take(&mut bench, &mut now_ns, time_ns + 600_000_000_000, &of);
        prop_assert_eq!(left.len(), of.len());
        for (index, ceiling) in (0..).zip(ceilings) {
            let sent: Vec<(u64, usize, u32)> = left
                .iter()
                .filter(|(_, _, (class, _))| index == 0 || *class == index)
                .map(|&(at_ns, number, (_, bytes))| (at_ns, number, bytes))
                .collect();
            if index > 0 {
                prop_assert!(sent.windows(2).all(|pair| pair[0].1 < pair[1].1), "the order within a class");
            }
            for from in 0..sent.len() {
                let mut bits = 0;
                for to in &sent[from..] {
                    bits += 8 * u64::from(to.2);
                    // The bucket, the frame that overdraws it, and as many frames of the classes' own rates, which their
                    // parent does not hold back.
                    let frames = if index == 0 { 2 + 2 * u64::from(leaves) } else { 2 };
                    let most = (to.0 - sent[from].0) * ceiling / 1_000_000_000 + frames * 8 * u64::from(FRAME) + 8;
                    prop_assert!(bits <= most, "class {}: {} of {} bits", index, bits, most);
                }
            }
        }
    }
}
