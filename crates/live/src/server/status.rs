//! The state of a server for its owner: counts, sizes and durations, but no addresses, tokens or names.
//!
//! By default it can be read only on the server's own machine, by its own user and by root, from a Unix socket
//! ([`socket`]). [`http`] serves the same as metrics for Prometheus, if the owner chooses an address for them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

use super::Server;
use super::life::Stage;
use crate::time::{SECOND, monotonic_ns};

pub mod http;
pub mod metrics;
pub mod socket;

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The client has its records.
    Done,
    /// A limit of the server ended it.
    Limited,
    /// Its connection failed, or the client broke a rule.
    Failed,
}

/// Why a client or a connection was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The secret was wrong.
    Token,
    /// Another version of the protocol, or no hello.
    Protocol,
    /// A limit for an hour is reached, of tests or bytes.
    Hour,
    /// Too many clients wait, in all or of one address.
    Queue,
    /// Too many monitors, in all or of one address.
    Monitors,
    /// Too many control connections of one address in an hour.
    Connections,
    /// Too many connections that have not shown a secret, in all or of one address.
    Unproven,
    /// The address belongs to no network of `--allow`.
    Network,
    /// The server is about to end.
    Stopping,
}

impl Refused {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Token,
        Self::Protocol,
        Self::Hour,
        Self::Queue,
        Self::Monitors,
        Self::Connections,
        Self::Unproven,
        Self::Network,
        Self::Stopping,
    ];

    /// Its name in the status and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Protocol => "protocol",
            Self::Hour => "hourly_limit",
            Self::Queue => "queue_full",
            Self::Monitors => "monitors_full",
            Self::Connections => "hourly_connections",
            Self::Unproven => "unproven_connections",
            Self::Network => "network",
            Self::Stopping => "stopping",
        }
    }
}

/// What a server counts from its start on.
#[derive(Debug, Default)]
pub(super) struct Counters {
    outcomes: [AtomicU64; 3],
    refused: [AtomicU64; Refused::ALL.len()],
    monitors: AtomicU64,
    /// Load of the tests that have ended: sent, received.
    bytes: [AtomicU64; 2],
}

impl Counters {
    pub(super) fn ended(&self, outcome: Outcome) {
        self.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refused(&self, reason: Refused) {
        self.refused[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn monitor(&self) {
        self.monitors.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds the load of a test that has ended. Call it while the sessions are locked, so that the sum never falls.
    pub(super) fn loaded(&self, bytes: Bytes) {
        self.bytes[0].fetch_add(bytes.sent, Ordering::Relaxed);
        self.bytes[1].fetch_add(bytes.received, Ordering::Relaxed);
    }
}

/// A server's state at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The program's version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// What it is doing.
    pub state: State,
    /// When it started, in seconds since 1970.
    pub started_s: f64,
    /// How long it has run, in seconds.
    pub uptime_s: f64,
    /// Its tests.
    pub tests: Tests,
    /// Its monitors.
    pub monitors: Monitors,
    /// Clients and connections that were turned away, by the reason ([`Refused::name`]).
    pub refused: BTreeMap<String, u64>,
    /// Connections that have not shown a secret, now.
    pub unproven_connections: usize,
    /// Load of all tests.
    pub bytes: Bytes,
    /// What it allows.
    pub limits: Limits,
    /// What the process uses.
    pub process: Process,
}

/// What a server is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It takes clients.
    Serving,
    /// It takes no new clients, and ends when its tests have ended.
    Stopping,
}

/// Tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tests {
    /// They run now.
    pub running: usize,
    /// Their clients wait for their turn.
    pub waiting: usize,
    /// They run or wait in the process that this one replaced.
    pub of_old_process: usize,
    /// They have ended, and their clients have the records.
    pub done: u64,
    /// A limit has ended them.
    pub limited: u64,
    /// Their connections failed, or their clients broke a rule.
    pub failed: u64,
}

/// Monitors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitors {
    /// They are connected now.
    pub connected: usize,
    /// Their sessions so far.
    pub sessions: u64,
}

/// Load in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes {
    /// From the server to its clients.
    pub sent: u64,
    /// From the clients to the server.
    pub received: u64,
}

/// What a server allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Tests at the same time.
    pub tests: usize,
    /// Clients that wait.
    pub waiting: usize,
    /// Monitors at the same time.
    pub monitors: usize,
    /// Length of a test in seconds.
    pub seconds: u64,
    /// Load of a test in bytes.
    pub bytes: u64,
    /// Load of an address in an hour, in bytes.
    pub bytes_per_hour: u64,
    /// Tests of an address in an hour.
    pub tests_per_hour: u64,
    /// Tests of all addresses in an hour.
    pub all_tests_per_hour: u64,
    /// Bits per second that the server sends, all tests together.
    pub rate_bps: Option<u64>,
}

/// What a process uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Resident memory in bytes.
    pub resident_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Processor time in seconds.
    pub cpu_s: f64,
}

impl Server {
    /// The state now.
    pub(super) fn status(&self) -> Status {
        let counters = &self.counters;
        let (bytes, running) = {
            let sessions = self.sessions.lock();
            let of_ended = |at: usize| counters.bytes[at].load(Ordering::Relaxed);
            let mut bytes = Bytes { sent: of_ended(0), received: of_ended(1) };
            let mut running = 0;
            for session in sessions.values().filter(|session| !session.is_monitor()) {
                running += usize::from(!session.has_ended());
                let of_test = session.load_bytes();
                bytes.sent += of_test.sent;
                bytes.received += of_test.received;
            }
            (bytes, running)
        };
        let [done, limited, failed] = counters.outcomes.each_ref().map(|count| count.load(Ordering::Relaxed));
        let count = |reason: &Refused| counters.refused[*reason as usize].load(Ordering::Relaxed);
        let limits = &self.settings.limits;
        let uptime = Duration::from_nanos(monotonic_ns().saturating_sub(self.began_ns));
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            state: if self.life.stage() == Stage::Serving { State::Serving } else { State::Stopping },
            started_s: since_1970(SystemTime::now().checked_sub(uptime)),
            uptime_s: uptime.as_secs_f64(),
            tests: Tests {
                running,
                waiting: self.queue.waiting(),
                of_old_process: self.queue.ahead(),
                done,
                limited,
                failed,
            },
            monitors: Monitors {
                connected: self.monitors.count(),
                sessions: counters.monitors.load(Ordering::Relaxed),
            },
            refused: Refused::ALL.iter().map(|reason| (reason.name().to_owned(), count(reason))).collect(),
            unproven_connections: self.gate.count(),
            bytes,
            limits: Limits {
                tests: limits.tests,
                waiting: limits.waiting,
                monitors: limits.monitors,
                seconds: limits.session.seconds,
                bytes: limits.session.bytes,
                bytes_per_hour: limits.bytes_per_hour,
                tests_per_hour: limits.tests_per_hour,
                all_tests_per_hour: limits.all_tests_per_hour,
                rate_bps: limits.session.rate_bps,
            },
            process: process(),
        }
    }
}

fn since_1970(time: Option<SystemTime>) -> f64 {
    let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.unwrap_or_default().as_millis() as f64 / 1000.0
}

/// What this process uses; zero for what the kernel does not show (proc(5)).
fn process() -> Process {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let number = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0_u64)
    };
    let cpu_s = getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |usage| {
        let us = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        us as f64 / 1e6
    });
    Process {
        resident_bytes: number("VmRSS") * 1024,
        threads: number("Threads"),
        // Less the one that lists them.
        descriptors: std::fs::read_dir("/proc/self/fd").map_or(0, |all| all.count().saturating_sub(1) as u64),
        cpu_s,
    }
}

impl Status {
    /// The state as text, with the rates since an earlier state.
    pub fn text(&self, before: &Self) -> String {
        let span_s = (self.uptime_s - before.uptime_s).max(1e-3);
        let mbps = |now: u64, then: u64| now.saturating_sub(then) as f64 * 8.0 / 1e6 / span_s;
        let giga = |bytes: u64| bytes as f64 / 1e9;
        let state = match self.state {
            State::Serving => "serving",
            State::Stopping => "stopping, ends with its last test",
        };
        let all: u64 = self.refused.values().sum();
        let reasons: Vec<_> = self.refused.iter().filter(|(_, count)| **count > 0).collect();
        let reasons: Vec<_> = reasons.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let (tests, limits, process) = (&self.tests, &self.limits, &self.process);
        let of_old = match tests.of_old_process {
            0 => String::new(),
            number => format!(", {number} in the old process"),
        };
        let rate = limits.rate_bps.map_or_else(|| "any rate".to_owned(), |bps| format!("{} Mbit/s", bps / 1_000_000));
        let rows = [
            ("Version", format!("{}, process {}", self.version, self.pid)),
            ("State", format!("{state}; up for {}", duration((self.uptime_s * SECOND as f64) as u64 / SECOND))),
            (
                "Tests",
                format!(
                    "{} running, {} waiting{}; {} done, {} ended by a limit, {} failed",
                    tests.running, tests.waiting, of_old, tests.done, tests.limited, tests.failed
                ),
            ),
            ("Monitors", format!("{} connected; {} sessions", self.monitors.connected, self.monitors.sessions)),
            (
                "Load",
                format!(
                    "sends {:.1} Mbit/s, receives {:.1} Mbit/s; {:.2} GB sent, {:.2} GB received",
                    mbps(self.bytes.sent, before.bytes.sent),
                    mbps(self.bytes.received, before.bytes.received),
                    giga(self.bytes.sent),
                    giga(self.bytes.received)
                ),
            ),
            ("Refused", if reasons.is_empty() { "0".to_owned() } else { format!("{all}: {}", reasons.join(", ")) }),
            (
                "Limits",
                format!(
                    "{} tests at a time, {} waiting, {} monitors; a test: {} s, {:.0} GB; an address in an hour: {} tests, \
                     {:.0} GB; all in an hour: {} tests; {rate}",
                    limits.tests,
                    limits.waiting,
                    limits.monitors,
                    limits.seconds,
                    giga(limits.bytes),
                    limits.tests_per_hour,
                    giga(limits.bytes_per_hour),
                    limits.all_tests_per_hour
                ),
            ),
            (
                "Process",
                format!(
                    "{:.1} MiB of memory, {} threads, {} descriptors, {:.1} s of processor time",
                    process.resident_bytes as f64 / f64::from(1 << 20),
                    process.threads,
                    process.descriptors,
                    process.cpu_s
                ),
            ),
        ];
        rows.iter().map(|(name, text)| format!("{name:<9} {text}\n")).collect()
    }
}

fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(super) fn example() -> Status {
        Status {
            version: "0.1.0".to_owned(),
            pid: 1234,
            state: State::Serving,
            started_s: 1_700_000_000.5,
            uptime_s: 3725.0,
            tests: Tests { running: 1, waiting: 3, of_old_process: 0, done: 210, limited: 2, failed: 5 },
            monitors: Monitors { connected: 4, sessions: 12 },
            refused: Refused::ALL.iter().map(|reason| (reason.name().to_owned(), *reason as u64)).collect(),
            unproven_connections: 7,
            bytes: Bytes { sent: 120_000_000_000, received: 13_000_000_000 },
            limits: Limits {
                tests: 1,
                waiting: 256,
                monitors: 64,
                seconds: 180,
                bytes: 200_000_000_000,
                bytes_per_hour: 1_000_000_000_000,
                tests_per_hour: 60,
                all_tests_per_hour: 600,
                rate_bps: Some(500_000_000),
            },
            process: Process { resident_bytes: 6 << 20, threads: 9, descriptors: 42, cpu_s: 17.25 },
        }
    }

    #[test]
    fn the_text_has_rates_and_only_reasons_that_occurred() {
        let now = example();
        let before = Status {
            uptime_s: now.uptime_s - 2.0,
            bytes: Bytes { sent: now.bytes.sent - 25_000_000, ..now.bytes },
            ..now.clone()
        };
        let text = now.text(&before);
        assert!(text.contains("sends 100.0 Mbit/s, receives 0.0 Mbit/s; 120.00 GB sent"), "{text}");
        assert!(text.contains("up for 1 h 2 min") && text.contains("1 running, 3 waiting; 210 done"), "{text}");
        assert!(text.contains("Refused   36: ") && !text.contains("token 0"), "{text}");
    }

    #[test]
    fn this_process_has_memory_threads_and_descriptors() {
        let found = process();
        assert!(found.resident_bytes > 100_000 && found.threads >= 1 && found.descriptors >= 3, "{found:?}");
    }

    #[test]
    fn every_reason_is_at_its_own_index() {
        for (at, reason) in Refused::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, at, "{reason:?}");
        }
    }
}
