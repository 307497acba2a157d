//! Quantities as `tc` writes them: `10mbit`, `5ms`, `150kb`, `100p` (tc(8), section UNITS).
//!
//! Units are known in this module only. Arithmetic is exact: a quantity that is not a whole number of the base unit
//! (bits per second, nanoseconds, bytes, packets) is refused instead of rounded, and so is one that overflows.
//! Departures from tc, which reads with `strtod`: no sign, no exponent, and a rate or time needs its unit (tc reads a
//! bare `10` as 10 bits a second, or 10 µs, which is rarely meant).

mod rates;

use std::fmt::{self, Write as _};

use crate::error::quote;
use crate::suggest::{closest, did_you_mean};

/// Nanoseconds in a microsecond, millisecond, second and hour.
pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000 * US;
pub(crate) const SECOND: u64 = 1_000 * MS;
pub(crate) const MINUTE: u64 = 60 * SECOND;
pub(crate) const HOUR: u64 = 60 * MINUTE;
/// Bytes in tc's `kb`, `mb` and `gb`: powers of 1024, unlike rates.
pub(crate) const KB: u64 = 1 << 10;
pub(crate) const MB: u64 = 1 << 20;
pub(crate) const GB: u64 = 1 << 30;

/// A kind of quantity: what it is called and which units it takes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dimension {
    /// Name in the schema.
    pub(crate) name: &'static str,
    /// With its article, for messages.
    pub(crate) noun: &'static str,
    /// The base unit, in words.
    pub(crate) base: &'static str,
    /// A typical value.
    pub(crate) example: &'static str,
    /// How zero is written.
    pub(crate) zero: &'static str,
    /// Whether a number without a unit is allowed. It is then in the base unit.
    pub(crate) bare: bool,
    /// Unit and its size in base units, smallest first. Case does not matter.
    units: &'static [(&'static str, u64)],
    /// The units used for display, smallest first.
    display: &'static [&'static str],
}

/// Rates in bits a second; `kbps` are kilo*bytes* a second, as in tc.
pub(crate) static RATE: Dimension = Dimension {
    name: "rate",
    noun: "a rate",
    base: "bits a second",
    example: "10mbit",
    zero: "0bit",
    bare: false,
    units: &[
        ("bit", 1),
        ("kbit", 1_000),
        ("mbit", 1_000_000),
        ("gbit", 1_000_000_000),
        ("tbit", 1_000_000_000_000),
        ("kibit", 1 << 10),
        ("mibit", 1 << 20),
        ("gibit", 1 << 30),
        ("tibit", 1 << 40),
        ("bps", 8),
        ("kbps", 8_000),
        ("mbps", 8_000_000),
        ("gbps", 8_000_000_000),
        ("tbps", 8_000_000_000_000),
        ("kibps", 8 << 10),
        ("mibps", 8 << 20),
        ("gibps", 8 << 30),
        ("tibps", 8 << 40),
    ],
    display: &["bit", "kbit", "mbit", "gbit", "tbit"],
};

/// Times in nanoseconds.
pub(crate) static TIME: Dimension = Dimension {
    name: "time",
    noun: "a time",
    base: "nanoseconds",
    example: "5ms",
    zero: "0s",
    bare: false,
    units: &[
        ("ns", 1),
        ("nsec", 1),
        ("nsecs", 1),
        ("us", US),
        ("usec", US),
        ("usecs", US),
        ("ms", MS),
        ("msec", MS),
        ("msecs", MS),
        ("s", SECOND),
        ("sec", SECOND),
        ("secs", SECOND),
    ],
    display: &["ns", "us", "ms", "s"],
};

/// Sizes in bytes; `kb` is 1024 bytes and `kbit` 1024 bits, as in tc.
pub(crate) static SIZE: Dimension = Dimension {
    name: "size",
    noun: "a size in bytes",
    base: "bytes",
    example: "150kb",
    zero: "0b",
    bare: true,
    units: &[
        ("b", 1),
        ("k", KB),
        ("kb", KB),
        ("m", MB),
        ("mb", MB),
        ("g", GB),
        ("gb", GB),
        ("kbit", KB / 8),
        ("mbit", MB / 8),
        ("gbit", GB / 8),
    ],
    display: &["b", "kb", "mb", "gb"],
};

/// Numbers of packets.
pub(crate) static PACKETS: Dimension = Dimension {
    name: "packets",
    noun: "a number of packets",
    base: "packets",
    example: "100p",
    zero: "0p",
    bare: true,
    units: &[("p", 1)],
    display: &["p"],
};

/// Numbers of packets where a time is also possible, so that the unit cannot be left out.
pub(crate) static QUEUE_LENGTH: Dimension = Dimension {
    name: "queue length",
    noun: "a number of packets",
    base: "packets",
    example: "5p",
    zero: "0p",
    bare: false,
    units: &[("p", 1), ("pkt", 1), ("pkts", 1), ("packet", 1), ("packets", 1)],
    display: &["p"],
};

/// Every dimension, for looking one up by name.
pub(crate) static DIMENSIONS: [&Dimension; 5] = [&RATE, &TIME, &SIZE, &PACKETS, &QUEUE_LENGTH];

/// Why a string is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnitError {
    NotANumber,
    Negative,
    NoUnit,
    UnknownUnit { number: String, unit: String },
    NotWhole,
    TooLarge,
}

impl Dimension {
    /// The quantity in `text`, in base units.
    pub(crate) fn parse(&self, text: &str) -> Result<u64, UnitError> {
        if text.starts_with('-') {
            return Err(UnitError::Negative);
        }
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let decimal = Decimal::parse(number)?;
        let scale = self.scale(unit).ok_or_else(|| match unit {
            "" => UnitError::NoUnit,
            _ => UnitError::UnknownUnit { number: number.to_owned(), unit: unit.to_owned() },
        })?;
        decimal.times(scale)
    }

    /// `value` in the largest unit that gives a whole number; [`Dimension::parse`] reads it back.
    pub(crate) fn display(&self, value: u64) -> String {
        if value == 0 {
            return self.zero.to_owned();
        }
        let scales = self.display.iter().rev().filter_map(|unit| Some((unit, self.scale(unit)?)));
        let fitting = scales.into_iter().find(|(_, scale)| value.checked_rem(*scale) == Some(0));
        fitting.map_or_else(|| value.to_string(), |(unit, scale)| format!("{}{unit}", value / scale))
    }

    /// The usual units in words.
    pub(crate) fn usual_units(&self) -> String {
        let more = if self.units.len() > self.display.len() { " ..." } else { "" };
        format!("{}{more}", self.display.join(" "))
    }

    /// The units' names.
    pub(crate) fn unit_names(&self) -> impl Iterator<Item = &'static str> {
        self.units.iter().map(|(name, _)| *name)
    }

    /// A regular expression (ECMA-262, as JSON Schema requires) for the texts that [`Dimension::parse`] reads. It does
    /// not check that the value is in range and a whole number.
    pub(crate) fn pattern(&self) -> String {
        let mut units = String::new();
        for name in self.unit_names() {
            let separator = if units.is_empty() { "" } else { "|" };
            units.push_str(separator);
            for letter in name.chars() {
                let _ = write!(units, "[{}{}]", letter, letter.to_ascii_uppercase());
            }
        }
        let optional = if self.bare { "?" } else { "" };
        format!("^[0-9]+(\\.[0-9]+)?({units}){optional}$")
    }

    /// What to write instead of `number` with an unknown unit, if that can be guessed.
    pub(crate) fn suggest(&self, number: &str, unit: &str) -> Option<String> {
        if self.name == RATE.name
            && let Some(hint) = rates::suggest(number, unit)
        {
            return Some(hint);
        }
        // A misspelled rate never means bytes.
        let units = self.unit_names().filter(|unit| !unit.ends_with("bps"));
        closest(unit.trim(), units).map(|unit| did_you_mean(&quote(&format!("{number}{unit}"))))
    }

    /// A note about `text` if it is a valid quantity of this kind, but was perhaps meant to be another quantity.
    pub(crate) fn note(&self, text: &str) -> Option<String> {
        if self.name == RATE.name { rates::note(text) } else { None }
    }

    fn scale(&self, unit: &str) -> Option<u64> {
        if unit.is_empty() && self.bare {
            return Some(1);
        }
        self.units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, scale)| *scale)
    }
}

/// `digits / 10^places`, exactly.
struct Decimal {
    digits: u128,
    places: u32,
}

impl Decimal {
    fn parse(text: &str) -> Result<Self, UnitError> {
        let (whole, fraction) = match text.split_once('.') {
            Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
            Some(_) => return Err(UnitError::NotANumber),
            None => (text, ""),
        };
        if whole.is_empty() || fraction.contains('.') {
            return Err(UnitError::NotANumber);
        }
        let fraction = fraction.trim_end_matches('0');
        let mut digits: u128 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            let next = digits.checked_mul(10).and_then(|d| d.checked_add(u128::from(digit - b'0')));
            digits = next.ok_or(UnitError::TooLarge)?;
        }
        let places = u32::try_from(fraction.len()).map_err(|_| UnitError::TooLarge)?;
        Ok(Self { digits, places })
    }

    fn times(&self, scale: u64) -> Result<u64, UnitError> {
        let scaled = self.digits.checked_mul(u128::from(scale)).ok_or(UnitError::TooLarge)?;
        // 39 decimal places or more are beyond `u128`, and beyond any use.
        let divisor = 10u128.checked_pow(self.places).ok_or(UnitError::NotWhole)?;
        if scaled % divisor != 0 {
            return Err(UnitError::NotWhole);
        }
        u64::try_from(scaled / divisor).map_err(|_| UnitError::TooLarge)
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber => f.write_str("not a number with a unit"),
            Self::Negative => f.write_str("negative"),
            Self::NoUnit => f.write_str("no unit"),
            Self::UnknownUnit { unit, .. } => write!(f, "unknown unit {}", quote(unit)),
            Self::NotWhole => f.write_str("not a whole number of the smallest unit"),
            Self::TooLarge => f.write_str("too large"),
        }
    }
}

#[cfg(test)]
mod tests;
