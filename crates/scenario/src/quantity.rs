//! A number with a unit and bounds, as a type. What a key accepts is stated only once, where the key is declared.
//!
//! The structs of the file layer have fields of type [`Quantity`]. [`Bounds`] holds the same information as a value,
//! for the checker that compares a document with the schema.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value as Json;
use toml::Value;

use crate::error::show;
use crate::units::{self, Dimension, UnitError};

/// Key of a schema node that says which [`Bounds`] it has.
pub(crate) const SCHEMA_KEY: &str = "x-quantity";

/// A quantity of dimension `D` between `MIN` and `MAX` base units (bits a second, nanoseconds, bytes, packets),
/// inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quantity<D, const MIN: u64, const MAX: u64> {
    value: u64,
    dimension: PhantomData<D>,
}

/// A dimension as a type.
pub(crate) trait Measure {
    const DIMENSION: &'static Dimension;
}

macro_rules! measures {
    ($($name:ident = $dimension:ident),*) => {$(
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct $name;

        impl Measure for $name {
            const DIMENSION: &'static Dimension = &units::$dimension;
        }
    )*};
}

measures!(Rates = RATE, Times = TIME, Sizes = SIZE, Packets = PACKETS, QueueLengths = QUEUE_LENGTH);

/// What a quantity's key accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) dimension: &'static Dimension,
    pub(crate) min: u64,
    pub(crate) max: u64,
}

/// A value that [`Bounds`] refuse.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) found: String,
    /// What the user can do about it.
    pub(crate) hint: Option<String>,
}

impl<D: Measure, const MIN: u64, const MAX: u64> Quantity<D, MIN, MAX> {
    /// The largest value.
    pub(crate) const MOST: u64 = MAX;
    const BOUNDS: Bounds = Bounds { dimension: D::DIMENSION, min: MIN, max: MAX };

    /// A value known to be within bounds: a default.
    pub(crate) const fn new(value: u64) -> Self {
        assert!(MIN <= value && value <= MAX);
        Self { value, dimension: PhantomData }
    }

    /// In base units.
    pub(crate) const fn get(self) -> u64 {
        self.value
    }

    /// In base units.
    pub(crate) const fn get_u32(self) -> u32 {
        const { assert!(MAX <= u32::MAX as u64) };
        self.value as u32
    }
}

impl Bounds {
    /// The quantity in base units, if `value` is one and within bounds.
    pub(crate) fn read(&self, value: &Value) -> Result<u64, Refusal> {
        let number = match value {
            Value::String(text) => self.dimension.parse(text).map_err(|error| self.refuse_text(text, &error))?,
            Value::Integer(number) if self.dimension.bare => {
                u64::try_from(*number).map_err(|_| Refusal { found: show(value), hint: None })?
            }
            _ => return Err(Refusal { found: show(value), hint: None }),
        };
        if self.contains(number) { Ok(number) } else { Err(Refusal { found: show(value), hint: None }) }
    }

    /// What the user should know about a value that can be read.
    pub(crate) fn note(&self, value: &Value) -> Option<String> {
        value.as_str().and_then(|text| self.dimension.note(text))
    }

    /// What is allowed, in words.
    pub(crate) fn describe(&self) -> String {
        let Dimension { noun, example, bare, .. } = self.dimension;
        let (min, max) = (self.dimension.display(self.min), self.dimension.display(self.max));
        let is_possible = self.dimension.parse(example).is_ok_and(|value| self.contains(value));
        let such_as = if is_possible { format!(", such as {example}") } else { String::new() };
        let (units, bare) = (self.dimension.usual_units(), if *bare { ", or none" } else { "" });
        format!("{noun} from {min} to {max}{such_as} (units: {units}{bare})")
    }

    fn contains(&self, value: u64) -> bool {
        (self.min..=self.max).contains(&value)
    }

    fn refuse_text(&self, text: &str, error: &UnitError) -> Refusal {
        let hint = match error {
            UnitError::UnknownUnit { number, unit } => self.dimension.suggest(number, unit),
            _ => None,
        };
        let found = format!("{} ({error})", crate::error::quote(text));
        Refusal { found, hint }
    }

    fn to_schema(self) -> Schema {
        let Self { dimension, min, max } = self;
        let quantity = json_schema!({
            "type": "string",
            "pattern": dimension.pattern(),
            SCHEMA_KEY: { "of": dimension.name, "from": dimension.display(min), "to": dimension.display(max) },
        });
        if !dimension.bare {
            return quantity;
        }
        let mut either = quantity;
        either.insert("type".to_owned(), Json::from(vec!["string", "integer"]));
        either.insert("minimum".to_owned(), Json::from(min));
        either.insert("maximum".to_owned(), Json::from(max));
        either
    }

    /// The inverse of [`Bounds::to_schema`].
    pub(crate) fn from_schema(node: &Json) -> Option<Self> {
        let text = |key: &str| node.get(SCHEMA_KEY)?.get(key)?.as_str();
        let name = text("of")?;
        let dimension = *units::DIMENSIONS.iter().find(|d| d.name == name)?;
        Some(Self { dimension, min: dimension.parse(text("from")?).ok()?, max: dimension.parse(text("to")?).ok()? })
    }
}

impl<D: Measure, const MIN: u64, const MAX: u64> fmt::Display for Quantity<D, MIN, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&D::DIMENSION.display(self.value))
    }
}

impl<D: Measure, const MIN: u64, const MAX: u64> Serialize for Quantity<D, MIN, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, D: Measure, const MIN: u64, const MAX: u64> Deserialize<'de> for Quantity<D, MIN, MAX> {
    fn deserialize<T: Deserializer<'de>>(deserializer: T) -> Result<Self, T::Error> {
        let found = Value::deserialize(deserializer)?;
        match Self::BOUNDS.read(&found) {
            Ok(value) => Ok(Self { value, dimension: PhantomData }),
            Err(refusal) => {
                Err(de::Error::invalid_value(de::Unexpected::Other(&refusal.found), &Self::BOUNDS.describe().as_str()))
            }
        }
    }
}

impl<D: Measure, const MIN: u64, const MAX: u64> JsonSchema for Quantity<D, MIN, MAX> {
    fn schema_name() -> Cow<'static, str> {
        D::DIMENSION.name.into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Self::BOUNDS.to_schema()
    }
}
