//! The kernel's statistics of `cake` (`TCA_STATS_APP`), which are nested netlink attributes: some of the discipline as
//! a whole, and some of each tin (`enum TCA_CAKE_STATS_*` and `TCA_CAKE_TIN_STATS_*` of `linux/pkt_sched.h`).
//!
//! They arrive as words. An attribute is a length and a type of 16 bits each, and the value, padded to a whole word. What
//! is cut off or malformed is ignored.

const TIN_STATS: u16 = 10;
const TIN_ACK_DROPS: u16 = 6;
const TIN_MARKS: u16 = 8;
/// The bits of a type that are not flags.
const TYPE_MASK: u16 = 0x3fff;

/// Words of the statistics of the discipline as a whole: a number of 64 bits, seven of 32, and the head of the list of
/// tins.
pub(super) const LEAST_WORDS: usize = 3 + 7 * 2 + 1;

/// Packets since the start, in all tins.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) ack_drops: u64,
    pub(super) marks: u64,
}

pub(super) fn sums(words: &[u32]) -> Sums {
    let mut sums = Sums::default();
    let tins = attributes(words).filter(|(kind, _)| *kind == TIN_STATS).flat_map(|(_, tins)| attributes(tins));
    for (kind, value) in tins.flat_map(|(_, tin)| attributes(tin)) {
        let number = u64::from(value.first().copied().unwrap_or(0));
        match kind {
            TIN_ACK_DROPS => sums.ack_drops += number,
            TIN_MARKS => sums.marks += number,
            _ => {}
        }
    }
    sums
}

/// The attributes up to the first that is malformed: types and values.
fn attributes(words: &[u32]) -> impl Iterator<Item = (u16, &[u32])> {
    let mut rest = words;
    std::iter::from_fn(move || {
        let [a, b, c, d] = rest.first()?.to_ne_bytes();
        let (bytes, kind) = (u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d]) & TYPE_MASK);
        let length = usize::from(bytes).div_ceil(size_of::<u32>());
        let value = rest.get(1..length)?;
        rest = &rest[length..];
        Some((kind, value))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn attribute(kind: u16, value: &[u32]) -> Vec<u32> {
        let [a, b] = (4 + 4 * value.len() as u16).to_ne_bytes();
        let [c, d] = kind.to_ne_bytes();
        [&[u32::from_ne_bytes([a, b, c, d])], value].concat()
    }

    /// Three tins as the kernel sends them, among other attributes.
    fn statistics() -> Vec<u32> {
        let tin = |number: u16, acks, marks| {
            let own = [attribute(2, &[1000]), attribute(TIN_ACK_DROPS, &[acks]), attribute(TIN_MARKS, &[marks])];
            attribute(number, &own.concat())
        };
        let tins = [tin(1, 1, 10), tin(2, 2, 20), tin(3, 4, 40)].concat();
        let whole: Vec<u32> = (3..=9).flat_map(|kind| attribute(kind, &[7])).collect();
        // The kernel sets the flag of nested attributes on some versions.
        [attribute(2, &[1, 2]), whole, attribute(0x8000 | TIN_STATS, &tins)].concat()
    }

    #[test]
    fn the_tins_are_summed() {
        assert_eq!(sums(&statistics()), Sums { ack_drops: 7, marks: 70 });
        assert!(statistics().len() > LEAST_WORDS);
        assert_eq!(sums(&statistics()[..LEAST_WORDS]), Sums::default());
    }

    #[test]
    fn an_attribute_that_is_too_short_or_too_long_ends_the_list() {
        assert_eq!(attributes(&[0, 0, 0]).count(), 0);
        assert_eq!(attributes(&[u32::MAX, 0]).count(), 0);
    }

    proptest! {
        #[test]
        fn nothing_that_arrives_is_fatal(words in prop::collection::vec(any::<u32>(), 0..200), cut in 0..60_usize) {
            sums(&words);
            let known = statistics();
            let sum = sums(&known[..cut.min(known.len())]);
            prop_assert!(sum.ack_drops <= 7 && sum.marks <= 70);
        }
    }
}
