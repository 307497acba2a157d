use proptest::prelude::*;
use proptest::string::string_regex;

use super::*;

/// The units of tc(8), with the numbers it gives for them.
#[test]
fn units_are_tcs() {
    for (text, bits) in [
        ("1bit", 1),
        ("10kbit", 10_000),
        ("10mbit", 10_000_000),
        ("1.5Mbit", 1_500_000),
        ("2gbit", 2_000_000_000),
        ("1tbit", 1_000_000_000_000),
        ("1kibit", 1024),
        ("1gibit", 1_073_741_824),
        ("1bps", 8),
        ("1kbps", 8_000),
        ("1KiBps", 8_192),
        ("0.5mbps", 4_000_000),
    ] {
        assert_eq!(RATE.parse(text), Ok(bits), "{text}");
    }
    for (text, ns) in
        [("1ns", 1), ("2usecs", 2_000), ("5ms", 5_000_000), ("1.5s", 1_500_000_000), ("60sec", 60 * SECOND)]
    {
        assert_eq!(TIME.parse(text), Ok(ns), "{text}");
    }
    for (text, bytes) in
        [("14b", 14), ("14", 14), ("150kb", 153_600), ("1.5k", 1_536), ("1mb", 1_048_576), ("8kbit", 1024)]
    {
        assert_eq!(SIZE.parse(text), Ok(bytes), "{text}");
    }
    assert_eq!((PACKETS.parse("100p"), PACKETS.parse("100")), (Ok(100), Ok(100)));
}

#[test]
fn zeros_at_the_end_of_a_fraction_mean_nothing() {
    let zeros = "0".repeat(100);
    assert_eq!(TIME.parse(&format!("1.5{zeros}ms")), Ok(1_500_000));
    assert_eq!(TIME.parse(&format!("1.{zeros}ns")), Ok(1));
    assert_eq!(TIME.parse(&format!("{zeros}1ns")), Ok(1), "nor do those before the number");
}

#[test]
fn what_is_not_a_quantity_is_refused_with_the_reason() {
    let unknown =
        |number: &str, unit: &str| UnitError::UnknownUnit { number: number.to_owned(), unit: unit.to_owned() };
    for (dimension, text, error) in [
        (&RATE, "", UnitError::NotANumber),
        (&RATE, "mbit", UnitError::NotANumber),
        (&RATE, ".5mbit", UnitError::NotANumber),
        (&RATE, "5.mbit", UnitError::NotANumber),
        (&RATE, "1.2.3mbit", UnitError::NotANumber),
        (&RATE, "+5mbit", UnitError::NotANumber),
        (&RATE, "-5mbit", UnitError::Negative),
        (&RATE, "5", UnitError::NoUnit),
        (&RATE, "1e6bit", unknown("1", "e6bit")),
        (&RATE, "5m", unknown("5", "m")),
        (&RATE, "5 mbit", unknown("5", " mbit")),
        (&TIME, "1m", unknown("1", "m")),
        (&TIME, "1\u{b5}s", unknown("1", "\u{b5}s")),
        (&RATE, "0.5bit", UnitError::NotWhole),
        (&TIME, "0.1ns", UnitError::NotWhole),
        (&SIZE, "0.1kb", UnitError::NotWhole),
        (&PACKETS, "0.00000000000000000000000000000000000000000001p", UnitError::NotWhole),
        (&RATE, "18446744073709551616bit", UnitError::TooLarge),
        (&RATE, "99999999999999999999999999999999999999999tbit", UnitError::TooLarge),
    ] {
        assert_eq!(dimension.parse(text), Err(error), "{text}");
    }
    assert_eq!(RATE.parse("18446744073709551615bit"), Ok(u64::MAX), "the largest there is");
}

#[test]
fn values_are_shown_in_the_largest_unit_that_is_whole() {
    assert_eq!(RATE.display(1_500_000), "1500kbit");
    assert_eq!(TIME.display(60 * SECOND), "60s");
    assert_eq!(TIME.display(0), "0s");
    assert_eq!(SIZE.display(1500), "1500b");
    assert_eq!(SIZE.display(6 * MB), "6mb");
}

fn any_dimension() -> impl Strategy<Value = &'static Dimension> {
    prop::sample::select(DIMENSIONS.to_vec())
}

proptest! {
    #[test]
    fn what_is_shown_reads_back(dimension in any_dimension(), value in any::<u64>(), zeros in 0..64_u32) {
        let value = value >> zeros;
        prop_assert_eq!(dimension.parse(&dimension.display(value)), Ok(value));
    }

    #[test]
    fn a_decimal_is_exact(dimension in any_dimension(), unit in any::<prop::sample::Index>(), thousandths in 0..10_000_000_u64) {
        let (name, scale) = unit.get(dimension.units);
        let text = format!("{}.{:03}{name}", thousandths / 1000, thousandths % 1000);
        let exact = u128::from(thousandths) * u128::from(*scale);
        let expected = if exact % 1000 == 0 { u64::try_from(exact / 1000).map_err(|_| UnitError::TooLarge) } else { Err(UnitError::NotWhole) };
        prop_assert_eq!(dimension.parse(&text), expected);
    }

    /// The schema's pattern and the parser know the same units.
    #[test]
    fn what_the_pattern_allows_has_a_number_and_a_unit(
        (dimension, text) in any_dimension().prop_flat_map(|d| (Just(d), string_regex(d.pattern().trim_matches(['^', '$'])).unwrap())),
    ) {
        let parsed = dimension.parse(&text);
        prop_assert!(matches!(parsed, Ok(_) | Err(UnitError::NotWhole | UnitError::TooLarge)), "{text}: {parsed:?}");
    }

    #[test]
    fn any_text_is_parsed_or_refused(dimension in any_dimension(), text in "[0-9.]{0,45}\\PC{0,6}") {
        let _ = dimension.parse(&text);
    }
}
