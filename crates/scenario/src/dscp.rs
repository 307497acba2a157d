//! Differentiated services code points: the upper six bits of the IP header's traffic class (RFC 2474).

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use toml::Value;

use crate::error::show;
use crate::suggest::any_of;

/// The largest code point.
const MOST: u8 = 63;

/// The code points that have names, grouped by the documents that define them. If a number has several names, the most
/// usual one comes first. The names are those that ip(8) and tc(8) know, in lower case.
const NAMES: &[(&str, u8)] = &[
    // RFC 2474: the default, and the class selectors.
    ("be", 0),
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    // RFC 2597: assured forwarding, class and drop precedence.
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    // RFC 3246, RFC 5865, RFC 8622.
    ("ef", 46),
    ("va", 44),
    ("le", 1),
];

/// A code point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dscp(u8);

impl Dscp {
    pub(crate) fn get(self) -> u8 {
        self.0
    }

    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(name) => NAMES.iter().find(|(known, _)| known == name).map(|(_, number)| Self(*number)),
            Value::Integer(number) => u8::try_from(*number).ok().filter(|number| *number <= MOST).map(Self),
            _ => None,
        }
    }
}

impl Serialize for Dscp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match NAMES.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => serializer.serialize_str(name),
            None => serializer.serialize_u8(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Dscp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::read(&value).ok_or_else(|| {
            let allowed = any_of(NAMES.iter().map(|(name, _)| *name));
            de::Error::custom(format!("{}; allowed: {allowed}, or a number up to {MOST}", show(&value)))
        })
    }
}

impl JsonSchema for Dscp {
    fn schema_name() -> Cow<'static, str> {
        "Dscp".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        json_schema!({
            "anyOf": [{ "type": "string", "enum": names }, { "type": "integer", "minimum": 0, "maximum": MOST }],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 2597, section 6: AFxy is 8x + 2y. RFC 2474, section 4.2.2.1: CSx is 8x.
    #[test]
    fn names_have_the_numbers_of_the_documents() {
        let number = |name: &str| Dscp::read(&Value::from(name)).unwrap().get();
        for class in 0..8 {
            assert_eq!(number(&format!("cs{class}")), 8 * class);
        }
        for (class, precedence) in (1..=4).flat_map(|class| (1..=3).map(move |precedence| (class, precedence))) {
            assert_eq!(number(&format!("af{class}{precedence}")), 8 * class + 2 * precedence);
        }
        assert_eq!(["be", "le", "va", "ef"].map(number), [0, 0b000_001, 0b101_100, 0b101_110]);
    }

    #[test]
    fn a_number_is_read_as_it_is_written() {
        for number in 0..=MOST {
            let written = Value::try_from(Dscp(number)).unwrap();
            assert_eq!(written.try_into::<Dscp>().unwrap(), Dscp(number));
        }
        assert_eq!(Value::try_from(Dscp(0)).unwrap().as_str(), Some("be"), "by its most usual name");
        assert!(
            [Value::from(64), Value::from(-1), Value::from("EF"), Value::from(0.0)]
                .iter()
                .all(|v| Dscp::read(v).is_none())
        );
    }
}
