//! How data is sent over TCP: the congestion control, and the keys that only some controls have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::congestion::Congestion;
use crate::error::{Problem, Problems};
use crate::path::join;
use crate::quantity::{Packets, Quantity, Times};
use crate::units::MS;

/// A congestion window that never changes.
pub(crate) type FixedWindow = Quantity<Packets, 1, 1_000_000>;
/// A queueing delay to aim at; RFC 6817, section 2.5, allows no more.
pub(crate) type DelayTarget = Quantity<Times, MS, { 100 * MS }>;

/// How the data of a TCP connection is sent.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Number of packets in flight. Only for the congestion control `window`, which requires it.
    #[schemars(example = &"40p")]
    pub(crate) window: Option<FixedWindow>,
    /// Target queueing delay of `ledbat` and `ledbat++`. Default: 100ms for `ledbat`, 60ms for `ledbat++`.
    #[schemars(example = &"60ms")]
    pub(crate) target: Option<DelayTarget>,
    /// Negotiate and use ECN (RFC 3168).
    #[serde(default)]
    pub(crate) ecn: bool,
    /// Pace packets even if the congestion control does not ask for it, as Linux does for a socket with
    /// `SO_MAX_PACING_RATE`.
    #[serde(default)]
    pub(crate) pacing: bool,
}

/// How the data of a TCP connection is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sending {
    /// The congestion control of the host that sends the data.
    pub congestion: Congestion,
    /// The window of the congestion control `window`; `None` for all others.
    pub window_packets: Option<u32>,
    /// The queueing delay that `ledbat` or `ledbat++` aims at; `None` for all others.
    pub target_ns: Option<u64>,
    /// Negotiate and use ECN (RFC 3168).
    pub ecn: bool,
    /// Pace packets even where the congestion control does not require it.
    pub pacing: bool,
}

impl Sending {
    /// The keys of the traffic at `path`.
    pub(crate) fn resolve(congestion: Congestion, keys: &Keys, path: &str, problems: &mut Problems) -> Self {
        check_window(congestion, keys, path, problems);
        check_target(congestion, keys, path, problems);
        Self {
            congestion,
            window_packets: keys.window.map(|window| window.get_u32()),
            target_ns: congestion
                .default_target_ns()
                .map(|default_ns| keys.target.map_or(default_ns, |target| target.get())),
            ecn: keys.ecn,
            pacing: keys.pacing,
        }
    }

    /// Any way to send.
    #[cfg(feature = "testing")]
    pub(crate) fn any() -> impl proptest::strategy::Strategy<Value = Self> {
        use proptest::prelude::*;
        (proptest::sample::select(Congestion::ALL), 1..=100_u32, 1..=100_u64, any::<bool>(), any::<bool>()).prop_map(
            |(congestion, window_packets, target_ms, ecn, pacing)| Self {
                congestion,
                window_packets: (congestion == Congestion::Window).then_some(window_packets),
                target_ns: congestion.default_target_ns().map(|_| target_ms * MS),
                ecn,
                pacing,
            },
        )
    }

    /// Its keys as they are written in an experiment file.
    #[cfg(feature = "testing")]
    pub(crate) fn written(&self) -> Vec<(&'static str, toml::Value)> {
        use crate::testing::text::{packets, time};
        let mut keys = vec![
            ("congestion", self.congestion.name().into()),
            ("ecn", self.ecn.into()),
            ("pacing", self.pacing.into()),
        ];
        keys.extend(self.window_packets.map(|window| ("window", packets(window))));
        keys.extend(self.target_ns.map(|target_ns| ("target", time(target_ns))));
        keys
    }
}

fn check_window(congestion: Congestion, keys: &Keys, path: &str, problems: &mut Problems) {
    let is_fixed = congestion == Congestion::Window;
    match keys.window {
        Some(window) if !is_fixed => {
            let found = format!("{window} with congestion = \"{}\"", congestion.name());
            problems
                .add(|| Problem::new(join(path, "window"), found, "no such key (only congestion = \"window\" has it)"));
        }
        None if is_fixed => {
            let required = "the packets in flight, such as 40p, which congestion = \"window\" needs";
            problems.add(|| Problem::missing(join(path, "window"), required));
        }
        _ => {}
    }
}

fn check_target(congestion: Congestion, keys: &Keys, path: &str, problems: &mut Problems) {
    if let (Some(target), None) = (keys.target, congestion.default_target_ns()) {
        let found = format!("{target} with congestion = \"{}\"", congestion.name());
        problems.add(|| {
            Problem::new(
                join(path, "target"),
                found,
                "no such key (only congestion = \"ledbat\" or \"ledbat++\" has it)",
            )
        });
    }
}
