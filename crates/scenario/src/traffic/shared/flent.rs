//! The load tests of Flent (formerly netperf-wrapper), and the parts of which they consist.
//!
//! Source: `flent/tests/rrul.conf`, `rrul_be.conf`, `tcp_bidirectional.conf`, `tcp_ndown.conf` and `tcp_nup.conf` of Flent 2,
//! and the defaults of its options `--delay` and `--step-size`.
//!
//! Departures: Flent's downloads begin when netperf's server connects back; here each flow is opened by the host that sends
//! its data. Flent's probes over UDP are those of `irtt` (which it prefers to netperf's `UDP_RR`).

use schemars::JsonSchema;
use serde::Deserialize;

use super::keys::Placement;
use super::sending;
use crate::congestion::Congestion;
use crate::error::{Problem, Problems};
use crate::file::{Interval, Moment};
use crate::path::join;
use crate::traffic::{Entry, EntryPart, IrttTraffic, PingTraffic, Sending, TcpTraffic, TrafficKind};
use crate::units::{MS, SECOND, TIME};

/// Keys of every test.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(crate) struct LoadKeys {
    #[serde(flatten)]
    pub(crate) placement: Placement,
    /// How much later than the probes the TCP flows start, and how much earlier they stop.
    #[serde(default = "delay")]
    delay: Moment,
    /// Time between two probes of each kind.
    #[serde(default = "interval")]
    interval: Interval,
    /// Congestion control of the TCP flows. Default: that of the host that sends.
    congestion: Option<Congestion>,
    #[serde(flatten)]
    sending: sending::Keys,
}

/// Flent's `--delay`.
fn delay() -> Moment {
    Moment::new(5 * SECOND)
}

/// Flent's `--step-size`.
fn interval() -> Interval {
    Interval::new(200 * MS)
}

/// Best effort.
pub(crate) const BE: u8 = 0;
/// Background: CS1.
pub(crate) const BK: u8 = 8;
/// CS5.
pub(crate) const CS5: u8 = 40;
/// EF.
pub(crate) const EF: u8 = 46;

/// Names and marks of flows or probes.
pub(crate) type Marks = [(&'static str, u8)];

/// The direction of a test's TCP flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// From the client `from` to the server `to`.
    Up,
    /// From the server to the client.
    Down,
}

/// Makes the parts of a test from its keys.
#[derive(Debug)]
pub(crate) struct Maker<'a> {
    keys: &'a LoadKeys,
    /// The congestion control of uploads and of downloads.
    congestions: [Congestion; 2],
    path: &'a str,
}

impl<'a> Maker<'a> {
    /// For the entry with these keys. Some time must be left for the TCP flows.
    pub(crate) fn new(keys: &'a LoadKeys, entry: &Entry<'a>, problems: &mut Problems) -> Self {
        let length_ns = entry.stop_ns.saturating_sub(keys.placement.start.get());
        if length_ns > 0 && keys.delay.get().saturating_mul(2) >= length_ns {
            let found = format!("{} at both ends of {}", keys.delay, TIME.display(length_ns));
            let allowed = "less than half of the time between start and stop, so that the TCP flows have some time";
            problems.add(|| Problem::new(join(entry.path, "delay"), found, allowed));
        }
        let congestions = entry.hosts.map(|host| keys.congestion.unwrap_or(host.congestion));
        Self { keys, congestions, path: entry.path }
    }

    /// A flow in each direction with each of the marks of `tcp`, probes over UDP with those of `udp`, and a ping.
    pub(crate) fn rrul(&self, tcp: &Marks, udp: &Marks, problems: &mut Problems) -> Vec<EntryPart> {
        let mut parts = Vec::new();
        for load in [Load::Up, Load::Down] {
            for (name, dscp) in tcp {
                parts.push(self.tcp(load, Some(name), *dscp, 1, problems));
            }
        }
        parts.extend(udp.iter().map(|(name, dscp)| self.irtt(name, *dscp)));
        parts.push(self.ping());
        parts
    }

    /// TCP flows.
    pub(crate) fn tcp(
        &self,
        load: Load,
        name: Option<&str>,
        dscp: u8,
        flows: u32,
        problems: &mut Problems,
    ) -> EntryPart {
        let (way, congestion) = match load {
            Load::Up => ("up", self.congestions[0]),
            Load::Down => ("down", self.congestions[1]),
        };
        let kind = TrafficKind::Tcp(TcpTraffic {
            flows,
            stagger_ns: 0,
            bytes: None,
            transfers: 1,
            rate_bps: None,
            on_off: None,
            sending: Sending::resolve(congestion, &self.keys.sending, self.path, problems),
        });
        let name = name.map_or_else(|| way.to_owned(), |name| format!("{way}.{name}"));
        EntryPart { name: Some(name), dscp, reverse: load == Load::Down, late_ns: self.keys.delay.get(), kind }
    }

    /// Probes over UDP.
    fn irtt(&self, name: &str, dscp: u8) -> EntryPart {
        let kind = TrafficKind::Irtt(IrttTraffic::every(self.keys.interval.get()));
        EntryPart { name: Some(format!("udp.{name}")), dscp, reverse: false, late_ns: 0, kind }
    }

    /// Probes over ICMP.
    pub(crate) fn ping(&self) -> EntryPart {
        let kind = TrafficKind::Ping(PingTraffic::every(self.keys.interval.get()));
        EntryPart { name: Some("ping".to_owned()), dscp: BE, reverse: false, late_ns: 0, kind }
    }
}
