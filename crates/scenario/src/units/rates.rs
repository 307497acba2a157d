//! Rates as people write them, and `tc`'s rates in bytes, which look almost the same: `10mbps` is 80 Mbit/s in `tc`.

use super::RATE;
use crate::error::{quote, shorten};

/// How messages explain tc's unit of bytes.
const IN_TC: &str = "in tc's units bps is bytes per second";

/// What is counted by a unit that is not one of tc's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    Bits,
    Bytes,
    /// `bps`: bits to most people, bytes to tc.
    BitsUnlessTc,
}

/// What to write instead of `number` with a unit that tc does not know, such as ` Mb/s`. `B` means bytes and `b` means
/// bits; the case of other letters does not matter.
pub(crate) fn suggest(number: &str, unit: &str) -> Option<String> {
    let (prefix, counts) = read(unit.trim())?;
    let (bits, bytes) = (format!("{number}{prefix}bit"), format!("{number}{prefix}bps"));
    let (of_bits, of_bytes) = (RATE.parse(&bits).ok()?, RATE.parse(&bytes).ok()?);
    Some(match counts {
        Counts::Bits if of_bits > 0 => format!("did you mean {}?", quote(&bits)),
        Counts::Bytes => format!("B means bytes, so that this is {}", quote(&RATE.display(of_bytes))),
        Counts::BitsUnlessTc => {
            format!("did you mean {}? ({} would be {}: {IN_TC})", quote(&bits), quote(&bytes), in_words(of_bytes))
        }
        Counts::Bits => return None,
    })
}

/// Notes about a rate in bytes per second; `None` for one in bits.
pub(crate) fn note(text: &str) -> Option<String> {
    let bits = RATE.parse(text).ok()?;
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let prefix = unit.to_ascii_lowercase().strip_suffix("bps")?.to_owned();
    let (number, written) = (shorten(number), in_words(bits));
    let meant = format!("\"{number}{prefix}bit\" for {number} {}bit/s", as_printed(&prefix));
    Some(format!("{} is {written}: {IN_TC}; write {meant}", quote(text)))
}

/// `80 Mbit/s`.
fn in_words(bits_per_second: u64) -> String {
    let text = RATE.display(bits_per_second);
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    format!("{number} {}bit/s", as_printed(unit.strip_suffix("bit").unwrap_or_default()))
}

/// A prefix of a unit as people write it: `M` and `Mi`, but `k`.
fn as_printed(prefix: &str) -> String {
    if prefix == "k" {
        return prefix.to_owned();
    }
    let mut letters = prefix.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// The prefix, in tc's letters, and what is counted.
fn read(unit: &str) -> Option<(String, Counts)> {
    let lower = unit.to_ascii_lowercase();
    let prefixes = ["ki", "mi", "gi", "ti", "k", "m", "g", "t", ""];
    prefixes.iter().find_map(|prefix| {
        let rest = lower.strip_prefix(prefix)?;
        let is_bytes = unit.get(prefix.len()..)?.starts_with('B');
        counts(rest, is_bytes, prefix.is_empty()).map(|counts| ((*prefix).to_owned(), counts))
    })
}

/// What is left of a unit after its prefix, in small letters.
fn counts(rest: &str, is_capital: bool, is_bare: bool) -> Option<Counts> {
    let what = ["/s", "/sec", "/second", "ps"].iter().find_map(|time| rest.strip_suffix(time)).unwrap_or(rest);
    match what {
        "" if rest.is_empty() && !is_bare => Some(Counts::Bits),
        "bit" | "bits" => Some(Counts::Bits),
        "byte" | "bytes" => Some(Counts::Bytes),
        "b" if is_capital => Some(Counts::Bytes),
        "b" if rest == "bps" => Some(Counts::BitsUnlessTc),
        "b" => Some(Counts::Bits),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_suggested_however_they_are_spelt() {
        for unit in
            [" Mb/s", "Mb", "mb", " MBit/s", "Mbits", " mbits/sec", "Mbit/second", " mbit", "M", " m", "mbitps", "mb/s"]
        {
            assert_eq!(suggest("10", unit).as_deref(), Some("did you mean \"10mbit\"?"), "{unit}");
        }
        assert_eq!(suggest("2.5", " Gb/s").as_deref(), Some("did you mean \"2.5gbit\"?"));
        assert_eq!(suggest("64", " Kib/s").as_deref(), Some("did you mean \"64kibit\"?"));
        assert_eq!(suggest("64000", " b/s").as_deref(), Some("did you mean \"64000bit\"?"));
    }

    /// A byte has eight bits; a KiB has 1024 bytes.
    #[test]
    fn bytes_are_converted_to_bits() {
        for unit in [" MB/s", "MB", " Mbyte/s", " MBytes/sec", " MBps", "mB"] {
            assert_eq!(suggest("10", unit).as_deref(), Some("B means bytes, so that this is \"80mbit\""), "{unit}");
        }
        assert_eq!(suggest("1", " KiB/s").as_deref(), Some("B means bytes, so that this is \"8192bit\""));
    }

    #[test]
    fn what_tc_and_people_read_differently_is_given_in_both_readings() {
        let message = "did you mean \"10mbit\"? (\"10mbps\" would be 80 Mbit/s: in tc's units bps is bytes per second)";
        assert_eq!(suggest("10", " Mbps").as_deref(), Some(message));
    }

    #[test]
    fn other_words_are_no_rate() {
        for unit in ["ms", "", " ", "s", "/s", "ps", "mps", "xb", "\u{b5}b", "i", "p", "m/s"] {
            assert_eq!(suggest("10", unit), None, "{unit}");
        }
    }

    #[test]
    fn a_rate_in_bytes_is_noted_with_both_readings() {
        for (text, message) in [
            ("1mbps", "\"1mbps\" is 8 Mbit/s: in tc's units bps is bytes per second; write \"1mbit\" for 1 Mbit/s"),
            (
                "1.5Mbps",
                "\"1.5Mbps\" is 12 Mbit/s: in tc's units bps is bytes per second; write \"1.5mbit\" for 1.5 Mbit/s",
            ),
            (
                "2KiBps",
                "\"2KiBps\" is 16384 bit/s: in tc's units bps is bytes per second; write \"2kibit\" for 2 Kibit/s",
            ),
            ("125bps", "\"125bps\" is 1 kbit/s: in tc's units bps is bytes per second; write \"125bit\" for 125 bit/s"),
        ] {
            assert_eq!(note(text).as_deref(), Some(message));
        }
        assert_eq!((note("10mbit"), note("10kibit"), note("fast")), (None, None, None));
    }
}
