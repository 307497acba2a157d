//! Quantities as `tc` reads them, always exact.

const TIMES: [(u64, &str); 4] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
const RATES: [(u64, &str); 4] = [(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1_000, "kbit"), (1, "bit")];

/// A time: `5ms`, `1500us`.
pub(super) fn time(ns: u64) -> String {
    exact(ns, TIMES)
}

/// A rate: `10mbit`, `1500kbit`.
pub(super) fn rate(bits_per_second: u64) -> String {
    exact(bits_per_second, RATES)
}

/// In the largest unit that needs no fraction.
fn exact(value: u64, units: [(u64, &str); 4]) -> String {
    let fits = |(scale, _): &(u64, &str)| value.is_multiple_of(*scale);
    let (scale, unit) = units.into_iter().find(fits).expect("everything is a multiple of the smallest unit");
    format!("{}{unit}", value / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_take_the_largest_exact_unit() {
        assert_eq!(time(5_000_000), "5ms");
        assert_eq!(time(1_500_000), "1500us");
        assert_eq!(time(60_000_000_000), "60s");
        assert_eq!(time(7), "7ns");
        assert_eq!(rate(10_000_000), "10mbit");
        assert_eq!(rate(1_500_000), "1500kbit");
        assert_eq!(rate(999), "999bit");
    }
}
