//! `[[traffic]]` for a load test of Flent (formerly netperf-wrapper): the loader makes several entries of it.
//!
//! Source: `flent/tests/rrul.conf`, `rrul_be.conf`, `tcp_bidirectional.conf`, `tcp_ndown.conf` and `tcp_nup.conf` of Flent 2,
//! and the defaults of its options `--delay` and `--step-size`.
//!
//! Departures: Flent's downloads begin when netperf's server connects back; here each flow is opened by the host that sends
//! its data. Flent's probes over UDP are those of `irtt` (which it prefers to netperf's `UDP_RR`).

use schemars::JsonSchema;
use serde::Deserialize;

use super::streams::Sending;
use super::traffic::Placement;
use super::{Interval, Moment, defaults};
use crate::congestion::Congestion;

/// A test that loads a path with TCP between `from`, the client, and `to`, and probes it meanwhile.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct LoadTest {
    #[serde(flatten)]
    pub(crate) placement: Placement,
    /// How much later than the probes the TCP flows start, and how much earlier they stop.
    #[serde(default = "defaults::load_delay")]
    pub(crate) delay: Moment,
    /// Time between two probes of each kind.
    #[serde(default = "defaults::load_interval")]
    pub(crate) interval: Interval,
    /// Congestion control of the TCP flows. Default: that of the host that sends.
    pub(crate) congestion: Option<Congestion>,
    #[serde(flatten)]
    pub(crate) sending: Sending,
}

/// Such a test with TCP flows in one direction.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Streams {
    #[serde(flatten)]
    pub(crate) test: LoadTest,
    /// Number of TCP flows.
    #[serde(default = "defaults::flows")]
    #[schemars(range(min = 0, max = 10_000))]
    pub(crate) flows: u32,
}
