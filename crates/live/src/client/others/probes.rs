//! The probes of responsiveness: new connections with a small request, and small requests on the load's connections. Where these
//! are seldom, new connections without a request show the round trip often enough.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::Uri;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::load::Connections;
use crate::client::exchanges::Exchange;
use crate::client::http::{Connection, HttpError, Multiplexed, Origin, Purpose, Steps, connect, whole};
use crate::time::{monotonic_ns, realtime_ns};

/// Probes of a kind that may be under way at a time.
const OPEN: usize = 64;
/// A probe that takes longer is lost.
const PATIENCE: Duration = Duration::from_secs(10);
/// The small object has one byte; servers may send a few more.
const LONGEST_OBJECT: usize = 64 << 10;
const MOST_ROWS: usize = 60_000;
/// The hops' answers are compared with the round trip of the whole path, so that must be known this often.
const HANDSHAKES: Duration = Duration::from_millis(200);

/// What was recorded.
#[derive(Debug, Default)]
pub(super) struct ProbeLog {
    /// New connections.
    pub(super) foreign: Vec<Exchange>,
    /// New connections without a request: when they were begun, and how long their handshakes took.
    pub(super) handshakes: Vec<(u64, Option<u64>)>,
    /// Requests on the load's connections: whether it is a download, when they were sent, and how long they took.
    pub(super) own: Vec<(bool, u64, u64)>,
    /// When the server answered last, on the monotonic clock.
    pub(super) heard_ns: u64,
    /// The last failures.
    pub(super) failures: Failures,
}

/// How many probes failed, and why the last one did.
#[derive(Debug, Default)]
pub(super) struct Failures {
    pub(super) foreign: (u64, Option<String>),
    pub(super) own: (u64, Option<String>),
}

/// The load on whose connections probes are sent.
type OnLoad = Option<(bool, Connections)>;

/// Sends probes until it is dropped.
pub(super) struct Probes {
    log: Arc<Mutex<ProbeLog>>,
    period_ns: Arc<AtomicU64>,
    load: Arc<Mutex<OnLoad>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Probes {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Probes {
    /// Begins to probe `small`, with this time between two probes of a kind.
    pub(super) fn start(origin: Origin, small: Option<Uri>, period_ns: u64) -> Self {
        let (log, load): (Arc<Mutex<ProbeLog>>, Arc<Mutex<OnLoad>>) = (Arc::default(), Arc::default());
        let period_ns = Arc::new(AtomicU64::new(period_ns));
        let prober =
            Prober { origin, small, log: Arc::clone(&log), period_ns: Arc::clone(&period_ns), load: Arc::clone(&load) };
        Self { log, period_ns, load, task: tokio::spawn(prober.run()) }
    }

    pub(super) fn log(&self) -> MutexGuard<'_, ProbeLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the time between two probes of a kind.
    pub(super) fn set_period(&self, period_ns: u64) {
        self.period_ns.store(period_ns, Ordering::Relaxed);
    }

    /// Probes on the connections of this load, too; whether it is a download.
    pub(super) fn set_load(&self, load: OnLoad) {
        *self.load.lock().unwrap_or_else(PoisonError::into_inner) = load;
    }
}

struct Prober {
    origin: Origin,
    /// The small object; `None`: the server has no such object, and new connections are only opened.
    small: Option<Uri>,
    log: Arc<Mutex<ProbeLog>>,
    period_ns: Arc<AtomicU64>,
    load: Arc<Mutex<OnLoad>>,
}

impl Prober {
    async fn run(self) {
        let prober = Arc::new(self);
        let (foreign, own) = (Arc::new(Semaphore::new(OPEN)), Arc::new(Semaphore::new(OPEN)));
        let mut tasks = JoinSet::new();
        let mut next = tokio::time::Instant::now();
        let mut next_handshake = next;
        let mut number = monotonic_ns() as usize;
        loop {
            tokio::time::sleep_until(next.min(next_handshake)).await;
            while tasks.try_join_next().is_some() {}
            let period = Duration::from_nanos(prober.period_ns.load(Ordering::Relaxed));
            // Probes that are late are not caught up on.
            let now = tokio::time::Instant::now();
            if now >= next_handshake {
                next_handshake = (next_handshake + HANDSHAKES).max(now);
                let permit = Arc::clone(&foreign).try_acquire_owned().ok();
                if let Some(permit) = permit.filter(|_| prober.small.is_none() || period > HANDSHAKES) {
                    let prober = Arc::clone(&prober);
                    tasks.spawn(async move {
                        prober.handshake().await;
                        drop(permit);
                    });
                }
            }
            if now < next {
                continue;
            }
            next = (next + period).max(now);
            if prober.small.is_none() {
                continue;
            }
            if let Ok(permit) = Arc::clone(&foreign).try_acquire_owned() {
                let prober = Arc::clone(&prober);
                tasks.spawn(async move {
                    prober.foreign().await;
                    drop(permit);
                });
            }
            // A multiplicative generator (Knuth's constant) chooses a connection.
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let Some((is_down, connection)) = prober.connection(number >> 33) else { continue };
            if let Ok(permit) = Arc::clone(&own).try_acquire_owned() {
                let prober = Arc::clone(&prober);
                tasks.spawn(async move {
                    prober.own(is_down, connection).await;
                    drop(permit);
                });
            }
        }
    }

    fn connection(&self, number: usize) -> Option<(bool, Multiplexed)> {
        let load = self.load.lock().unwrap_or_else(PoisonError::into_inner);
        let (is_down, connections) = load.as_ref()?;
        Some((*is_down, connections.any(number)?))
    }

    fn log(&self) -> MutexGuard<'_, ProbeLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new connection.
    async fn handshake(&self) {
        let (t_ns, begun) = (realtime_ns(), Instant::now());
        let done = tokio::time::timeout(PATIENCE, connect(self.origin.address, &Purpose::Probe)).await;
        let rtt_ns = begun.elapsed().as_nanos() as u64;
        let mut log = self.log();
        let is_open = match done {
            Ok(Ok(_)) => {
                log.heard_ns = monotonic_ns();
                true
            }
            Ok(Err(error)) => {
                log.failures.foreign = (log.failures.foreign.0 + 1, Some(error.to_string()));
                false
            }
            Err(_) => false,
        };
        if log.handshakes.len() < MOST_ROWS {
            log.handshakes.push((t_ns, is_open.then_some(rtt_ns)));
        }
    }

    /// A new connection, and a small request on it.
    async fn foreign(&self) {
        let mut steps = Steps::default();
        let (t_ns, mut exchange_ns) = (realtime_ns(), None);
        let probing = self.exchange(&mut steps, &mut exchange_ns);
        let done = tokio::time::timeout(PATIENCE, probing).await;
        let mut log = self.log();
        match done {
            Ok(Ok(())) => log.heard_ns = monotonic_ns(),
            Ok(Err(error)) => log.failures.foreign = (log.failures.foreign.0 + 1, Some(error.to_string())),
            Err(_) => {
                let silent = HttpError::Silent(self.origin.address).to_string();
                log.failures.foreign = (log.failures.foreign.0 + 1, Some(silent));
            }
        }
        if log.foreign.len() < MOST_ROWS {
            let tls_ns = steps.tls_ns.map(|ns| ns / steps.tls_trips.max(1));
            log.foreign.push(Exchange { t_ns, connect_ns: steps.connect_ns, tls_ns, exchange_ns });
        }
    }

    async fn exchange(&self, steps: &mut Steps, exchange_ns: &mut Option<u64>) -> Result<(), HttpError> {
        let Some(small) = &self.small else { return Ok(()) };
        let mut connection = Connection::open(&self.origin, &Purpose::Probe, steps).await?;
        let begun = Instant::now();
        whole(connection.get(small).await?, LONGEST_OBJECT).await?;
        *exchange_ns = Some(begun.elapsed().as_nanos() as u64);
        Ok(())
    }

    /// A small request on a connection of the load.
    async fn own(&self, is_down: bool, mut connection: Multiplexed) {
        let (t_ns, begun) = (realtime_ns(), Instant::now());
        let Some(small) = &self.small else { return };
        let probing = async { whole(connection.get(small).await?, LONGEST_OBJECT).await };
        let done = tokio::time::timeout(PATIENCE, probing).await;
        let rtt_ns = begun.elapsed().as_nanos() as u64;
        let mut log = self.log();
        match done {
            Ok(Ok(_)) => {
                log.heard_ns = monotonic_ns();
                if log.own.len() < MOST_ROWS {
                    log.own.push((is_down, t_ns, rtt_ns));
                }
            }
            // A connection that its load has closed is no failure.
            Ok(Err(_)) if connection.is_closed() => {}
            Ok(Err(error)) => log.failures.own = (log.failures.own.0 + 1, Some(error.to_string())),
            Err(_) => {
                let silent = HttpError::Silent(self.origin.address).to_string();
                log.failures.own = (log.failures.own.0 + 1, Some(silent));
            }
        }
    }
}
