//! The parts of which Flent's tests consist.

use super::sending;
use super::traffic::Part;
use crate::congestion::Congestion;
use crate::error::{Problem, Problems};
use crate::file::{HostTcp, LoadTest, Traffic as TrafficTable, irtt_size, ping_size, ping_timeout};
use crate::model::{IrttTraffic, PingTiming, PingTraffic, TcpTraffic, TrafficKind};
use crate::path::join;
use crate::units::TIME;

const BE: u8 = 0;
/// Background: CS1.
const BK: u8 = 8;
const CS5: u8 = 40;
const EF: u8 = 46;

/// Names and marks of the TCP flows in each direction, and of the probes over UDP.
type Marks = (&'static [(&'static str, u8)], &'static [(&'static str, u8)]);
const RRUL: Marks = (&[("be", BE), ("bk", BK), ("cs5", CS5), ("ef", EF)], &[("ef", EF), ("bk", BK), ("be", BE)]);
const RRUL_BE: Marks = (&[("be", BE), ("be2", BE), ("be3", BE), ("be4", BE)], &[("be1", BE), ("be2", BE), ("be3", BE)]);

/// What is made of a test's keys.
struct Maker<'a> {
    test: &'a LoadTest,
    /// The congestion control of uploads and of downloads.
    congestions: [Congestion; 2],
    late_ns: u64,
    path: &'a str,
}

/// The parts of a test, in the order of Flent's file; none if the table is no test. `hosts` are the settings of `from`
/// and `to`.
pub(super) fn parts(
    table: &TrafficTable,
    stop_ns: u64,
    hosts: [&HostTcp; 2],
    path: &str,
    problems: &mut Problems,
) -> Vec<Part> {
    let test = match table {
        TrafficTable::Rrul(test) | TrafficTable::RrulBe(test) | TrafficTable::TcpBidirectional(test) => test,
        TrafficTable::TcpDown(streams) | TrafficTable::TcpUp(streams) => &streams.test,
        _ => return Vec::new(),
    };
    let congestions = hosts.map(|host| test.congestion.unwrap_or(host.congestion));
    let late_ns = check_delay(test, stop_ns, path, problems);
    let maker = Maker { test, congestions, late_ns, path };
    match table {
        TrafficTable::Rrul(_) => maker.rrul(RRUL, problems),
        TrafficTable::RrulBe(_) => maker.rrul(RRUL_BE, problems),
        TrafficTable::TcpDown(streams) => {
            vec![maker.tcp("down", BE, true, streams.flows, problems), maker.ping()]
        }
        TrafficTable::TcpUp(streams) => vec![maker.tcp("up", BE, false, streams.flows, problems), maker.ping()],
        _ => {
            let down = maker.tcp("down", BE, true, 1, problems);
            vec![down, maker.tcp("up", BE, false, 1, problems), maker.ping()]
        }
    }
}

/// Some time must be left for the TCP flows.
fn check_delay(test: &LoadTest, stop_ns: u64, path: &str, problems: &mut Problems) -> u64 {
    let length_ns = stop_ns.saturating_sub(test.placement.start.get());
    let delay_ns = test.delay.get();
    if length_ns > 0 && delay_ns.saturating_mul(2) >= length_ns {
        let found = format!("{} at both ends of {}", test.delay, TIME.display(length_ns));
        let allowed = "less than half of the time between start and stop, so that the TCP flows have some time";
        problems.add(|| Problem::new(join(path, "delay"), found, allowed));
    }
    delay_ns
}

impl Maker<'_> {
    fn rrul(&self, (tcp, udp): Marks, problems: &mut Problems) -> Vec<Part> {
        let mut parts = Vec::new();
        for (way, reverse) in [("up", false), ("down", true)] {
            for (name, dscp) in tcp {
                parts.push(self.tcp(&format!("{way}.{name}"), *dscp, reverse, 1, problems));
            }
        }
        parts.extend(udp.iter().map(|(name, dscp)| self.irtt(&format!("udp.{name}"), *dscp)));
        parts.push(self.ping());
        parts
    }

    fn tcp(&self, name: &str, dscp: u8, reverse: bool, flows: u32, problems: &mut Problems) -> Part {
        let congestion = self.congestions[usize::from(reverse)];
        let kind = TrafficKind::Tcp(TcpTraffic {
            flows,
            stagger_ns: 0,
            bytes: None,
            transfers: 1,
            rate_bps: None,
            on_off: None,
            sending: sending::resolve(congestion, &self.test.sending, self.path, problems),
        });
        Part { name: Some(name.to_owned()), dscp, reverse, late_ns: self.late_ns, kind }
    }

    fn irtt(&self, name: &str, dscp: u8) -> Part {
        let kind = TrafficKind::Irtt(IrttTraffic {
            interval_ns: self.test.interval.get(),
            payload_bytes: irtt_size().get_u32(),
            timeout_ns: ping_timeout().get(),
        });
        Part { name: Some(name.to_owned()), dscp, reverse: false, late_ns: 0, kind }
    }

    fn ping(&self) -> Part {
        let kind = TrafficKind::Ping(PingTraffic {
            interval_ns: self.test.interval.get(),
            payload_bytes: ping_size().get_u32(),
            timeout_ns: ping_timeout().get(),
            timing: PingTiming::Exact,
        });
        Part { name: Some("ping".to_owned()), dscp: BE, reverse: false, late_ns: 0, kind }
    }
}
