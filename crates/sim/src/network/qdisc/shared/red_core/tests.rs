use super::*;
use crate::random::Stream;

/// The thresholds are 30000 and 90000, the probability is 2 %, the weight 1/32.
fn early() -> RedCore {
    RedCore::new(Curve { min: 30_000, max: 90_000, shift: 5, probability: 85_899_345 })
}

/// The probability after an update with this average in bytes.
fn adapted(mut early: RedCore, bytes: u64) -> RedCore {
    early.adapt(bytes << 5);
    early
}

#[test]
fn the_slope_is_a_quotient_without_a_rest() {
    // 85899345 / 60000 = 1431.66.
    assert_eq!(early().per_unit, 1431);
    // A slope of less than 1 in 2^32 is one.
    let flat =
        RedCore::new(Curve { probability: 59_999, ..Curve { min: 30_000, max: 90_000, shift: 5, probability: 0 } });
    assert_eq!(flat.per_unit, 1);
}

#[test]
fn an_average_in_the_middle_fifth_leaves_the_probability() {
    for (bytes, probability) in [
        (53_999, 77_309_406), // 8589934 * 9
        (54_000, 85_899_345),
        (66_000, 85_899_345),
        (66_001, 107_374_181), // a quarter, 21474836, more
    ] {
        assert_eq!(adapted(early(), bytes).probability, probability, "{bytes}");
    }
    // 107374181 / 60000 = 1789.57 is rounded up.
    assert_eq!(adapted(early(), 66_001).per_unit, 1790);
}

#[test]
fn an_adapted_probability_stays_between_one_and_fifty_per_cent_or_one_step_beyond() {
    let after = |steps, bytes| (0..steps).fold(early(), |early, _| adapted(early, bytes)).probability;
    let per_cent = |probability: u32| f64::from(probability) * 100.0 / 4_294_967_296.0;
    // 2 % grow by a quarter three times, to 3.9 %, and at last by 1 % a step: by 46.1 % in 47 steps, to 50.9 %.
    assert!((50.0..51.0).contains(&per_cent(after(60, 80_000))), "{}", per_cent(after(60, 80_000)));
    assert_eq!(after(60, 80_000), after(1000, 80_000));
    assert!((0.9..1.0).contains(&per_cent(after(60, 40_000))));
    assert_eq!(after(60, 40_000), after(1000, 40_000));
}

#[test]
fn no_packet_is_chosen_on_the_first_one_between_the_thresholds() {
    let (early, mut random) = (early(), Random::new(1, Stream::Qdisc(0)));
    let mut watch = Watch { average: 60_000 << 5, ..Watch::default() };
    assert_eq!(early.verdict(&mut watch, &mut random), Verdict::Pass);
    // (60000 - 30000) * n reaches the number that was drawn for the first time at its quotient, rounded up.
    let passed = (1..).find(|_| early.verdict(&mut watch, &mut random) == Verdict::RedCore);
    let mut again = Random::new(1, Stream::Qdisc(0));
    let drawn = u64::from(again.next_u32() / 1431);
    assert_eq!(passed, Some(drawn.div_ceil(30_000).max(1)));
}
