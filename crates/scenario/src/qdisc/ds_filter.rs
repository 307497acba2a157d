//! A choice of packets by the byte of the IP header that has the code point and the ECN field (RFC 2474, RFC 3168), as
//! `tc` writes it: `VALUE/MASK`.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::text::TextRule;

/// Packets whose byte has this value in the bits of the mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DsFilter {
    /// The value.
    pub value: u8,
    /// Which bits are compared. If none are, every packet matches.
    pub mask: u8,
}

impl DsFilter {
    /// What [`read`](Self::read) accepts, as a regular expression.
    pub(crate) const PATTERN: &str = "^(0x[0-9a-fA-F]{1,2}|25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\
        /(0x[0-9a-fA-F]{1,2}|25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$";

    /// Whether a packet with this byte matches.
    #[inline]
    pub fn passes(self, byte: u8) -> bool {
        self.mask == 0 || byte & self.mask == self.value
    }

    /// A number is decimal, without leading zeros, or hexadecimal.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (value, mask) = text.split_once('/')?;
        Some(Self { value: read_byte(value)?, mask: read_byte(mask)? })
    }
}

fn read_byte(text: &str) -> Option<u8> {
    match text.strip_prefix("0x") {
        Some(digits) => {
            let is_byte = digits.len() <= 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            is_byte.then(|| u8::from_str_radix(digits, 16).ok())?
        }
        None => text.parse().ok().filter(|byte: &u8| byte.to_string() == text),
    }
}

impl fmt::Display for DsFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#04x}/{:#04x}", self.value, self.mask)
    }
}

impl Serialize for DsFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DsFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::read(&text).ok_or_else(|| de::Error::custom(TextRule::DsFilter.describe()))
    }
}

impl JsonSchema for DsFilter {
    fn schema_name() -> Cow<'static, str> {
        "DsFilter".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        TextRule::DsFilter.to_schema()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_read_as_it_is_written() {
        for filter in [(0, 0), (1, 3), (0xb8, 0xfc), (255, 255)].map(|(value, mask)| DsFilter { value, mask }) {
            assert_eq!(DsFilter::read(&filter.to_string()), Some(filter));
        }
        assert_eq!(DsFilter::read("1/0x3"), Some(DsFilter { value: 1, mask: 3 }));
        for wrong in ["", "1", "1/", "/3", "1/256", "0x/0x3", "-1/3", "+1/3", "0x+1/3", "1/3/5", "a/3", "1 /3", "010/3"]
        {
            assert_eq!(DsFilter::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_bits_of_the_mask_decide() {
        let l4s = DsFilter { value: 0b01, mask: 0b11 };
        assert!(l4s.passes(0b01) && l4s.passes(0xb9) && !l4s.passes(0b10) && !l4s.passes(0b11));
        assert!(DsFilter { value: 7, mask: 0 }.passes(0));
        assert!(!DsFilter { value: 0b111, mask: 0b11 }.passes(0b11), "a value outside the mask");
    }
}
