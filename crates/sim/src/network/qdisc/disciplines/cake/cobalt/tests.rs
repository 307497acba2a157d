//! COBALT to the digit. Expected numbers are those of the kernel's formulas, worked out apart from this code.

use super::*;
use crate::random::Stream;

const MS: i64 = 1_000_000;
const PARAMETERS: Parameters = Parameters { interval_ns: 100_000_000, target_ns: 5_000_000, mtu_ns: 0 };

struct Queue {
    cobalt: Cobalt,
    random: Random,
}

impl Queue {
    fn new() -> Self {
        Self { cobalt: Cobalt::new(), random: Random::new(1, Stream::Qdisc(0)) }
    }

    /// Whether a packet that cannot be marked is dropped after `sojourn_ms`.
    fn drops(&mut self, now_ns: i64, sojourn_ms: u64) -> bool {
        let sojourn_ns = sojourn_ms * MS as u64;
        self.cobalt.judge(&PARAMETERS, now_ns, sojourn_ns, 0, false, &mut self.random).drop
    }
}

#[test]
fn the_cache_has_the_values_of_four_newton_steps_each() {
    assert_eq!(INVERSE_SQRTS[..6], [0xffff_ffff, 0xffff_ffff, 0xb4ea_d8a0, 0x93cd_39e7, 0x7fff_ffff, 0x727c_9717]);
    assert_eq!(INVERSE_SQRTS[15], 0x4219_528c);
    assert_eq!(newton_step(INVERSE_SQRTS[15], 16), 1_071_990_595, "not yet 2^30");
    assert_eq!(newton_step(1_071_990_595, 17), 1_040_347_021);
}

/// A new queue has no interval yet: the second late packet is dropped. From then on, gaps are 70.67, 57.74, 50 ... ms.
#[test]
fn signals_follow_one_another_ever_faster() {
    let mut queue = Queue::new();
    assert!(!queue.drops(0, 0));
    assert_eq!(queue.cobalt.drop_next_ns, 100 * MS);
    assert!(!queue.drops(50 * MS, 6), "the first late packet");
    assert_eq!((queue.cobalt.count, queue.cobalt.drop_next_ns), (1, 50 * MS));
    assert!(queue.drops(50 * MS, 6));
    let mut expected_ns = 50 * MS;
    for (count, gap_ns) in [(2, 70_670_846), (3, 57_735_025), (4, 49_999_999), (5, 44_721_359)] {
        expected_ns += gap_ns;
        assert_eq!((queue.cobalt.count, queue.cobalt.drop_next_ns), (count, expected_ns));
        assert!(!queue.drops(expected_ns - 1, 6));
        assert!(queue.drops(expected_ns, 6));
    }
}

/// Once the count has decayed to 0, `1 / sqrt(count)` is 1, and the next signal needs a whole interval.
#[test]
fn the_count_decays_while_packets_are_in_time() {
    let mut queue = Queue::new();
    queue.drops(0, 6);
    queue.drops(0, 6);
    assert_eq!((queue.cobalt.count, queue.cobalt.drop_next_ns), (2, 70_670_846));
    assert!(!queue.drops(70_670_846, 5), "the target itself is in time");
    assert_eq!((queue.cobalt.count, queue.cobalt.drop_next_ns), (1, 70_670_846 + 99_999_999));
    assert!(!queue.drops(200 * MS, 1));
    assert_eq!((queue.cobalt.count, queue.cobalt.drop_next_ns), (0, 300 * MS), "active for another interval");
    assert!(!queue.drops(250 * MS, 6));
    assert_eq!(queue.cobalt.drop_next_ns, 250 * MS + 99_999_999);
    assert!(!queue.drops(300 * MS, 6));
    assert!(queue.drops(350 * MS, 6));
}

/// The first signal of a queue that has been idle for long is due at once, and a schedule in the past is given up.
#[test]
fn a_schedule_that_lies_behind_starts_again_from_now() {
    let mut queue = Queue::new();
    queue.drops(0, 6);
    queue.drops(0, 6);
    assert!(queue.drops(500 * MS, 6));
    // 70.67 + 57.74 ms lie before 500 ms, but a packet was dropped: the schedule stays.
    assert_eq!(queue.cobalt.drop_next_ns, 70_670_846 + 57_735_025);
    let verdict = queue.cobalt.judge(&PARAMETERS, 501 * MS, 6_000_000, 0, true, &mut queue.random);
    assert_eq!(verdict, Verdict { drop: false, marked: true });
    assert_eq!(queue.cobalt.drop_next_ns, 501 * MS, "a packet was only marked");
}

#[test]
fn full_frames_of_bulk_flows_may_wait_longer() {
    let parameters = Parameters { mtu_ns: 2_000_000, ..PARAMETERS };
    let is_over = |sojourn_ns, bulk_flows| {
        let mut queue = Queue::new();
        queue.cobalt.judge(&parameters, 0, sojourn_ns, bulk_flows, false, &mut queue.random);
        queue.cobalt.dropping
    };
    assert_eq!([is_over(8_000_000, 0), is_over(8_000_001, 0)], [false, true], "four frames");
    assert_eq!([is_over(12_000_000, 3), is_over(12_000_001, 3)], [false, true], "two frames of each of three flows");
}

#[test]
fn blue_rises_by_a_256th_per_target_and_falls_by_a_4096th() {
    let mut cobalt = Cobalt::new();
    cobalt.on_overflow(&PARAMETERS, 0);
    assert_eq!((cobalt.probability, cobalt.count, cobalt.drop_next_ns), (1 << 24, 1, 0));
    cobalt.on_overflow(&PARAMETERS, 5 * MS);
    assert_eq!(cobalt.probability, 1 << 24, "not within the target");
    cobalt.on_overflow(&PARAMETERS, 5 * MS + 1);
    assert_eq!(cobalt.probability, 2 << 24);
    for step in 1..300 {
        cobalt.on_overflow(&PARAMETERS, step * 6 * MS);
    }
    assert_eq!(cobalt.probability, u32::MAX, "it does not wrap");
    cobalt.on_empty(&PARAMETERS, 2000 * MS);
    assert_eq!(cobalt.probability, u32::MAX - (1 << 20));
    cobalt.probability = 5;
    cobalt.on_empty(&PARAMETERS, 3000 * MS);
    assert_eq!(cobalt.probability, 0);
}

#[test]
fn an_empty_queue_decays_to_rest() {
    let mut cobalt = Cobalt::new();
    assert!(cobalt.is_at_rest(0));
    cobalt.on_overflow(&PARAMETERS, 0);
    cobalt.probability = 0;
    assert!(!cobalt.is_at_rest(0));
    cobalt.on_empty(&PARAMETERS, 0);
    assert_eq!((cobalt.count, cobalt.drop_next_ns), (0, 99_999_999));
    assert!(!cobalt.is_at_rest(99_999_998));
    assert!(cobalt.is_at_rest(99_999_999));
}

/// BLUE drops packets that could be marked, too: of 10,000 at a probability of a half, about 5000.
#[test]
fn blue_drops_at_random() {
    let mut queue = Queue::new();
    queue.cobalt.probability = 1 << 31;
    let dropped =
        (0..10_000).filter(|ms| queue.cobalt.judge(&PARAMETERS, ms * MS, 0, 0, true, &mut queue.random).drop).count();
    assert!((4800..5200).contains(&dropped), "{dropped}");
}
