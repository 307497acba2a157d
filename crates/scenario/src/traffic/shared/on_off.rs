//! Sending and pausing alternately.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Problem, Problems};
use crate::file::Interval;
use crate::path::join;

/// When a source is on and when it is off.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// How long a flow sends (with `tcp`, how long its application writes) before it pauses. Default: it never pauses.
    #[schemars(example = &"1s")]
    pub(crate) on: Option<Interval>,
    /// How long it pauses before it sends again. With `tcp`, the connection stays open.
    #[schemars(example = &"2s")]
    pub(crate) off: Option<Interval>,
    /// Whether all periods have these lengths, or are exponentially distributed with these means. Default: fixed.
    #[schemars(example = &"exponential")]
    pub(crate) periods: Option<Periods>,
}

/// A flow that is on and off alternately, beginning with on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OnOff {
    /// Length of the on periods; their mean length, if the lengths differ.
    pub on_ns: u64,
    /// Length of the off periods; their mean length, if the lengths differ.
    pub off_ns: u64,
    /// Whether the lengths differ.
    pub periods: Periods,
}

/// How long the periods of an on/off flow are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Periods {
    /// All the same.
    #[default]
    Fixed,
    /// Exponentially distributed, each flow on its own.
    Exponential,
}

impl OnOff {
    /// The periods of the traffic at `path`. Requires both lengths or none: if there is only one, the other was probably
    /// forgotten.
    pub(crate) fn resolve(keys: &Keys, path: &str, problems: &mut Problems) -> Option<Self> {
        let &Keys { on, off, periods } = keys;
        match (on, off) {
            (Some(on), Some(off)) => {
                return Some(Self { on_ns: on.get(), off_ns: off.get(), periods: periods.unwrap_or_default() });
            }
            (Some(on), None) => missing("off", "how long it pauses", "on", on, path, problems),
            (None, Some(off)) => missing("on", "how long it sends before it pauses", "off", off, path, problems),
            (None, None) if periods.is_some() => {
                let allowed = "no such key (only traffic with on and off has periods)";
                problems.add(|| Problem::new(join(path, "periods"), "periods of traffic that never pauses", allowed));
            }
            (None, None) => {}
        }
        None
    }

    /// Any periods.
    #[cfg(feature = "testing")]
    pub(crate) fn any() -> impl proptest::strategy::Strategy<Value = Self> {
        use proptest::prelude::*;

        use crate::units::MS;
        (1..=500_u64, 1..=500_u64, any::<bool>()).prop_map(|(on_ms, off_ms, random)| Self {
            on_ns: on_ms * MS,
            off_ns: off_ms * MS,
            periods: if random { Periods::Exponential } else { Periods::Fixed },
        })
    }

    /// Its keys as they are written in an experiment file.
    #[cfg(feature = "testing")]
    pub(crate) fn written(self) -> [(&'static str, toml::Value); 3] {
        use crate::testing::text::time;
        let periods = match self.periods {
            Periods::Fixed => "fixed",
            Periods::Exponential => "exponential",
        };
        [("on", time(self.on_ns)), ("off", time(self.off_ns)), ("periods", periods.into())]
    }
}

fn missing(key: &str, meaning: &str, given: &str, value: Interval, path: &str, problems: &mut Problems) {
    let required = format!("{meaning}, such as 1s, which {given} = {value} needs");
    problems.add(|| Problem::missing(join(path, key), required));
}
