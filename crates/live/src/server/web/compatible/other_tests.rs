//! Tests of other people's programs, which have no control connection.
//!
//! A test is what one address asks for with one program, from the first request for load until some seconds after the last
//! request ([`crate::server::limits::Limits::linger`]), because clients pause between download and upload. Where the program
//! carries a number of ours along (`test` in the addresses of responsiveness), that tells two tests behind one address apart.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::StatusCode;
use tokio::sync::oneshot;

use super::{Caller, Program, Refused};
use crate::load::Shared;
use crate::server::limits::{Messages, user};
use crate::server::session::Session;
use crate::server::{SAMPLE, Server, log, memory};
use crate::time::{SECOND, monotonic_ns};
use crate::wire::SessionId;
use crate::wire::control::PhaseKind;

/// Connections of a test per second, on average, beside those of all clients: responsiveness opens many, each for one probe.
const CONNECTIONS_PER_S: u64 = 100;
/// Short requests of a test per second, on average.
const REQUESTS_PER_S: u64 = 400;

/// Which test a request belongs to, beside its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) program: Program,
    /// The number that the program carries along.
    pub(super) number: Option<u64>,
}

/// The tests that run, by their addresses.
#[derive(Default)]
pub(in crate::server) struct OtherTests {
    tests: Mutex<HashMap<IpAddr, Arc<OtherTest>>>,
    beginning: tokio::sync::Mutex<()>,
    /// The one that has its turn and is not among the tests yet.
    next: Mutex<Option<(IpAddr, Name)>>,
}

/// While it exists, requests of a test that begins do not count as those of another one.
struct Beginning<'a>(&'a OtherTests);

impl Drop for Beginning<'_> {
    fn drop(&mut self) {
        *self.0.next() = None;
    }
}

impl OtherTests {
    /// Counts a connection of an address whose test runs; `false` if no test runs, or there are too many.
    pub(in crate::server) fn connects(&self, address: IpAddr, now_ns: u64) -> bool {
        self.of(address).is_some_and(|other| !other.has_ended() && other.connections().allows(now_ns))
    }

    /// Ends the test of an address, if there is one.
    async fn end(&self, address: IpAddr) {
        while let Some(other) = self.of(address) {
            other.is_over.store(true, Ordering::Relaxed);
            tokio::time::sleep(SAMPLE / 4).await;
        }
    }

    fn begin(&self, address: IpAddr, name: Name) -> Beginning<'_> {
        *self.next() = Some((user(address), name));
        Beginning(self)
    }

    fn begins(&self, address: IpAddr, name: Name) -> bool {
        *self.next() == Some((user(address), name))
    }

    fn next(&self) -> MutexGuard<'_, Option<(IpAddr, Name)>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, address: IpAddr) -> Option<Arc<OtherTest>> {
        self.tests().get(&user(address)).cloned()
    }

    fn tests(&self) -> MutexGuard<'_, HashMap<IpAddr, Arc<OtherTest>>> {
        self.tests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A test.
pub(super) struct OtherTest {
    name: Name,
    session: Arc<Session>,
    /// The load from the server ...
    pub(super) down: Arc<Shared>,
    /// ... and to it.
    pub(super) up: Arc<Shared>,
    flows: AtomicUsize,
    /// When the last request was there.
    last_ns: AtomicU64,
    /// Set when the next test of its address is to begin.
    is_over: AtomicBool,
    linger: Duration,
    connections: Mutex<Messages>,
    requests: Mutex<Messages>,
}

impl OtherTest {
    fn new(name: Name, session: &Arc<Session>, linger: Duration) -> Self {
        let mut state = session.state();
        state.begin(PhaseKind::Both);
        let (down, up) = (Arc::clone(&state.down), Arc::clone(&state.up));
        Self {
            name,
            session: Arc::clone(session),
            down,
            up,
            flows: AtomicUsize::new(0),
            last_ns: AtomicU64::new(monotonic_ns()),
            is_over: AtomicBool::new(false),
            linger,
            connections: Mutex::new(Messages::new(CONNECTIONS_PER_S)),
            requests: Mutex::new(Messages::new(REQUESTS_PER_S)),
        }
    }

    /// The number of its session.
    pub(super) fn id(&self) -> SessionId {
        self.session.id
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.session.has_ended()
    }

    fn connections(&self) -> MutexGuard<'_, Messages> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a short request; returns whether it is answered.
    pub(super) fn asks(&self) -> bool {
        let now_ns = monotonic_ns();
        self.last_ns.store(now_ns, Ordering::Relaxed);
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).allows(now_ns)
    }

    /// Whether nothing was asked for in this time.
    fn is_idle(&self, time: Duration) -> bool {
        let last_ns = self.last_ns.load(Ordering::Relaxed);
        self.flows.load(Ordering::Relaxed) == 0 && monotonic_ns() > last_ns + time.as_nanos() as u64
    }

    /// Whether it may still run.
    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed) && !self.is_idle(self.linger)
    }

    /// Whether another test of the same address need not wait for its end.
    fn pauses(&self) -> bool {
        self.is_idle(self.linger / 2)
    }

    fn outcome(&self) -> Option<String> {
        let limits = &self.session.limits;
        if self.session.budget.left() == 0 {
            return Some(format!("{} bytes", limits.bytes));
        }
        let seconds = (monotonic_ns() - self.session.began_ns) / SECOND;
        (seconds >= limits.seconds).then(|| format!("{} s", limits.seconds))
    }
}

/// A request for load that is answered.
pub(super) struct Flow {
    pub(super) other: Arc<OtherTest>,
    pub(super) caller: Arc<Caller>,
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.other.last_ns.store(monotonic_ns(), Ordering::Relaxed);
        self.other.flows.fetch_sub(1, Ordering::Relaxed);
        self.caller.flows.fetch_sub(1, Ordering::Relaxed);
        self.caller.may_rest();
    }
}

impl Caller {
    /// The running test that a request belongs to; `None`: no test runs. Refused if that of another client runs.
    pub(super) fn other_test(&self, name: Name) -> Result<Option<Arc<OtherTest>>, Refused> {
        match self.server.other_tests.of(self.from.ip()) {
            // A limit that is reached ends it with the next tick.
            Some(other) if other.name == name && !other.has_ended() && other.outcome().is_none() => Ok(Some(other)),
            Some(other) if other.name == name => {
                let reason = other.outcome().map_or_else(
                    || "this test has ended".to_owned(),
                    |limit| format!("the server's limit of {limit} for a test is reached"),
                );
                Err(Refused::limited(reason, other.linger))
            }
            Some(other) if other.pauses() => Ok(None),
            None if !self.server.queue.is_full() || self.server.other_tests.begins(self.from.ip(), name) => Ok(None),
            _ => Err(Refused::busy()),
        }
    }

    /// Counts a request without load, of a test or before it; refused if there are too many, or if another test runs.
    pub(super) fn short(&self, name: Name) -> Result<(), Refused> {
        let is_answered = match self.other_test(name)? {
            Some(other) => {
                self.serves(&other);
                other.asks()
            }
            None => self.asks(),
        };
        is_answered.then_some(()).ok_or_else(|| Refused::limited("too many requests".to_owned(), super::BUSY))
    }

    /// Admits a request for load, of which the test may have `most` at the same time. The first one begins the test.
    pub(super) async fn flow(self: &Arc<Self>, name: Name, most: usize) -> Result<Flow, Refused> {
        let other = match self.other_test(name)? {
            Some(other) => other,
            None => {
                // Programs open several connections at the same time, and they are one test.
                let _one = self.server.other_tests.beginning.lock().await;
                match self.other_test(name)? {
                    Some(other) => other,
                    None => {
                        self.server.other_tests.end(self.from.ip()).await;
                        let _begins = self.server.other_tests.begin(self.from.ip(), name);
                        let (begun, beginning) = oneshot::channel();
                        tokio::spawn(Arc::clone(&self.server).host(self.from.ip(), name, begun));
                        let gone = || Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "the test did not begin");
                        beginning.await.map_err(|_| gone())??
                    }
                }
            }
        };
        let counted = |now: usize| (now < most).then_some(now + 1);
        if other.flows.fetch_update(Ordering::Relaxed, Ordering::Relaxed, counted).is_err() {
            let reason =
                format!("this test has {most} loads already, or another client behind your address runs a test");
            return Err(Refused::limited(reason, other.linger));
        }
        self.serves(&other);
        self.flows.fetch_add(1, Ordering::Relaxed);
        Ok(Flow { other, caller: Arc::clone(self) })
    }

    /// Load requests that a test may have at the same time.
    pub(super) fn most_flows(&self) -> usize {
        2 * usize::from(self.server.settings.limits.session.flows)
    }
}

impl Server {
    /// Holds the turn of a test of another program until its end.
    async fn host(
        self: Arc<Self>,
        address: IpAddr,
        name: Name,
        begun: oneshot::Sender<Result<Arc<OtherTest>, Refused>>,
    ) {
        let ticket = match self.ledger.may_begin(address, monotonic_ns()) {
            Ok(()) => self.queue.enter(user(address), self.settings.limits.per_address).ok_or_else(Refused::busy),
            Err(reason) => Err(Refused::limited(reason, super::HOUR)),
        };
        // These clients cannot wait in the queue: they would measure the waiting.
        let ticket = ticket.and_then(|ticket| ticket.position().is_none().then_some(ticket).ok_or_else(Refused::busy));
        let running = ticket.and_then(|ticket| match self.begin(address, &ticket) {
            Ok(Ok(running)) => Ok((ticket, running)),
            Ok(Err(reason)) => Err(Refused::limited(reason, super::HOUR)),
            Err(error) => Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, &error.to_string())),
        });
        let (ticket, running) = match running {
            Ok(running) => running,
            Err(refused) => {
                let _ = begun.send(Err(refused));
                return;
            }
        };
        log(format_args!("a test of another program begins; {} waiting", self.queue.waiting()));
        let other = Arc::new(OtherTest::new(name, &running.session, self.settings.limits.linger));
        self.other_tests.tests().insert(user(address), Arc::clone(&other));
        let _ = begun.send(Ok(Arc::clone(&other)));
        let mut ticks = tokio::time::interval(SAMPLE);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let limit = loop {
            ticks.tick().await;
            // These clients do not ask for records.
            other.down.take_log();
            if let Some(limit) = other.outcome() {
                break Some(limit);
            }
            if !other.goes_on() {
                break None;
            }
        };
        drop(running);
        drop(ticket);
        memory::release();
        // The connections that a limit has cut off get the reason, and do not begin the next test.
        let until = tokio::time::Instant::now() + other.linger;
        while limit.is_some() && !other.is_over.load(Ordering::Relaxed) && tokio::time::Instant::now() < until {
            ticks.tick().await;
        }
        self.other_tests.tests().remove(&user(address));
    }
}
