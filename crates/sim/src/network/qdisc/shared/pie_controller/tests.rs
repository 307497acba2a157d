use super::*;
use crate::network::qdisc::testing::{FRAME, MS};

/// The defaults of tc-pie(8).
fn law() -> Law {
    Law::new(15 * MS, [2, 20], false, false)
}

/// A controller that has seen these delays, the last of them now, and has this probability.
fn controller(probability: u64, last_delay_ms: u64, delay_ms: u64) -> Controller {
    let delays = [last_delay_ms, delay_ms].map(|ms| ticks(ms * MS));
    Controller { probability, last_delay: delays[0], delay: delays[1], ..Controller::new() }
}

/// The probability after one update with a frame waiting.
fn updated(probability: u64, last_delay_ms: u64, delay_ms: u64) -> u64 {
    let mut controller = controller(probability, last_delay_ms, delay_ms);
    controller.update(FRAME, &law());
    controller.probability
}

/// RFC 8033, section 4.2, gives alpha 0.125 and beta 1.25 per second: 2/16 and 20/16. In Linux' units, certainty is
/// 2^56 - 1 and a second 15,625,000 ticks, so weights are multiples of 4,611,686,018 / 16.
#[test]
fn weights_are_those_of_the_rfc_in_the_kernels_units() {
    let law = law();
    assert_eq!((law.alpha, law.beta), (576_460_752, 5_764_607_522));
    assert_eq!((law.target, Controller::new().burst), (234_375, 2_343_750));
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
    idle.update(0, &law());
    let below = half - 576_460_752 * 234_375;
    assert_eq!(idle.probability, below - below / 64);
    assert_eq!(updated(half, 0, 0), below);
}

/// RFC 8033, section 4.4: a burst of 150 ms passes, and another one once congestion is over.
#[test]
fn a_burst_passes_unharmed() {
    let mut controller = controller(CERTAIN / 2, 20, 20);
    let leaves =
        |controller: &mut Controller, ms| controller.on_departure(ticks(ms * MS), ticks(20 * MS), FRAME, FRAME, &law());
    leaves(&mut controller, 1000);
    assert_eq!(controller.burst, BURST_ALLOWANCE, "time counts from the first departure");
    leaves(&mut controller, 1100);
    assert_eq!(controller.burst, ticks(50 * MS));
    leaves(&mut controller, 1151);
    assert_eq!(controller.burst, 0);
    controller.on_departure(ticks(1152 * MS), ticks(20 * MS), FRAME, 0, &law());
    assert_eq!(controller.delay, 0, "the last packet of a queue shows no delay");
    (controller.probability, controller.last_delay) = (0, 0);
    controller.update(0, &law());
    assert_eq!((controller.burst, controller.left_at), (BURST_ALLOWANCE, None));
}

/// RFC 8033, section 4.3: a cycle of 16,384 bytes. At 10 Mbit/s, a frame of 1514 bytes leaves every 1,211,200 ns, 18,925
/// ticks. The 11th frame ends the cycle: 16,654 bytes in 10 intervals are 22 / 256 bytes a tick.
#[test]
fn the_rate_at_which_the_queue_drains_is_measured_in_cycles() {
    let law = Law { estimates: true, ..law() };
    let mut controller = Controller::new();
    for frame in 0..11_u64 {
        assert_eq!(controller.estimate.rate, 0);
        controller.on_departure(frame * 18_925, 0, FRAME, 30 * FRAME, &law);
    }
    assert_eq!(controller.estimate.rate, (16_654 << 8) / 189_250);
    assert_eq!(controller.burst, BURST_ALLOWANCE - 189_250, "a cycle counts as one departure");
    // 30 frames are 45,420 bytes: 11,627,520 / 22 ticks, or 33.8 ms.
    controller.update(30 * FRAME, &law);
    assert_eq!(controller.delay, 528_523);
}
