//! Variable rates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::trace::Trace;

/// How a wire's rate varies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "RateVariation")]
pub enum Variation {
    /// Delivery opportunities.
    Trace {
        /// The file's name as the experiment has it.
        file: String,
        /// Its delivery opportunities.
        opportunities: Trace,
    },
    /// A random walk.
    Walk(Walk),
}

/// A rate that is constant for `every_ns`. Its logarithm is a normal process with an exponential autocorrelation. There may be
/// outages, which come and go independently of that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Walk {
    /// The preset that has these parameters, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<Cellular>,
    /// Mean in bits per second, before the bound.
    pub mean_bps: u64,
    /// Standard deviation in bits per second, before the bound.
    pub deviation_bps: u64,
    /// Time after which the logarithm's autocorrelation is 1/e.
    pub coherence_ns: u64,
    /// Time between two changes.
    pub every_ns: u64,
    /// The rate is never above this.
    pub max_bps: u64,
    /// Times during which nothing is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outages: Option<Outages>,
}

/// Outages whose intervals and lengths are exponentially distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outages {
    /// Mean time from the end of one to the beginning of the next.
    pub every_ns: u64,
    /// Mean length.
    pub lasts_ns: u64,
}

/// Walks with the statistics of cellular links that were measured for "Stochastic Forecasts Achieve High Throughput and Low Delay over
/// Cellular Networks" (Winstein, Sivaraman, Balakrishnan, NSDI 2013), while driving. `scripts/presets.py` computes the
/// statistics from the published traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cellular {
    /// To the phone over 3G (CDMA2000 1xEV-DO, Verizon).
    EvdoDown,
    /// From the phone over 3G (CDMA2000 1xEV-DO, Verizon).
    EvdoUp,
    /// To the phone over 3G (UMTS, T-Mobile).
    UmtsDown,
    /// From the phone over 3G (UMTS, T-Mobile).
    UmtsUp,
    /// To the phone over LTE (Verizon).
    LteDown,
    /// From the phone over LTE (Verizon).
    LteUp,
}

impl Cellular {
    /// Its walk. In kbit/s: mean, standard deviation and maximum of the rates of whole seconds without outages. In
    /// tenths of seconds: coherence. In centiseconds: mean interval between outages, and their mean length. An outage
    /// is a silence of a second or longer.
    pub fn walk(self) -> Walk {
        let (mean, deviation, max, coherence, outages) = match self {
            Self::EvdoDown => (576, 459, 3012, 66, Some((2209, 205))),
            Self::EvdoUp => (891, 302, 1776, 34, Some((4608, 231))),
            Self::UmtsDown => (2207, 1536, 7092, 87, Some((2707, 195))),
            Self::UmtsUp => (1008, 381, 1476, 105, Some((3829, 220))),
            Self::LteDown => (5090, 3185, 16_776, 55, None),
            Self::LteUp => (6051, 3058, 12_948, 39, None),
        };
        const BPS: u64 = 1000;
        Walk {
            preset: Some(self),
            mean_bps: mean * BPS,
            deviation_bps: deviation * BPS,
            coherence_ns: coherence * 100_000_000,
            every_ns: 100_000_000,
            max_bps: max * BPS,
            outages: outages
                .map(|(every, lasts)| Outages { every_ns: every * 10_000_000, lasts_ns: lasts * 10_000_000 }),
        }
    }
}

impl Variation {
    /// The mean rate in bits per second, outages left out.
    pub fn mean_bps(&self) -> u64 {
        match self {
            Self::Trace { opportunities, .. } => opportunities.mean_bps(),
            Self::Walk(walk) => walk.mean_bps,
        }
    }

    /// The highest rate in bits per second; of a trace, that of a whole second.
    pub fn fastest_bps(&self) -> u64 {
        match self {
            Self::Trace { opportunities, .. } => opportunities.fastest_bps(),
            Self::Walk(walk) => walk.max_bps,
        }
    }
}
