//! How datagrams or look-ups follow one another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The intervals between successive datagrams or look-ups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Equal intervals.
    #[default]
    Constant,
    /// Exponentially distributed intervals: a Poisson process.
    Poisson,
}

impl Pattern {
    /// Any pattern.
    #[cfg(feature = "testing")]
    pub(crate) fn any() -> impl proptest::strategy::Strategy<Value = Self> {
        proptest::sample::select(vec![Self::Constant, Self::Poisson])
    }

    /// Its name in an experiment file.
    #[cfg(feature = "testing")]
    pub(crate) fn written(self) -> toml::Value {
        toml::Value::from(match self {
            Self::Constant => "constant",
            Self::Poisson => "poisson",
        })
    }
}
