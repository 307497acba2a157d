use bufferscope_scenario::{Encapsulation, Reason};

use super::*;
use crate::network::qdisc::testing::{Bench, FRAME, MS, attachment};
use crate::network::traffic_class::Ecn;

fn parameters() -> scenario::Codel {
    scenario::Codel { limit_packets: 1000, target_ns: 5 * MS, interval_ns: 100 * MS, ecn: false, ce_threshold_ns: None }
}

/// A queue of `packets` full frames, which all arrived at `now_ns`. Delay grows with time until the queue is empty.
fn standing_queue(parameters: scenario::Codel, packets: u32, now_ns: u64, ecn: Ecn) -> Bench {
    let mut bench = Bench::new(&scenario::Qdisc::Codel(parameters));
    (0..packets).for_each(|_| assert_eq!(bench.enqueue(now_ns, FRAME, ecn), None));
    bench
}

/// Dequeues once per millisecond of the range. Returns the times of drops and marks, one entry per packet.
fn dequeue_each_ms(bench: &mut Bench, ms: std::ops::Range<u64>) -> Vec<u64> {
    ms.flat_map(|ms| vec![ms; bench.dequeue(ms * MS).1.len()]).collect()
}

#[test]
fn codel_drops_after_100_ms_above_target_and_then_at_the_kernels_pace() {
    // Delay is above target from 5 ms on, so the first drop comes 100 ms later. The second follows after interval *
    // 65535/65536. The later gaps follow from the Newton steps y' = y (3 - count y^2) / 2 from y = 1, which give 0.5
    // for count = 2, 0.5625 for 3, 0.4878 for 4 and 0.4415 for 5: gaps of 50, 56.25, 48.8 and 44.2 ms, or 50, 57, 49
    // and 44 in whole milliseconds (fractions carry over).
    let mut bench = standing_queue(parameters(), 1000, 0, Ecn::NotEct);
    assert_eq!(dequeue_each_ms(&mut bench, 0..410), [105, 205, 255, 312, 361, 405]);
}

#[test]
fn codel_sends_the_packet_behind_the_one_it_drops() {
    let mut bench = standing_queue(parameters(), 1000, 0, Ecn::NotEct);
    assert!(dequeue_each_ms(&mut bench, 0..105).is_empty());
    assert_eq!(bench.dequeue(105 * MS), (Some((106, Ecn::NotEct)), vec![(105, Reason::CODEL)]));
}

#[test]
fn codel_leaves_a_delay_below_target_alone() {
    // For ten seconds, each packet waits 4.9 ms behind four others.
    let mut bench = Bench::new(&scenario::Qdisc::Codel(parameters()));
    for ms in 0..10_000 {
        bench.enqueue(ms * MS, FRAME, Ecn::NotEct);
        if ms >= 4 {
            assert_eq!(bench.dequeue(ms * MS + 900_000).1, []);
        }
    }
}

#[test]
fn codel_drops_nothing_when_at_most_an_mtu_stays_behind() {
    // Packets wait for seconds, but only one stays behind when another leaves.
    let mut bench = Bench::new(&scenario::Qdisc::Codel(parameters()));
    bench.enqueue(0, FRAME, Ecn::NotEct);
    for second in 1..60 {
        bench.enqueue((second - 1) * 1000 * MS + 1, FRAME, Ecn::NotEct);
        assert_eq!(bench.dequeue(second * 1000 * MS).1, []);
    }
}

#[test]
fn the_mtu_is_that_of_the_device_whatever_the_link_adds() {
    // As before, but each frame has four bytes more: `psched_mtu` does not know of `tc`'s size tables.
    let link = Attachment { encapsulation: Encapsulation::adding(18), ..attachment(0) };
    let mut bench = Bench::attached(&scenario::Qdisc::Codel(parameters()), link);
    bench.enqueue(0, FRAME + 4, Ecn::NotEct);
    let mut drops = Vec::new();
    for second in 1..4 {
        bench.enqueue((second - 1) * 1000 * MS + 1, FRAME + 4, Ecn::NotEct);
        drops.extend(bench.dequeue(second * 1000 * MS).1);
    }
    assert_eq!(drops, [(1, Reason::CODEL)]);
}

#[test]
fn codel_resumes_at_the_pace_at_which_it_left_off() {
    // As above until the fifth drop at 361 ms: count is 5, and it was 1 when dropping began. Then all waiting packets
    // are sent at once, and new packets arrive at 400 ms. Their delay is above target at 405 ms, so dropping resumes at
    // 505 ms with count = 5 - 1 = 4. One Newton step from y = 0.4415 with count 4 gives 0.4902, so the next drop comes
    // after 49.02 ms and not after 100 ms.
    let mut bench = standing_queue(parameters(), 1000, 0, Ecn::NotEct);
    assert_eq!(dequeue_each_ms(&mut bench, 0..362).len(), 5);
    while bench.backlog().0 > 0 {
        bench.dequeue(362 * MS);
    }
    (0..1000).for_each(|_| assert_eq!(bench.enqueue(400 * MS, FRAME, Ecn::NotEct), None));
    assert_eq!(dequeue_each_ms(&mut bench, 400..560), [505, 555]);
}

#[test]
fn codel_forgets_its_pace_after_16_intervals() {
    // As before, but the new packets arrive at 3 s, and drop_next was 405 ms, more than 1.6 s earlier. In units of 1024
    // ns, 3005 and 3105 ms are exactly an interval apart, which does not yet count as "after".
    let mut bench = standing_queue(parameters(), 1000, 0, Ecn::NotEct);
    assert_eq!(dequeue_each_ms(&mut bench, 0..362).len(), 5);
    while bench.backlog().0 > 0 {
        bench.dequeue(362 * MS);
    }
    (0..1000).for_each(|_| assert_eq!(bench.enqueue(3000 * MS, FRAME, Ecn::NotEct), None));
    assert_eq!(dequeue_each_ms(&mut bench, 3000..3250), [3106, 3206]);
}

#[test]
fn codel_makes_up_for_drops_that_became_due_between_two_dequeues() {
    // The first drop is at 105 ms; the next are due at 205, 255, 311 and 360 ms, but nothing is dequeued until 320 ms.
    let mut bench = standing_queue(parameters(), 1000, 0, Ecn::NotEct);
    assert_eq!(dequeue_each_ms(&mut bench, 0..110), [105]);
    assert_eq!(dequeue_each_ms(&mut bench, 320..321), [320, 320, 320]);
}

#[test]
fn codel_marks_instead_of_dropping_if_both_sides_agree() {
    let parameters = scenario::Codel { ecn: true, ..parameters() };
    let mut bench = standing_queue(parameters.clone(), 1000, 0, Ecn::Ect0);
    assert!(dequeue_each_ms(&mut bench, 0..105).is_empty());
    assert_eq!(bench.dequeue(105 * MS), (Some((105, Ecn::Ce)), vec![(105, Reason::CODEL_MARK)]));
    assert_eq!(dequeue_each_ms(&mut bench, 106..410), [205, 255, 312, 361, 405], "at the same pace as drops");

    let mut bench = standing_queue(parameters, 1000, 0, Ecn::NotEct);
    dequeue_each_ms(&mut bench, 0..105);
    assert_eq!(bench.dequeue(105 * MS).1, [(105, Reason::CODEL)], "a transport that does not understand marks");
}

#[test]
fn codel_marks_every_capable_packet_above_the_ce_threshold() {
    // 1 ms is 976 units of 1024 ns. A delay of 1 ms is therefore not above the threshold, and a delay of 2 ms is.
    let parameters = scenario::Codel { ce_threshold_ns: Some(MS), ..parameters() };
    let mut bench = standing_queue(parameters, 1000, 0, Ecn::Ect0);
    assert_eq!(dequeue_each_ms(&mut bench, 0..6), [2, 3, 4, 5]);
    let mut bench =
        standing_queue(scenario::Codel { ce_threshold_ns: Some(MS), ..self::parameters() }, 9, 0, Ecn::NotEct);
    assert!(dequeue_each_ms(&mut bench, 0..6).is_empty());
}

#[test]
fn codel_has_a_hard_limit() {
    let mut bench = standing_queue(scenario::Codel { limit_packets: 3, ..parameters() }, 3, 0, Ecn::Ect0);
    assert_eq!(bench.enqueue(0, FRAME, Ecn::Ect0), Some(Reason::OVERLIMIT));
    assert_eq!(bench.backlog().0, 3);
}

#[test]
fn codel_drops_what_is_over_a_lowered_limit_from_the_head() {
    let mut bench = standing_queue(parameters(), 5, 0, Ecn::Ect0);
    let events = bench.change(&scenario::Qdisc::Codel(scenario::Codel { limit_packets: 2, ecn: true, ..parameters() }));
    assert_eq!(events, [0, 1, 2].map(|number| (number, Reason::OVERLIMIT)));
    assert_eq!(bench.dequeue(MS).0, Some((3, Ecn::Ect0)));
}

#[test]
fn codel_goes_on_from_where_it_is_with_another_interval() {
    // The first drop is at 105 ms, and the second is due at 205 ms already. From then on, the gaps are half as long:
    // 25 ms instead of 50.
    let mut bench = standing_queue(parameters(), 1000, 0, Ecn::NotEct);
    assert_eq!(dequeue_each_ms(&mut bench, 0..110), [105]);
    let halved = scenario::Codel { interval_ns: 50 * MS, ..parameters() };
    assert_eq!(bench.change(&scenario::Qdisc::Codel(halved)), vec![]);
    assert_eq!(dequeue_each_ms(&mut bench, 110..240), [205, 230]);
}
